"""How far off running totals are: exactly where it is known, and never less than it is."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from flint import arb

from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.stream import TreeCounter
from discreet.mechanisms.tree import kept
from discreet.mechanisms.tree_errors import _laplace_sum_tail, log_moment, sum_tail
from discreet.privacy.reals import enclose
from tests.mechanisms.trees import discrete, sum_law, two_sided

LAPLACE, GAUSSIAN = Laplace(3), Gaussian(5)


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_sum_tail_of_laplace_noise(k: int) -> None:
    law = sum_law(LAPLACE, k)
    for m in (1, 2, 10, 40):
        found = float(sum_tail(LAPLACE._law, m, k).mid())
        assert found == pytest.approx(two_sided(law, m), rel=1e-9, abs=1e-14)


def test_sum_tail_of_laplace_noise_in_fractions() -> None:
    """At q = 1/2, exactly: P(sum = x) by convolution over long windows, to 60 digits."""
    q, reach = Fraction(1, 2), 220
    single = {x: Fraction(1, 3) * q ** abs(x) for x in range(-reach, reach + 1)}
    both: dict[int, Fraction] = {}
    for (a, p), (b, r) in product(single.items(), single.items()):
        if abs(a + b) <= 30:
            both[a + b] = both.get(a + b, Fraction(0)) + p * r
    inside = 1 - sum(p for x, p in both.items() if abs(x) < 5)
    found = enclose(lambda: _laplace_sum_tail(arb(1) / 2, 5, 2)).upper
    assert found == pytest.approx(float(inside), rel=1e-15)


@pytest.mark.parametrize("variance", [Fraction(1, 10), Fraction(1, 2), 1, 5, Fraction(200, 7)])
@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_sum_tail_of_gaussian_noise(variance: Fraction, k: int) -> None:
    law = sum_law(Gaussian(variance), k, 120)
    for m in (1, 2, 5, 12, 30):
        exact, found = two_sided(law, m), float(sum_tail(Gaussian(variance)._law, m, k).mid())
        assert found >= exact * (1 - 1e-9)
        if variance >= 1 and exact > 1e-12:
            assert found <= exact * 1.01


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


def weights(level: int) -> list[tuple[int, Fraction]]:
    """How many nodes of each level a refined node of this one averages, and how each counts."""
    return [(2 ** (level - i), Fraction(2**i, 2 ** (level + 1) - 1)) for i in range(level + 1)]


@pytest.mark.parametrize("kind", [LAPLACE, Laplace(Fraction(1, 2)), Gaussian(20), Gaussian(Fraction(1, 5))])
def test_log_moment(kind: Laplace | Gaussian) -> None:
    """Against sums; a refined node's moment is at most that of 1 / k nodes that count k each."""
    reach = 800 if kind == LAPLACE else 150
    p, x = discrete(kind, reach), np.arange(-reach, reach + 1)
    steepest = float(kind._law.rate) if isinstance(kind, Laplace) else 2.0
    for part in (0.05, 0.5, 0.9):
        tilt = Fraction(steepest * part)

        def exact(weight: Fraction, s: Fraction = tilt) -> float:
            return math.log(float((p * np.exp(float(s * weight) * x)).sum()))

        found = float(log_moment(kind._law, tilt).mid())
        assert found >= exact(Fraction(1)) * (1 - 1e-9)
        if isinstance(kind, Laplace):
            assert found == pytest.approx(exact(Fraction(1)), rel=1e-6)
        for level in range(5):
            k = kept(level)
            assert sum(n * w**2 for n, w in weights(level)) == k
            bound = float(log_moment(kind._law, tilt * k).mid()) / float(k)
            assert sum(n * exact(w) for n, w in weights(level)) <= bound * (1 + 1e-9)


@pytest.mark.parametrize("far", [1, 10**6, 10**300, 10**3000])
@pytest.mark.parametrize("width", [Fraction(1, 10**30), Fraction(1), Fraction(10**30)])
def test_tails_of_narrow_noise_and_far_away(far: int, width: Fraction) -> None:
    for kind in (Laplace(width), Gaussian(width)):
        for consistent in (False, True):
            counter = TreeCounter(5, kind, consistent=consistent)
            chances = [counter.tail(far, time=time) for time in (None, 4)]
            assert all(0 <= chance <= 1 for chance in chances)
            if far > 1000 * width:
                assert max(chances) < 1e-100


@pytest.mark.parametrize("consistent", [False, True])
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_solve(kind: Any, consistent: bool) -> None:
    for time in (None, 500):
        counter = TreeCounter.solve(
            error=200, failure=0.01, horizon=1000, noise=kind, consistent=consistent, time=time
        )
        assert counter.tail(200, time=time) <= 0.01
        width = (
            counter.noise.scale if isinstance(counter.noise, Laplace) else counter.noise.variance
        ) * Fraction(101, 100)
        assert TreeCounter(1000, kind(width), consistent=consistent).tail(200, time=time) > 0.01
    on_grid = TreeCounter.solve(error=2, failure=0.01, horizon=8, grid=0.01, noise=kind)
    assert on_grid.tail(2) <= 0.01
    assert on_grid.noise.grid == Fraction(1, 100)
