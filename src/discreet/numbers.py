"""Exact numbers in, whatever the user typed.

Everything that decides privacy is computed from rationals. A float means its shortest decimal, the one
that is printed: `0.1` is one tenth, not the binary fraction beside it. Strings and booleans are refused
rather than guessed at, and so is a float16, which cannot even hold a hundredth. Numbers of thousands of
digits are refused too: nobody means them, and a computation that never ends is no answer.

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
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np

from discreet.errors import InvalidInput

__all__ = [
    "Exactable",
    "decimal_text",
    "digits_text",
    "exact",
    "fraction_text",
    "is_infinite",
    "nonnegative",
    "positive",
    "probability",
    "short_text",
    "whole",
]

# What a caller may pass where a number is wanted.
Exactable = int | float | Fraction | Decimal | np.integer | np.floating

# Python writes no integer of more than 4,300 digits, so an error message could not either.
_MOST_DIGITS = 4000
_MOST_BITS = 13_200
_LONGEST_SHOWN, _LONG = 200, 18


def exact(value: Exactable, name: str) -> Fraction:
    """Return `value` as the rational it stands for, or refuse it by `name`.

    Claim: an integer, a Fraction and a finite Decimal keep their value; a finite float becomes the decimal
    with the fewest digits that reads back as the same float. Nothing else is accepted, nor a numerator or
    denominator of more than 4,000 digits or so.
    """
    # NumPy counts a timedelta64 among its integers.
    if isinstance(value, (bool, np.bool_, np.float16, np.timedelta64)) or not isinstance(
        value, (numbers.Rational, float, Decimal, np.integer, np.floating)
    ):
        kind = type(value).__name__
        raise InvalidInput(
            f"{name} must be a number (int, float, Fraction or Decimal), not {kind}: {_shown(value)}"
        )
    if isinstance(value, (numbers.Rational, np.integer)):
        # Some libraries' rationals are made of integers of their own, and Fraction would keep those.
        return _within_reach(Fraction(int(value.numerator), int(value.denominator)), name)
    if not _is_finite(value):
        raise InvalidInput(f"{name} must be finite, not {value}")
    if isinstance(value, Decimal):
        # Seen before it is converted: that would take minutes for a million digits.
        digits = len(value.as_tuple().digits)
        if value and (digits > _MOST_DIGITS or not -_MOST_DIGITS < value.adjusted() < _MOST_DIGITS):
            raise _too_long(name)
        return _within_reach(Fraction(value), name)
    return _within_reach(Fraction(_shortest(value)), name)


def _shown(value: object) -> str:
    """Write what was refused, if it is short: the repr of a number may be too long for Python to write."""
    try:
        text = repr(value)
    except ValueError:
        return "one too long to write"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def is_infinite(value: object) -> bool:
    """Tell whether an argument is the float infinity, whatever else it may be."""
    return isinstance(value, (float, np.floating)) and float(value) == math.inf


def _is_finite(value: float | np.floating | Decimal) -> bool:
    return value.is_finite() if isinstance(value, Decimal) else bool(np.isfinite(value))


def _shortest(value: float | np.floating) -> str:
    """Write a float as its shortest decimal, whatever NumPy's print options are."""
    return (
        float.__repr__(value) if isinstance(value, float) else np.format_float_scientific(value, unique=True)
    )


def _within_reach(number: Fraction, name: str) -> Fraction:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
        raise _too_long(name)
    return number


def _too_long(name: str) -> InvalidInput:
    return InvalidInput(f"{name} has more digits than anyone needs: at most {_MOST_DIGITS:,} are accepted")


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
    if isinstance(value, (bool, np.timedelta64)) or not isinstance(value, (int, np.integer)):
        raise InvalidInput(f"{name} must be a whole number, not {type(value).__name__}: {_shown(value)}")
    number = int(_within_reach(Fraction(int(value)), name))
    if number < least:
        raise InvalidInput(f"{name} must be at least {least}, not {number}")
    return number


def fraction_text(number: Fraction) -> str:
    """Write a rational the way a person would: `0.1`, `3`, `1/3`, `1e+300`."""
    if number.denominator == 1 and abs(number) < 10**16:
        return str(number.numerator)
    try:
        short = repr(float(number))
        return short if Fraction(short) == number else str(number)
    except (
        OverflowError,
        ValueError,
    ):  # beyond any float; or infinite as one; or too long for Python to write
        return _long_text(number)


def short_text(number: Fraction) -> str:
    """Write a rational as `fraction_text` does, or to six digits and marked where that is long."""
    text = fraction_text(number)
    return text if len(text) <= _LONG else f"~{digits_text(number, up=True, digits=6)}"


def digits_text(number: Fraction | float | Decimal, *, up: bool, digits: int = 3) -> str:
    """Write a few significant digits, rounded up or down."""
    value = Fraction(number)
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    short = context.divide(Decimal(value.numerator), Decimal(value.denominator))
    return decimal_text(short)


def decimal_text(number: Decimal) -> str:
    """Write a decimal out, or with an exponent where that would be long."""
    number = number.normalize(Context(prec=_MOST_DIGITS))  # the thread's own context may round
    return f"{number:f}" if not number or -5 <= number.adjusted() < 7 else f"{number:e}"


def _long_text(number: Fraction) -> str:
    try:
        return str(number)
    except ValueError:
        power = (number.numerator.bit_length() - number.denominator.bit_length()) * math.log10(2)
        return f"about {'-' if number < 0 else ''}10**{round(power)}"
