"""exponential_ranking has the law of ranking reals, whose probabilities are integrals done here by mpmath."""

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np
import pytest

from discreet import noise
from discreet.noise import ranking as ranking_module
from discreet.noise.ranking import _exact_ranking, _Exponential, _Levels, _rankings
from tests.noise.exact import MP, real
from tests.statistics import Finding, assert_passes, binomial, chi_square, judge

MP_LOW = MP.clone()
MP_LOW.dps = 20


def as_levels(levels: list[Fraction]) -> _Levels:
    """The same levels, in units of a third."""
    return _Levels([3 * level for level in levels], Fraction(1, 3))


def winning_chances(levels: list[Fraction]) -> list[float]:
    """P(i has the largest of level + E): the integral of exp(a_i) prod_j (1 - exp(a_j) u) over u in (0, 1).

    Here a = level - highest <= 0 and u = exp(-v), where v > 0 is the winner's noisy level.
    """
    odds = [MP.exp(real(level - max(levels))) for level in levels]
    chances = []
    for i, mine in enumerate(odds):
        others = [odd for j, odd in enumerate(odds) if j != i]
        chances.append(
            MP.quad(lambda u: mine * MP.fprod(1 - odd * u for odd in others), [0, 1])  # noqa: B023
        )
    return [float(chance) for chance in chances]


def order_chance(levels: list[Fraction], order: tuple[int, ...]) -> float:
    """P(the first places, in this order), by integrating over the noisy level v of the last one named."""
    mp = MP_LOW
    height = [mp.mpf(level.numerator) / level.denominator for level in levels]
    rest = [j for j in range(len(levels)) if j not in order]
    first, second = order

    def density(v: Any) -> Any:
        if v < height[second]:
            return mp.mpf(0)
        above = min(mp.mpf(1), mp.exp(height[first] - v))
        below = mp.fprod(max(mp.mpf(0), 1 - mp.exp(height[k] - v)) for k in rest)
        return mp.exp(height[second] - v) * above * below

    return float(mp.quad(density, [*sorted(set(height)), max(height) + 4, max(height) + 12, mp.inf]))


OFFSETS = {
    "alone": [Fraction(3)],
    "equal": [Fraction(0)] * 5,
    "close": [Fraction(1, 3), Fraction(0), Fraction(1, 7)],
    "spread": [Fraction(-3), Fraction(0), Fraction(-1), Fraction(-5, 2), Fraction(2)],
}


def winner_finding(winners: Any, levels: list[Fraction]) -> Finding:
    return chi_square("winners", np.bincount(winners, minlength=len(levels)), winning_chances(levels))


@pytest.mark.parametrize("offsets", OFFSETS.values(), ids=OFFSETS)
@pytest.mark.parametrize("scale", [1, Fraction(5, 2)])
def test_exponential_ranking(offsets: list[Fraction], scale: Fraction) -> None:
    winners = noise.exponential_ranking(offsets, scale, size=1 << 18)
    assert winners.shape == (1 << 18, 1)
    assert_passes(winner_finding(winners[:, 0], [offset / scale for offset in offsets]))


def test_permute_and_flip() -> None:
    """The winner has the law of McKenna and Sheldon's Algorithm 1, whose steps are enumerated."""
    levels = OFFSETS["spread"]
    flip = [MP.exp(real(level - max(levels))) for level in levels]
    chances = [MP.mpf(0)] * len(levels)
    for order in permutations(range(len(levels))):
        unflipped = MP.mpf(1)
        for i in order:
            chances[i] += unflipped * flip[i] / factorial(len(levels))
            unflipped *= 1 - flip[i]
    assert np.allclose([float(chance) for chance in chances], winning_chances(levels), rtol=1e-12)


@pytest.mark.parametrize("bits", [0, 1, 3, 40])
def test_few_initial_bits_are_extended_to_the_same_law(bits: int) -> None:
    """With 0, 1 or 3 bits known at first, nearly every comparison needs more."""
    for levels in (OFFSETS["close"], OFFSETS["spread"]):
        draws = 1 << (18 if bits == 40 else 12)
        orders = _rankings(as_levels(levels), 2, draws, noise.SYSTEM, bits)
        counts = Counter(map(tuple, orders.tolist()))
        pairs = list(permutations(range(len(levels)), 2))
        chances = [order_chance(levels, pair) for pair in pairs]
        assert_passes(chi_square("first two", [counts[pair] for pair in pairs], chances))


def test_a_complete_ranking_is_a_permutation() -> None:
    orders = noise.exponential_ranking([0] * 4, top=4, size=1 << 16)
    counts = Counter(map(tuple, orders.tolist()))
    assert_passes(chi_square("orders", [counts[p] for p in permutations(range(4))], [1 / 24] * 24))


def test_gumbel_noise_instead_is_caught() -> None:
    """The exponential mechanism is another law, and so is a winner among rounded noisy levels."""
    levels = OFFSETS["spread"]
    noisy = np.random.default_rng().gumbel(size=(1 << 18, 5)) + [float(level) for level in levels]
    assert judge([winner_finding(noisy.argmax(axis=1), levels)])
    rounded = np.floor(np.random.default_rng().exponential(size=(1 << 18, 5)) + [float(a) for a in levels])
    assert judge([winner_finding(rounded.argmax(axis=1), levels)])


