"""Claims about rho of finite pairs: between the bounds, which are a millionth apart."""

import math
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.privacy import concentrated
from discreet.privacy.loss import FiniteLoss, PrivacyLoss
from discreet.privacy.reals import enclose
from tests.privacy.test_finite import Law, loss_of, pairs
from tests.privacy.truths import Finite, mp, mpf, real

F = Fraction


def best_found(loss: FiniteLoss) -> mpf:
    """The greatest quotient on a fine grid of orders, refined: never above the supremum."""
    best = mpf(0)
    with mp.workdps(40):
        for pair in (loss.there, loss.back):
            truth = Finite([p for p, _ in pair.outcomes], [q for _, q in pair.outcomes])

            def quotient(log: mpf, truth: Finite = truth) -> mpf:
                alpha = 1 + mp.exp(log)
                moment = mp.fsum(
                    real(q) * (real(p) / real(q)) ** alpha for p, q in zip(truth.p, truth.q, strict=True) if p
                )
                return mp.log(moment) / (alpha * (alpha - 1))

            points = [mpf(i) / 4 for i in range(-40, 60)]
            values = [quotient(x) for x in points]
            at = points[values.index(max(values))]
            fine = [quotient(at + mpf(i) / 200) for i in range(-60, 61)]
            best = max([best, truth.kl(), *values, *fine])
    return best


@settings(max_examples=60, deadline=None)
@given(pairs(least=1))
def test_rho_is_between_its_bounds(pair: tuple[Law, Law]) -> None:
    loss = loss_of(pair)
    lower, upper = loss.rho_bounds
    found = best_found(loss)
    assert upper >= found
    assert lower <= found * (1 + mpf(10) ** -4)
    assert upper <= lower * (1 + 1.01e-6)


SKEWED = [
    ([F(1, 10**6), 1 - F(1, 10**6)], [F(1, 10**12), 1 - F(1, 10**12)]),
    ([F(9, 10), F(1, 10)], [F(1, 2), F(1, 2)]),
    ([F(1, 2) + F(1, 10**6), F(1, 2) - F(1, 10**6)], [F(1, 2), F(1, 2)]),
    ([F(1, 100), F(98, 100), F(1, 100)], [F(1, 10000), F(99, 100), F(99, 10000)]),
    ([F(1, 2), F(1, 2), F(0)], [F(1, 4), F(1, 2), F(1, 4)]),
    ([F(0), F(1)], [F(1, 3), F(2, 3)]),
]


@pytest.mark.parametrize("pair", SKEWED, ids=range(len(SKEWED)))
def test_rho_of_lopsided_pairs_is_found_wherever_it_is(pair: tuple[Law, Law]) -> None:
    started = time.perf_counter()
    loss = loss_of(pair)
    one_way = loss.there.rho_bounds()
    assert time.perf_counter() - started < 5
    found = best_found(FiniteLoss(loss.there, loss.there))
    assert one_way.upper >= found * (1 - mpf(10) ** -30)
    assert one_way.lower <= found * (1 + mpf(10) ** -4)
    assert one_way.upper <= one_way.lower * (1 + 1.01e-6)


def test_rho_can_be_more_than_the_divergence_at_one() -> None:
    """Otherwise the search could be a constant: rare outcomes of a large loss are worst at a large order."""
    pair = loss_of(SKEWED[0]).there
    assert pair.rho_bounds().lower > 10 * enclose(pair.kl).upper


@given(st.fractions(min_value=F(1, 2), max_value=F(999, 1000), max_denominator=1000))
def test_rho_of_randomised_response_is_its_divergence(truth: Fraction) -> None:
    """Two opposite losses: the proof in docs/proofs/privacy-loss.md, met by the search."""
    loss = PrivacyLoss.randomized_response(truth=truth)
    low, high = loss.kl_bounds
    assert loss.rho_bounds.lower <= high
    assert loss.rho_bounds.upper >= low
    assert loss.rho_bounds.upper <= high * (1 + 1.01e-6)


def test_close_distributions_and_far_ones_end() -> None:
    tiny = F(1, 10**100)
    near = PrivacyLoss.finite([F(1, 2) + tiny, F(1, 2) - tiny], [F(1, 2), F(1, 2)])
    assert near.rho_bounds.lower == pytest.approx(2e-200)
    assert near.rho_bounds.upper == pytest.approx(2e-200, rel=3e-6)
    seldom = PrivacyLoss.finite([2 * tiny**3, 1 - 2 * tiny**3], [tiny**3, 1 - tiny**3])
    assert seldom.rho_bounds.lower <= float(tiny**3 * F(2, 5)) <= seldom.rho_bounds.upper <= math.log(2)
    nearer = PrivacyLoss.finite([F(1, 2) + tiny**2, F(1, 2) - tiny**2], [F(1, 2), F(1, 2)])
    assert nearer.rho_bounds.lower == 0.0
    assert nearer.rho_bounds.upper <= 1e-190
    far = PrivacyLoss.finite([1 - tiny, tiny], [tiny, 1 - tiny])
    assert far.rho_bounds.upper == pytest.approx(float(100 * mp.log(10)), rel=2e-6)


@pytest.mark.parametrize("power", [20, 60, 140, 150, 154, 300, 310, 320])
def test_rho_of_a_rare_outcome_is_between_its_bounds(power: int) -> None:
    """Probability 2 t against t: doubles go under before the search for the best order ends."""
    t = F(1, 10**power)
    loss = PrivacyLoss.finite([2 * t, 1 - 2 * t], [t, 1 - t])
    low, high = loss.rho_bounds
    found = best_found(loss)
    assert low <= found * (1 + 1e-4)  # a grid may miss the best order a little
    assert found * (1 - 1e-9) <= high <= math.log(2) + 1e-15
    assert high <= low * (1 + 1.01e-6) or power > 145


def test_a_search_that_skips_intervals_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With chords only (no remainder) the bound is below the truth somewhere."""

    def chord_only(a: concentrated._Order, b: concentrated._Order, spread: float) -> float:
        return max(a.upper, b.upper)

    monkeypatch.setattr(concentrated, "_most_between", chord_only)
    pair = loss_of(SKEWED[0]).there
    assert pair.rho_bounds().upper < best_found(FiniteLoss(pair, pair)) or math.isinf(pair.rho_bounds().upper)
