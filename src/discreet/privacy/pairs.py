"""Pairs of output distributions, seen through their privacy loss L = ln P(o)/Q(o).

A pair answers one question: how much mass do P and Q put on the outcomes whose loss exceeds epsilon? The
hockey-stick divergence, the trade-off curve and all that is read off them follow from it (see `curve`);
Kullback-Leibler and Renyi divergences have closed forms of their own. Proofs: docs/proofs/privacy-loss.md.

An answer is exact where it is rational and a certified ball where it is not, at FLINT's current precision;
`reals.enclose` raises that.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet.privacy.lattice import gaussian_mass_from, theta_ratio
from discreet.privacy.reals import Bounds, Real, ball, enclose

__all__ = [
    "DiscreteGaussianPair",
    "DiscreteLaplacePair",
    "GaussianPair",
    "LaplacePair",
    "Masses",
    "Pair",
    "PromisePair",
    "grouped_delta",
]

Masses = tuple[Real, Real]

_ALL, _NONE = Fraction(1), Fraction(0)


class Pair(ABC):
    """An ordered pair of distributions, P (the person's data are in) against Q (they are not)."""

    @abstractmethod
    def above(self, epsilon: Fraction) -> Masses:
        """Return the masses that P and Q put on outcomes with loss above epsilon, which may be negative."""

    @abstractmethod
    def kl(self) -> Real:
        """Return the mean of the loss under P. Asked only if nothing escapes."""

    @abstractmethod
    def renyi(self, alpha: Fraction) -> Real:
        """Return ln E_Q[(P/Q)**alpha] / (alpha - 1), for alpha > 1. Asked only if nothing escapes."""

    @abstractmethod
    def group(self, k: int) -> Pair:
        """Return a pair for databases that differ in k units: exact, or that of a promise that holds."""

    def greatest(self) -> Real | None:
        """Return the greatest finite loss, or zero if that is negative; None if losses have no end."""
        return None

    def escaped(self) -> Fraction:
        """Return the mass that P puts on outcomes that are impossible under Q."""
        return Fraction(0)

    def reversed(self) -> Pair:
        """Return Q against P: the same pair, where a mirror takes one to the other, as for all noise here."""
        return self

    def rho_bounds(self) -> Bounds:
        """Bound the supremum of renyi(alpha) / alpha over alpha > 1. Asked only if nothing escapes.

        Claim: for every pair in this file it is the limit at alpha = 1, the Kullback-Leibler divergence
        (docs/proofs/privacy-loss.md, rho).
        """
        return enclose(self.kl)


@dataclass(frozen=True)
class PromisePair(Pair):
    """The worst pair that an (epsilon, delta) promise allows (Kairouz, Oh, Viswanath 2015).

    Claim: every pair that keeps the promise in both directions is a post-processing of this one.
    """

    epsilon: Fraction
    delta: Fraction

    def above(self, epsilon: Fraction) -> Masses:
        """Three levels of loss: infinite with mass delta, +epsilon and -epsilon."""
        if epsilon >= self.epsilon:
            return self.delta, _NONE
        if epsilon < -self.epsilon:
            return _ALL, 1 - self.delta
        kept = ball(1 - self.delta)
        likely, rarely = 1 / (1 + (-ball(self.epsilon)).exp()), 1 / (1 + ball(self.epsilon).exp())
        return ball(self.delta) + kept * likely, kept * rarely

    def kl(self) -> Real:
        """Epsilon times the difference of the two masses."""
        return ball(self.epsilon) * (ball(self.epsilon) / 2).tanh()

    def renyi(self, alpha: Fraction) -> Real:
        """ln(cosh((alpha - 1/2) epsilon) / cosh(epsilon / 2)) / (alpha - 1), without its overflow."""
        near, far = (-ball(self.epsilon)).exp(), (-ball((2 * alpha - 1) * self.epsilon)).exp()
        return ball(self.epsilon) - (near.log1p() - far.log1p()) / ball(alpha - 1)

    def group(self, k: int) -> Pair:
        """(k epsilon, delta (e**(k epsilon) - 1) / (e**epsilon - 1)), that delta rounded up and at most 1."""
        return PromisePair(k * self.epsilon, grouped_delta(self.epsilon, self.delta, k))

    def greatest(self) -> Real | None:
        """Epsilon itself; with a delta of 1 every loss is infinite."""
        return self.epsilon if self.delta < 1 else _NONE

    def escaped(self) -> Fraction:
        """Delta itself."""
        return self.delta


def grouped_delta(epsilon: Fraction, delta: Fraction, k: int) -> Fraction:
    """Return delta (1 + e**epsilon + ... + e**((k - 1) epsilon)), rounded up and at most 1.

    Claim: an (epsilon, delta) promise between neighbours gives (k epsilon, this) at distance k (Vadhan
    2017, lemma 2.2): each step multiplies by e**epsilon what was added before it, and adds delta. What is
    returned is not less, exact for epsilon = 0 and otherwise a double's worth above.
    """
    if delta == 0 or k == 1:
        return delta
    if epsilon == 0:
        return min(_ALL, k * delta)
    growth = enclose(lambda: ball(delta) * ball(k * epsilon).expm1() / ball(epsilon).expm1()).upper
    return _ALL if growth >= 1 else Fraction(repr(growth))


@dataclass(frozen=True)
class LaplacePair(Pair):
    """Laplace noise on the reals, one sensitivity apart: epsilon = sensitivity / scale."""

    epsilon: Fraction

    def above(self, epsilon: Fraction) -> Masses:
        """Half the mass of P has loss exactly epsilon; between the two centres the loss falls evenly."""
        if epsilon >= self.epsilon:
            return _NONE, _NONE
        if epsilon < -self.epsilon:
            return _ALL, _ALL
        return 1 - (ball(epsilon - self.epsilon) / 2).exp() / 2, (-ball(epsilon + self.epsilon) / 2).exp() / 2

    def kl(self) -> Real:
        """epsilon - 1 + exp(-epsilon)."""
        return ball(self.epsilon) + (-ball(self.epsilon)).expm1()

    def renyi(self, alpha: Fraction) -> Real:
        """Mironov 2017, proposition 6."""
        down = ball(alpha - 1) * (-ball((2 * alpha - 1) * self.epsilon)).exp()
        return ball(self.epsilon) + ((ball(alpha) + down) / ball(2 * alpha - 1)).log() / ball(alpha - 1)

    def group(self, k: int) -> Pair:
        """Exact: the centres are k times as far apart."""
        return LaplacePair(k * self.epsilon)

    def greatest(self) -> Real | None:
        """Epsilon itself."""
        return self.epsilon


@dataclass(frozen=True)
class GaussianPair(Pair):
    """Gaussian noise on the reals: mu = l2 sensitivity / sigma."""

    mu: Fraction

    def above(self, epsilon: Fraction) -> Masses:
        """The loss is normal with mean mu**2 / 2 under P, -mu**2 / 2 under Q, and deviation mu."""
        return _normal_above(epsilon / self.mu - self.mu / 2), _normal_above(epsilon / self.mu + self.mu / 2)

    def kl(self) -> Real:
        """mu**2 / 2."""
        return self.mu**2 / 2

    def renyi(self, alpha: Fraction) -> Real:
        """Alpha mu**2 / 2."""
        return alpha * self.mu**2 / 2

    def group(self, k: int) -> Pair:
        """Exact: the centres are k times as far apart."""
        return GaussianPair(k * self.mu)


def _normal_above(x: Fraction) -> arb:
    return (ball(x) / arb(2).sqrt()).erfc() / 2


@dataclass(frozen=True)
class DiscreteLaplacePair(Pair):
    """Discrete Laplace noise of scale 1 / rate on the integers, with centres `shift` apart."""

    rate: Fraction
    shift: int = 1

    def above(self, epsilon: Fraction) -> Masses:
        """The loss falls by 2 rate with each integer from one centre to the other and is level outside."""
        reach = self.rate * self.shift
        if epsilon >= reach:
            return _NONE, _NONE
        if epsilon < -reach:
            return _ALL, _ALL
        last = math.ceil((self.shift - epsilon / self.rate) / 2) - 1
        whole = 1 + self._power(1)
        return 1 - self._power(last + 1) / whole, self._power(self.shift - last) / whole

    def _power(self, exponent: Fraction | int) -> arb:
        return (-ball(self.rate * exponent)).exp()

    def kl(self) -> Real:
        """Rate (E|X - shift| - E|X|) = rate (shift - 2 (r - r**(shift + 1)) / (1 - r**2)), r = exp(-rate)."""
        ratio = self._power(1)
        return ball(self.rate) * (
            self.shift - 2 * (ratio - self._power(self.shift + 1)) / (1 - ratio * ratio)
        )

    def renyi(self, alpha: Fraction) -> Real:
        """Sum the geometric series left of, between and right of the centres; the first is the largest."""
        ratio, k, step = self._power(1), self.shift, 2 * alpha - 1
        outside = (1 + self._power(step * k)) / (1 - ratio)
        between = (self._power(step) - self._power(step * k)) / (1 - self._power(step))
        moment = (outside + between) * (1 - ratio) / (1 + ratio)
        return ball(self.rate * k) + moment.log() / ball(alpha - 1)

    def group(self, k: int) -> Pair:
        """Exact: the centres are k times as far apart."""
        return DiscreteLaplacePair(self.rate, k * self.shift)

    def greatest(self) -> Real | None:
        """The rate times the shift."""
        return self.rate * self.shift


@dataclass(frozen=True)
class DiscreteGaussianPair(Pair):
    """Discrete Gaussian noise on the integers, with centres `shift` apart."""

    variance: Fraction
    shift: int = 1

    def above(self, epsilon: Fraction) -> Masses:
        """The loss (shift**2 - 2 shift x) / (2 variance) exceeds epsilon up to a last x."""
        last = math.ceil((self.shift**2 - 2 * self.variance * epsilon) / (2 * self.shift)) - 1
        return gaussian_mass_from(-last, self.variance), gaussian_mass_from(self.shift - last, self.variance)

    def kl(self) -> Real:
        """shift**2 / (2 variance), exactly, because the law has mean zero."""
        return Fraction(self.shift**2) / (2 * self.variance)

    def renyi(self, alpha: Fraction) -> Real:
        """Complete the square; what is left is a theta function off its centre, over one at its centre."""
        off_centre = theta_ratio((1 - alpha) * self.shift, self.variance).log() / ball(alpha - 1)
        return ball(alpha * self.shift**2 / (2 * self.variance)) + off_centre

    def group(self, k: int) -> Pair:
        """Exact: the centres are k times as far apart."""
        return DiscreteGaussianPair(self.variance, k * self.shift)
