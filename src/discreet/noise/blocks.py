"""Drawing by the million: a look-up that settles nearly every draw, and what to do with the rest.

The top 16 bits of a word settle a draw when all words that begin with them lie in the sure part of one
block (see `shares`). So one look-up and one addition make a draw, except for a few per cent. Those get 48
more bits and are compared in double precision; whatever that cannot tell within a safe margin (about one
in 10**10) goes through `Shares.settle`, which is exact.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.noise.energy import Energy
from discreet.noise.shares import WORD_BITS, Shares, random_place
from discreet.noise.source import Source, Words

__all__ = ["BlockSampler", "block_sampler"]

_CELL_BITS = 16
_REST_BITS = WORD_BITS - _CELL_BITS
# Look-ups are made on arrays that fit the nearest cache, the closer look on what a whole batch left over.
_CHUNK, _BATCH = 1 << 15, 1 << 20
_NOWHERE = np.empty(0, np.intp)

# What a look-up yields where it does not settle a draw: far below any base that fits 64 bits, and odd, so
# that it is none of those that do not.
_UNSETTLED = -(1 << 62) - 1

# Room on both sides of the comparison in doubles: its error is below 2**-45 of a share, and two words.
_MARGIN, _MARGIN_WORDS = 2.0**-40, 4.0

Integers = NDArray[np.int64]


class BlockSampler:
    """Draws from P(x) proportional to exp(-energy(|x|)).

    Claim: given a source of independent uniform bits, draws are independent and have exactly this law,
    whether they are made one by one or many at once.
    """

    def __init__(self, shares: Shares) -> None:
        """Make the look-up tables for a division of the words."""
        self.shares = shares
        self.place_bits = shares.place_bits
        self.table = _tabulate(shares)
        if self.place_bits <= _REST_BITS:
            self._closer_look = _CloserLook(shares)
            lane = next(size for size in (16, 32, 64) if size >= _CELL_BITS + self.place_bits)
            self._lane = np.dtype(f"u{lane // 8}")

    def draw(self, source: Source) -> int:
        """Draw one integer."""
        while True:
            bits = random_place(_CELL_BITS + self.place_bits, source)
            cell, place = bits >> self.place_bits, bits & (1 << self.place_bits) - 1
            base: int = self.table.item(cell)
            if base != _UNSETTLED:
                return base + place
            word = cell << _REST_BITS | random_place(_REST_BITS, source)
            x = self.shares.settle(word, place, source)
            if x is not None:
                return x

    def fill(self, count: int, source: Source) -> NDArray[Any]:
        """Draw `count` integers: as int64 if they all fit, as Python integers otherwise."""
        if self.place_bits > _REST_BITS:
            return np.array([self.draw(source) for _ in range(count)], object)
        out = np.empty(count, np.int64)
        wide: dict[int, int] = {}
        for start in range(0, count, _BATCH):
            self._fill(out[start : start + _BATCH], start, wide, source)
        if not wide:
            return out
        every: NDArray[Any] = out.astype(object)
        every[list(wide)] = list(wide.values())
        return every

    def _fill(self, out: Integers, offset: int, wide: dict[int, int], source: Source) -> None:
        """Fill `out`; an integer beyond 64 bits, from a tail, goes to `wide` under its place in the whole."""
        todo, cells = self._look_up(out, source)
        while todo.size:
            rest = source.words(todo.size) >> np.uint64(_CELL_BITS)
            words = cells.astype(np.uint64) << np.uint64(_REST_BITS) | rest
            places = out[todo] - _UNSETTLED
            drawn, verdict = self._closer_look(words, places)
            settled = verdict > 0
            for i in np.flatnonzero(verdict == 0):
                x = self.shares.settle(int(words[i]), int(places[i]), source)
                settled[i] = x is not None
                if x is not None and -(2**63) <= x < 2**63:
                    drawn[i] = x
                elif x is not None:
                    wide[offset + int(todo[i])] = x
            out[todo[settled]] = drawn[settled]
            todo = todo[~settled]
            again = np.empty(todo.size, np.int64)
            still, cells = self._look_up(again, source)
            out[todo] = again
            todo = todo[still]

    def _look_up(self, out: Integers, source: Source) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Write base + place for each draw; return where the base is `_UNSETTLED`, and the cells there."""
        size = self._lane.itemsize
        unsettled, unsettled_cells = [], []
        for start in range(0, out.size, _CHUNK):
            part = out[start : start + _CHUNK]
            lanes = source.words(-(-part.size * size // 8)).view(self._lane)[: part.size]
            cells = np.empty(part.size, np.intp)
            np.right_shift(lanes, 8 * size - _CELL_BITS, out=cells, casting="unsafe")
            np.take(self.table, cells, out=part, mode="clip")
            if self.place_bits:
                lanes = lanes & lanes.dtype.type((1 << self.place_bits) - 1)
                np.add(part, lanes.view(np.int64) if size == 8 else lanes, out=part)
            here = np.flatnonzero(part < _UNSETTLED // 2)
            unsettled.append(here + start)
            unsettled_cells.append(cells[here])
        return np.concatenate(unsettled or [_NOWHERE]), np.concatenate(unsettled_cells or [_NOWHERE])


def _tabulate(shares: Shares) -> NDArray[Any]:
    """Map each value of a word's top bits to the base of the block it settles on, or to `_UNSETTLED`."""
    table: list[int] = []
    for base, sure, end in zip(shares.base, shares.sure, shares.sure_end, strict=True):
        first, last = -((sure - end) >> _REST_BITS), end >> _REST_BITS
        table += [_UNSETTLED] * (first - len(table)) + [base] * (last - first)
    table += [_UNSETTLED] * ((1 << _CELL_BITS) - len(table))
    return np.array(table, np.int64 if shares.place_bits <= _REST_BITS else object)


class _CloserLook:
    """`Shares.settle` for many words at once, as far as double precision can tell.

    Claim: where the verdict is 1 or -1, `Shares.settle` would return this value, or None, whatever its
    source. In an open part it compares a height with the words that a place deserves, share * exp(-g),
    where g is the energy of the place above that of its block's nearest: less than 1, so that a short
    Taylor sum does. What it computes is off by less than 2**-45 share + 2, the latter for the share's own
    rounding; within 2**-40 share + 4 of it the verdict is 0, unsure.
    """

    def __init__(self, shares: Shares) -> None:
        self._base = np.array(shares.base, np.int64)
        self._near = np.array(shares.near, np.int64)
        self._share = np.array(shares.share, np.uint64)
        self._open_end = np.array(shares.open_end, np.uint64)
        # The sure parts, the open parts, and one more for tails and spare words.
        self._part_end = np.array(shares.sure_end + shares.open_end, np.uint64)
        self._part_base = np.array([*shares.base, *shares.base, 0], np.int64)
        self._last_place = (1 << shares.place_bits) - 1
        energy, last, blocks = shares.energy, self._last_place, len(shares.near)
        # With one integer to a block every place is the nearest, and coefficients need not fit a double.
        self._linear, self._square = (float(energy.linear), float(energy.square)) if last else (0.0, 0.0)
        # The energy is convex: a side's last block is its steepest.
        steepest = max(
            energy(near + last) - energy(near) for near in (shares.near[0], shares.near[blocks - 1])
        )
        self._terms = _taylor_terms(float(steepest))

    def __call__(self, words: Words, places: Integers) -> tuple[Integers, NDArray[np.int8]]:
        """Return values and verdicts: 1 for settled, -1 for draw again, 0 for unsure."""
        part = np.searchsorted(self._part_end, words, side="right")
        values = self._part_base[part] + places
        blocks = self._base.size
        verdict = (part < blocks).astype(np.int8)
        opened = np.flatnonzero((part >= blocks) & (part < 2 * blocks))
        verdict[opened] = self._compare(words[opened], part[opened] - blocks, places[opened])
        return values, verdict

    def _compare(self, words: Words, block: NDArray[np.intp], places: Integers) -> NDArray[np.float64]:
        """Return the sign of what each place deserves less its word's height, or 0 where it is too close."""
        share = self._share[block]
        height = (share - (self._open_end[block] - words)).astype(np.float64)
        gap = self.deserved(block, places) - height
        margin = share.astype(np.float64) * _MARGIN + _MARGIN_WORDS
        return np.where(np.abs(gap) <= margin, 0.0, np.sign(gap))

    def deserved(self, block: NDArray[np.intp], places: Integers) -> NDArray[np.float64]:
        """Return share * exp(-g), with the error that is claimed above."""
        backward = self._base[block] < 0
        further = np.where(backward, self._last_place - places, places).astype(np.float64)
        gain = further * (self._linear + self._square * (2.0 * self._near[block] + further))
        survives = np.ones_like(gain)
        for order in range(self._terms, 0, -1):
            survives = 1.0 - survives * gain / order
        return self._share[block].astype(np.float64) * survives


def _taylor_terms(most: float) -> int:
    """Return how many terms of exp(-g) leave out less than 2**-50, for 0 <= g <= most <= 1."""
    terms = 1
    while most ** (terms + 1) / math.factorial(terms + 1) > 2.0**-50:
        terms += 1
    return terms


@lru_cache(maxsize=32)
def block_sampler(energy: Energy, two_sided: bool) -> BlockSampler:
    """Return the sampler of a law, made at its first use and kept while it is among the last 32 used."""
    return BlockSampler(Shares(energy, two_sided=two_sided))
