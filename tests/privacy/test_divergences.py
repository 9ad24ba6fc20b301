"""Claims about divergences between finite laws, each against its definition, and broken copies of them."""

import math
import random
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.numbers import exact
from discreet.privacy import divergences
from discreet.privacy.distributions import Distribution
from discreet.privacy.reals import Bounds, ball, enclose
from tests.privacy.laws import Law, hockey_stick_over_every_event, least_square_of, random_law

HALF = Fraction(1, 2)
LEVELS = [Fraction(0), Fraction(1, 20), Fraction(1, 4), HALF]

_SOURCE = random.Random(20)
PAIRS = [
    (random_law(_SOURCE, k, least), random_law(_SOURCE, k, least)) for k in (2, 3, 4) for least in (0, 1) * 15
]


def claim_no_event_distinguishes_better_than_the_hockey_stick() -> None:
    for p, q in PAIRS:
        for ratio in (Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(4)):
            assert divergences.hockey_stick(p, q, ratio) == hockey_stick_over_every_event(p, q, ratio)
        assert divergences.statistical_distance(p, q) == sum(abs(p[o] - q[o]) for o in range(4)) / 2


def claim_the_least_ratio_is_enough_and_no_smaller_one_is() -> None:
    for p, q in PAIRS:
        for delta in LEVELS:
            ratio = divergences.least_ratio(p, q, delta)
            if ratio is None:
                assert divergences.hockey_stick(p, q, 10**12) > delta
                continue
            assert divergences.hockey_stick(p, q, ratio) <= delta
            smaller = ratio - Fraction(1, 10**12)
            assert ratio == 1 or divergences.hockey_stick(p, q, smaller) > delta


def mpf(number: Fraction) -> mpmath.mpf:
    return mpmath.mpf(number.numerator) / number.denominator


def claim_bounds_hold_the_hockey_stick_at_a_real_epsilon() -> None:
    with mpmath.workdps(50):
        for p, q in PAIRS:
            for epsilon in (Fraction(0), Fraction(1, 10), Fraction(1), Fraction(2)):
                ratio = mpmath.exp(mpf(epsilon))
                true = sum(max(mpf(p[o]) - ratio * mpf(q[o]), 0) for o in range(4))
                lower, upper = divergences.hockey_stick_bounds(p, q, epsilon)
                slack = Fraction(1, 10**45)  # what 50 digits may be off by
                assert mpf(exact(lower, "lower") - slack) <= true <= mpf(exact(upper, "upper") + slack)
                assert upper - lower <= 1e-15 * lower


def claim_no_prior_moves_further_than_the_posterior_shift() -> None:
    for ratio in (Fraction(1), Fraction(11, 10), Fraction(3), Fraction(100), Fraction(10**8)):
        p = Distribution({"o": HALF, "other": HALF})
        q = Distribution({"o": HALF / ratio, "other": 1 - HALF / ratio})
        lower, upper = divergences.posterior_shift_bounds(ratio)
        priors = [Fraction(i, 1000) for i in range(1001)]
        near = Fraction(1 / (1 + math.sqrt(ratio)))  # the worst prior, to 16 digits
        shifts = [divergences.posterior(p, q, "o", prior) - prior for prior in [*priors, near]]
        assert max(map(abs, shifts)) <= upper
        assert shifts[-1] >= lower - 1e-14


# --- simulation ------------------------------------------------------------------------------------

GROUPS = [[random_law(_SOURCE, 2, 1) for _ in range(k)] for k in (1, 2, 3) for _ in range(10)] + [
    # Each of the three bounds is the binding one here: the largest masses, the smallest ones, one outcome.
    [Distribution({o: Fraction(8, 15) if o == x else Fraction(1, 15) for o in range(8)}) for x in range(8)],
    [
        Distribution({0: Fraction(3, 4), 1: Fraction(1, 4)}),
        Distribution({0: Fraction(1, 4), 1: Fraction(3, 4)}),
    ],
    [
        Distribution({0: Fraction(4, 100), 1: Fraction(1, 100), 2: Fraction(95, 100)}),
        Distribution({0: Fraction(1, 100), 1: Fraction(4, 100), 2: Fraction(95, 100)}),
    ],
]


