"""Pairs of finite distributions in exact fractions, and piecewise linear trade-off curves.

A pair of finite distributions and its power curve (the greatest true-positive rate at each false-positive
rate) are two views of one thing: sort the outcomes by likelihood ratio, and their masses are the curve's
steps. That makes group privacy exact: k steps from a database, power is the curve applied k times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from flint import arb

from discreet.errors import InvalidInput
from discreet.numbers import Exactable, fraction_text, nonnegative
from discreet.privacy.pairs import Masses, Pair
from discreet.privacy.reals import Real, ball, certainly

__all__ = ["FinitePair", "PowerCurve"]

Point = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class FinitePair(Pair):
    """Outcomes as (mass under P, mass under Q), merged and sorted by likelihood ratio, greatest first."""

    outcomes: tuple[Point, ...]

    @classmethod
    def of(cls, p: Sequence[Exactable], q: Sequence[Exactable]) -> FinitePair:
        """Read two distributions over the same outcomes, listed in the same order."""
        if len(p) != len(q):
            raise InvalidInput(f"p lists {len(p)} outcomes and q lists {len(q)}; list the same outcomes in both")
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
        merged: dict[Fraction | None, Point] = {}
        for p, q in masses:
            if p or q:
                before = merged.get(p / q if q else None, (Fraction(0), Fraction(0)))
                merged[p / q if q else None] = (before[0] + p, before[1] + q)
        escaped = [merged.pop(None)] if None in merged else []
        return cls((*escaped, *(merged[ratio] for ratio in sorted(merged, key=_as_key, reverse=True))))

    def above(self, epsilon: Fraction) -> Masses:
        """Add up the outcomes whose ratio exceeds e**epsilon."""
        return self._sums(self._count_above(epsilon))

    def _count_above(self, epsilon: Fraction) -> int:
        low, high = 0, len(self.outcomes)
        while low < high:
            middle = (low + high) // 2
            if _ratio_exceeds(*self.outcomes[middle], epsilon):
                low = middle + 1
            else:
                high = middle
        return low

    def _sums(self, count: int) -> Masses:
        p, q = self.power_curve().points[count] if count else (Fraction(0), Fraction(0))
        return ball(q), ball(p)

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
        """Sum p**alpha q**(1 - alpha)."""
        power = ball(alpha)
        moment = sum((ball(q) * ball(p / q) ** power for p, q in self.outcomes if p), arb(0))
        return moment.log() / ball(alpha - 1)

    def greatest(self) -> Real | None:
        """The logarithm of the greatest ratio."""
        ratio = self.greatest_ratio()
        return None if ratio is None else Fraction(0) if ratio == 1 else ball(ratio).log()

    def escaped(self) -> Fraction:
        """The mass of P where Q has none."""
        p, q = self.outcomes[0]
        return p if q == 0 else Fraction(0)

    def reversed(self) -> Pair:
        """Swap the two distributions."""
        return FinitePair.from_masses((q, p) for p, q in self.outcomes)

    def power_curve(self) -> PowerCurve:
        """Return the greatest true-positive rate at each false-positive rate."""
        p = accumulate((p for p, _ in self.outcomes), initial=Fraction(0))
        q = accumulate((q for _, q in self.outcomes), initial=Fraction(0))
        return PowerCurve(tuple(zip(q, p, strict=True)))

    def group(self, k: int) -> Pair:
        """Compose the power curve of the worse direction k times (Dong, Roth, Su 2022, theorem 2.14)."""
        worse = self.power_curve().either(_finite(self.reversed()).power_curve())
        curve = worse
        for _ in range(k - 1):
            curve = worse.after(curve)
        return curve.pair()


def _finite(pair: Pair) -> FinitePair:
    assert isinstance(pair, FinitePair)
    return pair


def _as_key(ratio: Fraction | None) -> Fraction:
    return Fraction(0) if ratio is None else ratio


def _ratio_exceeds(p: Fraction, q: Fraction, epsilon: Fraction) -> bool:
    """Decide p/q > e**epsilon. The two can only be equal at epsilon = 0: e to a rational is transcendental."""
    if epsilon == 0 or q == 0 or p == 0:
        return p > q
    return certainly(lambda: (ball(p / q), ball(epsilon).exp()))


@dataclass(frozen=True)
class PowerCurve:
    """A concave, piecewise linear power curve: (false-positive rate, true-positive rate), from (0, 0) to (1, 1)."""

    points: tuple[Point, ...]

    def __call__(self, x: Fraction) -> Fraction:
        """Return the power at a false-positive rate."""
        points = self.points
        # At a vertical step (outcomes impossible under the null) the upper end counts.
        i = max(i for i, (a, _) in enumerate(points) if a <= x)
        if i + 1 == len(points):
            return points[i][1]
        (a, b), (c, d) = points[i], points[i + 1]
        return b + (d - b) * (x - a) / (c - a)

    def least_rate(self, y: Fraction) -> Fraction:
        """Return the least false-positive rate at which the power reaches y."""
        i = next(i for i, (_, b) in enumerate(self.points) if b >= y)
        if i == 0:
            return self.points[0][0]
        (a, b), (c, d) = self.points[i - 1], self.points[i]
        return a + (c - a) * (y - b) / (d - b)

    def after(self, first: PowerCurve) -> PowerCurve:
        """Return x -> self(first(x)): concave and increasing as both are."""
        rates = {a for a, _ in first.points} | {first.least_rate(a) for a, _ in self.points}
        corners = [(x, self(first(x))) for x in sorted(rates)]
        return PowerCurve.hull(corners)

    def either(self, other: PowerCurve) -> PowerCurve:
        """Return the least concave curve that is above both."""
        return PowerCurve.hull([*self.points, *other.points])

    @classmethod
    def hull(cls, points: Iterable[Point]) -> PowerCurve:
        """Return the upper concave hull of points, with (0, 0) and (1, 1)."""
        hull: list[Point] = []
        corners = sorted({*points, (Fraction(1), Fraction(1))})
        for point in corners:
            while len(hull) > 1 and not _turns_right(hull[-2], hull[-1], point):
                hull.pop()
            if hull and hull[-1][0] == point[0]:
                hull.pop()
            hull.append(point)
        if hull[0][1] > 0 or hull[0][0] > 0:
            hull.insert(0, (Fraction(0), Fraction(0)))
        top = next(i for i, (_, y) in enumerate(hull) if y == 1)
        if hull[top][0] < 1 and top + 1 == len(hull):
            hull.append((Fraction(1), Fraction(1)))
        return cls(tuple(hull))

    def pair(self) -> FinitePair:
        """Return the pair of distributions that has this power curve: each step is an outcome."""
        steps = zip(self.points, self.points[1:], strict=False)
        return FinitePair.from_masses((d - b, c - a) for (a, b), (c, d) in steps)


def _turns_right(first: Point, second: Point, third: Point) -> bool:
    (a, b), (c, d), (e, f) = first, second, third
    return (c - a) * (f - b) < (d - b) * (e - a)
