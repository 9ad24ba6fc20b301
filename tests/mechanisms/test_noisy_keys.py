"""Keys above a threshold are shown as often, and lose as much, as claimed; planted errors are caught."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet.errors import Unsupported
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.noisy_keys import GaussianKeys, LaplaceKeys, _EscapePair
from discreet.privacy import ZCDP, ApproxDP
from discreet.privacy.pairs import LaplacePair
from tests.mechanisms.key_laws import (
    MANY,
    MP,
    TINY,
    Law,
    counts_for,
    hockey_stick,
    real,
    shown_findings,
    together,
)
from tests.statistics import Finding, assert_passes, chi_square, judge

NOISY = [LaplaceKeys(1, 4, 2), LaplaceKeys(Fraction(3, 2), 3), GaussianKeys(2, 3, 2), GaussianKeys(1, 2)]


def noise_law(m: Any, reach: int = 40) -> Law:
    if isinstance(m, LaplaceKeys):
        weights = {x: MP.exp(-abs(x) / real(m.scale)) for x in range(-reach, reach + 1)}
    else:
        weights = {x: MP.exp(-(x**2) / (2 * real(m.variance))) for x in range(-reach, reach + 1)}
    # What is left out falls on the ends; in these cases that is less than 1e-11.
    total = sum(weights.values())
    return {x: w / total for x, w in weights.items()}


def shown_law(noise: Law, n: int, threshold: int) -> Law:
    """A key of n units: hidden, or shown with a count."""
    law: Law = {None: MP.mpf(0)}
    for x, mass in noise.items():
        outcome = n + x if n and n + x > threshold else None
        law[outcome] = law.get(outcome, MP.mpf(0)) + mass
    return law


def shown_chance(noise: Law, n: int, threshold: int) -> float:
    return max(0.0, float(1 - shown_law(noise, n, threshold)[None])) if n else 0.0


@pytest.mark.parametrize("m", NOISY, ids=str)
def test_noisy_keep_probability(m: Any) -> None:
    noise = noise_law(m, 200)
    for n in range(12):
        chance = 1 - shown_law(noise, n, m.threshold)[None]
        low, high = m.keep_probability(n)
        assert low - TINY <= chance <= high + TINY
        assert high - low < 1e-14
    own = 1 - shown_law(noise, 1, m.threshold)[None]
    assert real(m.escape()) >= 1 - (1 - own) ** m.keys_per_unit - TINY
    assert float(m.escape()) == pytest.approx(float(1 - (1 - own) ** m.keys_per_unit), rel=1e-12)


@pytest.mark.parametrize("m", NOISY, ids=str)
def test_loss(m: Any) -> None:
    """Exact laws of what is shown, between all neighbours with small counts, against the loss claimed."""
    noise = noise_law(m, 24)
    loss = m.loss()
    epsilons = [Fraction(1, 10), Fraction(1), Fraction(2), Fraction(5)]
    claimed = [loss.delta(e) for e in epsilons]
    laws = {n: shown_law(noise, n, m.threshold) for n in range(4)}
    worst = [MP.mpf(0)] * len(epsilons)
    for counts in product((0, 1, 2), repeat=m.keys_per_unit):
        for by in product((0, 1), repeat=m.keys_per_unit):
            without = together(laws[c] for c in counts)
            within = together(laws[c + x] for c, x in zip(counts, by, strict=True))
            for i, e in enumerate(epsilons):
                found = max(hockey_stick(within, without, e), hockey_stick(without, within, e))
                worst[i] = max(worst[i], found)
    # 1e-6 is for the ends of the noise, which are cut off here.
    slack = 1e-6 if isinstance(m, LaplaceKeys) else 1e-12
    assert all(w <= c + slack for w, c in zip(worst, claimed, strict=True))
    if isinstance(m, LaplaceKeys):  # from its pure epsilon on nothing but a unit's own keys counts
        assert m.guarantee() == ApproxDP(m.keys_per_unit / m.scale, m.escape())
        assert loss.satisfies(*m.guarantee().figures())
        assert not loss.satisfies(m.guarantee().epsilon, m.escape() * Fraction(999, 1000))
        assert float(worst[-1]) == pytest.approx(float(m.escape()), rel=1e-5)


@pytest.mark.parametrize("m", [LaplaceKeys(Fraction(3, 2), 3), GaussianKeys(1, 2)], ids=str)
def test_loss_where_a_unit_is_replaced(m: Any) -> None:
    """One key loses a unit and another gains one, which may be its only one: exactly, for small counts."""
    noise = noise_law(m, 24)
    laws = {n: shown_law(noise, n, m.threshold) for n in range(4)}
    loss = m.loss(neighbours="replace")
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(2), Fraction(5)):
        found = [
            hockey_stick(together((laws[a + 1], laws[b])), together((laws[a], laws[b + 1])), epsilon)
            for a, b in product((0, 1, 2), repeat=2)
        ]
        assert max(found) <= loss.delta(epsilon) + 1e-6
    assert float(max(found)) == pytest.approx(float(m.escape()), rel=0.3)
    delta = 2 * m.escape()
    promise = m.guarantee(neighbours="replace", **({} if isinstance(m, LaplaceKeys) else {"delta": delta}))
    assert loss.satisfies(*promise.figures())
    assert GaussianKeys(4, 9, 2).approximate_zcdp(neighbours="replace")[0] == ZCDP(Fraction(1, 2))


def test_loss_is_that_of_an_escape_and_the_noise() -> None:
    pair = _EscapePair(LaplacePair(Fraction(1)), Fraction(1, 10))
    whole, q = pair.above(Fraction(-2))
    assert [whole, q] == [1, Fraction(9, 10)]
    assert list(pair.above(Fraction(1))) == [Fraction(1, 10), 0]
    with pytest.raises(Unsupported, match="group"):
        pair.group(2)
    m = GaussianKeys(4, 12, 3)
    noise = Gaussian(4).loss(neighbours="add-remove")
    assert GaussianKeys(4, 12).loss().delta(1) == pytest.approx(
        float(GaussianKeys(4, 12).escape()) + (1 - float(GaussianKeys(4, 12).escape())) * noise.delta(1)
    )
    assert m.loss().epsilon(0.5 * float(m.escape())) == math.inf
    assert m.loss().max_divergence == math.inf


def test_calibrate_to_rho_and_delta() -> None:
    m = GaussianKeys.calibrate(rho=0.1, delta=1e-6, keys_per_unit=5)
    assert m.variance == 25
    rho, delta = m.approximate_zcdp()
    assert rho == ZCDP(0.1)
    assert delta == m.escape() <= Fraction(1, 10**6) < GaussianKeys(25, m.threshold - 1, 5).escape()


def noisy_findings(m: Any, right: Any) -> list[Finding]:
    counts, keys = counts_for(8)
    found = m.release(counts, keys=keys)
    shown, noisy = np.array(list(found)), np.array(list(found.values()))
    noise = noise_law(right)
    chances = [shown_chance(noise, n, right.threshold) for n in range(8)]
    of_five = np.asarray(noisy)[np.asarray(shown) % 8 == 5]
    law = shown_law(noise, 5, right.threshold)
    values = sorted(value for value in law if value is not None)
    seen = [int((of_five == value).sum()) for value in values]
    total = 1 - float(law[None])
    return [
        *shown_findings(shown, 8, chances),
        chi_square("noisy counts", seen, [float(law[value]) / total for value in values]),
    ]


@pytest.mark.parametrize("m", NOISY, ids=str)
def test_noisy_release(m: Any) -> None:
    assert_passes(*noisy_findings(m, m))
    width = m.scale if isinstance(m, LaplaceKeys) else m.variance
    for wrong in (
        type(m)(width, m.threshold - 1, m.keys_per_unit),
        type(m)(width, m.threshold + 1, m.keys_per_unit),
        type(m)(width * Fraction(9, 10), m.threshold, m.keys_per_unit),
    ):
        assert judge(noisy_findings(wrong, m))


def test_hidden_counts_leave_no_trace() -> None:
    """Noise far below zero may not fit 64 bits: that is hidden, and must not show by the type of others."""
    m = LaplaceKeys(Fraction(2**62), 5)
    for _ in range(50):
        shown = m.release([1] * 8, keys=range(8))
        assert {type(count) for count in shown.values()} <= {int}


def test_a_threshold_for_noise_above_zero_keys_is_a_leak() -> None:
    """What many programs do: noise as if for pure epsilon, and a threshold of 0. A unit's key then shows."""
    assert LaplaceKeys(1, 1).escape() > Fraction(1, 4)
    right = LaplaceKeys.calibrate(epsilon=1, delta=1e-9)
    assert right.threshold > 20


def test_shown_counts_are_biased_and_counts_drawn_again_are_not() -> None:
    """DESIGN's law 7: keys are selected on one noisy count and reported with another."""
    m = LaplaceKeys(2, 10)
    counts, keys = np.full(MANY, 9), np.arange(MANY)
    found = m.release(counts, keys=keys)
    shown, noisy = np.array(list(found)), np.array(list(found.values()))
    assert noisy.mean() > 10.9
    again = Laplace(2).release(counts[shown])
    # The noise has a variance of at most 2 scale**2: by Chebyshev this fails less than once in a million.
    assert abs(again.mean() - 9) < 1000 * math.sqrt(8 / shown.size)
    assert abs(again.mean() - 9) < 0.2


def test_expected_error_is_that_of_the_noise() -> None:
    assert LaplaceKeys(10, 5).expected_error() == LaplaceKeys(10, 5).noise.expected_error()
    assert GaussianKeys(100, 5).expected_error() > 7
