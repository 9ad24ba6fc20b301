import json
from pathlib import Path

import pytest

from tests.cli.test_main import run


def test_draws_are_printed_one_a_line() -> None:
    done = run("noise", "laplace", "--epsilon", "0.1", "-n", "50")
    assert done.returncode == 0, done.stderr
    draws = [int(line) for line in done.stdout.splitlines()]
    assert len(draws) == 50
    assert any(draws)
    assert max(map(abs, draws)) < 1000  # e**-100
    drawn = json.loads(
        run("noise", "gaussian", "--scale", "3", "--grid", "0.25", "--draws", "40", "--json").stdout
    )
    assert all(4 * draw == int(4 * draw) for draw in drawn)
    assert any(draw != int(draw) for draw in drawn)


def test_without_draws_it_says_how_large_the_noise_is() -> None:
    figures = json.loads(run("noise", "laplace", "--scale", "10", "--json").stdout)
    assert figures["error"]["0.95"] == 30
    assert 9.98 < figures["expected_error"] < 9.99
    said = run("noise", "laplace", "--scale", "10").stdout
    assert "within 30" in said


def test_the_picture_is_written(tmp_path: Path) -> None:
    picture = tmp_path / "noise.svg"
    done = run("noise", "gaussian", "--scale", "1/10", "--plot", str(picture))
    assert done.returncode == 0, done.stderr
    assert "<svg" in picture.read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ["laplace"],
        ["laplace", "--scale", "0"],
        ["laplace", "--scale", "1", "--epsilon", "1"],
        ["gaussian", "--epsilon", "1", "-n", "3"],
        ["laplace", "--scale", "1", "-n", "0"],
        ["laplace", "--scale", "1", "-n", "1000000000"],
        ["laplace", "--scale", "1", "-n", "1.5"],
        ["laplace", "--scale", "1/0"],
    ],
)
def test_wrong_input_is_exit_code_2_and_no_traceback(arguments: list[str]) -> None:
    done = run("noise", *arguments)
    assert done.returncode == 2
    assert done.stderr
    assert "Traceback" not in done.stderr