def simulator_within(laws: list[Law], ratio: Fraction) -> Law | None:
    """A simulator within `ratio` of every law, or None: between what it must and may give each outcome."""
    outcomes = {o: None for law in laws for o in law.support}
    must = {o: max(law[o] for law in laws) / ratio for o in outcomes}
    may = {o: min(law[o] for law in laws) * ratio for o in outcomes}
    low, high = sum(must.values()), sum(may.values())
    if not low <= 1 <= high or any(must[o] > may[o] for o in outcomes):
        return None
    share = (1 - low) / (high - low) if high > low else Fraction(0)
    return Distribution({o: must[o] + share * (may[o] - must[o]) for o in outcomes})


def claim_a_simulator_exists_at_the_simulation_epsilon_and_at_none_below() -> None:
    grid = [Distribution({0: Fraction(i, 400), 1: Fraction(400 - i, 400)}) for i in range(1, 400)]
    for laws in GROUPS:
        square = divergences.simulation_square(laws)
        assert square is not None
        above = Fraction(math.sqrt(square)) * (1 + Fraction(1, 10**9))
        simulator = simulator_within(laws, above)
        assert simulator is not None, "the simulation epsilon is too small"
        assert least_square_of(laws, simulator) <= above**2
        if all(len(law.support) == 2 for law in laws):
            best = min(least_square_of(laws, q) for q in grid)
            assert square <= best <= square * Fraction(105, 100), (
                "some simulator does better, or none comes near"
            )


def claim_each_of_the_three_simulation_bounds_is_needed() -> None:
    largest, smallest, one_outcome = GROUPS[-3:]
    assert divergences.simulation_square(largest) == Fraction(64, 15) ** 2
    assert divergences.simulation_square(smallest) == 4
    assert divergences.simulation_square(one_outcome) == 4
    assert divergences.simulation_event(largest, Fraction(64, 15) ** 2) == ()
    assert divergences.simulation_event(smallest, Fraction(4)) == ()
    assert divergences.simulation_event(one_outcome, Fraction(4)) == (0, 1)


def claim_renyi_moments_are_means_of_powers_of_the_likelihood_ratio() -> None:
    for p, q in PAIRS:
        for order in (2, 3, 5):
            if all(q[o] for o in p.support):
                assert divergences.renyi_moment(p, q, order) == sum(
                    q[o] * (p[o] / q[o]) ** order for o in q.support
                )
            else:
                assert divergences.renyi_moment(p, q, order) is None


def claim_events_hold_no_outcome_that_adds_nothing() -> None:
    for p, q in PAIRS:
        assert divergences.distinguishing_event(p, p, Fraction(1)) == ()
        assert divergences.simulation_event([q, q], Fraction(1)) == ()


def claim_bounds_of_a_rational_are_the_float_that_stands_for_it() -> None:
    p, q = Distribution({0: 0.1, 1: 0.9}), Distribution({2: 0.2, 1: 0.8})
    assert divergences.hockey_stick_bounds(p, q, 10) == Bounds(0.1, 0.1)
    assert divergences.hockey_stick_bounds(p, q, 0) == Bounds(0.2, 0.2)


CLAIMS = [claim for name, claim in list(globals().items()) if name.startswith("claim_")]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_divergences(claim: Callable[[], None]) -> None:
    claim()


def test_a_posterior_needs_an_outcome_that_could_be_seen() -> None:
    p, q = Distribution.certain("a"), Distribution.certain("b")
    assert divergences.posterior(p, q, "a", 0.5) == 1
    with pytest.raises(InvalidInput, match="there is no posterior"):
        divergences.posterior(p, q, "a", 0)


