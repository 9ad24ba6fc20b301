"""Databases the way the definition of privacy sees them: a bag of units, or counts over a universe.

These are for made-up data: to verify a small mechanism over every database, and to teach. A row is one unit,
whatever one person contributed, so that adding, removing or replacing a row is one neighbour step. Errors
name rows; nobody's real data passes through here.

>>> database = Database(["no", "yes", "no"])
>>> database == Database(["yes", "no", "no"])               # order is nothing
True
>>> database.histogram(["yes", "no", "unsure"])
Histogram(universe=('yes', 'no', 'unsure'), counts=(1, 2, 0))
>>> database.distance(database.add("yes"), "add-remove")
1
>>> database.distance(database.replace("no", "yes"), "add-remove")
2
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import combinations_with_replacement, pairwise
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from discreet.errors import InvalidInput
from discreet.numbers import whole
from discreet.privacy.distributions import told_apart
from discreet.privacy.neighbours import ADD_REMOVE, Neighbours

__all__ = ["Database", "Histogram", "count_databases", "databases", "neighbours_of", "read_universe"]

Row = TypeVar("Row", bound=Hashable)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Database(Generic[Row]):
    """An immutable bag of rows: equal when every row occurs equally often.

    Claim: equal databases iterate in the same order, so a mechanism cannot tell them apart by it. Numbers
    and text come sorted; rows of a type that has no order of its own come in the order of their `repr`.
    """

    rows: tuple[Row, ...]

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        if isinstance(rows, Mapping):
            raise InvalidInput(
                "a Database is built from rows, and iterating over a mapping loses its counts: "
                "write Histogram(counts.keys(), counts.values()).database()"
            )
        placed = sorted(((_place(row), row) for row in map(_readable, rows)), key=itemgetter(0))
        for (place, row), (next_place, other) in pairwise(placed):
            if place == next_place and (row != other or told_apart(row, other)):
                raise InvalidInput(
                    f"{row!r} and {other!r} have one place in every order, and a reader can tell them apart: "
                    "write rows in one type, and so that different ones print differently"
                )
        object.__setattr__(self, "rows", tuple(row for _, row in placed))

    @cached_property
    def counts(self) -> Mapping[Row, int]:
        """How often each row occurs; rows that do not occur are not there."""
        return MappingProxyType(Counter(self.rows))

    def count(self, row: Row) -> int:
        """How often `row` occurs."""
        return self.counts.get(_readable(row), 0)

    def add(self, row: Row) -> Database[Row]:
        """This database with one more `row`."""
        return Database((*self.rows, row))

    def remove(self, row: Row) -> Database[Row]:
        """This database with one `row` fewer."""
        if not self.count(row):
            raise InvalidInput(f"cannot remove {row!r}: it is not in {self!r}")
        at = self.rows.index(row)
        return Database(self.rows[:at] + self.rows[at + 1 :])

    def replace(self, old: Row, new: Row) -> Database[Row]:
        """This database with one `old` row exchanged for `new`."""
        return self.remove(old).add(new)

    def distance(self, other: Database[Row], neighbours: Neighbours | str = ADD_REMOVE) -> float:
        """The fewest neighbour steps from this database to `other`.

        Claim: for add-remove, the l1 distance of the histograms; for replace, half of it between databases
        of one size, and infinity otherwise, as no number of replacements changes the size. A relation
        `.at(k)` covers k of these in one step.
        """
        if not isinstance(other, Database):
            raise InvalidInput(
                f"a distance is between two Databases, and the other is a {type(other).__name__}"
            )
        missing = (Counter(self.rows) - Counter(other.rows)).total()
        extra = (Counter(other.rows) - Counter(self.rows)).total()
        return _steps(missing, extra, Neighbours.of(neighbours))

    def histogram(self, universe: Iterable[Row]) -> Histogram[Row]:
        """The counts of these rows over a finite universe that holds them all."""
        known = read_universe(universe)
        _all_within(self.counts, known)
        return Histogram(known, (self.count(row) for row in known))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __eq__(self, other: object) -> bool:
        return self.counts == other.counts if isinstance(other, Database) else NotImplemented

    @cached_property
    def _hash(self) -> int:
        return hash(frozenset(self.counts.items()))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Database({list(self.rows)!r})"


@dataclass(frozen=True, init=False)
class Histogram(Generic[Row]):
    """A count for every row of a finite universe, in the universe's order."""

    universe: tuple[Row, ...]
    counts: tuple[int, ...]

    def __init__(self, universe: Iterable[Row], counts: Iterable[int]) -> None:
        if not isinstance(counts, Iterable):
            raise InvalidInput(
                f"a histogram needs one count per row, not {type(counts).__name__}: {counts!r}"
            )
        known, given = read_universe(universe), tuple(counts)
        if len(known) != len(given):
            raise InvalidInput(f"a histogram needs one count per row: {len(known)} rows, {len(given)} counts")
        object.__setattr__(self, "universe", known)
        object.__setattr__(
            self,
            "counts",
            tuple(whole(count, f"the count of {row!r}") for row, count in zip(known, given, strict=True)),
        )

    @property
    def size(self) -> int:
        """How many rows there are in all."""
        return sum(self.counts)

    def count(self, row: Row) -> int:
        """How often `row`, which must be in the universe, occurs."""
        _all_within([row], self.universe)
        return self.counts[self.universe.index(row)]

    def add(self, row: Row) -> Histogram[Row]:
        """This histogram with one more `row`."""
        _all_within([row], self.universe)
        return Histogram(self.universe, map(int.__add__, self.counts, self._indicator(row)))

    def remove(self, row: Row) -> Histogram[Row]:
        """This histogram with one `row` fewer."""
        if not self.count(row):
            raise InvalidInput(f"cannot remove {row!r}: its count is 0")
        return Histogram(self.universe, map(int.__sub__, self.counts, self._indicator(row)))

    def replace(self, old: Row, new: Row) -> Histogram[Row]:
        """This histogram with one `old` row exchanged for `new`."""
        return self.remove(old).add(new)

    def distance(self, other: Histogram[Row], neighbours: Neighbours | str = ADD_REMOVE) -> float:
        """The fewest neighbour steps to `other`, over the same universe; see `Database.distance`."""
        if not isinstance(other, Histogram):
            raise InvalidInput(
                f"a distance is between two Histograms, and the other is a {type(other).__name__}"
            )
        if self.universe != other.universe:
            raise InvalidInput(
                "histograms have a distance over one universe, in one order: "
                f"{self.universe!r} is not {other.universe!r}"
            )
        moves = [theirs - ours for ours, theirs in zip(self.counts, other.counts, strict=True)]
        missing, extra = -sum(move for move in moves if move < 0), sum(move for move in moves if move > 0)
        return _steps(missing, extra, Neighbours.of(neighbours))

    def database(self) -> Database[Row]:
        """The rows that these counts stand for."""
        return Database(
            row for row, count in zip(self.universe, self.counts, strict=True) for _ in range(count)
        )

    def _indicator(self, row: Row) -> list[int]:
        return [int(other == row) for other in self.universe]


