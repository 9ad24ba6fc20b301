"""Claims about finite pairs: exact figures, groups against chains of laws, and post-processing."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidInput, Unsupported
from discreet.privacy.finite import FinitePair, PowerCurve
from discreet.privacy.loss import FiniteLoss, PrivacyLoss
from tests.privacy.truths import Finite, disagreements, encloses, mp, neyman_pearson, real

F = Fraction
Law = list[Fraction]
ONE = F(1)


def laws(outcomes: int, least: int = 0) -> st.SearchStrategy[Law]:
    weights = st.lists(st.integers(min_value=least, max_value=12), min_size=outcomes, max_size=outcomes)
    return weights.filter(any).map(lambda w: [F(x, sum(w)) for x in w])


@st.composite
def pairs(draw: st.DrawFn, least: int = 0, most: int = 6) -> tuple[Law, Law]:
    outcomes = draw(st.integers(min_value=1, max_value=most))
    return draw(laws(outcomes, least)), draw(laws(outcomes, least))


@st.composite
def kernels(draw: st.DrawFn, outcomes: int) -> list[Law]:
    """A random map: for each outcome, a law over what it becomes."""
    becomes = draw(st.integers(min_value=1, max_value=4))
    return [draw(laws(becomes)) for _ in range(outcomes)]


def loss_of(pair: tuple[Law, Law]) -> FiniteLoss:
    return PrivacyLoss.finite(*pair)


RATES = [F(0), F(1, 100), F(1, 20), F(1, 3), F(1, 2), F(9, 10), F(1)]
RATIOS = [F(0), F(1, 3), F(1), F(3, 2), F(4), F(100)]


# --- figures --------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(pairs(least=1), st.fractions(min_value=-3, max_value=3, max_denominator=50))
def test_figures_agree_with_the_definitions(pair: tuple[Law, Law], epsilon: Fraction) -> None:
    there, back = Finite(*pair), Finite(pair[1], pair[0])
    alphas = [F(10**6 + 1, 10**6), F(2), F(7, 2), F(50)]
    deltas = [F(1, 10), F(1, 10**6), F(1, 10**30)]
    assert not disagreements(loss_of(pair), [there, back], epsilons=[epsilon], deltas=deltas, alphas=alphas)


@settings(max_examples=100)
@given(pairs(), st.fractions(min_value=-3, max_value=5, max_denominator=50))
def test_figures_agree_where_some_outcomes_are_impossible(pair: tuple[Law, Law], epsilon: Fraction) -> None:
    loss, directions = loss_of(pair), [Finite(*pair), Finite(pair[1], pair[0])]
    gone = max(sum((a for a, b in zip(p, q, strict=True) if not b), F(0)) for p, q in (pair, pair[::-1]))
    deltas = [d for d in (gone + (1 - gone) / 50, gone + (1 - gone) / 10**9) if d < 1]
    assert not disagreements(loss, directions, epsilons=[epsilon], deltas=deltas)
    assert (loss.max_ratio is None) == (gone > 0) == math.isinf(loss.max_divergence) == math.isinf(loss.kl)
    assert math.isinf(loss.rho) == math.isinf(loss.renyi(2)) == (gone > 0)
    if gone:
        assert loss.epsilon_bounds(gone - gone / 10**20).lower == math.inf
        assert loss.epsilon_bounds(gone).upper < math.inf


@given(pairs(), st.sampled_from(RATIOS))
def test_the_hockey_stick_is_the_best_event_of_all(pair: tuple[Law, Law], ratio: Fraction) -> None:
    def best(p: Law, q: Law) -> Fraction:
        events = range(2 ** len(p))
        chosen = ([i for i in range(len(p)) if event >> i & 1] for event in events)
        return max(sum((p[i] - ratio * q[i] for i in event), F(0)) for event in chosen)

    p, q = pair
    assert loss_of(pair).hockey_stick(ratio) == max(best(p, q), best(q, p))


@given(pairs(), st.fractions(min_value=0, max_value=1, max_denominator=1000))
def test_the_tradeoff_is_the_neyman_pearson_test(pair: tuple[Law, Law], fpr: Fraction) -> None:
    p, q = pair
    truth = min(neyman_pearson(p, q, fpr), neyman_pearson(q, p, fpr))
    loss = loss_of(pair)
    assert loss.tradeoff(fpr) == truth
    assert encloses(loss.tradeoff_bounds(fpr), real(truth))
    # the route that pairs without exact figures take
    assert encloses(PrivacyLoss(loss.there, loss.back).tradeoff_bounds(fpr), real(truth))


@given(pairs())
def test_distance_advantage_and_tradeoff_tell_the_same_story(pair: tuple[Law, Law]) -> None:
    loss = loss_of(pair)
    half_l1 = sum((abs(a - b) for a, b in zip(*pair, strict=True)), F(0)) / 2
    assert loss.statistical_distance == loss.advantage == loss.hockey_stick(1) == half_l1
    corners = {x for direction in (loss.there, loss.back) for x, _ in direction.power_curve().points}
    assert max(1 - x - loss.tradeoff(x) for x in corners) == half_l1


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("truth", [F(0), F(1, 20), F(1, 10), F(1, 3), F(3, 4), F(999, 1000), F(1)])
def test_randomised_response_counts_all_its_coins(truth: Fraction, k: int) -> None:
    other = (1 - truth) / (k - 1)
    loss = PrivacyLoss.randomized_response(truth=truth, k=k)
    p, q = [truth, *[other] * (k - 1)], [other, truth, *[other] * (k - 2)]
    assert loss.statistical_distance == abs(truth - other)
    high, low = max(truth, other), min(truth, other)
    assert loss.max_ratio == (high / low if low else None)
    if low:
        directions = [Finite(p, q), Finite(q, p)]
        assert not disagreements(loss, directions, epsilons=[F(1)], deltas=[F(1, 10**6)], alphas=[F(2)])
        for epsilon in (F(0), F(1, 2), F(5)):
            if truth >= F(1, k):
                expected = max(F(0), truth) - F(math.e**epsilon) * other
                assert loss.delta(epsilon) == pytest.approx(max(0.0, float(expected)), abs=1e-15)
    assert loss.neighbours.kind == "replace"


def test_outcomes_of_the_same_ratio_are_one_outcome() -> None:
    whole = PrivacyLoss.finite([F(1, 2), F(1, 2)], [F(1, 4), F(3, 4)])
    split = PrivacyLoss.finite([F(1, 4), F(1, 4), F(1, 2), 0], [F(1, 8), F(1, 8), F(3, 4), 0])
    assert whole.there == split.there
    assert whole.back == split.back


def test_a_likelihood_ratio_beside_e_to_a_rational_is_told_apart_from_it() -> None:
    with_digits = F(int(mp.floor(mp.e * mp.mpf(10) ** 62)), 10**62)
    q = F(1, 10)
    loss = PrivacyLoss.finite([q * with_digits, 1 - q * with_digits], [q, 1 - q])
    # The ratio is e, cut to 62 decimals: at epsilon = 1 nothing is above it, a little before, something.
    assert loss.delta_bounds(1) == (0.0, 0.0)
    assert loss.delta_bounds(1 - F(1, 10**50)).lower > 0


@pytest.mark.parametrize(
    ("p", "q", "message"),
    [
        ([F(1, 2)], [F(1, 2), F(1, 2)], "1 outcomes and q lists 2"),
        ([0.333, 0.333, 0.333], [F(1, 3)] * 3, "p must sum to exactly 1"),
        ([F(1, 3)] * 3, [0.5, 0.5, 0.1], "q must sum to exactly 1"),
        ([F(3, 2), F(-1, 2)], [F(1, 2)] * 2, "p must not be negative"),
        ([math.nan, 1], [0, 1], "finite"),
        ([], [], "sum to exactly 1"),
        (["1"], [1], "must be a number"),
        ([True], [1], "must be a number"),
    ],
)
def test_what_is_not_a_pair_of_distributions_is_refused(p: Law, q: Law, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        PrivacyLoss.finite(p, q)


def test_tenths_sum_to_one() -> None:
    assert PrivacyLoss.finite([0.1] * 10, [0.3, 0.3, 0.4, *[0] * 7]).statistical_distance == F(7, 10)


# --- curves ---------------------------------------------------------------------------------------


@given(pairs(), pairs(), st.sampled_from(RATES))
def test_curves_apply_to_one_another_as_functions_do(
    a: tuple[Law, Law], b: tuple[Law, Law], x: Fraction
) -> None:
    first, then = loss_of(a).there.power_curve(), loss_of(b).there.power_curve()
    assert then.after(first)(x) == then(first(x))


@given(pairs(), st.sampled_from(RATES))
def test_a_curve_and_its_pair_are_the_same_thing(pair: tuple[Law, Law], x: Fraction) -> None:
    power = loss_of(pair).there.power_curve()
    assert power.pair().power_curve()(x) == power(x)
    assert power.pair() == loss_of(pair).there


@given(pairs(), pairs(), st.sampled_from(RATES))
def test_the_hull_of_two_curves_is_concave_and_above_both(
    a: tuple[Law, Law], b: tuple[Law, Law], x: Fraction
) -> None:
    first, second = loss_of(a).there.power_curve(), loss_of(b).there.power_curve()
    both = first.either(second)
    assert both(x) >= max(first(x), second(x))
    slopes = [(d - b) / (c - a) for (a, b), (c, d) in pairwise(both.points) if c > a]
    assert slopes == sorted(slopes, reverse=True)
    assert set(both.points) <= {*first.points, *second.points}


@given(pairs(), st.sampled_from(RATES))
def test_the_least_rate_is_the_first_at_which_a_power_is_reached(pair: tuple[Law, Law], y: Fraction) -> None:
    power = loss_of(pair).there.power_curve()
    rate = power.least_rate(y)
    assert power(rate) >= y
    if rate > 0:
        assert power(rate * (1 - F(1, 10**9))) < y


# --- groups ---------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(st.data())
def test_no_chain_of_steps_is_worse_at_its_ends_than_the_group(data: st.DataObject) -> None:
    """A mechanism on a path of databases; the worst step is the hull of all its steps, both ways."""
    outcomes, k = data.draw(st.integers(2, 4)), data.draw(st.integers(2, 4))
    chain = [data.draw(laws(outcomes)) for _ in range(k + 1)]
    worst = PowerCurve(((F(0), F(0)), (ONE, ONE)))
    for step in pairwise(chain):
        worst = worst.either(loss_of(step).there.power_curve()).either(loss_of(step).back.power_curve())
    bound = FiniteLoss(worst.pair(), worst.pair().reversed()).group(k)
    ends = loss_of((chain[0], chain[-1]))
    for ratio in RATIOS:
        assert ends.hockey_stick(ratio) <= bound.hockey_stick(ratio)
    for fpr in RATES:
        assert ends.tradeoff(fpr) >= bound.tradeoff(fpr)


def test_composing_one_direction_only_would_be_caught_by_a_chain() -> None:
    """One step is the pair, the next its reverse: neither direction's own curve bounds the two together."""
    there = FinitePair.of([F(1, 2), F(1, 2), 0], [F(1, 10), F(9, 10), 0])
    p, q, r = [F(1, 10), F(9, 10)], [F(1, 2), F(1, 2)], [F(1, 2) + F(2, 5), F(1, 10)]
    assert loss_of((q, p)).there == there
    assert loss_of((r, q)).back.power_curve() == loss_of((q, p)).there.power_curve()
    ends = loss_of((r, p)).there.power_curve()
    naive = there.power_curve().after(there.power_curve())
    assert any(ends(x) > naive(x) for x in (F(1, 100), F(1, 10), F(1, 5)))
    honest = FiniteLoss(there, there.reversed()).group(2).there.power_curve()
    assert all(ends(x) <= honest(x) for x in RATES)


