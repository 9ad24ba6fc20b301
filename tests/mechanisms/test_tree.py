"""The tree over the steps of a stream: how far its nodes move, and sums over times."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from discreet.mechanisms.tree import (
    add_up,
    fullest,
    kept,
    levels,
    lowest_bit,
    node_counts,
    over_times,
    pairs,
    tree_sensitivity,
)
from discreet.privacy.neighbours import ADD_REMOVE
from tests.mechanisms.trees import sums_of, tree


@pytest.mark.parametrize("horizon", range(1, 9))
def test_tree_sensitivity(horizon: int) -> None:
    """Against every change of every m steps by -1, 0 or 1; times what a step moves."""
    matrix = sums_of(tree(horizon), horizon)
    changes = np.array(list(product((-1, 0, 1), repeat=horizon)))
    moved = np.abs(changes @ matrix.T)
    for steps in range(1, horizon + 2):
        rows = moved[np.abs(changes).sum(axis=1) <= steps]
        for unit in (1, 3):
            found = tree_sensitivity(horizon, unit, steps, ADD_REMOVE)
            assert found.l1 == unit * rows.sum(axis=1).max()
            assert found.l2_squared == unit**2 * (rows**2).sum(axis=1).max()
            assert found.linf == unit * rows.max()
            assert found.size == len(matrix)
            assert found.whole


@pytest.mark.parametrize("horizon", [1, 2, 3, 6, 8, 11, 16, 31, 100])
def test_sums_over_times(horizon: int) -> None:
    times = range(1, horizon + 1)
    counts = [t.bit_count() for t in times]
    assert node_counts(horizon) == {bits: counts.count(bits) for bits in set(counts)}
    factors = [Fraction(3 * level + 2, 5) for level in range(horizon.bit_length())]
    wanted = sum(math.prod(factors[level] for level in levels(t)) for t in times)
    assert over_times(horizon, factors) == wanted
    for weigh in (lambda level: 1, kept, lambda level: Fraction(1, level + 1), lambda level: level**3):
        largest = max(sum(map(weigh, levels(t))) for t in times)
        assert max(sum(map(weigh, levels(t))) for t in fullest(horizon)) == largest


@pytest.mark.parametrize("horizon", [1, 2, 5, 8, 13])
def test_add_up(horizon: int) -> None:
    """Of single steps the longest nodes are made by pairs, and running totals of those."""
    steps = np.arange(1, horizon + 1) ** 2
    longest, nodes = np.zeros(horizon, np.int64), steps
    for level in range(horizon.bit_length()):
        nodes = nodes if not level else pairs(nodes)
        ends = [t for t in range(1, horizon + 1) if lowest_bit(t) >= level]
        longest[[t - 1 for t in ends]] = nodes[: len(ends)]
    assert add_up(longest).tolist() == np.cumsum(steps).tolist()
