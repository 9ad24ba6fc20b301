"""Uniform integers and coins have exactly the chances they claim, and extend a draw as far as it takes."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import noise
from discreet.noise.coins import uniform_is_below
from discreet.noise.exponent import exp_bounds
from tests.noise.exact import MP, real
from tests.noise.sources import Chosen, Silent
from tests.statistics import (
    FALSE_ALARM,
    Finding,
    assert_passes,
    binomial,
    bit_findings,
    chi_square,
    judge,
    kolmogorov,
)

MANY = 1 << 20
SIZES = [1, 2, 3, 10, 2**32 + 1, 2**63, 2**63 + 1, 2**64, 2**70 + 3, 3 << 70]


def uniform_findings(draws: NDArray[Any], n: int) -> list[Finding]:
    trials = draws.size
    if n <= 10:
        return [chi_square("values", np.bincount(draws, minlength=n), np.full(n, 1 / n))]
    edges = np.array([n * k // 256 for k in range(1, 256)], draws.dtype)
    chances = np.diff([0, *(n * k // 256 for k in range(1, 256)), n]) / n
    up_to = np.searchsorted(np.sort(draws), edges, side="left")
    return [
        chi_square("cells", np.diff(up_to, prepend=0, append=trials), chances.astype(np.float64)),
        kolmogorov("distribution function", up_to / trials, np.cumsum(chances)[:-1], trials),
        chi_square("pairs", *_pairs(draws, n)),
        # All residues modulo 2**16 have nearly the same chance: off by less than 2**16 / n of it.
        *bit_findings((draws % 2**16).astype(np.int64), 16, 2.0**16 / n),
    ]


def _pairs(draws: NDArray[Any], n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    edges = np.array([n * k // 16 for k in range(1, 16)], draws.dtype)
    cell = np.searchsorted(edges, draws[: draws.size // 2 * 2], side="right").reshape(-1, 2)
    chances = (np.diff([0, *(n * k // 16 for k in range(1, 16)), n]) / n).astype(np.float64)
    return np.bincount(cell[:, 0] * 16 + cell[:, 1], minlength=256), np.outer(chances, chances).ravel()


@pytest.mark.parametrize("n", SIZES)
def test_uniform(n: int) -> None:
    draws = noise.uniform(n, MANY if n <= 2**64 else MANY >> 4)
    assert min(draws) >= 0
    assert max(draws) < n
    assert draws.dtype == (np.int64 if n <= 2**63 else np.uint64 if n <= 2**64 else object)
    assert_passes(*uniform_findings(draws, n))


@pytest.mark.parametrize("n", SIZES)
def test_uniform_one_by_one(n: int) -> None:
    one_by_one = [noise.uniform(n) for _ in range(1 << 14)]
    assert all(type(x) is int and 0 <= x < n for x in one_by_one)
    kind = np.int64 if n <= 2**63 else np.uint64 if n <= 2**64 else object
    assert_passes(*uniform_findings(np.array(one_by_one, kind), n))


def test_a_remainder_without_rejection_is_caught() -> None:
    n = 3 << 62  # a word modulo n takes its lowest third twice as often
    words = noise.SYSTEM.words(MANY)
    assert judge(uniform_findings(words % np.uint64(n), n))


def test_uniform_throws_away_what_would_tilt_it() -> None:
    n = 2**63 + 1
    assert noise.uniform(n, source=Chosen.of_words(n, 2**64 - 1, n - 1)) == n - 1
    draws = noise.uniform(n, 3, source=Chosen.of_words(5, 2**64 - 1, 7, n, 9))
    assert draws.tolist() == [5, 9, 7]


@pytest.mark.parametrize("n", [3, 10, 2**32 + 1, 3 << 62, 2**63 + 1, 2**64 - 1])
def test_the_largest_multiple_of_n_is_where_words_are_thrown_away(n: int) -> None:
    top = 2**64 // n * n
    for kept in (0, n - 1, top - 1):
        assert noise.uniform(n, source=Silent.of_words(kept)) == kept % n
    for thrown in (top, 2**64 - 1):
        source = Silent.of_words(thrown, n - 1)
        assert noise.uniform(n, source=source) == n - 1
        assert source.used == 16


def test_a_big_integer_that_is_not_below_n_is_thrown_away() -> None:
    n = 2**70 + 3
    for thrown in (n, n + 1, 2**71 - 1):
        tries = b"".join((value << 1).to_bytes(9, "little") for value in (thrown, n - 1))
        assert noise.uniform(n, source=Silent(tries)) == n - 1


COINS: dict[str, tuple[Callable[..., Any], Any]] = {
    "bernoulli(0)": (lambda **how: noise.bernoulli(0, **how), 0),
    "bernoulli(1)": (lambda **how: noise.bernoulli(1, **how), 1),
    "bernoulli(1/3)": (lambda **how: noise.bernoulli(Fraction(1, 3), **how), MP.mpf(1) / 3),
    "bernoulli(2**-70)": (lambda **how: noise.bernoulli(Fraction(1, 2**70), **how), MP.mpf(2) ** -70),
    "bernoulli_exp(0)": (lambda **how: noise.bernoulli_exp(0, **how), 1),
    "bernoulli_exp(1/7)": (lambda **how: noise.bernoulli_exp(Fraction(1, 7), **how), MP.exp(-MP.mpf(1) / 7)),
    "bernoulli_exp(5)": (lambda **how: noise.bernoulli_exp(5, **how), MP.exp(-5)),
    "bernoulli_exp(1000)": (lambda **how: noise.bernoulli_exp(1000, **how), MP.exp(-1000)),
    "bernoulli_exp(10**-30)": (
        lambda **how: noise.bernoulli_exp(Fraction(1, 10**30), **how),
        MP.exp(-real(Fraction(1, 10**30))),
    ),
}
every_coin = pytest.mark.parametrize(("toss", "chance"), COINS.values(), ids=COINS)


@every_coin
def test_coins(toss: Callable[..., Any], chance: Any) -> None:
    tosses = toss(size=1 << 22)
    assert tosses.dtype == np.bool_
    assert_passes(
        binomial("heads", int(tosses.sum()), tosses.size, float(chance)),
        binomial(
            "two heads", int((tosses[::2] & tosses[1::2]).sum()), tosses.size // 2, float(chance * chance)
        ),
    )
    one_by_one = [toss() for _ in range(1 << 14)]
    assert all(type(toss) is bool for toss in one_by_one)
    assert_passes(binomial("heads", sum(one_by_one), len(one_by_one), float(chance)))


@pytest.mark.parametrize("word", [0, 1, 2**63, 2**64 - 1])
def test_a_certain_coin_is_certain_for_every_word(word: int) -> None:
    for coin, answer in (("bernoulli(1)", True), ("bernoulli_exp(0)", True), ("bernoulli(0)", False)):
        toss = COINS[coin][0]
        assert toss(source=Silent.of_words(word)) is answer
        assert toss(size=2, source=Silent.of_words(word, word)).tolist() == [answer] * 2


def test_a_nearly_certain_coin_fails_on_half_of_the_last_word() -> None:
    p = 1 - Fraction(1, 2**65)
    for more, answer in ((0, True), (2**63 - 1, True), (2**63, False), (2**64 - 1, False)):
        assert noise.bernoulli(p, source=Silent.of_words(2**64 - 1, more)) is answer
        assert noise.bernoulli(p, 1, source=Silent.of_words(2**64 - 1, more)).tolist() == [answer]
    assert noise.bernoulli(p, source=Silent.of_words(2**64 - 2)) is True


def test_a_coin_off_by_a_third_of_a_percent_is_caught() -> None:
    tosses = noise.bernoulli(Fraction(1, 3) + Fraction(1, 300), 1 << 22)
    assert judge([binomial("heads", int(tosses.sum()), tosses.size, 1 / 3)])


def digits(chance: Any, words: int) -> list[int]:
    """Return the first 64-bit digits of a number in [0, 1)."""
    with MP.workprec(64 * words + 200):
        whole = int(MP.floor(MP.ldexp(chance, 64 * words)))
    return [whole >> 64 * k & 2**64 - 1 for k in reversed(range(words))]


TIED = {
    "bernoulli(1/3)": (lambda **how: noise.bernoulli(Fraction(1, 3), **how), lambda: MP.mpf(1) / 3),
    "bernoulli_exp(1/7)": (
        lambda **how: noise.bernoulli_exp(Fraction(1, 7), **how),
        lambda: MP.exp(-MP.mpf(1) / 7),
    ),
    "bernoulli_exp(1000)": (lambda **how: noise.bernoulli_exp(1000, **how), lambda: MP.exp(-1000)),
}


@pytest.mark.parametrize("extensions", [1, 2, 5, 30])
@pytest.mark.parametrize(("toss", "chance"), TIED.values(), ids=TIED)
def test_a_tie_is_extended_until_it_is_none(
    toss: Callable[..., Any], chance: Callable[[], Any], extensions: int
) -> None:
    """The uniform agrees with the chance in so many digits of 64 bits; the next one decides."""
    with MP.workprec(64 * (extensions + 4)):
        *agreed, last = digits(chance(), extensions + 1)
    for decisive, answer in ((last - 2, True), (last + 2, False)):
        if 0 <= decisive < 2**64:
            words = [*agreed, decisive]
            assert toss(source=Silent.of_words(*words)) is answer
            # In an array, the words of all coins come first and those for ties after them.
            several = toss(size=3, source=Silent.of_words(2**64 - 1, words[0], 2**64 - 1, *words[1:]))
            assert several[1] == answer


@pytest.mark.parametrize("bits", [0, 1, 64, 100])
def test_uniform_is_below(bits: int) -> None:
    """Given its first bits, a uniform is below the number with the chance that is left."""
    t = Fraction(5, 7)
    for drawn in {0, (t.numerator << bits) // t.denominator, (1 << bits) - 1}:

        def enclose(more: int) -> tuple[int, int]:
            low = (t.numerator << more) // t.denominator
            return low, low + 1

        low = Fraction(drawn, 1 << bits)
        chance = min(Fraction(1), max(Fraction(0), (t - low) * (1 << bits)))
        heads = sum(uniform_is_below(noise.SYSTEM, drawn, bits, enclose) for _ in range(1 << 13))
        assert_passes(binomial("below", heads, 1 << 13, float(chance)))


def test_uniform_is_below_answers_only_when_it_is_certain() -> None:
    calls = []

    def enclose(bits: int) -> tuple[int, int]:
        """Enclose 1/2, uselessly at first."""
        calls.append(bits)
        return (0, 1 << bits) if len(calls) < 4 else ((1 << bits - 1) - 1, (1 << bits - 1) + 1)

    source = Silent.of_words(1, 2, 3)
    assert uniform_is_below(source, 0, 0, enclose)
    assert calls == [0, 64, 128, 192]
    assert source.used == 24


def test_the_false_alarm_rate_is_one_in_a_million() -> None:
    assert FALSE_ALARM == 1e-6


def test_exp_bounds_is_what_the_coin_uses() -> None:
    low, high = exp_bounds(Fraction(1, 7), 64)
    assert noise.bernoulli_exp(Fraction(1, 7), source=Silent.of_words(low - 1)) is True
    assert noise.bernoulli_exp(Fraction(1, 7), source=Silent.of_words(high)) is False
