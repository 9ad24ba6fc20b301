"""Exact numbers in, whatever the user typed.

Everything that decides privacy is computed from rationals. A float means its shortest decimal, the one
that is printed: `0.1` is one tenth, not the binary fraction beside it. Strings and booleans are refused
rather than guessed at, and so is a float16, which cannot even hold a hundredth.

>>> exact(0.1, "epsilon")
Fraction(1, 10)
>>> exact(True, "epsilon")
Traceback (most recent call last):
    ...
discreet.errors.InvalidInput: epsilon must be a number (int, float, Fraction or Decimal), not bool: True
"""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from fractions import Fraction
from typing import SupportsFloat

import numpy as np

from discreet.errors import InvalidInput

__all__ = ["Exactable", "exact", "fraction_text", "nonnegative", "positive", "probability", "whole"]

# What a caller may pass where a number is wanted.
Exactable = int | float | Fraction | Decimal | np.integer | np.floating


def exact(value: Exactable, name: str) -> Fraction:
    """Return `value` as the rational it stands for, or refuse it by `name`.

    Claim: an integer, a Fraction and a finite Decimal keep their value; a finite float becomes the decimal
    with the fewest digits that reads back as the same float. Nothing else is accepted.
    """
    if isinstance(value, (bool, np.bool_, np.float16)) or not isinstance(
        value, (numbers.Rational, float, Decimal, np.integer, np.floating)
    ):
        kind = type(value).__name__
        raise InvalidInput(
            f"{name} must be a number (int, float, Fraction or Decimal), not {kind}: {value!r}"
        )
    if isinstance(value, (numbers.Rational, np.integer)):
        return Fraction(int(value)) if isinstance(value, np.integer) else Fraction(value)
    if not _is_finite(value):
        raise InvalidInput(f"{name} must be finite, not {value}")
    return Fraction(str(value))


def _is_finite(value: SupportsFloat | Decimal) -> bool:
    return value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)


def positive(value: Exactable, name: str) -> Fraction:
    """Return `value` as a rational above zero, or refuse it."""
    number = exact(value, name)
    if number <= 0:
        raise InvalidInput(f"{name} must be above 0, not {value}")
    return number


def nonnegative(value: Exactable, name: str) -> Fraction:
    """Return `value` as a rational of at least zero, or refuse it."""
    number = exact(value, name)
    if number < 0:
        raise InvalidInput(f"{name} must not be negative: {value}")
    return number


def probability(value: Exactable, name: str) -> Fraction:
    """Return `value` as a rational in [0, 1], or refuse it."""
    number = exact(value, name)
    if not 0 <= number <= 1:
        raise InvalidInput(f"{name} must be a probability, from 0 to 1, not {value}")
    return number


def whole(value: int | np.integer, name: str, *, least: int = 0) -> int:
    """Return `value` as an int of at least `least`, or refuse it; a float is refused even when integral."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InvalidInput(f"{name} must be a whole number, not {type(value).__name__}: {value!r}")
    if value < least:
        raise InvalidInput(f"{name} must be at least {least}, not {value}")
    return int(value)


def fraction_text(number: Fraction) -> str:
    """Write a rational the way a person would: `0.1`, `3`, `1/3`."""
    if number.denominator == 1:
        return str(number.numerator)
    try:
        short = repr(float(number))
    except OverflowError:
        return str(number)
    return short if Fraction(short) == number else str(number)
