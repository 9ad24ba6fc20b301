"""Claims about promises: exact figures, safe conversions, and an order that is one."""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import DiscreetError, InvalidInput, Unsupported
from discreet.privacy.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from discreet.privacy.loss import PrivacyLoss
from tests.privacy.truths import TINY, Gaussian, mp, mpf, promise, real

F = Fraction
SIZES = st.fractions(min_value=0, max_value=12, max_denominator=200)
CHANCES = st.sampled_from([F(0), F(1, 10**300), F(1, 10**9), F(1, 10**3), F(1, 4), F(9, 10)])
PROMISES: st.SearchStrategy[Guarantee] = (
    SIZES.map(PureDP) | SIZES.map(ZCDP) | SIZES.map(GDP) | st.builds(ApproxDP, SIZES, CHANCES)
)


# --- figures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [PureDP, ZCDP, GDP, lambda x: ApproxDP(x, 0), lambda x: ApproxDP(0, x)])
@pytest.mark.parametrize(
    "bad",
    [
        math.nan,
        math.inf,
        -math.inf,
        -1,
        -1e-300,
        "1",
        True,
        False,
        None,
        np.float16(0.5),
        1j,
        Decimal("NaN"),
        10**5000,
    ],
    ids=lambda x: repr(x)[:12] if not isinstance(x, int) else "int",
)
def test_a_figure_that_is_not_a_finite_number_of_at_least_zero_is_refused(
    make: Callable[[object], Guarantee], bad: object
) -> None:
    with pytest.raises(InvalidInput):
        make(bad)


@pytest.mark.parametrize("delta", [1, 1.0, 2, F(3, 2)])
def test_a_delta_of_one_promises_nothing_and_is_refused(delta: float) -> None:
    with pytest.raises(InvalidInput, match="delta must be below 1"):
        ApproxDP(1, delta)
    assert ApproxDP(1, 0.9999999999999999).delta < 1


def test_figures_are_the_decimals_that_were_typed() -> None:
    assert 10 * PureDP(0.1).epsilon == 1
    assert PureDP(0.1) == PureDP(F(1, 10)) == PureDP(Decimal("0.1")) == PureDP(np.float32(0.1))
    assert ApproxDP(0.1, 1e-6).figures() == (F(1, 10), F(1, 10**6))
    assert PureDP(0.1).epsilon + PureDP(0.2).epsilon == PureDP(0.3).epsilon
    assert hash(ZCDP(0.5)) == hash(ZCDP(F(1, 2)))


@given(PROMISES)
def test_a_promise_is_written_so_that_it_reads_back(promised: Guarantee) -> None:
    text = repr(promised).replace("/", "*F(1)/")
    names = {"PureDP": PureDP, "ApproxDP": ApproxDP, "ZCDP": ZCDP, "GDP": GDP, "F": F}
    assert eval(text, names) == promised


def test_a_promise_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        PureDP(1).epsilon = F(2)  # type: ignore[misc]


def test_different_promises_are_different() -> None:
    assert len({PureDP(1), ApproxDP(1, 0), ZCDP(1), GDP(1), PureDP(1.0)}) == 4


# --- the order ------------------------------------------------------------------------------------


@given(PROMISES)
def test_every_promise_implies_itself(promised: Guarantee) -> None:
    assert promised <= promised
    assert promised >= promised
    assert not promised < promised


@settings(max_examples=200)
@given(PROMISES, PROMISES)
def test_promises_that_imply_each_other_are_worth_the_same(a: Guarantee, b: Guarantee) -> None:
    if a <= b and b <= a and type(a) is type(b):
        trivial = isinstance(a, ApproxDP) and a.delta == 0 == b.figures()[-1]
        assert a == b or trivial or isinstance(a, ApproxDP)
        if isinstance(a, (PureDP, ZCDP, GDP)):
            assert a == b
    assert (a < b) == (a <= b and not b <= a)
    assert (a <= b) == (b >= a)
    assert (a < b) == (b > a)


@settings(max_examples=400, deadline=None)
@given(PROMISES, PROMISES, PROMISES)
def test_implication_is_transitive(a: Guarantee, b: Guarantee, c: Guarantee) -> None:
    """But for rounding: from ZCDP to ApproxDP, rhos closer than a search can tell may break it, by a no."""
    if a <= b and b <= c:
        assert a <= c


