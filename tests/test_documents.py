"""The test run itself: a wrong example fails it, and what it left out is said."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that is tested by our own rules and holds nothing yet."""
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def outcome(project: Path, *options: str) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "."]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize(
    "example",
    [
        "```python\n>>> 6 * 7\n{}\n```\n",
        "```pycon\n>>> 6 * 7\n{}\n```\n",
        "```python\nassert 6 * 7 == {}\n```\n",
        "- in a list:\n\n    ```pycon\n    >>> 6 * 7\n    {}\n    ```\n",
    ],
)
def test_a_wrong_example_in_a_document_fails(project: Path, example: str) -> None:
    (project / "page.md").write_text(example.format(42))
    assert "1 passed" in outcome(project)
    (project / "page.md").write_text(example.format(43))
    assert "1 failed" in outcome(project)


def test_a_wrong_example_in_a_docstring_fails(project: Path) -> None:
    (project / "module.py").write_text('"""\n>>> 6 * 7\n43\n"""\n')
    assert "1 failed" in outcome(project)


def test_the_blocks_of_a_page_share_their_names_and_pages_do_not(project: Path) -> None:
    count = "```python\nx = 0\n```\n" + "```python\n>>> x += 1; x\n{}\n```\n" * 2
    (project / "one.md").write_text(count.format(1, 2))
    (project / "two.md").write_text(count.format(1, 2))
    (project / "three.md").write_text("```python\n>>> x\n2\n```\n")
    text = outcome(project, "-n2")
    assert "1 failed, 2 passed" in text
    assert "name 'x' is not defined" in text


def test_a_warning_fails(project: Path) -> None:
    (project / "page.md").write_text("```python\nimport warnings\nwarnings.warn('careful')\n```\n")
    assert "1 failed" in outcome(project)


def test_what_was_left_out_is_counted_with_how_to_run_it(project: Path) -> None:
    (project / "test_marks.py").write_text(
        "import pytest\n"
        "@pytest.mark.rivals\ndef test_a(): assert False\n"
        "@pytest.mark.rivals\ndef test_b(): assert False\n"
        "@pytest.mark.slow\ndef test_c(): pass\n"
    )
    for options in ((), ("-n2",)):
        text = outcome(project, *options)
        assert "1 passed, 2 skipped" in text
        assert "2 marked rivals; to run: make test-rivals" in text
        assert "0 marked server" in text
    assert "1 marked slow" in outcome(project, "--without=slow")
    assert "2 failed, 1 passed" in outcome(project, "--with=rivals")
