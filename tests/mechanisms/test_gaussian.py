"""Gaussian noise keeps what it promises, for one answer exactly and for several by a certified margin."""

import math
from collections.abc import Callable
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import DiscreetError, InvalidInput, Unsupported
from discreet.mechanisms.answers import read_answers, to_steps
from discreet.mechanisms.gaussian import Gaussian, _promised_mu, gaussian_promise, squared_steps
from discreet.mechanisms.sensitivity import Sensitivity
from discreet.privacy import GDP, ZCDP, ApproxDP, PrivacyLoss, PureDP
from discreet.privacy.reals import precision
from tests.noise.exact import Law, findings
from tests.privacy.truths import mp, mpf, real
from tests.statistics import assert_passes, judge

MANY = 1 << 20


def masses(variance: F) -> tuple[int, list[mpf]]:
    reach = math.ceil(11 * math.sqrt(variance)) + 3
    weights = [mp.exp(-real(F(x * x) / (2 * variance))) for x in range(-reach, reach + 1)]
    total = mp.fsum(weights)
    return reach, [weight / total for weight in weights]


def hockey_stick_of_product(variance: F, shifts: list[int], epsilon: F) -> mpf:
    """The definition: the loss of each shift is (s**2 - 2 s x) / (2 variance), a function of s x alone."""
    reach, mass = masses(variance)
    law: dict[int, mpf] = {0: mpf(1)}  # the sum of s x: mass under P
    for shift in shifts:
        further: dict[int, mpf] = {}
        for x in range(-reach, reach + 1):
            for before, chance in law.items():
                at = before + shift * x
                further[at] = further.get(at, mpf(0)) + chance * mass[x + reach]
        law = further
    square = sum(s * s for s in shifts)
    return mp.fsum(
        chance * (1 - mp.exp(real(epsilon - loss)))
        for at, chance in law.items()
        if (loss := F(square - 2 * at) / (2 * variance)) > epsilon
    )


def stated(shifts: list[int]) -> Sensitivity:
    sizes = [abs(shift) for shift in shifts]
    square = sum(size * size for size in sizes)
    return Sensitivity(l1=sum(sizes), l2_squared=square, linf=max(sizes), size=len(sizes), whole=True)


@pytest.mark.parametrize("variance", [F(1), F(3, 2), F(3), F(10)], ids=str)
@pytest.mark.parametrize("shifts", [[1, 1], [2], [1, 1, 1, 1], [1, -2]], ids=str)
def test_gaussian_promise_covers_every_division_of_the_movement(variance: F, shifts: list[int]) -> None:
    """Claim: noise on whole answers that move by these shifts is covered by the Gaussian promised."""
    square = F(sum(s * s for s in shifts))
    promise = gaussian_promise(variance, square, len(shifts))
    loss = Gaussian(variance).loss(stated(shifts))
    assert F(promise.mu) ** 2 > square / variance
    for quarters in range(0, 24):
        epsilon = F(quarters, 4)
        exactly = hockey_stick_of_product(variance, shifts, epsilon)
        assert exactly <= mpf(promise.loss().delta(epsilon)) * (1 + mpf(10) ** -12) + mpf(10) ** -20
        assert promise.loss().delta(epsilon) <= loss.delta(epsilon) * (1 + 1e-9)


def test_continuous_noise_of_the_same_variance_would_promise_too_much() -> None:
    """Planted: mu = sqrt(square / variance), with nothing taken off for the lattice, is not kept."""
    variance, shifts = F(1, 2), [1, 1]
    naive = GDP(2).loss()  # the square root of 2 / variance
    points = [F(eighths, 8) for eighths in range(80)]
    over = [hockey_stick_of_product(variance, shifts, at) - mpf(naive.delta(at)) for at in points]
    assert max(over) > 1e-3


