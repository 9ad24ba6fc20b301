"""What is particular to drawing in bulk: no bit is used twice, and integers too big for an array survive."""

from fractions import Fraction

import numpy as np
import pytest

from discreet import noise
from discreet.noise.blocks import _UNSETTLED, BlockSampler, block_sampler
from discreet.noise.energy import Energy
from discreet.noise.shares import Shares
from tests.noise.exact import Law, findings
from tests.noise.sources import Chosen, Silent
from tests.statistics import assert_passes

LANES = {1: 16, 10**3: 32, 2**22 - 1: 32, 2**22: 64, 2**53: 64}


@pytest.mark.parametrize(("scale", "lane"), LANES.items())
def test_cell_and_place_come_from_different_bits(scale: int, lane: int) -> None:
    """Each draw reads its own lane: the top 16 bits choose the cell, the low bits the place."""
    sampler = block_sampler(Energy.laplace(Fraction(scale)), True)
    bits = sampler.place_bits
    assert 16 + bits <= lane
    cells = [c for c in (0, 1, 77, 5000, 30000, 40000) if sampler.table[c] != _UNSETTLED]
    places = [0, (1 << bits) - 1, (1 << bits) // 3]
    wanted = [(cell, place) for cell in cells for place in places]
    for between in (0, (1 << lane - 16) - (1 << bits)):  # bits that belong to neither change nothing
        lanes = [cell << lane - 16 | between | place for cell, place in wanted]
        chosen = b"".join(value.to_bytes(lane // 8, "little") for value in lanes)
        draws = sampler.fill(len(lanes), Chosen(chosen))
        assert draws.tolist() == [sampler.table[cell] + place for cell, place in wanted]


def test_a_closer_look_draws_fresh_bits() -> None:
    """An unsettled draw keeps its cell and its place and draws the other 48 bits of its word."""
    shares = Shares(Energy.laplace(Fraction(10**6)), two_sided=True)
    sampler = BlockSampler(shares)
    cell = next(c for c in range(1 << 16) if sampler.table[c] == _UNSETTLED)
    edge = next(end for end in shares.sure_end if end >> 48 == cell)
    place = 1234
    lane = (cell << 16 | place).to_bytes(4, "little") * 2
    for word in (edge - 1, edge):
        rest = (word % 2**48 << 16).to_bytes(8, "little")
        draws = sampler.fill(2, Chosen(lane + rest * 2))
        assert draws.tolist() == [shares.settle(word, place, noise.SYSTEM)] * 2


@pytest.mark.parametrize("rest", [0, 1, 2, 0x5555_5555_5555, 0xAAAA_AAAA_AAAA, 2**47, 2**48 - 1])
@pytest.mark.parametrize("scale", [10, 10**6, 2**40])
def test_every_one_of_the_48_bits_reaches_the_word(
    scale: int, rest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One draw or many: no bit of the rest is dropped, repeated or taken from the cell or the place."""
    sampler = BlockSampler(Shares(Energy.laplace(Fraction(scale)), two_sided=True))
    bits, lane = sampler.place_bits, sampler._lane.itemsize
    cell = next(c for c in range(1 << 16) if sampler.table[c] == _UNSETTLED)
    place = (1 << bits) // 3
    seen: list[tuple[int, int]] = []

    def settle(word: int, place: int, source: noise.Source) -> int:
        seen.append((word, place))
        return 7

    monkeypatch.setattr(sampler.shares, "settle", settle)
    monkeypatch.setattr(
        sampler, "_closer_look", lambda words, places: (places.copy(), np.zeros(words.size, np.int8))
    )
    asked = -(-(16 + bits) // 8)
    first = ((cell << bits | place) << -(16 + bits) % 8).to_bytes(asked, "little")
    assert sampler.draw(Silent(first + rest.to_bytes(6, "little"))) == 7
    lanes = (cell << 8 * lane - 16 | place).to_bytes(lane, "little").ljust(8, b"\0")
    assert sampler.fill(1, Silent(lanes + (rest << 16).to_bytes(8, "little"))).tolist() == [7]
    assert seen == [(cell << 48 | rest, place)] * 2


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4095, 4097, (1 << 15) + 1, (1 << 20) + 3])
def test_fill_gives_as_many_as_asked(count: int) -> None:
    for scale in (1, 1000, 2**40):
        draws = noise.discrete_laplace(scale, count)
        assert draws.shape == (count,)
        assert np.abs(draws).max(initial=0) < 60 * scale


@pytest.mark.parametrize("batch", [1 << 20, 100])
def test_integers_beyond_64_bits_take_their_places(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("discreet.noise.blocks._BATCH", batch)
    sampler = BlockSampler(Shares(Energy.laplace(Fraction(10**6)), two_sided=True, reach=1))
    settle = sampler.shares.settle
    huge: list[int] = []

    def settle_far(word: int, place: int, source: noise.Source) -> int | None:
        x = settle(word, place, source)
        if x is None or word < sampler.shares.open_end[-1]:
            return x
        huge.append((2**63 + len(huge)) * (-1) ** len(huge))
        return huge[-1]

    monkeypatch.setattr(sampler.shares, "settle", settle_far)
    draws = sampler.fill(1 << 13, noise.SYSTEM)
    assert draws.dtype == object
    assert {type(x) for x in draws} == {int}
    assert len(huge) > 1000
    assert sorted(x for x in draws if abs(x) > 2**62) == sorted(huge)
    rest = [x for x in draws if abs(x) < 2**62]
    assert max(map(abs, rest)) <= 2 * 10**6
    assert -(2**63) not in huge or -(2**63) in draws


def test_the_closest_of_big_integers_are_not_lost() -> None:
    """A tail may return -2**63, which still fits."""
    sampler = BlockSampler(Shares(Energy.laplace(Fraction(10**6)), two_sided=True, reach=1))
    sampler.shares.settle = lambda word, place, source: -(2**63)  # type: ignore[method-assign]
    draws = sampler.fill(1 << 10, noise.SYSTEM)
    assert draws.dtype == np.int64
    assert (draws == -(2**63)).any()


def test_no_base_is_mistaken_for_unsettled() -> None:
    """From a scale of 2**54 up, bases reach past the 64 bits that the sign for `unsettled` is taken from."""
    for place_bits in range(49, 64):
        shares = Shares(Energy.laplace(Fraction(2 ** (place_bits + 5))), two_sided=True)
        assert shares.place_bits == place_bits
        assert _UNSETTLED not in shares.base


def test_a_sampler_is_made_once_for_a_law() -> None:
    energy = Energy.laplace(Fraction(123))
    assert block_sampler(energy, True) is block_sampler(Energy.laplace(Fraction(246, 2)), True)
    assert block_sampler(energy, True) is not block_sampler(energy, False)


def test_one_or_many_is_the_same_law_at_every_width_of_lane() -> None:
    for scale in (63, 2**22 - 5, 2**54 - 1):
        sampler = block_sampler(Energy.laplace(Fraction(scale)), True)
        draws = np.array([sampler.draw(noise.SYSTEM) for _ in range(1 << 12)])
        assert_passes(*findings(draws, Law.laplace(scale)))
        assert_passes(*findings(sampler.fill(1 << 18, noise.SYSTEM), Law.laplace(scale)))
