import json
from pathlib import Path

import pytest

from tests.cli.test_main import run


def test_the_example_of_the_help_text() -> None:
    done = run("solve", "laplace", "--sensitivity", "1", "--error", "10", "--failure", "1e-5")
    assert done.returncode == 0, done.stderr
    assert "epsilon" in done.stdout
    assert "1.1941" in done.stdout


def test_json_has_the_figures() -> None:
    figures = json.loads(run("solve", "gaussian", "--epsilon", "1", "--delta", "1e-6", "--json").stdout)
    assert figures["mechanism"] == "Gaussian"
    assert 4.1**2 < figures["variance"] < 4.3**2
    assert 0.999 < figures["epsilon_at_delta"] <= 1
    assert figures["error"]["0.95"] == 8
    figures = json.loads(run("solve", "laplace", "--error", "10", "--failure", "1e-5", "--json").stdout)
    assert 1.1941 <= figures["epsilon"] < 1.1942


def test_several_answers_and_a_grid() -> None:
    one = json.loads(run("solve", "laplace", "--rho", "0.1", "--json").stdout)
    many = json.loads(run("solve", "laplace", "--rho", "0.1", "--size", "50", "--json").stdout)
    assert many["scale"] == one["scale"]
    assert many["error"]["0.95"] > one["error"]["0.95"]
    fine = json.loads(
        run("solve", "laplace", "--error", "10", "--failure", "1e-5", "--grid", "1/1048576", "--json").stdout
    )
    assert 1.1512 < fine["epsilon"] < 1.1514
    assert fine["grid"] == 2**-20


def test_the_picture_is_written(tmp_path: Path) -> None:
    for kind, more in (("laplace", []), ("gaussian", ["--delta", "1e-6", "--grid", "0.001"])):
        picture = tmp_path / f"{kind}.png"
        done = run("solve", kind, "--epsilon", "1", *more, "--plot", str(picture))
        assert done.returncode == 0, done.stderr
        assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["laplace"],
        ["cauchy", "--epsilon", "1"],
        ["laplace", "--error", "10"],
        ["laplace", "--error", "10", "--failure", "2"],
        ["laplace", "--error", "0", "--failure", "0.1"],
        ["laplace", "--epsilon", "1", "--error", "10", "--failure", "0.1"],
        ["laplace", "--epsilon", "1", "--rho", "1"],
        ["laplace", "--epsilon", "0"],
        ["laplace", "--epsilon", "nan"],
        ["laplace", "--epsilon", "1", "--sensitivity", "-1"],
        ["laplace", "--epsilon", "1", "--size", "0"],
        ["laplace", "--epsilon", "1", "--grid", "0"],
        ["gaussian", "--epsilon", "1"],
        ["gaussian", "--epsilon", "1", "--delta", "1"],
        ["laplace", "--epsilon", "1", "--plot", "no-such-folder/a.png"],
    ],
)
def test_wrong_input_is_exit_code_2_and_no_traceback(arguments: list[str]) -> None:
    done = run("solve", *arguments)
    assert done.returncode == 2
    assert done.stderr
    assert "Traceback" not in done.stderr
