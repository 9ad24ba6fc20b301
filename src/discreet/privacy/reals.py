"""Certified real numbers: the only place that touches FLINT's ball arithmetic.

A quantity is written once, as a function that computes a ball (`flint.arb`, a midpoint and a radius that
together contain the true value) from exact inputs. `enclose` evaluates it at growing precision until the
ball is narrower than a double's spacing and returns two doubles around it. What FLINT gives us over
floating point: exp, erfc and their cancellations come with a proved error, so a bound is a bound.

FLINT's working precision is global to the process, so evaluations take a lock. Were another thread to
change it under us, balls would be wider or narrower but still contain the truth.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import NamedTuple

import flint
from flint import arb, fmpq

from discreet.errors import DiscreetError

__all__ = [
    "Bounds",
    "Inexact",
    "Real",
    "as_ball",
    "ball",
    "certainly",
    "enclose",
    "lower_float",
    "precision",
    "upper_float",
]

_LOCK = threading.RLock()
_FIRST_BITS, _MOST_BITS = 96, 1 << 15
_LEAST_DOUBLE, _GREATEST_DOUBLE = 5e-324, sys.float_info.max

# An exact quantity where it is rational, otherwise a ball around it.
Real = arb | Fraction


class Inexact(DiscreetError, ArithmeticError):
    """A comparison of reals could not be decided at the highest precision tried."""


class Bounds(NamedTuple):
    """Two doubles with the true value between them, both ends included."""

    lower: float
    upper: float


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with `bits` bits inside the block; one thread at a time."""
    with _LOCK:
        before = flint.ctx.prec
        flint.ctx.prec = bits
        try:
            yield
        finally:
            flint.ctx.prec = before


def ball(number: Fraction | int | float) -> arb:
    """Return a ball that contains `number` (a float is taken at its binary value)."""
    number = Fraction(number)
    return arb(fmpq(number.numerator, number.denominator))


def as_ball(value: Real) -> arb:
    """Return a ball that contains a quantity, exact or already enclosed."""
    return ball(value) if isinstance(value, Fraction) else value


def lower_float(value: arb) -> float:
    """Return a double not above any point of the ball, read in binary or as its shortest decimal.

    The second matters because elsewhere in discreet a float means its shortest decimal: a bound that is
    printed, or handed back to us, must still be one.
    """
    if not value.is_finite():
        return -math.inf
    edge = value.lower()
    number = math.nextafter(float(edge), math.inf)
    while number != -math.inf and not (
        math.isfinite(number) and arb(number) <= edge and ball(Fraction(repr(number))) <= edge
    ):
        number = math.nextafter(number, -math.inf)
    return number


def upper_float(value: arb) -> float:
    """Return a double not below any point of the ball."""
    return -lower_float(-value)


def enclose(quantity: Callable[[], Real], relative: float = 2**-51) -> Bounds:
    """Return doubles around the real that `quantity` computes.

    Claim: `lower <= value <= upper` whenever every ball that `quantity` returns contains the value, whether
    the two floats are read in binary or as their shortest decimals. They are at most a few units in the last
    place apart unless 32,768 bits were not enough to see the value apart from zero, in which case the bounds
    are wider, never wrong. The exception: a rational that is some float's shortest decimal (7/10) is returned
    as that float (0.7), twice, and means that decimal, as every float does in discreet.
    """
    bits = _FIRST_BITS
    while True:
        with precision(bits):
            value = quantity()
            if isinstance(value, Fraction):
                if (exact := _as_float(value)) is not None:
                    return Bounds(exact, exact)
                value = ball(value)
            bounds = Bounds(lower_float(value), upper_float(value))
        narrow = _is_narrow(bounds, relative)
        if (narrow and value.is_finite()) or bits >= _MOST_BITS:
            return bounds
        bits *= 2


def _is_narrow(bounds: Bounds, relative: float) -> bool:
    """Tell whether no more precision is called for: the doubles are near, or all of it is beyond them."""
    if bounds.lower >= _GREATEST_DOUBLE or bounds.upper <= -_GREATEST_DOUBLE:
        return True
    width = bounds.upper - bounds.lower
    return math.isfinite(width) and (width <= relative * abs(bounds.lower) or width <= 2 * _LEAST_DOUBLE)


def _as_float(number: Fraction) -> float | None:
    """Return the float that stands for exactly this rational, if one does."""
    try:
        nearest = float(number)
    except OverflowError:
        return None
    return nearest if Fraction(repr(nearest)) == number else None


def certainly(claim: Callable[[], tuple[arb, arb]]) -> bool:
    """Decide whether the first real is greater than the second, raising precision until it is certain."""
    bits = _FIRST_BITS
    while bits <= _MOST_BITS:
        with precision(bits):
            left, right = claim()
            if left > right:
                return True
            if left <= right:
                return False
        bits *= 2
    raise Inexact("two reals are equal, or closer than 32,768 bits can tell")
