"""Powers of e enclosed by integers.

`exp_bounds(x, bits)` gives integers around 2**bits * exp(-x) for any rational x >= 0. What writing it here
gains over a library: nothing but Python integers decides an outcome, no precision setting is shared
between threads, and a first draw does not load a number-theory package.
"""

from __future__ import annotations

from fractions import Fraction

__all__ = ["Enclosure", "ceil_shift", "exp_bounds"]

# Integers (low, high) with low <= 2**bits * value <= high.
Enclosure = tuple[int, int]

_GUARD_BITS = 32
_HALVINGS_BELOW_ONE = 8


def ceil_shift(value: int, bits: int) -> int:
    """Return value / 2**bits rounded up."""
    return -(-value >> bits)


def exp_bounds(x: Fraction, bits: int) -> Enclosure:
    """Return integers with low <= 2**bits * exp(-x) <= high, for rational x >= 0.

    Claim: the enclosure always holds, and high - low is at most 2.

    exp(-x) is exp(-x / 2**k) squared k times, with k such that x / 2**k < 2**-8. The small power comes
    from its Taylor series, whose terms alternate and shrink, so that what is left out is smaller than the
    last term counted. Every rounding goes outward. docs/proofs/noise.md has the details.
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x >= bits:  # and so exp(-x) < 2**-bits: no work, however large x is
        return 0, 1
    halvings = (x.numerator // x.denominator).bit_length() + _HALVINGS_BELOW_ONE
    work = bits + 2 * halvings + _GUARD_BITS
    one = 1 << work
    low_x = (x.numerator << work) // (x.denominator << halvings)
    high_x = low_x + 1
    low, high = _small_exp(high_x, work, one)[0], _small_exp(low_x, work, one)[1]
    for _ in range(halvings):
        low, high = low * low >> work, ceil_shift(high * high, work)
    return low >> work - bits, min(ceil_shift(high, work - bits), 1 << bits)


def _small_exp(x: int, work: int, one: int) -> Enclosure:
    """Enclose 2**work * exp(-x / 2**work) for 0 <= x < 2**(work - 7)."""
    low = high = total_low = total_high = one
    order = 0
    while low:
        order += 1
        low, high = (low * x >> work) // order, ceil_shift(high * x, work) // order + 1
        if order % 2:
            total_low, total_high = total_low - high, total_high - low
        else:
            total_low, total_high = total_low + low, total_high + high
    # The terms left out are together smaller than the last one counted, whose lower end reached 0.
    return max(0, total_low - high), min(one, total_high + high)
