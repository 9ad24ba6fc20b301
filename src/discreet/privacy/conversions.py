"""What zero-concentrated privacy implies in epsilon and delta, by the best bound from one Renyi order.

For an order alpha <= 1/delta, the best tangents give the exact answer to what that order implies of P against
Q (Asoodeh, Liao, Calmon, Kosut and Sankar 2021 have it as a program in two variables; the form here, by two
tangents, is in docs/proofs/guarantees.md); no order above 1/delta is as good as 1/delta. Any order is valid
and so are any tangents, so the search for good ones may be careless: a conversion is certified at the numbers
that the search ends with. With the lower tangent left out (y infinite) it is proposition 12 of Canonne,
Kamath and Steinke 2020; the gain over that is small for a small delta, and percents for a large one. Where
delta is large, one order and one direction say less than an (epsilon, delta) promise does that follows from
them, in both directions; so the best that follows from any of those is taken too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from discreet.privacy import curve
from discreet.privacy.pairs import PromisePair
from discreet.privacy.reals import ball, enclose

__all__ = ["delta_from_rho", "epsilon_from_rho"]

# Beyond this, e to it drowns every improvement on y = infinity.
_GREATEST_LOG_MOMENT = 50.0
_GOLDEN = (math.sqrt(5) - 1) / 2
# A detour over another promise helps where the bound is steeper than that promise's curve, of about a half.
_STEEP = 0.25
_VIA, _VIA_ROUNDS = 12, 12


def epsilon_from_rho(rho: Fraction, delta: Fraction) -> float:
    """Return an epsilon, rounded up, such that every rho-zCDP mechanism is (epsilon, delta)-DP."""
    if rho == 0:
        return 0.0
    if delta == 0:
        return math.inf
    found = _epsilon_at_once(rho, delta)
    if found == 0.0 or not _is_steep(rho, float(delta)):
        return found

    def via(share: float) -> float:
        """A smaller delta first, and from that promise to this delta."""
        first = delta * Fraction(share)
        return curve.epsilon_bounds(_promised(rho, first), delta).upper

    return min(found, _least_of(via))


def _epsilon_at_once(rho: Fraction, delta: Fraction) -> float:
    """Return the epsilon that one order implies, rounded up, for 0 < delta."""
    plain = _root(lambda gap: _float(rho) * gap * gap + _log(delta) + math.log1p(gap))
    found = enclose(lambda: _plain_epsilon(rho, delta, Fraction(plain))).upper
    if _log_moment(_float(rho), plain) < _GREATEST_LOG_MOMENT:
        gap, y, _ = _best_tangents(_float(rho), _log(delta), plain)
        found = min(found, _certified_epsilon(rho, delta, gap, y))
    return max(0.0, found)


def delta_from_rho(rho: Fraction, epsilon: Fraction) -> float:
    """Return a delta, rounded up and at most 1, such that every rho-zCDP mechanism is (epsilon, delta)-DP."""
    if rho == 0:
        return 0.0
    found = _delta_at_once(rho, epsilon)
    if not _is_steep(rho, found):
        return found

    def via(share: float) -> float:
        """A smaller delta first, and from that promise to this epsilon."""
        first = Fraction(found) * Fraction(share)
        return curve.delta_bounds(_promised(rho, first), epsilon).upper

    return min(found, _least_of(via))


def _delta_at_once(rho: Fraction, epsilon: Fraction) -> float:
    """Return the delta that one order implies, rounded up and at most 1."""
    bound, size = _float(epsilon), _float(rho)
    plain = _root(lambda gap: (2 * gap + 1) * size - bound - math.log1p(1 / gap))
    found = min(1.0, enclose(lambda: _plain_delta(rho, epsilon, Fraction(plain))).upper)
    if found < 1e-15 or _log_moment(size, plain) >= _GREATEST_LOG_MOMENT:
        return found
    log_delta = _falls_to(lambda log: _best_tangents(size, log, plain)[2], bound, math.log(found) - 1e-9)
    gap, y, _ = _best_tangents(size, log_delta, plain)
    for slack in (1e-13, 1e-10, 1e-7, 1e-4):
        delta = math.exp(log_delta) * (1 + slack)
        # What holds at the lesser reading of the float holds at both.
        if _certified_epsilon(rho, min(Fraction(delta), Fraction(repr(delta))), gap, y) <= epsilon:
            return min(found, delta)
    return found


def _is_steep(rho: Fraction, delta: float) -> bool:
    """Tell whether delta may fall by more than `_STEEP` a nat: by about its gap, from proposition 12."""
    if delta == 0.0:
        return False
    return delta * (1 + math.sqrt(max(0.0, -math.log(delta)) / _float(rho))) > _STEEP


def _least_of(via: Callable[[float], float]) -> float:
    """Return the least value met for shares between 0 and 1, on a grid and around its best point."""

    def at(logit: float) -> float:
        return via(1 / (1 + math.exp(-logit)))

    grid = [-8 + 16 * i / _VIA for i in range(_VIA + 1)]
    values = [at(point) for point in grid]
    best = values.index(min(values))
    low, high = grid[max(0, best - 1)], grid[min(_VIA, best + 1)]
    return min(values[best], _golden(at, low, high, _VIA_ROUNDS)[1])


def _promised(rho: Fraction, delta: Fraction) -> PromisePair:
    """Return the worst pair of the promise that one order gives at this delta."""
    epsilon = _epsilon_at_once(rho, delta)
    if math.isinf(epsilon):
        return PromisePair(Fraction(0), Fraction(1))
    return PromisePair(max(Fraction(epsilon), Fraction(repr(epsilon))), delta)


# --- the bounds, as balls: alpha is 1 + gap -------------------------------------------------------


def _plain_epsilon(rho: Fraction, delta: Fraction, gap: Fraction) -> arb:
    order = ball(1 + gap)
    return order * ball(rho) + (ball(gap) / order).log() - (ball(delta) * order).log() / ball(gap)


def _plain_delta(rho: Fraction, epsilon: Fraction, gap: Fraction) -> arb:
    order = ball(1 + gap)
    return (ball(gap * ((1 + gap) * rho - epsilon)) + order * (ball(gap) / order).log()).exp() / ball(gap)


def _certified_epsilon(rho: Fraction, delta: Fraction, gap: float, y: float) -> float:
    return enclose(lambda: _tangent_epsilon(rho, delta, Fraction(gap), Fraction(y))).upper


def _tangent_epsilon(rho: Fraction, delta: Fraction, gap: Fraction, y: Fraction) -> arb:
    """Tangents at the ratios r = e**-y (of what is missed) and s (of what is caught), which delta fixes.

    Claim: for all gap > 0 and real y, rho-zCDP implies (this, delta)-DP. While rho > 0, rest and rise are
    positive: a ball of theirs that is not, or one that is not finite, becomes an infinite epsilon.
    """
    order, step = ball(1 + gap), ball(gap)
    low, low_next = (-ball(gap * y)).exp(), (-ball((1 + gap) * y)).exp()  # r**(alpha - 1) and r**alpha
    rest = ball(gap * (1 + gap) * rho).exp() - order * low + step * low_next
    rise = rest / (order * ball(delta))
    high = low + rise  # s**(alpha - 1)
    high_next = high * (high.log() / step).exp()
    return (step / order * (high_next - low_next) / rise).log()


# --- looking for good tangents, in floats ---------------------------------------------------------


def _float(number: Fraction) -> float:
    return float(min(max(number, Fraction(1, 10**300)), Fraction(10**300))) if number else 0.0


def _log(number: Fraction) -> float:
    return math.log(number.numerator) - math.log(number.denominator)


def _log_moment(rho: float, gap: float) -> float:
    return gap * (1 + gap) * rho


def _root(rising: Callable[[float], float]) -> float:
    """Return a positive number near which a rising function changes its sign."""
    low, high = -400.0, 400.0
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(math.exp(middle)) > 0 else (middle, high)
    return math.exp(middle)


def _best_tangents(rho: float, log_delta: float, plain: float) -> tuple[float, float, float]:
    """Return (gap, y, epsilon) for the least epsilon found near a gap that is best for y = infinity."""

    def at(gap: float) -> tuple[float, float]:
        return _golden(
            lambda log: _tangent_estimate(rho, log_delta, gap, math.exp(log) / (1 + gap)), -14.0, 4.0
        )

    log, epsilon = _golden(lambda log: at(plain * math.exp(log))[1], -8.0, 1.0)
    gap = plain * math.exp(log)
    return gap, math.exp(at(gap)[0]) / (1 + gap), epsilon


def _tangent_estimate(rho: float, log_delta: float, gap: float, y: float) -> float:
    """`_tangent_epsilon` in floats, written so that little cancels."""
    order, log_moment = 1 + gap, _log_moment(rho, gap)
    if log_moment > 2 * _GREATEST_LOG_MOMENT:
        return math.inf
    low, short = math.exp(-gap * y), -math.expm1(-y)
    rest = math.expm1(log_moment) - math.expm1(math.log1p(gap * short) - gap * y)
    log_rise = math.log(rest) - math.log(order) - log_delta if rest > 0 else math.inf
    if log_rise > 600:
        return math.inf
    rise = math.exp(log_rise)
    log_high = math.log(low + rise) / gap
    if log_high > 600:
        return math.inf
    excess = ((low + rise) * math.expm1(log_high) + low * short) / rise
    # It is above -1, but for what cancels where delta is near 1.
    return math.log(gap / order) + math.log1p(excess) if excess > -1 else math.inf


def _golden(
    value: Callable[[float], float], low: float, high: float, rounds: int = 32
) -> tuple[float, float]:
    """Return a point between low and high at which `value` is nearly least, and its value."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = value(left), value(right)
    for _ in range(rounds):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = value(right)
    return (left, at_left) if at_left <= at_right else (right, at_right)


def _falls_to(falling: Callable[[float], float], target: float, high: float) -> float:
    """Return a point at or below `high` near which a falling function passes a target."""
    step, above, below = 0.01, high, high
    at_below = falling(high) - target
    at_above = at_below
    if at_below >= 0:
        return high
    while at_above < 0:
        above, step = above - step, 4 * step
        at_above = falling(above) - target
    for _ in range(12):  # the secant through both ends, the kept end's value halved (Illinois)
        middle = above + (below - above) * at_above / (at_above - at_below)
        found = falling(middle) - target
        if abs(found) <= 1e-13 * max(1e-3, abs(target)):
            return middle
        if found < 0:
            below, at_below, at_above = middle, found, at_above / 2
        else:
            above, at_above, at_below = middle, found, at_below / 2
    return below