def databases(
    universe: Iterable[Row], n: int, neighbours: Neighbours | str = ADD_REMOVE
) -> Iterator[Database[Row]]:
    """Yield, once each, every database of n rows (replace), or of 0 to n rows (add-remove).

    >>> [len(database) for database in databases("ab", 2, "add-remove")]
    [0, 1, 1, 2, 2, 2]
    >>> list(databases("ab", 2, "replace"))
    [Database(['a', 'a']), Database(['a', 'b']), Database(['b', 'b'])]
    """
    known, sizes = read_universe(universe), _sizes(n, Neighbours.of(neighbours))
    return (Database(rows) for size in sizes for rows in combinations_with_replacement(known, size))


def count_databases(universe: Iterable[Row], n: int, neighbours: Neighbours | str = ADD_REMOVE) -> int:
    """How many databases `databases` would yield.

    >>> count_databases("ab", 2, "add-remove"), count_databases(range(10), 100, "replace")
    (6, 4263421511271)
    """
    relation, values = Neighbours.of(neighbours), len(read_universe(universe))
    # A bag of n rows; or of at most n rows, which is a bag of n with "no row" as one more value.
    kinds = values - 1 if relation.kind == "replace" else values
    return math.comb(whole(n, "n") + kinds, kinds)


def neighbours_of(
    database: Database[Row],
    universe: Iterable[Row],
    neighbours: Neighbours | str = ADD_REMOVE,
    *,
    among: Container[Database[Row]] | None = None,
) -> tuple[Database[Row], ...]:
    """Return every neighbour of `database` whose rows are in `universe`, once each, nearest first.

    Claim: these are exactly the databases over the universe at distance 1 under the relation; with `among`,
    those that are in it, if it holds all databases up to some size, or of one size. The database itself is
    not among them.

    >>> neighbours_of(Database("a"), "ab", "add-remove")
    (Database([]), Database(['a', 'a']), Database(['a', 'b']))
    >>> neighbours_of(Database("a"), "ab", "replace")
    (Database(['b']),)
    """
    relation, known = Neighbours.of(neighbours), read_universe(universe)
    _all_within(database.counts, known)
    step = _STEP[relation.kind]
    seen, frontier = {database: None}, [database]
    for _ in range(relation.distance):
        # Rows are taken away before others are added, so no shortest path need leave a set of all small ones.
        frontier = [
            far
            for far in dict.fromkeys(_reach(frontier, step, known))
            if far not in seen and (among is None or far in among)
        ]
        if not frontier:
            break
        seen.update(dict.fromkeys(frontier))
    return tuple(seen)[1:]


