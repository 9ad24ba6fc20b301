"""Answers in, integers on a public grid, noisy answers out.

What is read here is data, so no message repeats a value or says where it stood. Whether answers are whole is
decided by their types, which the query fixes, and never by their values, which the data do.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput

__all__ = ["Answers", "add", "from_step", "from_steps", "read_answers", "round_to_step", "to_steps"]

# Sums of two integers below this fit 64 bits.
_HALF = 1 << 62
# Below this many steps a double tells the half steps apart with room to spare.
_CLEAR = 2.0**48
_MARGIN = 2.0**-50

_WHAT = "answers must be finite numbers (ints, floats, Fractions or Decimals), or a list or an array of these"


@dataclass(frozen=True)
class Answers:
    """Numbers as they were handed in: an array of int64, of float64, or of exact Python numbers."""

    values: NDArray[Any]
    whole: bool
    scalar: bool
    inexact: bool


def read_answers(answers: Any) -> Answers:
    """Read a number, or a list or an array of numbers, or refuse it.

    Claim: what is accepted is finite, and is kept exactly, a float at its binary value. Whether it is
    accepted, and counts as whole, depends on types and shape alone, but for NaN and infinity, and for
    Decimals with an exponent in the thousands.
    """
    if isinstance(answers, (str, bytes, bytearray, np.ma.MaskedArray)):
        raise InvalidInput(f"{_WHAT}, not {type(answers).__name__}")
    if isinstance(answers, Sequence):
        return _read_list(answers)
    if isinstance(answers, (numbers.Rational, Decimal, float)) or not hasattr(answers, "__array__"):
        return _read_items([answers], (), scalar=True)
    return _read_array(np.asarray(answers))


def _read_list(answers: Sequence[Any]) -> Answers:
    items = np.empty(len(answers), object)
    if any(isinstance(item, np.ma.MaskedArray) for item in answers):
        raise InvalidInput(f"{_WHAT}, not masked arrays: fill or drop what is masked first")
    if any(isinstance(item, (Sequence, np.ndarray)) for item in answers):
        try:
            items = np.array(answers, dtype=object)
        except ValueError:
            raise InvalidInput("answers must be rectangular: every row as long as the others") from None
    else:
        items[:] = answers
    return _read_items(items.ravel().tolist(), items.shape, scalar=False)


def _read_items(items: list[Any], shape: tuple[int, ...], *, scalar: bool) -> Answers:
    if not items:
        raise InvalidInput("there is nothing to release: the list of answers is empty")
    kinds = {type(item) for item in items}
    for kind in kinds:
        if issubclass(
            kind, (bool, np.bool_, np.float16, np.timedelta64, np.complexfloating)
        ) or not issubclass(kind, (numbers.Rational, float, Decimal, np.integer, np.floating)):
            raise InvalidInput(f"{_WHAT}, not {kind.__name__}")
    whole = all(issubclass(kind, (int, np.integer)) for kind in kinds)
    if whole:
        ints = [int(item) for item in items]
        fits = all(-_HALF < item < _HALF for item in ints)
        values = np.array(ints, np.int64) if fits else _objects(ints)
    elif all(issubclass(kind, (float, np.float32)) for kind in kinds):
        values = np.array([float(item) for item in items], np.float64)
    else:
        values = _objects([_exactly(item) for item in items])
    inexact = not any(issubclass(kind, (Fraction, Decimal)) for kind in kinds)
    return _checked(values.reshape(shape), whole=whole, scalar=scalar, inexact=inexact)


def _read_array(array: NDArray[Any]) -> Answers:
    if array.dtype.kind not in "iuf" or (array.dtype.kind == "f" and array.dtype.itemsize < 4):
        raise InvalidInput(f"{_WHAT}, not an array of {array.dtype}")
    if not array.size:
        raise InvalidInput(f"there is nothing to release: the array of answers has the shape {array.shape}")
    scalar, whole = array.ndim == 0, array.dtype.kind != "f"
    if whole:
        small = array.dtype.itemsize < 8 or bool(
            (array < _HALF).all() and (array.dtype.kind == "u" or (array > -_HALF).all())
        )
        values = array.astype(np.int64) if small else array.astype(object)
    elif array.dtype.itemsize <= 8:
        values = array.astype(np.float64)
    else:
        values = _objects([_exactly(item) for item in array.ravel()]).reshape(array.shape)
    return _checked(values, whole=whole, scalar=scalar, inexact=True)


def _exactly(item: Any) -> int | Fraction:
    if isinstance(item, numbers.Rational):
        return Fraction(int(item.numerator), int(item.denominator))
    if isinstance(item, np.integer):
        return int(item)
    finite = item.is_finite() if isinstance(item, Decimal) else bool(np.isfinite(item))
    if not finite:
        raise _not_finite()
    if isinstance(item, Decimal) and item and not -5000 < item.adjusted() < 5000:
        raise InvalidInput("answers must have fewer than 5,000 digits")
    return Fraction(*item.as_integer_ratio())


def _objects(items: list[Any]) -> NDArray[Any]:
    values = np.empty(len(items), object)
    values[:] = items
    return values


def _checked(values: NDArray[Any], *, whole: bool, scalar: bool, inexact: bool) -> Answers:
    if values.dtype == np.float64 and not np.isfinite(values).all():
        raise _not_finite()
    return Answers(values, whole, scalar, inexact)


def _not_finite() -> InvalidInput:
    return InvalidInput(
        "answers must be finite, and a NaN or an infinity is among them: clip or drop it first"
    )


# --- onto the grid ----------------------------------------------------------------------------------


def to_steps(answers: Answers, grid: Fraction) -> NDArray[Any]:
    """Round answers to whole multiples of the grid, and return the multiples.

    Claim: each is floor(answer / grid + 1/2), exactly. So two answers whose distance is at most d steps come
    out at most ceil(d) steps apart: rounding halves to even would not keep that.
    """
    values = answers.values
    if answers.whole and grid == 1:
        return values
    if values.dtype == np.float64:
        return _round_doubles(values, grid)
    if values.dtype == np.int64 and grid.numerator == 1 and np.abs(values).max() < _HALF // grid.denominator:
        multiples: NDArray[np.int64] = values * np.int64(grid.denominator)
        return multiples
    return _fitted([round_to_step(value, grid) for value in values.ravel().tolist()]).reshape(values.shape)


def round_to_step(value: int | float | Fraction, grid: Fraction) -> int:
    """Return floor(value / grid + 1/2), in integers."""
    top, bottom = value.as_integer_ratio()
    top, bottom = top * grid.denominator, bottom * grid.numerator
    return (2 * top + bottom) // (2 * bottom)


def _round_doubles(values: NDArray[np.float64], grid: Fraction) -> NDArray[Any]:
    """Round in doubles wherever those certainly give the exact result, and exactly elsewhere."""
    factor = _factor(grid)
    with np.errstate(all="ignore"):
        steps = values * factor
        below = np.floor(steps)
        part = steps - below
        if math.frexp(factor)[0] == 0.5:  # by a power of two a product is exact, but for denormals
            clear = np.abs(steps) < _HALF
        else:
            # The product is off by less than 2**-51 of itself, and by less than a denormal.
            clear = (np.abs(steps) < _CLEAR) & (np.abs(part - 0.5) > np.abs(steps) * _MARGIN + 2.0**-100)
        # Close to a whole number the floor may be one off, but then so is the part: their sum is right.
        rounded = np.where(clear, below + (part >= 0.5), 0.0).astype(np.int64)
    unclear = ~clear
    if not unclear.any():
        return rounded
    # By a mask and not through ravel(), which is a copy where an array is not laid out row by row.
    exact = _fitted([round_to_step(value, grid) for value in values[unclear].tolist()])
    result = np.asarray(rounded, exact.dtype)
    result[unclear] = exact
    return result


def _factor(grid: Fraction) -> float:
    """Return 1 / grid to within 2**-53 of itself, or NaN where no normal double is that near.

    A power of two is returned only if it is 1 / grid exactly.
    """
    if not Fraction(1, 2**1000) < grid < 2**1000:
        return math.nan
    factor = grid.denominator / grid.numerator
    return factor if math.frexp(factor)[0] != 0.5 or factor * grid == 1 else math.nan


def _fitted(steps: list[int]) -> NDArray[Any]:
    fits = all(-_HALF < step < _HALF for step in steps)
    return np.array(steps, np.int64) if fits else _objects(steps)


# --- noise, and back --------------------------------------------------------------------------------


def add(steps: NDArray[Any], noise: NDArray[Any]) -> NDArray[Any]:
    """Add integers, which cannot overflow: int64 where every sum fits 64 bits, else Python integers.

    Claim: the dtype of what is returned depends on the sums alone, not on what was added.
    """
    if (
        steps.dtype == np.int64
        and noise.dtype == np.int64
        and (int(noise.max()) < _HALF and int(noise.min()) > -_HALF)
    ):
        total: NDArray[np.int64] = steps + noise
        return total
    sums = np.asarray(steps.astype(object) + noise.astype(object), object)
    fits = all(-(2**63) <= value < 2**63 for value in sums.ravel().tolist())
    return sums.astype(np.int64) if fits else sums


def from_steps(steps: NDArray[Any], grid: Fraction, answers: Answers) -> Any:
    """Return noisy multiples of the grid as numbers of the kind that came in.

    On the integers: ints. On another grid: floats, and a Fraction for a single Fraction or Decimal.
    """
    if grid == 1 and answers.whole:
        return int(steps[()]) if answers.scalar else steps
    if answers.scalar:
        exact = int(steps[()]) * grid
        return exact if not answers.inexact else from_step(int(steps[()]), grid)
    small = steps.dtype == np.int64 and max(grid.numerator, grid.denominator) < 1 << 53
    if small and max(int(steps.max()), -int(steps.min())) * grid.numerator < 1 << 63:
        floats: NDArray[np.float64] = steps * np.int64(grid.numerator) / float(grid.denominator)
        return floats
    return np.array([from_step(step, grid) for step in steps.ravel().tolist()]).reshape(steps.shape)


def from_step(step: int, grid: Fraction) -> float:
    """Return the double nearest to step * grid, or infinity beyond the largest."""
    try:
        return step * grid.numerator / grid.denominator
    except OverflowError:
        return math.inf if step > 0 else -math.inf
