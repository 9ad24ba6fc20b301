"""Sums of exp(-x**2 / (2 variance)) over integers, enclosed.

Few terms are added up one by one. Where there would be many, the sum from j on is its integral with the
Euler-Maclaurin correction, whose remainder is bounded through Cramer's inequality for Hermite polynomials,
|He_n(t)| <= 1.0865 sqrt(n!) exp(t**2 / 4).
"""

from __future__ import annotations

from fractions import Fraction

import flint
from flint import arb, fmpq

from discreet.privacy.reals import ball

__all__ = ["gaussian_mass_from", "theta_ratio"]

# Above this variance the Euler-Maclaurin series is quicker, and converges in a few terms.
_SUM_BELOW = 900
_MOST_TERMS = 400


def gaussian_mass_from(j: int, variance: Fraction) -> arb:
    """Return the mass that the discrete Gaussian law centred at zero puts on the integers from j up."""
    total = 2 * _sum_from(1, variance) + 1
    if j > 0:
        return _sum_from(j, variance) / total
    return 1 - _sum_from(1 - j, variance) / total


def theta_ratio(offset: Fraction, variance: Fraction) -> arb:
    """Return the sum of exp(-(x - offset)**2 / (2 variance)) over all integers x, over the same at offset 0.

    From a variance of 1 up through Poisson summation: 1 + 2 sum of exp(-2 pi**2 variance j**2)
    cos(2 pi j offset), over the same with cosines of 1.
    """
    offset -= round(offset)
    if variance < 1:
        return _sum_around(offset, variance) / _sum_around(Fraction(0), variance)
    above = below = arb(1)
    decay = (-2 * arb.pi() ** 2 * ball(variance)).exp()
    j = 1
    while True:
        term = 2 * decay ** (j * j)
        if term < arb(2) ** -flint.ctx.prec:
            rest = (term / (1 - decay)).union(-term / (1 - decay))
            return (above + rest) / (below + rest)
        above += term * arb.cos_pi(ball(2 * j * offset))
        below += term
        j += 1


def _weight(x: Fraction | int, variance: Fraction) -> arb:
    return (-ball(Fraction(x) ** 2 / (2 * variance))).exp()


def _sum_around(offset: Fraction, variance: Fraction) -> arb:
    """Sum exp(-(x - offset)**2 / (2 variance)) over all integers, for |offset| <= 1/2."""
    return _weight(offset, variance) + _sum_terms(1 - offset, variance) + _sum_terms(1 + offset, variance)


def _sum_from(j: int, variance: Fraction) -> arb:
    """Sum exp(-x**2 / (2 variance)) over the integers from j >= 0 up."""
    return _sum_terms(Fraction(j), variance) if variance < _SUM_BELOW else _sum_by_integral(j, variance)


def _sum_terms(start: Fraction, variance: Fraction) -> arb:
    """Sum exp(-x**2 / (2 variance)) over x = start, start + 1, ..., term by term, for start >= 0.

    The ratio of neighbouring terms falls, so what is left out is below a geometric series.
    """
    first = term = total = _weight(start, variance)
    ratio = (-ball((2 * start + 1) / (2 * variance))).exp()
    bend = (-ball(1 / variance)).exp()
    while True:
        term, ratio = term * ratio, ratio * bend
        rest = term / (1 - ratio)
        if ratio < 1 and rest < first * arb(2) ** -flint.ctx.prec:
            return total + rest.union(arb(0))
        total += term


def _sum_by_integral(j: int, variance: Fraction) -> arb:
    """Sum from j on as integral + f(j)/2 - sum of B_2i / (2i)! f^(2i-1)(j), within the remainder.

    f^(n)(x) = (-1)**n sigma**-n He_n(x / sigma) f(x), and after 2p derivatives the remainder is at most
    |B_2p| / (2p)! times the integral of |f^(2p)| from j on.
    """
    sigma = ball(variance).sqrt()
    t, f = ball(j) / sigma, _weight(j, variance)
    total = sigma * (arb.pi() / 2).sqrt() * (t / arb(2).sqrt()).erfc() + f / 2
    wanted = f * arb(2) ** -flint.ctx.prec
    envelope = arb("1.0865") * sigma * arb.pi().sqrt() * (t / 2).erfc()
    # `odd` and `even` are He_(n-1) and He_n at t; `scale` is sigma**-n / n!, for n = 2i.
    odd, even, scale = t, t * t - 1, 1 / (2 * ball(variance))
    best: arb | None = None
    for i in range(1, _MOST_TERMS):
        n = 2 * i
        bernoulli = arb(fmpq.bernoulli(n))
        factorial = arb(n).fac()
        total += bernoulli * scale * sigma * odd * f
        remainder = abs(bernoulli) * scale * factorial.sqrt() * envelope
        enclosure = total + remainder.union(-remainder)
        best = enclosure if best is None or enclosure.rad() < best.rad() else best
        if remainder < wanted:
            break
        odd = t * even - n * odd
        even = t * odd - (n + 1) * even
        scale = scale / (ball(variance) * (n + 1) * (n + 2))
    assert best is not None
    return best
