"""Claims about the neighbour relations, as values."""

import numpy as np
import pytest

from discreet.errors import InvalidInput
from discreet.privacy.neighbours import ADD_REMOVE, REPLACE, Neighbours


def test_a_relation_is_read_by_name_and_passed_through_as_itself() -> None:
    assert Neighbours.of("add-remove") == ADD_REMOVE
    assert Neighbours.of("replace") == REPLACE
    assert Neighbours.of(REPLACE.at(4)) == REPLACE.at(4)
    assert ADD_REMOVE != REPLACE
    assert len({ADD_REMOVE, REPLACE, Neighbours("replace"), REPLACE.at(2)}) == 3


@pytest.mark.parametrize("name", ["add", "remove", "swap", "ADD-REMOVE", "", None, 1, True])
def test_a_relation_that_is_not_one_of_the_two_is_refused_by_name(name: object) -> None:
    with pytest.raises(InvalidInput, match="'add-remove' or 'replace'"):
        Neighbours.of(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("distance", [0, -1, 1.0, 1.5, True, "2", float("nan")])
def test_a_distance_is_a_whole_number_of_steps(distance: object) -> None:
    with pytest.raises(InvalidInput, match="distance"):
        Neighbours("replace", distance)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="distance"):
        ADD_REMOVE.at(distance)  # type: ignore[arg-type]


def test_distances_multiply_because_a_step_of_steps_is_their_product() -> None:
    assert ADD_REMOVE.at(2).at(3) == ADD_REMOVE.at(6)
    assert REPLACE.at(1) == REPLACE


def test_histograms_of_neighbours_differ_by_one_or_by_two_per_step() -> None:
    assert [ADD_REMOVE.at(k).histogram_l1 for k in (1, 2, 5)] == [1, 2, 5]
    assert [REPLACE.at(k).histogram_l1 for k in (1, 2, 5)] == [2, 4, 10]


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE, ADD_REMOVE.at(3), REPLACE.at(2)])
def test_a_relation_is_written_so_that_it_reads_back(relation: Neighbours) -> None:
    assert eval(repr(relation), {"Neighbours": Neighbours}) == relation


def test_a_relation_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        ADD_REMOVE.distance = 2  # type: ignore[misc]


def test_a_numpy_distance_becomes_an_int_that_cannot_overflow() -> None:
    far = Neighbours("replace", np.int8(100))  # type: ignore[arg-type]
    assert far.histogram_l1 == 200
    assert far.at(100).distance == 10_000
    assert Neighbours("replace", np.uint64(2**63)).histogram_l1 == 2**64  # type: ignore[arg-type]
