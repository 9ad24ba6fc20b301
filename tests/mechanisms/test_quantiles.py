"""Quantiles: the exact law of a release, what it costs over all neighbours, and how far off it is."""

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, product
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.errors import DiscreetError, InvalidInput, NotPrivateWarning
from discreet.mechanisms import quantiles as module
from discreet.mechanisms.quantiles import Quantiles
from discreet.mechanisms.ranks import expected_ties, points
from discreet.mechanisms.selection import ExponentialMechanism
from discreet.noise import NotPrivate, NotPrivateArray
from discreet.privacy import GDP, ZCDP, ApproxDP, Neighbours, PureDP
from tests.statistics import Finding, assert_passes, at_most, chi_square, judge

MP = mpmath.mp.clone()
MP.dps = 30
Law = dict[tuple[int, ...], Any]
QUARTILES = [Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)]


# --- the law, by hand: from rank errors of single values, with no runs of them --------------------------


def rank_error(values: Sequence[int], v: int, target: Fraction) -> Fraction:
    """How far target * n is from the ranks that v has."""
    n, below, upto = len(values), sum(x < v for x in values), sum(x <= v for x in values)
    return max(Fraction(0), below - target * n, target * n - upto)


def shares(weights: dict[int, Any]) -> dict[int, Any]:
    total = MP.fsum(weights.values())
    return {v: weight / total for v, weight in weights.items()}


def power(x: Fraction) -> Any:
    return MP.exp(-MP.mpf(x.numerator) / x.denominator)


def picked(values: Sequence[int], low: int, high: int, target: Fraction, rate: Fraction) -> dict[int, Any]:
    return shares({v: power(rate * rank_error(values, v, target)) for v in range(low, high + 1)})


def cut(values: Sequence[int], low: int, high: int, target: Fraction, rate: Fraction) -> dict[int, Any]:
    n = len(values)
    errors = {c: abs(sum(x < c for x in values) - target * n) for c in range(low, high + 2)}
    return shares({c: power(rate * error) for c, error in errors.items()})


