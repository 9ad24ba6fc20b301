"""Claims about what rho implies: valid against every pair that keeps rho, and as good as published bounds."""

import math
import time
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.privacy import conversions
from discreet.privacy.conversions import delta_from_rho, epsilon_from_rho
from discreet.privacy.loss import PrivacyLoss
from discreet.privacy.reals import ball
from tests.privacy.truths import mp, mpf, real

F = Fraction
RHOS = [F(1, 10**20), F(1, 10**8), F(1, 100), F(1, 2), F(10), F(10**6)]
CHANCES = [F(1, 10**300), F(1, 10**30), F(1, 10**6), F(1, 100), F(1, 2)]


def canonne_kamath_steinke(rho: Fraction, delta: Fraction) -> mpf:
    """Proposition 12 minimised over real alpha at 50 digits: the slope of epsilon in alpha has one zero."""
    with mp.workdps(50):
        r, log_delta = real(rho), mp.log(real(delta))
        low, high = mpf(10) ** -60, mpf(10) ** 60
        for _ in range(300):
            gap = mp.sqrt(low * high)
            low, high = (gap, high) if r * gap**2 + log_delta + mp.log1p(gap) < 0 else (low, gap)
        alpha = 1 + low
        return alpha * r + mp.log1p(-1 / alpha) - (log_delta + mp.log(alpha)) / low


@pytest.mark.parametrize("delta", CHANCES, ids=lambda x: f"{float(x):g}")
@pytest.mark.parametrize("rho", RHOS, ids=lambda x: f"{float(x):g}")
def test_epsilon_is_never_above_the_best_of_proposition_12(rho: Fraction, delta: Fraction) -> None:
    found, published = epsilon_from_rho(rho, delta), max(mpf(0), canonne_kamath_steinke(rho, delta))
    assert found <= published * (1 + mpf(10) ** -9)
    if delta <= F(1, 10**30):
        assert found >= published * (1 - mpf(10) ** -9)
    simple = real(rho) + 2 * mp.sqrt(real(rho) * mp.log(1 / real(delta)))
    assert found <= simple


@pytest.mark.parametrize(("rho", "delta", "gain"), [(F(1, 100), F(1, 100), 0.03), (F(1, 10), F(1, 10), 0.1)])
def test_the_second_tangent_gains_percents_where_delta_is_large(
    rho: Fraction, delta: Fraction, gain: float
) -> None:
    assert epsilon_from_rho(rho, delta) < canonne_kamath_steinke(rho, delta) * (1 - mpf(gain))


def exact_at(alpha: mpf, rho: mpf, epsilon: mpf) -> mpf:
    """The most p - e**epsilon q over two-point pairs whose divergence of order alpha is at most alpha rho."""
    moment = mp.exp((alpha - 1) * alpha * rho)

    def p_for(q: mpf) -> mpf:
        low, high = q, mpf(1)
        for _ in range(50):
            p = (low + high) / 2
            kept = p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha) <= moment
            low, high = (p, high) if kept else (low, p)
        return low

    def surplus(log_q: mpf) -> mpf:
        return p_for(mp.exp(log_q)) - mp.exp(epsilon) * mp.exp(log_q)

    low, high = mpf(-60), mpf(0) - mpf(10) ** -9
    for _ in range(70):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if surplus(left) < surplus(right) else (low, right)
    return surplus(low)


@pytest.mark.parametrize(("rho", "epsilon"), [(F(1, 2), F(2)), (F(1, 100), F(1, 10)), (F(1, 10), F(1, 4))])
def test_delta_is_the_best_of_all_single_orders(rho: Fraction, epsilon: Fraction) -> None:
    """Asoodeh et al.'s program, solved by brute force: no order does better, and one does as well."""
    found = mpf(delta_from_rho(rho, epsilon))
    with mp.workdps(16):
        best = min(
            exact_at(1 + mpf(i) / 8 * real(epsilon / rho), real(rho), real(epsilon)) for i in range(1, 8)
        )
    assert found <= best * (1 + mpf(10) ** -9)
    assert found >= best * (1 - mpf(1) / 10)


