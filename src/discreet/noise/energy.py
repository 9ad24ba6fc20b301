"""The laws this room draws from, written as energies: weight(x) = exp(-energy(|x|)).

One quadratic covers them all: `linear = 1/scale` is the geometric and the discrete Laplace law,
`square = 1/(2 variance)` the discrete Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from discreet.noise.exponent import Enclosure, ceil_shift, exp_bounds

__all__ = ["Energy"]


@dataclass(frozen=True)
class Energy:
    """energy(x) = linear * x + square * x**2, for rational coefficients: one is positive, the other zero."""

    linear: Fraction
    square: Fraction

    @classmethod
    def laplace(cls, scale: Fraction) -> Energy:
        """The energy of a (one- or two-sided) discrete Laplace law."""
        return cls(1 / scale, Fraction(0))

    @classmethod
    def gaussian(cls, variance: Fraction) -> Energy:
        """The energy of a discrete Gaussian law."""
        return cls(Fraction(0), 1 / (2 * variance))

    def __call__(self, x: int) -> Fraction:
        """Return the energy at distance x >= 0 from the centre."""
        return (self.linear + self.square * x) * x

    def slope(self, x: int) -> Fraction:
        """Return a rate below the energy's growth from x on: energy(x + y) >= energy(x) + slope(x) * y."""
        return self.linear + 2 * self.square * x

    def octave(self) -> int:
        """Return the law's scale, or standard deviation, as a power of two, rounded down to one."""
        return _floor_log2(1 / self.linear) if self.linear else _floor_log2(1 / (2 * self.square)) // 2

    def reach(self, energy: int) -> int:
        """Return the distance, rounded down, at which the energy comes to `energy`."""
        if self.linear:
            return math.floor(energy / self.linear)
        return math.isqrt(math.floor(energy / self.square))

    def weight(self, x: int, bits: int) -> Enclosure:
        """Enclose 2**bits * exp(-energy(x))."""
        return exp_bounds(self(x), bits)

    def weights(self, first: int, step: int, bits: int) -> Iterator[Enclosure]:
        """Enclose 2**bits * weight at first, first + step, first + 2 step, ..., each from the one before.

        Claim: each enclosure holds. The energy is quadratic, so the ratio of neighbouring weights is itself
        multiplied by a constant from one step to the next; all three are enclosed, all roundings go outward.
        """
        low, high = self.weight(first, bits)
        ratio_low, ratio_high = exp_bounds(self(first + step) - self(first), bits)
        bend_low, bend_high = exp_bounds(2 * self.square * step * step, bits)
        while True:
            yield low, high
            low, high = low * ratio_low >> bits, ceil_shift(high * ratio_high, bits)
            ratio_low, ratio_high = ratio_low * bend_low >> bits, ceil_shift(ratio_high * bend_high, bits)

    def beyond(self, start: int, bits: int) -> Enclosure:
        """Enclose 2**bits times the sum of the geometric envelope of the weights from `start` on.

        By `slope`, weight(start + y) <= weight(start) * exp(-slope * y), which sums to
        weight(start) / (1 - exp(-slope)).
        """
        slope = self.slope(start)
        work = bits + 2 * max(0, -_floor_log2(slope)) + 32
        low, high = self.weight(start, work)
        ratio_low, ratio_high = exp_bounds(slope, work)
        # (1 << bits) * a / b with a weight and one minus a ratio, both times 2**work.
        return (low << bits) // ((1 << work) - ratio_low), -((-high << bits) // ((1 << work) - ratio_high))


def _floor_log2(x: Fraction) -> int:
    """Return the largest k with 2**k <= x."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if x >= Fraction(2) ** guess else guess - 1