@pytest.mark.parametrize("smoothing", [F(1, 4), F(1, 2), F(1)], ids=str)
def test_noise_is_a_rounded_gaussian_but_for_the_factor_claimed(smoothing: F) -> None:
    """The lemma under `gaussian_promise`, by quadrature: the ratio to randomised rounding."""
    variance, reach = F(2), 12
    first = mp.exp(-2 * mp.pi**2 * real(smoothing))
    eta = 2 * first / (1 - first)
    s, r = real(variance - smoothing), real(smoothing)

    def lattice(y: mpf) -> mpf:
        return mp.fsum(mp.exp(-((n - y) ** 2) / (2 * r)) for n in range(-reach, reach + 1))

    def rounded(w: int) -> mpf:
        def integrand(y: mpf) -> mpf:
            return (
                mp.exp(-(y**2) / (2 * s))
                / mp.sqrt(2 * mp.pi * s)
                * mp.exp(-((w - y) ** 2) / (2 * r))
                / lattice(y)
            )

        return mp.quad(integrand, [w - 8, w / 2, w + 8])

    with mp.workdps(20):
        far, mass = masses(variance)
        for w in (0, 1, 2, 5):
            ratio = mass[w + far] / rounded(w)
            assert (1 - eta) / (1 + eta) <= ratio <= (1 + eta) / (1 - eta)


def test_loss_of_one_answer_is_exact() -> None:
    for variance, shift in ((F(2), 1), (F(5, 3), 3), (F(1, 3), 1)):
        loss = Gaussian(variance, size=1).loss(shift)
        for epsilon in (F(0), F(1, 2), F(3)):
            exactly, bounds = hockey_stick_of_product(variance, [shift], epsilon), loss.delta_bounds(epsilon)
            assert bounds.lower - mpf(10) ** -20 <= exactly <= bounds.upper + mpf(10) ** -20


def test_one_cell_of_a_histogram_moves_alone_and_exactly() -> None:
    """Under add-remove: no continuous noise is needed to bound it."""
    m = Gaussian(F(1, 5))
    assert m.loss(Sensitivity.histogram(1000)) == PrivacyLoss.discrete_gaussian(variance=F(1, 5))
    with pytest.raises(Unsupported, match="zero-concentrated"):
        m.loss(Sensitivity.histogram(1000, neighbours="replace"))
    assert m.guarantee(Sensitivity.histogram(1000, neighbours="replace")) == ZCDP(5)


@pytest.mark.parametrize("variance", [F(1, 2), F(1), F(7, 2)], ids=str)
@pytest.mark.parametrize("shifts", [[1], [1, 1], [2, 1]], ids=str)
def test_guarantee(variance: F, shifts: list[int]) -> None:
    """Claim: rho = l2**2 / (2 variance) bounds every Renyi divergence over alpha, and no less does."""
    square = sum(s * s for s in shifts)
    rho = F(square) / (2 * variance)
    assert Gaussian(variance).guarantee(stated(shifts)) == ZCDP(rho)
    reach, mass = masses(variance)
    for alpha in (F(11, 10), F(2), F(5)):
        total = mpf(0)
        for s in shifts:
            moment = mp.fsum(
                mass[x + reach] ** real(alpha) * mass[x - s + reach] ** (1 - real(alpha))
                for x in range(s - reach, reach + 1)
            )
            total += mp.log(moment) / real(alpha - 1)
        assert total <= real(rho * alpha) * (1 + mpf(10) ** -15)
    # At alpha = 1 the divergence is rho itself, the mean of the loss: no less would do.
    mean = mp.fsum(
        mass[x + reach] * real(F(s * s - 2 * s * x) / (2 * variance))
        for s in shifts
        for x in range(-reach, reach + 1)
    )
    assert abs(mean - real(rho)) < mpf(10) ** -15


# --- rounding -----------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.floats(-50, 50), st.floats(-4, 4)), min_size=1, max_size=5),
    st.sampled_from([F(1), F(1, 2), F(1, 10), F(3, 7)]),
)
def test_squared_steps(pairs: list[tuple[float, float]], grid: F) -> None:
    """Claim: real answers that differ by at most l2 + grid move by at most this once they are rounded."""
    here, there = np.array([a for a, _ in pairs]), np.array([a + d for a, d in pairs])
    square = sum(((F(a) - F(b)) ** 2 for a, b in zip(here.tolist(), there.tolist(), strict=True)), F(0))
    rounded = [to_steps(read_answers(values), grid) for values in (here, there)]
    moved = int(((rounded[0] - rounded[1]) ** 2).sum())
    root = F(math.isqrt(math.floor(square * 10**12)), 10**6)
    l2 = root - grid if root > grid else root
    if l2:
        assert moved <= squared_steps(l2, grid, len(pairs)) * (1 + F(1, 10**5))


