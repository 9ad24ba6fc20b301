"""Laplace noise keeps what it promises, is as large as it says, and is no larger than it has to be."""

import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import DiscreetError, InvalidInput, NotPrivateWarning
from discreet.mechanisms.answers import read_answers, to_steps
from discreet.mechanisms.laplace import Laplace, steps_moved
from discreet.mechanisms.sensitivity import Sensitivity
from discreet.noise import NotPrivate, NotPrivateArray
from discreet.privacy import GDP, ZCDP, ApproxDP, Neighbours, PrivacyLoss, PureDP
from tests.noise.exact import Law, findings
from tests.privacy.truths import mp, mpf, real
from tests.statistics import assert_passes, at_most, judge

MANY = 1 << 20

# --- the promise --------------------------------------------------------------------------------------


def hockey_stick_of_product(rate: F, shifts: list[int], epsilon: F) -> mpf:
    """The definition, summed over a box outside of which the noise has less than 1e-20 of its mass."""
    q, reach = mp.exp(-real(rate)), math.ceil(50 / rate)
    law: dict[int, mpf] = {0: mpf(1)}  # the loss, in units of the rate: mass under P
    mass = [(1 - q) / (1 + q) * q ** abs(x) for x in range(-reach, reach + 1)]
    for shift in shifts:
        further: dict[int, mpf] = {}
        for x in range(-reach, reach + 1):
            loss = abs(x - shift) - abs(x)
            for before, chance in law.items():
                further[before + loss] = further.get(before + loss, mpf(0)) + chance * mass[x + reach]
        law = further
    return mp.fsum(
        chance * (1 - mp.exp(real(epsilon - rate * loss)))
        for loss, chance in law.items()
        if rate * loss > epsilon
    )


@pytest.mark.parametrize("shifts", [[3], [1, 2], [1, 1, 1], [-2, 1]], ids=str)
@pytest.mark.parametrize("rate", [F(1, 2), F(1, 5), F(2)], ids=str)
def test_loss_covers_every_division_of_the_movement(rate: F, shifts: list[int]) -> None:
    """Claim of `loss`: one answer that moves as far as all together is the worst; and it is attained."""
    loss = Laplace(1 / rate).loss(3)
    for eighths in range(-8, 25):
        epsilon = F(eighths, 8) * rate
        exactly = hockey_stick_of_product(rate, shifts, epsilon)
        bounds = loss.delta_bounds(epsilon)
        assert exactly <= bounds.upper + mpf(10) ** -15
        if len(shifts) == 1:
            assert exactly >= bounds.lower - mpf(10) ** -15


def test_the_l2_norm_is_not_enough() -> None:
    """Planted: counting the movement of three answers as sqrt(3) promises what does not hold."""
    rate, epsilon = F(1, 2), F(9, 10)
    assert hockey_stick_of_product(rate, [1, 1, 1], epsilon) > Laplace(2).loss(1).delta(epsilon) == 0


def test_guarantee_and_loss_agree() -> None:
    for m, sensitivity in (
        (Laplace(10), 1),
        (Laplace(F(7, 3)), 5),
        (Laplace(10), Sensitivity.counts(4)),
        (Laplace(1, grid=0.01), 0.5),
        (Laplace(1, grid=F(1, 3), size=4), Sensitivity.sums([(0, 1)] * 4)),
    ):
        loss = m.loss(sensitivity)
        exactly = m.guarantee(sensitivity).epsilon
        assert F(repr(loss.max_divergence_bounds.lower)) <= exactly <= F(repr(loss.max_divergence))


def test_neighbours_are_those_of_the_sensitivity() -> None:
    replace = Sensitivity.histogram(3, neighbours="replace")
    assert Laplace(2).loss(replace).neighbours == Neighbours("replace")
    assert Laplace(2).loss(2, neighbours="replace").neighbours == Neighbours("replace")
    assert Laplace(2).loss(1).neighbours == Neighbours("add-remove")
    with pytest.raises(InvalidInput, match="stated under"):
        Laplace(2).loss(replace, neighbours="add-remove")


# --- rounding to a grid -------------------------------------------------------------------------------

Pairs = st.lists(st.tuples(st.floats(-50, 50), st.floats(-4, 4)), min_size=1, max_size=5)


