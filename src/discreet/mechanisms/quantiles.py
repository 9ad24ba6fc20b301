"""Quantiles of values clipped to public bounds: one, or many for the price of a few.

>>> ages = Quantiles([0.25, 0.5, 0.75], bounds=(0, 120), epsilon=1)
>>> ages
Quantiles([0.25, 0.5, 0.75], bounds=(0, 120), epsilon=1)
>>> found = ages.release([31, 45, 27, 64, 38] * 100)           # three ages, in order
>>> ages.error(confidence=0.95, n=500)                         # in ranks: the middle of 500 is rank 250
89
>>> Quantiles([0.5], bounds=(0, 120), epsilon=1).error(confidence=0.95)
8

A single quantile is the exponential mechanism on the rank error (Smith 2011). Several are found by halving:
the middle one first, then those below it among the data below, and those above it among the data above
(Kaplan, Schnapp, Stemmer 2022).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.mechanisms.additive import guarantee_asked
from discreet.mechanisms.ranks import choose, cuts, expected_ties, points, read_places, values_at
from discreet.mechanisms.scores import affordable, fails_at_most, failure_of, read_failure
from discreet.mechanisms.search import least, least_whole
from discreet.noise import SYSTEM, Source
from discreet.noise.coins import uniform
from discreet.noise.source import checked
from discreet.numbers import Exactable, exact, fraction_text, nonnegative, positive, whole
from discreet.privacy import ZCDP, Guarantee, Neighbours, PrivacyLoss, PureDP
from discreet.privacy.neighbours import ADD_REMOVE
from discreet.privacy.reals import ball, enclose

__all__ = ["Quantiles"]

# Each value is told apart from its equals by this many random bits.
_TIE_BITS = 20
_MOST_POINTS = 1 << 40
_LONGEST_DENOMINATOR = 10**20
_MOST = 10**300
# Numbers of equal values, bits and all, of which the best bound is taken.
_TIES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64, 128, 256)


@dataclass(frozen=True, repr=False)
class Quantiles:
    """Finds quantiles of data clipped to `bounds` and rounded to a public grid of values.

    Claim: a release is `epsilon`-DP, all quantiles together, if a unit has up to `rows` values: between data
    that differ by one unit under `neighbours`. With whole bounds and no `grid` the values are integers, by
    their types; what is returned is in order and on the grid.
    """

    quantiles: tuple[Fraction, ...]
    bounds: tuple[Fraction, Fraction]
    epsilon: Fraction
    grid: Fraction | None
    rows: int
    neighbours: Neighbours

    def __init__(
        self,
        quantiles: Sequence[Exactable] = (0.25, 0.5, 0.75),
        bounds: tuple[Exactable, Exactable] | None = None,
        *,
        epsilon: Exactable,
        grid: Exactable | None = None,
        rows: int = 1,
        neighbours: Neighbours | str = ADD_REMOVE,
    ) -> None:
        step = None if grid is None else positive(grid, "grid")
        for name, value in {
            "quantiles": _read_quantiles(quantiles),
            "bounds": _read_bounds(bounds, step),
            "epsilon": positive(epsilon, "epsilon"),
            "grid": step,
            "rows": whole(rows, "rows", least=1),
            "neighbours": Neighbours.of(neighbours),
        }.items():
            object.__setattr__(self, name, value)

    # --- what it costs -------------------------------------------------------------------------------

    def loss(self, *, neighbours: Neighbours | str | None = None) -> PrivacyLoss:
        """Return the loss of a release: at worst what a promise of `epsilon` allows."""
        if neighbours is not None and Neighbours.of(neighbours) != self.neighbours:
            raise InvalidInput(
                f"these quantiles are chosen for {self.neighbours!r}: choose them with "
                f"neighbours={Neighbours.of(neighbours).kind!r}, which their noise depends on"
            )
        return PrivacyLoss.pure(self.epsilon, neighbours=self.neighbours)

    def guarantee(self) -> PureDP:
        """Return the pure promise."""
        return PureDP(self.epsilon)

    def concentrated(self) -> ZCDP:
        """Return a zero-concentrated promise: epsilon**2 / (8 levels).

        Claim: each level's choices have log-ratios in a range of epsilon / levels, and an exponential
        mechanism of range r is (r**2 / 8)-zCDP (Cesar and Rogers 2021).
        """
        return ZCDP(self.epsilon**2 / (8 * self.levels))

    @property
    def levels(self) -> int:
        """How often the data are halved: ceil(log2(number of quantiles + 1)). Each costs as much."""
        return len(self.quantiles).bit_length()

    @classmethod
    def calibrate(
        cls,
        guarantee: Guarantee | None = None,
        *,
        quantiles: Sequence[Exactable] = (0.25, 0.5, 0.75),
        bounds: tuple[Exactable, Exactable] | None = None,
        epsilon: Exactable | None = None,
        delta: Exactable | None = None,
        rho: Exactable | None = None,
        mu: Exactable | None = None,
        grid: Exactable | None = None,
        rows: int = 1,
        neighbours: Neighbours | str = ADD_REMOVE,
    ) -> Self:
        """Return the most accurate release that keeps a promise, by `guarantee` or by `concentrated`."""
        promise = guarantee_asked(guarantee, epsilon, delta, rho, mu)
        at = partial(cls, quantiles, bounds, grid=grid, rows=rows, neighbours=neighbours)

        def keeps(cost: Fraction) -> bool:
            release = at(epsilon=cost)
            return release.guarantee() <= promise or release.concentrated() <= promise

        return at(epsilon=affordable(promise, keeps))

    @classmethod
    def solve(
        cls,
        *,
        error: Exactable,
        failure: Exactable,
        n: int | None = None,
        quantiles: Sequence[Exactable] = (0.25, 0.5, 0.75),
        bounds: tuple[Exactable, Exactable] | None = None,
        grid: Exactable | None = None,
        rows: int = 1,
        neighbours: Neighbours | str = ADD_REMOVE,
    ) -> Self:
        """Return the most private release whose rank error reaches `error` with chance at most `failure`."""
        rank, chance = positive(error, "error"), read_failure(failure)
        at = partial(cls, quantiles, bounds, grid=grid, rows=rows, neighbours=neighbours)
        size = at(epsilon=1)._size(n)

        def keeps(cost: Fraction) -> bool:
            return fails_at_most(lambda: at(epsilon=cost)._tail(rank, size), chance)

        return at(epsilon=least(keeps, 1 / rank))

    # --- how far off -----------------------------------------------------------------------------------

    def tail(self, rank: Exactable, n: int | None = None) -> float:
        """Bound the chance that the rank error of any quantile reaches `rank`, rounded up.

        The rank error of v is the distance from quantile * n to the ranks that v has in the clipped and
        rounded data, from the number of values below it to that of values not above. For several quantiles
        the bound needs the number `n` of values, or an upper bound on it.
        """
        far, size = nonnegative(rank, "rank"), self._size(n)
        return min(1.0, max(0.0, enclose(lambda: self._tail(far, size)).upper))

    def error(self, confidence: Exactable = 0.95, n: int | None = None) -> int:
        """Return a rank error that no quantile reaches, with at least this confidence."""
        failure, size = failure_of(confidence), self._size(n)
        return least_whole(lambda rank: fails_at_most(lambda: self._tail(Fraction(rank), size), failure))

    def expected_error(self, n: int | None = None) -> float:
        """Return the expected rank error of whichever quantile is worst placed, at most, rounded up.

        Claim: errors add up along the path to a quantile at most, and each choice is the exponential
        mechanism's, whose error beyond the best's is W((candidates - 1) / e) / rate at most, on average.
        Where data are cut the best is off by at most half the number of values that are equal.
        """
        size = self._size(n)
        cut = expected_ties(size, _TIE_BITS) / 2 if len(self.quantiles) > 1 else Fraction(0)

        def worst(first: int, last: int, level: int) -> Fraction:
            if first == last:
                return Fraction(0)
            middle, several = (first + last) // 2, last - first > 1
            rivals = (self._points() << _TIE_BITS) if several else self._points() - 1
            rate = self._rate(self._target(first, middle, last), level)
            here = enclose(lambda: (rivals / arb(1).exp()).lambertw() / ball(rate)).upper
            deeper = max(worst(first, middle, level + 1), worst(middle + 1, last, level + 1))
            return exact(max(0.0, here), "error") + (cut if several else 0) + deeper

        most = worst(0, len(self.quantiles), 0)
        return enclose(lambda: most).upper

    def _size(self, n: int | None) -> int:
        if n is None and len(self.quantiles) > 1:
            raise InvalidInput("say for how many values: n=, or an upper bound on their number")
        return 0 if n is None else whole(n, "n")

    def _tail(self, rank: Fraction, n: int) -> arb:
        """Bound the tail, over what may be equal in value and in random bits.

        Claim (docs/proofs/quantiles.md): errors add up along the levels at most, so one reaches `rank` only
        if the error of some choice by itself reaches rank / levels. The last choice of a branch has a
        candidate without error, so one with an error of s is chosen with a chance of at most x / (1 + x),
        where x is (their number - 1) exp(-rate s). Where data are cut the best has an error of at most half
        the number of values that are equal, and more than c are with a chance of at most C(n, c + 1) /
        2**(20 c).
        """
        if rank <= 0:
            return arb(1)
        count, own = self._points(), rank / self.levels
        choices = Counter(self._choices(0, len(self.quantiles), 0))
        last = {rate: times for (rate, cut), times in choices.items() if not cut}
        cuts = {rate: times for (rate, cut), times in choices.items() if cut}
        chance = sum((times * _chance(count, rate, own) for rate, times in last.items()), arb(0))
        if not cuts:
            return chance
        count = (count << _TIE_BITS) + 1
        bounds = []
        for ties in _TIES:
            worse = own - Fraction(ties, 2)
            collide = ball(Fraction(math.comb(n, ties + 1), 1 << _TIE_BITS * ties))
            bounds.append(sum((t * _chance(count, r, worse) for r, t in cuts.items()), chance + collide))
        return min(bounds, key=lambda bound: float(bound.mid()))

    def _choices(self, first: int, last: int, level: int) -> list[tuple[Fraction, bool]]:
        """Return the rate of each choice, and whether data are cut there."""
        if first == last:
            return []
        middle = (first + last) // 2
        here = self._rate(self._target(first, middle, last), level), last - first > 1
        return [here, *self._choices(first, middle, level + 1), *self._choices(middle + 1, last, level + 1)]

    # --- release ---------------------------------------------------------------------------------------

    def release(self, data: Any, *, source: Source = SYSTEM) -> Any:
        """Return the quantiles of a list or an array of values: an array, of ints or of floats on a grid.

        Claim: what is returned is a function of the types, of the values after clipping and rounding, and of
        exact choices with probabilities proportional to exp(-rate * rank error); no data at all is data too.
        """
        source = checked(source)
        places = read_places(data, self.bounds, self.grid)
        several = len(self.quantiles) > 1
        bits = np.asarray(uniform(1 << _TIE_BITS, len(places), source=source)) if several else 0
        top = (self._points() << _TIE_BITS) - 1
        found = self._find(np.sort(places << _TIE_BITS | bits), 0, top, 0, len(self.quantiles), 0, source)
        return source.label(values_at(found, self.bounds[0], self.grid))

    def _find(
        self, fine: NDArray[Any], low: int, high: int, first: int, last: int, level: int, source: Source
    ) -> list[int]:
        """Find quantiles first to last - 1 among the fine values, all of which are from low to high."""
        if first == last:
            return []
        middle, top = (first + last) // 2, self._points() - 1
        target = self._target(first, middle, last)
        rate = self._rate(target, level)
        if last - first == 1:
            bottom = min(low >> _TIE_BITS, top)
            within = points(fine >> _TIE_BITS, bottom, max(bottom, high >> _TIE_BITS), target)
            return [choose(within, rate, target, source)]
        cut = choose(cuts(fine, low, high, target), rate, target, source)
        place = int(np.searchsorted(fine, cut))
        below = self._find(fine[:place], low, cut - 1, first, middle, level + 1, source)
        above = self._find(fine[place:], cut, high, middle + 1, last, level + 1, source)
        return [*below, min(cut >> _TIE_BITS, top), *above]

    def _target(self, first: int, middle: int, last: int) -> Fraction:
        """Return which quantile to find between the two, found before, that enclose those from first on."""
        low = self.quantiles[first - 1] if first else Fraction(0)
        high = self.quantiles[last] if last < len(self.quantiles) else Fraction(1)
        return (self.quantiles[middle] - low) / (high - low)

    def _rate(self, target: Fraction, level: int) -> Fraction:
        """Return how fast the probability of a candidate falls with its rank error.

        Claim (docs/proofs/quantiles.md): with this rate a level costs epsilon / levels. A value added or
        removed moves a rank error by at most s = max(target, 1 - target), and one replaced moves it by at
        most 1. Below the first level a replaced value may be taken from one part and added to another, which
        costs as much as two changes.
        """
        share = self.epsilon / self.levels / (self.rows * self.neighbours.distance)
        moves = max(target, 1 - target)
        if self.neighbours.kind == "add-remove":
            return share / (2 * moves)
        return share / 2 if level == 0 else share / (4 * moves)

    def _points(self) -> int:
        low, high = self.bounds
        return int((high - low) / (self.grid or 1)) + 1

    def __repr__(self) -> str:
        shown = ", ".join(map(fraction_text, self.quantiles))
        low, high = map(fraction_text, self.bounds)
        said = [f"[{shown}], bounds=({low}, {high}), epsilon={fraction_text(self.epsilon)}"]
        said += [f"grid={fraction_text(self.grid)}"] if self.grid is not None else []
        said += [f"rows={self.rows}"] if self.rows > 1 else []
        said += [f"neighbours={self.neighbours.kind!r}"] if self.neighbours != ADD_REMOVE else []
        return f"Quantiles({', '.join(said)})"


def _chance(count: int, rate: Fraction, error: Fraction) -> arb:
    """Bound the chance that a candidate with at least this much more error than the best is chosen."""
    if error <= 0:
        return arb(1)
    odds = (count - 1) * (-ball(rate * error)).exp()
    return odds / (1 + odds)


# --- reading ------------------------------------------------------------------------------------------


def _read_quantiles(quantiles: Any) -> tuple[Fraction, ...]:
    if isinstance(quantiles, str) or not isinstance(quantiles, (Sequence, np.ndarray)):
        raise InvalidInput(f"quantiles must be a list, such as [0.25, 0.5, 0.75], not {quantiles!r}")
    read = tuple(exact(quantile, "a quantile") for quantile in quantiles)
    if not read:
        raise InvalidInput("name at least one quantile, such as 0.5")
    if not all(0 < quantile < 1 for quantile in read):
        raise InvalidInput(
            "quantiles must be above 0 and below 1: the least and the greatest value would each be a "
            "person's own. Ask for 0.01 or 0.99"
        )
    if any(later <= earlier for earlier, later in pairwise(read)):
        raise InvalidInput("quantiles must be in order, each once, such as [0.25, 0.5, 0.75]")
    if any(quantile.denominator > _LONGEST_DENOMINATOR for quantile in read):
        raise InvalidInput("a quantile has more digits than anyone needs: at most 20 are accepted")
    return read


def _read_bounds(bounds: Any, grid: Fraction | None) -> tuple[Fraction, Fraction]:
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        raise InvalidInput(f"bounds must be two public numbers, such as bounds=(0, 120), not {bounds!r}")
    low, high = exact(bounds[0], "the lower bound"), exact(bounds[1], "the upper bound")
    if low > high:
        raise InvalidInput(f"the lower bound must not be above the upper: {bounds!r}")
    step = grid or Fraction(1)
    if (low / step).denominator != 1 or (high / step).denominator != 1:
        needed = "choose a grid=, such as 0.01" if grid is None else "move them, or choose another grid"
        raise InvalidInput(
            f"bounds must be whole multiples of the grid of values, {fraction_text(step)}: {needed}"
        )
    if (high - low) / step >= _MOST_POINTS:
        raise InvalidInput(
            "the grid has more than 2**40 points between the bounds: choose a coarser one, or nearer bounds"
        )
    if grid is not None and max(-low, high) > _MOST:
        raise InvalidInput("real values are returned as floats, which end near 10**308: choose nearer bounds")
    return low, high
