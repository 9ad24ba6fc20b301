"""The sparse vector technique: which of many answers are above a threshold, for the price of a few.

A run draws one noisy threshold, compares one noisy answer after another with it, and ends with the last of
`positives` answers found above. However many were below, the whole run costs epsilon.

>>> m = SparseVector(epsilon=1, positives=2)
>>> flags = m.release([0, 3, 950, 2, 4, 910, 0, 7, 990], threshold=500)
>>> flags                                        # it has stopped after the second
[False, False, True, False, False, True]
>>> run = m.start(threshold=500)                 # or one at a time, each chosen in the light of the last
>>> run.above(7), run.above(950), run.remaining
(False, True, 1)
"""

from __future__ import annotations

import math
import os
import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, Self

import numpy as np
from flint import arb

from discreet.errors import InvalidInput, Unsupported
from discreet.mechanisms.additive import Bound, Sensitive, choose_grid, guarantee_asked, relation_of
from discreet.mechanisms.answers import Answers, add, read_answers, to_steps
from discreet.mechanisms.scores import (
    affordable,
    each_moves,
    fails_at_most,
    failure_of,
    one_way,
    read_failure,
    read_scores,
    read_sensitivity,
    steps_apart,
    steps_each,
)
from discreet.mechanisms.search import least, least_whole
from discreet.mechanisms.selection import harmonic
from discreet.mechanisms.sensitivity import Sensitivity
from discreet.mechanisms.tails import DiscreteLaplaceLaw
from discreet.noise import SYSTEM, Source, discrete_laplace
from discreet.noise.source import checked
from discreet.numbers import Exactable, exact, fraction_text, nonnegative, positive, whole
from discreet.privacy import Guarantee, Neighbours, PrivacyLoss, PureDP
from discreet.privacy.reals import ball, enclose

__all__ = ["SparseRun", "SparseVector"]

_MOST_POSITIVES = 10**9
# Bits of the part of epsilon that pays for the noisy threshold.
_SPLIT_BITS = 20
# Parts into which a scale is divided where a tail is bounded, and how far the sum goes, in scales.
_PARTS, _BEYOND = 16, 60
# From so many scales on, the union bound is used instead.
_FAR = 2000


