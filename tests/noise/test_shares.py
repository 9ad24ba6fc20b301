"""The division of the words is exact, which is shown by measuring it and not by sampling."""

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import noise
from discreet.noise import SYSTEM
from discreet.noise import shares as shares_module
from discreet.noise.blocks import _UNSETTLED, BlockSampler, _CloserLook
from discreet.noise.energy import Energy
from discreet.noise.shares import Shares, draw, random_place
from tests.noise.exact import MP, Law, real
from tests.noise.sources import Chosen, Constant, Silent
from tests.statistics import assert_passes, chi_square, judge

WORDS = 2**64

LAWS = {
    "laplace 1/1000": Law.laplace(Fraction(1, 1000)),
    "laplace 1/3": Law.laplace(Fraction(1, 3)),
    "laplace 10": Law.laplace(10),
    "laplace 64": Law.laplace(64),
    "laplace awkward": Law.laplace(Fraction(10**30 + 7, 10**25 + 9)),
    "laplace 2**53": Law.laplace(2**53),
    "laplace 2**80": Law.laplace(2**80),
    "geometric 1e6": Law.geometric(10**6),
    "gaussian 1/9": Law.gaussian(Fraction(1, 9)),
    "gaussian 100": Law.gaussian(100),
    "gaussian 1e12": Law.gaussian(10**12),
    "gaussian awkward": Law.gaussian(Fraction(10**30 + 7, 10**17 + 9)),
    "gaussian 2**160": Law.gaussian(2**160),
}
every_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
fast_laws = pytest.mark.parametrize(
    "law", [law for name, law in LAWS.items() if not name.endswith(("2**80", "2**160"))]
)


def divide(law: Law, reach: int = 24) -> Shares:
    return Shares(Energy(law.linear, law.square), two_sided=law.two_sided, reach=reach)


