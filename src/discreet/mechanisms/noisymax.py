"""Report noisy max: add integer noise to every score, and say only whose is the largest.

>>> m = NoisyMax(epsilon=1)
>>> m, m.error(confidence=0.95, candidates=100)
(NoisyMax(epsilon=1, sensitivity=1), 15)
>>> NoisyMax.calibrate(epsilon=1, sensitivity=0.5, grid=0.001)        # for real scores
NoisyMax(epsilon=1, grid=0.001, sensitivity=0.5)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from flint import arb

from discreet.errors import InvalidInput
from discreet.mechanisms.additive import Sensitive, choose_grid, guarantee_asked
from discreet.mechanisms.answers import add, to_steps
from discreet.mechanisms.scores import (
    affordable,
    fails_at_most,
    failure_of,
    read_failure,
    read_scores,
    steps_apart,
)
from discreet.mechanisms.search import least, least_whole
from discreet.mechanisms.selection import Selector, harmonic, rivals_of
from discreet.noise import SYSTEM, Source, discrete_laplace
from discreet.numbers import Exactable, fraction_text, nonnegative, positive
from discreet.privacy import Guarantee, PureDP
from discreet.privacy.reals import ball, enclose

__all__ = ["NoisyMax"]

# Parts into which a scale of noise is divided where a tail is bounded, and how far the sum goes, in scales.
_PARTS, _BELOW, _ABOVE = 16, 48, 26
# From so many scales on, the chances that each rival wins are added up instead.
_FAR = 200


@dataclass(frozen=True, repr=False)
class NoisyMax(Selector):
    """Chooses the largest of score[i] + discrete Laplace noise, on the integers or a grid; first of equals.

    Claim: if between neighbours each score differs by at most `sensitivity`, a release keeps pure `epsilon`,
    ties and rounding to the grid included. The noise has scale 2 * sensitivity / epsilon, without the 2 for
    monotonic scores, and on a grid a little more: see `steps_apart`. Only the index leaves.
    """

    grid: Fraction | None

    def __init__(
        self,
        epsilon: Exactable,
        sensitivity: Sensitive = 1,
        monotonic: bool = False,
        *,
        grid: Exactable | None = None,
    ) -> None:
        super().__init__(epsilon, sensitivity, monotonic)
        object.__setattr__(self, "grid", None if grid is None else positive(grid, "grid"))
        steps_apart(self.sensitivity, self.grid, monotonic)

    def release(self, scores: Any, *, source: Source = SYSTEM) -> int:
        """Return the index of the one chosen."""
        read = read_scores(scores)
        if self.grid is None and not read.whole:
            raise InvalidInput("these scores are real: choose NoisyMax(..., grid=) with a small public grid")
        steps = to_steps(read, self.grid or Fraction(1))
        noise = discrete_laplace(1 / self._step_rate, steps.shape, source=source)
        chosen: int = source.label(int(np.argmax(add(steps, np.asarray(noise)))))
        return chosen

    @property
    def _step_rate(self) -> Fraction:
        """The rate of the noise, for each step of the grid."""
        return self.epsilon / steps_apart(self.sensitivity, self.grid, self.monotonic)

    @classmethod
    def calibrate(
        cls,
        guarantee: Guarantee | None = None,
        *,
        epsilon: Exactable | None = None,
        delta: Exactable | None = None,
        rho: Exactable | None = None,
        mu: Exactable | None = None,
        sensitivity: Sensitive = 1,
        monotonic: bool = False,
        grid: Exactable | None = None,
    ) -> Self:
        """Return the most accurate one that keeps a promise; real scores get a fine grid if none is given."""
        promise = guarantee_asked(guarantee, epsilon, delta, rho, mu)
        most = affordable(promise, lambda e: PureDP(e) <= promise)
        return cls(most, sensitivity, monotonic, grid=choose_grid(sensitivity, grid, None)[0])

    def tail(self, t: Exactable, *, candidates: int) -> float:
        """Return a chance that is no lower than that of choosing one worse than the best by t or more.

        Claim: whatever the scores. For noise of few steps it is the chance for the worst scores; for more it
        is above that by less than a part in 15, as long as it matters.
        """
        gap, rivals = nonnegative(t, "t"), rivals_of(candidates)
        if not gap:
            return 1.0
        steps = math.ceil(gap) if self.grid is None else math.floor(gap / self.grid)
        return min(1.0, enclose(lambda: _rival_wins(self._step_rate, steps, rivals)).upper)

    def error(self, confidence: Exactable = 0.95, *, candidates: int) -> int | float:
        """Return a gap to the best that is not exceeded with this confidence: an int on the integers."""
        failure, rivals = failure_of(confidence), rivals_of(candidates)
        grid, rate = self.grid, self._step_rate
        further = 1 if grid is None else 0
        steps = least_whole(lambda m: fails_at_most(lambda: _rival_wins(rate, m + further, rivals), failure))
        return steps if grid is None else enclose(lambda: steps * grid).upper

    def expected_error(self, *, candidates: int) -> float:
        """Return the expected gap to the best, at most, rounded up.

        Claim: a rival that wins is behind by no more than its own noise less the best's. The size of noise is
        at most an exponential variate of its scale and half a step, so the largest of the rivals' is expected
        to be at most 1 + 1/2 + ... + 1/rivals scales and half a step. The best's is below zero by at most
        half a scale, on average, and rounding to a grid adds a step.
        """
        rivals, rounding = rivals_of(candidates), Fraction(1, 2) if self.grid is None else Fraction(3, 2)
        if not rivals:
            return 0.0
        step = self.grid or Fraction(1)

        def steps() -> arb:
            return (harmonic(rivals) + ball(Fraction(1, 2))) / ball(self._step_rate) + ball(rounding)

        return enclose(lambda: steps() * ball(step)).upper

    @classmethod
    def solve(
        cls,
        *,
        error: Exactable,
        failure: Exactable,
        candidates: int,
        sensitivity: Sensitive = 1,
        monotonic: bool = False,
        grid: Exactable | None = None,
    ) -> Self:
        """Return the most private one that is worse than the best by `error` with at most this chance."""
        gap, chance = positive(error, "error"), read_failure(failure)
        rivals, step = rivals_of(candidates), choose_grid(sensitivity, grid, None)[0]
        steps = math.ceil(gap) if step is None else math.floor(gap / step)
        if not steps:
            raise InvalidInput("an error below one step of the grid cannot be promised: choose a finer grid")
        if Fraction(rivals, rivals + 1) <= chance:
            raise InvalidInput(
                "choosing among so few candidates at random, without any score, fails as seldom as that: "
                "ask for a smaller failure"
            )

        def keeps(epsilon: Fraction) -> bool:
            rate = cls(epsilon, sensitivity, monotonic, grid=step)._step_rate
            return fails_at_most(lambda: _rival_wins(rate, steps, rivals), chance)

        return cls(least(keeps, Fraction(1)), sensitivity, monotonic, grid=step)

    def __repr__(self) -> str:
        return self._text() if self.grid is None else self._text(grid=fraction_text(self.grid))


def _rival_wins(rate: Fraction, m: int, rivals: int) -> arb:
    """Bound Pr(the largest of the rivals' noises, less m, reaches mine), from above.

    Claim: it is that chance if the scale is below 32 steps, and else no lower, and higher by less than a part
    in 15: the sum over my noise goes by blocks, each counted as if mine were the block's lowest.
    """
    if not rivals:
        return arb(0)
    if rate * m > _FAR:
        return rivals * _apart(rate, m)
    width = max(1, math.floor(1 / (rate * _PARTS)))
    start = -m - math.ceil(_BELOW / rate)
    below = total = _reaches(rate, 1 - start)
    while start * rate <= _ABOVE:
        upto = _reaches(rate, 1 - start - width)
        total += (upto - below) * _some_reaches(rate, start + m, rivals)
        below, start = upto, start + width
    return total + (1 - below) * _some_reaches(rate, start + m, rivals)


def _reaches(rate: Fraction, y: int) -> arb:
    """Return Pr(Z >= y), for discrete Laplace noise Z."""
    q = (-ball(rate)).exp()
    far = (-ball(rate * (y if y > 0 else 1 - y))).exp() / (1 + q)
    return far if y > 0 else 1 - far


def _some_reaches(rate: Fraction, y: int, rivals: int) -> arb:
    """Return Pr(some of the rivals' noises >= y)."""
    q = (-ball(rate)).exp()
    far = (-ball(rate * (y if y > 0 else 1 - y))).exp() / (1 + q)
    none = (-far).log1p() if y > 0 else far.log()
    return -(rivals * none).expm1()


def _apart(rate: Fraction, m: int) -> arb:
    """Return Pr(one noise exceeds another by m or more), for m >= 0."""
    q = (-ball(rate)).exp()
    gap = -(-ball(rate)).expm1()
    spread = (1 + q**2) / (gap * (1 + q))
    return (-ball(rate * m)).exp() * (gap * (m + spread) + q) / (1 + q) ** 2
