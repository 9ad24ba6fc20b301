import os
from pathlib import Path

import pytest

from tests.cli.test_main import run


def test_the_tour_shows_every_stop_and_leaves_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "epsilon.png"
    done = run("demo", "--picture", str(picture))
    assert done.returncode == 0, done.stderr
    assert "as it should be" in done.stdout
    assert done.stdout.count("none will do") == 3
    assert "1.099" in done.stdout
    assert done.stdout.count(" +- ") == 12, "six counts, by two kinds of noise"
    assert "the worst of 20" in done.stdout
    assert "which nobody was told" in done.stdout
    assert "at most 2.72 times as likely" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["no-such-folder/a.png", "a.nosuchformat", "[b]"])
def test_the_tour_ends_well_where_no_picture_can_be_written(tmp_path: Path, name: str) -> None:
    done = run("demo", "--picture", str(tmp_path / name))
    assert done.returncode == 0, done.stderr
    assert "No picture: " in done.stdout
    assert name in "".join(done.stdout.split())


def test_the_tour_fits_a_narrow_terminal_without_blocks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(os.environ, "COLUMNS", "60")
    monkeypatch.setitem(os.environ, "PYTHONIOENCODING", "ascii")
    done = run("demo", "--picture", str(tmp_path / "a.png"))
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 60
    assert "3.92% to 23.2%" in done.stdout, "an interval is rounded outward"
