"""What is read off a pair of output distributions: certified bounds on every figure.

Write H(eps) for the hockey-stick divergence: P's mass less e**eps times Q's, on the outcomes whose loss
exceeds eps. It is convex and falls in e**eps, and everything below rests on evaluating it as a ball at
well-chosen points: any point gives a valid one-sided bound, so the search for good points may be careless.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from discreet.privacy.pairs import Pair
from discreet.privacy.reals import Bounds, Real, ball, enclose, precision

__all__ = [
    "delta_bounds",
    "epsilon_bounds",
    "hockey_stick",
    "kl_bounds",
    "max_divergence_bounds",
    "renyi_bounds",
    "rho_bounds",
    "tradeoff_bounds",
]

_EVERYTHING = Bounds(math.inf, math.inf)
_SIGN_BITS = (96, 192, 384, 768, 1536)
_LEAST_DOUBLE, _GREATEST_DOUBLE = 5e-324, 1.7976931348623157e308


def hockey_stick(pair: Pair, epsilon: Fraction) -> arb:
    """Return H(epsilon) as a ball at the current precision."""
    under_p, under_q = pair.above(epsilon)
    return under_p - ball(epsilon).exp() * under_q


def delta_bounds(pair: Pair, epsilon: Fraction) -> Bounds:
    """Bound H(epsilon), for any real epsilon."""
    bounds = enclose(lambda: hockey_stick(pair, epsilon))
    return Bounds(max(0.0, bounds.lower), min(1.0, bounds.upper))


def max_divergence_bounds(pair: Pair) -> Bounds:
    """Bound the greatest loss; infinite where an outcome of P is impossible under Q."""
    if pair.escaped() or not _has(pair.greatest):
        return _EVERYTHING
    return enclose(_value_of(pair.greatest))


def _has(figure: Callable[[], Real | None]) -> bool:
    with precision(_SIGN_BITS[0]):
        return figure() is not None


def _value_of(figure: Callable[[], Real | None]) -> Callable[[], Real]:
    def value() -> Real:
        found = figure()
        assert found is not None
        return found

    return value


def kl_bounds(pair: Pair) -> Bounds:
    """Bound the Kullback-Leibler divergence of P from Q."""
    return _EVERYTHING if pair.escaped() else _at_least_zero(enclose(pair.kl))


def renyi_bounds(pair: Pair, alpha: Fraction) -> Bounds:
    """Bound the Renyi divergence of order alpha > 1."""
    return _EVERYTHING if pair.escaped() else _at_least_zero(enclose(lambda: pair.renyi(alpha)))


def _at_least_zero(bounds: Bounds) -> Bounds:
    return Bounds(max(0.0, bounds.lower), max(0.0, bounds.upper))


def epsilon_bounds(pair: Pair, delta: Fraction) -> Bounds:
    """Bound the least epsilon >= 0 with H(epsilon) <= delta."""
    if pair.escaped() > delta:
        return _EVERYTHING
    greatest = enclose(_value_of(pair.greatest)) if _has(pair.greatest) else _EVERYTHING
    if pair.escaped() == delta:
        return _at_least_zero(greatest)

    def excess(epsilon: float) -> int | None:
        point = Fraction(epsilon)
        return _sign(lambda: hockey_stick(pair, point) - ball(delta))

    if excess(0.0) in (-1, 0):
        return Bounds(0.0, 0.0)
    low, high = 0.0, greatest.upper
    if math.isinf(high):
        high = 1.0
        while excess(high) != -1:
            low, high = high, 2 * high
            if math.isinf(high):
                return Bounds(low, high)
    low, high = _bisect(excess, low, high)
    # Read as shortest decimals, which elsewhere is what a float means, the two must still enclose it.
    return Bounds(max(0.0, _decimal_below(low)), _decimal_above(high))


def _decimal_below(x: float) -> float:
    return x if Fraction(repr(x)) <= Fraction(x) else math.nextafter(x, -math.inf)


def _decimal_above(x: float) -> float:
    return -_decimal_below(-x)


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


def _bisect(sign: Callable[[float], int | None], low: float, high: float) -> tuple[float, float]:
    """Close in on the zero of a falling function, given that it lies between low and high.

    Claim: it still does on return, and the two are neighbouring doubles unless the sign could not be told
    there. Bisection is on a logarithmic scale until the two have the same binary exponent.
    """
    while True:
        middle = _between(low, high)
        if not low < middle < high:
            return low, high
        found = sign(middle)
        if found is None:
            return _step_around(sign, low, middle, high)
        if found > 0:
            low = middle
        else:
            high = middle


def _between(low: float, high: float) -> float:
    if low == 0.0:
        low = min(_LEAST_DOUBLE, high)
        return low if low < high and high < 4 * _LEAST_DOUBLE else math.sqrt(low) * math.sqrt(high)
    return math.sqrt(low) * math.sqrt(high) if high > 4 * low else low + (high - low) / 2


def _step_around(
    sign: Callable[[float], int | None], low: float, middle: float, high: float
) -> tuple[float, float]:
    """Narrow (low, high) around a point too close to the zero for its sign to be told."""
    below, above = math.nextafter(middle, -math.inf), math.nextafter(middle, math.inf)
    return (
        max(low, below) if sign(below) == 1 else low,
        min(high, above) if sign(above) == -1 else high,
    )


def tradeoff_bounds(pair: Pair, fpr: Fraction) -> Bounds:
    """Bound the least false-negative rate of a test of Q (null) against P at this false-positive rate.

    It is the maximum over t = e**eps of 1 - H(eps) - t fpr, a concave function of t with slope
    Q(L > eps) - fpr. Each eps bounds it from below; and as the slope is at most 1, it exceeds the
    value on the left of the maximum by no more than the bracket of t is wide.
    """
    escaped = pair.escaped()
    if fpr >= 1:
        return Bounds(0.0, 0.0)
    if fpr == 0:
        return enclose(lambda: ball(1 - escaped)) if escaped < 1 else Bounds(0.0, 0.0)

    def slope(epsilon: float) -> int | None:
        point = Fraction(epsilon)
        return _sign(lambda: pair.above(point)[1] - ball(fpr))

    high = 1.0
    while slope(high) == 1 and high < 2.0**20:
        high *= 2
    low = -1.0
    while slope(low) == -1 and low > -(2.0**20):
        low *= 2
    while low < (middle := low + (high - low) / 2) < high and high - low > 2.0**-60:
        if slope(middle) == 1:
            low = middle
        else:
            high = middle
    below, above = Fraction(low), Fraction(high)

    def missed(point: Fraction) -> arb:
        return 1 - hockey_stick(pair, point) - ball(point).exp() * ball(fpr)

    lower = max(enclose(lambda: missed(below)).lower, enclose(lambda: missed(above)).lower)
    upper = enclose(lambda: missed(below) + ball(above).exp() - ball(below).exp()).upper
    return Bounds(max(0.0, lower), max(0.0, min(upper, 1.0)))


def rho_bounds(pair: Pair, relative: float = 1e-6) -> Bounds:
    """Bound the supremum over alpha > 1 of renyi(alpha) / alpha; to a relative gap where it has no closed form.

    K(alpha) = (alpha - 1) renyi(alpha) is convex, so between a and b it is below its chord; alpha (alpha - 1)
    is convex too, so it is above its tangent at the midpoint, and a quotient of two lines is largest at an
    end. That bounds the quotient on [a, b] by its value at an end, times 1 + O((b - a)**2). On [1, b] the
    divergence is at most renyi(b), and from a on the quotient is at most max_divergence / a.
    """
    if pair.escaped():
        return _EVERYTHING
    if _has(pair.rho):
        return _at_least_zero(enclose(_value_of(pair.rho)))
    greatest, mean = max_divergence_bounds(pair).upper, kl_bounds(pair)
    if mean.lower == 0.0:
        return Bounds(0.0, greatest)
    lower, upper = mean
    known = {1.0: mean}
    last = max(2.0, math.ceil(greatest / mean.lower))
    todo = [(1.0, last)]
    upper = max(upper, math.nextafter(greatest / last, math.inf))
    while todo:
        a, b = todo.pop()
        for alpha in (a, b):
            if alpha not in known:
                known[alpha] = renyi_bounds(pair, Fraction(alpha))
                lower = max(lower, math.nextafter(known[alpha].lower / alpha, 0.0))
        most = _most_between(a, known[a].upper, b, known[b].upper)
        if most <= lower * (1 + relative):
            upper = max(upper, most)
        else:
            middle = 1 + math.sqrt((a - 1) * (b - 1)) if a > 1 else 1 + (b - 1) / 16
            todo += [(a, middle), (middle, b)]
    return Bounds(lower, upper)


def _most_between(a: float, renyi_a: float, b: float, renyi_b: float) -> float:
    """Return a double not below the supremum of renyi(alpha) / alpha for alpha from a to b."""
    if a == 1.0:
        return renyi_b
    exact_a, exact_b = Fraction(a), Fraction(b)
    slack = ((exact_b - exact_a) / 2) ** 2
    ends = [(exact_a, renyi_a), (exact_b, renyi_b)]
    if exact_a * (exact_a - 1) <= slack:
        return math.inf
    return max(
        math.nextafter(float(Fraction(renyi) * (alpha - 1) / (alpha * (alpha - 1) - slack)), math.inf)
        for alpha, renyi in ends
    )
