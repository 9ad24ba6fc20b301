import pytest

from bench._common import best, race, report, rival, typical


def test_contenders_take_turns_in_a_turning_order_after_a_warm_up() -> None:
    calls: list[str] = []
    race({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3)
    assert calls == ["a", "b", "a", "b", "b", "a", "a", "b"]


def test_best_and_typical() -> None:
    assert best({"a": [3.0, 1.0, 2.5]}) == {"a": 1.0}
    assert typical({"a": [3.0, 1.0, 2.5]}) == {"a": 2.5}


def test_a_missing_rival_is_left_out_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert rival("no_such_rival.prelude") is None
    report("Speed", ["who", "time"], [["us", "1 ms"]], ["numpy", "no-such-rival"])
    printed = capsys.readouterr().out
    assert "| who | time |\n| --- | ---: |\n| us  | 1 ms |\n" in printed
    assert "numpy 2." in printed
    assert "not installed here: no-such-rival." in printed


@pytest.mark.rivals
@pytest.mark.parametrize("name", ["opendp", "diffprivlib"])
@pytest.mark.filterwarnings("ignore")  # theirs
def test_the_rivals_that_are_pinned_do_load(name: str) -> None:
    assert rival(name) is not None