@settings(max_examples=100, deadline=None)
@given(PROMISES, st.sampled_from([PureDP, ZCDP, GDP]), CHANCES)
def test_a_promise_implies_what_it_is_converted_to(
    promised: Guarantee, target: type[Guarantee], delta: Fraction
) -> None:
    conversions: list[Callable[[], Guarantee]] = [
        lambda: promised.to(target),
        lambda: promised.to(ApproxDP, delta=delta),
        lambda: promised.to(ApproxDP, epsilon=1),
    ]
    for convert in conversions:
        try:
            weaker = convert()
        except Unsupported:
            continue
        assert promised <= weaker


@settings(max_examples=100, deadline=None)
@given(PROMISES, SIZES.filter(bool))
def test_more_of_a_figure_promises_less(promised: Guarantee, more: Fraction) -> None:
    first, *rest = promised.figures()
    weaker = type(promised)(first + more, *rest)  # type: ignore[call-arg]
    assert promised < weaker
    assert not weaker <= promised


def test_the_order_on_examples() -> None:
    assert PureDP(0.5) < PureDP(1)
    assert PureDP(1) < ZCDP(0.5) < ApproxDP(6, 1e-6)
    assert GDP(1) < ZCDP(0.5)
    assert PureDP(1) < GDP(1.24)
    assert not PureDP(1) <= GDP(1.23)
    assert not ZCDP(0.5) <= GDP(1)
    assert not ZCDP(0.001) <= PureDP(1000)
    assert not ApproxDP(0.001, 1e-300) <= ZCDP(1000)
    assert PureDP(F(1, 3)) <= ApproxDP(F(1, 3), 0) <= PureDP(F(1, 3))
    assert ApproxDP(1, 1e-6) < ApproxDP(1, 1e-5)
    assert ApproxDP(1, 1e-6) < ApproxDP(0.5, 0.5)
    assert not ApproxDP(1, 0.1) <= ApproxDP(2, 0.01)
    assert PureDP(0) <= ZCDP(0) <= GDP(0) or PureDP(0) <= GDP(0) <= ZCDP(0)


def around(truth: mpf) -> tuple[Fraction, Fraction]:
    """Two rationals 1e-70 apart with the truth between them: as floats they would be the same."""
    with mp.workdps(150):
        low = F(int(mp.floor(truth * mpf(10) ** 70)), 10**70)
    return low, low + F(1, 10**70)


def least_mu(epsilon: Fraction) -> mpf:
    """The zero of Phi(-mu / 2) - 1 / (1 + e**epsilon), by halving: no inverse function is trusted."""
    corner, low, high = 1 / (1 + mp.exp(real(epsilon))), mpf(0), mpf(100)
    for _ in range(340):
        mu = (low + high) / 2
        low, high = (mu, high) if mp.erfc(mu / mp.sqrt(8)) / 2 > corner else (low, mu)
    return low


@pytest.mark.parametrize("epsilon", [F(1, 10**9), F(1, 3), F(5), F(40)], ids=str)
def test_what_a_pure_promise_implies_is_decided_on_the_exact_figures(epsilon: Fraction) -> None:
    with mp.workdps(130):
        least_rho = real(epsilon) * mp.tanh(real(epsilon) / 2)
        figures: list[tuple[type[ZCDP] | type[GDP], mpf]] = [(ZCDP, least_rho), (GDP, least_mu(epsilon))]
    for kind, least in figures:
        below, above = around(least)
        assert float(below) == float(above)
        for strong in (PureDP(epsilon), ApproxDP(epsilon, 0)):
            assert strong <= kind(above)
            assert strong < kind(above)
            assert not strong <= kind(below)
        assert PureDP(epsilon).to(kind) >= kind(above)


def test_a_gaussian_promise_implies_exactly_half_its_square() -> None:
    mu = F(10**40 + 1, 10**40)
    assert GDP(mu) <= ZCDP(mu**2 / 2)
    assert not GDP(mu) <= ZCDP(mu**2 / 2 - F(1, 10**200))


def test_an_approximate_promise_without_delta_implies_what_a_pure_one_does() -> None:
    for weak in (PureDP(F(1, 3)), ZCDP(F(1, 3)), GDP(1), ApproxDP(F(1, 4), F(1, 10))):
        assert PureDP(F(1, 3)) <= weak
        assert ApproxDP(F(1, 3), 0) <= weak
        assert ApproxDP(F(1, 3), F(1, 10**300)) <= weak or not isinstance(weak, ApproxDP)
    for weak in (PureDP(10**6), ZCDP(10**6), GDP(10**6)):
        assert not ApproxDP(F(1, 3), F(1, 10**300)) <= weak
    assert not ApproxDP(F(1, 3), 0) <= ZCDP(F(1, 20))
    assert ApproxDP(0, 0) <= ZCDP(0)
    assert ApproxDP(0, 0) <= GDP(0)


