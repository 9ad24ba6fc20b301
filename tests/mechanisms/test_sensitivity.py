"""The sensitivity of each standard query is what going through all neighbours finds: no less, and no more."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction as F
from typing import Any

import pytest

from discreet.errors import InvalidInput, Unsupported
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.sensitivity import Sensitivity
from discreet.privacy import Neighbours
from discreet.privacy.database import Database, databases, neighbours_of

Norms = tuple[F, F, F]
Query = Callable[[list[Any]], list[F]]


def moved(query: Query, rows: list[Any], n: int, neighbours: Neighbours, units: int = 1) -> Norms:
    """Go through every database of n units, each of up to `units` rows, and all its neighbours."""
    universe = [
        unit for size in range(1, units + 1) for unit in itertools.combinations_with_replacement(rows, size)
    ]
    most = (F(0), F(0), F(0))
    for database in databases(universe, n, neighbours):
        for other in neighbours_of(database, universe, neighbours):
            moves = [abs(a - b) for a, b in zip(query(_rows(database)), query(_rows(other)), strict=True)]
            norms = sum(moves, F(0)), sum((m * m for m in moves), F(0)), max(moves)
            most = (max(most[0], norms[0]), max(most[1], norms[1]), max(most[2], norms[2]))
    return most


def _rows(database: Database[Any]) -> list[Any]:
    return [row for unit in database for row in unit]


def norms_of(stated: Sensitivity) -> Norms:
    return stated.l1, stated.l2_squared, stated.linf


def counts(k: int) -> Query:
    return lambda rows: [F(sum(row[i] for row in rows)) for i in range(k)]


def sums(bounds: list[tuple[F, F]]) -> Query:
    return lambda rows: [F(sum(min(max(row[i], a), b) for row in rows)) for i, (a, b) in enumerate(bounds)]


BITS2 = list(itertools.product([0, 1], repeat=2))
CELLS = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)]
RELATIONS = [
    Neighbours("add-remove"),
    Neighbours("replace"),
    Neighbours("add-remove", 2),
    Neighbours("replace", 2),
]


@pytest.mark.parametrize("relation", RELATIONS, ids=repr)
def test_counts(relation: Neighbours) -> None:
    stated = Sensitivity.counts(2, neighbours=relation)
    assert moved(counts(2), BITS2, 2, relation) == norms_of(stated)
    assert stated.whole
    assert stated.neighbours == relation


@pytest.mark.parametrize("relation", RELATIONS, ids=repr)
def test_count(relation: Neighbours) -> None:
    assert moved(counts(1), [(0,), (1,)], 2, relation) == norms_of(Sensitivity.count(neighbours=relation))


@pytest.mark.parametrize("relation", RELATIONS, ids=repr)
def test_histogram(relation: Neighbours) -> None:
    """At a distance of two, both units may leave one cell for one other: l2 then is all that is stated."""
    stated = Sensitivity.histogram(3, neighbours=relation)
    assert moved(counts(3), CELLS[:3], 3, relation) == norms_of(stated)
    one_cell = Sensitivity.histogram(1, neighbours=relation)
    assert moved(counts(1), [(0,), (1,)], 2, relation) == norms_of(one_cell)


@pytest.mark.parametrize("relation", RELATIONS[:2], ids=repr)
def test_rows_of_one_unit_add_up(relation: Neighbours) -> None:
    stated = Sensitivity.counts(2, rows=2, neighbours=relation)
    assert moved(counts(2), BITS2, 1, relation, units=2) == norms_of(stated)
    cells = Sensitivity.histogram(3, rows=2, neighbours=relation)
    assert moved(counts(3), CELLS[:3], 1, relation, units=2) <= norms_of(cells)
    for low, high in ((-1, 3), (1, 3), (-5, -2), (0, 4)):
        summed = Sensitivity.sums([(low, high)], rows=2, neighbours=relation)
        found = moved(
            sums([(F(low), F(high))]), [(v,) for v in sorted({-9, low, 0, high, 9})], 1, relation, units=2
        )
        assert found <= norms_of(summed)
        if relation.kind == "add-remove" or low < 0 < high:
            assert found == norms_of(summed)


def test_several_rows_of_which_some_are_missing_move_a_sum_by_their_whole_values() -> None:
    """Planted: rows * (high - low) under replace. Five rows of 20 against one of 10 are 90 apart."""
    stated = Sensitivity.sum(10, 20, rows=5, neighbours="replace")
    assert stated.l1 >= 90 > 5 * (20 - 10)
    assert Sensitivity.sum(10, 20, neighbours="replace").l1 == 10


@pytest.mark.parametrize("relation", RELATIONS, ids=repr)
@pytest.mark.parametrize("bounds", [[(F(0), F(3))], [(F(-2), F(1))], [(F(1), F(3)), (F(-5), F(-1))]])
def test_sums(relation: Neighbours, bounds: list[tuple[F, F]]) -> None:
    rows = list(itertools.product(*[[low, high] for low, high in bounds]))
    stated = Sensitivity.sums(list(bounds), neighbours=relation)
    assert moved(sums(bounds), rows, 2, relation) == norms_of(stated)
    assert not stated.whole


def test_mean_and_proportions() -> None:
    n, relation = 3, Neighbours("replace")

    def mean(rows: list[Any]) -> list[F]:
        return [sum((F(min(max(row, -1), 3)) for row in rows), F(0)) / n]

    assert moved(mean, [-7, -1, 2, 3, 8], n, relation) == norms_of(Sensitivity.mean(-1, 3, n))

    def proportions(rows: list[Any]) -> list[F]:
        return [F(sum(row[i] for row in rows), n) for i in range(2)]

    assert moved(proportions, BITS2, n, relation) == norms_of(Sensitivity.proportions(2, n))
    assert Sensitivity.proportions(5, 100).l1 == F(5, 100)


def test_a_number_of_units_that_is_not_public_divides_nothing() -> None:
    with pytest.raises(Unsupported, match="keeps secret"):
        Sensitivity.mean(0, 1, 10, neighbours="add-remove")
    with pytest.raises(Unsupported, match="keeps secret"):
        Sensitivity.proportions(2, 10, neighbours="add-remove")


def test_group() -> None:
    stated = Sensitivity.histogram(4).group(3)
    assert norms_of(stated) == (F(3), F(9), F(3))
    assert stated.neighbours == Neighbours("add-remove", 3)


BAD: dict[str, Callable[[], object]] = {
    "norms out of order": lambda: Sensitivity(l1=1, l2_squared=4, linf=1, size=9),
    "linf above l1": lambda: Sensitivity(l1=1, l2_squared=1, linf=2),
    "too few answers": lambda: Sensitivity(l1=3, l2_squared=3, linf=1, size=2),
    "zero": lambda: Sensitivity(l1=0, l2_squared=0, linf=0),
    "nan": lambda: Sensitivity(l1=float("nan"), l2_squared=1, linf=1),
    "no counts": lambda: Sensitivity.counts(0),
    "half a count": lambda: Sensitivity.counts(1.5),  # type: ignore[arg-type]
    "no rows": lambda: Sensitivity.sum(0, 1, rows=0),
    "bounds reversed": lambda: Sensitivity.sum(1, 0),
    "bounds infinite": lambda: Sensitivity.sum(0, float("inf")),
    "no room": lambda: Sensitivity.sum(0, 0),
    "no room to replace": lambda: Sensitivity.sum(3, 3, neighbours="replace"),
    "no columns": lambda: Sensitivity.sums([]),
    "unknown relation": lambda: Sensitivity.count(neighbours="adjacent"),
    "nobody": lambda: Sensitivity.mean(0, 1, 0),
}


@pytest.mark.parametrize("ask", BAD.values(), ids=BAD)
def test_bad_input(ask: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        ask()


def test_what_is_not_said_is_bounded_from_what_is() -> None:
    assert norms_of(Sensitivity(l1=2)) == (F(2), F(4), F(2))
    assert norms_of(Sensitivity(l1=2, linf=1, size=2)) == (F(2), F(2), F(1))
    assert Sensitivity.counts(20).l2 >= math.sqrt(20)
    for given in ([(0, 1), (2,)], (0, 1), 5, [0, 1], "01"):
        with pytest.raises(InvalidInput, match="pairs"):
            Sensitivity.sums(given)  # type: ignore[arg-type]


def test_sums_of_whole_values_are_whole() -> None:
    stated = Sensitivity.sum(0, 5000, rows=3, whole=True)
    assert stated.whole
    assert type(Laplace.calibrate(epsilon=1, sensitivity=stated).release(123456)) is int
    with pytest.raises(InvalidInput, match="whole bounds"):
        Sensitivity.sum(0, 0.5, whole=True)


def test_noise_for_more_answers_than_a_sensitivity_is_about_is_refused() -> None:
    asked: list[Callable[[], object]] = [
        lambda: Laplace.calibrate(epsilon=1, sensitivity=Sensitivity.counts(4), size=10),
        lambda: Laplace(2, size=5).loss(Sensitivity.counts(4)),
        lambda: Gaussian(2, size=5).guarantee(Sensitivity.counts(4)),
    ]
    for ask in asked:
        with pytest.raises(InvalidInput, match="of 4 answers"):
            ask()
    assert Laplace(2).together(4).loss(Sensitivity.counts(4)) == Laplace(2).loss(4)