def test_squared_steps_without_room_for_rounding_would_be_too_few() -> None:
    grid = F(1)
    here, there = (to_steps(read_answers([x] * 9), grid) for x in (0.495, 0.505))
    assert int(((here - there) ** 2).sum()) == 9 > 1
    assert squared_steps(F(3, 100), grid, 9) >= 9


# --- release, error, choice ---------------------------------------------------------------------------


@pytest.mark.parametrize("variance", [F(1, 2), F(100), F(10**9, 7)], ids=str)
def test_release_adds_noise_of_this_law(variance: F) -> None:
    answers = np.arange(MANY) * 1000
    assert_passes(*findings(Gaussian(variance).release(answers) - answers, Law.gaussian(variance)))


def test_release_on_a_grid_and_planted_errors() -> None:
    m, answers = Gaussian(sigma=3, grid=F(1, 4), size=MANY), np.arange(MANY) / 8
    steps = ((m.release(answers) - np.floor(answers * 4 + 0.5) / 4) * 4).astype(np.int64)
    assert_passes(*findings(steps, Law.gaussian(144)))
    assert judge(findings(steps, Law.gaussian(F(146))))
    assert judge(findings(np.abs(steps), Law.gaussian(144)))


def test_sigma_and_variance_say_the_same() -> None:
    assert Gaussian(sigma=0.5) == Gaussian(F(1, 4)) == Gaussian(variance=0.25)
    assert Gaussian(2).sigma >= math.sqrt(2)
    assert repr(Gaussian(2, grid=0.5, size=3)) == "Gaussian(variance=2, grid=0.5, size=3)"
    for wrong in ({}, {"variance": 1, "sigma": 1}):
        with pytest.raises(InvalidInput, match="exactly one"):
            Gaussian(**wrong)


@pytest.mark.parametrize("m", [Gaussian(100), Gaussian(F(1, 3)), Gaussian(9, grid=F(1, 8))], ids=repr)
@pytest.mark.parametrize("size", [1, 5])
def test_error_is_the_least_that_suffices(m: Gaussian, size: int) -> None:
    step = m.grid or F(1)
    for confidence in (0.5, 0.95, 1 - 1e-12):
        e = m.error(confidence, size=size)
        steps = round((F(e) - (0 if m.grid is None else step / 2)) / step)
        failure = 1 - F(repr(confidence))
        assert m.tail_bounds((steps + 1) * step, size=size).lower <= failure
        if steps:
            assert m.tail_bounds(steps * step, size=size).upper >= failure
    assert m.tail(e, size=7, norm="l1", bound="union") <= 1


PROMISES = [ApproxDP(1, 1e-6), ApproxDP(0.1, 1e-10), ApproxDP(5, 0.01), ZCDP(0.5), GDP(0.7)]
SENSITIVITIES: list[Any] = [1, 3, 0.25, Sensitivity.counts(5), Sensitivity.sums([(0, 1), (-7, 100)])]


@pytest.mark.parametrize("promise", PROMISES, ids=repr)
@pytest.mark.parametrize("sensitivity", SENSITIVITIES, ids=repr)
def test_calibrate_keeps_the_promise_with_no_more_noise_than_it_takes(promise: Any, sensitivity: Any) -> None:
    m = Gaussian.calibrate(promise, sensitivity=sensitivity)

    def kept(noise: Gaussian) -> bool:
        if isinstance(promise, ZCDP):
            return noise.guarantee(sensitivity).rho <= promise.rho
        if isinstance(promise, GDP):
            square = squared_steps(sensitivity, noise.grid, noise.size)
            steps = noise.variance / (noise.grid or 1) ** 2
            return gaussian_promise(steps, square, noise._most_moved(square)).mu <= promise.mu
        return noise.loss(sensitivity).satisfies(promise.epsilon, promise.delta)

    assert kept(m)
    assert not kept(Gaussian(m.variance * F(9_999, 10**4), grid=m.grid, size=m.size))