def halved(
    q: Quantiles,
    fine: list[int],
    low: int,
    high: int,
    left: list[Fraction],
    ends: tuple[Fraction, Fraction],
    level: int,
) -> Law:
    if not left:
        return {(): MP.mpf(1)}
    parts, top = 1 << module._TIE_BITS, q._points() - 1
    middle = len(left) // 2
    target = (left[middle] - ends[0]) / (ends[1] - ends[0])
    rate = q._rate(target, level)
    if len(left) == 1:
        bottom = min(low // parts, top)
        values = [x // parts for x in fine]
        return {(v,): p for v, p in picked(values, bottom, max(bottom, high // parts), target, rate).items()}
    law: Law = {}
    for c, chance in cut(fine, low, high, target, rate).items():
        below = halved(
            q, [x for x in fine if x < c], low, c - 1, left[:middle], (ends[0], left[middle]), level + 1
        )
        above = halved(
            q, [x for x in fine if x >= c], c, high, left[middle + 1 :], (left[middle], ends[1]), level + 1
        )
        for (x, p), (y, r) in product(below.items(), above.items()):
            outcome = (*x, min(c // parts, top), *y)
            law[outcome] = law.get(outcome, 0) + chance * p * r
    return law


def law_by_hand(q: Quantiles, data: Sequence[int]) -> Law:
    low, high = (int(bound) for bound in q.bounds)
    values = [min(max(x, low), high) - low for x in data]
    if len(q.quantiles) == 1:
        rate = q._rate(q.quantiles[0], 0)
        return {(low + v,): p for v, p in picked(values, 0, high - low, q.quantiles[0], rate).items()}
    parts = 1 << module._TIE_BITS
    law: Law = {}
    for bits in product(range(parts), repeat=len(values)):
        fine = [x * parts + bit for x, bit in zip(values, bits, strict=True)]
        for outcome, p in halved(
            q, fine, 0, (high - low + 1) * parts - 1, list(q.quantiles), (Fraction(0), Fraction(1)), 0
        ).items():
            found = tuple(low + v for v in outcome)
            law[found] = law.get(found, 0) + p / parts ** len(values)
    return law


# --- the law of the code: every choice that it could make, one after the other --------------------------


class Explorer:
    """Takes the place of chance: `decide` goes through all combinations of decisions, over many runs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path: list[list[int]] = []
        self.depth, self.chance = 0, MP.mpf(1)
        monkeypatch.setattr(module, "choose", self.choose)
        monkeypatch.setattr(module, "uniform", self.uniform)

    def decide(self, weights: list[Any]) -> int:
        if self.depth == len(self.path):
            self.path.append([0, len(weights)])
        place = self.path[self.depth][0]
        self.depth += 1
        self.chance *= weights[place] / MP.fsum(weights)
        return place

    def choose(self, candidates: Any, rate: Fraction, target: Fraction, source: Any) -> int:
        unit = rate / target.denominator
        runs = zip(*(part.tolist() for part in candidates), strict=True)
        every = [(start + i, error) for start, times, error in runs for i in range(times)]
        return int(every[self.decide([power(unit * error) for _, error in every])][0])

    def uniform(self, n: int, size: int, source: Any) -> NDArray[np.int64]:
        return np.array([self.decide([MP.mpf(1)] * n) for _ in range(size)], np.int64)

    def law(self, q: Quantiles, data: Any) -> Law:
        found: Law = {}
        self.path = []
        while True:
            self.depth, self.chance = 0, MP.mpf(1)
            outcome = tuple(q.release(data).tolist())
            found[outcome] = found.get(outcome, 0) + self.chance
            while self.path and self.path[-1][0] + 1 == self.path[-1][1]:
                self.path.pop()
            if not self.path:
                return found
            self.path[-1][0] += 1


def distance(law: Law, other: Law) -> float:
    return float(max(abs(law.get(o, 0) - other.get(o, 0)) for o in law.keys() | other.keys()))


CASES = [
    ([0.5], (0, 4), []),
    ([0.5], (0, 4), [2, 2, 2]),
    ([0.9], (-2, 3), [-2, 3, 3, 1]),
    ([0.3], (-2, 3), [-9, 30, 0, 0, 0]),
    ([0.5], (7, 7), [1, 2]),
    ([0.2, 0.5], (0, 2), [0, 2]),
    ([0.25, 0.5, 0.75], (0, 2), []),
    ([0.25, 0.5, 0.75], (0, 1), [1, 1]),
    ([0.2, 0.5, 0.9], (0, 2), [0, 7]),
    ([0.2, 0.4, 0.6, 0.8], (0, 1), [1]),
]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(("wanted", "bounds", "data"), CASES)
def test_release_has_the_law_by_hand(
    wanted: list[float],
    bounds: tuple[int, int],
    data: list[int],
    neighbours: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every choice of the code, with its probability, against rank errors counted one by one."""
    monkeypatch.setattr(module, "_TIE_BITS", 1)
    q = Quantiles(wanted, bounds, epsilon=3, neighbours=neighbours)
    law = Explorer(monkeypatch).law(q, data)
    assert distance(law, law_by_hand(q, data)) < 1e-25
    for outcome in law:
        assert list(outcome) == sorted(outcome)
        assert bounds[0] <= outcome[0] <= outcome[-1] <= bounds[1]


def test_values_on_a_grid_have_the_law_of_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounded half up after clipping, floats at their binary value: 0.15 is below, and 0.25 rounds up."""
    q = Quantiles([0.4], (0, 0.5), grid=0.1, epsilon=2)
    places = law_by_hand(Quantiles([0.4], (0, 5), epsilon=2), [1, 3, 5, 0])
    law = Explorer(monkeypatch).law(q, [0.15 - 1e-17, 0.25, 1e300, -math.pi])
    assert {tuple(round(v * 10) for v in o) for o in law} == set(places)
    assert all(abs(p - places[(round(o[0] * 10),)]) < 1e-25 for o, p in law.items())


# --- what it costs, over all neighbours ---------------------------------------------------------------


def databases(universe: Sequence[int], n: int) -> list[tuple[int, ...]]:
    return [d for k in range(n + 1) for d in combinations_with_replacement(universe, k)]


def neighbouring(
    universe: Sequence[int], n: int, relation: str
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for d in databases(universe, n):
        for i in range(len(d)):
            rest = d[:i] + d[i + 1 :]
            if relation == "add-remove":
                yield d, rest
            else:
                yield from ((d, other) for v in universe if (other := tuple(sorted((*rest, v)))) > d)


def loss_between(law: Law, other: Law) -> float:
    assert law.keys() == other.keys()
    return float(max(abs(MP.log(p / other[o])) for o, p in law.items()))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("wanted", "points", "n"),
    [([0.5], 4, 4), ([0.9], 3, 4), ([0.3], 4, 3), ([0.5, 0.9], 3, 2), (QUARTILES, 3, 2), (QUARTILES, 2, 3)],
)
def test_epsilon_over_all_neighbours(
    wanted: list[Any], points: int, n: int, neighbours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIE_BITS", 1)
    for epsilon in (1, 6):
        q = Quantiles(wanted, (0, points - 1), epsilon=epsilon, neighbours=neighbours)
        laws = {d: law_by_hand(q, d) for d in databases(range(points), n)}
        worst = max(loss_between(laws[d], laws[e]) for d, e in neighbouring(range(points), n, neighbours))
        assert 0.15 * epsilon < worst <= epsilon
        rho = max(renyi_ratio(laws[d], laws[e]) for d, e in neighbouring(range(points), n, neighbours))
        assert rho <= float(q.concentrated().rho) * (1 + 1e-12)


def renyi_ratio(law: Law, other: Law) -> float:
    """Return the largest Renyi divergence, over its order, of a few orders and both directions."""
    worst = MP.mpf(0)
    for p, r in ((law, other), (other, law)):
        for alpha in (MP.mpf("1.01"), 2, 10):
            moment = MP.fsum(p[o] ** alpha * r[o] ** (1 - alpha) for o in p)
            worst = max(worst, MP.log(moment) / (alpha - 1) / alpha)
    return float(worst)


# Few values far apart on a wide grid: where the grid outweighs the data, losses come near what is promised.


class Wide:
    """Losses of a release with no tie bits; a cut counts as released itself, before it is made a value."""

    def __init__(self, q: Quantiles) -> None:
        self.q, self.top = q, q._points() - 1
        self.known: dict[Any, NDArray[np.float64]] = {}

    def log_law(
        self, values: tuple[int, ...], low: int, high: int, target: Fraction, level: int, cuts: bool
    ) -> Any:
        """Return ln of the probability of every candidate from low on."""
        key = values, low, high, target, level, cuts
        if key not in self.known:
            v = np.arange(low, high + 1 + cuts)
            data, n = np.array(values, np.int64), len(values)
            below = (data[:, None] < v).sum(axis=0)
            upto = below if cuts else (data[:, None] <= v).sum(axis=0)
            errors = np.maximum(0, np.maximum(below - float(target) * n, float(target) * n - upto))
            energy = float(self.q._rate(target, level)) * errors
            self.known[key] = -energy - np.log(np.exp(-energy).sum())
        return self.known[key]

    def greatest(self, d: tuple[int, ...], e: tuple[int, ...]) -> float:
        """Return the greatest |ln P/Q| of one quantile, or of three: over all cuts, and all values beside."""
        if len(self.q.quantiles) == 1:
            target = self.q.quantiles[0]
            laws = (self.log_law(x, 0, self.top, target, 0, False) for x in (d, e))
            return float(np.abs(next(laws) - next(laws)).max())
        first, middle, last = self.q.quantiles
        p, r = (self.log_law(x, 0, self.top, middle, 0, True) for x in (d, e))
        worst = 0.0
        for c in range(0, self.top + 2, 10):
            spans = []
            for side, target in ((0, first / middle), (1, (last - middle) / (1 - middle))):
                low, high = (0, max(0, c - 1)) if side == 0 else (min(c, self.top), self.top)
                parts = [tuple(x for x in data if (x >= c) == side) for data in (d, e)]
                left, right = (self.log_law(part, low, high, target, 1, False) for part in parts)
                spans.append(left - right)
            for sign in (1, -1):
                worst = max(worst, sign * (p[c] - r[c]) + sum((sign * span).max() for span in spans))
        return float(worst)


# The quantiles, the values there are, and how many at most.
WIDE: dict[str, tuple[list[Any], tuple[int, ...], int]] = {
    "one": ([0.5], (0, 150, 155, 600), 4),
    "one at the end": ([0.9], (0, 3, 5000), 12),
    "three": (QUARTILES, (0, 150, 155, 600), 4),
}


def greatest_loss(q: Quantiles, universe: tuple[int, ...], n: int, relation: str) -> float:
    wide = Wide(q)
    return max(wide.greatest(d, e) for d, e in neighbouring(universe, n, relation))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("case", WIDE)
def test_epsilon_is_nearly_reached_on_a_wide_grid(
    case: str, neighbours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIE_BITS", 0)
    wanted, universe, n = WIDE[case]
    q = Quantiles(wanted, (0, universe[-1]), epsilon=8, neighbours=neighbours)
    assert 4.5 < greatest_loss(q, universe, n, neighbours) <= 8
    # Neighbours at twice the distance, or units of two rows, move as far again.
    twice = Quantiles(wanted, (0, universe[-1]), epsilon=16, rows=2, neighbours=neighbours)
    assert greatest_loss(twice, universe, 3, neighbours) == greatest_loss(q, universe, 3, neighbours)


class SensitivityOfAHalf(Quantiles):
    def _rate(self, target: Fraction, level: int) -> Fraction:
        return self.epsilon / self.levels


class ChargedOnceUnderReplace(Quantiles):
    def _rate(self, target: Fraction, level: int) -> Fraction:
        return self.epsilon / self.levels / (2 * max(target, 1 - target))


class ChargedByHalfBelow(Quantiles):
    def _rate(self, target: Fraction, level: int) -> Fraction:
        return self.epsilon / self.levels / 2


class LevelsForgotten(Quantiles):
    def _rate(self, target: Fraction, level: int) -> Fraction:
        return super()._rate(target, level) * self.levels


@pytest.mark.parametrize(
    ("planted", "case", "neighbours"),
    [
        (SensitivityOfAHalf, "one at the end", "add-remove"),
        (SensitivityOfAHalf, "one", "replace"),
        (ChargedOnceUnderReplace, "three", "replace"),
        (LevelsForgotten, "three", "add-remove"),
    ],
)
def test_a_planted_rate_is_caught(
    planted: type[Quantiles], case: str, neighbours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_TIE_BITS", 0)
    wanted, universe, n = WIDE[case]
    q = planted(wanted, (0, universe[-1]), epsilon=8, neighbours=neighbours)
    assert greatest_loss(q, universe, n, neighbours) > 8


def cost_of_moving_between_parts(q: Quantiles) -> float:
    """The greatest loss of the second level where a value leaves one part and enters the other."""
    wide, worst = Wide(q), 0.0
    for target in (Fraction(3, 4), Fraction(1, 4)):
        for d, e in neighbouring((0, 3, 3000), 7, "add-remove"):
            one, other = (wide.log_law(x, 0, wide.top, target, 1, False) for x in (d, e))
            worst = max(worst, float(np.abs(one - other).max()))
    return 2 * worst


def test_a_value_that_moves_between_parts_costs_a_level() -> None:
    wanted = [Fraction(3, 8), Fraction(1, 2), Fraction(5, 8)]
    assert (
        3.5 < cost_of_moving_between_parts(Quantiles(wanted, (0, 3000), epsilon=8, neighbours="replace")) <= 4
    )
    planted = ChargedByHalfBelow(wanted, (0, 3000), epsilon=8, neighbours="replace")
    assert cost_of_moving_between_parts(planted) > 4


def test_planted_lengths_forgotten_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a run weighs as much as a point, the law is another one, and close neighbours give much away."""
    q, right = Quantiles([0.5], (0, 40), epsilon=1), points

    def planted(*args: Any) -> Any:
        found = right(*args)
        return found._replace(times=np.minimum(found.times, 1))

    monkeypatch.setattr(module, "points", planted)
    law = Explorer(monkeypatch).law(q, [3, 20])
    assert distance(law, law_by_hand(q, [3, 20])) > 0.01


def test_planted_missing_clipping_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    q = Quantiles([0.5], (0, 3), epsilon=1)
    by_hand = law_by_hand(q, [-2, 9, 9])
    explorer = Explorer(monkeypatch)
    assert distance(explorer.law(q, [-2, 9, 9]), by_hand) < 1e-25
    monkeypatch.setattr(np, "clip", lambda values, low, high: values)
    with contextlib.suppress(IndexError):  # at a run of negative length
        assert distance(explorer.law(q, [-2, 9, 9]), by_hand) > 0.01


# --- sampled -----------------------------------------------------------------------------------------


def release_finding(q: Quantiles, data: Sequence[int], draws: int) -> Finding:
    law = law_by_hand(q, data)
    outcomes = sorted(law)
    seen = dict.fromkeys(outcomes, 0)
    for _ in range(draws):
        seen[tuple(q.release(list(data)).tolist())] += 1
    return chi_square("releases", list(seen.values()), [float(law[o]) for o in outcomes])


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_release_sampled(neighbours: str, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Quantiles([0.7], (0, 9), epsilon=2, neighbours=neighbours)
    assert_passes(release_finding(one, [1, 1, 4, 5, 5, 5, 12], 1500))
    monkeypatch.setattr(module, "_TIE_BITS", 1)
    three = Quantiles(QUARTILES, (0, 2), epsilon=5, neighbours=neighbours)
    assert_passes(release_finding(three, [0, 2, 2], 1500))


def test_planted_bugs_in_sampled_releases_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIE_BITS", 1)
    spoiled = LevelsForgotten(QUARTILES, (0, 2), epsilon=5)
    law = law_by_hand(Quantiles(QUARTILES, (0, 2), epsilon=5), [0, 2, 2])
    monkeypatch.setitem(globals(), "law_by_hand", lambda q, data: law)
    assert judge([release_finding(spoiled, [0, 2, 2], 1500)])


def worst_rank_error(q: Quantiles, data: NDArray[Any], found: NDArray[Any]) -> float:
    low, high = (int(bound) for bound in q.bounds)
    ordered = np.sort(np.clip(data, low, high))
    wanted = np.array([float(x) for x in q.quantiles]) * len(data)
    below, upto = (np.searchsorted(ordered, found, side) for side in ("left", "right"))
    return float(np.maximum(0, np.maximum(below - wanted, wanted - upto)).max())


DATA: dict[str, Callable[[np.random.Generator], NDArray[Any]]] = {
    "ties": lambda rng: rng.binomial(60, 0.4, 5000),
    "all equal": lambda rng: np.full(5000, 17),
    "spread": lambda rng: rng.integers(0, 10**9, 5000),
    "on the bounds": lambda rng: rng.choice([-5, 0, 10**9, 10**10], 5000),
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("wanted", [[0.5], QUARTILES, [Fraction(i, 20) for i in range(1, 20)]])
def test_error_is_not_exceeded(name: str, wanted: list[Any]) -> None:
    data = DATA[name](np.random.default_rng(3))
    q = Quantiles(wanted, (0, 10**9 if name != "ties" else 60), epsilon=1)
    off = q.error(0.5, len(data))
    trials = 60
    missed = sum(worst_rank_error(q, data, q.release(data)) >= off for _ in range(trials))
    assert_passes(at_most("errors", missed, trials, 0.5))


def test_ties_do_not_spoil_other_quantiles() -> None:
    """With 60% of the values equal, all three quartiles among them are that value."""
    data = np.concatenate([np.arange(200), np.full(600, 500), np.arange(800, 1000)])
    q = Quantiles(QUARTILES, (0, 1000), epsilon=4)
    assert all(q.release(data).tolist() == [500, 500, 500] for _ in range(20))


# --- how far off, exactly -----------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [[Fraction(1, 2)], [Fraction(9, 10)], QUARTILES])
def test_tail(wanted: list[Fraction], monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound holds for the exact law, whatever the data."""
    monkeypatch.setattr(module, "_TIE_BITS", 1)
    for epsilon in (1, 8, 40):
        q = Quantiles(wanted, (0, 2), epsilon=epsilon)
        for data in databases(range(3), 2 if len(wanted) > 1 else 4):
            law = law_by_hand(q, data)
            errors = {
                o: max(rank_error(data, v, target) for v, target in zip(o, wanted, strict=True)) for o in law
            }
            for rank in (Fraction(1, 4), Fraction(1, 2), 1, Fraction(3, 2), 2, 3):
                exact = float(MP.fsum(p for o, p in law.items() if errors[o] >= rank))
                assert exact <= q.tail(rank, len(data)) + 1e-15


def test_tail_of_one_quantile_is_nearly_reached() -> None:
    """All values at one point, and every other point as far off as that makes it."""
    q = Quantiles([0.5], (0, 99), epsilon=1)
    law = law_by_hand(q, [50] * 20)
    assert float(1 - law[(50,)]) == pytest.approx(q.tail(10), rel=1e-12)
    assert q.tail(q.error(0.99)) <= 0.01 < q.tail(q.error(0.99) - 1)
    assert q.tail(0) == 1


def test_tail_of_several_quantiles_by_hand() -> None:
    """Two points and a cut, each with half the rank error; and equal values with equal bits."""
    q = Quantiles(QUARTILES, (0, 99), epsilon=1)
    for rank in (120, 200):
        bounds = []
        for ties in module._TIES:
            best = [math.exp(-rank / 4), math.exp(-(rank / 2 - ties / 2) / 2)]
            odds = [99 * best[0], 99 * best[0], (100 << 20) * best[1]]
            collisions = math.comb(500, ties + 1) / 2 ** (20 * ties)
            bounds.append(sum(x / (1 + x) for x in odds) + collisions)
        assert q.tail(rank, 500) == pytest.approx(min(bounds), rel=1e-9)


def test_neighbours_farther_apart_cost_as_several_rows() -> None:
    far = Quantiles(bounds=(0, 9), epsilon=1, neighbours=Neighbours("add-remove", 3))
    for target, level in ((Fraction(1, 2), 0), (Fraction(1, 5), 1)):
        assert far._rate(target, level) == Quantiles(bounds=(0, 9), epsilon=1, rows=3)._rate(target, level)


def test_solve() -> None:
    for wanted in ([0.5], QUARTILES):
        found = Quantiles.solve(error=50, failure=0.01, n=1000, quantiles=wanted, bounds=(0, 1000))
        assert found.tail(50, 1000) <= 0.01
        less = Quantiles(wanted, (0, 1000), epsilon=found.epsilon * Fraction(999, 1000))
        assert less.tail(50, 1000) > 0.01


def test_calibrate() -> None:
    assert Quantiles.calibrate(epsilon=0.1, bounds=(0, 9)).epsilon == Fraction(1, 10)
    assert Quantiles.calibrate(PureDP(2), quantiles=[0.5], bounds=(0, 9)).guarantee() == PureDP(2)
    by_rho = Quantiles.calibrate(rho=0.01, bounds=(0, 9))
    assert by_rho.levels == 2
    assert by_rho.concentrated() <= ZCDP(0.01)
    assert float(by_rho.epsilon) == pytest.approx(math.sqrt(0.16), rel=1e-9)
    many = [i / 32 for i in range(1, 32)]
    approx = Quantiles.calibrate(epsilon=1, delta=1e-6, quantiles=many, bounds=(0, 9))
    assert approx.guarantee() <= ApproxDP(1, 1e-6) or approx.concentrated() <= ApproxDP(1, 1e-6)
    assert approx.epsilon >= 1
    assert Quantiles.calibrate(mu=1, bounds=(0, 9)).guarantee() <= GDP(1)
    assert Quantiles.calibrate(epsilon=1, bounds=(0, 1), grid=0.1, rows=3, neighbours="replace").rows == 3


def test_loss() -> None:
    q = Quantiles(bounds=(0, 9), epsilon=0.5, neighbours="replace")
    assert q.loss().max_divergence == 0.5
    assert q.loss(neighbours="replace").neighbours.kind == "replace"
    assert q.guarantee() == PureDP(0.5)
    with pytest.raises(InvalidInput, match="add-remove"):
        q.loss(neighbours="add-remove")


def test_levels() -> None:
    counts = {1: 1, 2: 2, 3: 2, 4: 3, 7: 3, 8: 4, 99: 7}
    for count, levels in counts.items():
        q = Quantiles([Fraction(i, count + 1) for i in range(1, count + 1)], (0, 9), epsilon=1)
        assert q.levels == levels
        assert len(q._choices(0, count, 0)) == count


# --- reading ----------------------------------------------------------------------------------------


def test_results_are_of_the_kind_of_the_grid() -> None:
    whole = Quantiles(bounds=(-3, 3), epsilon=1).release([1, 2])
    assert whole.dtype == np.int64
    real = Quantiles(bounds=(0, 1), grid=Fraction(1, 3), epsilon=1).release([0.2, 3])
    assert real.dtype == np.float64
    assert set(real.tolist()) <= {0.0, 1 / 3, 2 / 3, 1.0}
    huge = Quantiles(bounds=(10**30, 10**30 + 5), epsilon=1).release([5, 10**30 + 2])
    assert all(10**30 <= x <= 10**30 + 5 for x in huge.tolist())
    tiny = Quantiles(bounds=(0, 3), epsilon=1).release(np.array([1, 2], np.uint8))
    assert all(0 <= x <= 3 for x in tiny.tolist())


class Column:
    """Any array-like, such as a data frame's column."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.asarray(self.values)


@pytest.mark.parametrize("empty", [[], (), range(0), np.zeros(0, np.int32), Column(np.zeros(0, np.uint8))])
def test_no_data_is_data(empty: Any) -> None:
    for wanted in ([0.5], QUARTILES):
        found = Quantiles(wanted, (2, 5), epsilon=1).release(empty)
        assert all(2 <= x <= 5 for x in found.tolist())
        assert Quantiles(wanted, (2, 5), grid=0.5, epsilon=1).release(np.array([])).dtype == np.float64


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, np.bool_, object, "U5"])
@pytest.mark.parametrize("wrap", [np.asarray, Column])
def test_no_data_is_refused_where_one_value_would_be(wrap: Callable[[Any], Any], kind: Any) -> None:
    """Else a refusal would tell that there are data."""
    for count in (0, 1, 2):
        with pytest.raises(InvalidInput):
            Quantiles(bounds=(2, 5), epsilon=1).release(wrap(np.zeros(count, kind)))


def test_close_quantiles_of_long_decimals() -> None:
    wanted = [i / 7 + 1e-15 for i in range(1, 7)]
    found = Quantiles(wanted, (0, 100), epsilon=50).release(np.repeat(np.arange(101), 1000))
    assert np.abs(found - np.array([14, 28, 43, 57, 72, 86])).max() <= 1


def test_what_a_seeded_source_gives_is_marked() -> None:
    with pytest.warns(NotPrivateWarning):
        source = NotPrivate(seed=1)
    assert isinstance(Quantiles(bounds=(0, 9), epsilon=1).release([1, 2], source=source), NotPrivateArray)


def refusals() -> Iterator[tuple[str, Callable[[], Any]]]:
    make = partial(Quantiles, bounds=(0, 9), epsilon=1)
    for wanted in (
        [],
        [0],
        [1],
        [0.5, 0.5],
        [0.6, 0.5],
        ["0.5"],
        [True],
        [math.nan],
        0.5,
        "0.5",
        None,
        [Fraction(1, 10**30)],
    ):
        yield f"quantiles {wanted}", partial(make, wanted)
    bad: Any
    for bad in (
        None,
        5,
        (0,),
        (0, 1, 2),
        (3, 2),
        (0, math.inf),
        (math.nan, 1),
        ("0", 1),
        (0, 0.5),
        (0, 2**41),
    ):
        yield f"bounds {bad}", partial(make, bounds=bad)
    yield "floats too large", partial(make, bounds=(0, 10**400), grid=10**399)
    for bad in (0, -1, math.inf, math.nan, "0.1", True, None):
        yield f"epsilon {bad}", partial(make, epsilon=bad)
        yield f"error {bad}", partial(Quantiles.solve, error=bad, failure=0.1, n=9, bounds=(0, 9))
    for bad in (0, -1, math.nan, "1", True, 0.7):
        yield f"grid {bad}", partial(make, grid=bad)
    for bad in (0, 1.5, "1", True):
        yield f"rows {bad}", partial(make, rows=bad)
    yield "relation", partial(make, neighbours="other")
    yield "promises", partial(Quantiles.calibrate, bounds=(0, 9), epsilon=1, rho=1)
    yield "no promise", partial(Quantiles.calibrate, bounds=(0, 9))
    yield "n for several", partial(make().error, 0.95)
    yield "sure", partial(make([0.5]).error, 1)
    yield "failure", partial(Quantiles.solve, error=1, failure=0, n=9, bounds=(0, 9))


@pytest.mark.parametrize("refused", [pytest.param(call, id=name) for name, call in refusals()])
def test_refused(refused: Callable[[], Any]) -> None:
    with pytest.raises(DiscreetError):
        refused()


@pytest.mark.parametrize(
    "data",
    [5, [[1, 2]], "12", [True], [1, math.nan], [math.inf], [0.5], [None], np.array(3), np.zeros((0, 2)),
     np.array([1], np.float16), np.array([], object), np.array([], bool), {1: 2}],
)  # fmt: skip
def test_data_that_are_refused(data: Any) -> None:
    class Silent:
        def bytes(self, count: int) -> bytes:
            raise AssertionError("something was drawn")

        def words(self, count: int) -> Any:
            raise AssertionError("something was drawn")

        def label(self, values: Any) -> Any:
            return values

    with pytest.raises(InvalidInput) as refusal:
        Quantiles(bounds=(0, 9), epsilon=1).release(data, source=Silent())
    assert "0.5," not in str(refusal.value)


def test_repr() -> None:
    q = Quantiles([0.5], (0, 1), grid=0.1, epsilon=0.1, rows=2, neighbours="replace")
    assert repr(q) == "Quantiles([0.5], bounds=(0, 1), epsilon=0.1, grid=0.1, rows=2, neighbours='replace')"


# --- expected errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("quantiles", [[0.5], [0.1], [0.25, 0.5, 0.75]], ids=str)
def test_expected_error_holds_in_a_sample(quantiles: list[float]) -> None:
    m = Quantiles(quantiles, bounds=(0, 100), epsilon=1)
    data = np.sort(np.random.default_rng(7).integers(0, 101, 200))
    errors = []
    for _ in range(400):
        found = np.atleast_1d(m.release(data))
        below, upto = (np.searchsorted(data, found, side=side) for side in ("left", "right"))
        targets = np.array(quantiles) * len(data)
        errors.append(np.maximum(np.maximum(below - targets, targets - upto), 0))
    means = np.mean(errors, axis=0)
    room = 6 * np.std(errors, axis=0).max() / math.sqrt(len(errors))
    assert means.max() <= m.expected_error(len(data)) + room
    assert m.expected_error(len(data)) < len(data) / 2


def test_expected_error_for_one_quantile_is_that_of_the_exponential_mechanism() -> None:
    m = Quantiles([0.5], bounds=(0, 100), epsilon=1)
    assert m.expected_error() == pytest.approx(ExponentialMechanism(1, 0.5).expected_error(candidates=101))


@pytest.mark.parametrize("bits", [1, 3, 8])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 40])
def test_expected_ties(n: int, bits: int) -> None:
    """Against a sample; at n = 2 it is exactly 1 and the chance that the two are equal."""
    drawn = np.random.default_rng(1).integers(0, 1 << bits, (4000, n))
    most = [max(Counter(row).values(), default=0) for row in drawn.tolist()]
    assert np.mean(most) <= float(expected_ties(n, bits)) + 6 * np.std(most) / math.sqrt(len(most))
    if n == 2:
        assert 0 <= expected_ties(2, bits) - 1 - Fraction(1, 2**bits) <= Fraction(4, 1 << bits)
    assert expected_ties(10**9, 20) > 10**9 >> 20
