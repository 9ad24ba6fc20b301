"""Scores of candidates, or answers one after another: how they are read, and how far each of them moves.

What selection and the sparse vector technique share. Between neighbours every score differs by at most the
sensitivity, so it is the l-infinity norm that counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb

from discreet.errors import InvalidInput, Unsupported
from discreet.mechanisms.additive import Sensitive
from discreet.mechanisms.answers import Answers, read_answers
from discreet.mechanisms.search import greatest
from discreet.mechanisms.sensitivity import Sensitivity
from discreet.numbers import Exactable, fraction_text, positive, probability
from discreet.privacy import ApproxDP, Guarantee, Neighbours, PureDP
from discreet.privacy.neighbours import ADD_REMOVE
from discreet.privacy.reals import Inexact, ball, certainly

__all__ = [
    "affordable",
    "each_moves",
    "fails_at_most",
    "failure_of",
    "one_way",
    "read_failure",
    "read_scores",
    "read_sensitivity",
    "steps_apart",
    "steps_each",
]


def read_sensitivity(sensitivity: Sensitive, monotonic: bool) -> Fraction | Sensitivity:
    """Read how far each score moves; with monotonic scores, refuse a relation that moves them both ways."""
    if not isinstance(monotonic, bool):
        raise InvalidInput(f"monotonic must be True or False, not {type(monotonic).__name__}")
    if not isinstance(sensitivity, Sensitivity):
        return positive(sensitivity, "sensitivity")
    if monotonic:
        one_way(sensitivity.neighbours)
    return sensitivity


def one_way(relation: Neighbours) -> None:
    """Refuse a relation under which scores that one unit only raises may rise and fall at once."""
    if relation != ADD_REMOVE:
        raise Unsupported(
            f"monotonic scores all move one way when one unit is added or removed; under {relation!r} some "
            "may rise while others fall: leave out monotonic=True"
        )


def each_moves(sensitivity: Fraction | Sensitivity) -> Fraction:
    """Return the most that one score moves: the sensitivity in l-infinity."""
    return sensitivity.linf if isinstance(sensitivity, Sensitivity) else sensitivity


def steps_each(sensitivity: Fraction | Sensitivity, grid: Fraction | None) -> int:
    """Return how many steps of the grid one score can move, once it is rounded to it.

    Claim: integers move by at most floor(linf). Real ones that differ by at most linf + grid, so that a
    float's own rounding is covered, by at most ceil(linf / grid) + 1.
    """
    far = each_moves(sensitivity)
    if grid is not None:
        return math.ceil(far / grid) + 1
    if far < 1 or (isinstance(sensitivity, Sensitivity) and not sensitivity.whole):
        raise InvalidInput(
            "without a grid, scores and answers are whole and the sensitivity is at least 1: for real ones "
            f"choose grid=, a small part of the sensitivity, such as {fraction_text(far / 1024)}"
        )
    return math.floor(far)


def steps_apart(sensitivity: Fraction | Sensitivity, grid: Fraction | None, monotonic: bool) -> int:
    """Return by how many steps two scores together, or a score and a threshold, can move apart.

    Claim: twice what one moves; if all move one way, once; and on a grid one step more than once, since a
    float's own rounding may move a score the other way, by less than a step, and so over the edge of one.
    """
    each = steps_each(sensitivity, grid)
    return each + (grid is not None) if monotonic else 2 * each


def read_scores(scores: Any) -> Answers:
    """Read a list or an array of numbers, exactly, or refuse it."""
    read = read_answers(scores)
    if read.values.ndim != 1:
        shape = "a single number" if read.scalar else f"an array of {read.values.ndim} dimensions"
        raise InvalidInput(f"give a list, or an array of one dimension, with a number each, not {shape}")
    return read


def affordable(promise: Guarantee, keeps: Callable[[Fraction], bool]) -> Fraction:
    """Return the epsilon of a promise that is pure, or else the greatest that is seen to keep it."""
    pure = isinstance(promise, PureDP) or (isinstance(promise, ApproxDP) and not promise.delta)
    return promise.figures()[0] if pure else greatest(keeps, Fraction(1))


def fails_at_most(chance: Callable[[], arb], failure: Fraction) -> bool:
    """Tell whether a chance is at most `failure`; where that cannot be decided, no."""
    try:
        return not certainly(lambda: (chance(), ball(failure)))
    except Inexact:
        return False


def failure_of(confidence: Exactable) -> Fraction:
    """Return the chance that a confidence leaves, above 0."""
    sure = probability(confidence, "confidence")
    if sure == 1:
        raise InvalidInput("noise has no end: ask for a confidence below 1, such as 0.999999")
    return 1 - sure


def read_failure(failure: Exactable) -> Fraction:
    """Read a chance that is neither 0 nor 1."""
    chance = probability(failure, "failure")
    if chance in (0, 1):
        raise InvalidInput("failure must be above 0 and below 1: no noise never fails, and any may always")
    return chance
