"""Statistical tests that accuse a correct sampler less than once in a million times.

Each is a pure function that returns the chance of data at least as bad as these under the law claimed, or an
upper bound on it; `judge` compares a group of them with one level, divided among them (Bonferroni).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import mpmath
import numpy as np
from numpy.typing import ArrayLike, NDArray

FALSE_ALARM = 1e-6

Reals = NDArray[np.float64]

# With this many expected in a cell, the tail of chi-square's law is good to a small factor at 1e-6 and below.
LEAST_EXPECTED = 100


@dataclass(frozen=True)
class Finding:
    """How surprising the data are to one test, at most."""

    test: str
    p_value: float


def judge(findings: Sequence[Finding], level: float = FALSE_ALARM) -> list[str]:
    """Return which tests fail; together they accuse a correct sampler with a chance below `level`."""
    return [f"{f.test}: p = {f.p_value:.3g}" for f in findings if f.p_value < level / len(findings)]


def assert_passes(*findings: Finding) -> None:
    failures = judge(findings)
    assert not failures, f"at a false-alarm rate of {FALSE_ALARM:g}: " + "; ".join(failures)


def binomial(test: str, successes: int, trials: int, chance: float, slack: float = 0.0) -> Finding:
    """Test successes ~ Binomial(trials, p) for some p within `slack` of `chance`; exact, two-sided."""
    upper = _upper_tail(successes, trials, min(1.0, chance + slack))
    lower = _upper_tail(trials - successes, trials, min(1.0, 1 - chance + slack))
    return Finding(test, min(1.0, 2 * min(upper, lower)))


def at_most(test: str, successes: int, trials: int, chance: float) -> Finding:
    """Test successes ~ Binomial(trials, p) for some p of at most `chance`; exact, one-sided."""
    return Finding(test, _upper_tail(successes, trials, min(1.0, chance)))


def _upper_tail(least: int, trials: int, chance: float) -> float:
    """Return P(Binomial(trials, chance) >= least), or 1 where it is not below about a half."""
    if least <= trials * chance:
        return 1.0
    if chance == 0:
        return 0.0
    log_first = (
        math.lgamma(trials + 1)
        - math.lgamma(least + 1)
        - math.lgamma(trials - least + 1)
        + least * math.log(chance)
        + (trials - least) * math.log1p(-chance)
    )
    # Each further term is the one before times a ratio below 1 that only falls.
    k = np.arange(least, min(trials, least + 1000 + 40 * math.isqrt(trials)), dtype=np.float64)
    ratios = (trials - k) / (k + 1) * (chance / (1 - chance))
    return math.exp(log_first) * (1 + float(np.cumprod(ratios).sum()))


def chi_square(test: str, counts: ArrayLike, chances: ArrayLike, cells: int = 1 << 30) -> Finding:
    """Test counts ~ Multinomial(chances), by Pearson's statistic.

    Neighbours are pooled until `LEAST_EXPECTED` are expected of each pool, and further to at most `cells`.
    """
    seen, p = np.asarray(counts, np.float64), np.asarray(chances, np.float64)
    assert abs(p.sum() - 1) < 1e-9, f"the cells of {test} have probability {p.sum()}"
    if seen[p == 0].any():
        return Finding(test, 0.0)
    pooled, expected = _pool(seen, seen.sum() * p, max(LEAST_EXPECTED, seen.sum() / cells))
    statistic = float(((pooled - expected) ** 2 / expected).sum())
    freedom = len(expected) - 1
    tail = mpmath.gammainc(freedom / 2, statistic / 2, mpmath.inf, regularized=True) if freedom else 1
    return Finding(test, float(tail))


def _pool(seen: Reals, expected: Reals, least: float) -> tuple[Reals, Reals]:
    """Add up neighbouring cells until `least` is expected of each; what is left over joins the last."""
    ends, pending = [], 0.0
    for cell, hoped in enumerate(expected):
        pending += hoped
        if pending >= least:
            ends.append(cell + 1)
            pending = 0.0
    starts = [0, *ends[:-1]]
    return np.add.reduceat(seen, starts), np.add.reduceat(expected, starts)


def kolmogorov(test: str, share_at_most: ArrayLike, chance_at_most: ArrayLike, trials: int) -> Finding:
    """Test an empirical distribution function at some points.

    By Dvoretzky, Kiefer and Wolfowitz with Massart's constant, whatever the law: it fails where the
    largest distance passes sqrt(ln(2 / level) / (2 trials)).
    """
    distance = np.abs(np.asarray(share_at_most, np.float64) - np.asarray(chance_at_most, np.float64)).max()
    return Finding(test, min(1.0, 2 * math.exp(-2 * trials * float(distance) ** 2)))


def bit_findings(values: NDArray[np.int64], bits: int, slack: float) -> list[Finding]:
    """Test that each of the low bits, and the exclusive or of each two, is a fair coin up to `slack`."""
    planes = [np.packbits((values >> j & 1).astype(np.bool_)) for j in range(bits)]
    heads = {f"bit {j}": planes[j] for j in range(bits)}
    heads |= {f"bits {j} and {k}": planes[j] ^ planes[k] for k in range(bits) for j in range(k)}
    return [
        binomial(test, int(np.bitwise_count(packed).sum(dtype=np.int64)), values.size, 0.5, slack)
        for test, packed in heads.items()
    ]
