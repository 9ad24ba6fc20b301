"""Numbers typed on a command line, taken exactly."""

from decimal import Decimal, InvalidOperation
from fractions import Fraction

import typer

__all__ = ["figure"]


def figure(text: str) -> Fraction:
    """Read `0.1`, `1e-6` or `1/3` as the rational that it is."""
    try:
        return Fraction(text) if "/" in text else Fraction(Decimal(text))
    except (InvalidOperation, ValueError, OverflowError, ZeroDivisionError) as error:
        raise typer.BadParameter(f"{text!r} is not a finite number such as 0.1, 1e-6 or 1/3") from error
