"""Trees and sums of noise by brute force, for the tests of continual counting."""

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace

Ints = NDArray[np.int64]


def tree(horizon: int) -> list[tuple[int, int]]:
    """All dyadic intervals within the horizon, in the order in which they end, short ones first."""
    nodes = [
        (k * size, (k + 1) * size)
        for size in (1 << j for j in range(horizon.bit_length()))
        for k in range(horizon // size)
    ]
    return sorted(nodes, key=lambda node: (node[1], node[1] - node[0]))


def sums_of(nodes: list[tuple[int, int]], horizon: int) -> Ints:
    """The matrix that takes steps to sums of nodes."""
    return np.array([[a <= i < b for i in range(horizon)] for a, b in nodes], np.int64)


def discrete(kind: Laplace | Gaussian, reach: int) -> NDArray[np.float64]:
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    energy = np.abs(x) / float(kind.scale) if isinstance(kind, Laplace) else x**2 / (2 * float(kind.variance))
    weights: NDArray[np.float64] = np.exp(-energy)
    return np.asarray(weights / weights.sum())


def sum_law(kind: Laplace | Gaussian, k: int, reach: int = 400) -> NDArray[np.float64]:
    p = discrete(kind, reach)
    total: NDArray[np.float64] = p
    for _ in range(k - 1):
        total = np.convolve(total, p)
    return total


def two_sided(law: NDArray[np.float64], m: float) -> float:
    x = np.arange(len(law)) - len(law) // 2
    return float(law[np.abs(x) >= m].sum())
