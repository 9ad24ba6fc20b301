"""The choice among candidates, exactly: runs of them, of which each member has the same rank error."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import noise
from discreet.mechanisms import ranks
from discreet.mechanisms.ranks import Candidates, choose, cuts, points
from discreet.mechanisms.weighted import Weights
from tests.statistics import Finding, assert_passes, chi_square, judge

MP = mpmath.mp.clone()
MP.dps = 30


def power(x: Fraction) -> Any:
    return MP.exp(-MP.mpf(x.numerator) / x.denominator)


def candidates_of(errors: list[int], times: list[int]) -> Candidates:
    starts = np.cumsum([0, *times[:-1]]) * 10
    return Candidates(starts, np.array(times), np.array(errors))


CHOICES = [
    ([7, 3, 0, 2, 5], [1, 4, 2, 3, 1], Fraction(1, 3)),
    ([5, 5, 5], [1, 0, 3], Fraction(9)),
    ([0, 0, 9, 1], [0, 0, 5, 5], Fraction(1, 4)),
    ([10**17 + 3, 10**17, 10**17 + 1], [2, 1, 1], Fraction(2, 3)),
    ([0, 1, 2, 3], [1, 10, 100, 1000], Fraction(5, 2)),
    ([0, 400, 1], [1, 1 << 50, 0], Fraction(1, 12)),
]


def choice_finding(errors: list[int], times: list[int], unit: Fraction, draws: int = 3000) -> Finding:
    candidates = candidates_of(errors, times)
    starts = candidates.starts.tolist()
    weights = [m * power(unit * (error - min(errors))) for error, m in zip(errors, times, strict=True)]
    parts = [m if m < 20 else 4 for m in times]
    cells = [(i, j) for i, count in enumerate(parts) for j in range(count)]
    chances = [float(weights[i] / parts[i] / MP.fsum(weights)) for i, _ in cells]
    seen = dict.fromkeys(cells, 0)
    for _ in range(draws):
        found = choose(candidates, unit * 3, Fraction(1, 3), noise.SYSTEM)
        i = max(k for k, start in enumerate(starts) if start <= found and times[k])
        assert 0 <= found - starts[i] < times[i]
        seen[i, (found - starts[i]) * parts[i] // times[i]] += 1
    return chi_square("choices", list(seen.values()), chances)


@pytest.mark.parametrize(("errors", "times", "unit"), CHOICES)
def test_choose(errors: list[int], times: list[int], unit: Fraction) -> None:
    assert_passes(choice_finding(errors, times, unit))


@pytest.mark.parametrize("unit", [Fraction(1, 1 << 1100), Fraction(1, 10**400), Fraction(1 << 1100)])
def test_choose_at_extreme_rates(unit: Fraction) -> None:
    """Rates that no double holds: then all are alike, or only the best is left."""
    for errors, times, _ in CHOICES[:3]:
        assert_passes(choice_finding(errors, times, unit, 600))


def test_planted_runs_of_equal_weight_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "Weights", lambda near, gap, times: Weights(near, gap, None))
    assert judge([choice_finding(*CHOICES[0])])


def test_planted_choices_of_the_first_in_a_run_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "uniform", lambda n, source: 0)
    assert judge([choice_finding(*CHOICES[0])])


def test_gaps_are_as_near_as_weights_require(monkeypatch: pytest.MonkeyPatch) -> None:
    """Doubles within 2**-50 of each gap or 2**-1000, and the least gap of candidates that there are is 0."""
    seen: list[tuple[NDArray[np.float64], list[Fraction]]] = []

    class Spy:
        def __init__(self, near: Any, gap: Any, times: Any) -> None:
            seen.append((near, [gap(i) for i in range(len(near))]))

        def draw(self, source: Any) -> int:
            return 0

    monkeypatch.setattr(ranks, "Weights", Spy)
    rng = np.random.default_rng(1)
    for bits in (3, 40, 61, 200):
        errors = [int(x) << max(0, bits - 62) for x in rng.integers(1, 1 << min(bits, 62), 20)]
        for unit in (Fraction(1, 7), Fraction(10**9, 3), Fraction(1, 10**250), Fraction(1, 10**320)):
            kind = np.int64 if bits < 62 else object
            runs = Candidates(np.arange(20), np.arange(20) % 3, np.array(errors, kind))
            choose(runs, unit, Fraction(0), noise.SYSTEM)
    for near, gaps in seen:
        assert min(gaps) == 0
        for x, gap in zip(near.tolist(), gaps, strict=True):
            assert math.isinf(x) or abs(Fraction(x) - gap) <= max(gap / 2**50, Fraction(1, 2**1000))


@pytest.mark.parametrize("kind", [points, cuts])
def test_runs_cover_each_place_once(kind: Any) -> None:
    for values in ([], [3], [0, 0, 9], [2, 3, 3, 4], [9] * 4):
        for low, high in ((0, 9), (0, 12), (-2, 9)):
            found = kind(np.array(values, np.int64), low, high, Fraction(1, 3))
            starts, times = found.starts.tolist(), found.times.tolist()
            places = [s + i for s, count in zip(starts, times, strict=True) for i in range(count)]
            assert places == list(range(low, high + 1 + (kind is cuts)))
