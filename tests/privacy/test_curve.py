"""Claims about what is read off a pair: the hockey stick's inverse, the trade-off, and their searches."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.privacy import curve
from discreet.privacy.curve import _zero_between
from discreet.privacy.finite import FinitePair
from discreet.privacy.loss import PrivacyLoss
from discreet.privacy.neighbours import ADD_REMOVE
from discreet.privacy.pairs import GaussianPair, LaplacePair, Masses, Pair, PromisePair
from discreet.privacy.reals import Bounds
from tests.privacy.truths import encloses, is_tight, mp, mpf, neyman_pearson, real

F = Fraction
RATES = [F(1, 10**300), F(1, 10**9), F(1, 100), F(1, 20), F(1, 2), F(19, 20), 1 - F(1, 10**9)]


# --- the inverse ----------------------------------------------------------------------------------


def test_delta_zero_asks_for_the_greatest_loss_and_delta_one_for_nothing() -> None:
    assert PrivacyLoss.pure(F(7, 10)).epsilon_bounds(0) == (0.7, 0.7)
    assert PrivacyLoss.laplace(scale=4).epsilon_bounds(0) == (0.25, 0.25)
    assert PrivacyLoss.gaussian(sigma=1).epsilon_bounds(0) == (math.inf, math.inf)
    assert PrivacyLoss.gaussian(sigma=1).epsilon_bounds(1) == (0.0, 0.0)
    assert PrivacyLoss.approx(1, 1).epsilon_bounds(1) == (0.0, 0.0)


def test_a_delta_that_escapes_is_answered_by_the_greatest_finite_loss() -> None:
    loss = PrivacyLoss.approx(2, F(1, 1000))
    assert loss.epsilon_bounds(F(1, 1000)) == (2.0, 2.0)
    assert loss.epsilon_bounds(F(1, 1000) - F(1, 10**50)) == (math.inf, math.inf)
    barely = loss.epsilon_bounds(F(1, 1000) + F(1, 10**12))
    assert 1.99 < barely.lower < barely.upper < 2
    finite = PrivacyLoss.finite([F(1, 4), F(1, 2), F(1, 4), 0], [0, F(1, 4), F(1, 2), F(1, 4)])
    assert encloses(finite.epsilon_bounds(F(1, 4)), mp.log(2))
    assert finite.epsilon_bounds(F(1, 4) - F(1, 10**30)) == (math.inf, math.inf)


def test_epsilon_is_zero_exactly_from_the_statistical_distance_on() -> None:
    loss = PrivacyLoss.randomized_response(truth=F(3, 4))
    assert loss.epsilon_bounds(F(1, 2)) == (0.0, 0.0)
    assert loss.epsilon_bounds(F(1, 2) - F(1, 10**9)).lower > 0
    same = PrivacyLoss.finite([F(1, 3), F(2, 3)], [F(1, 3), F(2, 3)])
    assert same.epsilon_bounds(0) == same.delta_bounds(0) == same.kl_bounds == same.rho_bounds == (0.0, 0.0)
    assert PrivacyLoss.pure(0).epsilon_bounds(F(1, 10**300)) == (0.0, 0.0)


@given(
    st.fractions(min_value=F(1, 10**6), max_value=40, max_denominator=10**6),
    st.fractions(min_value=F(1, 10**30), max_value=1, max_denominator=10**30),
)
def test_epsilon_and_delta_are_inverse_to_each_other(apart: Fraction, delta: Fraction) -> None:
    loss = PrivacyLoss.gaussian(sigma=1 / apart)
    low, high = loss.epsilon_bounds(delta)
    assert loss.delta_bounds(F(high)).lower <= delta
    assert low == 0 or loss.delta_bounds(F(low)).upper >= delta
    assert loss.satisfies(high, delta)
    assert low == 0 or not loss.satisfies(F(low) - F(1, 10**20) * F(low), delta)


@pytest.mark.parametrize("apart", [F(7, 10), F(1, 10), F(1, 3), F(3)])
def test_an_epsilon_just_under_a_rational_one_is_not_rounded_below_itself(apart: Fraction) -> None:
    """The float 0.7 is below 7/10 in binary, so it must not be the upper end there."""
    for loss in (PrivacyLoss.laplace(scale=1 / apart), PrivacyLoss.pure(apart)):
        low, high = loss.epsilon_bounds(F(1, 10**300))
        assert F(low) < apart
        assert F(high) >= apart - F(1, 10**290)
        assert F(repr(high)) >= apart - F(1, 10**290)


def test_decisions_are_exact_where_rounding_would_not_be() -> None:
    pure = PrivacyLoss.pure(F(1, 3))
    assert pure.satisfies(F(1, 3), 0)
    assert not pure.satisfies(F(1, 3) - F(1, 10**100), 0)
    approx = PrivacyLoss.approx(F(1, 3), F(1, 7))
    assert approx.satisfies(F(1, 3), F(1, 7))
    assert not approx.satisfies(F(1, 3), F(1, 7) - F(1, 10**100))
    assert not PrivacyLoss.gaussian(sigma=1).satisfies(10**6, 0)


# --- the search -----------------------------------------------------------------------------------


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_search_ends_at_neighbouring_doubles_around_any_zero(zero: float) -> None:
    # Not at a double, so that it is between two.
    target = F(zero) + F(math.ulp(zero)) / 3

    calls = 0

    def sign(x: Fraction) -> int:
        nonlocal calls
        calls += 1
        return 1 if x < target else -1

    low, high = _zero_between(sign, -math.inf, math.inf)
    assert low == -math.inf or F(low) < target
    assert high == math.inf or F(high) > target
    assert math.nextafter(low, math.inf) == high
    assert calls <= 65


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_search_returns_a_zero_that_is_a_double(zero: float) -> None:
    found = _zero_between(lambda x: (F(zero) > x) - (F(zero) < x), -math.inf, math.inf)
    assert F(found.low) <= F(zero) <= F(found.high)
    assert found.high <= math.nextafter(zero, math.inf)


@given(st.floats(min_value=1e-300, max_value=1e300), st.integers(min_value=0, max_value=10))
def test_a_sign_that_cannot_be_told_leaves_a_bracket_that_holds(zero: float, blur: int) -> None:
    target, width = F(zero), F(math.ulp(zero)) * blur

    def sign(x: Fraction) -> int | None:
        return None if abs(x - target) <= width else 1 if x < target else -1

    low, high = _zero_between(sign, 0.0, math.inf)
    assert F(low) <= target
    assert high == math.inf or F(high) >= target


def test_doubles_are_numbered_in_their_order() -> None:
    ordered = [-math.inf, -1e300, -1.0, -5e-324, 0.0, 5e-324, 1e-10, 1.0, math.inf]
    ranks = [curve._rank(x) for x in ordered]
    assert ranks == sorted(set(ranks))
    assert [curve._double(rank) for rank in ranks] == ordered


# --- the trade-off --------------------------------------------------------------------------------


@pytest.mark.parametrize("fpr", RATES, ids=lambda x: f"{float(x):g}")
@pytest.mark.parametrize("mu", [F(1, 10**6), F(1, 2), F(3), F(20)], ids=str)
def test_the_tradeoff_of_gaussian_noise_is_one_normal_law_behind_another(mu: Fraction, fpr: Fraction) -> None:
    with mp.workdps(400):
        # Phi(Phi^-1(1 - fpr) - mu), the quantile by Newton's method on ln erfc
        q = real(fpr)
        z = mp.sqrt(max(mpf(0), -2 * mp.log(q))) if q < 0.5 else -mp.sqrt(-2 * mp.log(1 - q))
        for _ in range(200):
            tail = mp.erfc(z / mp.sqrt(2)) / 2
            step = (tail - q) / (mp.exp(-z * z / 2) / mp.sqrt(2 * mp.pi))
            z += max(mpf(-1), min(mpf(1), step))
            if abs(step) < mpf(10) ** -380:
                break
        truth = mp.erfc((real(mu) - z) / mp.sqrt(2)) / 2
    bounds = PrivacyLoss.gaussian(sigma=1 / mu).tradeoff_bounds(fpr)
    assert encloses(bounds, truth)
    assert is_tight(bounds, 8)


@pytest.mark.parametrize("fpr", RATES, ids=lambda x: f"{float(x):g}")
@pytest.mark.parametrize("epsilon", [F(1, 10**6), F(1), F(12)], ids=str)
def test_the_tradeoff_of_a_promise_is_its_two_lines(epsilon: Fraction, fpr: Fraction) -> None:
    for delta in (F(0), F(1, 10**6), F(1, 3)):
        x, e, d = real(fpr), mp.exp(real(epsilon)), real(delta)
        truth = max(mpf(0), 1 - d - e * x, (1 - d - x) / e)
        bounds = PrivacyLoss.approx(epsilon, delta).tradeoff_bounds(fpr)
        assert encloses(bounds, truth), (epsilon, delta)
        assert is_tight(bounds, 8)


@pytest.mark.parametrize("fpr", RATES, ids=lambda x: f"{float(x):g}")
def test_the_tradeoff_of_laplace_noise_is_the_best_threshold(fpr: Fraction) -> None:
    """Dong, Roth and Su 2022, section 2: the laws' distribution functions, moved by epsilon."""
    for epsilon in (F(1, 10), F(1), F(7)):
        x, e = real(fpr), mp.exp(real(epsilon))
        if x < 1 / (2 * e):
            truth = 1 - e * x
        elif x <= mpf(1) / 2:
            truth = 1 / (4 * e * x)
        else:
            truth = (1 - x) / e
        bounds = PrivacyLoss.laplace(scale=1 / epsilon).tradeoff_bounds(fpr)
        assert encloses(bounds, truth), epsilon
        assert is_tight(bounds, 8)


