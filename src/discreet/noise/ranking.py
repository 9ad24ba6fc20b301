"""Who wins when exponential noise is added: exact order statistics of real-valued noise.

An exponential variate has no last digit, and none is needed to say which of several is the largest. Each
is known to 2**-40 at first, and to 40 bits more whenever that does not tell two of them apart. Adding
Exponential noise and reporting the winner is report-noisy-max, and has the law of permute-and-flip (Ding
et al. 2021, McKenna and Sheldon 2020).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.noise.blocks import block_sampler
from discreet.noise.coins import Size, bernoulli_exp, shape_of
from discreet.noise.energy import Energy
from discreet.noise.shares import random_place
from discreet.noise.source import SYSTEM, Source, checked
from discreet.numbers import Exactable, exact, positive, whole

__all__ = ["exact_ranking", "exponential_ranking"]

_BITS = 40
# Offsets this far below the highest, 2**22 scales, are taken for it until they turn up among the top.
_LOWEST = -(1 << 62)
# Variates drawn at a time.
_BATCH = 1 << 20


def exponential_ranking(
    offsets: Sequence[Exactable] | NDArray[Any],
    scale: Exactable = 1,
    *,
    top: int = 1,
    size: Size = None,
    source: Source = SYSTEM,
) -> Any:
    """Return the places of the `top` largest of offsets[i] + scale * E[i], largest first.

    Claim: the E[i] are independent Exponential(1) reals, and the ranking returned is the ranking of those
    reals, with nothing rounded. An array of `top` places; with `size`, one such array for each draw.

    >>> exponential_ranking([0, 1000, 10], scale=1, top=2).tolist()
    [1, 2]
    """
    top = whole(top, "top", least=1)
    spread = positive(scale, "scale")
    if isinstance(offsets, np.ndarray) and offsets.ndim != 1:
        raise InvalidInput(f"offsets must be one row of numbers, not an array of {offsets.ndim} dimensions")
    if isinstance(offsets, (str, bytes, bytearray)) or not isinstance(offsets, (Sequence, np.ndarray)):
        raise InvalidInput(f"offsets must be a list or an array of numbers, not {type(offsets).__name__}")
    levels = _Levels(_read(offsets), 1 / spread)
    if top > len(levels.values):
        raise InvalidInput(f"cannot rank the top {top} of {len(levels.values)} offsets")
    shape, source = shape_of(size), checked(source)
    return source.label(_rankings(levels, top, math.prod(shape), source).reshape(*shape, top))


def exact_ranking(
    values: Sequence[int | Fraction], unit: Fraction, top: int, source: Source
) -> NDArray[np.intp]:
    """Return the places of the `top` largest of values[i] * unit + E[i], for numbers of any length."""
    return source.label(_rankings(_Levels(values, unit), top, 1, source)[0])  # type: ignore[no-any-return]


def _read(offsets: Sequence[Exactable] | NDArray[Any]) -> Sequence[int | Fraction]:
    """Return offsets exactly; of plain integers, which are many and quick, as they are."""
    if isinstance(offsets, np.ndarray) and offsets.dtype.kind in "iu":
        whole_offsets: list[int] = offsets.tolist()
        return whole_offsets
    if all(type(offset) is int for offset in offsets):
        return offsets  # type: ignore[return-value]
    return [exact(offset, "offset") for offset in offsets]


@dataclass(frozen=True)
class _Levels:
    """Offsets in units of the noise: values[i] * unit."""

    values: Sequence[int | Fraction]
    unit: Fraction

    def __getitem__(self, place: int) -> Fraction:
        return self.values[place] * self.unit

    def floors(self, bits: int) -> list[int]:
        """Return floor(2**bits * (level - the highest level)) for each."""
        highest = max(self.values)
        top, bottom = self.unit.numerator << bits, self.unit.denominator
        below = (value - highest for value in self.values)
        return [(gap.numerator * top) // (gap.denominator * bottom) for gap in below]


def _rankings(levels: _Levels, top: int, draws: int, source: Source, bits: int = _BITS) -> NDArray[np.intp]:
    """Rank `draws` times, from the first `bits` bits of every variate wherever those suffice.

    floor(2**bits * E) is geometric with scale 2**bits. With it a noisy level, in units of 2**-bits above the
    highest offset, is known to lie between the integers `low` and `low + 2`, its offset being rounded down
    too; of an offset that is lower than `_LOWEST`, only the upper end is meant.
    """
    exact_floors = levels.floors(bits)
    floors = np.array([max(floor, _LOWEST) for floor in exact_floors], np.int64)
    count = len(exact_floors)
    sampler = block_sampler(Energy.laplace(Fraction(2**bits)), False)
    places = np.empty((draws, top), np.intp)
    rows = max(1, _BATCH // count)
    for start in range(0, draws, rows):
        part = places[start : start + rows]
        known = sampler.fill(len(part) * count, source).reshape(len(part), count)
        low = known + floors
        order = np.argsort(-low, axis=1, kind="stable")
        part[:] = order[:, :top]
        leading = np.take_along_axis(low, order[:, : top + 1], axis=1)
        unsure = (leading[:, :-1] - leading[:, 1:] < 2).any(axis=1) | (floors[part] == _LOWEST).any(axis=1)
        for row in np.flatnonzero(unsure):
            digits: list[int] = known[row].tolist()
            leaders = _leaders(exact_floors, digits, top)
            part[row] = _exact_ranking(leaders, levels, digits, bits, source)[:top]
    return places


def _leaders(floors: list[int], digits: list[int], top: int) -> list[int]:
    """Return the places that may be among the `top`, nearly in order.

    Claim: whoever is left out is below at least `top` others. With low = floor + digits, each is known to lie
    between low and low + 2, so one whose low is 2 or more below the top-th is below those.
    """
    lows = [floor + first for floor, first in zip(floors, digits, strict=True)]
    order = sorted(range(len(lows)), key=lambda place: -lows[place])
    least = lows[order[top - 1]]
    return [place for place in order if lows[place] + 2 > least]


class _Exponential:
    """An exponential variate known to lie between digits / 2**bits and (digits + 1) / 2**bits."""

    def __init__(self, digits: int, bits: int, source: Source) -> None:
        self.digits, self.bits, self.source = digits, bits, source

    def refine(self) -> None:
        """Learn more bits. Given those known, they are uniform but for a factor exp(-further / 2**bits)."""
        bits = self.bits + _BITS
        while True:
            further = random_place(_BITS, self.source)
            if bernoulli_exp(Fraction(further, 1 << bits), source=self.source):
                self.digits, self.bits = self.digits << _BITS | further, bits
                return


def _exact_ranking(
    order: list[int], levels: _Levels, digits: list[int], bits: int, source: Source
) -> list[int]:
    """Put `order`, nearly right, right, learning more bits of the variates that are compared in vain."""
    variates = [_Exponential(known, bits, source) for known in digits]

    def descending(i: int, j: int) -> int:
        while True:
            low_i, low_j = (levels[k] + Fraction(variates[k].digits, 1 << variates[k].bits) for k in (i, j))
            if low_i >= low_j + Fraction(1, 1 << variates[j].bits):
                return -1
            if low_j >= low_i + Fraction(1, 1 << variates[i].bits):
                return 1
            for variate in (variates[i], variates[j]):
                variate.refine()

    return sorted(order, key=cmp_to_key(descending))
