"""An index drawn with probability exactly proportional to multiplicity * exp(-gap).

The running sums of the weights cut [0, total) into pieces, and a uniform point falls into one. Doubles say
which, within a proven margin; the few points too close to a cut are settled by integers around the weights
and as many more bits of the point as it takes.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.noise import SYSTEM, Source
from discreet.noise.exponent import exp_bounds
from discreet.noise.source import checked

__all__ = ["Weights", "weighted_index"]

_WORD, _GUARD = 64, 32
# A gap of this much or more counts as no weight in doubles: exp(-256) < 2**-369, which the margin covers.
_FAR, _FAR_BITS = 256, 369
# Each weight in doubles is off by less than this part of itself, and each sum of n by n * 2**-52 besides.
_WEIGHT_MARGIN, _SUM_MARGIN = 2.0**-41, 2.0**-52
# Multiplicities this long are not put into doubles.
_LONGEST = 600
# What exp(-r) leaves out after this many terms, for r <= 1, is below 2**-60.
_TERMS = 20

Reals = NDArray[np.float64]


def weighted_index(
    gaps: Sequence[Fraction], multiplicities: Sequence[int] | None = None, *, source: Source = SYSTEM
) -> int:
    """Return i with probability exactly proportional to multiplicities[i] * exp(-gaps[i]).

    Gaps are rationals of at least 0, multiplicities integers of at least 0, not all 0 (1 each, if absent).
    Claim: the probability is exact, however large these are.
    """
    source = checked(source)
    count = len(gaps)
    times = None if multiplicities is None else [int(m) for m in multiplicities]
    if not count or (times is not None and len(times) != count):
        raise InvalidInput("give at least one gap, and as many multiplicities as gaps")
    lowest = min(gaps)
    if lowest < 0 or (times is not None and (min(times) < 0 or not any(times))):
        raise InvalidInput("gaps and multiplicities must not be negative, nor all multiplicities 0")
    least = lowest if times is None else min(gap for gap, m in zip(gaps, times, strict=True) if m)
    above = gaps if not least else [max(gap - least, Fraction(0)) for gap in gaps]
    weights = Weights(np.array([nearest(gap) for gap in above]), lambda i: Fraction(above[i]), times)
    return source.label(weights.draw(source))  # type: ignore[no-any-return]


def nearest(gap: Fraction) -> float:
    """Return the double nearest to a gap, or infinity."""
    try:
        return gap.numerator / gap.denominator
    except OverflowError:
        return math.inf


class Weights:
    """The weights multiplicity * exp(-gap) of indices 0, 1, ...

    `near` holds each gap in doubles, off by at most 2**-50 of itself or 2**-1000, infinite where none is; and
    `gap(i)` returns it exactly. Some index of a positive multiplicity has the gap 0.
    Claim: draws are independent, and each is i with probability exactly proportional to its weight.
    """

    def __init__(self, near: Reals, gap: Callable[[int], Fraction], times: Sequence[int] | None) -> None:
        self.count, self._gap, self._times = len(near), gap, times
        self._times_bits = max(times).bit_length() if times is not None else 1
        self._cuts: Reals = np.zeros(self.count)
        self._margin = math.inf
        if self._times_bits <= _LONGEST:
            self._cut(near)

    def _cut(self, near: Reals) -> None:
        """Sum the weights in doubles, and bound how far the sums are from the exact ones."""
        weights = exp_minus(near)
        total_times = float(self.count)
        if self._times is not None:
            times = np.array(self._times, np.float64)
            weights *= times
            total_times = float(times.sum())
        self._cuts = np.cumsum(weights)
        total = float(self._cuts[-1])
        off = total * (_WEIGHT_MARGIN + self.count * _SUM_MARGIN) + total_times * 2.0**-_FAR_BITS
        self._margin = 4 * off

    def draw(self, source: Source) -> int:
        """Draw one index."""
        return int(self.fill(1, source)[0])

    def fill(self, count: int, source: Source) -> NDArray[np.intp]:
        """Draw `count` indices.

        A point is U * total for a uniform U, of which a word shows the first 64 bits.
        """
        words = source.words(count)
        points = words.astype(np.float64) * (2.0**-_WORD * float(self._cuts[-1]))
        places: NDArray[np.intp] = np.searchsorted(self._cuts, points, side="right")
        np.minimum(places, self.count - 1, out=places)
        before = np.where(places > 0, self._cuts[places - 1] + self._margin, 0.0)
        sure = (before <= points) & (points <= self._cuts[places] - self._margin)
        for i in np.flatnonzero(~sure):
            places[i] = self.settle(int(words[i]), _WORD, source)
        return places

    def settle(self, drawn: int, bits: int, source: Source) -> int:
        """Return the index of U * total, where the first `bits` bits of U are the integer `drawn`.

        Claim: it is returned when every U with the bits seen and all weights within their enclosures agree.
        """
        while True:
            low, high = self._enclosed_cuts(bits + _GUARD + self.count.bit_length() + self._times_bits)
            # The first index to end certainly above the point: later ones begin higher still.
            place = bisect_left(low, -(-(drawn + 1) * high[-1] >> bits))
            if place < self.count and (not place or high[place - 1] << bits <= drawn * low[-1]):
                return place
            drawn = drawn << _WORD | int.from_bytes(source.bytes(8), "little")
            bits += _WORD

    def _enclosed_cuts(self, bits: int) -> tuple[list[int], list[int]]:
        """Enclose 2**bits times the running sums of the weights."""
        times = self._times
        bounds = [
            exp_bounds(self._gap(i), bits) if times is None or times[i] else (0, 0) for i in range(self.count)
        ]
        if times is not None:
            bounds = [(low * m, high * m) for (low, high), m in zip(bounds, times, strict=True)]
        return list(accumulate(low for low, _ in bounds)), list(accumulate(high for _, high in bounds))


def exp_minus(gaps: Reals) -> Reals:
    """Return exp(-gap) for gaps of at least 0, and 0 from a gap of 256 on.

    Claim: for a gap below 256 it is off by less than 2**-47 of itself, by nothing but IEEE additions and
    multiplications: exp(-whole part), from a table made with integers, times a Taylor sum.
    """
    whole = np.floor(np.minimum(gaps, float(_FAR)))
    rest = np.minimum(gaps, float(_FAR)) - whole
    power = np.ones_like(rest)
    for order in range(_TERMS, 0, -1):
        power = 1.0 - power * rest / order
    result: Reals = _table()[whole.astype(np.intp)] * power
    return result


@lru_cache(maxsize=1)
def _table() -> NDArray[Any]:
    """Return exp(-n) for n = 0, ..., 255, each off by less than 2**-52 of itself, and a 0."""
    powers = [exp_bounds(Fraction(n), 2 * n + _WORD)[0] / (1 << 2 * n + _WORD) for n in range(_FAR)]
    return np.array([*powers, 0.0])
