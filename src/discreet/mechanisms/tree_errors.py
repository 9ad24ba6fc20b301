"""How far off running totals are: tails of sums of independent noise, one for each node of a total.

Exact for sums of Laplace noise, within a small factor for Gaussian noise, and by Chernoff's inequality for
totals whose nodes are refined. All are computed at FLINT's current precision. Proofs: docs/proofs/stream.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from discreet.mechanisms.tails import DiscreteGaussianLaw, DiscreteLaplaceLaw
from discreet.mechanisms.tree import fullest, kept, levels, node_counts, over_times
from discreet.privacy.lattice import gaussian_mass_from
from discreet.privacy.reals import ball

__all__ = ["TreeErrors"]

Law = DiscreteLaplaceLaw | DiscreteGaussianLaw

# Tilts that are tried, and the greatest for Gaussian noise, in standard deviations of a node.
_TILTS, _STEEPEST = 32, 1000


@dataclass(frozen=True)
class TreeErrors:
    """The noise of running totals whose nodes have noise of one law, or noise of that law refined."""

    horizon: int
    law: Law
    refined: bool

    def tail(self, far: Fraction, time: int | None) -> arb:
        """Bound the chance that the noise of the total at a time, or of any, reaches `far`."""
        if far <= 0:
            return arb(1)
        if self.refined:
            return min((self._chernoff(far, s, time) for s in self._tilts(far, time)), key=_middle)
        m = math.ceil(far)
        if time is not None:
            return sum_tail(self.law, m, time.bit_count())
        counts = node_counts(self.horizon).items()
        return sum((times * sum_tail(self.law, m, nodes) for nodes, times in counts), arb(0))

    def deviation(self, time: int | None) -> arb:
        """Return the standard deviation of the noise of a total, or of the worst; or a little more."""
        return (variance(self.law) * ball(self.share(time))).sqrt()

    def share(self, time: int | None) -> Fraction:
        """Return the variance of a total, or the greatest of any, in variances of a node."""
        if time is None:
            return max(self.share(t) for t in fullest(self.horizon))
        return sum((kept(level) if self.refined else Fraction(1) for level in levels(time)), Fraction(0))

    def _chernoff(self, far: Fraction, tilt: Fraction, time: int | None) -> arb:
        """Bound the tail of refined totals.

        Claim: whatever the tilt s, Pr(|noise| >= far) <= 2 E exp(s noise) / exp(s far). The noise of a
        refined node that keeps the part k of the variance has a moment of at most M(s k)**(1 / k), where M is
        that of the law. Over all times the sum of the bounds, which are products over the bits of the time.
        """
        top = self.horizon if time is None else time
        parts = [kept(level) for level in range(top.bit_length())]
        moments = [(log_moment(self.law, tilt * part) / ball(part)).exp() for part in parts]
        bound = (
            over_times(self.horizon, moments)
            if time is None
            else math.prod((moments[level] for level in levels(time)), start=arb(1))
        )
        return arb(2 * (-ball(tilt * far)).exp() * bound)

    def _tilts(self, far: Fraction, time: int | None) -> list[Fraction]:
        """Return tilts of which one is nearly the best; each is within reach of `log_moment`."""
        if isinstance(self.law, DiscreteLaplaceLaw):
            return [self.law.rate * Fraction(i, _TILTS + 1) for i in range(1, _TILTS + 1)]
        steepest = Fraction(_STEEPEST, math.isqrt(math.ceil(self.law.variance)))
        return [min(far / (self.law.variance * self.share(time)), steepest)]


def _middle(bound: arb) -> float:
    return float(bound.mid())


def variance(law: Law) -> arb:
    """Return the variance of a law; of a discrete Gaussian its parameter, which is a little more."""
    if isinstance(law, DiscreteGaussianLaw):
        return ball(law.variance)
    q = (-ball(law.rate)).exp()
    return 2 * q / (1 - q) ** 2


def log_moment(law: Law, tilt: Fraction) -> arb:
    """Return ln E exp(tilt X): exactly for Laplace noise, whose rate is above the tilt, and else at most.

    Claim: it is ln of (1 - q)**2 / ((1 - q e**s) (1 - q e**-s)) for Laplace noise, and for discrete Gaussian
    noise at most s**2 variance / 2.
    """
    if isinstance(law, DiscreteGaussianLaw):
        return ball(tilt**2 * law.variance / 2)
    once, up, down = (1 - ball(s - law.rate).exp() for s in (Fraction(0), tilt, -tilt))
    return (once**2 / (up * down)).log()


def sum_tail(law: Law, m: int, k: int) -> arb:
    """Return Pr(|X_1 + ... + X_k| >= m) for independent X_i, m > 0; for discrete Gaussian ones a bound."""
    if isinstance(law, DiscreteGaussianLaw):
        return _gaussian_sum_tail(law.variance, m, k)
    return _laplace_sum_tail((-ball(law.rate)).exp(), m, k)


def _laplace_sum_tail(q: arb, m: int, k: int) -> arb:
    """Return it for P(x) proportional to q**|x|.

    Claim: Pr(sum >= m) = q**m times the sum over s < k of C(m - 1 + s, s) (1 - q)**s (h_0 + ... +
    h_(k-1-s)), where h_l (1 + q)**(k + l) is the sum over r of C(k, r) C(l - 1, r - 1) q**(2 r), and 1 for
    l = 0.
    """
    square, shrink = q * q, 1 / (1 + q)
    sums = [shrink**k]
    for left in range(1, k):
        terms = (math.comb(k, r) * math.comb(left - 1, r - 1) * square**r for r in range(1, left + 1))
        sums.append(sums[-1] + sum(terms, arb(0)) * shrink ** (k + left))
    total = sum((math.comb(m - 1 + s, s) * (1 - q) ** s * sums[k - 1 - s] for s in range(k)), arb(0))
    return 2 * q**m * total


def _gaussian_sum_tail(variance: Fraction, m: int, k: int) -> arb:
    """Bound it for discrete Gaussian noise.

    Claim: it is at most 2 exp(-m**2 / (2 k variance)), and at most the tail of one of k times the variance,
    times (1 + eta) / (1 - eta) for each addition, where eta is what the sum over a shifted lattice differs
    by from its integral. The smaller of the two.
    """
    rough = 2 * (-ball(Fraction(m * m) / (2 * k * variance))).exp()
    tail = 2 * gaussian_mass_from(m, k * variance)
    for i in range(2, k + 1):
        first = (-2 * arb.pi() ** 2 * ball(variance * (i - 1) / i)).exp()
        eta = 2 * first / (1 - first)
        if not eta < 1:
            return rough
        tail *= (1 + eta) / (1 - eta)
    return tail if tail < rough else rough