@pytest.mark.parametrize("fpr", [F(1, 10**9), F(1, 20), F(1, 3), F(2, 3)], ids=str)
def test_the_tradeoff_of_lattice_noise_is_the_greedy_test(fpr: Fraction) -> None:
    """On so many integers that what is left out is below 1e-60, in rationals."""
    ratio = F(1, 3)
    weights = {x: ratio ** abs(x) for x in range(-160, 170)}
    total = (1 + ratio) / (1 - ratio)
    p = [weights[x] / total for x in range(-160, 160)]
    for shift in (1, 2, 7):
        q = [ratio ** abs(x - shift) / total for x in range(-160, 160)]
        rate = -mp.log(real(ratio))
        with mp.workdps(120):
            rate = mp.log(3)
            rational = F(int(mp.floor(rate * mpf(10) ** 100)), 10**100)
        bounds = PrivacyLoss.discrete_laplace(scale=1 / rational, sensitivity=shift).tradeoff_bounds(fpr)
        assert float(neyman_pearson(p, q, fpr)) == pytest.approx(bounds.lower, rel=1e-14)
        assert is_tight(bounds, 8)


@given(st.fractions(min_value=0, max_value=1), st.fractions(min_value=0, max_value=1))
def test_no_tradeoff_rises(a: Fraction, b: Fraction) -> None:
    low, high = min(a, b), max(a, b)
    for loss in (PrivacyLoss.gaussian(sigma=1), PrivacyLoss.discrete_laplace(scale=2, sensitivity=3)):
        assert loss.tradeoff_bounds(low).upper >= loss.tradeoff_bounds(high).lower