@given(Pairs, st.sampled_from([F(1), F(1, 2), F(1, 10), F(3, 7)]))
def test_steps_moved(pairs: list[tuple[float, float]], grid: F) -> None:
    """Claim: real answers that differ by at most l1 + grid move by at most this once they are rounded."""
    here, there = np.array([a for a, _ in pairs]), np.array([a + d for a, d in pairs])
    apart = sum((abs(F(a) - F(b)) for a, b in zip(here.tolist(), there.tolist(), strict=True)), F(0))
    rounded = [to_steps(read_answers(values), grid) for values in (here, there)]
    moved = int(np.abs(rounded[0] - rounded[1]).sum())
    l1 = apart - grid if apart > grid else apart
    if l1:
        assert moved <= steps_moved(l1, grid, len(pairs))


def test_steps_moved_without_room_for_rounding_would_be_too_few() -> None:
    """Planted: ceil(l1 / grid) alone. Two answers that move by a hair each cross two ties."""
    grid, l1 = F(1), F(1, 50)
    here, there = (to_steps(read_answers([x, x]), grid) for x in (0.495, 0.505))
    assert int(np.abs(here - there).sum()) == 2 > math.ceil(l1 / grid)
    assert steps_moved(l1, grid, 2) >= 2


def test_a_floats_own_rounding_is_covered() -> None:
    """0.15 and 0.25 are 0.1 apart as decimals, a little more as stored, and two steps of 0.1 once rounded."""
    here, there = (int(to_steps(read_answers(x), F(1, 10))[()]) for x in (0.15, 0.25))
    assert abs(here - there) == 2 > F(1, 10) / F(1, 10)
    assert steps_moved(0.1, F(1, 10), None) == 2


# --- release ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [F(1, 2), F(10), F(10**6, 7)], ids=str)
def test_release_adds_noise_of_this_law(scale: F) -> None:
    answers = np.arange(MANY) * 1000
    assert_passes(*findings(Laplace(scale).release(answers) - answers, Law.laplace(scale)))


def test_release_on_a_grid_adds_noise_of_this_law() -> None:
    m, answers = Laplace(3, grid=F(1, 4), size=MANY), np.arange(MANY) / 8
    steps = (m.release(answers) - np.floor(answers * 4 + 0.5) / 4) * 4
    assert (steps == np.rint(steps)).all()
    assert_passes(*findings(steps.astype(np.int64), Law.laplace(12)))


