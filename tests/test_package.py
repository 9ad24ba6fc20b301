"""The public face: one list of names, honest to type checkers, and cheap to import."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__)


def names_type_checkers_see() -> dict[str, str]:
    """Name -> module, of the imports under `if TYPE_CHECKING` in the package."""
    guarded = [
        node
        for node in ast.parse(SOURCE.read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    imports = [node for block in guarded for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or "": node.module or "" for node in imports for alias in node.names}


def test_type_checkers_see_exactly_the_public_names_where_they_live() -> None:
    assert names_type_checkers_see() == discreet._HOME | dict.fromkeys(discreet._ROOMS, "discreet")
    assert sorted(discreet.__all__) == sorted({"__version__", *names_type_checkers_see()})


@pytest.mark.parametrize("name", discreet.__all__)
def test_every_public_name_loads_and_is_listed(name: str) -> None:
    value = getattr(discreet, name)
    assert name in dir(discreet)
    if home := discreet._HOME.get(name):
        assert value is getattr(import_module(home), name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'pureDP'"):
        _ = discreet.pureDP  # type: ignore[attr-defined]


def modules_loaded_by(statement: str) -> set[str]:
    script = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return {name.partition(".")[0] for name in run.stdout.split()}


def test_importing_discreet_loads_no_library_but_numpy() -> None:
    assert modules_loaded_by("import discreet") - sys.stdlib_module_names <= {"discreet", "numpy"}


def test_importing_the_rooms_draws_in_nothing_for_the_screen() -> None:
    heavy = {"matplotlib", "pandas", "polars", "rich", "scipy", "typer"}
    assert (
        not modules_loaded_by("import discreet; discreet.privacy; discreet.noise; discreet.mechanisms")
        & heavy
    )
