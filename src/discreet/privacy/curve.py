"""What is read off a pair of output distributions: certified bounds on every figure.

Write H(eps) for the hockey-stick divergence: P's mass less e**eps times Q's, on the outcomes whose loss
exceeds eps. It is convex and falls in e**eps. Its inverse and the trade-off curve are found by closing in on
the zero of a falling function, so what they return is bracketed. Proofs: docs/proofs/privacy-loss.md.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from flint import arb

from discreet.privacy.pairs import Pair
from discreet.privacy.reals import Bounds, Real, as_ball, ball, enclose, precision

__all__ = [
    "delta_bounds",
    "epsilon_bounds",
    "hockey_stick",
    "kl_bounds",
    "max_divergence_bounds",
    "renyi_bounds",
    "rho_bounds",
    "satisfies",
    "tradeoff_bounds",
]

_EVERYTHING = Bounds(math.inf, math.inf)
_NOTHING = Bounds(0.0, 0.0)
_SIGN_BITS = (96, 192, 384, 768, 1536)
# Of a bracket of neighbouring doubles, so that a slope of e**eps is known to about 1e-28.
_EXTRA_HALVINGS = 40


def hockey_stick(pair: Pair, epsilon: Fraction) -> Real:
    """Return H(epsilon): exact where it is rational, else a ball at the current precision."""
    under_p, under_q = pair.above(epsilon)
    if under_q == 0:
        return under_p
    if epsilon == 0 and isinstance(under_p, Fraction) and isinstance(under_q, Fraction):
        return under_p - under_q
    mass = as_ball(under_p)
    surplus = mass - ball(epsilon).exp() * as_ball(under_q)
    # Where e**epsilon is too large, or Q too small, for balls: on these outcomes e**epsilon Q is at most P.
    return surplus if surplus.rad() <= mass.upper() else mass.union(arb(0))


def delta_bounds(pair: Pair, epsilon: Fraction) -> Bounds:
    """Bound H(epsilon), for any real epsilon."""
    bounds = enclose(lambda: hockey_stick(pair, epsilon))
    return Bounds(max(0.0, bounds.lower), min(1.0, bounds.upper))


def satisfies(pair: Pair, epsilon: Fraction, delta: Fraction) -> bool:
    """Tell whether H(epsilon) <= delta; where that cannot be decided, no."""
    return _sign(lambda: _less(hockey_stick(pair, epsilon), delta)) in (-1, 0)


def _less(value: Real, exact: Fraction) -> arb:
    """Return value - exact, without a radius where both are rational."""
    return ball(value - exact) if isinstance(value, Fraction) else value - ball(exact)


def max_divergence_bounds(pair: Pair) -> Bounds:
    """Bound the greatest loss; infinite where an outcome of P is impossible under Q, or there is none."""
    return _EVERYTHING if pair.escaped() else _at_least_zero(_bounds_of(pair.greatest) or _EVERYTHING)


def _bounds_of(figure: Callable[[], Real | None]) -> Bounds | None:
    """Enclose a figure that some pairs do not have."""
    with precision(_SIGN_BITS[0]):
        if figure() is None:
            return None

    def value() -> Real:
        found = figure()
        assert found is not None
        return found

    return enclose(value)


def kl_bounds(pair: Pair) -> Bounds:
    """Bound the Kullback-Leibler divergence of P from Q."""
    return _EVERYTHING if pair.escaped() else _at_least_zero(enclose(pair.kl))


def renyi_bounds(pair: Pair, alpha: Fraction) -> Bounds:
    """Bound the Renyi divergence of order alpha > 1."""
    return _EVERYTHING if pair.escaped() else _at_least_zero(enclose(lambda: pair.renyi(alpha)))


def rho_bounds(pair: Pair) -> Bounds:
    """Bound the supremum over alpha > 1 of renyi(alpha) / alpha."""
    return _EVERYTHING if pair.escaped() else _at_least_zero(pair.rho_bounds())


def _at_least_zero(bounds: Bounds) -> Bounds:
    return Bounds(max(0.0, bounds.lower), max(0.0, bounds.upper))


# --- the inverse of H, and the trade-off curve ----------------------------------------------------


def epsilon_bounds(pair: Pair, delta: Fraction) -> Bounds:
    """Bound the least epsilon >= 0 with H(epsilon) <= delta."""
    if pair.escaped() > delta:
        return _EVERYTHING
    greatest = _at_least_zero(_bounds_of(pair.greatest) or _EVERYTHING)
    if pair.escaped() == delta:
        return greatest

    def excess(epsilon: Fraction) -> int | None:
        return _sign(lambda: _less(hockey_stick(pair, epsilon), delta))

    if excess(Fraction(0)) in (-1, 0):
        return _NOTHING
    # One double further, because `greatest` may be exact as a decimal and a little less in binary.
    bracket = _zero_between(excess, 0.0, math.nextafter(greatest.upper, math.inf))
    # Read as shortest decimals, which elsewhere is what a float means, the two must still enclose it.
    return Bounds(max(0.0, _decimal_below(bracket.low)), _decimal_above(bracket.high))


def _decimal_below(x: float) -> float:
    return x if math.isinf(x) or Fraction(repr(x)) <= Fraction(x) else math.nextafter(x, -math.inf)


def _decimal_above(x: float) -> float:
    return -_decimal_below(-x)


def tradeoff_bounds(pair: Pair, fpr: Fraction) -> Bounds:
    """Bound the least false-negative rate of a test of Q (null) against P at this false-positive rate.

    Claim: the greatest true-positive rate is a concave curve through (Q(L > eps), P(L > eps)) for every eps,
    where its slope passes e**eps. Between two of these points it is above their chord, and below the lines
    of slope e**eps through them.
    """
    if fpr == 0:
        return enclose(lambda: 1 - pair.escaped())
    if fpr == 1:
        return _NOTHING
    if pair.escaped() == 0 and _is_nothing(pair.greatest):
        return enclose(lambda: 1 - fpr)

    def surplus(point: Fraction) -> int | None:
        return _sign(lambda: _less(pair.above(point)[1], fpr))

    bracket = _zero_between(surplus, -math.inf, math.inf)
    if bracket.low == bracket.high:
        return _as_rate(enclose(lambda: 1 - pair.above(Fraction(bracket.low))[0]))
    low, high = _narrowed(surplus, bracket)

    def chord() -> arb:
        (a, b), (c, d) = _corner(pair, high), _corner(pair, low)
        return 1 - b - (d - b) * (ball(fpr) - a) / (c - a)

    def line_through(point: Fraction) -> Callable[[], arb]:
        def line() -> arb:
            x, y = _corner(pair, point)
            return 1 - y - ball(point).exp() * (ball(fpr) - x)

        return line

    lines = [enclose(line_through(end)) for end in (low, high) if isinstance(end, Fraction)]
    return _as_rate(Bounds(max((line.lower for line in lines), default=0.0), enclose(chord).upper))


def _is_nothing(figure: Callable[[], Real | None]) -> bool:
    """Tell whether a figure is exactly zero: if no loss is above zero, the distributions are the same."""
    with precision(_SIGN_BITS[0]):
        found = figure()
    return isinstance(found, Fraction) and found == 0


def _as_rate(bounds: Bounds) -> Bounds:
    return Bounds(max(0.0, bounds.lower), min(1.0, max(0.0, bounds.upper)))


def _corner(pair: Pair, epsilon: Fraction | float) -> tuple[arb, arb]:
    """Return the false- and true-positive rates of the test "the loss exceeds epsilon" (or infinity)."""
    if isinstance(epsilon, float):
        return (arb(0), ball(pair.escaped())) if epsilon > 0 else (arb(1), arb(1))
    under_p, under_q = pair.above(epsilon)
    return as_ball(under_q), as_ball(under_p)


def _narrowed(
    sign: Callable[[Fraction], int | None], bracket: _Bracket
) -> tuple[Fraction | float, Fraction | float]:
    """Halve a bracket between doubles further, so that the lines through its ends hardly differ."""
    if math.isinf(bracket.low) or math.isinf(bracket.high):
        low, high = bracket
        return low if math.isinf(low) else Fraction(low), high if math.isinf(high) else Fraction(high)
    left, right = Fraction(bracket.low), Fraction(bracket.high)
    for _ in range(_EXTRA_HALVINGS):
        middle = (left + right) / 2
        found = sign(middle)
        if found is None:
            break
        left, right = (middle, right) if found > 0 else (left, middle)
    return left, right


class _Bracket(NamedTuple):
    low: float
    high: float


def _zero_between(sign: Callable[[Fraction], int | None], low: float, high: float) -> _Bracket:
    """Close in on the zero of a falling function, given that it is between low and high.

    Claim: it still is on return, and the two are neighbouring doubles, or one (the zero itself), unless the
    sign could not be told somewhere. Each step halves the number of doubles between them, so that none of the
    function's scales is out of reach of 64 steps.
    """
    left, right = _rank(low), _rank(high)
    while right - left > 1:
        middle = (left + right) // 2
        found = sign(Fraction(_double(middle)))
        if found == 0:
            return _Bracket(_double(middle), _double(middle))
        if found is None:
            left = middle - 1 if middle - 1 > left and sign(Fraction(_double(middle - 1))) == 1 else left
            right = middle + 1 if middle + 1 < right and sign(Fraction(_double(middle + 1))) == -1 else right
            break
        left, right = (middle, right) if found > 0 else (left, middle)
    return _Bracket(_double(left), _double(right))


def _rank(x: float) -> int:
    """Number the doubles in their order, zero at zero."""
    (magnitude,) = struct.unpack("<q", struct.pack("<d", abs(x)))
    return int(math.copysign(1, x)) * int(magnitude)


def _double(rank: int) -> float:
    (magnitude,) = struct.unpack("<d", struct.pack("<q", abs(rank)))
    return math.copysign(float(magnitude), rank)


def _sign(value: Callable[[], arb]) -> int | None:
    """Return the sign of a real, or None if it is too close to zero to tell."""
    for bits in _SIGN_BITS:
        with precision(bits):
            found = value()
            if found > 0:
                return 1
            if found < 0:
                return -1
            if found.is_zero():
                return 0
    return None
