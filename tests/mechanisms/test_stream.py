"""Continual counting: the tree's sensitivity, its linear map, what it costs and how far off it is."""

import copy
import math
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import arb
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import DiscreetError, InvalidInput, NotPrivateWarning, Unsupported
from discreet.mechanisms import stream
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.stream import (
    CounterRun,
    TreeCounter,
    gaussian_sum_tail,
    isotonic,
    laplace_sum_tail,
    tree_sensitivity,
)
from discreet.noise import NotPrivate, NotPrivateArray
from discreet.privacy import ZCDP, ApproxDP, PureDP
from discreet.privacy.neighbours import ADD_REMOVE
from discreet.privacy.reals import enclose
from tests.statistics import Finding, assert_passes, at_most, chi_square, judge

Ints = NDArray[np.int64]
LAPLACE, GAUSSIAN = Laplace(3), Gaussian(5)


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


def scripted(monkeypatch: pytest.MonkeyPatch, script: Any) -> None:
    """Hand out these numbers as noise, in the order asked for, and no more."""
    numbers = np.asarray(script)
    taken = 0

    def draw(kind: Any, count: int | None, source: Any) -> Any:
        nonlocal taken
        part = numbers[taken : taken + (count or 1)]
        assert len(part) == (count or 1), "more noise was asked for than the tree has nodes"
        taken += count or 1
        return part[0] if count is None else part

    monkeypatch.setattr(stream, "draw", draw)


def run_through(counter: TreeCounter, values: Any) -> list[Any]:
    run = counter.start()
    return [run.add(value) for value in values]


# --- sensitivity, exactly ----------------------------------------------------------------------------


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


def test_a_unit_in_several_steps_and_replaced() -> None:
    counter = TreeCounter(1000, LAPLACE)
    assert counter.sensitivity().l1 == 10
    assert counter.sensitivity(3, steps_per_unit=2).l1 == 60
    assert counter.sensitivity(steps_per_unit=2).l2_squared == 2 + 9 * 4
    # Replaced, a unit leaves its steps and enters others.
    replaced = counter.sensitivity(steps_per_unit=3, neighbours="replace")
    assert replaced.l1 == counter.sensitivity(steps_per_unit=6).l1
    assert replaced.neighbours.kind == "replace"
    assert counter.sensitivity(neighbours=ADD_REMOVE.at(4)).l2_squared == 16 * 10
    # Real values are rounded to the grid, which moves each by up to a step more, and a double's own error.
    assert TreeCounter(1000, Laplace(3, grid=Fraction(1, 2))).sensitivity(2).l1 == 10 * 5


# --- the linear map, exactly ------------------------------------------------------------------------


def highest_nodes(horizon: int) -> list[tuple[int, int]]:
    """The longest interval that ends at each step: of all that end there only this is in any total."""
    return [
        max((n for n in tree(horizon) if n[1] == t), key=lambda n: n[1] - n[0]) for t in range(1, horizon + 1)
    ]