def test_calibrate_is_close_to_the_analytic_gaussian() -> None:
    """Continuous noise needs sigma 4.2247 for (1, 1e-6) at sensitivity 1 (Balle and Wang 2018)."""
    low, high = F(4), F(5)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if PrivacyLoss.gaussian(sigma=middle).delta(1) <= 1e-6 else (middle, high)
    analytic, five = float(high), Sensitivity.counts(10)
    one = Gaussian.calibrate(epsilon=1, delta=1e-6)
    many = Gaussian.calibrate(epsilon=1, delta=1e-6, sensitivity=five)
    fine = Gaussian.calibrate(epsilon=1, delta=1e-6, sensitivity=five, grid=F(1, 1 << 14))
    assert abs(one.sigma / analytic - 1) < 0.01
    assert 1 < many.sigma / (analytic * math.sqrt(10)) < 1.01
    assert 1 < fine.sigma / (analytic * math.sqrt(10)) < 1.001


def test_solve() -> None:
    m = Gaussian.solve(error=10, failure=1e-5)
    assert m.tail(10) <= 1e-5
    assert Gaussian(m.variance * F(1_000_001, 10**6)).tail_bounds(10).lower > 1e-5
    several = Gaussian.solve(error=10, failure=1e-5, size=100, sensitivity=Sensitivity.counts(100))
    assert several.tail(10, size=100) <= 1e-5
    assert several.variance < m.variance


BAD: dict[str, Callable[[], object]] = {
    "pure": lambda: Gaussian.calibrate(epsilon=1),
    "pure promise": lambda: Gaussian.calibrate(PureDP(1)),
    "delta zero": lambda: Gaussian.calibrate(ApproxDP(1, 0)),
    "nothing": Gaussian.calibrate,
    "nan": lambda: Gaussian(float("nan")),
    "zero": lambda: Gaussian(0),
    "negative": lambda: Gaussian(sigma=-1),
    "text": lambda: Gaussian("1"),  # type: ignore[arg-type]
    "float16": lambda: Gaussian(np.float16(1)),
    "real answers": lambda: Gaussian(1).release(0.5),
    "unannounced": lambda: Gaussian(1, grid=1).release([0.5, 1.5]),
    "sum of sizes, exactly": lambda: Gaussian(1).tail(3, size=2, norm="l1"),
    "half a move": lambda: Gaussian(1).loss(0.5),
    "real sensitivity": lambda: Gaussian(1).loss(Sensitivity.sum(0, 5)),
    "certain": lambda: Gaussian(1).error(1),
}


@pytest.mark.parametrize("ask", BAD.values(), ids=BAD)
def test_wrong_use_is_refused_with_a_reason(ask: Callable[[], object]) -> None:
    with pytest.raises(DiscreetError) as refused:
        ask()
    assert len(str(refused.value)) > 15


def test_the_price_of_the_lattice_is_counted_for_every_answer_that_moves() -> None:
    """The formula of the claim, with smoothing so small that its second part is seen."""
    variance, square, smoothing = F(2), F(3), F(1, 4)
    first = mp.exp(-2 * mp.pi**2 * real(smoothing))
    for moved in (1, 2, 50):
        with precision(96):
            found = _promised_mu(variance, square, moved, smoothing)
        eta = 2 * first / (1 - first)
        truth = mp.sqrt(real(square) / real(variance - smoothing)) + 12 * moved * mp.atanh(eta)
        assert abs(mpf(float(found)) - truth) < mpf(10) ** -12


def test_a_sensitivity_of_astronomical_size_is_no_worse_off() -> None:
    for size in (10**34, 10**40):
        several = Gaussian(F(size) ** 2).loss(size).epsilon(1e-6)
        alone = Gaussian(F(size) ** 2, size=1).loss(size).epsilon(1e-6)
        assert several == pytest.approx(alone, rel=1e-6)
