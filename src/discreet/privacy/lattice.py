"""Sums of exp(-x**2 / (2 variance)) over integers, enclosed.

Few terms are added up one by one. Where there would be many, the sum from j on is its integral with the
Euler-Maclaurin correction; that and Poisson's summation, with their remainders, are in
docs/proofs/privacy-loss.md under the names of the functions here.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import flint
from flint import arb, fmpq

from discreet.privacy.reals import ball

__all__ = ["gaussian_mass_from", "gaussian_mean_size", "theta_ratio"]

# From this variance up the Euler-Maclaurin series is quicker, except far out in the tail, where each term is
# much smaller than the one before.
_SUM_BELOW = 64
_MOST_TERMS = 400
# Cramer's inequality: |He_n(t)| <= this times sqrt(n!) exp(t**2 / 4). The constant is 1.086435 rounded up.
_CRAMER = Fraction(10865, 10000)


def gaussian_mass_from(j: int, variance: Fraction) -> arb:
    """Return the mass that the discrete Gaussian law centred at zero puts on the integers from j up."""
    total = _total(variance, flint.ctx.prec)
    if j > 0:
        return _sum_from(j, variance) / total
    return 1 - _sum_from(1 - j, variance) / total


def gaussian_mean_size(variance: Fraction) -> arb:
    """Return E|X| for the discrete Gaussian law centred at zero."""
    by_terms = variance < _SUM_BELOW
    above = _moment_by_terms(variance) if by_terms else _moment_by_integral(variance)
    return 2 * above / _total(variance, flint.ctx.prec)


def _moment_by_terms(variance: Fraction) -> arb:
    """Sum x exp(-x**2 / (2 variance)) over x = 1, 2, ...: the ratio of neighbouring terms falls."""
    total, x = arb(0), 1
    while True:
        term = x * _weight(x, variance)
        total += term
        ratio = ball(Fraction(x + 1, x)) * (-ball((2 * x + 1) / (2 * variance))).exp()
        if ratio < 1:
            rest = (term * ratio / (1 - ratio)).union(arb(0))
            if rest.upper() <= (total * arb(2) ** -flint.ctx.prec).upper():
                return total + rest
        x += 1


def _moment_by_integral(variance: Fraction) -> arb:
    """Sum x exp(-x**2 / (2 variance)) over x >= 0: the integral, with Euler and Maclaurin's terms.

    Claim: the term of order 2i is B_2i / 2i (-1)**i (2 variance)**(1 - i) / (i - 1)!, and after order 2p the
    remainder is at most |B_2p| / (2p)! variance**(1 - p) C sqrt((2p + 1)! pi), with Cramer's constant C.
    """
    size = ball(variance)
    total, power = size, arb(1)
    best: arb | None = None
    for i in range(1, _MOST_TERMS):
        bernoulli = arb(fmpq.bernoulli(2 * i))
        total -= bernoulli / (2 * i) * power
        power = -power / (2 * size * i)
        odd = arb(2 * i + 1).fac() * arb.pi()
        remainder = abs(bernoulli) / arb(2 * i).fac() * size ** (1 - i) * ball(_CRAMER) * odd.sqrt()
        enclosure = total + remainder.union(-remainder)
        best = enclosure if best is None or enclosure.rad() < best.rad() else best
        if remainder.upper() <= (total * arb(2) ** -flint.ctx.prec).upper():
            break
    assert best is not None
    return best


@lru_cache(maxsize=256)
def _total(variance: Fraction, bits: int) -> arb:
    """Sum over all integers at a precision of `bits`, which must be the current one."""
    assert bits == flint.ctx.prec
    return 2 * _sum_from(1, variance) + 1


def theta_ratio(offset: Fraction, variance: Fraction) -> arb:
    """Return the sum of exp(-(x - offset)**2 / (2 variance)) over all integers x, over the same at offset 0.

    From a variance of 1 up through Poisson summation: 1 + 2 sum of exp(-2 pi**2 variance j**2)
    cos(2 pi j offset), over the same with cosines of 1.
    """
    offset -= round(offset)
    if variance < 1:
        return _sum_around(offset, variance) / _sum_around(Fraction(0), variance)
    above = below = arb(1)
    power = -2 * arb.pi() ** 2 * ball(variance)
    j = 1
    while True:
        term = 2 * (power * j * j).exp()
        if term.upper() < arb(2) ** -flint.ctx.prec:
            # Each further term is below this one's, times e**power once more.
            size = term.upper() / (1 - power.exp())
            rest = size.union(-size)
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
    by_terms = variance < _SUM_BELOW or 2 * j > variance
    return _sum_terms(Fraction(j), variance) if by_terms else _sum_by_integral(j, variance)


def _sum_terms(start: Fraction, variance: Fraction) -> arb:
    """Sum exp(-x**2 / (2 variance)) over x = start, start + 1, ..., term by term, for start >= 0.

    The ratio of neighbouring terms falls, so what is left out is below a geometric series. All are compared
    by their upper ends: a term too small for its sign to be seen still ends the sum.
    """
    term = total = _weight(start, variance)
    ratio = (-ball((2 * start + 1) / (2 * variance))).exp()
    bend = (-ball(1 / variance)).exp()
    wanted = term.upper() * arb(2) ** -flint.ctx.prec
    while True:
        term, ratio = term * ratio, ratio * bend
        if ratio < 1:
            # Read as plus or minus its size where the ball is too wide to show that it is positive.
            rest = (term / (1 - ratio)).union(arb(0))
            if rest.upper() <= wanted:
                return total + rest
        total += term


def _sum_by_integral(j: int, variance: Fraction) -> arb:
    """Sum from j on as integral + f(j)/2 - sum of B_2i / (2i)! f^(2i-1)(j), within the remainder.

    Claim: f^(n)(x) = (-1)**n sigma**-n He_n(x / sigma) f(x), and after 2p derivatives the remainder is at
    most |B_2p| / (2p)! times the integral of |f^(2p)| from j on. From t = j / sigma >= 2 sqrt(2p), past
    the last zero of He_2p, that is the last term itself; otherwise Cramer's inequality bounds it.
    """
    sigma = ball(variance).sqrt()
    t, f = ball(j) / sigma, _weight(j, variance)
    total = sigma * (arb.pi() / 2).sqrt() * (t / arb(2).sqrt()).erfc() + f / 2
    wanted = (f * arb(2) ** -flint.ctx.prec).upper()
    envelope = ball(_CRAMER) * sigma * arb.pi().sqrt() * (t / 2).erfc()
    past_zeros = j * j / (4 * variance)
    # `odd` and `even` are He_(n-1) and He_n at t; `scale` is sigma**-n / n!, for n = 2i.
    odd, even, scale = t, t * t - 1, 1 / (2 * ball(variance))
    best: arb | None = None
    for i in range(1, _MOST_TERMS):
        n = 2 * i
        bernoulli = arb(fmpq.bernoulli(n))
        term = bernoulli * scale * sigma * odd * f
        total += term
        remainder = abs(bernoulli) * scale * arb(n).fac().sqrt() * envelope
        if n <= past_zeros and term.abs_upper() < remainder.upper():
            remainder = abs(term)
        enclosure = total + remainder.union(-remainder)
        best = enclosure if best is None or enclosure.rad() < best.rad() else best
        if remainder.upper() <= wanted:
            break
        odd = t * even - n * odd
        even = t * odd - (n + 1) * even
        scale = scale / (ball(variance) * (n + 1) * (n + 2))
    assert best is not None
    return best
