"""Continual counting: the tree's sensitivity, its linear map, what it costs and how far off it is."""

import copy
import dataclasses
import math
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import DiscreetError, InvalidInput, NotPrivateWarning, Unsupported
from discreet.mechanisms.additive import AdditiveNoise
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.stream import CounterRun, TreeCounter, isotonic
from discreet.noise import NotPrivate, NotPrivateArray
from discreet.privacy import ZCDP, ApproxDP, PureDP
from discreet.privacy.neighbours import ADD_REMOVE
from tests.mechanisms.trees import discrete, sum_law, sums_of, tree
from tests.statistics import Finding, assert_passes, at_most, chi_square, judge

LAPLACE, GAUSSIAN = Laplace(3), Gaussian(5)


def by_level(horizon: int) -> list[tuple[int, int]]:
    """The same nodes in the order in which a release refines them: short ones first."""
    return sorted(tree(horizon), key=lambda node: node[1] - node[0])


def scripted(monkeypatch: pytest.MonkeyPatch, script: Any) -> None:
    """Hand out these numbers as noise, in the order asked for, and no more."""
    numbers = np.asarray(script)
    taken = 0

    def draw(kind: Any, shape: tuple[int, ...], source: Any) -> Any:
        nonlocal taken
        count = math.prod(shape)
        part = numbers[taken : taken + count]
        assert len(part) == count, "more noise was asked for than the tree has nodes"
        taken += count
        return part if shape else part[0]

    monkeypatch.setattr(AdditiveNoise, "_draw", draw)


def run_through(counter: TreeCounter, values: Any) -> list[Any]:
    run = counter.start()
    return [run.add(value) for value in values]


# --- sensitivity ----------------------------------------------------------------------------------------


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
    nodes = by_level(horizon)
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
        assert float(counter._errors.share(t)) == pytest.approx(float((best**2).sum()), rel=1e-12)


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
        if consistent:
            script = script[[by_level(length).index(node) for node in tree(length)]]
        scripted(monkeypatch, script)
        assert run_through(counter, given.tolist()) == whole.tolist()
        assert whole.dtype == (np.int64 if kind.grid is None and not consistent else np.float64)