# --- broken copies, each of which some claim must catch --------------------------------------------


def _surplus_without_choosing_the_event(p: Law, q: Law, ratio: Any) -> Fraction:
    return max(Fraction(0), sum((p[o] - ratio * q[o] for o in p.support), Fraction(0)))


def _best_single_outcome(p: Law, q: Law, ratio: Any) -> Fraction:
    return max(p[o] - Fraction(ratio) * q[o] for o in p.support)


def _only_outcomes_that_both_allow(p: Law, q: Law, ratio: Any) -> Fraction:
    return sum((max(p[o] - ratio * q[o], Fraction(0)) for o in p.support if q[o]), Fraction(0))


_least_ratio = divergences.least_ratio


def _impossible_outcomes_forgiven(p: Law, q: Law, delta: Any = 0) -> Fraction | None:
    return _least_ratio(p, q, delta) or max(p[o] / q[o] for o in p.support if q[o])


def _delta_ignored(p: Law, q: Law, delta: Any = 0) -> Fraction | None:
    return _least_ratio(p, q)


def _next_ratio_up(p: Law, q: Law, delta: Any = 0) -> Fraction | None:
    ratio = _least_ratio(p, q, delta)
    return ratio and min(r for r in [ratio * 2, *(p[o] / q[o] for o in p.support if q[o])] if r >= ratio)


def _simulation(*terms: str) -> Callable[[Iterable[Law]], Fraction | None]:
    def square(laws: Iterable[Law]) -> Fraction | None:
        ranges = divergences._ranges(laws).values()
        if not all(low for _, low in ranges):
            return None
        most, least = sum(high for high, _ in ranges), sum(low for _, low in ranges)
        each = max(high / low for high, low in ranges)
        known = {"most": most**2, "least": 1 / least**2, "each": each, "each squared": each**2}
        return max(Fraction(known[term]) for term in terms)

    return square


def _tanh_of_half(ratio: Fraction) -> Bounds:
    return enclose(lambda: (ball(ratio) - 1) / (ball(ratio) + 1))


def _tanh_of_eighth(ratio: Fraction) -> Bounds:
    root = Fraction(math.sqrt(math.sqrt(ratio)))
    return enclose(lambda: ball((root - 1) / (root + 1)))


def _event_at_a_rounded_ratio(p: Law, q: Law, epsilon: Fraction) -> Bounds:
    ratio = Fraction(round(math.exp(epsilon), 2))
    return enclose(lambda: ball(divergences.hockey_stick(p, q, ratio)))


_NO_EVENT = claim_no_event_distinguishes_better_than_the_hockey_stick
_LEAST = claim_the_least_ratio_is_enough_and_no_smaller_one_is
_REAL = claim_bounds_hold_the_hockey_stick_at_a_real_epsilon
_PRIOR = claim_no_prior_moves_further_than_the_posterior_shift
_SIMULATOR = claim_a_simulator_exists_at_the_simulation_epsilon_and_at_none_below

MUTANTS: list[tuple[str, object, Callable[[], None]]] = [
    ("hockey_stick", _surplus_without_choosing_the_event, _NO_EVENT),
    ("hockey_stick", _best_single_outcome, _NO_EVENT),
    ("hockey_stick", _only_outcomes_that_both_allow, _NO_EVENT),
    ("least_ratio", _impossible_outcomes_forgiven, _LEAST),
    ("least_ratio", _delta_ignored, _LEAST),
    ("least_ratio", _next_ratio_up, _LEAST),
    ("hockey_stick_bounds", _event_at_a_rounded_ratio, _REAL),
    ("posterior_shift_bounds", _tanh_of_half, _PRIOR),
    ("posterior_shift_bounds", _tanh_of_eighth, _PRIOR),
    ("simulation_square", _simulation("most", "least"), _SIMULATOR),
    ("simulation_square", _simulation("most", "each"), _SIMULATOR),
    ("simulation_square", _simulation("least", "each"), _SIMULATOR),
    ("simulation_square", _simulation("most", "least", "each squared"), _SIMULATOR),
]


