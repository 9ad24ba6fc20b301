"""The division of the 64-bit words among the integers: an exact sampler, one draw at a time.

Cut the integers into blocks of 2**w neighbours. Give each block a share of the words in proportion to its
*largest* weight. A uniform word then picks a block, w further bits pick a place in it, and where the word
lies inside the block's share is the coin that accepts the place or not: accepted if it lies below the
place's own weight. The lowest part of a share, up to the block's smallest weight, accepts any place; these
`sure` parts are laid out first, what is left `open` of each share after them, and the tails last.

    | sure 0 | sure 1 | ... | open 0 | open 1 | ... | tails | spare |    the 2**64 words

Shares are integers, rounded outward, so choosing a block is exact as it stands: there are no cumulative
sums of real numbers, no normalising constant and no ties between thresholds. A word in the spare part, or
one that is not accepted, is thrown away and another drawn. docs/proofs/blocks.md has the proof.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, islice
from operator import sub

from discreet.noise.coins import bernoulli_exp, uniform_is_below
from discreet.noise.energy import Energy
from discreet.noise.exponent import Enclosure, ceil_shift
from discreet.noise.source import Source

__all__ = ["WORD_BITS", "Shares", "Tail", "draw", "random_place"]

WORD_BITS = 64

# Weights are computed to this many bits: 128 more than a share of the words can show.
_WORK_BITS = 192
# The weight left to the tails is about exp(-_REACH) of the whole.
_REACH = 24
# A block is between 2**-6 and 2**-5 of the law's scale wide, or a single integer.
_FINENESS = 5


@dataclass(frozen=True)
class Tail:
    """All integers at distance `start` or more from zero on one side, and their share of words."""

    negative: bool
    start: int
    first_word: int
    words: int


class Shares:
    """A sampler of P(x) proportional to exp(-energy(|x|)), on all integers or on those from zero up.

    Claim: given a source of independent uniform bits, `settle` returns x with probability exactly
    proportional to its weight, or None (draw again), for a uniform word and a uniform place.
    """

    def __init__(self, energy: Energy, *, two_sided: bool, reach: int = _REACH) -> None:
        """Divide the words, in a few milliseconds; a smaller `reach` leaves more to the tails."""
        self.energy = energy
        self.place_bits = max(0, energy.octave() - _FINENESS)
        step = 1 << self.place_bits
        count = (energy.reach(reach) >> self.place_bits) + 1
        # Each side of zero with its least distance from it: x = 0, 1, ... and x = -1, -2, ...
        sides = ((False, 0), (True, 1)) if two_sided else ((False, 0),)

        nearest: list[Enclosure] = []
        farthest: list[Enclosure] = []
        self.near: list[int] = []
        self.base: list[int] = []
        for negative, least in sides:
            nearest += islice(energy.weights(least, step, _WORK_BITS), count)
            farthest += islice(energy.weights(least + step - 1, step, _WORK_BITS), count)
            self.near += range(least, least + count * step, step)
            self.base += (
                range(-step, -step - count * step, -step) if negative else range(0, count * step, step)
            )
        starts = [least + count * step for _, least in sides]
        tails = [self._tail_weight(start, _WORK_BITS) for start in starts]

        # The words that a weight of one deserves. All shares fit, though each is rounded up.
        whole = sum(high for _, high in nearest + tails)
        self.unit = ((1 << WORD_BITS) - len(nearest) - len(tails) << _WORK_BITS) // whole
        self.share = [ceil_shift(self.unit * high, _WORK_BITS) for _, high in nearest]
        self.sure = [self.unit * low >> _WORK_BITS for low, _ in farthest]
        self.sure_end = list(accumulate(self.sure))
        open_words = map(sub, self.share, self.sure)
        self.open_end = list(accumulate(open_words, initial=self.sure_end[-1]))[1:]
        self.tails: list[Tail] = []
        first = self.open_end[-1]
        for (negative, _), start, (_, high) in zip(sides, starts, tails, strict=True):
            self.tails.append(Tail(negative, start, first, ceil_shift(self.unit * high, _WORK_BITS)))
            first += self.tails[-1].words

    def settle(self, word: int, place: int, source: Source) -> int | None:
        """Return the integer that a word and a place in a block stand for, or None to draw again."""
        if word < self.sure_end[-1]:
            return self.base[bisect_right(self.sure_end, word)] + place
        if word < self.open_end[-1]:
            block = bisect_right(self.open_end, word)
            x = self.base[block] + place
            # Count down from the top of the share, so that the open part follows on the sure part.
            height = self.share[block] - (self.open_end[block] - word)
            return x if uniform_is_below(source, height, 0, lambda bits: self._words_for(x, bits)) else None
        for tail in self.tails:
            if tail.first_word <= word < tail.first_word + tail.words:
                return self._settle_tail(tail, word - tail.first_word, source)
        return None

    def _words_for(self, x: int, bits: int) -> Enclosure:
        """Enclose 2**bits times the words, a real number, that x deserves in the share of its block."""
        return self._times_unit(self.energy.weight(abs(x), bits + WORD_BITS))

    def _times_unit(self, weight: Enclosure) -> Enclosure:
        low, high = weight
        return self.unit * low >> WORD_BITS, ceil_shift(self.unit * high, WORD_BITS)

    def _tail_weight(self, start: int, bits: int) -> Enclosure:
        """Enclose 2**bits times the weight of a tail's envelope, in blocks: over the integers in one."""
        low, high = self.energy.beyond(start, bits)
        return low >> self.place_bits, ceil_shift(high, self.place_bits)

    def _settle_tail(self, tail: Tail, height: int, source: Source) -> int | None:
        """Draw from a tail: past its start a geometric law, thinned to the law wanted."""

        def deserved(bits: int) -> Enclosure:
            return self._times_unit(self._tail_weight(tail.start, bits + WORD_BITS))

        if not uniform_is_below(source, height, 0, deserved):
            return None
        further = _draw_geometric(self.energy.slope(tail.start), source)
        if not bernoulli_exp(self.energy.square * further**2, source=source):
            return None
        distance = tail.start + further
        return -distance if tail.negative else distance


@lru_cache(maxsize=16)
def _geometric_shares(energy: Energy) -> Shares:
    return Shares(energy, two_sided=False)


def _draw_geometric(rate: Fraction, source: Source) -> int:
    """Draw y = 0, 1, ... with probability proportional to exp(-rate * y)."""
    return draw(_geometric_shares(Energy(rate, Fraction(0))), source)


def draw(shares: Shares, source: Source) -> int:
    """Draw one integer by the definition, without any table."""
    while True:
        word = int.from_bytes(source.bytes(WORD_BITS // 8), "little")
        x = shares.settle(word, random_place(shares.place_bits, source), source)
        if x is not None:
            return x


def random_place(bits: int, source: Source) -> int:
    """Draw an integer of `bits` uniform bits."""
    return int.from_bytes(source.bytes(-(-bits // 8)), "little") >> -bits % 8
