"""What tests of keys compare with: laws in 60 digits, and counts of how often each key is shown."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from tests.statistics import Finding, binomial

MP = mpmath.mp.clone()
MP.dps = 60
TINY = MP.mpf(10) ** -45

MANY = 1 << 17

Law = dict[Any, Any]


def real(number: Fraction) -> Any:
    return MP.mpf(number.numerator) / number.denominator


def hockey_stick(p: Law, q: Law, epsilon: Fraction) -> Any:
    e = MP.exp(real(epsilon))
    return sum((max(mass - e * q.get(outcome, 0), MP.mpf(0)) for outcome, mass in p.items()), MP.mpf(0))


def together(laws: Iterable[Law]) -> Law:
    """The law of independent outcomes, seen together."""
    joint: Law = {(): MP.mpf(1)}
    for law in laws:
        joint = {(*o, n): a * b for o, a in joint.items() for n, b in law.items()}
    return joint


def shown_findings(shown: NDArray[Any], levels: int, chances: list[float]) -> list[Finding]:
    """Of keys numbered so that key i has i % levels units, how many of each level are shown."""
    counts = np.bincount(np.asarray(shown) % levels, minlength=levels)
    return [binomial(f"{n} units", int(counts[n]), MANY // levels, chances[n]) for n in range(levels)]


def counts_for(levels: int) -> tuple[NDArray[Any], NDArray[Any]]:
    keys = np.arange(MANY // levels * levels)
    return keys % levels, keys
