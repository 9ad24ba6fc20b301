"""The zero-concentrated loss rho of two finite distributions, between two bounds.

rho is the supremum over alpha > 1 of h(alpha) = K(alpha) / (alpha (alpha - 1)), where K(alpha), the logarithm
of E_P[e**((alpha - 1) L)], is alpha - 1 times the Renyi divergence. It has no closed form and may be reached
anywhere, so the orders are divided into intervals until on each of them h is certainly not above what was
met by more than the gap asked for. Why that is certain: docs/proofs/privacy-loss.md, rho_bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappush, heapreplace

from flint import arb

from discreet.privacy.reals import Bounds, ball, enclose

__all__ = ["Tilt", "search_rho"]

Outcomes = Sequence[tuple[Fraction, Fraction]]

_MOST_INTERVALS = 5000
# What a handful of operations on doubles can lose, many times over.
_ROUNDING = 1e-12
# Below this divergence at order 1 the search would meet doubles that have lost their last places.
_LEAST_SEARCHED = 1e-145


@dataclass(frozen=True)
class Tilt:
    """The law proportional to P**alpha Q**(1 - alpha), over outcomes sorted by ratio, greatest first."""

    outcomes: Outcomes
    alpha: Fraction

    def renyi(self) -> arb:
        """Return K(alpha) / (alpha - 1), for alpha > 1."""
        peak, tilted = self._tilted()
        return peak + sum((weight for _, weight in tilted), arb(0)).log() / ball(self.alpha - 1)

    def kl(self) -> arb:
        """Return the limit of `renyi` as alpha falls to 1."""
        return sum((ball(p) * ball(p / q).log() for p, q in self.outcomes if p), arb(0))

    def variance(self) -> arb:
        """Return the loss's variance under this law: the second derivative of K at alpha."""
        _, tilted = self._tilted()
        total = sum((weight for _, weight in tilted), arb(0))
        mean = sum((weight * loss for loss, weight in tilted), arb(0)) / total
        return sum((weight * (loss - mean) ** 2 for loss, weight in tilted), arb(0)) / total

    def _tilted(self) -> tuple[arb, list[tuple[arb, arb]]]:
        """Return the greatest loss, and each with its weight relative to that, so that no power overflows."""
        losses = [(p, ball(p / q).log()) for p, q in self.outcomes if p]
        peak, power = losses[0][1], ball(self.alpha - 1)
        return peak, [(loss, ball(p) * (power * (loss - peak)).exp()) for p, loss in losses]


@dataclass(frozen=True)
class _Order:
    """What is known at one order: h between two bounds, and K'' from below."""

    alpha: float
    lower: float
    upper: float
    curvature: float

    @classmethod
    def at(cls, outcomes: Outcomes, alpha: float) -> _Order:
        tilt = Tilt(outcomes, Fraction(alpha))
        divergence = enclose(tilt.renyi if alpha > 1 else tilt.kl)
        lower, upper = divergence.lower / alpha, divergence.upper / alpha
        return cls(
            alpha,
            math.nextafter(lower, 0.0),
            math.nextafter(upper, math.inf),
            max(0.0, enclose(tilt.variance).lower),
        )


def search_rho(outcomes: Outcomes, relative: float = 1e-6) -> Bounds:
    """Bound rho for outcomes sorted by ratio, greatest first; all ratios are finite.

    Claim: the bounds enclose it, and are within `relative` of each other unless the search gives up after
    5,000 intervals, or the divergence is below 1e-145, where doubles hold too little to search with.
    """
    possible = [(p, q) for p, q in outcomes if p]
    if len(possible) == 1:
        # A lone possible outcome has the same divergence at every order.
        return enclose(Tilt(possible, Fraction(1)).kl)

    def width() -> arb:
        return ball(possible[0][0] / possible[0][1] / (possible[-1][0] / possible[-1][1])).log()

    greatest = max(0.0, enclose(lambda: ball(possible[0][0] / possible[0][1]).log()).upper)
    spread = enclose(width).upper
    start = _Order.at(possible, 1.0)
    if start.lower < _LEAST_SEARCHED:
        return Bounds(start.lower, min(greatest, max(start.upper, enclose(lambda: width() ** 2 / 8).upper)))
    # From here on h is at most greatest / alpha, no more than h(1).
    end = _Order.at(possible, max(2.0, math.ceil(greatest / start.lower) + 1.0))
    lower = max(start.lower, end.lower)

    def interval(a: _Order, b: _Order) -> tuple[float, float, _Order, _Order]:
        most = min(_most_between(a, b, spread), math.nextafter(greatest / a.alpha, math.inf))
        return -most, a.alpha, a, b

    # The interval that may hold the most is divided first.
    todo = [interval(start, end)]
    for _ in range(_MOST_INTERVALS):
        most, _, a, b = todo[0]
        middle = _between(a.alpha, b.alpha)
        if -most <= lower * (1 + relative) or not a.alpha < middle < b.alpha:
            break
        between = _Order.at(possible, middle)
        lower = max(lower, between.lower)
        heapreplace(todo, interval(a, between))
        heappush(todo, interval(between, b))
    return Bounds(lower, max(start.upper, -todo[0][0]))


def _between(a: float, b: float) -> float:
    return 1 + math.sqrt(a - 1) * math.sqrt(b - 1) if a > 1 else 1 + (b - 1) / 16


def _most_between(a: _Order, b: _Order, spread: float) -> float:
    """Return a double not below h(alpha) for any alpha from a to b."""
    most = max(a.upper, b.upper)
    curvature = math.sqrt(a.curvature) * math.sqrt(b.curvature)
    curvature *= math.exp(-spread * (b.alpha - a.alpha) / 2) * (1 - _ROUNDING)
    bend = (math.sqrt(b.alpha - 1) - math.sqrt(a.alpha - 1)) ** 2 / a.alpha * (1 + _ROUNDING)
    return math.nextafter(most + max(0.0, most - curvature / 2) * bend * (1 + _ROUNDING), math.inf)
