"""Claims about bags of rows, their histograms, and which of them are neighbours."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import DiscreetError, InvalidInput
from discreet.privacy import database as module
from discreet.privacy.database import (
    Database,
    Histogram,
    count_databases,
    databases,
    neighbours_of,
    read_universe,
)
from discreet.privacy.neighbours import ADD_REMOVE, REPLACE, Neighbours

UNIVERSE = ("a", "b", "c")
RELATIONS = [ADD_REMOVE, REPLACE, ADD_REMOVE.at(2), REPLACE.at(2), ADD_REMOVE.at(3)]

bags = st.lists(st.sampled_from(UNIVERSE), max_size=6)
relations = st.sampled_from(RELATIONS)


# --- bags ------------------------------------------------------------------------------------------


@given(bags, st.randoms(use_true_random=False))
def test_equal_databases_iterate_in_the_same_order(rows: list[str], random: Any) -> None:
    shuffled = random.sample(rows, len(rows))
    one, other = Database(rows), Database(shuffled)
    assert one == other
    assert hash(one) == hash(other)
    assert list(one) == list(other) == sorted(rows)


@pytest.mark.parametrize(
    "rows",
    [
        [2, Fraction(1, 2), Decimal("0.75"), 1.5, -3, 10**30, True, math.inf],
        ["b", "a", b"a", None, 3, ("a", 1), ("a", "b"), (), ("a",), (1, None)],
        [frozenset({8, 0}), frozenset({0, 9}), frozenset({0}), frozenset()],  # < is inclusion: no total order
        [frozenset({("a", 1)}), frozenset({None, "a"}), (frozenset({1}), 2)],
        [2 + 1j, 1 + 2j, Database("ab"), Database("ba")],
    ],
)
def test_rows_that_python_cannot_sort_still_have_one_order(rows: list[Any]) -> None:
    orders = {tuple(map(repr, Database(some))) for some in permutations(rows[:7])}
    assert len(orders) == 1


def test_a_frozenset_has_one_place_however_it_was_built() -> None:
    one, other = frozenset([0, 8]), frozenset([8, 0])  # equal, and may iterate differently
    assert [row == one for row in Database([one, frozenset([1])])] == [
        row == other for row in Database([other, frozenset([1])])
    ]


@given(bags, bags)
def test_databases_are_equal_exactly_when_every_row_occurs_equally_often(
    one: list[str], other: list[str]
) -> None:
    assert (Database(one) == Database(other)) == (Counter(one) == Counter(other))
    assert Database(one).counts == Counter(one)
    assert [Database(one).count(row) for row in UNIVERSE] == [one.count(row) for row in UNIVERSE]
    assert len(Database(one)) == len(one)


@given(bags, st.sampled_from(UNIVERSE), st.sampled_from(UNIVERSE))
def test_adding_removing_and_replacing_return_new_databases(rows: list[str], old: str, new: str) -> None:
    database = Database(rows)
    assert database.add(new) == Database([*rows, new])
    assert database.add(new).remove(new) == database
    assert database.add(old).replace(old, new) == database.add(new)
    assert database == Database(rows)


def test_a_database_cannot_be_changed() -> None:
    database = Database("ab")
    with pytest.raises(AttributeError):
        database.rows = ()  # type: ignore[misc]
    with pytest.raises(TypeError):
        database.counts["a"] = 5  # type: ignore[index]


def test_a_database_is_not_equal_to_its_rows() -> None:
    assert Database("a") != ("a",)
    assert Database([1]) != Database(["1"])


@given(bags)
def test_a_histogram_and_its_database_convert_into_each_other(rows: list[str]) -> None:
    database = Database(rows)
    histogram = database.histogram(UNIVERSE)
    assert histogram.database() == database
    assert histogram.counts == tuple(rows.count(row) for row in UNIVERSE)
    assert histogram.size == len(rows)
    assert histogram.database().histogram(UNIVERSE) == histogram


@given(bags, st.sampled_from(UNIVERSE), st.sampled_from(UNIVERSE))
def test_a_histogram_changes_as_its_database_does(rows: list[str], old: str, new: str) -> None:
    database, histogram = Database(rows), Database(rows).histogram(UNIVERSE)
    assert histogram.add(new).database() == database.add(new)
    assert histogram.add(old).remove(old) == histogram
    assert histogram.add(old).replace(old, new).database() == database.add(new)
    assert histogram.add(new).count(new) == rows.count(new) + 1


# --- distances and neighbours ----------------------------------------------------------------------


@given(bags, bags, st.integers(1, 3))
def test_add_remove_distance_is_the_l1_distance_of_the_histograms(
    one: list[str], other: list[str], k: int
) -> None:
    left, right = Database(one).histogram(UNIVERSE), Database(other).histogram(UNIVERSE)
    l1 = sum(abs(ours - theirs) for ours, theirs in zip(left.counts, right.counts, strict=True))
    assert left.distance(right, "add-remove") == l1
    assert Database(one).distance(Database(other)) == l1
    assert Database(one).distance(Database(other), ADD_REMOVE.at(k)) == math.ceil(l1 / k)


@given(bags, bags, st.integers(1, 3))
def test_replace_distance_is_half_of_that_or_infinite_between_sizes(
    one: list[str], other: list[str], k: int
) -> None:
    left, right = Database(one), Database(other)
    expected = left.distance(right) / 2 if len(one) == len(other) else math.inf
    assert left.distance(right, "replace") == expected
    assert left.histogram(UNIVERSE).distance(right.histogram(UNIVERSE), "replace") == expected
    far = math.ceil(expected / k) if math.isfinite(expected) else math.inf
    assert left.distance(right, REPLACE.at(k)) == far


@given(bags, bags, bags, relations)
def test_distance_is_a_metric(one: list[str], two: list[str], three: list[str], relation: Neighbours) -> None:
    a, b, c = Database(one), Database(two), Database(three)
    assert (a.distance(b, relation) == 0) == (a == b)
    assert a.distance(b, relation) == b.distance(a, relation)
    assert a.distance(c, relation) <= a.distance(b, relation) + b.distance(c, relation)


def claim_neighbours_are_the_databases_at_distance_one() -> None:
    for relation in RELATIONS:
        everything = list(databases(UNIVERSE, 6, ADD_REMOVE))
        for database in databases(UNIVERSE, 3, ADD_REMOVE):
            found = module.neighbours_of(database, UNIVERSE, relation)
            expected = {other for other in everything if database.distance(other, relation) == 1}
            assert len(found) == len(set(found)), "a neighbour came twice"
            assert set(found) == expected, f"wrong neighbours of {database} by {relation}"


def claim_being_a_neighbour_is_mutual() -> None:
    for relation in RELATIONS:
        for database in databases(UNIVERSE, 3, ADD_REMOVE):
            for other in module.neighbours_of(database, UNIVERSE, relation):
                assert database in module.neighbours_of(other, UNIVERSE, relation)


CLAIMS = [claim_neighbours_are_the_databases_at_distance_one, claim_being_a_neighbour_is_mutual]


@pytest.mark.parametrize("claim", CLAIMS)
def test_neighbours(claim: Callable[[], None]) -> None:
    claim()


def _only_additions(database: Database[Any], universe: Iterable[Any]) -> Iterable[Database[Any]]:
    return (database.add(row) for row in universe)


def _only_removals(database: Database[Any], universe: Iterable[Any]) -> Iterable[Database[Any]]:
    return (database.remove(row) for row in database.counts)


def _only_the_first_row_is_replaced(
    database: Database[Any], universe: Iterable[Any]
) -> Iterable[Database[Any]]:
    return (database.replace(old, new) for old in database.rows[:1] for new in universe if new != old)


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize(
    ("kind", "mutant"),
    [
        ("add-remove", _only_additions),
        ("add-remove", _only_removals),
        ("replace", _only_the_first_row_is_replaced),
    ],
)
def test_a_relation_that_forgets_some_neighbours_is_caught(
    monkeypatch: pytest.MonkeyPatch, claim: Callable[[], None], kind: str, mutant: Callable[..., Any]
) -> None:
    monkeypatch.setitem(module._STEP, kind, mutant)
    with pytest.raises(AssertionError):
        claim()


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_every_database_is_enumerated_once(n: int) -> None:
    sequences = [rows for size in range(n + 1) for rows in product(UNIVERSE, repeat=size)]
    up_to, exactly = list(databases(UNIVERSE, n, "add-remove")), list(databases(UNIVERSE, n, "replace"))
    assert len(up_to) == len(set(up_to)) == count_databases(UNIVERSE, n, "add-remove")
    assert len(exactly) == len(set(exactly)) == count_databases(UNIVERSE, n, "replace")
    assert set(up_to) == set(map(Database, sequences))
    assert set(exactly) == {Database(rows) for rows in sequences if len(rows) == n}


def test_counting_needs_no_enumeration() -> None:
    assert count_databases(range(100), 1000, "replace") == math.comb(1099, 99)
    assert count_databases("a", 10**9, "add-remove") == 10**9 + 1
    assert count_databases("a", 10**9, "replace") == 1


# --- refusals ------------------------------------------------------------------------------------


def _histogram() -> Histogram[str]:
    return Histogram("ab", [1, 0])


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: Database([[1, 2]]), "hashable.*tuple"),  # type: ignore[type-var]
        (lambda: Database([(1, [2])]), "hashable"),
        (lambda: Database([float("nan")]), "equal itself.*None"),
        (lambda: Database([("age", float("nan"))]), "equal itself"),
        (lambda: Database([Decimal("nan")]), "equal itself"),
        (lambda: Database({"a": 2}), "mapping loses its counts"),
        (lambda: Database("a").count([]), "hashable"),  # type: ignore[arg-type]
        (lambda: Database("ab").remove("c"), "cannot remove 'c'"),
        (lambda: Database("ab").replace("c", "a"), "cannot remove 'c'"),
        (lambda: Database("").remove("a"), "cannot remove 'a'"),
        (lambda: Database("abc").histogram("ab"), "'c' is not in the universe"),
        (lambda: Database("a").histogram("aba"), "'a' is there more than once"),
        (lambda: Database("a").histogram(""), "at least one row"),
        (lambda: read_universe([1, True]), "more than once"),
        (lambda: read_universe([[1]]), "hashable"),  # type: ignore[type-var]
        (lambda: neighbours_of(Database("z"), "ab"), "'z' is not in the universe"),
        (lambda: neighbours_of(Database("a"), "ab", "swap"), "'add-remove' or 'replace'"),
        (lambda: databases("ab", -1), "n must be at least 0"),
        (lambda: databases("ab", 1.0), "whole number"),  # type: ignore[arg-type]
        (lambda: databases("aa", 1), "more than once"),
        (lambda: Histogram("ab", [1]), "2 rows, 1 counts"),
        (lambda: Histogram("ab", [1, -1]), "the count of 'b' must be at least 0"),
        (lambda: Histogram("ab", [1, 0.5]), "the count of 'b' must be a whole number"),  # type: ignore[list-item]
        (lambda: _histogram().add("c"), "'c' is not in the universe"),
        (lambda: _histogram().count("c"), "'c' is not in the universe"),
        (lambda: _histogram().remove("b"), "cannot remove 'b'"),
        (lambda: _histogram().replace("b", "a"), "cannot remove 'b'"),
        (lambda: _histogram().distance(Histogram("ba", [1, 0])), "one universe"),
        (lambda: Database("a").distance(Database("b"), "near"), "'add-remove' or 'replace'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(act: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refusal:
        act()
    assert isinstance(refusal.value, DiscreetError)


class Blank:
    """Different objects that print alike."""

    def __repr__(self) -> str:
        return "Blank()"


@pytest.mark.parametrize("rows", [[1, True], [0.0, -0.0], [1, 1.0], [Blank(), Blank()]], ids=repr)
def test_rows_that_share_a_place_and_can_be_told_apart_are_refused(rows: list[Any]) -> None:
    """Their order would be that of insertion, and a mechanism could read it."""
    with pytest.raises(InvalidInput, match="tell them apart"):
        Database(rows)


def test_a_distance_is_between_two_of_a_kind() -> None:
    with pytest.raises(InvalidInput, match="Database"):
        Database([1]).distance([1])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="Histogram"):
        Histogram("ab", [1, 2]).distance(Database("abb"))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="count"):
        Histogram("ab", 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "relation", [ADD_REMOVE.at(3), REPLACE.at(2), ADD_REMOVE.at(10**9), REPLACE.at(10**9)]
)
def test_neighbours_among_all_small_databases_are_all_that_are_near_enough(relation: Neighbours) -> None:
    every = set(databases("abc", 3, relation))
    for database in every:
        near = {other for other in every if 0 < database.distance(other, relation) <= 1}
        assert set(neighbours_of(database, "abc", relation, among=every)) == near
