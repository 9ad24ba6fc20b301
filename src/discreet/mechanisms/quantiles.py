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
from typing import Any, NamedTuple, Self

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.mechanisms.additive import guarantee_asked
from discreet.mechanisms.answers import Answers, read_answers, to_steps
from discreet.mechanisms.search import greatest, least, least_whole
from discreet.mechanisms.weighted import weighted_index
from discreet.noise import SYSTEM, Source
from discreet.noise.coins import bernoulli_exp, uniform
from discreet.noise.source import checked
from discreet.numbers import Exactable, exact, fraction_text, nonnegative, positive, probability, whole
from discreet.privacy import ZCDP, Guarantee, Neighbours, PrivacyLoss, PureDP
from discreet.privacy.neighbours import ADD_REMOVE
from discreet.privacy.reals import Inexact, ball, certainly, enclose

__all__ = ["Quantiles"]

Ints = NDArray[Any]

# Each value is told apart from its equals by this many random bits.
_TIE_BITS = 20
_MOST_POINTS = 1 << 40
_LONGEST_DENOMINATOR = 10**20
_HALF = 1 << 62
# Candidates that are less likely than the best by a factor of e to this are drawn as one kind.
_FAR = 200
# Numbers of equal values, bits and all, of which the best bound is taken.
_TIES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 64, 128, 256)


