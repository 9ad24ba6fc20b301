"""Claims about what rho implies: valid against every pair that keeps rho, and as good as published bounds."""

import math
import time
from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.privacy import conversions
from discreet.privacy.conversions import delta_from_rho, epsilon_from_rho
from discreet.privacy.guarantees import ZCDP, ApproxDP
from discreet.privacy.loss import PrivacyLoss
from discreet.privacy.reals import Bounds, ball, enclose
from tests.privacy.truths import Gaussian, Truth, mp, mpf, promise, real

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


@pytest.mark.parametrize(("alpha", "rho", "delta"), [(2, F(1, 10), F(1, 10)), (5, F(1, 2), F(1, 50))])
def test_the_best_tangents_at_an_order_are_the_exact_answer_to_it(
    alpha: int, rho: Fraction, delta: Fraction
) -> None:
    """Up to an order of 1 / delta: the program's optimum is where the tangents touch."""

    def at(y: float) -> float:
        return conversions._certified_epsilon(rho, delta, alpha - 1.0, y)

    _, epsilon = conversions._golden(at, 0.0, 20.0)
    with mp.workdps(16):
        assert exact_at(mpf(alpha), real(rho), mpf(epsilon)) == pytest.approx(float(delta), rel=1e-6)


@pytest.mark.parametrize(("alpha", "rho", "delta"), [(3, F(1, 2), F(1, 2)), (11, F(1, 10), F(1, 5))])
def test_an_order_above_one_over_delta_implies_less_the_higher_it_is(
    alpha: int, rho: Fraction, delta: Fraction
) -> None:
    """Its exact answer is epsilon = alpha rho + ln(1 - delta), which rises with alpha."""
    with mp.workdps(16):
        epsilon = alpha * real(rho) + mp.log(1 - real(delta))
        assert exact_at(mpf(alpha), real(rho), epsilon) == pytest.approx(float(delta), rel=1e-6)
    assert epsilon_from_rho(rho, delta) < epsilon


@pytest.mark.slow
@settings(max_examples=150)
@given(
    st.fractions(min_value=F(1, 1000), max_value=6, max_denominator=1000),
    st.floats(min_value=1e-3, max_value=300),
    st.floats(min_value=-3, max_value=30),
    st.sampled_from([F(1, 10**12), F(1, 10**3), F(1, 10), F(1, 2), F(9, 10)]),
)
def test_any_order_and_any_tangents_are_valid(size: Fraction, gap: float, y: float, delta: Fraction) -> None:
    """Even where they are bad, or promise a negative epsilon; what is touched is met by no known pair."""
    pure = size * F(math.tanh(size / 2)) * (1 + F(1, 10**14))
    pairs: list[tuple[Fraction, Truth]] = [(size**2 / 2, Gaussian(1 / size)), (pure, promise(size))]
    for rho, truth in pairs:
        epsilon = conversions._certified_epsilon(rho, delta, gap, y)
        if epsilon < math.inf:
            assert truth.delta(F(epsilon)) <= real(delta)


def test_a_careless_search_costs_accuracy_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    rho, delta, epsilon = F(1, 2), F(1, 1000), F(2)
    good = epsilon_from_rho(rho, delta), delta_from_rho(rho, epsilon)
    monkeypatch.setattr(conversions, "_root", lambda rising: 0.9)
    for gap, y, log_delta in ((0.5, 0.1, -9.0), (40.0, -2.0, -0.1), (3.0, 5.0, -400.0), (1.3, 0.7, -2.5)):
        monkeypatch.setattr(conversions, "_best_tangents", lambda *_, at=(gap, y, 1.0): at)
        monkeypatch.setattr(conversions, "_falls_to", lambda *_, at=log_delta: at)
        assert epsilon_from_rho(rho, delta) >= good[0]
        assert 1 >= delta_from_rho(rho, epsilon) >= good[1] * (1 - 1e-9)
        assert Gaussian(F(1)).delta(F(epsilon_from_rho(rho, delta))) <= real(delta)
        assert Gaussian(F(1)).delta(epsilon) <= real(F(delta_from_rho(rho, epsilon)))