@settings(max_examples=60)
@given(pairs(most=3), st.integers(2, 4))
def test_a_chain_attains_the_group_where_both_directions_are_alike(pair: tuple[Law, Law], k: int) -> None:
    """Stretch an interval by the curve again and again: each step is the pair, the ends are the group."""
    loss = loss_of(pair)
    curve = loss.there.power_curve().either(loss.back.power_curve())
    assert curve.pair().reversed().power_curve() == curve
    assume(curve(F(0)) == 0)
    corners = {F(0), ONE}
    for _ in range(k):
        corners |= {curve.least_rate(x) for x in corners} | {x for x, _ in curve.points}
    for _ in range(k - 1):
        corners |= {curve.least_rate(x) for x in corners}
    cells, values = sorted(corners), sorted(corners)
    chain = []
    for _ in range(k + 1):
        chain.append([b - a for a, b in pairwise(values)])
        values = [curve(x) for x in values]
    assert len(cells) == len(values)
    for a, b in pairwise(chain):
        assert loss_of((b, a)).there.power_curve() == curve
    assert loss_of((chain[-1], chain[0])).there == FiniteLoss(curve.pair(), curve.pair()).group(k).there


@given(pairs(least=1))
def test_the_greatest_ratio_of_a_group_is_at_most_the_power(pair: tuple[Law, Law]) -> None:
    loss = loss_of(pair)
    assert loss.max_ratio is not None
    for k in (1, 2, 3):
        together = loss.group(k)
        assert together.max_ratio is not None
        assert together.max_ratio <= loss.max_ratio**k
        assert together.neighbours.distance == k
    assert loss.group(1).there == loss.there