def read_universe(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return the rows of a universe as a tuple, refusing an empty one and one that names a row twice."""
    known = tuple(map(_readable, rows))
    if not known:
        raise InvalidInput("a universe needs at least one row that a unit could have")
    twice = [row for row, count in Counter(known).items() if count > 1]
    if twice:
        raise InvalidInput(f"a universe names each row once, and {twice[0]!r} is there more than once")
    return known


# --- the steps of each relation --------------------------------------------------------------------

_Step = Callable[[Database[Any], Sequence[Any]], Iterator[Database[Any]]]


def _one_more_or_fewer(database: Database[Row], universe: Sequence[Row]) -> Iterator[Database[Row]]:
    yield from (database.remove(row) for row in database.counts)
    yield from (database.add(row) for row in universe)


def _one_exchanged(database: Database[Row], universe: Sequence[Row]) -> Iterator[Database[Row]]:
    return (database.replace(old, new) for old in database.counts for new in universe if new != old)


_STEP: dict[str, _Step] = {"add-remove": _one_more_or_fewer, "replace": _one_exchanged}


def _reach(near: Iterable[Database[Any]], step: _Step, universe: Sequence[Any]) -> Iterator[Database[Any]]:
    return (far for database in near for far in step(database, universe))


def _sizes(n: int, relation: Neighbours) -> range:
    n = whole(n, "n")
    return range(n, n + 1) if relation.kind == "replace" else range(n + 1)


def _steps(missing: int, extra: int, relation: Neighbours) -> float:
    """Steps between bags, of which one lacks `missing` rows of the other and has `extra` beside them."""
    if relation.kind == "replace":
        return -(-missing // relation.distance) if missing == extra else math.inf
    return -(-(missing + extra) // relation.distance)


# --- rows ------------------------------------------------------------------------------------------


def _readable(row: Row) -> Row:
    try:
        hash(row)
    except TypeError:
        raise InvalidInput(
            f"a row must be hashable, so that equal rows can be counted: {row!r} is not. "
            "Write a list as a tuple, a set as a frozenset, a dict as a tuple of its items"
        ) from None
    return row


def _all_within(rows: Iterable[Row], universe: Sequence[Row]) -> None:
    known = frozenset(universe)
    for row in rows:
        if _readable(row) not in known:
            raise InvalidInput(f"{row!r} is not in the universe {tuple(universe)!r}")


def _place(row: Hashable) -> tuple[int, Any]:
    """A sort key that is the same for equal rows and never compares rows of different kinds."""
    if row != row:
        raise InvalidInput(f"a row must equal itself, and {row!r} does not: write None for what is missing")
    if isinstance(row, (numbers.Real, Decimal)):
        return 0, row
    if isinstance(row, (str, bytes)):
        return (1 if isinstance(row, str) else 2), row
    if isinstance(row, tuple):
        return 3, tuple(map(_place, row))
    if isinstance(row, frozenset):  # its own < is inclusion, which is no total order
        return 4, tuple(sorted(map(_place, row)))
    return 5, (type(row).__qualname__, repr(row))