@settings(max_examples=60)
@given(
    st.fractions(min_value=F(1, 1000), max_value=4, max_denominator=1000),
    st.fractions(min_value=0, max_value=6, max_denominator=1000),
)
def test_a_delta_holds_in_binary_and_as_the_decimal_that_it_is_written_as(
    rho: Fraction, epsilon: Fraction
) -> None:
    """What was certified, by tangents at some delta, is no more than either reading of what is returned."""
    certified: list[Fraction] = []
    certify = conversions._certified_epsilon

    def certifying(rho: Fraction, delta: Fraction, gap: float, y: float) -> float:
        found = certify(rho, delta, gap, y)
        if F(found) <= epsilon:
            certified.append(delta)
        return found

    def enclosing(quantity: Callable[[], arb]) -> Bounds:
        bounds = enclose(quantity)
        plain.append(bounds.upper)  # the first is the bound by one tangent, good in both readings
        return bounds

    plain: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conversions, "_certified_epsilon", certifying)
        patch.setattr(conversions, "enclose", enclosing)
        delta = conversions._delta_at_once(rho, epsilon)
    if delta != min(1.0, plain[0]):
        assert min(F(delta), F(repr(delta))) >= min(certified)


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1, 2), F(1), F(3)], ids=str)
def test_at_epsilon_zero_both_directions_imply_a_little_more(epsilon: Fraction) -> None:
    """Delta = tanh(epsilon / 2) is the exact answer to rho = epsilon tanh(epsilon / 2), and is attained."""
    rho = F(PrivacyLoss.pure(epsilon).rho)
    exact, found = math.tanh(epsilon / 2), delta_from_rho(rho, F(0))
    assert PrivacyLoss.pure(epsilon).delta_bounds(0).lower <= exact * (1 + 1e-15)
    assert exact < found < exact * 1.04


@pytest.mark.parametrize(
    ("rho", "delta"),
    [
        (F(944663, 10**26), 1 - F(481, 10**10)),
        (F(678887, 10**14), 1 - F(33, 5 * 10**12)),
        (F(27783, 2 * 10**33), 1 - F(567, 10**17)),
    ],
    ids=["1e-8", "1e-11", "1e-14"],
)
def test_a_delta_near_one_needs_no_epsilon(rho: Fraction, delta: Fraction) -> None:
    """Nearly everything cancels in the search, which once took the logarithm of a negative number."""
    assert epsilon_from_rho(rho, delta) == 0.0
    log_delta = conversions._log(delta)
    estimates = [
        conversions._tangent_estimate(float(rho), log_delta, 10.0**i, 10.0**j)
        for i in range(-12, 13)
        for j in range(-15, 4)
    ]
    assert math.inf in estimates
    assert not any(math.isnan(estimate) for estimate in estimates)


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


@pytest.mark.parametrize("rho", [F(1, 100), F(1, 10), F(1, 2), F(2), F(10)], ids=str)
def test_a_detour_over_another_promise_promises_no_more(rho: Fraction) -> None:
    """Where delta is large, one order alone said percents less than the promises that follow from it."""
    promised = ZCDP(rho)
    for delta in (0.01, 0.1, 0.3, 0.72, 0.9):
        first = promised.to(ApproxDP, delta=delta)
        for epsilon in (0, F(1, 3), 1):
            via = first.to(ApproxDP, epsilon=epsilon) if first.delta < 1 else first
            at_once = promised.to(ApproxDP, epsilon=epsilon)
            assert at_once.delta <= via.delta * (1 + F(1, 10**4))
    # At epsilon 0 the exact answer to rho = a tanh(a / 2) is tanh(a / 2).
    a = mp.findroot(lambda x: x * mp.tanh(x / 2) - real(rho), 1 + float(rho))
    found = real(promised.to(ApproxDP, epsilon=0).delta)
    assert mp.tanh(a / 2) <= found <= mp.tanh(a / 2) * (1 + mpf(1) / 1000)