def test_the_ends_of_a_tradeoff_are_exact() -> None:
    for loss in (PrivacyLoss.gaussian(sigma=1), PrivacyLoss.pure(2), PrivacyLoss.laplace(scale=1)):
        assert loss.tradeoff_bounds(0) == (1.0, 1.0)
        assert loss.tradeoff_bounds(1) == (0.0, 0.0)
    assert PrivacyLoss.approx(1, F(1, 4)).tradeoff_bounds(0) == (0.75, 0.75)
    assert PrivacyLoss.pure(0).tradeoff_bounds(F(1, 20)) == (0.95, 0.95)


# --- planted bugs ---------------------------------------------------------------------------------

SKEWED = FinitePair.of([F(1, 2), F(1, 4), F(1, 4), 0], [F(1, 10), F(1, 10), F(7, 10), F(1, 10)])


def test_a_loss_in_one_direction_only_is_caught() -> None:
    """The pair's own direction has a finite loss; the other has none."""
    both, one = PrivacyLoss.of(SKEWED), PrivacyLoss(SKEWED, SKEWED, ADD_REMOVE)
    assert one.max_divergence < math.inf == both.max_divergence
    assert one.delta(3) < both.delta(3)
    assert one.epsilon(0.05) < both.epsilon(0.05)
    p, q = [a for a, _ in SKEWED.outcomes], [b for _, b in SKEWED.outcomes]
    truth = min(neyman_pearson(p, q, F(1, 50)), neyman_pearson(q, p, F(1, 50)))
    assert F(both.tradeoff(F(1, 50))).limit_denominator(10**9) == truth
    assert F(one.tradeoff(F(1, 50))).limit_denominator(10**9) != truth


@dataclass(frozen=True)
class Swapped(Pair):
    """The trade-off of the wrong test: P for the null where it should be Q."""

    pair: FinitePair

    def above(self, epsilon: Fraction) -> Masses:
        p, q = self.pair.above(epsilon)
        return q, p

    def kl(self) -> Fraction:
        return F(0)

    def renyi(self, alpha: Fraction) -> Fraction:
        return F(0)

    def group(self, k: int) -> Pair:
        return self


def test_a_tradeoff_with_the_two_laws_swapped_is_caught() -> None:
    p, q = [a for a, _ in SKEWED.outcomes], [b for _, b in SKEWED.outcomes]
    for fpr in (F(1, 50), F(1, 10), F(3, 10)):
        truth = real(neyman_pearson(p, q, fpr))
        assert encloses(curve.tradeoff_bounds(SKEWED, fpr), truth)
        assert not encloses(curve.tradeoff_bounds(Swapped(SKEWED), fpr), truth)


# --- speed ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "figure",
    [
        lambda loss: loss.epsilon_bounds(F(1, 10**6)),
        lambda loss: loss.epsilon_bounds(F(1, 10**300)),
        lambda loss: loss.delta_bounds(F(1, 2)),
        lambda loss: loss.tradeoff_bounds(F(1, 20)),
        lambda loss: loss.within(F(1, 10**6)),
    ],
    ids=["epsilon", "epsilon far out", "delta", "tradeoff", "within"],
)
def test_a_figure_takes_milliseconds(figure: Callable[[PrivacyLoss], Bounds | float]) -> None:
    """Half a second is allowed, for a busy machine."""
    for pair in (
        GaussianPair(F(1, 2)),
        LaplacePair(F(1, 10)),
        PromisePair(F(1), F(0)),
        PrivacyLoss.discrete_gaussian(variance=63).there,
        PrivacyLoss.discrete_gaussian(variance=10**12).there,
    ):
        started = time.perf_counter()
        figure(PrivacyLoss.of(pair))
        assert time.perf_counter() - started < 0.5, pair
