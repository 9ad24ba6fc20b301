import subprocess
import sys

import pytest

import discreet
from discreet import cli
from discreet.errors import InvalidInput


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "discreet", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_version_is_the_packages() -> None:
    assert run("--version").stdout == f"discreet {discreet.__version__}\n"


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_says_what_discreet_is_for(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 0
    assert "without telling on any of them" in done.stdout


def test_an_unknown_command_is_exit_code_2() -> None:
    assert run("no-such-command").returncode == 2


def test_an_error_of_ours_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise InvalidInput("epsilon must be [bold]positive[/bold], not -1")

    monkeypatch.setattr(cli, "app", refuse)
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 2
    assert capsys.readouterr().err == "discreet: epsilon must be [bold]positive[/bold], not -1\n"


def test_any_other_error_is_a_bug_and_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "app", crash)
    with pytest.raises(ZeroDivisionError):
        cli.main()
