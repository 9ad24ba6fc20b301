"""The laws that the samplers claim, computed independently in mpmath, and every test a sample is put to."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from mpmath import mp
from numpy.typing import NDArray

from tests.statistics import Finding, at_most, binomial, bit_findings, chi_square, kolmogorov

MP = mp.clone()  # a context of our own: nobody else can change its precision
MP.dps = 100


def real(number: Fraction | int) -> Any:
    """Return a rational in mpmath's precision."""
    return MP.mpf(Fraction(number).numerator) / MP.mpf(Fraction(number).denominator)


@dataclass(frozen=True)
class Law:
    """P(x) proportional to exp(-linear |x| - square x**2), on all integers or on those from zero up."""

    linear: Fraction
    square: Fraction
    two_sided: bool = True

    @classmethod
    def laplace(cls, scale: Fraction | int) -> "Law":
        return cls(1 / Fraction(scale), Fraction(0))

    @classmethod
    def geometric(cls, scale: Fraction | int) -> "Law":
        return cls(1 / Fraction(scale), Fraction(0), two_sided=False)

    @classmethod
    def gaussian(cls, variance: Fraction | int) -> "Law":
        return cls(Fraction(0), 1 / (2 * Fraction(variance)))

    def weight(self, x: int) -> Any:
        return MP.exp(-real(self.linear * abs(x) + self.square * x * x))

    @cached_property
    def scale(self) -> float:
        """The scale, or the standard deviation."""
        return float(MP.sqrt(real(1 / (2 * self.square)))) if self.square else float(1 / self.linear)

    @cached_property
    def total(self) -> Any:
        """The sum of all weights."""
        if not self.square:
            q = MP.exp(-real(self.linear))
            return (1 + q) / (1 - q) if self.two_sided else 1 / (1 - q)
        if self.scale > 50:  # Poisson summation: the next term is exp(-2 pi**2 variance)
            return MP.sqrt(MP.pi / real(self.square))
        return MP.jtheta(3, 0, MP.exp(-real(self.square)))

    def chance(self, x: int) -> Any:
        return self.weight(x) / self.total if self.two_sided or x >= 0 else MP.mpf(0)

    def at_most(self, x: int) -> Any:
        """Return P(X <= x)."""
        if x < 0:
            return 1 - self.at_most(-x - 1) if self.two_sided else MP.mpf(0)
        if not self.square:
            return 1 - self.weight(x + 1) / (1 - self.weight(1)) / self.total
        if self.scale > 500:  # a sum by the midpoint rule, off by less than 1 / (24 variance) of a share
            return MP.ncdf((x + MP.mpf(1) / 2) / self.scale)
        return (1 + self._sums[min(x, len(self._sums) - 1)]) / 2 + self.chance(0) / 2

    @cached_property
    def _sums(self) -> list[Any]:
        """P(0 < |X| <= x) for x = 0, 1, ... up to 14 deviations."""
        sums = [MP.mpf(0)]
        for x in range(1, int(14 * self.scale) + 2):
            sums.append(sums[-1] + 2 * self.chance(x))
        return sums

    @property
    def free_bits(self) -> int:
        """How many low bits are fair and independent coins to within `bit_slack`."""
        return max(0, min(62, int(self.scale).bit_length() - 8))

    @property
    def bit_slack(self) -> float:
        """A bound on how unfair they are.

        With M = 2**bits <= scale / 64 and u = M / (2 scale), the residues modulo M have M times their
        probability between u / sinh(u) and u / tanh(u) (Laplace; the Gaussian's are nearer to 1 by far), so
        the total variation distance from uniform is below u**2 / 6.
        """
        return (2.0**self.free_bits / (2 * self.scale)) ** 2 / 6 if self.two_sided else 2.0**-9


@lru_cache
def _knots(law: Law) -> tuple[list[int], NDArray[np.float64]]:
    """Points across the law, dense in its middle, and P(X <= point) at each."""
    scale = Fraction(law.scale)
    steps = [k / 32 for k in range(320)] + [10 + k / 4 for k in range(160)]
    points = {int(scale * Fraction(t)) for t in steps}
    points |= {-x - 1 for x in points} if law.two_sided else set()
    knots = sorted(points)
    return knots, np.array([float(law.at_most(x)) for x in knots])


def findings(draws: NDArray[Any], law: Law) -> list[Finding]:
    """Put a sample to every test of being independent draws from a law."""
    draws = np.asarray(draws)
    trials = draws.size
    knots, at_knots = _knots(law)
    ordered = np.sort(draws)

    def how_many_up_to(points: list[int]) -> Any:
        return np.searchsorted(ordered, np.array(points, draws.dtype), side="right")

    up_to = how_many_up_to(knots)
    below_zero, up_to_zero = how_many_up_to([-1, 0]).tolist()
    counts = np.diff(up_to, prepend=0, append=trials)
    chances = np.diff(at_knots, prepend=0, append=1)
    found = [
        kolmogorov("distribution function", up_to / trials, at_knots, trials),
        chi_square("cells", counts, chances, cells=32),
        chi_square("fine cells", counts, chances, cells=256),
        binomial("zeros", up_to_zero - below_zero, trials, float(law.chance(0))),
    ]

    # Both tails together, at 3 deviations and as far out as a few dozen draws are expected.
    for reach in (2, 3, 4, 5, 7, 10):
        edge = int(reach * Fraction(law.scale))
        beyond = float((2 if law.two_sided else 1) * (1 - law.at_most(edge)))
        low, high = how_many_up_to([-edge - 1, edge]).tolist()
        found.append(binomial(f"beyond {reach} scales", low + trials - high, trials, beyond))

    half = trials // 2
    first, second = draws[: 2 * half : 2], draws[1 : 2 * half : 2]
    if law.two_sided:
        found.append(binomial("signs", below_zero, trials - (up_to_zero - below_zero), 0.5))
        neither = (first != 0) & (second != 0)
        same = ((first < 0) == (second < 0))[neither]
        found.append(binomial("signs of pairs", int(same.sum()), same.size, 0.5))
    found.append(at_most("equal pairs", int((first == second).sum()), half, float(_collision(law))))
    found += _pair_cells(first, second, knots, at_knots)
    if law.free_bits:
        low = (draws & ((1 << 62) - 1)).astype(np.int64)
        found += bit_findings(low[: 1 << 20], law.free_bits, law.bit_slack)
        found += [
            binomial(f"bit {j} of all", int(((low >> j) & 1).sum()), trials, 0.5, law.bit_slack)
            for j in range(min(4, law.free_bits))
        ]
    return found


def _collision(law: Law) -> Any:
    """Return P(X == Y) for two independent draws: a ratio of the same sums, of weights squared."""
    return Law(2 * law.linear, 2 * law.square, law.two_sided).total / law.total**2


def _pair_cells(
    first: NDArray[Any], second: NDArray[Any], knots: list[int], at_knots: NDArray[np.float64]
) -> list[Finding]:
    """Test that consecutive draws fall into about 8 by 8 cells independently."""
    wanted = np.unique(np.searchsorted(at_knots, np.arange(1, 8) / 8))
    wanted = wanted[wanted < len(knots)]
    edges = np.array([knots[k] for k in wanted], first.dtype)
    chances = np.diff(at_knots[wanted], prepend=0, append=1)
    pair = np.searchsorted(edges, first) * len(chances) + np.searchsorted(edges, second)
    counts = np.bincount(pair.astype(np.int64), minlength=len(chances) ** 2)
    return [chi_square("pairs of cells", counts, np.outer(chances, chances).ravel())]
