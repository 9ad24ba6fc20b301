"""Pairs of finite distributions in exact fractions, and piecewise linear trade-off curves.

A pair of finite distributions and its power curve (the greatest true-positive rate at each false-positive
rate) are two views of one thing: sort the outcomes by likelihood ratio, and their masses are the curve's
steps. That gives group privacy: k steps from a database, power is at most the curve applied k times.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from flint import arb

from discreet.errors import InvalidInput, Unsupported
from discreet.numbers import Exactable, fraction_text, nonnegative
from discreet.privacy.concentrated import Tilt, search_rho
from discreet.privacy.pairs import Masses, Pair
from discreet.privacy.reals import Bounds, Real, ball, certainly

__all__ = ["FinitePair", "PowerCurve"]

Point = tuple[Fraction, Fraction]

# A curve of more corners than this takes seconds to apply to another; so does one of fewer, whose rates are
# fractions of this many bits together.
_MOST_CORNERS, _MOST_BITS = 3000, 10_000_000
_MOST_SHOWN = 6


@dataclass(frozen=True, repr=False)
class FinitePair(Pair):
    """Outcomes as (mass under P, mass under Q), merged and sorted by likelihood ratio, greatest first."""

    outcomes: tuple[Point, ...]

    @classmethod
    def of(cls, p: Sequence[Exactable], q: Sequence[Exactable]) -> FinitePair:
        """Read two distributions over the same outcomes, listed in the same order."""
        for name, given in (("p", p), ("q", q)):
            if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
                raise InvalidInput(f"{name} must be a list of probabilities, not {type(given).__name__}")
        if len(p) != len(q):
            raise InvalidInput(
                f"p lists {len(p)} outcomes and q lists {len(q)}; list the same outcomes in both"
            )
        masses = [(nonnegative(a, "p"), nonnegative(b, "q")) for a, b in zip(p, q, strict=True)]
        for name, total in (("p", sum(a for a, _ in masses)), ("q", sum(b for _, b in masses))):
            if total != 1:
                raise InvalidInput(
                    f"{name} must sum to exactly 1, not {fraction_text(Fraction(total))}; "
                    "write thirds as Fraction(1, 3), not 0.333"
                )
        return cls.from_masses(masses)

    @classmethod
    def from_masses(cls, masses: Iterable[Point]) -> FinitePair:
        """Merge outcomes of the same likelihood ratio, which no divergence tells apart."""
        merged: dict[Fraction, Point] = {}
        escaped = Fraction(0)
        for p, q in masses:
            if q:
                before_p, before_q = merged.get(p / q, (0, 0))
                merged[p / q] = (before_p + p, before_q + q)
            else:
                escaped += p
        first = ((escaped, Fraction(0)),) if escaped else ()
        return cls((*first, *(merged[ratio] for ratio in sorted(merged, reverse=True))))

    def __repr__(self) -> str:
        few = len(self.outcomes) <= _MOST_SHOWN
        inside = (
            ", ".join(f"({p}, {q})" for p, q in self.outcomes) if few else f"{len(self.outcomes)} outcomes"
        )
        return f"FinitePair({inside})"

    def above(self, epsilon: Fraction) -> Masses:
        """Add up the outcomes whose ratio exceeds e**epsilon."""
        q, p = self._sums[self._count_above(epsilon)]
        return p, q

    def _count_above(self, epsilon: Fraction) -> int:
        low, high = 0, len(self.outcomes)
        while low < high:
            middle = (low + high) // 2
            if _ratio_exceeds(*self.outcomes[middle], epsilon):
                low = middle + 1
            else:
                high = middle
        return low

    @cached_property
    def _sums(self) -> tuple[Point, ...]:
        """The corners of the power curve: the masses under Q and under P of the first 0, 1, ... outcomes."""
        p = accumulate((p for p, _ in self.outcomes), initial=Fraction(0))
        q = accumulate((q for _, q in self.outcomes), initial=Fraction(0))
        return tuple(zip(q, p, strict=True))

    def hockey_stick(self, ratio: Fraction) -> Fraction:
        """Return the greatest P(S) - ratio Q(S) over sets of outcomes, exactly."""
        return sum((max(p - ratio * q, Fraction(0)) for p, q in self.outcomes), Fraction(0))

    def greatest_ratio(self) -> Fraction | None:
        """Return the greatest P(o)/Q(o), exactly; None if it is infinite."""
        p, q = self.outcomes[0]
        return p / q if q else None

    def kl(self) -> Real:
        """Sum p ln(p/q)."""
        return sum((ball(p) * ball(p / q).log() for p, q in self.outcomes if p), arb(0))

    def renyi(self, alpha: Fraction) -> Real:
        """The logarithm of the sum of p**alpha q**(1 - alpha), over alpha - 1."""
        return Tilt(self.outcomes, alpha).renyi()

    def rho_bounds(self) -> Bounds:
        """To a relative gap of one in a million: there is no closed form."""
        return search_rho(self.outcomes)

    def greatest(self) -> Real | None:
        """The logarithm of the greatest finite ratio, where that is above 1."""
        ratio = max((p / q for p, q in self.outcomes[:2] if q), default=Fraction(0))
        return Fraction(0) if ratio <= 1 else ball(ratio).log()

    def escaped(self) -> Fraction:
        """The mass of P where Q has none."""
        p, q = self.outcomes[0]
        return p if q == 0 else Fraction(0)

    def reversed(self) -> FinitePair:
        """Swap the two distributions."""
        return FinitePair.from_masses((q, p) for p, q in self.outcomes)

    def power_curve(self) -> PowerCurve:
        """Return the greatest true-positive rate at each false-positive rate."""
        return PowerCurve(self._sums)

    def group(self, k: int) -> FinitePair:
        """Apply the least curve above both directions k times (Dong, Roth, Su 2022, theorem 2.14)."""
        if k == 1:
            return self
        return self.power_curve().either(self.reversed().power_curve()).times(k).pair()


def _ratio_exceeds(p: Fraction, q: Fraction, epsilon: Fraction) -> bool:
    """Decide p/q > e**epsilon. They can only be equal at epsilon = 0: e to a rational is transcendental."""
    if epsilon == 0 or q == 0 or p == 0:
        return p > q
    return certainly(lambda: (ball(p / q), ball(epsilon).exp()))


@dataclass(frozen=True)
class PowerCurve:
    """A concave, piecewise linear curve of true- against false-positive rate, from (0, 0) to (1, 1)."""

    points: tuple[Point, ...]

    def __call__(self, x: Fraction) -> Fraction:
        """Return the power at a false-positive rate."""
        # At a vertical step (outcomes impossible under the null) the upper end counts.
        i = bisect_right(self.points, x, key=lambda point: point[0]) - 1
        if i + 1 == len(self.points):
            return self.points[i][1]
        (a, b), (c, d) = self.points[i], self.points[i + 1]
        return b + (d - b) * (x - a) / (c - a)

    def least_rate(self, y: Fraction) -> Fraction:
        """Return the least false-positive rate at which the power reaches y."""
        i = bisect_left(self.points, y, key=lambda point: point[1])
        if i == 0:
            return self.points[0][0]
        (a, b), (c, d) = self.points[i - 1], self.points[i]
        return a + (c - a) * (y - b) / (d - b)

    def after(self, first: PowerCurve) -> PowerCurve:
        """Return x -> self(first(x)): concave and rising as both are, and straight between these corners."""
        rates = {a for a, _ in first.points} | {first.least_rate(a) for a, _ in self.points}
        return PowerCurve.hull((x, self(first(x))) for x in rates)

    def times(self, k: int) -> PowerCurve:
        """Return this curve applied k times, by doubling."""
        corners = k * len(self.points)
        if corners > _MOST_CORNERS or corners * k * self._bits() > _MOST_BITS:
            raise Unsupported(
                f"the exact curve of these {len(self.points)} points for a group of {k} would have too many "
                "corners or digits; take the group of a promise instead: "
                "PrivacyLoss.approx(loss.epsilon(delta), delta)"
            )
        if k == 1:
            return self
        half = self.times(k // 2)
        return half.after(half) if k % 2 == 0 else self.after(half.after(half))

    def _bits(self) -> int:
        return max(max(x.denominator, y.denominator).bit_length() for x, y in self.points)

    def either(self, other: PowerCurve) -> PowerCurve:
        """Return the least concave curve that is above both."""
        return PowerCurve.hull([*self.points, *other.points])

    @classmethod
    def hull(cls, points: Iterable[Point]) -> PowerCurve:
        """Return the least concave curve from (0, 0) to (1, 1) that is above these points."""
        ends = {(Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))}
        highest: dict[Fraction, Fraction] = {}
        for x, y in {*points, *ends}:
            highest[x] = max(y, highest.get(x, y))
        hull: list[Point] = []
        for point in sorted(highest.items()):
            while len(hull) > 1 and not _turns_right(hull[-2], hull[-1], point):
                hull.pop()
            hull.append(point)
        start = [(Fraction(0), Fraction(0))] if hull[0][1] > 0 else []
        return cls((*start, *hull))

    def pair(self) -> FinitePair:
        """Return the pair of distributions that has this power curve: each step is an outcome."""
        steps = zip(self.points, self.points[1:], strict=False)
        return FinitePair.from_masses((d - b, c - a) for (a, b), (c, d) in steps)


def _turns_right(first: Point, second: Point, third: Point) -> bool:
    (a, b), (c, d), (e, f) = first, second, third
    return (c - a) * (f - b) < (d - b) * (e - a)