def test_figures_too_long_to_compare_imply_nothing() -> None:
    long = GDP(1 + F(1, 10**2500))
    with pytest.raises(InvalidInput, match="more digits than anyone needs"):
        long.to(ZCDP)
    assert not long <= ZCDP(1)
    assert long <= GDP(2)


def test_promises_are_compared_with_promises_only() -> None:
    with pytest.raises(TypeError):
        assert PureDP(1) <= 1
    with pytest.raises(TypeError):
        assert PureDP(1) > "x"


# --- conversions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [F(1, 10**9), F(1, 10), F(1), F(10), F(700)], ids=str)
def test_pure_to_zcdp_holds_at_every_order_and_no_less_would(epsilon: Fraction) -> None:
    rho = mpf(PureDP(epsilon).to(ZCDP).rho.numerator) / PureDP(epsilon).to(ZCDP).rho.denominator
    truth = promise(epsilon) if epsilon < 200 else None
    if truth is not None:
        for alpha in (F(1001, 1000), F(3, 2), F(2), F(10), F(100), F(10**4)):
            assert truth.renyi(alpha) <= rho * real(alpha)
        assert truth.renyi(1 + F(1, 10**15)) > rho * (1 - mpf(10) ** -12)
    assert rho == pytest.approx(float(epsilon * F(math.tanh(epsilon / 2))), rel=1e-14)


@pytest.mark.parametrize("epsilon", [F(1, 10**9), F(1, 10), F(1), F(5), F(30)], ids=str)
def test_pure_to_gdp_is_the_least_mu_whose_curve_is_below_the_promise(epsilon: Fraction) -> None:
    mu = PureDP(epsilon).to(GDP).mu
    # The promise's corner: at false-positive rate 1 / (1 + e**eps) it misses as many.
    corner = 1 / (1 + mp.exp(real(epsilon)))

    def missed(size: mpf) -> mpf:
        z = mp.sqrt(2) * mp.erfinv(1 - 2 * corner)
        return mp.erfc((size - z) / mp.sqrt(2)) / 2

    assert missed(real(mu)) <= corner * (1 + mpf(10) ** -60)
    assert missed(real(mu) * (1 - mpf(10) ** -14)) > corner
    noise, worst = PrivacyLoss.gaussian(sigma=1 / mu), PrivacyLoss.pure(epsilon)
    for i in range(1, 20):
        assert noise.tradeoff_bounds(F(i, 20)).lower <= worst.tradeoff_bounds(F(i, 20)).upper


@pytest.mark.parametrize("mu", [F(1, 10**6), F(1, 10), F(1), F(20)], ids=str)
def test_gdp_to_approximate_is_the_exact_curve(mu: Fraction) -> None:
    truth = Gaussian(1 / mu)
    for delta in (F(1, 10**300), F(1, 10**6), F(1, 10)):
        converted = GDP(mu).to(ApproxDP, delta=delta)
        assert truth.delta(converted.epsilon) <= real(delta)
        if converted.epsilon:
            assert truth.delta(converted.epsilon * (1 - F(1, 10**14))) > real(delta)
    for epsilon in (mu / 100, mu / 2, mu**2) if mu < 10 else (mu**2 / 2, mu**2):
        converted = GDP(mu).to(ApproxDP, epsilon=epsilon)
        assert truth.delta(epsilon) <= real(converted.delta) <= truth.delta(epsilon) * (1 + mpf(10) ** -14)
    assert GDP(mu).to(ZCDP).rho == mu**2 / 2


@pytest.mark.parametrize("epsilon", [F(0), F(1, 3), F(2)], ids=str)
def test_a_pure_promise_needs_less_epsilon_where_delta_is_allowed(epsilon: Fraction) -> None:
    for delta in (F(1, 10**9), F(1, 5)):
        converted = PureDP(epsilon).to(ApproxDP, delta=delta)
        assert converted.epsilon <= epsilon
        assert promise(epsilon).delta(converted.epsilon) <= real(delta)
    assert PureDP(epsilon).to(ApproxDP, epsilon=epsilon).delta == 0