def test_planted_errors_of_release_are_caught() -> None:
    answers = np.arange(MANY)
    twice = Laplace(10).release(answers // 2 * 2) // 2 * 2 - answers // 2 * 2
    off_by_one_percent = Laplace(F(1010, 100)).release(answers) - answers
    forgotten_grid = Laplace(10, grid=2).release(6)
    assert judge(findings(twice, Law.laplace(10)))
    assert judge(findings(off_by_one_percent, Law.laplace(10)))
    assert forgotten_grid % 2 == 0


@pytest.mark.parametrize(
    ("m", "answers", "kind"),
    [
        (Laplace(2), 42, int),
        (Laplace(2), -(10**40), int),
        (Laplace(2), np.int32(7), int),
        (Laplace(2, grid=0.5), 42, float),
        (Laplace(2, grid=0.5), np.int64(42), float),
        (Laplace(2, grid=0.5), F(1, 3), F),
        (Laplace(2, grid=0.5), Decimal("0.1"), F),
        (Laplace(2, grid=0.5), 42.3, float),
        (Laplace(2, grid=0.5), np.float32(42.3), float),
        (Laplace(2, grid=0.5), 1e308, float),
        (Laplace(1e308, grid=0.5), 1e308, float),
    ],
    ids=repr,
)
def test_one_answer_comes_back_as_one_number(m: Laplace, answers: Any, kind: type) -> None:
    assert type(m.release(answers)) is kind


@pytest.mark.parametrize(
    ("answers", "dtype"),
    [
        ([1, 2, 3], np.int64),
        (np.ones((2, 3), np.int8), np.int64),
        (np.ones(2, np.uint64) * np.uint64(2**63), object),
        ([10**30, 4], object),
        (range(5), np.int64),
    ],
    ids=repr,
)
def test_several_answers_come_back_as_an_array(answers: Any, dtype: Any) -> None:
    released = Laplace(2).release(answers)
    assert released.shape == np.shape(answers)
    assert released.dtype == dtype or (dtype is object and released.dtype == np.int64)


def test_what_was_drawn_from_a_seeded_source_says_so() -> None:
    with pytest.warns(NotPrivateWarning):
        source = NotPrivate(seed=1)
    assert isinstance(Laplace(2).release([1, 2], source=source), NotPrivateArray)
    assert "NotPrivate" in repr(Laplace(2).release(1, source=source))
    assert "NotPrivate" in repr(Laplace(2, grid=0.5).release(F(1, 2), source=source))


# --- how large the noise is ---------------------------------------------------------------------------


def test_the_figures_of_the_design() -> None:
    m = Laplace.calibrate(epsilon=0.1, sensitivity=1)
    assert m == Laplace(10)
    found = Laplace.solve(sensitivity=1, error=10, failure=1e-5).loss(1).max_divergence
    assert 1.1941 <= found < 1.1942
    fine = Laplace.solve(sensitivity=1, error=10, failure=1e-5, grid=F(1, 2**20)).loss(1).max_divergence
    assert 1.1512 <= fine < 1.15130


@pytest.mark.parametrize(
    "m", [Laplace(10), Laplace(F(1, 3)), Laplace(3, grid=F(1, 8)), Laplace(1, grid=10)], ids=repr
)
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("norm", ["linf", "l1"])
@pytest.mark.parametrize("bound", ["exact", "union"])
def test_error_is_the_least_that_suffices(m: Laplace, size: int, norm: Any, bound: Any) -> None:
    step = m.grid or F(1)
    for confidence in (0.05, 0.5, 0.95, 1 - 1e-12):
        e = m.error(confidence, size=size, norm=norm, bound=bound)
        rounding = 0 if m.grid is None else step / 2 * (size if norm == "l1" else 1)
        steps = round((F(e) - rounding) / step)
        assert F(e) >= steps * step + rounding
        failure = 1 - F(repr(confidence))
        assert m.tail_bounds((steps + 1) * step, size=size, norm=norm, bound=bound).lower <= failure
        if steps:
            assert m.tail_bounds(steps * step, size=size, norm=norm, bound=bound).upper >= failure


def test_tails_against_the_textbook() -> None:
    """Of k answers, the union bound k exp(-t epsilon / (k Delta)) and a gamma law, on a fine grid."""
    epsilon, k, t = 0.5, 8, 1000
    m = Laplace(k / F(epsilon), grid=F(1, 2**30), size=k)
    union = m.tail(t, size=k, norm="l1", bound="union")
    assert union == pytest.approx(k * math.exp(-t * epsilon / k**2), rel=1e-6)
    radius = m.error(1 - 1e-3, size=k, norm="l1", bound="union")
    assert radius == pytest.approx(k * k / epsilon * math.log(k / 1e-3), rel=1e-6)
    exact = m.error(1 - 1e-3, size=k, norm="l1")
    gamma = mp.findroot(
        lambda x: mp.gammainc(k, x * epsilon / k, mp.inf, regularized=True) - mpf(1) / 1000, 300
    )
    assert exact == pytest.approx(float(gamma), rel=1e-6)
    assert exact < radius
    assert m.expected_error() == pytest.approx(k / epsilon, rel=1e-6)


@pytest.mark.parametrize("norm", ["linf", "l1"])
def test_tail_and_error_of_several_hold_in_a_sample(norm: Any) -> None:
    """Exact binomial at one in a million; with one answer's figures taken for five, the same test fails."""
    from tests.statistics import binomial

    m, size, draws = Laplace(4), 5, 200_000
    sizes = np.abs(m.release(np.zeros((draws, size), np.int64)))
    seen = sizes.max(axis=1) if norm == "linf" else sizes.sum(axis=1)
    for t in (10, 20, 40):
        over = int((seen >= t).sum())
        assert_passes(binomial(f"{norm} reaches {t}", over, draws, m.tail(t, size=size, norm=norm)))
        assert judge([binomial("planted", over, draws, m.tail(t, norm=norm))])


def test_error_covers_what_rounding_does_to_real_answers() -> None:
    """On a coarse grid: exact binomial at one in a million; without the half step, it is far too narrow."""
    draws, answer = 100_000, 10.5 - 1e-9
    m = Laplace(0.36, grid=1, size=draws)
    e = m.error(0.95)
    off = np.abs(m.release(np.full(draws, answer)) - answer)
    assert_passes(at_most("outside", int((off > e).sum()), draws, 0.05))
    assert judge([at_most("planted", int((off > e - 0.5).sum()), draws, 0.05)])


# --- how it is chosen ---------------------------------------------------------------------------------


def shrunk(m: Laplace) -> Laplace:
    return Laplace(m.scale * F(999_999, 10**6), grid=m.grid, size=m.size)


PROMISES = [PureDP(0.3), PureDP(7), ApproxDP(1, 1e-6), ApproxDP(0.1, 0.01), ApproxDP(1, 0), ZCDP(0.5), GDP(1)]
SENSITIVITIES: list[Any] = [1, 3, 0.25, 3.7, Sensitivity.counts(5), Sensitivity.mean(0, 5000, 321)]


@pytest.mark.parametrize("promise", PROMISES, ids=repr)
@pytest.mark.parametrize("sensitivity", SENSITIVITIES, ids=repr)
def test_calibrate_keeps_the_promise_with_no_more_noise_than_it_takes(promise: Any, sensitivity: Any) -> None:
    m = Laplace.calibrate(promise, sensitivity=sensitivity)

    def kept(noise: Laplace) -> bool:
        loss = noise.loss(sensitivity)
        if isinstance(promise, ZCDP):
            return loss.rho <= promise.rho
        if isinstance(promise, GDP):
            return bool(PureDP(noise.guarantee(sensitivity).epsilon) <= promise)
        return loss.satisfies(promise.epsilon, getattr(promise, "delta", 0))

    assert kept(m)
    assert not kept(shrunk(m))


def test_calibrate_with_a_delta_costs_less_noise_than_without() -> None:
    assert Laplace.calibrate(epsilon=1, delta=0.1).scale < Laplace.calibrate(epsilon=1).scale == 1


@pytest.mark.parametrize(
    ("size", "norm", "bound"),
    [
        (None, "linf", "exact"),
        (6, "linf", "exact"),
        (6, "l1", "exact"),
        (6, "l1", "union"),
        (6, "linf", "union"),
    ],
)
def test_solve_is_the_most_private_that_is_accurate_enough(size: int | None, norm: Any, bound: Any) -> None:
    for error, failure, grid in ((10, 1e-5, None), (2, 0.4, None), (F(1, 2), 0.01, F(1, 64))):
        m = Laplace.solve(error=error, failure=failure, size=size, norm=norm, bound=bound, grid=grid)
        wide = Laplace(m.scale * F(1_000_001, 10**6), grid=m.grid, size=m.size)
        assert m.tail(error, size=size or 1, norm=norm, bound=bound) <= failure
        assert wide.tail_bounds(error, size=size or 1, norm=norm, bound=bound).lower > failure


# --- bad input ----------------------------------------------------------------------------------------

BAD_NUMBERS: list[Any] = [
    0, -1, math.nan, math.inf, -math.inf, "0.1", None, True, np.float16(1), [1], np.array(1.0), 1j,
    Decimal("NaN"),
]  # fmt: skip


@pytest.mark.parametrize("value", BAD_NUMBERS, ids=repr)
@pytest.mark.parametrize(
    "ask",
    [
        Laplace,
        lambda x: Laplace(1, grid=x) if x is not None else Laplace(None),  # type: ignore[arg-type]
        lambda x: Laplace.calibrate(epsilon=x),
        lambda x: Laplace.calibrate(epsilon=1, sensitivity=x),
        lambda x: Laplace.calibrate(rho=x),
        lambda x: Laplace.solve(error=x, failure=0.1),
        lambda x: Laplace.solve(error=1, failure=x) if x is not True else Laplace(True),
        lambda x: Laplace(1).loss(x),
        lambda x: Laplace(1).guarantee(x),
    ],
)
def test_bad_parameters_are_refused(ask: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(DiscreetError):
        ask(value)


WRONG: dict[str, Callable[[], object]] = {
    "real answers on the integers": lambda: Laplace(1).release(0.5),
    "floats on the integers": lambda: Laplace(1).release(np.ones(3)),
    "several real answers, unannounced": lambda: Laplace(1, grid=0.1).release([0.5, 0.5]),
    "more than announced": lambda: Laplace(1, grid=0.1, size=2).release([0.5, 0.5, 0.5]),
    "more integers than announced": lambda: Laplace(1, size=2).release([1, 2, 3]),
    "two promises": lambda: Laplace.calibrate(epsilon=1, rho=1),
    "no promise": Laplace.calibrate,
    "a delta alone": lambda: Laplace.calibrate(delta=1e-6),
    "delta of one": lambda: Laplace.calibrate(epsilon=1, delta=1),
    "not a promise": lambda: Laplace.calibrate(1),  # type: ignore[arg-type]
    "a promise of nothing": lambda: Laplace.calibrate(PureDP(0)),
    "whole answers that move by half": lambda: Laplace(1).loss(0.5),
    "real sensitivity on the integers": lambda: Laplace(1).loss(Sensitivity.sum(0, 5)),
    "certainty": lambda: Laplace(1).error(1),
    "confidence above one": lambda: Laplace(1).error(1.5),
    "negative t": lambda: Laplace(1).tail(-1),
    "unknown norm": lambda: Laplace(1).tail(1, norm="l2"),  # type: ignore[arg-type]
    "unknown bound": lambda: Laplace(1).tail(1, bound="chernoff"),  # type: ignore[arg-type]
    "nobody": lambda: Laplace(1).tail(1, size=0),
    "half a size": lambda: Laplace(1, size=1.5),  # type: ignore[arg-type]
    "never fails": lambda: Laplace.solve(error=1, failure=0),
    "no source": lambda: Laplace(1).release(1, source=np.random.default_rng()),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("ask", WRONG.values(), ids=WRONG)
def test_wrong_use_is_refused_with_a_reason(ask: Callable[[], object]) -> None:
    with pytest.raises(DiscreetError) as refused:
        ask()
    assert len(str(refused.value)) > 20


def test_values_are_frozen_equal_and_hashable() -> None:
    assert Laplace(0.1) == Laplace(F(1, 10))
    assert len({Laplace(1), Laplace(1.0), Laplace(1, size=2)}) == 2
    with pytest.raises(AttributeError):
        Laplace(1).scale = F(2)  # type: ignore[misc]
    assert repr(Laplace(0.5, grid=0.25, size=3)) == "Laplace(scale=0.5, grid=0.25, size=3)"
    assert isinstance(Laplace(1).loss(), PrivacyLoss)


# --- what a single mistake would pass by ----------------------------------------------------------------


def test_of_a_sensitivity_it_is_the_l1_norm_that_counts() -> None:
    assert Laplace(10).guarantee(Sensitivity.counts(4)).epsilon == F(4, 10)
    assert Laplace.calibrate(epsilon=1, sensitivity=Sensitivity.sums([(0, 1), (-7, 2)])).scale >= 8


@pytest.mark.parametrize("x", [2.4999, 2.5, -2.5, -2.5001, 0.49999999999999994, 1e18, -0.0])
def test_one_answer_is_rounded_as_many_are(x: float) -> None:
    """Noise this narrow is 0 but for e**-1000, so that what is left is the rounding."""
    still, steps = Laplace(F(1, 1000), grid=1), math.floor(F(x) + F(1, 2))
    assert still.release(x) == still.release(np.array([x]))[0] == still.release(F(x)) == steps
    assert still.release(np.float32(2.5)) == 3


def test_a_mechanism_is_pickled_without_its_tables() -> None:
    m = Laplace(10)
    m.release(1)
    assert len(pickle.dumps(m)) < 1000
    assert pickle.loads(pickle.dumps(m)) == m


@pytest.mark.parametrize("delta", [False, "", "0", [], math.nan])
def test_an_odd_delta_is_refused_and_not_taken_for_none(delta: Any) -> None:
    with pytest.raises(InvalidInput):
        Laplace.calibrate(epsilon=1, delta=delta)
    assert Laplace.calibrate(epsilon=1, delta=0) == Laplace(1)


def test_a_frame_released_column_by_column_is_rounded_where_it_stands() -> None:
    """Two neighbours a hundredth apart, in an array that is laid out by columns, stay a hundredth apart."""
    m = Laplace(F(1, 1000), grid=0.1, size=4)
    here = np.zeros((2, 2))
    here[0, 1] = 123.45
    there = here + np.array([[0, 0.01], [0, 0]])
    assert np.abs(m.release(here.T) - m.release(there.T)).max() < 0.2
    assert (m.release(here.T) == m.release(here).T).all()
