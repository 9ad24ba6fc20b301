"""Looking for the least or the greatest of a parameter that keeps a condition.

The condition decides; the search only proposes. What is returned was seen to keep it, whether or not the
condition is monotone between the numbers that were tried.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from discreet.errors import Unsupported

__all__ = ["greatest", "greatest_whole", "least", "least_whole"]

Keeps = Callable[[Fraction], bool]

# Significant bits of what is found: short enough for the samplers' fast path, exact to one in 10**12.
_BITS = 40
_FARTHEST = 4000


def least(keeps: Keeps, near: Fraction) -> Fraction:
    """Return a short dyadic rational that keeps the condition, above one that does not."""
    return _boundary(keeps, near, up=True)


def greatest(keeps: Keeps, near: Fraction) -> Fraction:
    """Return a short dyadic rational that keeps the condition, below one that does not."""
    return _boundary(keeps, near, up=False)


def _boundary(keeps: Keeps, near: Fraction, *, up: bool) -> Fraction:
    """Bracket the boundary between two powers of two, then halve: `good` keeps it, `bad` does not."""
    power = near.numerator.bit_length() - near.denominator.bit_length()
    step = 1 if up else -1
    if keeps(Fraction(2) ** power):
        while keeps(Fraction(2) ** (power - step)):
            power = _further(power, -step)
        good, bad = Fraction(2) ** power, Fraction(2) ** (power - step)
    else:
        while not keeps(Fraction(2) ** (power + step)):
            power = _further(power, step)
        good, bad = Fraction(2) ** (power + step), Fraction(2) ** power
    for _ in range(_BITS):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if keeps(middle) else (good, middle)
    return good


def _further(power: int, step: int) -> int:
    if abs(power) > _FARTHEST:
        raise Unsupported("no parameter of a sensible size does what is asked; ask for less at once")
    return power + step


def least_whole(keeps: Callable[[int], bool]) -> int:
    """Return the least integer m >= 0 that keeps a condition, which all greater ones keep."""
    if keeps(0):
        return 0
    high = 1
    while not keeps(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


def greatest_whole(keeps: Callable[[int], bool]) -> int:
    """Return the greatest integer m >= 0 that keeps a condition, which 0 and all smaller ones keep."""
    return least_whole(lambda m: not keeps(m + 1))
