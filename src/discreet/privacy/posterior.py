"""What an attacker may come to believe.

Someone holds a prior that a certain person is in the data and sees an output o. Their odds are multiplied by
P(o)/Q(o), so a bound on the privacy loss bounds the posterior, whatever the prior: for those who know all the
others' data, and those whose beliefs about the others do not depend on this person. Proofs:
docs/proofs/posterior.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from discreet.numbers import Exactable, exact, is_infinite, nonnegative, probability
from discreet.privacy.reals import Bounds, Real, ball, enclose

__all__ = ["Posterior", "epsilon_for_shift", "loss_within", "posterior_after", "shift_bound"]


class Posterior(NamedTuple):
    """The interval in which a posterior stays: no lower than `low`, no higher than `high`."""

    low: float
    high: float


def posterior_after(epsilon: Exactable, prior: Exactable = 0.5) -> Posterior:
    """Return how far a prior can move when every loss is between -epsilon and epsilon.

    Claim: by Bayes' rule the odds are multiplied by something between e**-epsilon and e**epsilon; both
    ends are rounded outward.

    >>> posterior_after(1, prior=0.01)
    Posterior(low=0.0037021967585535243, high=0.026723630989395227)
    """
    believed = probability(prior, "prior")
    if is_infinite(epsilon):
        return Posterior(0.0 if believed < 1 else 1.0, 1.0 if believed > 0 else 0.0)
    loss = nonnegative(epsilon, "epsilon")

    def updated(by: Fraction) -> Real:
        if by == 0 or believed in (0, 1):
            return believed
        return 1 / (1 + ball((1 - believed) / believed) * (-ball(by)).exp())

    return Posterior(
        max(0.0, enclose(lambda: updated(-loss)).lower), min(1.0, enclose(lambda: updated(loss)).upper)
    )


def loss_within(
    epsilon_bounds: Callable[[Exactable], Bounds],
    delta_bounds: Callable[[Exactable], Bounds],
    failure: Exactable,
) -> float:
    """Return a loss that is exceeded with probability at most `failure` over the mechanism's coins.

    Claim: it holds for every mechanism with these bounds, in both directions. For any e < x,
    delta(e) >= E[(1 - e**(e - L))+] >= Pr(L > x) (1 - e**(e - x)), so that x = e - ln(1 - delta(e) / failure)
    is exceeded with probability at most `failure`; any e will do, and a good one is searched for. (The
    probability that L exceeds epsilon(delta) may itself be larger than delta.)
    """
    allowed = probability(failure, "failure")
    certain = epsilon_bounds(0).upper
    if allowed == 0 or certain == 0.0:
        return certain
    if allowed == 1:
        return 0.0
    least = epsilon_bounds(allowed).upper
    if least == math.inf:
        return math.inf

    def exceeded(start: float) -> float:
        if start == math.inf:
            return math.inf
        fraction = exact(delta_bounds(start).upper, "delta") / allowed
        if fraction >= 1:
            return math.inf
        return enclose(lambda: ball(exact(start, "epsilon")) - (-ball(fraction)).log1p()).upper

    # A good e lies beyond `least` by one nat, or less where delta becomes a millionth over less than that.
    far = epsilon_bounds(allowed / 10**6).upper - least
    if far <= 0.0:
        return min(certain, exceeded(least))
    far = max(1e-300, far) if far < math.inf else 2 * max(least, 1.0)
    near = min(far, 1.0) / 4**10
    steps = 28
    ratio = (far / near) ** (1 / steps)
    return min(
        certain, exceeded(least), _least(lambda i: exceeded(least + near * ratio**i), range(steps + 1))
    )


def _least(value: Callable[[float], float], grid: Sequence[int], rounds: int = 16) -> float:
    """Return the least value met on a grid and in a golden-section search around its best point.

    Every value it may return is valid; how good it is decides nothing else.
    """
    values = [value(point) for point in grid]
    best = min(values)
    center = grid[values.index(best)]
    golden = (math.sqrt(5) - 1) / 2
    low, high = center - 1.0, center + 1.0
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = value(left), value(right)
    for _ in range(rounds):
        best = min(best, at_left, at_right)
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = value(right)
    return best


def shift_bound(epsilon: Exactable) -> float:
    """Return the most that any posterior can differ from its prior, over all priors: tanh(epsilon / 4).

    It is reached from the prior 1 / (1 + e**(epsilon / 2)), upwards, and from one minus that, downwards.
    """
    if is_infinite(epsilon):
        return 1.0
    loss = nonnegative(epsilon, "epsilon")
    return min(1.0, enclose(lambda: ball(loss / 4).tanh()).upper)


def epsilon_for_shift(shift: Exactable) -> float:
    """Return the epsilon implied when no posterior ever differs from its prior by more than `shift`.

    Claim: the converse of `shift_bound`. If the promise holds for every prior, every loss is at most
    4 artanh(shift), rounded up here; the hypothesis is about all priors, one prior would not do.

    >>> epsilon_for_shift(0.25)
    1.0216512475319814
    """
    most = probability(shift, "shift")
    if most == 1:
        return math.inf
    return enclose(lambda: 4 * ball(most).atanh()).upper
