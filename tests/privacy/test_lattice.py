"""Claims about sums of Gaussian weights over integers: every route to them holds the truth."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb

from discreet.privacy import lattice
from discreet.privacy.lattice import gaussian_mass_from, theta_ratio
from discreet.privacy.reals import precision
from tests.privacy.truths import DiscreteGaussian, mp, mpf, real

F = Fraction
VARIANCES = [F(1, 10**6), F(1, 10), F(1), F(22, 7), F(63), F(64), F(65), F(899), F(901), F(123457, 7)]


def contains(value: arb, truth: mpf, relative: float = 1e-20) -> bool:
    """Whether a ball holds the truth to 80 digits and is narrow, relatively."""
    with precision(400):
        low, high = mpf(value.lower().str(110, radius=False)), mpf(value.upper().str(110, radius=False))
    room = abs(truth) * mpf(10) ** -80
    return bool(low - room <= truth <= high + room and high - low <= abs(truth) * relative)


@pytest.mark.parametrize("bits", [96, 192])
@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_a_tail_of_the_discrete_gaussian_is_the_sum_of_its_terms(variance: Fraction, bits: int) -> None:
    truth = DiscreteGaussian(variance)
    s = math.sqrt(variance)
    for j in {
        -3,
        0,
        1,
        2,
        int(s / 2),
        int(5 * s),
        int(37 * s),
        int(60 * s),
        int(variance / 2),
        int(variance),
    }:
        tail = truth._up_to(-j)
        if tail < mpf(10) ** -3000:
            continue
        with precision(bits):
            assert contains(gaussian_mass_from(j, variance), tail), j


@pytest.mark.parametrize("route", [lattice._sum_by_integral, lambda j, v: lattice._sum_terms(F(j), v)])
@pytest.mark.parametrize("j", [1, 3, 50, 400, 800])
def test_both_routes_to_a_sum_agree(route: Callable[[int, Fraction], arb], j: int) -> None:
    truth = DiscreteGaussian(F(441))
    with precision(160):
        assert contains(route(j, F(441)), truth._down(-j, truth.weight), 1e-25)


def test_a_remainder_that_is_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cramer's constant replaced by a millionth: the ball then claims to know more than it does."""
    truth = DiscreteGaussian(F(64))
    monkeypatch.setattr(lattice, "_CRAMER", F(1, 10**16))
    with precision(96):
        short = lattice._sum_by_integral(10, F(64))
    assert not contains(short, truth._down(-10, truth.weight))


@pytest.mark.parametrize("variance", [F(1, 1000), F(1, 10), F(9, 10), F(1), F(5, 4), F(10)], ids=str)
@pytest.mark.parametrize("offset", [F(0), F(1, 2), F(-1, 3), F(7, 5), F(100), F(10**9) + F(1, 7)], ids=str)
def test_a_theta_quotient_is_the_quotient_of_the_two_sums(offset: Fraction, variance: Fraction) -> None:
    o, v = real(offset - round(offset)), real(variance)
    width = 5 + int(mp.sqrt(600 * v))

    def around(center: mpf) -> mpf:
        return mp.fsum(mp.exp(-((x - center) ** 2) / (2 * v)) for x in range(-width, width + 1))

    with precision(192):
        assert contains(theta_ratio(offset, variance), around(o) / around(mpf(0)), 1e-40)


@pytest.mark.parametrize("variance", [F(1, 10**300), F(10**300)])
def test_sums_at_extremes_end(variance: Fraction) -> None:
    for j in (-(10**300), -1, 0, 1, 10**300):
        assert gaussian_mass_from(j, variance) >= 0 or gaussian_mass_from(j, variance).contains(0)
    assert theta_ratio(F(1, 3), variance).upper() >= 0
