"""Claims about what an attacker may come to believe, checked against Bayes' rule on exact pairs."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.privacy.loss import PrivacyLoss
from discreet.privacy.posterior import Posterior, epsilon_for_shift, loss_within, posterior_after, shift_bound
from discreet.privacy.reals import Bounds
from tests.privacy.test_finite import Law, laws, loss_of, pairs
from tests.privacy.truths import (
    TINY,
    DiscreteGaussian,
    DiscreteLaplace,
    Finite,
    Gaussian,
    Truth,
    mp,
    mpf,
    promise,
    real,
)

F = Fraction
EPSILONS = st.fractions(min_value=0, max_value=60, max_denominator=10**6)
PRIORS = st.fractions(min_value=0, max_value=1, max_denominator=10**6)


def bayes(prior: mpf, loss: mpf) -> mpf:
    return prior * mp.exp(loss) / (prior * mp.exp(loss) + 1 - prior)


# --- pure promises --------------------------------------------------------------------------------


@given(EPSILONS, PRIORS)
def test_posteriors_are_bayes_rule_at_both_ends_rounded_outward(epsilon: Fraction, prior: Fraction) -> None:
    low, high = posterior_after(epsilon, prior)
    e, p = real(epsilon), real(prior)
    truths = bayes(p, -e), bayes(p, e)
    if epsilon == 0 or prior in (0, 1):
        assert F(repr(low)) <= prior <= F(repr(high))
    else:
        assert mpf(low) <= truths[0]
        assert truths[1] <= mpf(high)
    assert truths[0] - mpf(low) <= 4 * mp.eps + mpf(10) ** -15 * truths[0]
    assert mpf(high) - truths[1] <= mpf(10) ** -15
    assert 0 <= low <= high <= 1


@settings(max_examples=100)
@given(pairs(least=1), PRIORS)
def test_no_outcome_moves_a_belief_out_of_the_interval(pair: tuple[Law, Law], prior: Fraction) -> None:
    """In exact fractions; and where the prior is not certain, some outcome reaches one of the ends."""
    low, high = loss_of(pair).posterior(prior)
    beliefs = [prior * p / (prior * p + (1 - prior) * q) for p, q in zip(*pair, strict=True)]
    assert all(F(low) - F(1, 10**15) * F(low) <= belief <= F(high) + F(1, 10**15) for belief in beliefs)
    reached = min(min(beliefs) - F(low), F(high) - max(beliefs))
    if 0 < prior < 1:
        assert reached < F(1, 10**12)


def test_certain_priors_stay_and_infinite_losses_reveal_everything() -> None:
    assert posterior_after(3, 0) == (0.0, 0.0)
    assert posterior_after(3, 1) == (1.0, 1.0)
    assert posterior_after(math.inf, 0.5) == (0.0, 1.0)
    assert posterior_after(math.inf, 0) == (0.0, 0.0)
    assert posterior_after(math.inf, 1) == (1.0, 1.0)
    assert posterior_after(0, 0.3) == (0.3, 0.3)
    assert PrivacyLoss.gaussian(sigma=1).posterior(0.5) == Posterior(0.0, 1.0)
    assert posterior_after(10**300, 0.5) == Posterior(0.0, 1.0)


# --- which attackers ------------------------------------------------------------------------------


@settings(max_examples=100)
@given(st.data(), PRIORS)
def test_it_holds_for_independent_beliefs_about_the_others(data: st.DataObject, prior: Fraction) -> None:
    """The others' data are one of two; the attacker's weights are the same with and without the person."""
    outcomes = data.draw(st.integers(2, 5))
    worlds = [(data.draw(laws(outcomes, 1)), data.draw(laws(outcomes, 1))) for _ in range(2)]
    guess = data.draw(st.fractions(min_value=0, max_value=1, max_denominator=1000))
    worst = max(loss_of(pair).max_divergence for pair in worlds)
    low, high = posterior_after(worst, prior)
    for outcome in range(outcomes):
        p, q = (guess * worlds[0][i][outcome] + (1 - guess) * worlds[1][i][outcome] for i in (0, 1))
        belief = prior * p / (prior * p + (1 - prior) * q)
        assert F(low) * (1 - F(1, 10**15)) <= belief <= F(high) * (1 + F(1, 10**15))


def test_it_does_not_hold_for_beliefs_about_the_others_that_depend_on_the_person() -> None:
    """A family of four that came together or not at all: what is learned of one is learned of four."""
    report = PrivacyLoss.discrete_laplace(scale=1, sensitivity=4)
    assert report.max_divergence == 4.0
    _, high = PrivacyLoss.discrete_laplace(scale=1).posterior(F(1, 10))
    assert report.posterior(F(1, 10)).high > 0.8 > 0.3 > high


def test_with_a_delta_the_chance_is_over_their_guesses_too() -> None:
    """In the rarer of two worlds the attacker is always misled, in both together no more often than said."""
    worlds = {F(99, 100): ([F(1, 10), F(9, 10)], [F(0), F(1)]), F(1, 100): ([F(1), F(0)], [F(1), F(0)])}
    failure = F(2, 10)
    most = PrivacyLoss.approx(0, F(1, 10)).within(failure)
    assert most == pytest.approx(math.log(2))
    assert all(max(loss_of(pair).delta_bounds(0)) <= 0.1 for pair in worlds.values())
    p, q = ([sum(w * pair[i][o] for w, pair in worlds.items()) for o in (0, 1)] for i in (0, 1))
    assert p[0] / q[0] == F(109, 10) > math.exp(most)
    assert p[0] == F(109, 1000) <= failure
    assert worlds[F(1, 100)][0][0] == 1 > failure


# --- the greatest shift ---------------------------------------------------------------------------


@given(st.fractions(min_value=F(1, 1000), max_value=30, max_denominator=1000), PRIORS)
def test_no_prior_moves_further_than_the_shift(epsilon: Fraction, prior: Fraction) -> None:
    e, p = real(epsilon), real(prior)
    shift = mpf(shift_bound(epsilon))
    assert bayes(p, e) - p <= shift
    assert p - bayes(p, -e) <= shift


@given(st.fractions(min_value=F(1, 1000), max_value=30, max_denominator=1000))
def test_the_shift_is_reached_from_its_prior(epsilon: Fraction) -> None:
    e = real(epsilon)
    prior = 1 / (1 + mp.exp(e / 2))
    moved = bayes(prior, e) - prior
    assert abs(moved - mp.tanh(e / 4)) < TINY
    assert abs((1 - prior) - bayes(1 - prior, -e) - moved) < TINY
    assert moved <= mpf(shift_bound(epsilon)) <= moved * (1 + mpf(10) ** -15)


@given(st.fractions(min_value=F(1, 10**9), max_value=F(999, 1000), max_denominator=10**9))
def test_a_bound_on_every_shift_implies_an_epsilon(shift: Fraction) -> None:
    """The converse: at any larger loss some prior moves further than the shift."""
    epsilon = epsilon_for_shift(shift)
    truth = 4 * mp.atanh(real(shift))
    assert truth <= mpf(epsilon) <= truth * (1 + mpf(10) ** -15)
    larger = truth * (1 + mpf(10) ** -6)
    prior = 1 / (1 + mp.exp(larger / 2))
    assert bayes(prior, larger) - prior > real(shift)


def test_ends_of_the_shift() -> None:
    assert shift_bound(0) == epsilon_for_shift(0) == 0.0
    assert shift_bound(math.inf) == shift_bound(10**300) == 1.0
    assert epsilon_for_shift(1) == math.inf


def test_one_prior_alone_would_not_imply_it() -> None:
    """From even odds a loss of 3 moves a belief by less than the shift that from all priors implies 2.1."""
    assert bayes(mpf(1) / 2, mpf(3)) - mpf(1) / 2 < 0.46 < mpf(shift_bound(3))
    assert epsilon_for_shift(0.46) < 2


# --- losses that are exceeded with a small chance -------------------------------------------------

FAILURES = [F(1, 10**300), F(1, 10**9), F(1, 10**5), F(1, 100), F(1, 3), F(9, 10)]
EXACT: list[tuple[PrivacyLoss, Truth]] = [
    (PrivacyLoss.gaussian(sigma=1), Gaussian(F(1))),
    (PrivacyLoss.gaussian(sigma=F(1, 10)), Gaussian(F(1, 10))),
    (PrivacyLoss.gaussian(sigma=10**5), Gaussian(F(10**5))),
    (PrivacyLoss.discrete_gaussian(variance=4), DiscreteGaussian(F(4))),
    (PrivacyLoss.discrete_gaussian(variance=F(1, 10)), DiscreteGaussian(F(1, 10))),
    (PrivacyLoss.discrete_laplace(scale=3, sensitivity=7), DiscreteLaplace(F(3), 7)),
    (PrivacyLoss.approx(1, F(1, 10**6)), promise(F(1), F(1, 10**6))),
    (PrivacyLoss.approx(0, F(1, 4)), promise(F(0), F(1, 4))),
]


@pytest.mark.parametrize("failure", FAILURES, ids=lambda x: f"{float(x):g}")
@pytest.mark.parametrize(("loss", "truth"), EXACT, ids=[repr(truth)[:40] for _, truth in EXACT])
def test_a_loss_above_within_is_as_rare_as_asked(loss: PrivacyLoss, truth: Truth, failure: Fraction) -> None:
    most = loss.within(failure)
    if most < math.inf:
        assert truth.above(F(repr(most)))[0] <= real(failure) * (1 + TINY)


@pytest.mark.parametrize(("loss", "truth"), EXACT[:4], ids=[repr(truth)[:40] for _, truth in EXACT[:4]])
def test_within_is_not_much_above_the_quantile(loss: PrivacyLoss, truth: Truth) -> None:
    """Half a nat or a seventh lower, the loss is already exceeded more often than asked."""
    for failure in FAILURES[:4]:
        most = F(loss.within(failure))
        shorter = most - max(most / 7, F(1, 10**300)) if most < 1 else most - max(F(1, 2), most / 7)
        assert truth.above(shorter)[0] > real(failure), failure


@settings(max_examples=60)
@given(pairs(), st.sampled_from(FAILURES))
def test_within_holds_for_finite_pairs_in_both_directions(pair: tuple[Law, Law], failure: Fraction) -> None:
    most = loss_of(pair).within(failure)
    if most < math.inf:
        for p, q in (pair, pair[::-1]):
            assert Finite(p, q).above(F(repr(most)))[0] <= real(failure)


@settings(max_examples=40)
@given(pairs(most=4), st.sampled_from([F(1, 10), F(1, 3)]), st.integers(2, 3))
def test_within_holds_after_any_merging_of_outcomes(
    pair: tuple[Law, Law], failure: Fraction, ways: int
) -> None:
    """The quantile of the loss itself would not: merging can make a middling loss likelier."""
    most = loss_of(pair).within(failure)
    merged = [[sum(law[i::ways], F(0)) for i in range(ways)] for law in pair]
    if most < math.inf:
        assert Finite(*merged).above(F(repr(most)))[0] <= real(failure)


def test_the_quantile_of_the_loss_is_not_safe_under_merging() -> None:
    p, q = [F(1, 10), F(2, 10), F(7, 10)], [F(1, 1000), F(19, 100), F(809, 1000)]
    # Above 0.06 is only the first outcome, a tenth of the time; merged with the second, three tenths.
    assert Finite(p, q).above(F(6, 100))[0] == real(F(1, 10))
    merged = Finite([F(3, 10), F(7, 10)], [F(191, 1000), F(809, 1000)])
    assert merged.above(F(6, 100))[0] == real(F(3, 10))
    assert loss_of((p, q)).within(F(1, 10)) > math.log(300 / 191)


@pytest.mark.parametrize("failure", FAILURES[1:], ids=lambda x: f"{float(x):g}")
def test_posteriors_that_may_fail_fail_as_rarely_as_asked(failure: Fraction) -> None:
    """For noise on the integers: the chance, with the person in, of an outcome that convinces too much."""
    loss, truth = PrivacyLoss.discrete_gaussian(variance=4), DiscreteGaussian(F(4))
    for prior in (F(1, 1000), F(1, 2)):
        low, high = loss.posterior(prior, failure=failure)
        if high < 1:
            needed = mp.log(real(F(high)) * (1 - real(prior)) / ((1 - real(F(high))) * real(prior)))
            chance = truth.above(F(int(mp.floor(needed * 2**80)), 2**80) - F(1, 2**60))[0]
            assert chance <= real(failure) * (1 + mpf(10) ** -9)
        assert low == pytest.approx(1 - posterior_after(loss.within(failure), 1 - prior).high, rel=1e-9)


@settings(max_examples=60)
@given(pairs(), st.sampled_from(FAILURES))
def test_beliefs_are_misled_no_more_often_than_they_come_nearer(
    pair: tuple[Law, Law], failure: Fraction
) -> None:
    """Away from the truth, by a factor of e**loss more seldom."""
    most = loss_of(pair).within(failure)
    if most < math.inf:
        for p, q in (pair, pair[::-1]):
            _, misled = Finite(q, p).above(F(repr(most)))
            assert misled <= real(failure) * mp.exp(-real(F(repr(most))))


@pytest.mark.parametrize("epsilon", [0, 1])
@pytest.mark.parametrize("failure", [F(2, 100), F(1, 10)])
def test_no_smaller_loss_follows_from_a_promise_alone(epsilon: int, failure: Fraction) -> None:
    """Two outcomes that keep the promise, with a loss just below `within` more often than `failure`."""
    delta = F(1, 100)
    most = PrivacyLoss.approx(epsilon, delta).within(failure)
    loss = real(F(most)) - mpf("1e-3")
    p = real(delta) / (1 - mp.exp(epsilon - loss))
    q = p * mp.exp(-loss)
    for a, b in [(p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)]:
        assert a - mp.exp(epsilon) * b <= real(delta) + TINY
    assert p > real(failure)


def test_a_search_that_starts_at_infinity_ends() -> None:
    """The largest floats: a start is then infinite, where no curve can be asked."""
    for epsilon in (1e300, 1e308, 1.7e308):
        loss = PrivacyLoss.approx(epsilon, F(1, 100))
        assert epsilon <= loss.within(F(1, 10)) < epsilon * 1.0001
        assert loss.within(F(1, 1000)) == math.inf

    def nowhere(start: Fraction) -> Bounds:
        assert start < math.inf
        return Bounds(0.0, 1.0)

    def unknown(delta: Fraction) -> Bounds:
        return Bounds(0.0, 1e308 if delta == F(1, 10) else math.inf)

    assert loss_within(unknown, nowhere, F(1, 10)) == math.inf  # type: ignore[arg-type]


def test_at_failure_zero_it_is_the_greatest_loss_and_at_one_nothing() -> None:
    loss = PrivacyLoss.approx(2, F(1, 100))
    assert loss.within(0) == math.inf
    assert PrivacyLoss.pure(2).within(0) == PrivacyLoss.pure(2).within(F(1, 10**9)) == 2.0
    assert loss.within(1) == 0.0
    # At delta itself every loss is possible, and just above it they are finite again.
    assert loss.within(F(1, 100)) == math.inf or loss.within(F(1, 100)) > 30
    assert loss.within(F(1, 10)) == pytest.approx(2 + math.log(10 / 9), rel=1e-4)


def test_a_bound_on_delta_used_as_a_bound_on_the_chance_is_caught() -> None:
    """Pr(L > epsilon(delta)) <= delta is a common mistake; the chance is larger."""
    loss, truth = PrivacyLoss.gaussian(sigma=1), Gaussian(F(1))
    mistaken = loss.epsilon(1e-6)
    assert truth.above(F(mistaken))[0] > 1e-6
    assert loss.within(1e-6) > mistaken


def test_any_safe_curve_will_do() -> None:
    """`loss_within` reads nothing but bounds: those of a promise hold for the noise that keeps it."""
    kept = PrivacyLoss.gaussian(sigma=1)
    promised = PrivacyLoss.approx(F(repr(kept.epsilon(1e-9))), F(1, 10**9))

    def epsilon_bounds(delta: Fraction) -> Bounds:
        return promised.epsilon_bounds(delta)

    most = loss_within(epsilon_bounds, promised.delta_bounds, F(1, 10**6))  # type: ignore[arg-type]
    assert Gaussian(F(1)).above(F(most))[0] <= 1e-6


@pytest.mark.parametrize("value", [np.array([0.1, 0.2]), Decimal("sNaN"), [1], "inf"], ids=repr)
def test_an_odd_epsilon_is_refused_and_not_compared_first(value: Any) -> None:
    for ask in (posterior_after, shift_bound, PrivacyLoss.gaussian(sigma=1).renyi):
        with pytest.raises(InvalidInput):
            ask(value)
    with pytest.raises(InvalidInput):
        PrivacyLoss.gaussian(sigma=1).group(Fraction(1, 10**5000))  # type: ignore[arg-type]