@dataclass(frozen=True, repr=False)
class SparseVector:
    """Tells of answers, in turn, whether each is above a threshold, until it has said yes `positives` times.

    Claim: if between neighbours each answer differs by at most `sensitivity`, a whole run keeps pure
    `epsilon`, also where each question is chosen in the light of what was said before. `monotonic`: one unit
    more lowers no answer (or: raises none). Without a grid answers are whole; with one they are rounded.
    This is Algorithm 7 of Lyu, Su and Li (2017) without numeric answers, on the integers.
    """

    epsilon: Fraction
    sensitivity: Fraction | Sensitivity
    positives: int
    monotonic: bool
    grid: Fraction | None

    def __init__(
        self,
        epsilon: Exactable,
        sensitivity: Sensitive = 1,
        positives: int = 1,
        monotonic: bool = False,
        *,
        grid: Exactable | None = None,
    ) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", read_sensitivity(sensitivity, monotonic))
        count = whole(positives, "positives", least=1)
        if count > _MOST_POSITIVES:
            raise InvalidInput(f"positives may be {_MOST_POSITIVES:,} at most, and each costs as much")
        object.__setattr__(self, "positives", count)
        object.__setattr__(self, "monotonic", monotonic)
        object.__setattr__(self, "grid", None if grid is None else positive(grid, "grid"))
        steps_apart(self.sensitivity, self.grid, monotonic)

    # --- release -------------------------------------------------------------------------------------

    def release(self, answers: Any, threshold: Exactable, *, source: Source = SYSTEM) -> Any:
        """Return for each answer whether it is above, as a list of bools that ends where the run stops."""
        if hasattr(answers, "__next__"):
            raise InvalidInput(
                "a stream has no end that is known: begin run = mechanism.start(threshold), and ask "
                "run.above(answer) of one answer at a time"
            )
        read = read_scores(answers)
        level, steps = self._public(threshold), self._steps(read)
        level += self._draw(self._threshold_rate, None, source)
        above = add(steps, self._draw(self._answer_rate, steps.shape, source)) >= level
        found = np.flatnonzero(above)[: self.positives]
        end = int(found[-1]) + 1 if found.size == self.positives else len(above)
        return source.label([bool(flag) for flag in above[:end]])

    def start(self, threshold: Exactable, *, source: Source = SYSTEM) -> SparseRun:
        """Begin a run in which answers come one at a time. It is paid for now, however it ends."""
        return SparseRun(self, self._public(threshold), source)

    def _public(self, threshold: Exactable) -> int:
        """Return the public threshold in steps: whole answers reach it if they reach its ceiling."""
        level = exact(threshold, "threshold")
        return math.ceil(level) if self.grid is None else math.floor(level / self.grid + Fraction(1, 2))

    def _steps(self, read: Answers) -> Any:
        if self.grid is None and not read.whole:
            raise InvalidInput(
                "these answers are real: choose SparseVector(..., grid=) with a small public grid"
            )
        return to_steps(read, self.grid or Fraction(1))

    @staticmethod
    def _draw(rate: Fraction, shape: tuple[int, ...] | None, source: Source) -> Any:
        drawn = discrete_laplace(1 / rate, shape, source=source)
        return int(drawn) if shape is None else np.asarray(drawn)

    # --- what it costs -------------------------------------------------------------------------------

    def loss(self, *, neighbours: Neighbours | str | None = None) -> PrivacyLoss:
        """Return the worst loss that pure epsilon allows."""
        relation = relation_of(self.sensitivity, neighbours)
        if self.monotonic:
            one_way(relation)
        return PrivacyLoss.pure(self.epsilon, neighbours=relation)

    def guarantee(self) -> PureDP:
        """Return the pure promise of a whole run."""
        return PureDP(self.epsilon)

    @property
    def _for_threshold(self) -> Fraction:
        """The part of epsilon that pays for the threshold: 1 to (2 positives)**(2/3), rounded.

        Any split keeps the promise; this one nearly minimises the variance of a comparison.
        """
        weight = (self.positives * (1 if self.monotonic else 2)) ** (2 / 3)
        whole_parts = max(1, round(2**_SPLIT_BITS / (1 + weight)))
        return self.epsilon * Fraction(whole_parts, 2**_SPLIT_BITS)

    @property
    def _threshold_rate(self) -> Fraction:
        """The rate of the threshold's noise, a step."""
        return self._for_threshold / steps_each(self.sensitivity, self.grid)

    @property
    def _answer_rate(self) -> Fraction:
        """The rate of each answer's noise, a step."""
        apart = steps_apart(self.sensitivity, self.grid, self.monotonic)
        return (self.epsilon - self._for_threshold) / (self.positives * apart)

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
        positives: int = 1,
        monotonic: bool = False,
        grid: Exactable | None = None,
    ) -> Self:
        """Return the most accurate one that keeps a promise: `epsilon=` (and `delta=`), `rho=` or `mu=`.

        For answers that are not whole the grid is `grid`, or a fine one.
        """
        promise = guarantee_asked(guarantee, epsilon, delta, rho, mu)
        most = affordable(promise, lambda e: PureDP(e) <= promise)
        step = choose_grid(sensitivity, grid, None)[0]
        return cls(most, sensitivity, positives, monotonic, grid=step)

    # --- how often it is wrong ----------------------------------------------------------------------

    def tail(self, t: Exactable, *, answers: int, bound: Bound = "exact") -> float:
        """Return a chance no lower than that of judging any of so many answers wrongly by t or more.

        That is, above though it is threshold - t or less, or not above though it is threshold + t or more. (A
        threshold for whole answers counts as its ceiling.) `bound="union"` is the textbook's.
        Claim: whatever the answers, also if each is chosen in the light of what was said before. For whole
        answers that are fixed, and noise of few steps, it is at most twice the chance for the worst of them.
        """
        gap, count = nonnegative(t, "t"), whole(answers, "answers", least=1)
        steps = math.ceil(gap) if self.grid is None else math.floor(gap / self.grid)
        if not steps:
            return 1.0
        return min(1.0, enclose(lambda: self._misjudges(steps, count, bound)).upper)

    def error(self, confidence: Exactable = 0.95, *, answers: int, bound: Bound = "exact") -> int | float:
        """Return a distance that no wrong judgement of so many answers exceeds, with this confidence.

        An int on the integers, else a float, rounded up.
        """
        failure, count, grid = failure_of(confidence), whole(answers, "answers", least=1), self.grid
        further = 1 if grid is None else 0

        def keeps(m: int) -> bool:
            return fails_at_most(lambda: self._misjudges(m + further, count, bound), failure)

        steps = least_whole(keeps)
        return steps if grid is None else enclose(lambda: steps * grid).upper

    def expected_error(self, *, answers: int) -> float:
        """Return how far off the worst of so many judgements is expected to be, at most, rounded up.

        Claim: whatever the answers, also if each is chosen in the light of what was said before. A judgement
        is off by no more than the sizes of the threshold's noise and of the answer's own, which is at most an
        exponential variate of its scale and half a step; so the largest of m is expected to be at most
        1 + 1/2 + ... + 1/m scales and half a step. Rounding to a grid adds a step.
        """
        count, step = whole(answers, "answers", least=1), self.grid or Fraction(1)
        rounding = Fraction(1, 2) if self.grid is None else Fraction(3, 2)

        def steps() -> arb:
            threshold = DiscreteLaplaceLaw(self._threshold_rate).mean_size()
            return threshold + harmonic(count) / ball(self._answer_rate) + ball(rounding)

        return enclose(lambda: steps() * ball(step)).upper

    @classmethod
    def solve(
        cls,
        *,
        error: Exactable,
        failure: Exactable,
        answers: int,
        sensitivity: Sensitive = 1,
        positives: int = 1,
        monotonic: bool = False,
        grid: Exactable | None = None,
        bound: Bound = "exact",
    ) -> Self:
        """Return the most private one that judges any answer wrongly by `error` with at most this chance."""
        gap, chance = positive(error, "error"), read_failure(failure)
        count, step = whole(answers, "answers", least=1), choose_grid(sensitivity, grid, None)[0]
        steps = math.ceil(gap) if step is None else math.floor(gap / step)
        if not steps:
            raise InvalidInput("an error below one step of the grid cannot be promised: choose a finer grid")

        def keeps(epsilon: Fraction) -> bool:
            mechanism = cls(epsilon, sensitivity, positives, monotonic, grid=step)
            return fails_at_most(lambda: mechanism._misjudges(steps, count, bound), chance)

        return cls(least(keeps, Fraction(1)), sensitivity, positives, monotonic, grid=step)

    def _misjudges(self, m: int, count: int, bound: Bound) -> arb:
        """Bound Pr(any of `count` answers is judged wrongly by m steps or more), for m >= 0."""
        if bound not in ("exact", "union"):
            raise InvalidInput(f"bound must be 'exact' or 'union', not {bound!r}")
        threshold, answer = DiscreteLaplaceLaw(self._threshold_rate), DiscreteLaplaceLaw(self._answer_rate)
        if bound == "union" or m * threshold.rate > _FAR:
            return threshold.tail(-(-m // 2)) + count * answer.tail(m // 2 + 1)
        return _crosses(threshold.rate, answer.rate, m, count)

    def __repr__(self) -> str:
        shown = {
            "epsilon": fraction_text(self.epsilon),
            "sensitivity": fraction_text(each_moves(self.sensitivity)),
            "positives": str(self.positives),
            **({"monotonic": "True"} if self.monotonic else {}),
            **({} if self.grid is None else {"grid": fraction_text(self.grid)}),
        }
        return f"SparseVector({', '.join(f'{name}={text}' for name, text in shown.items())})"


def _crosses(threshold_rate: Fraction, answer_rate: Fraction, m: int, count: int) -> arb:
    """Return E[1 - (1 - Pr(Z >= m - Y))**count], at least, for Y geometric and Z discrete Laplace.

    Claim: that is no less than the chance that one of `count` answers is judged wrongly by m steps or more.
    Summed by blocks of Y, each counted as if Y were its highest: exactly, if both scales are below 32 steps.
    """
    width = max(1, math.floor(1 / (_PARTS * max(threshold_rate, answer_rate))))
    law, total, start = DiscreteLaplaceLaw(answer_rate), arb(0), 0
    within = arb(1)
    while start * threshold_rate <= m * threshold_rate + _BEYOND:
        end = start + width
        beyond = (-ball(threshold_rate * end)).exp()
        total += (within - beyond) * _some(law, m - end + 1, count)
        within, start = beyond, end
    return total + within


def _some(law: DiscreteLaplaceLaw, y: int, count: int) -> arb:
    """Return Pr(one of `count` noises is y or more)."""
    if y > 0:
        return -(count * (-law.tail(y) / 2).log1p()).expm1()
    return -(count * (law.tail(1 - y) / 2).log()).expm1()


class SparseRun:
    """One run of a `SparseVector`, which answers until it has said yes as often as was agreed.

    Claim: all that it ever says, together, keeps the mechanism's promise; it is made once, by `start`, works
    in any thread of the process that made it, and can be neither copied nor stored.
    """

    __slots__ = ("_level", "_lock", "_mechanism", "_process", "_remaining", "_source")

    def __init__(self, mechanism: SparseVector, level: int, source: Source) -> None:
        self._mechanism, self._source, self._lock = mechanism, checked(source), threading.Lock()
        self._level = level + mechanism._draw(mechanism._threshold_rate, None, source)
        self._remaining, self._process = mechanism.positives, os.getpid()

    @property
    def remaining(self) -> int:
        """How many more answers may be found above."""
        return self._remaining

    def above(self, answer: Any) -> bool:
        """Tell whether an answer is above the threshold."""
        if os.getpid() != self._process:
            raise Unsupported(
                "a run belongs to the process that began it: begin another here, which costs again"
            )
        with self._lock:
            if not self._remaining:
                raise Unsupported(
                    f"this run has found {self._mechanism.positives} above, which is what was paid for, and "
                    "has stopped: begin another with start(threshold), or choose more positives= at first"
                )
            steps = self._mechanism._steps(_one(answer))
            noise = self._mechanism._draw(self._mechanism._answer_rate, None, self._source)
            above = int(steps[()]) + noise >= self._level
            self._remaining -= above
        flag: bool = self._source.label(above)
        return flag

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise Unsupported(
            "a run cannot be copied or stored: its copies would share one noisy threshold, and together say "
            "more than was paid for"
        )

    def __repr__(self) -> str:
        return f"<SparseRun of {self._mechanism!r}, {self._remaining} remaining>"


def _one(answer: Any) -> Answers:
    read = read_answers(answer)
    if read.values.ndim:
        raise InvalidInput("give one answer at a time, or a whole list to SparseVector.release")
    return read
