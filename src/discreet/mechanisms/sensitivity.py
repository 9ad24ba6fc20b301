"""How far one unit can move the answers: the sensitivity of the standard queries.

>>> Sensitivity.counts(3)                       # three counts that one person may be in at once
Sensitivity(l1=3, l2=sqrt(3), linf=1, size=3, whole, 'add-remove')
>>> Sensitivity.histogram(3).l1, Sensitivity.histogram(3, neighbours="replace").l1
(Fraction(1, 1), Fraction(2, 1))
>>> Sensitivity.sum(0, 5_000, rows=20).l1       # of up to 20 rows a person
Fraction(100000, 1)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidInput, Unsupported
from discreet.numbers import Exactable, exact, fraction_text, positive, whole
from discreet.privacy.neighbours import ADD_REMOVE, Neighbours
from discreet.privacy.reals import ball, enclose

__all__ = ["Sensitivity"]

Relation = Neighbours | str


@dataclass(frozen=True, repr=False)
class Sensitivity:
    """The most that the answers to a query move between neighbours, in l1, l2 (squared) and l-infinity.

    Claim of each constructor: for all databases that are neighbours under the relation, the answers differ by
    at most these norms, and for some they do. `whole` says that every answer is an integer.
    """

    l1: Fraction
    l2_squared: Fraction
    linf: Fraction
    size: int
    whole: bool
    neighbours: Neighbours

    def __init__(
        self,
        *,
        l1: Exactable,
        linf: Exactable | None = None,
        l2_squared: Exactable | None = None,
        size: int = 1,
        whole: bool = False,
        neighbours: Relation = ADD_REMOVE,
    ) -> None:
        most = positive(l1, "l1")
        one = most if linf is None else positive(linf, "linf")
        # What is not said is at most this: one answer may be all that moves, and l2**2 is at most l1 * linf.
        square = most * one if l2_squared is None else positive(l2_squared, "l2_squared")
        values = most, square, one
        count = _whole(size, "size", least=1)
        if not values[2] ** 2 <= values[1] <= values[0] ** 2 or not values[2] <= values[0]:
            raise InvalidInput("norms must be in order: linf at most l2, and l2 at most l1")
        if values[0] > count * values[2] or values[1] > count * values[2] ** 2:
            raise InvalidInput(
                f"norms do not fit {count} answers: at most l1 = size * linf, l2**2 = size * linf**2"
            )
        for name, value in zip(("l1", "l2_squared", "linf"), values, strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "size", count)
        object.__setattr__(self, "whole", bool(whole))
        object.__setattr__(self, "neighbours", Neighbours.of(neighbours))

    @property
    def l2(self) -> float:
        """The l2 norm, rounded up."""
        return enclose(lambda: ball(self.l2_squared).sqrt()).upper

    # --- the standard queries ------------------------------------------------------------------------

    @classmethod
    def count(cls, *, rows: int = 1, neighbours: Relation = ADD_REMOVE) -> Sensitivity:
        """One count. A unit has up to `rows` rows."""
        return cls.counts(1, rows=rows, neighbours=neighbours)

    @classmethod
    def counts(cls, k: int, *, rows: int = 1, neighbours: Relation = ADD_REMOVE) -> Sensitivity:
        """k counts that may overlap: one row may be in all of them, or leave all of them."""
        return cls._alike(Fraction(1), k, rows, neighbours, whole=True)

    @classmethod
    def histogram(cls, k: int, *, rows: int = 1, neighbours: Relation = ADD_REMOVE) -> Sensitivity:
        """k counts of which a row is in one at most: 1 under add-remove, and 2 under replace.

        Replaced, a row leaves one cell and enters another; with a single cell it can only do one of these.
        """
        relation, k = Neighbours.of(neighbours), _whole(k, "k", least=1)
        cells = 1 if relation.kind == "add-remove" or k == 1 else 2
        return cls(
            l1=cells, l2_squared=cells, linf=1, size=k, whole=True, neighbours=Neighbours(relation.kind)
        ).times(_whole(rows, "rows", least=1) * relation.distance, neighbours=relation)

    @classmethod
    def proportions(cls, k: int, n: int, *, neighbours: Relation = "replace") -> Sensitivity:
        """k proportions, which may overlap, of a public number n of units: k/n."""
        size = _public_size(n, neighbours, "a proportion", "a count, and divide by a noisy total")
        return cls._alike(Fraction(1, size), k, 1, neighbours, whole=size == 1)

    @classmethod
    def sum(
        cls,
        low: Exactable,
        high: Exactable,
        *,
        rows: int = 1,
        whole: bool = False,
        neighbours: Relation = ADD_REMOVE,
    ) -> Sensitivity:
        """The sum of values clipped to [low, high]; see `sums`."""
        return cls.sums([(low, high)], rows=rows, whole=whole, neighbours=neighbours)

    @classmethod
    def sums(
        cls,
        bounds: list[tuple[Exactable, Exactable]],
        *,
        rows: int = 1,
        whole: bool = False,
        neighbours: Relation = ADD_REMOVE,
    ) -> Sensitivity:
        """Sums of several columns, each clipped to its own (low, high).

        Under add-remove a row adds at most max(|low|, |high|). Under replace a unit's only row changes by
        high - low; of several rows, any number may be missing on either side, so that each may also add or
        take away its whole value. Where a filter may leave a row out, let the bounds hold 0, which is what it
        then adds. `whole` says that every value is an integer, and so are its bounds.
        """
        pairs: Any = bounds
        if not isinstance(pairs, (list, tuple)) or not all(_is_pair(pair) for pair in pairs):
            raise InvalidInput("bounds must be a list of pairs, such as [(0, 1), (0, 5000)]")
        read = [_bounds(low, high) for low, high in bounds]
        if not read:
            raise InvalidInput("give at least one pair of bounds")
        if whole and any(low.denominator != 1 or high.denominator != 1 for low, high in read):
            raise InvalidInput(
                "whole values are clipped to whole bounds: leave whole=True out, or round the bounds"
            )
        moves = [_move(low, high, rows, Neighbours.of(neighbours).kind) for low, high in read]
        return cls._coordinates(moves, rows, neighbours, whole=whole)

    @classmethod
    def mean(
        cls, low: Exactable, high: Exactable, n: int, *, neighbours: Relation = "replace"
    ) -> Sensitivity:
        """The mean of a public number n of values clipped to [low, high]: (high - low)/n."""
        size = _public_size(n, neighbours, "a mean", "a sum and a count, and divide")
        bottom, top = _bounds(low, high)
        return cls._coordinates([(top - bottom) / size], 1, neighbours)

    @classmethod
    def _alike(cls, move: Fraction, k: int, rows: int, neighbours: Relation, *, whole: bool) -> Sensitivity:
        """One row may move each of k answers by the same at once."""
        k, relation = _whole(k, "k", least=1), Neighbours.of(neighbours)
        one = cls(
            l1=k * move,
            l2_squared=k * move**2,
            linf=move,
            size=k,
            whole=whole,
            neighbours=Neighbours(relation.kind),
        )
        return one.times(_whole(rows, "rows", least=1) * relation.distance, neighbours=relation)

    @classmethod
    def _coordinates(
        cls, moves: list[Fraction], rows: int, neighbours: Relation, *, whole: bool = False
    ) -> Sensitivity:
        """One row may move every answer by its whole share at once."""
        relation = Neighbours.of(neighbours)
        if not any(moves):
            raise InvalidInput("these bounds leave a value no room to move: there is nothing to protect")
        one = cls(
            l1=sum(moves, Fraction(0)),
            l2_squared=sum((move**2 for move in moves), Fraction(0)),
            linf=max(moves),
            size=len(moves),
            whole=whole,
            neighbours=Neighbours(relation.kind),
        )
        return one.times(_whole(rows, "rows", least=1) * relation.distance, neighbours=relation)

    def times(self, rows: int, *, neighbours: Relation | None = None) -> Sensitivity:
        """Of up to `rows` such moves at once: by the triangle inequality norms grow at most as much."""
        k = _whole(rows, "rows", least=1)
        return Sensitivity(
            l1=k * self.l1,
            l2_squared=k**2 * self.l2_squared,
            linf=k * self.linf,
            size=self.size,
            whole=self.whole,
            neighbours=self.neighbours if neighbours is None else neighbours,
        )

    def group(self, k: int) -> Sensitivity:
        """Between databases that differ in k units."""
        k = _whole(k, "k", least=1)
        return self.times(k, neighbours=self.neighbours.at(k))

    def __repr__(self) -> str:
        root = _root_text(self.l2_squared)
        kind = "whole, " if self.whole else ""
        return (
            f"Sensitivity(l1={fraction_text(self.l1)}, l2={root}, linf={fraction_text(self.linf)}, "
            f"size={self.size}, {kind}{self.neighbours.kind!r})"
        )


_whole = whole


def _root_text(square: Fraction) -> str:
    from math import isqrt

    top, bottom = isqrt(square.numerator), isqrt(square.denominator)
    if top**2 == square.numerator and bottom**2 == square.denominator:
        return fraction_text(Fraction(top, bottom))
    return f"sqrt({fraction_text(square)})"


def _move(low: Fraction, high: Fraction, rows: int, relation: str) -> Fraction:
    """Return how far one of a unit's rows can move a sum."""
    if relation == "replace" and rows == 1:
        return high - low
    return max(abs(low), abs(high), high - low if relation == "replace" else Fraction(0))


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, (list, tuple)) and len(pair) == 2


def _bounds(low: Exactable, high: Exactable) -> tuple[Fraction, Fraction]:
    bottom, top = exact(low, "low"), exact(high, "high")
    if bottom > top:
        raise InvalidInput(f"low must not be above high: {low} is above {high}")
    return bottom, top


def _public_size(n: int, neighbours: Relation, what: str, instead: str) -> int:
    if Neighbours.of(neighbours).kind != "replace":
        raise Unsupported(
            f"{what} divides by the number of units, which add-remove keeps secret: release {instead}, "
            "or say neighbours='replace'"
        )
    return whole(n, "n", least=1)