def decomposed(t: int, nodes: list[tuple[int, int]]) -> NDArray[np.float64]:
    """Which of the nodes are added up for [0, t): the longest first, until nothing is left."""
    weights, at = np.zeros(len(nodes)), 0
    while at < t:
        best = max((i for i, n in enumerate(nodes) if n[0] == at and n[1] <= t), key=lambda i: nodes[i][1])
        weights[best], at = 1, nodes[best][1]
    return weights


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 7, 8, 13, 16, 21])
def test_running_totals_share_the_noise_of_their_nodes(horizon: int, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = highest_nodes(horizon)
    wanted = np.array([decomposed(t, nodes) for t in range(1, horizon + 1)])
    for i, unit in enumerate(np.eye(horizon, dtype=np.int64)):
        for release in (
            TreeCounter(horizon, LAPLACE).release,
            lambda v: run_through(TreeCounter(horizon, GAUSSIAN), v),
        ):
            scripted(monkeypatch, unit)
            assert (np.asarray(release([0] * horizon)) == wanted[:, i]).all()


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 7, 8, 13, 16, 21])
def test_consistent_totals_are_the_best_linear_unbiased_estimates(
    horizon: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Honaker 2015, against least squares over all nodes that end by then; and its variance."""
    nodes = tree(horizon)
    matrix = sums_of(nodes, horizon)
    counter = TreeCounter(horizon, LAPLACE, consistent=True)
    columns = []
    for unit in np.eye(len(nodes), dtype=np.int64):
        scripted(monkeypatch, unit)
        columns.append(counter.release([0] * horizon))
    found = np.array(columns).T
    for t in range(1, horizon + 1):
        ended = [i for i, n in enumerate(nodes) if n[1] <= t]
        best = np.ones(t) @ np.linalg.pinv(matrix[np.ix_(ended, range(t))].astype(float))
        assert np.allclose(found[t - 1][ended], best, atol=1e-12)
        assert not np.delete(found[t - 1], ended).any()
        assert float(counter._share(t)) == pytest.approx(float((best**2).sum()), rel=1e-12)


@pytest.mark.parametrize("kind", [LAPLACE, Laplace(3, grid=0.5), GAUSSIAN, Gaussian(5, grid=Fraction(1, 3))])
@pytest.mark.parametrize("consistent", [False, True])
def test_a_run_has_the_law_of_a_release(
    kind: Laplace | Gaussian, consistent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same noise, node by node, gives the same totals, bit for bit."""
    rng = np.random.default_rng(5)
    for length, horizon in [(1, 1), (1, 9), (5, 5), (8, 8), (31, 40), (100, 100), (257, 300)]:
        values = rng.integers(-50, 50, length)
        given = values if kind.grid is None else values / 7
        counter = TreeCounter(horizon, kind, consistent=consistent)
        count = length if not consistent else 2 * length - length.bit_count()
        script = rng.integers(-(10**9), 10**9, count)
        scripted(monkeypatch, script)
        whole = counter.release(given)
        scripted(monkeypatch, script)
        assert run_through(counter, given.tolist()) == whole.tolist()
        assert whole.dtype == (np.int64 if kind.grid is None and not consistent else np.float64)


@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("increasing", [False, True])
def test_releases_are_functions_of_noisy_nodes(
    consistent: bool, increasing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What values add to a node could as well be its noise: not a bit of the output tells them apart."""
    rng = np.random.default_rng(6)
    for horizon in (1, 2, 5, 16, 100):
        counter = TreeCounter(horizon, LAPLACE, consistent=consistent, increasing=increasing)
        nodes = tree(horizon) if consistent else highest_nodes(horizon)
        matrix = sums_of(nodes, horizon)
        for size in (2, 1000, 2**55, 2**75):
            values = np.array([int(v) * size // 1000 for v in rng.integers(-1000, 1000, horizon)], object)
            script = np.array([int(v) for v in rng.integers(-(10**6), 10**6, len(nodes))], object)
            moved = script + matrix.astype(object) @ values
            for release in (counter.release, lambda v, c=counter: run_through(c, v)):
                scripted(monkeypatch, script)
                with_values = list(release(values.tolist()))
                scripted(monkeypatch, moved)
                assert with_values == list(release([0] * horizon))


# --- privacy, exactly --------------------------------------------------------------------------------


def laws(
    release: Callable[[tuple[int, ...]], list[Any]],
    horizon: int,
    draws: int,
    reach: int,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[tuple[int, ...], dict[tuple[Any, ...], int]]:
    """For each stream of 0s and 1s: each output, and the l1 norm of the noise that leads to it."""
    found: dict[tuple[int, ...], dict[tuple[Any, ...], int]] = {}
    for values in product((0, 1), repeat=horizon):
        law = found.setdefault(values, {})
        for script in product(range(-reach, reach + 1), repeat=draws):
            scripted(monkeypatch, script)
            outcome = tuple(release(values))
            assert outcome not in law, "two noises give one output"
            law[outcome] = sum(map(abs, script))
    return found


def worst_loss(found: dict[tuple[int, ...], dict[tuple[Any, ...], int]], reach: int, steps: int) -> float:
    """The greatest |l1 - l1'| over streams that differ in some steps and outputs well within the window."""
    worst = 0.0
    for x, y in product(found, repeat=2):
        if 0 < sum(a != b for a, b in zip(x, y, strict=True)) <= steps:
            for outcome, norm in found[x].items():
                if norm <= reach - steps:
                    other = found[y].get(outcome)
                    worst = max(worst, math.inf if other is None else abs(other - norm))
    return worst


@pytest.mark.parametrize(("horizon", "reach"), [(1, 4), (2, 4), (3, 4), (4, 3)])
def test_loss_of_laplace_noise_by_enumeration(
    horizon: int, reach: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ln P(o) - ln Q(o) is the difference of the noises' l1 norms, over the scale: at worst as promised."""
    counter = TreeCounter(horizon, LAPLACE)
    found = laws(lambda x: list(counter.release(x)), horizon, horizon, reach, monkeypatch)
    assert worst_loss(found, reach, 1) == counter.sensitivity().l1
    assert counter.guarantee() == PureDP(Fraction(int(worst_loss(found, reach, 1)), 3))
    assert counter.loss().max_divergence == pytest.approx(float(counter.guarantee().figures()[0]), rel=1e-12)
    # Of two steps the nodes that are in totals move less than all nodes do.
    assert worst_loss(found, reach, 2) <= counter.sensitivity(steps_per_unit=2).l1


def test_planted_fresh_noise_per_total_costs_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def fresh(values: tuple[int, ...]) -> list[int]:
        return [
            sum(values[: t + 1]) + int(stream.draw(LAPLACE, None, noise.SYSTEM)) for t in range(len(values))
        ]

    found = laws(fresh, 3, 3, 4, monkeypatch)
    assert worst_loss(found, 4, 1) > TreeCounter(3, LAPLACE).sensitivity().l1


def test_planted_noise_shared_by_siblings_costs_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(values: tuple[int, ...]) -> list[int]:
        first, second = (int(stream.draw(LAPLACE, None, noise.SYSTEM)) for _ in range(2))
        return [values[0] + first, sum(values[:2]) + second, sum(values) + second + first]

    found = laws(shared, 3, 2, 4, monkeypatch)
    assert worst_loss(found, 4, 1) == math.inf


def discrete(kind: Laplace | Gaussian, reach: int) -> NDArray[np.float64]:
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    energy = np.abs(x) / float(kind.scale) if isinstance(kind, Laplace) else x**2 / (2 * float(kind.variance))
    weights: NDArray[np.float64] = np.exp(-energy)
    return np.asarray(weights / weights.sum())


def hockey_stick(kind: Laplace | Gaussian, moves: list[int], epsilon: float) -> float:
    """Of independent noises, moved so: the losses of each, convolved as a list."""
    p = discrete(kind, 60 if isinstance(kind, Laplace) else 150)
    masses: NDArray[np.float64] = np.ones(1)
    losses: NDArray[np.float64] = np.zeros(1)
    for move in moves:
        here, there = p[move:], p[: len(p) - move]
        masses = np.outer(masses, here).ravel()
        losses = np.add.outer(losses, np.log(here / there)).ravel()
        _, where = np.unique(np.round(losses, 9), return_inverse=True)
        kept = np.bincount(where, masses)
        losses, masses = (
            np.asarray(np.bincount(where, masses * losses) / kept, np.float64),
            np.asarray(kept, np.float64),
        )
    return float((masses * np.maximum(0, -np.expm1(epsilon - losses))).sum())


@pytest.mark.parametrize("horizon", [1, 2, 4])
@pytest.mark.parametrize("kind", [LAPLACE, Gaussian(300)])
def test_loss_against_the_product_pair(horizon: int, kind: Laplace | Gaussian) -> None:
    """One step moves a node on each level by 1; the loss is at least that of the nodes, and little more."""
    counter = TreeCounter(horizon, kind)
    moves = [1] * horizon.bit_length()
    for epsilon in (0.0, 0.05, 0.2):
        exact, found = hockey_stick(kind, moves, epsilon), counter.loss().delta(epsilon)
        assert exact * (1 - 1e-6) <= found <= exact * (1.1 if isinstance(kind, Gaussian) else 3)
    steps = min(2, horizon)
    two = [1] * steps + [2] * (len(moves) - 1)
    worse = counter.loss(steps_per_unit=2)
    assert hockey_stick(kind, two, 0.4) * (1 - 1e-6) <= worse.delta(0.4)


def test_one_level_forgotten_is_caught() -> None:
    """With noise for one level less, the product pair exceeds what would be promised."""
    spoiled = Laplace(3)
    assert hockey_stick(spoiled, [1, 1, 1], 2 / 3 + 1e-9) > 1e-3


@pytest.mark.parametrize("horizon", [1, 5, 1000, 2**30])
def test_calibrate(horizon: int) -> None:
    levels = horizon.bit_length()
    counter = TreeCounter.calibrate(epsilon=0.5, horizon=horizon)
    assert counter.noise == Laplace(2 * levels)
    assert counter.guarantee() == PureDP(Fraction(1, 2))
    counter = TreeCounter.calibrate(rho=0.125, horizon=horizon, sensitivity=3)
    assert counter.noise == Gaussian(9 * levels * 4)
    assert counter.guarantee(3) == ZCDP(Fraction(1, 8))
    counter = TreeCounter.calibrate(epsilon=1, delta=1e-6, horizon=horizon, steps_per_unit=2)
    assert counter.loss(steps_per_unit=2).satisfies(1, 1e-6)
    assert isinstance(counter.noise, Gaussian)
    less = TreeCounter(horizon, Gaussian(counter.noise.variance * Fraction(999, 1000)))
    assert not less.loss(steps_per_unit=2).satisfies(1, 1e-6)
    counter = TreeCounter.calibrate(ApproxDP(1, 1e-6), horizon=horizon, noise=Laplace)
    assert isinstance(counter.noise, Laplace)
    assert counter.loss().satisfies(1, 1e-6)
    on_grid = TreeCounter.calibrate(
        epsilon=1, horizon=horizon, sensitivity=5, grid=0.01, neighbours="replace"
    )
    assert on_grid.guarantee(5, neighbours="replace") == PureDP(1)
    assert on_grid.noise.grid == Fraction(1, 100)
    on_grid = TreeCounter.calibrate(rho=0.5, horizon=horizon, sensitivity=5, grid=0.01)
    assert on_grid.guarantee(5) == ZCDP(0.5)
    assert TreeCounter.calibrate(epsilon=1, horizon=horizon, sensitivity=0.5).noise.grid == Fraction(1, 2**21)


# --- how far off, exactly ----------------------------------------------------------------------------


def sum_law(kind: Laplace | Gaussian, k: int, reach: int = 400) -> NDArray[np.float64]:
    p = discrete(kind, reach)
    total: NDArray[np.float64] = p
    for _ in range(k - 1):
        total = np.convolve(total, p)
    return total


def two_sided(law: NDArray[np.float64], m: float) -> float:
    x = np.arange(len(law)) - len(law) // 2
    return float(law[np.abs(x) >= m].sum())


@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize("m", [0, 1, 2, 10, 40])
def test_laplace_sum_tail(k: int, m: int) -> None:
    q = (-arb(1) / 3).exp()
    found = float(laplace_sum_tail(m, k, q).mid())
    assert found == pytest.approx(two_sided(sum_law(LAPLACE, k), m), rel=1e-9, abs=1e-14)


def test_laplace_sum_tail_adds_up_to_fractions() -> None:
    """At q = 1/2, exactly: P(sum = x) by convolution over long windows, to 60 digits."""
    q, reach = Fraction(1, 2), 220
    single = {x: Fraction(1, 3) * q ** abs(x) for x in range(-reach, reach + 1)}
    both: dict[int, Fraction] = {}
    for (a, p), (b, r) in product(single.items(), single.items()):
        if abs(a + b) <= 30:
            both[a + b] = both.get(a + b, Fraction(0)) + p * r
    inside = 1 - sum(p for x, p in both.items() if abs(x) < 5)
    assert enclose(lambda: laplace_sum_tail(5, 2, arb(1) / 2)).upper == pytest.approx(
        float(inside), rel=1e-15
    )


@pytest.mark.parametrize("variance", [Fraction(1, 10), Fraction(1, 2), 1, 5, Fraction(200, 7)])
@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_gaussian_sum_tail(variance: Fraction, k: int) -> None:
    law = sum_law(Gaussian(variance), k, 120)
    for m in (1, 2, 5, 12, 30):
        exact, found = two_sided(law, m), float(gaussian_sum_tail(m, k, Fraction(variance)).mid())
        assert found >= exact * (1 - 1e-9)
        if variance >= 1 and exact > 1e-12:
            assert found <= exact * 1.01


@pytest.mark.parametrize("horizon", [1, 2, 3, 6, 8, 11, 16, 31, 100])
def test_sums_over_times(horizon: int) -> None:
    times = range(1, horizon + 1)
    counts = [t.bit_count() for t in times]
    assert stream._node_counts(horizon) == {bits: counts.count(bits) for bits in set(counts)}
    factors = [Fraction(3 * level + 2, 5) for level in range(horizon.bit_length())]
    wanted = sum(math.prod(factors[level] for level in stream._levels(t)) for t in times)
    assert stream._over_times(horizon, factors) == wanted
    for counter in (TreeCounter(horizon, LAPLACE), TreeCounter(horizon, LAPLACE, consistent=True)):
        assert counter._most_share(None) == max(counter._share(t) for t in times)


@pytest.mark.parametrize("kind", [LAPLACE, GAUSSIAN])
def test_tail_of_one_total_and_of_all(kind: Laplace | Gaussian) -> None:
    counter = TreeCounter(11, kind)
    by_bits = {k: sum_law(kind, k) for k in (1, 2, 3)}
    for reach in (1, 5.5, 20):
        each = [two_sided(by_bits[t.bit_count()], reach) for t in range(1, 12)]
        for t in (1, 6, 11):
            assert counter.tail(reach, time=t) == pytest.approx(each[t - 1], rel=1e-3, abs=1e-15)
            assert counter.tail(reach, time=t) >= each[t - 1] * (1 - 1e-9)
        assert counter.tail(reach) == pytest.approx(min(1, sum(each)), rel=1e-3, abs=1e-15)
    assert counter.tail(0) == 1
    for time in (None, 6, 8):
        off = counter.error(0.9, time=time)
        assert counter.tail(off + 1, time=time) <= 0.1 < counter.tail(off, time=time)


@pytest.mark.parametrize("kind", [LAPLACE, Gaussian(20), Gaussian(Fraction(1, 5))])
def test_tail_of_consistent_totals(kind: Laplace | Gaussian) -> None:
    """At time 3: (2 y + a + b) / 3 + c, whose law on the thirds is a convolution. Within Chernoff's reach."""
    counter = TreeCounter(3, kind, consistent=True)
    p, third = discrete(kind, 150), np.ones(1)
    for weight in (2, 1, 1, 3):
        spread = np.zeros(weight * (len(p) - 1) + 1)
        spread[::weight] = p
        third = np.convolve(third, spread)
    for reach in (2, 7, 20, 45):
        exact, found = two_sided(third, 3 * reach - 1e-9), counter.tail(reach, time=3)
        assert exact * (1 - 1e-9) <= found
        if exact > 1e-12 and kind != Gaussian(Fraction(1, 5)):
            assert found <= 50 * exact
        assert counter.tail(reach) >= found
    variance = float((third * (np.arange(len(third)) - len(third) // 2) ** 2).sum()) / 9
    assert math.sqrt(variance) * (1 - 1e-9) <= counter.expected_error(time=3)
    if kind != Gaussian(Fraction(1, 5)):
        assert counter.expected_error(time=3) == pytest.approx(math.sqrt(variance), rel=1e-6)
    assert counter.tail(counter.error(0.99, time=3), time=3) <= 0.01


def test_expected_error() -> None:
    counter = TreeCounter(11, LAPLACE)
    law = sum_law(LAPLACE, 3)
    x = np.abs(np.arange(len(law)) - len(law) // 2)
    assert (law * x).sum() < counter.expected_error(time=7) == pytest.approx(math.sqrt((law * x**2).sum()))
    assert counter.expected_error() == counter.expected_error(time=7)
    assert TreeCounter(11, Laplace(3, grid=0.5)).expected_error() > counter.expected_error()
    with pytest.raises(Unsupported):
        TreeCounter(11, LAPLACE, increasing=True).expected_error()


@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_solve(kind: Any, consistent: bool) -> None:
    for time in (None, 500):
        counter = TreeCounter.solve(
            error=200, failure=0.01, horizon=1000, noise=kind, consistent=consistent, time=time
        )
        assert counter.tail(200, time=time) <= 0.01
        width = stream._width(counter.noise) * Fraction(101, 100)
        assert TreeCounter(1000, kind(width), consistent=consistent).tail(200, time=time) > 0.01
    on_grid = TreeCounter.solve(error=2, failure=0.01, horizon=8, grid=0.01, noise=kind)
    assert on_grid.tail(2) <= 0.01
    assert on_grid.noise.grid == Fraction(1, 100)


def test_increasing_totals_have_simultaneous_bounds_only() -> None:
    plain, increasing = TreeCounter(100, LAPLACE), TreeCounter(100, LAPLACE, increasing=True)
    assert increasing.tail(30, time=1) == increasing.tail(30) == plain.tail(30)
    assert plain.tail(30, time=1) < plain.tail(30)
    assert plain.start().error(0.9) == plain.error(0.9)
    assert increasing.start().error(0.9) > increasing.error(0.9) + increasing.start()._deviation


# --- sampled ----------------------------------------------------------------------------------------

DRAWS = 1 << 13


def findings(release: Callable[[list[int]], Any], kind: Laplace | Gaussian = LAPLACE) -> list[Finding]:
    """Of the noise of 7 totals: some totals, increments and differences between branches have known laws."""
    values = [3, -1, 4, 1, -5, 9, 2]
    exact = np.cumsum(values)
    noises = np.array([release(values) for _ in range(DRAWS)]) - exact
    n = {t: noises[:, t - 1] for t in range(1, 8)} | {0: np.zeros(DRAWS, np.int64)}
    seen = {
        "total 1": (n[1], 1),
        "total 4": (n[4], 1),
        "total 7": (n[7], 3),
        "increment 6 to 7": (n[7] - n[6], 1),
        "increment 4 to 6": (n[6] - n[4], 1),
        "siblings 1 and 3": (n[3] - n[2] - n[1], 2),
        "siblings 5 and 7": (n[7] - n[6] - (n[5] - n[4]), 2),
        "levels 2 and 4": (n[4] - n[2], 2),
    }
    found = []
    for name, (x, k) in seen.items():
        law = sum_law(kind, k, 120)
        middle = len(law) // 2
        found.append(
            chi_square(name, np.bincount(np.clip(x + middle, 0, len(law) - 1), minlength=len(law)), law, 40)
        )
    return found


def test_release_has_the_law_of_the_tree() -> None:
    assert_passes(*findings(TreeCounter(7, LAPLACE).release))


def test_a_run_has_the_law_of_the_tree() -> None:
    assert_passes(*findings(lambda v: run_through(TreeCounter(7, GAUSSIAN), v), GAUSSIAN))


def spoiled(values: list[int], bug: str) -> Any:
    counter = TreeCounter(7, LAPLACE)
    if bug == "a level forgotten":
        return TreeCounter(7, Laplace(2)).release(values)
    if bug == "fresh noise per total":
        return np.cumsum(values) + noise.discrete_laplace(3, 7)
    totals = counter.release(values)
    if bug == "noise shared by siblings":
        totals[2] = totals[1] + values[2] + (totals[0] - values[0])
    if bug == "noise shared far apart":
        totals[6] = totals[5] + values[6] + (totals[4] - totals[3] - values[4])
    return totals


@pytest.mark.parametrize(
    ("bug", "caught_by"),
    [
        ("a level forgotten", "total 1"),
        ("fresh noise per total", "increment 6 to 7"),
        ("noise shared by siblings", "siblings 1 and 3"),
        ("noise shared far apart", "siblings 5 and 7"),
    ],
)
def test_a_planted_bug_is_caught(bug: str, caught_by: str) -> None:
    failures = judge(findings(lambda values: spoiled(values, bug)))
    assert any(failure.startswith(caught_by) for failure in failures), failures


@pytest.mark.parametrize("kind", [Laplace(20), Gaussian(100)])
@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("increasing", [False, True])
def test_error_covers_all_totals(kind: Laplace | Gaussian, consistent: bool, increasing: bool) -> None:
    counter = TreeCounter(300, kind, consistent=consistent, increasing=increasing)
    values = np.random.default_rng(0).poisson(0.3, 300)
    exact = np.cumsum(values)
    confidence = 0.5
    off, off_run = counter.error(confidence), counter.start().error(confidence)
    missed = sum(bool((np.abs(counter.release(values) - exact) > off).any()) for _ in range(600))
    missed_run = sum(
        bool((np.abs(np.array(run_through(counter, values.tolist())) - exact) > off_run).any())
        for _ in range(60)
    )
    assert_passes(
        at_most("release", missed, 600, 1 - confidence), at_most("run", missed_run, 60, 1 - confidence)
    )


def test_what_consistency_and_order_gain() -> None:
    """Least squares halves the variance of long sums; order helps where the total grows slowly."""
    values = np.random.default_rng(1).poisson(0.1, 4095)
    exact = np.cumsum(values)

    def mean_square(consistent: bool = False, increasing: bool = False) -> float:
        counter = TreeCounter.calibrate(epsilon=1, horizon=4095, consistent=consistent, increasing=increasing)
        return float(np.mean([((counter.release(values) - exact) ** 2).mean() for _ in range(60)]))

    plain = mean_square()
    # Each is some seven standard errors away from its limit; what it is about is beside it.
    assert mean_square(consistent=True) < 0.9 * plain  # 0.57
    assert mean_square(increasing=True) < 0.85 * plain  # 0.38
    assert mean_square(increasing=True, consistent=True) < 0.7 * plain  # 0.25
    shares = [
        sum(TreeCounter(4095, LAPLACE, consistent=refined)._share(t) for t in range(1, 4096))
        for refined in (True, False)
    ]
    assert shares[0] < Fraction(57, 100) * shares[1]


def test_a_run_with_order_is_not_far_above() -> None:
    """The plain greatest total so far would be off by more than twice the deviation of one."""
    counter = TreeCounter(2000, Laplace(11), increasing=True)
    highest = [run_through(counter, [0] * 2000)[-1] for _ in range(40)]
    plain = [TreeCounter(2000, Laplace(11)).release([0] * 2000).max() for _ in range(300)]
    assert np.mean(highest) < 0.9 * np.mean(plain)  # 0.7, seven standard errors below


# --- order -----------------------------------------------------------------------------------------


def nearest_in_order(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The textbook's formula: max over beginnings of min over ends of the mean between."""
    n = len(values)
    return np.array(
        [max(min(values[a : b + 1].mean() for b in range(i, n)) for a in range(i + 1)) for i in range(n)]
    )


def test_isotonic(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    for rounds in (64, 0, 1):
        monkeypatch.setattr(stream, "_ROUNDS", rounds)
        for n in (1, 2, 3, 10, 25):
            cases: list[NDArray[np.float64]] = [
                rng.normal(size=n),
                np.floor(rng.random(n) * 3),
                np.linspace(9.0, 0.0, n),
            ]
            for values in cases:
                assert np.allclose(isotonic(values), nearest_in_order(values), atol=1e-12)


def test_isotonic_is_no_further_from_what_is_in_order() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        exact = np.sort(rng.integers(0, 50, 40)).astype(float)
        noisy = exact + rng.normal(0, 10, 40)
        fitted = isotonic(noisy)
        assert (np.diff(fitted) >= 0).all()
        assert np.abs(fitted - exact).max() <= np.abs(noisy - exact).max() + 1e-9


def test_isotonic_of_a_long_cascade() -> None:
    """A block falls below the one before it only once it has been pooled: more rounds than are tried."""
    values = np.arange(3000.0)
    values[-1] = -1e7
    fitted = isotonic(values)
    assert (np.diff(fitted) >= 0).all()
    assert fitted[0] == pytest.approx(values.mean())


@pytest.mark.parametrize("consistent", [False, True])
def test_increasing(consistent: bool) -> None:
    counter = TreeCounter(200, Laplace(30), consistent=consistent, increasing=True)
    for totals in (counter.release([1] * 200), np.array(run_through(counter, [1] * 200))):
        assert totals.dtype == np.float64
        assert (np.diff(totals) >= 0).all()
        assert totals[0] >= 0


# --- values, and runs --------------------------------------------------------------------------------


def test_values_of_any_size_are_added_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [2**62, 2**62, -(2**70), 5]
    scripted(monkeypatch, [1, 2, 3, 4])
    totals = TreeCounter(4, LAPLACE).release(values)
    assert totals.tolist() == [2**62 + 1, 2**63 + 2, 2**63 - 2**70 + 5, 2**63 - 2**70 + 5 + 4]
    scripted(monkeypatch, [2**62] * 4)
    wanted = [t * 2**61 + t.bit_count() * 2**62 for t in range(1, 5)]
    assert TreeCounter(4, LAPLACE).release([2**61] * 4).tolist() == wanted


def test_grid_values() -> None:
    totals = TreeCounter(4, Laplace(Fraction(1, 10**9), grid=0.25)).release([0.1, 0.13, -0.2, 7])
    assert totals.tolist() == [0.0, 0.25, 0.0, 7.0]
    run = TreeCounter(2, Laplace(Fraction(1, 10**9), grid=0.25)).start()
    assert run.add(Fraction(1, 2)) == Fraction(1, 2)


def test_a_run_ends_at_the_horizon() -> None:
    run = TreeCounter(5, LAPLACE).start()
    for _ in range(5):
        run.add(1)
    assert run.time == 5
    with pytest.raises(Unsupported, match="5 steps"):
        run.add(1)
    assert len(run._sums) == len(run._nodes) == 3


def test_a_refused_value_is_no_step() -> None:
    run = TreeCounter(5, LAPLACE).start()
    for bad in (True, "1", None, math.nan, [1], 0.5, np.array([1])):
        with pytest.raises(InvalidInput):
            run.add(bad)
    assert run.time == 0


def test_a_run_is_not_copied() -> None:
    run = TreeCounter(5, LAPLACE).start()
    for copying in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(Unsupported, match="twice"):
            copying(run)


def test_a_run_does_not_go_on_in_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    run = TreeCounter(5, LAPLACE).start()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(Unsupported, match="process"):
        run.add(1)
    assert run.time == 0


def test_a_run_is_thread_safe() -> None:
    counter = TreeCounter(4000, Laplace(Fraction(1, 10**6)))
    run = counter.start()
    totals: list[int] = []

    def work() -> None:
        for _ in range(1000):
            totals.append(run.add(1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(totals) == list(range(1, 4001))


def test_what_a_seeded_source_gives_is_marked() -> None:
    with pytest.warns(NotPrivateWarning):
        source = NotPrivate(seed=1)
    counter = TreeCounter(5, LAPLACE)
    assert isinstance(counter.release([1, 2], source=source), NotPrivateArray)
    assert isinstance(counter.start(source=source).add(1), noise.NotPrivateInt)


def repeated_refusals() -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "horizon 0", lambda: TreeCounter(0, LAPLACE)
    yield "horizon 1.5", lambda: TreeCounter(1.5, LAPLACE)  # type: ignore[arg-type]
    yield "a class", lambda: TreeCounter(3, Laplace)  # type: ignore[arg-type]
    yield "sized noise", lambda: TreeCounter(3, Laplace(1, size=3))
    yield "flag", lambda: TreeCounter(3, LAPLACE, consistent=1)  # type: ignore[arg-type]
    yield "no promise", lambda: TreeCounter.calibrate(horizon=3)
    yield "two promises", lambda: TreeCounter.calibrate(epsilon=1, rho=1, horizon=3)
    yield "pure Gaussian", lambda: TreeCounter.calibrate(epsilon=1, horizon=3, noise=Gaussian)
    yield "no kind", lambda: TreeCounter.calibrate(epsilon=1, horizon=3, noise=int)  # type: ignore[arg-type]
    bad: Any
    for bad in (0, -1, math.inf, math.nan, "0.1", True, None):
        yield f"epsilon {bad}", partial(TreeCounter.calibrate, epsilon=bad, horizon=3)
        yield f"sensitivity {bad}", partial(TreeCounter(3, LAPLACE).loss, bad)
        yield f"error {bad}", partial(TreeCounter.solve, error=bad, failure=0.1, horizon=3)
    for bad in (0, 1.0, "1"):
        yield f"steps {bad}", partial(TreeCounter(3, LAPLACE).loss, steps_per_unit=bad)
        yield f"time {bad}", partial(TreeCounter(3, LAPLACE).tail, 1, time=bad)
    yield "time 4", lambda: TreeCounter(3, LAPLACE).error(time=4)
    yield "small", lambda: TreeCounter(3, LAPLACE).loss(0.5)
    yield "sure", lambda: TreeCounter(3, LAPLACE).error(1)
    yield "failure", lambda: TreeCounter.solve(error=1, failure=1, horizon=3)
    yield "relation", lambda: TreeCounter(3, LAPLACE).loss(neighbours="other")


@pytest.mark.parametrize("refused", [pytest.param(call, id=name) for name, call in repeated_refusals()])
def test_refused(refused: Callable[[], Any]) -> None:
    with pytest.raises(DiscreetError):
        refused()


@pytest.mark.parametrize(
    "values",
    [5, [], [[1, 2]], "12", [True], [1, math.nan], [math.inf], [0.5], [1] * 6, [None],
     np.array([1], np.float16), np.array([1, 2], object), np.array(3), {1: 2}],
)  # fmt: skip
def test_streams_that_are_refused(values: Any) -> None:
    drawn = CountingSource()
    with pytest.raises(InvalidInput) as refusal:
        TreeCounter(5, LAPLACE).release(values, source=drawn)
    assert "nan" not in str(refusal.value).replace("NaN", "")
    assert not drawn.used


class CountingSource:
    used = 0

    def bytes(self, count: int) -> bytes:
        self.used += count
        return noise.SYSTEM.bytes(count)

    def words(self, count: int) -> Any:
        self.used += count
        return noise.SYSTEM.words(count)

    def label(self, values: Any) -> Any:
        return values


def test_repr() -> None:
    counter = TreeCounter(8, Laplace(3, grid=0.5), consistent=True)
    assert repr(counter) == "TreeCounter(horizon=8, noise=Laplace(scale=3, grid=0.5), consistent=True)"
    assert repr(counter.start()) == "<CounterRun at step 0 of 8>"
    assert isinstance(counter.start(), CounterRun)