@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("way", ["at once", "increasing", "step by step"])
def test_releases_are_functions_of_noisy_nodes(
    way: str, consistent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What values add to a node could as well be its noise: not a bit of the output tells them apart."""
    rng = np.random.default_rng(6)
    for horizon in (1, 2, 5, 16, 100):
        counter = TreeCounter(horizon, LAPLACE, consistent=consistent)
        ways: dict[str, Callable[[Any], Any]] = {
            "at once": counter.release,
            "increasing": partial(counter.release, increasing=True),
            "step by step": partial(run_through, counter),
        }
        release, ordered = ways[way], (tree if way == "step by step" else by_level)(horizon)
        nodes = ordered if consistent else highest_nodes(horizon)
        matrix = sums_of(nodes, horizon)
        for size in (2, 1000, 2**55, 2**75):
            values = np.array([int(v) * size // 1000 for v in rng.integers(-1000, 1000, horizon)], object)
            script = np.array([int(v) for v in rng.integers(-(10**6), 10**6, len(nodes))], object)
            scripted(monkeypatch, script)
            with_values = release(values.tolist())
            scripted(monkeypatch, script + matrix.astype(object) @ values)
            without = release([0] * horizon)
            assert list(with_values) == list(without)
            if way != "step by step":
                assert with_values.dtype == without.dtype
                assert way == "at once" or without.dtype == np.float64


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
        return [sum(values[: t + 1]) + int(LAPLACE._draw((), noise.SYSTEM)) for t in range(len(values))]

    found = laws(fresh, 3, 3, 4, monkeypatch)
    assert worst_loss(found, 4, 1) > TreeCounter(3, LAPLACE).sensitivity().l1


def test_planted_noise_shared_by_siblings_costs_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(values: tuple[int, ...]) -> list[int]:
        first, second = (int(LAPLACE._draw((), noise.SYSTEM)) for _ in range(2))
        return [values[0] + first, sum(values[:2]) + second, sum(values) + second + first]

    found = laws(shared, 3, 2, 4, monkeypatch)
    assert worst_loss(found, 4, 1) == math.inf


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


@pytest.mark.parametrize("grid", [None, Fraction(1, 4), Fraction(3)])
def test_one_step_costs_as_one_answer(grid: Fraction | None) -> None:
    """With a single node there is nothing to add: the same as Laplace and Gaussian noise, on any grid."""
    for kind in (Laplace(40, grid=grid), Gaussian(700, grid=grid)):
        counter, alone = TreeCounter(1, kind), dataclasses.replace(kind, size=1)
        for moved in (1, 5):
            assert counter.guarantee(moved) == alone.guarantee(moved)
            assert counter.loss(moved).delta(0.1) == alone.loss(moved).delta(0.1)
    by_rho = TreeCounter.calibrate(rho=2, horizon=1, sensitivity=5, grid=grid)
    assert by_rho.noise == Gaussian.calibrate(rho=2, sensitivity=5, grid=grid)
    by_epsilon = TreeCounter.calibrate(epsilon=2, horizon=1, sensitivity=5, grid=grid)
    assert by_epsilon.noise == Laplace.calibrate(epsilon=2, sensitivity=5, grid=grid)


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
def test_error_covers_all_totals(kind: Laplace | Gaussian, consistent: bool) -> None:
    counter = TreeCounter(300, kind, consistent=consistent)
    values = np.random.default_rng(0).poisson(0.3, 300)
    exact, off = np.cumsum(values), counter.error(0.5)
    ways: dict[str, tuple[Callable[[], Any], int]] = {
        "at once": (lambda: counter.release(values), 400),
        "increasing": (lambda: counter.release(values, increasing=True), 400),
        "step by step": (lambda: run_through(counter, values.tolist()), 60),
    }
    findings = []
    for name, (release, trials) in ways.items():
        missed = sum(bool((np.abs(np.asarray(release()) - exact) > off).any()) for _ in range(trials))
        findings.append(at_most(name, missed, trials, 0.5))
    assert_passes(*findings)


def test_what_consistency_and_order_gain() -> None:
    """Least squares halves the variance of long sums; order helps where the total grows slowly."""
    values = np.random.default_rng(1).poisson(0.1, 4095)
    exact = np.cumsum(values)

    def mean_square(*, consistent: bool = False, increasing: bool = False) -> float:
        counter = TreeCounter.calibrate(epsilon=1, horizon=4095, consistent=consistent)
        releases = (counter.release(values, increasing=increasing) for _ in range(60))
        return float(np.mean([((totals - exact) ** 2).mean() for totals in releases]))

    plain = mean_square()
    # Each is some seven standard errors away from its limit; what it is about is beside it.
    assert mean_square(consistent=True) < 0.9 * plain  # 0.57
    assert mean_square(increasing=True) < 0.85 * plain  # 0.38
    assert mean_square(increasing=True, consistent=True) < 0.7 * plain  # 0.25


# --- order -----------------------------------------------------------------------------------------


def nearest_in_order(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The textbook's formula: max over beginnings of min over ends of the mean between."""
    n = len(values)
    return np.array(
        [max(min(values[a : b + 1].mean() for b in range(i, n)) for a in range(i + 1)) for i in range(n)]
    )


def test_isotonic() -> None:
    rng = np.random.default_rng(2)
    for n in (1, 2, 3, 10, 25):
        for values in (rng.normal(size=n), np.floor(rng.random(n) * 3), np.linspace(9.0, 0.0, n)):
            assert np.allclose(isotonic(values), nearest_in_order(values), atol=1e-12)


def test_isotonic_is_no_further_from_what_is_in_order() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        exact = np.sort(rng.integers(0, 50, 40)).astype(float)
        noisy = exact + rng.normal(0, 10, 40)
        fitted = isotonic(noisy)
        assert (np.diff(fitted) >= 0).all()
        assert np.abs(fitted - exact).max() <= np.abs(noisy - exact).max() + 1e-9


@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("kind", [Laplace(30), Laplace(30, grid=0.1)])
def test_increasing(kind: Laplace, consistent: bool) -> None:
    totals = TreeCounter(200, kind, consistent=consistent).release([1] * 200, increasing=True)
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
    assert len(run._sums) == len(run._noises) == 3


def test_a_refused_value_is_no_step() -> None:
    run = TreeCounter(5, LAPLACE).start()
    for bad in (True, "1", None, math.nan, [1], 0.5, np.array([1])):
        with pytest.raises(InvalidInput):
            run.add(bad)
    assert run.time == 0


@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("before", range(8))
def test_an_interrupted_step_is_none(before: int, consistent: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where randomness ends in the middle of a step, the totals after it are as if it had not been."""
    counter = TreeCounter(9, LAPLACE, consistent=consistent)
    draws = 1 if not consistent else 1 + ((before + 1) & -(before + 1)).bit_length() - 1
    run = counter.start()
    scripted(monkeypatch, [0] * 20)
    for _ in range(before):
        run.add(3)
    for left in range(draws):
        scripted(monkeypatch, [10**6] * left)
        with pytest.raises(AssertionError, match="more noise"):
            run.add(5)
        assert run.time == before
    scripted(monkeypatch, [0] * 20)
    assert [run.add(7), run.time] == [3 * before + 7, before + 1]


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


def test_a_run_is_thread_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where threads change places in the middle of a step."""

    def slow(kind: Any, shape: Any, source: Any) -> int:
        time.sleep(1e-4)
        return 0

    monkeypatch.setattr(AdditiveNoise, "_draw", slow)
    run, totals = TreeCounter(200, LAPLACE).start(), []

    def work() -> None:
        for _ in range(50):
            totals.append(run.add(1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(totals) == list(range(1, 201))


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
