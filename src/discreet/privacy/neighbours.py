"""Which databases count as differing in one unit.

>>> Neighbours.of("replace")
Neighbours('replace')
>>> ADD_REMOVE.at(3)                      # databases that differ in three units
Neighbours('add-remove', distance=3)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from discreet.errors import InvalidInput
from discreet.numbers import whole

__all__ = ["ADD_REMOVE", "REPLACE", "Neighbours"]


@dataclass(frozen=True, repr=False)
class Neighbours:
    """A neighbour relation between databases, seen as multisets of units.

    `add-remove`: one unit more or one unit fewer; histograms differ by 1 in l1.
    `replace`: one unit exchanged for another; the number of units is public, and histograms differ by 2
    in l1. With `distance=k`, at most k such steps.
    """

    kind: str
    distance: int = 1

    KINDS: ClassVar[tuple[str, ...]] = ("add-remove", "replace")

    def __post_init__(self) -> None:
        if self.kind not in self.KINDS:
            raise InvalidInput(f"neighbours must be 'add-remove' or 'replace', not {self.kind!r}")
        object.__setattr__(self, "distance", whole(self.distance, "distance", least=1))

    @classmethod
    def of(cls, relation: Neighbours | str) -> Neighbours:
        """Read a relation given by name, or pass one through."""
        if isinstance(relation, Neighbours):
            return relation
        if not isinstance(relation, str):
            raise InvalidInput(f"neighbours must be 'add-remove' or 'replace', not {relation!r}")
        return cls(relation)

    @property
    def histogram_l1(self) -> int:
        """The most that the l1 distance between the histograms of two neighbours can be."""
        return self.distance * (1 if self.kind == "add-remove" else 2)

    def at(self, distance: int) -> Neighbours:
        """The relation "within `distance` steps of this one"."""
        return Neighbours(self.kind, self.distance * whole(distance, "distance", least=1))

    def __repr__(self) -> str:
        far = f", distance={self.distance}" if self.distance != 1 else ""
        return f"Neighbours({self.kind!r}{far})"


ADD_REMOVE = Neighbours("add-remove")
REPLACE = Neighbours("replace")