@pytest.mark.parametrize(("name", "mutant", "claim"), MUTANTS)
def test_a_broken_copy_is_caught(
    monkeypatch: pytest.MonkeyPatch, name: str, mutant: object, claim: Callable[[], None]
) -> None:
    monkeypatch.setattr(divergences, name, mutant)
    with pytest.raises(AssertionError):
        claim()


# --- post-processing -------------------------------------------------------------------------------

weights = st.lists(st.integers(0, 9), min_size=4, max_size=4).filter(any)


def weighted(numbers: list[int]) -> Law:
    return Distribution({o: Fraction(number, sum(numbers)) for o, number in enumerate(numbers)})


def infinite_if_none(number: Fraction | None) -> Fraction | float:
    return math.inf if number is None else number


def all_divergences(p: Law, q: Law, ratio: Fraction, order: int) -> dict[str, Any]:
    return {
        "delta": divergences.hockey_stick(p, q, ratio),
        "distance": divergences.statistical_distance(p, q),
        "largest ratio": infinite_if_none(divergences.least_ratio(p, q)),
        "ratio at delta": infinite_if_none(divergences.least_ratio(p, q, Fraction(1, 10))),
        "kl": divergences.kl_bounds(p, q),
        "renyi": infinite_if_none(divergences.renyi_moment(p, q, order)),
    }


def rises(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The divergences that certainly rose: of a bounded one, when even the bounds do not overlap."""
    return [
        name
        for name in before
        if (after[name][0] > before[name][1] if name == "kl" else after[name] > before[name])
    ]


ratios = st.fractions(min_value=0, max_value=8, max_denominator=20)


@given(weights, weights, st.lists(st.integers(0, 3), min_size=4, max_size=4), ratios, st.integers(2, 5))
def test_no_map_of_a_finite_output_raises_any_divergence(
    one: list[int], other: list[int], table: list[int], ratio: Fraction, order: int
) -> None:
    p, q = weighted(one), weighted(other)
    before = all_divergences(p, q, ratio, order)
    after = all_divergences(p.map(table.__getitem__), q.map(table.__getitem__), ratio, order)
    assert rises(before, after) == []


@given(weights, weights, st.lists(weights, min_size=4, max_size=4), ratios, st.integers(2, 5))
def test_no_randomised_map_raises_any_divergence_either(
    one: list[int], other: list[int], steps: list[list[int]], ratio: Fraction, order: int
) -> None:
    p, q = weighted(one), weighted(other)
    kernel = [weighted(step) for step in steps]
    before = all_divergences(p, q, ratio, order)
    after = all_divergences(p.then(kernel.__getitem__), q.then(kernel.__getitem__), ratio, order)
    assert rises(before, after) == []


@given(weights, weights, st.permutations(range(4)), ratios, st.integers(2, 5))
def test_a_map_that_can_be_undone_changes_no_divergence(
    one: list[int], other: list[int], table: list[int], ratio: Fraction, order: int
) -> None:
    p, q = weighted(one), weighted(other)
    before = all_divergences(p, q, ratio, order)
    after = all_divergences(p.map(table.__getitem__), q.map(table.__getitem__), ratio, order)
    assert rises(before, after) == rises(after, before) == []


def test_looking_at_the_data_again_is_not_post_processing_and_is_seen_to_rise() -> None:
    """The check above has teeth: two more looks at the truth raise every divergence it watches."""
    p, q = weighted([3, 1, 0, 0]), weighted([1, 3, 0, 0])
    before = all_divergences(p, q, Fraction(2), 2)
    after = all_divergences(p.product(p.product(p)), q.product(q.product(q)), Fraction(2), 2)
    assert rises(before, after) == list(before)
