"""The binary tree over the steps of a stream: its nodes, which of them make a total, and how far they move.

A node of level j is a run of 2**j steps that ends at a multiple of 2**j, within the horizon. The total at
time t is the sum of one node for each bit of t, the longest first.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.sensitivity import Sensitivity
from discreet.privacy import Neighbours

__all__ = [
    "add_up",
    "fullest",
    "kept",
    "levels",
    "lowest_bit",
    "node_counts",
    "over_times",
    "pairs",
    "tree_sensitivity",
]


def tree_sensitivity(horizon: int, moved: int, steps: int, neighbours: Neighbours) -> Sensitivity:
    """Return how far all nodes move where up to `steps` steps change, each by at most `moved`.

    Claim: exact. A level has horizon >> level complete nodes of 2**level steps. Its movements are largest, in
    each norm, where the steps that change fill its first nodes one by one, and the first ones do so on every
    level at once (docs/proofs/stream.md).
    """
    count, l1, squares = min(steps, horizon), 0, 0
    for level in range(horizon.bit_length()):
        full, rest = divmod(min(count, horizon >> level << level), 1 << level)
        l1 += (full << level) + rest
        squares += (full << 2 * level) + rest**2
    return Sensitivity(
        l1=moved * l1,
        l2_squared=moved**2 * squares,
        linf=moved * min(count, 1 << horizon.bit_length() - 1),
        size=2 * horizon - horizon.bit_count(),
        whole=True,
        neighbours=neighbours,
    )


def levels(time: int) -> list[int]:
    """Return the levels of the nodes of a total, highest first: the bits of the time."""
    return [level for level in range(time.bit_length() - 1, -1, -1) if time >> level & 1]


def lowest_bit(time: int) -> int:
    """Return the highest level of which a node ends at this time."""
    return (time & -time).bit_length() - 1


def kept(level: int) -> Fraction:
    """Return the variance of a refined node, in variances of one that is not.

    Claim: a node combined with the sum of its two refined halves, each weighted by the other's variance, has
    1 / (1 + 1 / (2 v)) where these have v; from 1 at the bottom that is 2**level / (2**(level + 1) - 1).
    """
    return Fraction(1 << level, (2 << level) - 1)


def fullest(horizon: int) -> list[int]:
    """Return times up to the horizon of which one has the largest sum over its bits, whatever each counts."""
    ends = (horizon >> level << level for level in levels(horizon))
    return [horizon, *(end - 1 for end in ends if end > 1)]


def node_counts(horizon: int) -> dict[int, int]:
    """Return how many times from 1 to the horizon have each number of bits."""
    counts = {horizon.bit_count(): 1}
    for before, level in enumerate(levels(horizon)):
        for bits in range(level + 1):
            counts[before + bits] = counts.get(before + bits, 0) + math.comb(level, bits)
    counts[0] -= 1
    return {bits: times for bits, times in counts.items() if times}


def over_times(horizon: int, factors: list[Any]) -> Any:
    """Sum over the times from 1 to the horizon of the product of the factors of their bits."""
    # `all_below` sums over the times below 2**level, and `below` over those below the horizon's last bits.
    all_below, below = 1, 0
    for level in range(horizon.bit_length()):
        if horizon >> level & 1:
            below = all_below + factors[level] * below
        all_below *= 1 + factors[level]
    return below + math.prod(factors[level] for level in levels(horizon)) - 1


def add_up(nodes: NDArray[Any]) -> NDArray[Any]:
    """Return the running totals, given the longest node that ends at each step.

    The total at time t is that at t less its lowest bit, and the node between.
    """
    totals = np.concatenate([np.zeros(1, nodes.dtype), nodes])
    for level in range(len(nodes).bit_length() - 1, -1, -1):
        upper = totals[1 << level :: 2 << level]
        upper += totals[:: 2 << level][: len(upper)]
    return totals[1:]


def pairs(nodes: NDArray[Any]) -> NDArray[Any]:
    """Return the sums of two and two, which are the nodes one level up; one that is left over has none."""
    sums: NDArray[Any] = nodes[: len(nodes) // 2 * 2].reshape(-1, 2).sum(axis=1)
    return sums
