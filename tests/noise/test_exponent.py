"""exp_bounds and the weights built on it enclose what they say."""

from fractions import Fraction
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.noise.energy import Energy
from discreet.noise.exponent import Enclosure, _small_exp, ceil_shift, exp_bounds
from tests.noise.exact import MP, Law, real

# Enough digits for every enclosure here: 2**bits exp(-x) to far below one.
WORK = 3000


def scaled(value: Any, bits: int) -> Any:
    return MP.ldexp(value, bits)


@given(st.fractions(0, 2000, max_denominator=10**30), st.integers(0, 600))
def test_exp_bounds(x: Fraction, bits: int) -> None:
    low, high = exp_bounds(x, bits)
    with MP.workprec(WORK):
        assert low <= scaled(MP.exp(-real(x)), bits) <= high
    assert 0 <= low <= high <= 1 << bits
    assert high - low <= 2


@pytest.mark.parametrize(
    "x",
    [
        Fraction(0),
        Fraction(1, 2**200),
        Fraction(1, 256),
        Fraction(2**300 - 1, 2**300),
        Fraction(1),
        Fraction(65535),
        Fraction(10**9),
    ],
    ids=str,
)
@pytest.mark.parametrize("bits", [0, 1, 64, 192, 1000])
def test_exp_bounds_at_corners(x: Fraction, bits: int) -> None:
    low, high = exp_bounds(x, bits)
    with MP.workprec(WORK):
        assert low <= scaled(MP.exp(-real(x)), bits) <= high
    assert high - low <= 2


@given(st.fractions(0, 50, max_denominator=10**12), st.integers(51, 80))
def test_exp_bounds_holds_without_guard_bits(x: Fraction, bits: int) -> None:
    """They only narrow it. With none to hide behind, a single rounding inward would show."""
    halvings = int(x).bit_length() + 8
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discreet.noise.exponent._GUARD_BITS", -2 * halvings)
        low, high = exp_bounds(x, bits)
    assert low <= scaled(MP.exp(-real(x)), bits) <= high


@given(
    st.integers(10, 128).flatmap(lambda work: st.tuples(st.integers(0, (1 << work - 7) - 1), st.just(work)))
)
def test_small_exp(at: tuple[int, int]) -> None:
    x, work = at
    low, high = _small_exp(x, work, 1 << work)
    assert low <= scaled(MP.exp(-scaled(MP.mpf(x), -work)), work) <= high


def test_exp_bounds_of_anything_huge_takes_no_time() -> None:
    assert exp_bounds(Fraction(10**100_000), 64) == (0, 1)


def test_an_enclosure_narrows_to_its_value() -> None:
    with MP.workprec(WORK):
        value = MP.exp(-real(Fraction(22, 7)))
        for bits in range(0, 2000, 100):
            low, high = exp_bounds(Fraction(22, 7), bits)
            assert scaled(low, -bits) <= value <= scaled(high, -bits) <= value + scaled(2, -bits)


@given(st.integers(), st.integers(0, 100))
def test_ceil_shift(value: int, bits: int) -> None:
    assert (ceil_shift(value, bits) - 1) << bits < value <= ceil_shift(value, bits) << bits


ENERGIES = [
    Energy.laplace(Fraction(1, 1000)),
    Energy.laplace(Fraction(22, 7)),
    Energy.laplace(Fraction(2**80)),
    Energy.gaussian(Fraction(1, 9)),
    Energy.gaussian(Fraction(10**6)),
    Energy.gaussian(Fraction(10**30 + 7, 10**5 + 9)),
]


@pytest.mark.parametrize("energy", ENERGIES, ids=str)
def test_weights(energy: Energy) -> None:
    law = Law(energy.linear, energy.square)
    step = max(1, energy.reach(24) // 1000)
    for first in (0, 1, step - 1):
        for n, (low, high) in enumerate(islice(energy.weights(first, step, 192), 600)):
            with MP.workprec(WORK):
                assert low <= scaled(law.weight(first + n * step), 192) <= high
            assert high - low < 2**30, "so wide an enclosure would waste words"


@pytest.mark.parametrize("energy", ENERGIES, ids=str)
@pytest.mark.parametrize("bits", [8, 64, 192])
def test_beyond(energy: Energy, bits: int) -> None:
    for start in (energy.reach(1) + 1, energy.reach(24) + 1):
        low, high = energy.beyond(start, bits)
        slope = real(energy.slope(start))
        with MP.workprec(WORK):
            envelope = MP.exp(-real(energy(start))) / (1 - MP.exp(-real(energy.slope(start))))
            assert low <= scaled(envelope, bits) <= high
        assert high - low <= 2 + 2 ** (2 - bits)
        assert slope > 0


@pytest.mark.parametrize("energy", ENERGIES, ids=str)
@pytest.mark.parametrize("widened", ["weight", "ratio"])
def test_beyond_holds_however_wide_its_parts(energy: Energy, widened: str) -> None:
    """An end taken from the wrong side of either enclosure would lie on the wrong side."""
    start = energy.reach(2) + 1
    slope, bits = energy.slope(start), 192

    def enclose(x: Fraction, bits: int) -> Enclosure:
        low, high = exp_bounds(x, bits)
        if (x == slope) != (widened == "ratio"):
            return low, high
        one = 1 << bits
        return low - low // 2**10, high + min(high, one - high) // 2**10

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discreet.noise.energy.exp_bounds", enclose)
        low, high = energy.beyond(start, bits)
    with MP.workprec(WORK):
        envelope = MP.exp(-real(energy(start))) / (1 - MP.exp(-real(slope)))
        assert low <= scaled(envelope, bits) <= high


@given(st.fractions(Fraction(1, 10**9), 10**9), st.booleans())
def test_octave_and_reach(scale: Fraction, gaussian: bool) -> None:
    energy = Energy.gaussian(scale * scale) if gaussian else Energy.laplace(scale)
    octave = Fraction(2) ** energy.octave()
    assert octave <= scale < 2 * octave
    for most in (1, 24):
        assert energy(energy.reach(most)) <= most < energy(energy.reach(most) + 1)


@given(st.fractions(Fraction(1, 10**9), 10**9), st.booleans(), st.integers(0, 10**9), st.integers(0, 10**9))
def test_slope(scale: Fraction, gaussian: bool, x: int, y: int) -> None:
    """What lies above the line is exactly what a tail's thinning makes up for."""
    energy = Energy.gaussian(scale * scale) if gaussian else Energy.laplace(scale)
    assert energy(x + y) == energy(x) + energy.slope(x) * y + energy.square * y**2
