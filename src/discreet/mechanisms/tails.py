"""Two-sided integer noise: how large it gets, one at a time and many together, as certified balls.

A law answers Pr(|X| >= m) and E|X|; k independent ones together, Pr(max |X_i| >= m), and for Laplace noise
Pr(sum |X_i| >= m). All are computed at FLINT's current precision. Proofs: docs/proofs/utility.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import flint
from flint import arb

from discreet.errors import Unsupported
from discreet.privacy.lattice import gaussian_mass_from, gaussian_mean_size
from discreet.privacy.reals import ball

__all__ = ["DiscreteGaussianLaw", "DiscreteLaplaceLaw", "IntegerLaw", "falling_sum"]


class IntegerLaw(ABC):
    """A law on the integers, symmetric around zero."""

    @abstractmethod
    def tail(self, m: int) -> arb:
        """Return Pr(|X| >= m)."""

    @abstractmethod
    def mean_size(self) -> arb:
        """Return E|X|."""

    def largest_tail(self, m: int, k: int) -> arb:
        """Return Pr(max |X_i| >= m) for k independent ones: 1 - (1 - tail)**k."""
        return arb(1) if m <= 0 else -(k * (-self.tail(m)).log1p()).expm1()

    def sum_tail(self, m: int, k: int) -> arb:
        """Return Pr(|X_1| + ... + |X_k| >= m)."""
        if k == 1:
            return self.tail(m)
        raise Unsupported(
            f"the exact law of the sum of {k} sizes of this noise is not known here: bound='union' bounds it"
        )


@dataclass(frozen=True)
class DiscreteGaussianLaw(IntegerLaw):
    """P(x) proportional to exp(-x**2 / (2 variance))."""

    variance: Fraction

    def tail(self, m: int) -> arb:
        """Twice one side."""
        return arb(1) if m <= 0 else 2 * gaussian_mass_from(m, self.variance)

    def mean_size(self) -> arb:
        """A sum over the integers; see privacy.lattice."""
        return gaussian_mean_size(self.variance)


@dataclass(frozen=True)
class DiscreteLaplaceLaw(IntegerLaw):
    """P(x) proportional to exp(-rate |x|). Below, q = exp(-rate)."""

    rate: Fraction

    def tail(self, m: int) -> arb:
        """2 q**m / (1 + q), for m > 0."""
        return arb(1) if m <= 0 else 2 * (-ball(self.rate * m)).exp() / (1 + self._ratio())

    def mean_size(self) -> arb:
        """2 q / (1 - q**2)."""
        return -2 * self._ratio() / (-ball(2 * self.rate)).expm1()

    def sum_tail(self, m: int, k: int) -> arb:
        """Claim: the sum of k sizes is Binomial(k, q / (1 + q)) plus a negative binomial of k and q.

        Each size is a coin that shows 1 with probability q / (1 + q), plus a geometric of ratio q. So this is
        the sum over j of Pr(heads = j) Pr(rest >= m - j), whose terms are log-concave in j: they are added
        from where they begin to matter until what is left is below a geometric series.
        """
        if m <= 0 or k == 1:
            return self.tail(m)
        q, gap = self._ratio(), -(-ball(self.rate)).expm1()
        first = min(self._first_that_matters(m, k), k - 1)
        heads = _binomial(k, first, q / (1 + q), 1 / (1 + q))
        rest, step = _negative_tail(m - first, k, q, gap), _negative_mass(m - first - 1, k, q, gap)
        total, j = arb(0), first
        below: arb | None = None
        while True:
            term = heads * rest
            total += term
            if j == k:
                return total + self._left_out(below)
            # On to j + 1: one more head, and the rest one less.
            heads *= q * (k - j) / (j + 1)
            rest, n = rest + step, m - j - 1
            step = step * n / (q * (n + k - 1)) if n > 0 else arb(0)
            ratio = heads * rest / term
            if j == first and first > 0:
                # By log-concavity the terms before the first fall away at least as fast as this.
                shrink = 1 / ratio
                below = term * shrink / (1 - shrink) if shrink < 1 else term * arb("+inf")
            j += 1
            if ratio < 1:
                left = term * ratio / (1 - ratio)
                if left.upper() <= total.lower() * arb(2) ** -flint.ctx.prec:
                    return total + left.union(arb(0)) + self._left_out(below)

    @staticmethod
    def _left_out(below: arb | None) -> arb:
        return arb(0) if below is None else below.union(arb(0))

    def _first_that_matters(self, m: int, k: int) -> int:
        """Guess a number of heads below which nothing counts; a bad guess only widens the ball."""
        q = math.exp(-float(min(self.rate, Fraction(700))))
        # Tilted so that the mean of the sum is m, heads have odds y.
        y = max(q, m / (k + math.hypot(k, m)))
        width = math.sqrt(2 * math.log(2) * flint.ctx.prec) + 4
        return max(0, min(k, m) - k, math.floor((k * y - width * math.sqrt(k * y)) / (1 + y)) - 1)

    def _ratio(self) -> arb:
        return (-ball(self.rate)).exp()


def _binomial(n: int, j: int, p: arb, complement: arb) -> arb:
    """Return C(n, j) p**j (1 - p)**(n - j)."""
    choices = (arb(n + 1).lgamma() - arb(j + 1).lgamma() - arb(n - j + 1).lgamma()).exp()
    return choices * p**j * complement ** (n - j)


def _negative_mass(n: int, k: int, q: arb, gap: arb) -> arb:
    """Return C(n + k - 1, n) (1 - q)**k q**n, the chance that k geometrics of ratio q sum to n."""
    if n < 0:
        return arb(0)
    choices = (arb(n + k).lgamma() - arb(n + 1).lgamma() - arb(k).lgamma()).exp()
    return choices * gap**k * q**n


def _negative_tail(n: int, k: int, q: arb, gap: arb) -> arb:
    """Return the chance that k geometrics of ratio q sum to n or more.

    Claim: it is the chance of fewer than k successes in n + k - 1 trials of chance 1 - q. Summed on the side
    of k on which terms fall.
    """
    if n <= 0:
        return arb(1)
    trials, odds = n + k - 1, gap / q
    if trials * gap < k:  # at least k successes are rarer than not
        first = _binomial(trials, k, gap, q) if k <= trials else arb(0)
        return 1 - falling_sum(first, lambda i: odds * (trials - k - i) / (k + i + 1), trials - k)
    return falling_sum(_binomial(trials, k - 1, gap, q), lambda i: (k - 1 - i) / (odds * (n + 1 + i)), k - 1)


def falling_sum(first: arb, ratio: Callable[[int], arb], last: int) -> arb:
    """Sum terms 0 to last, of which each is `ratio(i)` times the one before, and ratios do not rise."""
    total = term = first
    for i in range(last):
        step = ratio(i)
        if step < 1:
            left = term * step / (1 - step)
            if left.upper() <= total.lower() * arb(2) ** -flint.ctx.prec:
                return total + left.union(arb(0))
        term = term * step
        total += term
    return total
