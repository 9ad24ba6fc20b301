from pathlib import Path

from tests.cli.test_main import run


def test_the_tour_shows_every_stop_and_leaves_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "epsilon.png"
    done = run("demo", "--picture", str(picture))
    assert done.returncode == 0, done.stderr
    assert "as it should be" in done.stdout
    assert done.stdout.count("none will do") == 3
    assert "1.099" in done.stdout
    assert "at most 2.72 times as likely" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