class _Candidates(NamedTuple):
    """Runs of candidates: where each begins, how many they are, and the rank error of each, times a whole."""

    starts: Ints
    times: Ints
    errors: Ints


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
        self._check_relation(neighbours)
        return PrivacyLoss.pure(self.epsilon, neighbours=self.neighbours)

    def guarantee(self, *, neighbours: Neighbours | str | None = None) -> PureDP:
        """Return the pure promise."""
        self._check_relation(neighbours)
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

    def _check_relation(self, neighbours: Neighbours | str | None) -> None:
        if neighbours is not None and Neighbours.of(neighbours) != self.neighbours:
            raise InvalidInput(
                f"these quantiles are chosen for {self.neighbours!r}: choose them with "
                f"neighbours={Neighbours.of(neighbours).kind!r}, which their noise depends on"
            )

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

        if isinstance(promise, PureDP):
            return at(epsilon=promise.epsilon)

        def keeps(cost: Fraction) -> bool:
            release = at(epsilon=cost)
            return release.guarantee() <= promise or release.concentrated() <= promise

        first = promise.figures()[0]
        found = greatest(keeps, first)
        return at(epsilon=first if found < first and keeps(first) else found)

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
        rank, chance = positive(error, "error"), probability(failure, "failure")
        if chance in (0, 1):
            raise InvalidInput(
                "failure must be above 0 and below 1: no release never fails, and any may always"
            )

        at = partial(cls, quantiles, bounds, grid=grid, rows=rows, neighbours=neighbours)

        size = at(epsilon=1)._size(n)

        def keeps(cost: Fraction) -> bool:
            release = at(epsilon=cost)
            return release._fails_at_most(rank, chance, size)

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
        sure = probability(confidence, "confidence")
        if sure == 1:
            raise InvalidInput("any value may come out: ask for a confidence below 1, such as 0.999999")
        size = self._size(n)
        return least_whole(lambda rank: self._fails_at_most(Fraction(rank), 1 - sure, size))

    def _size(self, n: int | None) -> int:
        if n is None and len(self.quantiles) > 1:
            raise InvalidInput("say for how many values: n=, or an upper bound on their number")
        return 0 if n is None else whole(n, "n")

    def _fails_at_most(self, rank: Fraction, failure: Fraction, n: int) -> bool:
        try:
            return not certainly(lambda: (self._tail(rank, n), ball(failure)))
        except Inexact:
            return False

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
        points, own = self._points(), rank / self.levels
        nodes = Counter(self._nodes(0, len(self.quantiles), 0))
        leaves = sum(
            (times * _chance(points, rate, own) for (rate, cut), times in nodes.items() if not cut), arb(0)
        )
        cuts = {rate: times for (rate, cut), times in nodes.items() if cut}
        if not cuts:
            return leaves
        bounds = []
        for ties in _TIES:
            chances = (
                times * _chance((points << _TIE_BITS) + 1, rate, own - Fraction(ties, 2))
                for rate, times in cuts.items()
            )
            collide = ball(Fraction(math.comb(n, ties + 1), 1 << _TIE_BITS * ties))
            bounds.append(leaves + sum(chances, arb(0)) + collide)
        return min(bounds, key=lambda bound: float(bound.mid()))

    def _nodes(self, first: int, last: int, level: int) -> list[tuple[Fraction, bool]]:
        """Return the rate of each choice, and whether data are cut there."""
        if first == last:
            return []
        middle = (first + last) // 2
        here = self._rate(self._target(first, middle, last), level), last - first > 1
        return [here, *self._nodes(first, middle, level + 1), *self._nodes(middle + 1, last, level + 1)]

    # --- release ---------------------------------------------------------------------------------------

    def release(self, data: Any, *, source: Source = SYSTEM) -> Any:
        """Return the quantiles of a list or an array of values: an array, of ints or of floats on a grid.

        Claim: what is returned is a function of the types, of the values after clipping and rounding, and of
        exact choices with probabilities proportional to exp(-rate * rank error); no data at all is data too.
        """
        source = checked(source)
        values = np.sort(self._read(data))
        if len(self.quantiles) == 1:
            found = [self._pick(values, 0, self._points() - 1, self.quantiles[0], 0, source)]
        else:
            bits = np.asarray(uniform(1 << _TIE_BITS, len(values), source=source))
            fine = np.sort(values << _TIE_BITS | bits)
            top = (self._points() << _TIE_BITS) - 1
            found = self._halve(fine, 0, top, 0, len(self.quantiles), 0, source)
        return source.label(self._values(found))

    def _halve(
        self, fine: Ints, low: int, high: int, first: int, last: int, level: int, source: Source
    ) -> list[int]:
        """Find quantiles first to last - 1 among the fine values, all of which are from low to high."""
        if first == last:
            return []
        middle = (first + last) // 2
        target = self._target(first, middle, last)
        top = self._points() - 1
        if last - first == 1:
            bottom = min(low >> _TIE_BITS, top)
            return [
                self._pick(fine >> _TIE_BITS, bottom, max(bottom, high >> _TIE_BITS), target, level, source)
            ]
        cut = _choose(cuts(fine, low, high, target), self._rate(target, level) / target.denominator, source)
        place = int(np.searchsorted(fine, cut))
        below = self._halve(fine[:place], low, cut - 1, first, middle, level + 1, source)
        above = self._halve(fine[place:], cut, high, middle + 1, last, level + 1, source)
        return [*below, min(cut >> _TIE_BITS, top), *above]

    def _pick(self, values: Ints, low: int, high: int, target: Fraction, level: int, source: Source) -> int:
        return _choose(
            points(values, low, high, target), self._rate(target, level) / target.denominator, source
        )

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

    # --- the grid --------------------------------------------------------------------------------------

    @property
    def _step(self) -> Fraction:
        return self.grid or Fraction(1)

    def _points(self) -> int:
        low, high = self.bounds
        return int((high - low) / self._step) + 1

    def _read(self, data: Any) -> Ints:
        """Return the places of the values on the grid, clipped: 0 is the lower bound."""
        low, high = (int(bound / self._step) for bound in self.bounds)
        if _is_empty(data):
            return np.zeros(0, np.int64)
        read = read_answers(data)
        if read.scalar or read.values.ndim != 1:
            raise InvalidInput("quantiles are of one row of values: a list or an array of numbers")
        if self.grid is None and not read.whole:
            raise InvalidInput(
                "these quantiles are of whole values, and others are here: choose a grid for real ones, such "
                "as Quantiles(..., grid=0.01)"
            )
        values = _roughly_clipped(read, *self.bounds)
        steps = to_steps(values, self._step)
        if max(-low, high) >= _HALF:
            steps = steps.astype(object)
        places: Ints = (np.clip(steps, low, high) - low).astype(np.int64)
        return places

    def _values(self, places: list[int]) -> NDArray[Any]:
        low = int(self.bounds[0] / self._step)
        if self.grid is not None:
            return np.array([float((low + place) * self.grid) for place in places])
        steps = [low + place for place in places]
        return np.array(steps, np.int64 if steps[0] > -_HALF and steps[-1] < _HALF else object)

    def __repr__(self) -> str:
        shown = ", ".join(map(fraction_text, self.quantiles))
        low, high = map(fraction_text, self.bounds)
        said = [f"[{shown}], bounds=({low}, {high}), epsilon={fraction_text(self.epsilon)}"]
        said += [f"grid={fraction_text(self.grid)}"] if self.grid is not None else []
        said += [f"rows={self.rows}"] if self.rows > 1 else []
        said += [f"neighbours={self.neighbours.kind!r}"] if self.neighbours != ADD_REMOVE else []
        return f"Quantiles({', '.join(said)})"