@settings(max_examples=60)
@given(
    st.fractions(min_value=F(1, 1000), max_value=20, max_denominator=1000),
    st.integers(min_value=-40, max_value=-1),
)
def test_each_direction_undoes_the_other(rho: Fraction, power: int) -> None:
    delta = F(10) ** power
    epsilon = epsilon_from_rho(rho, delta)
    if epsilon > 1e-6:
        assert delta_from_rho(rho, F(repr(epsilon))) == pytest.approx(float(delta), rel=1e-5)


@settings(max_examples=40)
@given(
    st.fractions(min_value=F(1, 10**6), max_value=8, max_denominator=10**6),
    st.sampled_from([F(1, 10**12), F(1, 10**6), F(1, 100), F(1, 5), F(1, 2)]),
)
def test_no_mechanism_of_this_rho_does_worse_than_is_promised(size: Fraction, delta: Fraction) -> None:
    """Gaussian noise, its worst relative on two points, and pure promises, each with rho known exactly."""
    for loss in (
        PrivacyLoss.gaussian(sigma=1 / size),
        PrivacyLoss.pure(size),
        PrivacyLoss.laplace(scale=1 / size),
    ):
        rho = F(repr(loss.rho))
        epsilon = epsilon_from_rho(rho, delta)
        assert loss.epsilon_bounds(delta).lower <= epsilon
        for at in (F(0), size / 2, size):
            assert loss.delta_bounds(at).lower <= delta_from_rho(rho, at)


@settings(max_examples=60, deadline=None)
@given(
    st.fractions(min_value=F(1, 1000), max_value=F(9, 10), max_denominator=1000),
    st.fractions(min_value=F(1, 1000), max_value=F(9, 10), max_denominator=1000),
)
def test_no_two_point_pair_does_worse_than_its_rho_promises(p: Fraction, q: Fraction) -> None:
    loss = PrivacyLoss.finite([p, 1 - p], [q, 1 - q])
    rho = F(repr(loss.rho))
    for delta in (F(1, 1000), F(1, 20), F(1, 3)):
        assert loss.epsilon_bounds(delta).lower <= epsilon_from_rho(rho, delta)
    for epsilon in (F(0), F(1, 4), F(2)):
        assert loss.delta_bounds(epsilon).lower <= delta_from_rho(rho, epsilon)


def test_pinsker_is_met_where_rho_is_small() -> None:
    """At epsilon 0 the distance is at most sqrt(rho / 2), and that is nearly what comes out."""
    for rho in (F(1, 10**20), F(1, 10**8), F(1, 10**4)):
        found, pinsker = delta_from_rho(rho, F(0)), math.sqrt(rho / 2)
        assert pinsker * (1 - 1e-3) <= found <= pinsker * (1 + 1e-3)


def test_ends_are_exact_and_extremes_end_soon() -> None:
    assert epsilon_from_rho(F(0), F(0)) == delta_from_rho(F(0), F(0)) == 0.0
    assert epsilon_from_rho(F(1), F(0)) == math.inf
    started = time.monotonic()
    for rho in (F(1, 10**300), F(1, 10**20), F(10**6), F(10**300), F(10**400)):
        for delta in (F(1, 10**300), F(1, 2), 1 - F(1, 10**17)):
            assert epsilon_from_rho(rho, delta) >= 0
        for epsilon in (F(0), F(1, 10**300), F(1), F(10**300)):
            assert 0 <= delta_from_rho(rho, epsilon) <= 1
    assert time.monotonic() - started < 10


def test_a_wrong_sign_in_the_correction_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """ln(1 - 1/alpha) twice instead of once is below the published bound, which is nearly attained."""

    def wrong(rho: Fraction, delta: Fraction, gap: Fraction) -> object:
        return right(rho, delta, gap) + (ball(gap) / ball(1 + gap)).log()

    right = conversions._plain_epsilon
    monkeypatch.setattr(conversions, "_plain_epsilon", wrong)
    delta = F(1, 10**9)
    assert epsilon_from_rho(F(8), delta) < canonne_kamath_steinke(F(8), delta) * (1 - mpf(10) ** -6)
