"""The raw samplers: integer noise with exactly the law that is named.

>>> from fractions import Fraction
>>> x = discrete_laplace(10)                      # one int
>>> x = discrete_gaussian(Fraction(9, 4), 1000)   # an array of 1,000
>>> x.dtype, x.shape
(dtype('int64'), (1000,))
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidInput
from discreet.noise.blocks import BlockSampler, block_sampler
from discreet.noise.coins import Size, shape_of
from discreet.noise.energy import Energy
from discreet.noise.source import SYSTEM, Source, checked
from discreet.numbers import Exactable, positive

__all__ = ["discrete_gaussian", "discrete_laplace", "gaussian_sampler", "geometric", "laplace_sampler"]

_LONGEST = 4096


def discrete_laplace(scale: Exactable, size: Size = None, *, source: Source = SYSTEM) -> Any:
    """Draw integers with P(x) proportional to exp(-|x| / scale), for any rational scale > 0.

    Claim: draws are independent, each with exactly this law: P(x) = tanh(1 / (2 scale)) exp(-|x| / scale).
    An int, or an array of int64; from a scale of 2**54 up, an array of Python integers, as in the event
    (rarer than any other in this world) that a value at a smaller scale does not fit 64 bits.
    """
    return _draw(laplace_sampler(scale), size, source)


def laplace_sampler(scale: Exactable) -> BlockSampler:
    """Return what draws for `discrete_laplace`, for whoever draws again and again."""
    return block_sampler(Energy.laplace(_short(scale, "scale")), True)


def discrete_gaussian(variance: Exactable, size: Size = None, *, source: Source = SYSTEM) -> Any:
    """Draw integers with P(x) proportional to exp(-x**2 / (2 variance)), for any rational variance > 0.

    Claim: draws are independent, each with exactly this law (Canonne, Kamath, Steinke 2020). `variance` is
    the parameter; the law's own variance is slightly below it.
    """
    return _draw(gaussian_sampler(variance), size, source)


def gaussian_sampler(variance: Exactable) -> BlockSampler:
    """Return what draws for `discrete_gaussian`, for whoever draws again and again."""
    return block_sampler(Energy.gaussian(_short(variance, "variance")), True)


def geometric(scale: Exactable, size: Size = None, *, source: Source = SYSTEM) -> Any:
    """Draw integers x >= 0 with P(x) proportional to exp(-x / scale), for any rational scale > 0.

    Claim: draws are independent, each with exactly this law: P(x) = (1 - exp(-1 / scale)) exp(-x / scale).
    """
    return _draw(block_sampler(Energy.laplace(_short(scale, "scale")), False), size, source)


def _short(value: Exactable, name: str) -> Fraction:
    """Read a positive rational, or refuse one so long that it could exhaust time or memory."""
    number = positive(value, name)
    bits = max(number.numerator.bit_length(), number.denominator.bit_length())
    if bits > _LONGEST:
        raise InvalidInput(
            f"{name} is a fraction of {bits}-bit integers, and {_LONGEST} bits are the most allowed. "
            "Round it up to a shorter one: the noise grows a little, and privacy loses nothing"
        )
    return number


def _draw(sampler: BlockSampler, size: Size, source: Source) -> Any:
    shape, source = shape_of(size), checked(source)
    if size is None:
        return source.label(sampler.draw(source))
    return source.label(sampler.fill(math.prod(shape), source).reshape(shape))