# --- candidates and their rank errors -----------------------------------------------------------------


def points(values: Ints, low: int, high: int, target: Fraction) -> _Candidates:
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
    return _Candidates(starts, times, _distances(below, upto, target, len(values)))


def cuts(values: Ints, low: int, high: int, target: Fraction) -> _Candidates:
    """Return the places from low to high + 1 at which sorted values can be cut in two.

    Claim: the error of a cut is |values below it - target * n|, times the target's denominator.
    """
    edges = np.concatenate([[low - 1], values, [high + 1]])
    below = np.arange(len(values) + 1)
    return _Candidates(edges[:-1] + 1, np.diff(edges), _distances(below, below, target, len(values)))


def _distances(below: Ints, upto: Ints, target: Fraction, n: int) -> Ints:
    """Return max(0, below - target * n, target * n - upto), times the target's denominator."""
    if n * target.denominator >= _HALF:
        below, upto = below.astype(object), upto.astype(object)
    wanted = target.numerator * n
    missed: Ints = np.maximum(below * target.denominator - wanted, wanted - upto * target.denominator)
    return np.maximum(missed, 0)


def _choose(candidates: _Candidates, unit: Fraction, source: Source) -> int:
    """Return a candidate with probability exactly proportional to exp(-unit * error).

    Claim: a shell of candidates is drawn with a weight of exp(-shell) each, one of them uniformly, and it is
    kept with the probability that is left, exp(shell - unit * error above the least). A shell is a whole
    number that is at most unit * error above the least; doubles find it, rounded down.
    """
    errors = candidates.errors - candidates.errors[candidates.times > 0].min()
    slope = min(float(min(unit, Fraction(10**9))), 1e9) * (1 - 2.0**-40)
    near = np.maximum(errors, 0).astype(np.float64) * slope
    shells = np.minimum(np.floor(near), _FAR).astype(np.uint8)
    order = np.argsort(shells, kind="stable")
    running = np.cumsum(candidates.times[order])
    present, first = np.unique(shells[order], return_index=True)
    ends = running[np.append(first[1:], len(order)) - 1]
    begins = np.concatenate([[0], ends[:-1]])
    totals = [int(total) for total in ends - begins]
    gaps = [Fraction(int(shell)) for shell in present]
    while True:
        shell = int(weighted_index(gaps, totals, source=source))
        place = int(begins[shell]) + int(uniform(totals[shell], source=source))
        run = int(np.searchsorted(running, place, side="right"))
        entry = order[run]
        if bernoulli_exp(int(errors[entry]) * unit - gaps[shell], source=source):
            return int(candidates.starts[entry]) + int(running[run]) - 1 - place


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
    return low, high


def _is_empty(data: Any) -> bool:
    if isinstance(data, np.ndarray):
        return data.shape == (0,) and data.dtype.kind in "iuf" and data.dtype != np.float16
    return isinstance(data, (list, tuple)) and not data


def _roughly_clipped(read: Answers, low: Fraction, high: Fraction) -> Answers:
    """Clip doubles to just outside the bounds, so that rounding them does not need long integers."""
    if read.values.dtype != np.float64 or max(abs(low), abs(high)) > 10**300:
        return read
    edges = math.nextafter(float(low), -math.inf), math.nextafter(float(high), math.inf)
    return Answers(np.clip(read.values, *edges), read.whole, read.scalar, read.inexact)