def places_of(shares: Shares, block: int) -> list[int]:
    """Both ends of a block and a few places between."""
    last = (1 << shares.place_bits) - 1
    return sorted({0, last, last // 2, random.randint(0, last)})


@every_law
def test_every_share_holds_what_its_block_deserves(law: Law) -> None:
    shares = divide(law)
    step = 1 << shares.place_bits
    assert sorted(shares.base) == list(range(min(shares.base), max(shares.base) + 1, step)), (
        "a gap or overlap"
    )
    for block, base in enumerate(shares.base):
        ends = [law.weight(base), law.weight(base + step - 1)]
        assert shares.near[block] == min(abs(base), abs(base + step - 1))
        assert shares.share[block] >= shares.unit * max(ends)
        assert 0 <= shares.sure[block] <= shares.unit * min(ends)
        assert shares.share[block] <= shares.unit * max(ends) + 1.001, "wasteful"
        assert shares.sure[block] >= shares.unit * min(ends) - 1.001, "wasteful"
    first_free = shares.open_end[-1]
    for tail in shares.tails:
        assert tail.first_word == first_free
        first_free += tail.words
        slope = real(Energy(law.linear, law.square).slope(tail.start))
        envelope = shares.unit * law.weight(tail.start) / (1 - MP.exp(-slope)) / step
        assert envelope <= tail.words <= envelope + 1.001
        edge = min(shares.base) if tail.negative else max(shares.base) + step - 1
        assert tail.start == abs(edge) + 1
    assert WORDS * 0.99 < first_free <= WORDS, "the spare words would be waste"
    assert shares.sure_end[-1] + sum(map(int.__sub__, shares.share, shares.sure)) == shares.open_end[-1]


@every_law
def test_a_cell_of_the_table_lies_in_one_sure_part(law: Law) -> None:
    shares = divide(law)
    table = BlockSampler(shares).table
    assert table.size == 1 << 16
    settled = [cell for cell in range(1 << 16) if table[cell] != _UNSETTLED]
    assert len(settled) > 0.9 * table.size
    for cell in settled:
        for word in (cell << 48, (cell + 1 << 48) - 1):
            assert shares.settle(word, 0, Silent()) == table[cell]


def deserved(shares: Shares, block: int, place: int) -> Any:
    """Measure how many of the words in a block's share are accepted for a place, to 2**-128 of one word.

    The heights below it are accepted and those above it refused, so that halving finds it.
    """
    first_sure = shares.sure_end[block] - shares.sure[block]
    first_open = shares.open_end[block] - (shares.share[block] - shares.sure[block])

    def accepted(point: int) -> bool:
        height, rest = divmod(point, 2**128)
        sure = height < shares.sure[block]
        word = first_sure + height if sure else first_open + height - shares.sure[block]
        x = shares.settle(word, place, Chosen.of_words(rest >> 64, rest % 2**64))
        assert x is None or x == shares.base[block] + place
        return x is not None

    low, high = 0, shares.share[block] << 128
    while low < high:
        middle = (low + high) // 2
        if accepted(middle):
            low = middle + 1
        else:
            high = middle
    return MP.ldexp(low, -128)


@every_law
def test_every_integer_gets_exactly_what_it_deserves(law: Law) -> None:
    shares = divide(law)
    blocks = {0, len(shares.base) - 1, *random.choices(range(len(shares.base)), k=8)}
    for block in blocks:
        for place in places_of(shares, block):
            x = shares.base[block] + place
            error = deserved(shares, block, place) - shares.unit * law.weight(x)
            assert abs(error) <= MP.mpf(2) ** -127, f"{x} is given {float(error)} words too many"


@pytest.mark.parametrize(
    "energy", [Energy.gaussian(Fraction(2)), Energy.gaussian(Fraction(90, 7)), Energy.laplace(Fraction(7, 3))]
)
def test_a_tail_is_proposed_at_the_slope_of_its_start_exactly(
    energy: Energy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The envelope's rate: any other, however near, would give every integer beyond the wrong chance."""
    shares, rates = Shares(energy, two_sided=True, reach=1), []

    def spy(rate: Fraction, source: Any) -> int:
        rates.append(rate)
        return 0

    monkeypatch.setattr(shares_module, "_draw_geometric", spy)
    for tail in shares.tails:
        assert shares.settle(tail.first_word, 0, SYSTEM) == (-tail.start if tail.negative else tail.start)
    assert rates == [energy.slope(tail.start) for tail in shares.tails]


@pytest.mark.parametrize("variance", [Fraction(2), Fraction(90, 7)], ids=str)
def test_beyond_the_start_of_a_tail_the_law_goes_on(variance: Fraction) -> None:
    """Words drawn from inside a tail alone: what comes out is the law, given that it is out there."""
    shares, law = Shares(Energy.gaussian(variance), two_sided=True, reach=1), Law.gaussian(variance)
    for tail in shares.tails:
        words = [tail.first_word + int(word) for word in noise.uniform(tail.words - 1, 20_000)]
        drawn = [shares.settle(word, 0, SYSTEM) for word in words]
        beyond = np.array([abs(x) - tail.start for x in drawn if x is not None])
        weights = [float(law.weight(tail.start + y)) for y in range(60)]
        chances = np.array(weights) / sum(weights)
        counts = np.bincount(np.minimum(beyond, 59), minlength=60)
        assert_passes(chi_square("beyond", counts, chances))
        planted = np.exp(-np.arange(60) * float(shares.energy.slope(tail.start)))
        assert judge([chi_square("never thinned", counts, planted / planted.sum())])


def test_a_draw_uses_a_word_and_a_place_of_its_own() -> None:
    shares = Shares(Energy.laplace(Fraction(1000)), two_sided=True)
    word, place = shares.sure_end[3] - 1, 11
    bits = word.to_bytes(8, "little") + (place << (-shares.place_bits % 8)).to_bytes(1, "little")
    assert draw(shares, Silent(bits)) == shares.settle(word, place, SYSTEM) == shares.base[3] + place


@pytest.mark.parametrize("law", [Law.laplace(Fraction(7, 3)), Law.geometric(10**6)], ids=str)
def test_a_tail_gets_exactly_what_it_deserves(law: Law) -> None:
    shares = divide(law, reach=2)
    for tail in shares.tails:
        low, high = 0, tail.words << 128
        while low < high:
            middle = (low + high) // 2
            height, rest = divmod(middle, 2**128)
            source = Chosen.of_words(rest >> 64, rest % 2**64)
            if shares.settle(tail.first_word + height, 0, source) is None:
                high = middle
            else:
                low = middle + 1
        all_beyond = law.weight(tail.start) / (1 - MP.exp(-real(law.linear)))
        error = MP.ldexp(low, -128) - shares.unit * all_beyond / (1 << shares.place_bits)
        assert abs(error) <= MP.mpf(2) ** -127


@every_law
@pytest.mark.parametrize("reach", [2, 24])
def test_the_ends_of_a_tail_are_its_own(law: Law, reach: int) -> None:
    shares = divide(law, reach)
    for tail in shares.tails:
        for height in (0, tail.words // 2, tail.words - 2) if tail.words > 2 and law.linear else ():
            x = shares.settle(tail.first_word + height, 0, SYSTEM)
            assert x is not None
            assert (x < 0) == tail.negative
            assert abs(x) >= tail.start


@every_law
@pytest.mark.parametrize("bits", [0, 1, 8, 64])
def test_the_weight_of_a_tail_is_enclosed(law: Law, bits: int) -> None:
    """At few bits a rounding the wrong way shows."""
    shares = divide(law)
    for tail in shares.tails:
        low, high = shares._tail_weight(tail.start, bits)
        slope = real(Energy(law.linear, law.square).slope(tail.start))
        envelope = law.weight(tail.start) / (1 - MP.exp(-slope)) / (1 << shares.place_bits)
        assert low <= MP.ldexp(envelope, bits) <= high


def test_spare_words_and_their_neighbours() -> None:
    shares = divide(Law.laplace(10))
    spare = shares.tails[-1].first_word + shares.tails[-1].words
    for word in (spare, (spare + WORDS) // 2, WORDS - 1):
        if word < WORDS:
            assert shares.settle(word, 0, Silent()) is None


# --- the closer look ----------------------------------------------------------------------------


def adversarial_words(shares: Shares) -> list[tuple[int, int]]:
    """Words and places where the verdict changes or nearly does."""
    spots = []
    last = (1 << shares.place_bits) - 1
    blocks = sorted({0, 1, len(shares.base) - 1, *random.choices(range(len(shares.base)), k=30)})
    for block in blocks:
        for end in (shares.sure_end[block], shares.open_end[block]):
            spots += [(end + d, p) for d in (-2, -1, 0, 1, 2) for p in (0, last)]
        for place in places_of(shares, block):
            x = shares.base[block] + place
            bound = shares._words_for(x, 0)[0]
            margin = int(shares.share[block] * 2.0**-40 + 4)
            near = [-1, 0, 1, 2, -margin - 2, -margin, margin, margin + 2, -2 * margin, 2 * margin]
            first = shares.open_end[block] - shares.share[block]
            words = [first + bound + d for d in near] + [
                random.randint(first + shares.sure[block], shares.open_end[block])
            ]
            spots += [
                (word, place) for word in words if first + shares.sure[block] <= word < shares.open_end[block]
            ]
    spots += [(tail.first_word + d, 0) for tail in shares.tails for d in (-1, 0, 1)]
    spots += [(random_place(64, SYSTEM), random_place(shares.place_bits, SYSTEM)) for _ in range(3000)]
    return [(word, place) for word, place in spots if 0 <= word < WORDS]


@fast_laws
def test_the_closer_look_never_contradicts_settle(law: Law) -> None:
    shares = divide(law)
    spots = adversarial_words(shares)
    words = np.array([word for word, _ in spots], np.uint64)
    places = np.array([place for _, place in spots], np.int64)
    values, verdicts = _CloserLook(shares)(words, places)
    assert set(np.unique(verdicts)) <= {-1, 0, 1}
    for (word, place), value, verdict in zip(spots, values.tolist(), verdicts.tolist(), strict=True):
        for bits in (Constant(0), Constant(255)) if verdict else ():
            assert shares.settle(word, place, bits) == (value if verdict > 0 else None), (word, place)
        if word >= shares.open_end[-1]:
            assert verdict == 0
    assert np.mean(verdicts[-3000:] == 0) < 0.01, "a look this unsure is of no use"


def test_a_margin_too_narrow_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the words beside the bound are then called the wrong way."""
    monkeypatch.setattr("discreet.noise.blocks._MARGIN", 0.0)
    monkeypatch.setattr("discreet.noise.blocks._MARGIN_WORDS", 0.0)
    with pytest.raises(AssertionError):
        test_the_closer_look_never_contradicts_settle(Law.laplace(10**6))


@fast_laws
def test_the_error_of_the_closer_look(law: Law) -> None:
    """It is below 2**-45 share + 2, and the margin is 2**-40 share + 4."""
    shares = divide(law)
    look = _CloserLook(shares)
    worst = 0.0
    for _ in range(300):
        block = random.randrange(len(shares.base))
        for place in places_of(shares, block):
            computed = look.deserved(np.array([block], np.intp), np.array([place], np.int64))
            exactly = shares.unit * law.weight(shares.base[block] + place)
            error = abs(MP.mpf(float(computed[0])) - exactly)
            worst = max(worst, float(error / (MP.ldexp(shares.share[block], -45) + 2)))
    assert worst < 1
