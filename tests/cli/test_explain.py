import json
from pathlib import Path

import pytest

from tests.cli.test_main import run


def test_a_pure_epsilon_is_explained_in_words() -> None:
    done = run("explain", "1", "--n", "10000")
    assert done.returncode == 0
    assert done.stdout.startswith("PureDP(epsilon=1)\n")
    assert "at most 2.72 times as likely" in done.stdout
    assert "smoking causes cancer" in done.stdout


def test_numbers_are_taken_exactly() -> None:
    """0.1 and 1/10 are one tenth, not the double beside it."""
    assert run("explain", "0.1").stdout == run("explain", "1/10").stdout


@pytest.mark.parametrize(
    ("arguments", "guarantee"),
    [
        (["1", "--delta", "1e-6"], "ApproxDP(epsilon=1, delta=1e-06)"),
        (["--rho", "0.5"], "ZCDP(rho=0.5)"),
        (["--mu", "1/2"], "GDP(mu=0.5)"),
    ],
)
def test_json_has_the_figures_for_every_kind_of_guarantee(arguments: list[str], guarantee: str) -> None:
    figures = json.loads(run("explain", *arguments, "--json").stdout)
    assert figures["guarantee"] == guarantee
    assert 0.5 < figures["best_guess_from_even_odds"] < 1


def test_a_delta_that_allows_a_victim_is_cautioned_against() -> None:
    assert "Take care" in run("explain", "1", "--delta", "0.001", "--n", "1000").stdout
    assert "Take care" not in run("explain", "1", "--delta", "1e-9", "--n", "1000").stdout


def test_an_epsilon_too_small_to_be_of_use_is_said_to_be() -> None:
    said = run("explain", "1e-6", "--delta", "1e-9", "--n", "10000").stdout
    assert "almost nothing about the data" in " ".join(said.split())
    said = run("explain", "1e-6", "--delta", "0.001", "--n", "10000").stdout
    assert "this delta may let a lot through" in " ".join(said.split())


def test_the_picture_is_written(tmp_path: Path) -> None:
    picture = tmp_path / "epsilon.png"
    assert run("explain", "1", "--plot", str(picture)).returncode == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_words_come_before_a_picture_that_cannot_be_written(tmp_path: Path) -> None:
    done = run("explain", "1", "--plot", str(tmp_path / "no" / "epsilon.png"))
    assert done.returncode == 2
    assert "at most 2.72 times as likely" in done.stdout
    assert "cannot write a picture" in done.stderr


def test_replace_speaks_of_other_data_in_your_place() -> None:
    said = " ".join(run("explain", "1", "--neighbours", "replace").stdout.split())
    assert "as with anybody else's in their place" in said
    assert "without you:" not in said
    assert (
        json.loads(run("explain", "1", "--neighbours", "replace", "--json").stdout)["neighbours"] == "replace"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["1", "--rho", "1"],
        ["nan"],
        ["inf"],
        ["one"],
        ["1/0"],
        ["1e99999"],
        ["1e99999999"],
        ["1/" + "3" * 10_000],
        ["1", "--neighbours", "both"],
        ["1", "--plot", "picture"],
        ["1", "--plot", "."],
        ["--", "-1"],
        ["1", "--delta", "1"],
        ["1", "--n", "0"],
        ["1", "--plot", "no-such-folder/picture.png"],
        ["1", "--plot", "picture.nosuchformat"],
    ],
)
def test_wrong_input_is_exit_code_2_and_no_traceback(arguments: list[str]) -> None:
    done = run("explain", *arguments)
    assert done.returncode == 2
    assert done.stderr
    assert "Traceback" not in done.stderr
