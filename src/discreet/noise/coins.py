"""Uniform integers and coins, exactly.

Everything here, and every rare case elsewhere in this room, comes down to one comparison: is a uniform
real below a given real? The uniform is known only as far as its bits have been drawn, the given real only
as far as it has been enclosed; `uniform_is_below` draws and encloses further until it is certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.noise.exponent import Enclosure, exp_bounds
from discreet.noise.source import SYSTEM, Source, checked
from discreet.numbers import Exactable, nonnegative, probability, whole

__all__ = ["bernoulli", "bernoulli_exp", "shape_of", "uniform", "uniform_is_below"]

Size = int | tuple[int, ...] | None
_WORD = 64
_MOST = 1 << 48
# NumPy arrays of every version have room for this many dimensions, and a ranking adds one.
_MOST_SIDES = 31


def shape_of(size: Size) -> tuple[int, ...]:
    """Read a NumPy-style size; `None` (one plain value) reads as the empty shape."""
    if size is None:
        return ()
    shape = tuple(whole(side, "size") for side in (size if isinstance(size, tuple) else (size,)))
    if math.prod(side or 1 for side in shape) > _MOST:
        raise InvalidInput(f"size asks for more values than any memory holds: {size}")
    if len(shape) > _MOST_SIDES:
        raise InvalidInput(f"size has {len(shape)} dimensions, and {_MOST_SIDES} are the most allowed")
    return shape


def uniform_is_below(source: Source, drawn: int, bits: int, enclose: Callable[[int], Enclosure]) -> bool:
    """Compare a uniform real, of which the first `bits` bits are the integer `drawn`, with a given real.

    `enclose(b)` returns integers around 2**b times the given real. Claim: conditionally on `drawn`, the
    answer is True with probability exactly that of U < t for U uniform on [drawn, drawn + 1) / 2**bits,
    because it is only given when every U with the bits seen so far agrees with every t enclosed so far.
    It ends with probability one if the enclosures shrink to t.
    """
    while True:
        low, high = enclose(bits)
        if drawn + 1 <= low:
            return True
        if drawn >= high:
            return False
        drawn = drawn << _WORD | int.from_bytes(source.bytes(8), "little")
        bits += _WORD


def uniform(n: int, size: Size = None, *, source: Source = SYSTEM) -> Any:
    """Draw integers uniformly from 0, ..., n - 1.

    Claim: each value has probability exactly 1/n. A 64-bit word above the largest multiple of n is thrown
    away; for n above 2**64, so is an integer of n's bit length that is not below n.
    """
    n = whole(n, "n", least=1)
    shape, source = shape_of(size), checked(source)
    if n > 1 << _WORD:
        values = np.array([_uniform_big(n, source) for _ in range(math.prod(shape))], object).reshape(shape)
    else:
        values = _uniform_words(n, math.prod(shape), source).reshape(shape)
    return source.label(int(values[()]) if size is None else values)


def _uniform_words(n: int, count: int, source: Source) -> NDArray[Any]:
    words = source.words(count).copy()
    excess = (1 << _WORD) % n
    if excess:
        top = np.uint64((1 << _WORD) - excess)
        while (redo := np.flatnonzero(words >= top)).size:
            words[redo] = source.words(redo.size)
    if n == 1 << _WORD:
        return words
    words %= np.uint64(n)
    return words if n > 1 << 63 else words.astype(np.int64)


def _uniform_big(n: int, source: Source) -> int:
    bits = (n - 1).bit_length()
    while True:
        value = int.from_bytes(source.bytes(-(-bits // 8)), "little") >> -bits % 8
        if value < n:
            return value


def bernoulli(p: Exactable, size: Size = None, *, source: Source = SYSTEM) -> Any:
    """Toss coins that show True with probability p, a rational.

    Claim: the probability is exactly p.
    """
    chance = probability(p, "p")

    def enclose(bits: int) -> Enclosure:
        low, rest = divmod(chance.numerator << bits, chance.denominator)
        return low, low + (rest > 0)

    return _coins(enclose, size, source)


def bernoulli_exp(x: Exactable, size: Size = None, *, source: Source = SYSTEM) -> Any:
    """Toss coins that show True with probability exp(-x), for a rational x >= 0.

    Claim: the probability is exactly exp(-x).
    """
    exponent = nonnegative(x, "x")
    return _coins(lambda bits: exp_bounds(exponent, bits), size, source)


def _coins(enclose: Callable[[int], Enclosure], size: Size, source: Source) -> Any:
    """Compare one word a coin with the probability; only a word that ties with it needs more bits."""
    shape, source = shape_of(size), checked(source)
    low, high = enclose(_WORD)
    if size is None:
        word = int.from_bytes(source.bytes(8), "little")
        return source.label(word < low or (word < high and uniform_is_below(source, word, _WORD, enclose)))
    words = source.words(math.prod(shape))
    heads = _below(words, low)
    for place in np.flatnonzero(_below(words, high) != heads):
        heads[place] = uniform_is_below(source, int(words[place]), _WORD, enclose)
    return source.label(heads.reshape(shape))


def _below(words: NDArray[np.uint64], bound: int) -> NDArray[np.bool_]:
    """Compare words with an integer from 0 to 2**64, which itself is no word."""
    return np.ones(words.shape, np.bool_) if bound >= 1 << _WORD else words < np.uint64(bound)