def test_randomised_response_of_two_is_as_bad_as_its_square() -> None:
    loss = PrivacyLoss.randomized_response(truth=F(3, 4)).group(2)
    assert loss.max_ratio == 9
    assert loss.there.power_curve().points[1] == (F(1, 12), F(3, 4))


def test_a_group_beyond_reach_is_refused_with_what_to_write_instead() -> None:
    with pytest.raises(Unsupported, match=r"PrivacyLoss\.approx"):
        PrivacyLoss.randomized_response(truth=F(3, 4)).group(10**6)


# --- post-processing ------------------------------------------------------------------------------


@settings(max_examples=200)
@given(st.data())
def test_no_map_of_the_outcomes_raises_any_divergence(data: st.DataObject) -> None:
    """Random kernels, deterministic ones among them: each divergence is compared exactly or by its bounds."""
    p, q = data.draw(pairs(most=5))
    kernel = data.draw(kernels(len(p)))

    def through(law: Law) -> Law:
        return [sum((law[o] * kernel[o][u] for o in range(len(law))), F(0)) for u in range(len(kernel[0]))]

    before, after = loss_of((p, q)), loss_of((through(p), through(q)))
    for ratio in RATIOS:
        assert after.there.hockey_stick(ratio) <= before.there.hockey_stick(ratio)
        assert after.hockey_stick(ratio) <= before.hockey_stick(ratio)
    for fpr in RATES:
        assert after.tradeoff(fpr) >= before.tradeoff(fpr)
    assert before.max_ratio is None or (after.max_ratio is not None and after.max_ratio <= before.max_ratio)
    assert after.statistical_distance <= before.statistical_distance
    assert after.kl_bounds.lower <= before.kl
    assert after.rho_bounds.lower <= before.rho
    for alpha in (F(3, 2), F(2), F(20)):
        assert after.renyi_bounds(alpha).lower <= before.renyi(alpha)
    for delta in (F(1, 100), F(1, 3)):
        assert after.epsilon_bounds(delta).lower <= before.epsilon(delta)


def test_a_group_whose_rates_have_too_many_digits_is_refused() -> None:
    weights = [10**15 - k * 10**13 + 7 * k * k for k in range(5)]
    p = [F(weight, sum(weights)) for weight in weights]
    with pytest.raises(Unsupported, match="digits"):
        PrivacyLoss.finite(p, p[1:] + p[:1]).group(400)
    with pytest.raises(InvalidInput, match="list of probabilities"):
        PrivacyLoss.finite((x for x in p), p)  # type: ignore[arg-type]
