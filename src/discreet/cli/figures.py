"""Numbers typed on a command line, taken exactly."""

from decimal import Decimal, InvalidOperation
from fractions import Fraction

import typer

__all__ = ["figure"]

_LONGEST, _SHOWN = 4000, 40


def figure(text: str | Fraction) -> Fraction:
    """Read `0.1`, `1e-6` or `1/3` as the rational that it is; a default, which is one already, stays."""
    if isinstance(text, Fraction):
        return text
    from discreet.errors import InvalidInput
    from discreet.numbers import exact

    try:
        if len(text) > _LONGEST:
            raise ValueError
        number = Fraction(text) if "/" in text else Decimal(text)
        return exact(number, "a number")
    except (InvalidInput, InvalidOperation, ValueError, OverflowError, ZeroDivisionError) as error:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        raise typer.BadParameter(f"{shown!r} is not a finite number such as 0.1, 1e-6 or 1/3") from error