def test_an_approximate_promise_keeps_its_figures_where_they_are_asked_for() -> None:
    third = ApproxDP(F(1, 3), F(1, 7))
    assert third.to(ApproxDP, delta=F(1, 7)) is third
    assert third.to(ApproxDP, epsilon=1).delta == F(repr(float(third.loss().delta(1))))
    assert ApproxDP(1, 1e-6).to(ApproxDP, epsilon=1) == ApproxDP(1, 1e-6)
    assert ApproxDP(1, 1e-6).to(ApproxDP, delta=1e-5).epsilon < 1
    with pytest.raises(Unsupported, match="try a larger delta"):
        ApproxDP(1, 1e-6).to(ApproxDP, delta=1e-7)


@pytest.mark.parametrize(("epsilon", "delta"), [(F(0), F(1, 3)), (F(2), F(1, 10**6)), (F(1, 3), F(9, 10))])
def test_approximate_to_approximate_is_the_best_that_the_two_inequalities_allow(
    epsilon: Fraction, delta: Fraction
) -> None:
    """Two linear inequalities in (P(S), Q(S)), for S and what is not S: the corners of what they leave."""
    ratio = mp.exp(real(epsilon))
    for other in (F(0), epsilon / 3, epsilon * 9 / 10):
        given_up = mp.exp(real(other))
        # The lines p = ratio q + delta and 1 - q = ratio (1 - p) + delta meet here; the ends are on an axis.
        q = (1 - real(delta)) / (1 + ratio)
        corners = [(ratio * q + real(delta), q), (real(delta), mpf(0)), (mpf(1), (1 - real(delta)) / ratio)]
        most = ratio - 1 + real(delta) + TINY
        best = max(p - given_up * q for p, q in corners if 0 <= q <= 1 and ratio * p - q <= most)
        found = ApproxDP(epsilon, delta).to(ApproxDP, epsilon=other).delta
        assert best * (1 - mpf(10) ** -80) <= real(found) <= best * (1 + mpf(10) ** -14)


@pytest.mark.parametrize(
    "epsilon", [F(18, 10) * 10**308, F(10**400), F(10**3900)], ids=["1e308", "1e400", "1e3900"]
)
def test_a_figure_beyond_any_float_is_refused_and_never_infinite(epsilon: Fraction) -> None:
    for strong in (PureDP(epsilon), ApproxDP(epsilon, 0)):
        with pytest.raises(Unsupported, match="so large an epsilon is beyond any float"):
            strong.to(ZCDP)
        assert strong <= ZCDP(epsilon * 2)
        assert not strong <= ZCDP(epsilon / 2)
    if epsilon < 10**500:
        # About sqrt(8 epsilon).
        assert 2 * epsilon < PureDP(epsilon).to(GDP).mu ** 2 < 8 * epsilon * (1 + F(1, 10**14))
    else:
        with pytest.raises(Unsupported, match="so large an epsilon is beyond any float"):
            PureDP(epsilon).to(GDP)
    assert PureDP(10**300).to(ZCDP).rho >= 10**300


def test_zcdp_to_gdp_is_refused_because_the_tempting_mu_would_be_false() -> None:
    with pytest.raises(
        Unsupported, match=r"discreet knows of no good GDP promise that follows from ZCDP\("
    ) as said:
        ZCDP(0.5).to(GDP)
    assert "ask for .to(ApproxDP, delta=...) instead" in str(said.value)
    assert ZCDP(0).to(GDP) == GDP(0)
    # Whoever keeps PureDP(1) keeps ZCDP(1/2), but not always GDP(sqrt(2 / 2)).
    assert PureDP(1) <= ZCDP(F(1, 2))
    assert not PureDP(1) <= GDP(1)


def test_what_does_not_follow_is_refused_with_what_to_write_instead() -> None:
    for strong, weak in ((ZCDP(1), PureDP), (GDP(1), PureDP), (ZCDP(1), GDP), (ApproxDP(1, 0.1), ZCDP)):
        with pytest.raises(Unsupported):
            strong.to(weak)
    with pytest.raises(Unsupported, match=r"ask for \.to\(ApproxDP, delta=\.\.\.\)"):
        ZCDP(1).to(GDP)
    for target in (PureDP, ZCDP, GDP):
        with pytest.raises(Unsupported, match="no PureDP, ZCDP or GDP promise follows"):
            ApproxDP(1, 0.1).to(target)
    with pytest.raises(Unsupported, match="larger epsilon"):
        GDP(100).to(ApproxDP, epsilon=0)
    with pytest.raises(Unsupported, match="larger delta"):
        ZCDP(1).to(ApproxDP, delta=0)
    assert ZCDP(0).to(PureDP) == GDP(0).to(PureDP) == PureDP(0)
    assert ApproxDP(1, 0).to(PureDP) == PureDP(1)
    assert ApproxDP(1, 0).to(ZCDP) == PureDP(1).to(ZCDP)


