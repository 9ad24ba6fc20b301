"""Ranks of values on a public grid: how they are read, and candidates for a quantile with rank errors.

Candidates come in runs that share one rank error, so that a wide grid costs no more than a narrow one.
Proofs: docs/proofs/quantiles.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.mechanisms.answers import Answers, from_step, to_steps
from discreet.mechanisms.scores import read_scores
from discreet.mechanisms.weighted import Weights, nearest
from discreet.noise import Source
from discreet.noise.coins import uniform

__all__ = ["Candidates", "choose", "cuts", "expected_ties", "points", "read_places", "values_at"]

Ints = NDArray[Any]

_HALF = 1 << 62
# From here on ties are bounded at once.
_MOST_TIES = 500


class Candidates(NamedTuple):
    """Runs of candidates: where each begins, how many they are, and the rank error of each, times a whole."""

    starts: Ints
    times: Ints
    errors: Ints


def expected_ties(n: int, bits: int) -> Fraction:
    """Bound the expected greatest number of equal ones among n values that end in random bits.

    Claim: more than c are equal with a chance of at most C(n, c + 1) / 2**(bits c), and the expectation is
    the sum of these chances over c >= 0, of which none is above 1. From c = 2 e n / 2**bits on they are below
    2**(bits - c - 1), because C(n, k) <= (e n / k)**k.
    """
    far = 6 * n // 2**bits + 2
    if far > _MOST_TIES:
        return Fraction(far + bits + 1)
    total, c = Fraction(min(n, 1)), 1
    while c < far + 2 * bits:
        chance = Fraction(math.comb(n, c + 1), 1 << bits * c)
        total += min(Fraction(1), Fraction(math.ceil(chance * 2**40), 2**40))
        c += 1
    return total + Fraction(4, 1 << bits)


def points(values: Ints, low: int, high: int, target: Fraction) -> Candidates:
    """Return the grid points from low to high as candidates for a quantile of the sorted values.

    Claim: the error of v is the distance from target * n to [values below v, values not above v], times the
    target's denominator. Points between two neighbouring values have one error, so they are one run.
    """
    distinct, counts = np.unique(values, return_counts=True)
    ranks = np.concatenate([[0], np.cumsum(counts)])
    edges = np.concatenate([[low - 1], distinct, [high + 1]])
    runs = 2 * len(distinct) + 1
    starts, times, below, upto = (np.ones(runs, np.int64) for _ in range(4))
    starts[::2], starts[1::2] = edges[:-1] + 1, distinct
    times[::2] = np.diff(edges) - 1
    below[::2], below[1::2] = ranks, ranks[:-1]
    upto[::2], upto[1::2] = ranks, ranks[1:]
    return Candidates(starts, times, _distances(below, upto, target, len(values)))


def cuts(values: Ints, low: int, high: int, target: Fraction) -> Candidates:
    """Return the places from low to high + 1 at which sorted values can be cut in two.

    Claim: the error of a cut is |values below it - target * n|, times the target's denominator.
    """
    edges = np.concatenate([[low - 1], values, [high + 1]])
    below = np.arange(len(values) + 1)
    return Candidates(edges[:-1] + 1, np.diff(edges), _distances(below, below, target, len(values)))


def _distances(below: Ints, upto: Ints, target: Fraction, n: int) -> Ints:
    """Return max(0, below - target * n, target * n - upto), times the target's denominator."""
    if n * target.denominator >= _HALF:
        below, upto = below.astype(object), upto.astype(object)
    wanted = target.numerator * n
    missed: Ints = np.maximum(below * target.denominator - wanted, wanted - upto * target.denominator)
    return np.maximum(missed, 0)


def choose(candidates: Candidates, rate: Fraction, target: Fraction, source: Source) -> int:
    """Return a candidate with probability exactly proportional to exp(-rate * rank error).

    Claim: a run is drawn with the weight of all that are in it, exactly, and one of these uniformly.
    """
    starts, times, errors = (part[candidates.times > 0] for part in candidates)
    unit, above = rate / target.denominator, errors - errors.min()
    if Fraction(1, 1 << 900) < unit < 1 << 500:
        near = above.astype(np.float64) * nearest(unit)
    else:
        near = np.array([nearest(int(error) * unit) for error in above])
    run = Weights(near, lambda i: int(above[i]) * unit, times.tolist()).draw(source)
    return int(starts[run]) + int(uniform(int(times[run]), source=source))


# --- values onto the grid -----------------------------------------------------------------------------


def read_places(data: Any, bounds: tuple[Fraction, Fraction], grid: Fraction | None) -> Ints:
    """Return the places of the values on the grid, clipped: 0 is the lower bound.

    Claim: whether data are refused depends on their types, but for NaN and infinity. That there are none is
    no reason: only a list without values has no type to judge by.
    """
    found = _at_least_one(data)
    read = read_scores(found)
    if grid is None and not read.whole:
        raise InvalidInput(
            "these quantiles are of whole values, and others are here: choose a grid for real ones, such "
            "as Quantiles(..., grid=0.01)"
        )
    step = grid or Fraction(1)
    low, high = (int(bound / step) for bound in bounds)
    steps = to_steps(_roughly_clipped(read, *bounds), step)
    if max(-low, high) >= _HALF:
        steps = steps.astype(object)
    places: Ints = (np.clip(steps, low, high) - low).astype(np.int64)
    return places if found is data else places[:0]


def values_at(places: list[int], low: Fraction, grid: Fraction | None) -> NDArray[Any]:
    """Return the values at places in order: ints, or the doubles nearest to multiples of the grid."""
    steps = [int(low / (grid or 1)) + place for place in places]
    if grid is not None:
        return np.array([from_step(step, grid) for step in steps])
    return np.array(steps, np.int64 if steps[0] > -_HALF and steps[-1] < _HALF else object)


def _at_least_one(data: Any) -> Any:
    """Return data that have a value; instead of none, a zero of their type."""
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes, bytearray)) and not len(data):
        return [0]
    empty = hasattr(data, "__array__") and not isinstance(data, np.ma.MaskedArray) and np.shape(data) == (0,)
    return np.zeros(1, np.asarray(data).dtype) if empty else data


def _roughly_clipped(read: Answers, low: Fraction, high: Fraction) -> Answers:
    """Clip doubles to just outside the bounds, so that rounding them does not need long integers."""
    if read.values.dtype != np.float64:
        return read
    edges = math.nextafter(float(low), -math.inf), math.nextafter(float(high), math.inf)
    return Answers(np.clip(read.values, *edges), read.whole, read.scalar, read.inexact)
