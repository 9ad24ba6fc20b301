"""The samplers of integer noise have the laws they claim; every planted error is caught by the same tests."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import noise
from discreet.noise.blocks import BlockSampler
from discreet.noise.energy import Energy
from discreet.noise.shares import Shares, draw
from tests.noise.exact import Law, findings
from tests.statistics import assert_passes, judge

MANY = 1 << 22  # enough to see a scale that is off by 1%
SCALES = [
    Fraction(1, 1000),
    Fraction(1, 3),
    1,
    10,
    Fraction(6399, 100),
    64,
    1000,
    10**6,
    Fraction(10**30 + 7, 10**25 + 9),
    10**12,
    2**53,
]

Ints = NDArray[Any]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_discrete_laplace(scale: Fraction) -> None:
    assert_passes(*findings(noise.discrete_laplace(scale, MANY), Law.laplace(scale)))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_discrete_gaussian(scale: Fraction) -> None:
    assert_passes(*findings(noise.discrete_gaussian(scale * scale, MANY), Law.gaussian(scale * scale)))


@pytest.mark.parametrize("variance", [2, Fraction(10**9, 7)], ids=str)
def test_discrete_gaussian_of_irrational_deviation(variance: Fraction) -> None:
    assert_passes(*findings(noise.discrete_gaussian(variance, MANY), Law.gaussian(variance)))


@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, 100, Fraction(10**9, 7), 2**53], ids=str)
def test_geometric(scale: Fraction) -> None:
    assert_passes(*findings(noise.geometric(scale, MANY), Law.geometric(scale)))


ONE_BY_ONE = 1 << 14


@pytest.mark.parametrize("scale", [Fraction(1, 3), 10, 10**6, 2**53, 2**54, 2**80], ids=str)
def test_single_draws_have_the_same_law(scale: Fraction) -> None:
    for sampler, law in (
        (noise.discrete_laplace, Law.laplace(scale)),
        (noise.geometric, Law.geometric(scale)),
    ):
        one_by_one = [sampler(scale) for _ in range(ONE_BY_ONE)]
        assert all(type(x) is int for x in one_by_one)
        assert_passes(*findings(np.array(one_by_one, object if scale > 2**53 else np.int64), law))
    gaussian = [noise.discrete_gaussian(scale * scale) for _ in range(ONE_BY_ONE)]
    assert_passes(
        *findings(np.array(gaussian, object if scale > 2**53 else np.int64), Law.gaussian(scale * scale))
    )


@pytest.mark.parametrize(
    "scale", [2**53, 2**54, 2**56, 2**58, 2**60], ids=lambda scale: f"2**{scale.bit_length() - 1}"
)
def test_bulk_draws_about_the_end_of_the_fast_path(scale: int) -> None:
    for sampler, law in (
        (noise.discrete_laplace, Law.laplace(scale)),
        (noise.geometric, Law.geometric(scale)),
    ):
        drawn = sampler(scale, 1 << 13)
        assert_passes(*findings(drawn.astype(object) if scale > 2**53 else drawn, law))


def test_beyond_64_bits_arrays_hold_python_integers() -> None:
    draws = noise.discrete_laplace(2**80, ONE_BY_ONE)
    assert draws.dtype == object
    assert {type(x) for x in draws} == {int}
    assert_passes(*findings(draws, Law.laplace(2**80)))
    huge = noise.discrete_gaussian(10**400, 1 << 12)
    assert 0.6e200 < np.mean([abs(x) // 10**180 for x in huge]) * 1e180 < 1e200  # sqrt(2 / pi) deviations


# --- the rare paths, made common ----------------------------------------------------------------


@pytest.mark.parametrize("reach", [1, 2])
@pytest.mark.parametrize(
    "law",
    [
        Law.laplace(40),
        Law.laplace(10**7),
        Law.geometric(40),
        Law.geometric(10**7),
        Law.gaussian(Fraction(90, 7)),
        Law.gaussian(10**10),
    ],
    ids=str,
)
def test_tails_have_the_law_too(law: Law, reach: int) -> None:
    shares = Shares(Energy(law.linear, law.square), two_sided=law.two_sided, reach=reach)
    sampler = BlockSampler(shares)
    draws = sampler.fill(1 << 15, noise.SYSTEM)
    assert sum(t.words for t in shares.tails) > 2**64 // 50, "too few tails for this test to show anything"
    assert_passes(*findings(draws, law))
    assert_passes(*findings(np.array([sampler.draw(noise.SYSTEM) for _ in range(1 << 13)]), law))
    assert_passes(*findings(np.array([draw(shares, noise.SYSTEM) for _ in range(1 << 13)]), law))


def coarse_sampler(law: Law, fineness: int, monkeypatch: pytest.MonkeyPatch) -> BlockSampler:
    """A sampler with blocks so wide that a good part of all words are open."""
    monkeypatch.setattr("discreet.noise.shares._FINENESS", fineness)
    shares = Shares(Energy(law.linear, law.square), two_sided=law.two_sided)
    assert shares.open_end[-1] - shares.sure_end[-1] > 2**64 // 20
    return BlockSampler(shares)


@pytest.mark.parametrize(
    ("law", "fineness"),
    [(Law.laplace(10**6), 1), (Law.laplace(70), 1), (Law.geometric(10**6), 1), (Law.gaussian(10**12), 3)],
    ids=str,
)
def test_open_parts_have_the_law_too(law: Law, fineness: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = coarse_sampler(law, fineness, monkeypatch)
    assert_passes(*findings(sampler.fill(MANY, noise.SYSTEM), law))
    assert_passes(*findings(np.array([sampler.draw(noise.SYSTEM) for _ in range(1 << 13)]), law))


def test_accepting_every_place_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = coarse_sampler(Law.laplace(10**6), 1, monkeypatch)
    monkeypatch.setattr(sampler._closer_look, "_compare", lambda words, block, places: np.ones(words.size))
    assert judge(findings(sampler.fill(MANY, noise.SYSTEM), Law.laplace(10**6)))


# --- the same tests catch errors that were planted ----------------------------------------------


def doubled_zero(x: Ints, law: Law) -> Ints:
    zeros = int((x == 0).sum())
    x[np.flatnonzero(x != 0)[:: x.size // zeros][:zeros]] = 0
    return x


def clipped(deviations: float) -> Callable[[Ints, Law], Ints]:
    def spoil(x: Ints, law: Law) -> Ints:
        most = round(deviations * law.scale)
        return np.clip(x, -most, most)

    return spoil


def cut_off(scales: float) -> Callable[[Ints, Law], Ints]:
    """Draw again beyond some scales: no heap at the edge, as clipping would leave."""

    def spoil(x: Ints, law: Law) -> Ints:
        far = np.abs(x) > scales * law.scale
        x[far] = np.random.default_rng().choice(x[~far], int(far.sum()))
        return x

    return spoil


def biased_bit(bit: int, one_in: int = 150) -> Callable[[Ints, Law], Ints]:
    """Set one bit in one of 150 draws: 1/2 becomes 1/2 + 1/300."""

    def spoil(x: Ints, law: Law) -> Ints:
        x[::one_in] |= 1 << bit
        return x

    return spoil


def correlated_bits(x: Ints, law: Law) -> Ints:
    """Copy bit 0 to bit 2 in one of 50 draws; each stays fair."""
    some = x[::50]
    x[::50] = (some & ~4) | ((some & 1) << 2)
    return x


def biased_sign(x: Ints, law: Law) -> Ints:
    x[::150] = abs(x[::150])
    return x


def repeated(x: Ints, law: Law) -> Ints:
    x[1::4000] = x[::4000][: x[1::4000].size]
    return x


def followed_sign(x: Ints, law: Law) -> Ints:
    """One of 100 draws takes the sign of the one before; each alone has the law wanted."""
    follower, leader = x[1::100], x[::100][: x[1::100].size]
    x[1::100] = np.where(leader < 0, -abs(follower), abs(follower))
    return x


def float_grid(x: Ints, law: Law) -> Ints:
    return x.astype(np.float64).astype(np.int64)


def shifted(x: Ints, law: Law) -> Ints:
    return x + round(law.scale / 100)


@pytest.mark.parametrize(
    ("scale", "spoil", "caught_by"),
    [
        (1000, doubled_zero, "zeros"),
        (10, doubled_zero, "zeros"),
        (1000, clipped(3), "beyond 3 scales"),
        (1000, clipped(10), "beyond 10 scales"),
        (1000, cut_off(10), "beyond 10 scales"),
        (10, cut_off(10), "beyond 10 scales"),
        (10**6, biased_bit(0), "bit 0 of all"),
        (10**6, biased_bit(3), "bit 3 of all"),
        (2**53, biased_bit(40, one_in=50), "bit 40"),
        (10**6, correlated_bits, "bits 0 and 2"),
        (1000, biased_sign, "signs"),
        (1000, repeated, "equal pairs"),
        (10**12, repeated, "equal pairs"),
        (1000, followed_sign, "signs of pairs"),
        (2**53, float_grid, "bit 0"),
        (1000, shifted, "distribution function"),
    ],
)
def test_a_planted_error_is_caught(scale: int, spoil: Callable[[Ints, Law], Ints], caught_by: str) -> None:
    law = Law.laplace(scale)
    spoiled = findings(spoil(noise.discrete_laplace(scale, MANY), law), law)
    assert any(failure.startswith(f"{caught_by}:") for failure in judge(spoiled)), judge(spoiled)


@pytest.mark.parametrize("scale", [1, 10, 10**6])
@pytest.mark.parametrize("factor", [Fraction(99, 100), Fraction(101, 100)])
def test_a_scale_that_is_off_by_1_percent_is_caught(scale: int, factor: Fraction) -> None:
    laplace = noise.discrete_laplace(scale * factor, MANY)
    assert any(failure.startswith("cells:") for failure in judge(findings(laplace, Law.laplace(scale))))
    gaussian = noise.discrete_gaussian((scale * factor) ** 2, MANY)
    assert any(failure.startswith("cells:") for failure in judge(findings(gaussian, Law.gaussian(scale**2))))


def test_rounding_a_real_gaussian_is_caught() -> None:
    rounded = np.rint(np.random.default_rng().normal(0, 1, MANY)).astype(np.int64)
    assert judge(findings(rounded, Law.gaussian(1)))


def test_rounding_a_real_laplace_is_caught() -> None:
    for scale in (1, 2**53):
        rounded = np.rint(np.random.default_rng().laplace(0, scale, MANY)).astype(np.int64)
        assert judge(findings(rounded, Law.laplace(scale)))


def test_a_tail_that_is_never_thinned_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.noise.shares.bernoulli_exp", lambda x, source: True)
    energy = Energy.gaussian(Fraction(10**10))
    sampler = BlockSampler(Shares(energy, two_sided=True, reach=1))
    assert judge(findings(sampler.fill(1 << 15, noise.SYSTEM), Law(energy.linear, energy.square)))