def test_a_conversion_is_asked_for_with_the_right_figures() -> None:
    with pytest.raises(InvalidInput, match="exactly one"):
        PureDP(1).to(ApproxDP)
    with pytest.raises(InvalidInput, match="exactly one"):
        PureDP(1).to(ApproxDP, delta=0.1, epsilon=1)
    with pytest.raises(InvalidInput, match="go with ApproxDP"):
        PureDP(1).to(ZCDP, delta=0.1)
    with pytest.raises(InvalidInput, match="becomes PureDP"):
        PureDP(1).to(float)  # type: ignore[type-var]
    for delta in (1, -0.1, math.nan, "1", True):
        with pytest.raises(InvalidInput):
            ZCDP(1).to(ApproxDP, delta=delta)  # type: ignore[arg-type]


def test_conversions_at_extremes_are_quick_and_of_the_family() -> None:
    started = time.monotonic()
    extremes = [F(0), F(1, 10**300), F(1, 10**20), F(10**6), F(10**12), F(10**300)]
    for kind in (PureDP, ZCDP, GDP):
        for size in extremes:
            for target in (PureDP, ZCDP, GDP):
                with suppress(DiscreetError):
                    assert all(figure >= 0 for figure in kind(size).to(target).figures())
            for delta in (F(0), F(1, 10**300), F(1, 2), 1 - F(1, 10**17)):
                with suppress(DiscreetError):
                    assert kind(size).to(ApproxDP, delta=delta).delta == delta
            for epsilon in extremes:
                with suppress(DiscreetError):
                    assert kind(size).to(ApproxDP, epsilon=epsilon).epsilon == epsilon
    assert time.monotonic() - started < 30


# --- groups ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 7])
def test_groups_are_the_known_multiples(k: int) -> None:
    assert PureDP(0.1).group(k) == PureDP(F(k, 10))
    assert GDP(0.1).group(k) == GDP(F(k, 10))
    assert ZCDP(0.1).group(k) == ZCDP(F(k * k, 10))
    four = ApproxDP(0.5, 1e-9).group(k)
    assert four.epsilon == F(k, 2)
    truth = mpf(10) ** -9 * mp.fsum(mp.exp(mpf(i) / 2) for i in range(k))
    assert truth * (1 - mpf(10) ** -80) <= real(four.delta) <= truth * (1 + mpf(10) ** -14)


@settings(max_examples=60)
@given(SIZES, st.integers(1, 5))
def test_groups_of_groups_promise_as_much_as_groups(size: Fraction, k: int) -> None:
    for kind in (PureDP, ZCDP, GDP):
        assert kind(size).group(2).group(k) == kind(size).group(2 * k)
        assert kind(size) <= kind(size).group(k)


def test_groups_that_are_promised_nothing_are_refused() -> None:
    text = r"ApproxDP\(.*\) is not known to promise 10 units together anything: their delta would reach 1"
    with pytest.raises(Unsupported, match=text):
        ApproxDP(1, 0.1).group(10)
    for k in (0, -1, 1.0, True, "2"):
        with pytest.raises(InvalidInput):
            PureDP(1).group(k)  # type: ignore[arg-type]


# --- cautions -------------------------------------------------------------------------------------


def test_a_delta_near_one_over_n_is_cautioned_about_and_one_far_below_is_not() -> None:
    (caution,) = ApproxDP(1, 1e-4).cautions(10_000)
    assert "delta = 0.0001 is not far below 1/n = 0.0001" in str(caution)
    assert "each of 10,000 units' data in full" in caution.advice
    assert "exposes 1 of them on average" in caution.advice
    assert "Choose delta below 1e-6" in caution.advice
    assert ApproxDP(1, F(1, 10**6)).cautions(10_000) == ()
    assert ApproxDP(1, F(1, 10**6) + F(1, 10**12)).cautions(10_000)
    assert ApproxDP(1, 0).cautions(10**9) == ()
    assert ApproxDP(1, 0.5).cautions(1)


def test_cautions_of_any_size_are_written() -> None:
    assert ApproxDP(1, 0.5).cautions(10**3900)
    assert ApproxDP(1, F(1, 10**3900)).cautions(10**3900)
    for n in (0, -1, 1.5, True, "10"):
        with pytest.raises(InvalidInput):
            ApproxDP(1, 0.5).cautions(n)  # type: ignore[arg-type]