def test_offsets_far_apart_cost_nothing_and_order_exactly() -> None:
    huge = [0, 10**30, -(10**30), 10**30 - 10**9, 10**400]
    assert noise.exponential_ranking(huge, top=5).tolist() == [4, 1, 3, 0, 2]
    assert noise.exponential_ranking(huge, top=1, size=100).ravel().tolist() == [4] * 100
    # Beyond 2**22 scales below the highest, offsets that differ by little are still told apart by law.
    far = [Fraction(10**9), Fraction(0), Fraction(1, 3), Fraction(1, 7)]
    places = noise.exponential_ranking(far, top=2, size=1 << 11)
    assert (places[:, 0] == 0).all()
    assert_passes(winner_finding(places[:, 1] - 1, far[1:]))


def test_the_edge_at_which_offsets_are_taken_for_lower_ones() -> None:
    edge = 1 << 22
    for gap in (edge - 1, edge, edge + 1):
        far = [Fraction(0), Fraction(-gap), Fraction(-gap) - Fraction(1, 2)]
        places = _rankings(as_levels(far), 2, 1 << 11, noise.SYSTEM)
        assert (places[:, 0] == 0).all()
        assert_passes(winner_finding(places[:, 1] - 1, far[1:]))


class Fives:
    """Gives every variate the same first digits."""

    def fill(self, count: int, source: noise.Source) -> Any:
        return np.full(count, 5)


def test_floors_that_differ_by_one_are_not_told_apart_too_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels 5 + R and 9/2 + R' have the floors 5 and 4, and yet the second is above in 1 of 9 draws."""
    monkeypatch.setattr("discreet.noise.ranking.block_sampler", lambda energy, two_sided: Fives())
    winners = _rankings(as_levels([Fraction(0), Fraction(-1, 2)]), 1, 1 << 12, noise.SYSTEM, 0)[:, 0]
    e = math.exp(-0.5)  # R and R' have the density exp(-r) / (1 - e**2)
    second = (e * (1 - e * e) / 2 - e * e * (1 - e)) / (1 - e * e) ** 2
    assert_passes(binomial("second", int(winners.sum()), winners.size, second))
    assert not _rankings(as_levels([Fraction(0), Fraction(-3, 2)]), 1, 1 << 8, noise.SYSTEM, 0).any()


def test_exact_ranking_keeps_what_is_known() -> None:
    levels = [Fraction(0), Fraction(0), Fraction(1, 2)]
    assert _exact_ranking([0, 1, 2], as_levels(levels), [5, 7, 6], 0, noise.SYSTEM)[-1] == 0
    heads = sum(
        _exact_ranking([0, 1], as_levels(levels[:2]), [9, 9], 3, noise.SYSTEM) == [0, 1]
        for _ in range(1 << 12)
    )
    assert_passes(binomial("ties", heads, 1 << 12, 0.5))


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0]], ids=str)
def test_every_order_of_equal_levels_is_equally_likely(order: list[int]) -> None:
    """From no bits at all, so that variates known to different depths are compared over and over."""
    levels, counts = [Fraction(0)] * 4, dict.fromkeys(permutations(range(4)), 0)
    for _ in range(1 << 13):
        digits = [noise.geometric(1) for _ in levels]
        counts[tuple(_exact_ranking(order, as_levels(levels), digits, 0, noise.SYSTEM))] += 1
    assert_passes(chi_square("orders", list(counts.values()), np.full(24, 1 / 24)))


def test_offsets_far_apart_are_told_apart_by_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raised offsets may be among the top: only those that integers leave in doubt are compared exactly."""
    compared = []

    def spy(order: list[int], *how: Any) -> list[int]:
        compared.append(len(order))
        return _exact_ranking(order, *how)

    monkeypatch.setattr(ranking_module, "_exact_ranking", spy)
    counts = [9 * 10**7 // (k + 1) for k in range(10**4)]
    assert noise.exponential_ranking(counts, top=10).tolist() == list(range(10))
    assert noise.exponential_ranking([0] + [-(10**8)] * 10**4, top=2)[0] == 0
    assert compared
    assert max(compared) < 20


def test_refining_an_exponential() -> None:
    """Given floor(E) = 2, the fraction has the density exp(-f) / (1 - 1/e): its first 3 bits show it."""
    counts = np.zeros(8, np.int64)
    for _ in range(1 << 13):
        variate = _Exponential(2, 0, noise.SYSTEM)
        variate.refine()
        assert variate.digits >> variate.bits == 2
        counts[variate.digits >> (variate.bits - 3) & 7] += 1
    chances = np.exp(-np.arange(8) / 8) * (1 - np.exp(-1 / 8)) / (1 - np.exp(-1))
    assert_passes(chi_square("eighths", counts, chances))


def test_whole_offsets_and_the_same_as_fractions_have_the_same_floors() -> None:
    offsets = [7, -3, 10**20, 0, -(10**20)]
    for unit in (Fraction(1, 3), Fraction(5, 2), Fraction(10**9, 7)):
        floors = _Levels(offsets, unit).floors(40)
        assert floors == _Levels([Fraction(x) for x in offsets], unit).floors(40)
        assert floors == [math.floor((x - 10**20) * unit * 2**40) for x in offsets]
    for same in ([3, 1], [3.0, 1], np.array([3, 1], np.int8), np.array([3, 1], np.uint64), (3, Fraction(1))):
        assert noise.exponential_ranking(same, Fraction(1, 100)).tolist() == [0]


def test_shapes() -> None:
    assert noise.exponential_ranking([1, 2, 3]).shape == (1,)
    assert noise.exponential_ranking([1, 2, 3], top=2, size=(4, 0, 5)).shape == (4, 0, 5, 2)
    assert noise.exponential_ranking(np.array([1.5, 2.5]), top=2, size=()).shape == (2,)
