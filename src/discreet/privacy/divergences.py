"""How far apart distributions are: exact where the answer is rational, certified where it is not.

A function of `p` and `q` compares them in that direction, p over q; the definition of privacy asks for both.
A ratio is e^epsilon, so a ratio of 3 is an epsilon of ln 3, and None stands for an infinite one. The theorem
behind each function is in docs/proofs/verification.md.

>>> yes, no = Distribution({"yes": 0.75, "no": 0.25}), Distribution({"yes": 0.25, "no": 0.75})
>>> least_ratio(yes, no), hockey_stick(yes, no, ratio=2), statistical_distance(yes, no)
(Fraction(3, 1), Fraction(1, 4), Fraction(1, 2))
>>> simulation_square([yes, no])                            # a fair coin imitates both within a factor of 2
Fraction(4, 1)
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from fractions import Fraction
from typing import TypeVar

from flint import arb

from discreet.errors import InvalidInput
from discreet.numbers import Exactable, nonnegative, probability, whole
from discreet.privacy.distributions import Distribution
from discreet.privacy.reals import Bounds, ball, certainly, enclose

__all__ = [
    "distinguishing_event",
    "hockey_stick",
    "hockey_stick_bounds",
    "kl_bounds",
    "least_ratio",
    "log_bounds",
    "posterior",
    "posterior_shift_bounds",
    "ratio_event",
    "renyi_moment",
    "simulation_event",
    "simulation_square",
    "statistical_distance",
]

Outcome = TypeVar("Outcome", bound=Hashable)

_INFINITE = Bounds(math.inf, math.inf)
_NOTHING = Bounds(0.0, 0.0)


# --- the hockey-stick divergence and its inverse --------------------------------------------------


def distinguishing_event(
    p: Distribution[Outcome], q: Distribution[Outcome], ratio: Fraction
) -> tuple[Outcome, ...]:
    """The outcomes more than `ratio` times likelier under p: no event E has a larger p(E) - ratio q(E)."""
    return tuple(outcome for outcome in p.support if p[outcome] > ratio * q[outcome])


def hockey_stick(p: Distribution[Outcome], q: Distribution[Outcome], ratio: Exactable) -> Fraction:
    """The largest p(E) - ratio q(E) over all events E: the delta at e^epsilon = ratio."""
    factor = nonnegative(ratio, "ratio")
    event = distinguishing_event(p, q, factor)
    return p.probability(event) - factor * q.probability(event)


def hockey_stick_bounds(p: Distribution[Outcome], q: Distribution[Outcome], epsilon: Exactable) -> Bounds:
    """Two doubles around the hockey-stick divergence at e^epsilon."""
    level = nonnegative(epsilon, "epsilon")
    event = [outcome for outcome in p.support if _loss_exceeds(p[outcome], q[outcome], level)]
    ours, theirs = p.probability(event), q.probability(event)
    if not level or not theirs:
        return enclose(lambda: ours - theirs)
    return enclose(lambda: ball(ours) - ball(level).exp() * ball(theirs))


def _loss_exceeds(p: Fraction, q: Fraction, level: Fraction) -> bool:
    """Whether ln p/q > level. They tie only at 0, exactly: e to any other rational is transcendental."""
    return not q or certainly(lambda: (ball(p / q).log(), ball(level)))


def statistical_distance(p: Distribution[Outcome], q: Distribution[Outcome]) -> Fraction:
    """The most by which the probability of any one event differs; also called total variation."""
    return hockey_stick(p, q, 1)


def least_ratio(p: Distribution[Outcome], q: Distribution[Outcome], delta: Exactable = 0) -> Fraction | None:
    """The least ratio r >= 1 with hockey_stick(p, q, r) <= delta, or None where no ratio is enough.

    The divergence is piecewise linear in r and falls; its pieces meet at the likelihood ratios. This walks
    down them, largest first, to the piece that crosses delta.
    """
    allowed = probability(delta, "delta")
    ours, theirs = p.probability(outcome for outcome in p.support if not q[outcome]), Fraction(0)
    if ours > allowed:
        return None
    pieces = [(p[outcome] / q[outcome], outcome) for outcome in p.support if p[outcome] > q[outcome] > 0]
    for ratio, outcome in sorted(pieces, key=lambda piece: -piece[0]):
        if ours - ratio * theirs > allowed:
            break
        ours, theirs = ours + p[outcome], theirs + q[outcome]
    return max(Fraction(1), (ours - allowed) / theirs) if theirs else Fraction(1)


def ratio_event(
    p: Distribution[Outcome], q: Distribution[Outcome], ratio: Fraction | None
) -> tuple[Outcome, ...]:
    """The outcomes at least `ratio` times likelier under p, or, for None, impossible under q.

    Where `ratio` is `least_ratio(p, q, delta)`, above 1, this event E attains it: p(E) = ratio q(E) + delta.
    """
    return tuple(o for o in p.support if (not q[o] if ratio is None else p[o] >= ratio * q[o]))


def log_bounds(ratio: Fraction | None) -> Bounds:
    """Two doubles around ln ratio, for a ratio of at least 1; infinite for None."""
    if ratio is None:
        return _INFINITE
    return _NOTHING if ratio == 1 else enclose(lambda: ball(ratio).log())


# --- averages of the privacy loss -----------------------------------------------------------------


def kl_bounds(p: Distribution[Outcome], q: Distribution[Outcome]) -> Bounds:
    """Two doubles around the Kullback-Leibler divergence, the mean under p of ln p/q."""
    if not all(q[outcome] for outcome in p.support):
        return _INFINITE
    if p == q:
        return _NOTHING
    terms = [(chance, chance / q[outcome]) for outcome, chance in p.probabilities.items()]
    return enclose(lambda: sum((ball(chance) * ball(ratio).log() for chance, ratio in terms), arb(0)))


def renyi_moment(p: Distribution[Outcome], q: Distribution[Outcome], order: int) -> Fraction | None:
    """The mean under q of (p/q)^order: e^((order - 1) D), for the Renyi divergence D of that order."""
    power = whole(order, "order", least=2)
    if not all(q[outcome] for outcome in p.support):
        return None
    moments = (chance**power / q[outcome] ** (power - 1) for outcome, chance in p.probabilities.items())
    return sum(moments, Fraction(0))


# --- what it means for a person -------------------------------------------------------------------


def posterior(
    p: Distribution[Outcome], q: Distribution[Outcome], outcome: Outcome, prior: Exactable
) -> Fraction:
    """The probability of p after `outcome` is seen, for someone who gave it `prior` and q the rest before."""
    before = probability(prior, "prior")
    ours, theirs = before * p[outcome], (1 - before) * q[outcome]
    if not ours + theirs:
        raise InvalidInput(f"{outcome!r} cannot be seen under a prior of {prior}: there is no posterior")
    return ours / (ours + theirs)


def posterior_shift_bounds(ratio: Fraction | None) -> Bounds:
    """Two doubles around the most that any prior can move on an outcome `ratio` times likelier on one side.

    Claim: that is (sqrt(ratio) - 1) / (sqrt(ratio) + 1), or tanh(epsilon / 4), reached from the prior
    1 / (sqrt(ratio) + 1). For None it is 1, approached from priors near 0.
    """
    if ratio is None:
        return Bounds(1.0, 1.0)
    return _NOTHING if ratio == 1 else enclose(lambda: (ball(ratio).sqrt() - 1) / (ball(ratio).sqrt() + 1))


def simulation_square(laws: Iterable[Distribution[Outcome]]) -> Fraction | None:
    """The least e^(2 epsilon) at which one distribution is within e^(+-epsilon) of every law, everywhere.

    Claim: with the largest and the smallest probability that the laws give each outcome, it is the largest
    of (sum of largest)^2, 1 / (sum of smallest)^2 and every largest / smallest; None when one is infinite.
    """
    ranges = _ranges(laws)
    if not all(smallest for _, smallest in ranges.values()):
        return None
    most = sum((largest for largest, _ in ranges.values()), Fraction(0))
    least = sum((smallest for _, smallest in ranges.values()), Fraction(0))
    return max(most**2, 1 / least**2, *(largest / smallest for largest, smallest in ranges.values()))


def simulation_event(laws: Iterable[Distribution[Outcome]], square: Fraction | None) -> tuple[Outcome, ...]:
    """The outcomes that each force `simulation_square` up to `square`; none, when only the sums do."""
    ranges = _ranges(laws).items()
    if square is None:
        return tuple(outcome for outcome, (_, smallest) in ranges if not smallest)
    return tuple(o for o, (largest, smallest) in ranges if largest == square * smallest and square > 1)


def _ranges(laws: Iterable[Distribution[Outcome]]) -> dict[Outcome, tuple[Fraction, Fraction]]:
    """The largest and the smallest probability of every outcome that some law allows."""
    listed = list(laws)
    outcomes = dict.fromkeys(outcome for law in listed for outcome in law.support)
    return {o: (max(law[o] for law in listed), min(law[o] for law in listed)) for o in outcomes}
