"""What randomised reports say about how many people gave each answer: estimates, and certified errors.

The number of reports of an answer that N of n people have is Binomial(N, truth) + Binomial(n - N, lie). All
bounds here are on that law, and err to the side of saying too little. Proofs: docs/proofs/response.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.mechanisms.search import greatest_whole
from discreet.numbers import Exactable, probability
from discreet.privacy.reals import ball, enclose

__all__ = ["Estimate", "read_failure", "reports_tail", "reports_variances", "worst_tails"]

# True counts are grouped into at most this many ranges, for up to this many people.
_RANGES, _MOST_BY_RANGES = 512, 20_000
# Shevtsova 2010: the Berry-Esseen constant for independent summands, not alike.
_BERRY_ESSEEN = Fraction(56, 100)
# Limits of a population's share are found to this part of a whole.
_POPULATION_STEPS = 1 << 30
# What is printed: so many answers, each with an error that either side exceeds as rarely as this.
_MOST_SHOWN, _RARE_SHOWN = 8, Fraction(1, 40)


@dataclass(frozen=True, repr=False)
class Estimate:
    """What reports say about how many people gave each answer, `reports` being how many reported each.

    Claim: given the true answers, the estimates are unbiased: their means over the coins are the true counts.
    They are exact fractions, and may be negative; `consistent` repairs that at the price of a bias.
    """

    truth: Fraction
    lie: Fraction
    reports: tuple[int, ...]
    answers: tuple[str, ...] | None = None

    @property
    def n(self) -> int:
        """How many people reported."""
        return sum(self.reports)

    @property
    def counts(self) -> tuple[Fraction, ...]:
        """The estimated number of people with each answer: (reports - n lie) / (truth - lie)."""
        return tuple(self.n * share for share in self.proportions)

    @property
    def proportions(self) -> tuple[Fraction, ...]:
        """The estimated share of people with each answer."""
        return tuple(map(self._share, self.reports))

    @property
    def values(self) -> tuple[float, ...]:
        """The estimated shares, as floats."""
        return tuple(map(float, self.proportions))

    @property
    def standard_errors(self) -> tuple[float, ...]:
        """The standard deviation of each estimated share over the coins, rounded up.

        It is estimated where k > 2, at the estimated count brought into [0, n]; with two answers it is known.
        """
        yes, no = reports_variances(self.truth, self.lie)
        n, gap = self.n, self.truth - self.lie

        def deviation(count: Fraction) -> arb:
            inside = min(max(count, Fraction(0)), Fraction(n))
            return ball(inside * yes + (n - inside) * no).sqrt() / ball(n * gap)

        return tuple(enclose(lambda c=c: deviation(c)).upper for c in self.counts)  # type: ignore[misc]

    def interval(
        self, confidence: Exactable = 0.95, *, population: bool = False
    ) -> tuple[tuple[float, float], ...]:
        """Return for each answer limits of its true share, each on its own with this confidence at least.

        Claim: whatever the true answers of these n people, over the coins alone the limits hold their share
        with at least this probability: they are the counts N at which neither so many reports nor so few are
        rarer than (1 - confidence) / 2, by the exact law of Binomial(N, truth) + Binomial(n - N, lie). With
        `population=True` they hold the share in a population of which the n people are independent draws, and
        both the coins and who was drawn are random (Clopper and Pearson 1934).
        """
        rare = read_failure(confidence) / 2
        limits = [self._limits(r, rare, population) for r in self.reports]
        return tuple((-_up(-low), _up(high)) for low, high in limits)

    def error(self, confidence: Exactable = 0.95) -> tuple[float, ...]:
        """Return for each answer e such that its estimated share is within e of the truth, of these n people.

        Claim: the interval's, measured from the estimate: it holds whenever the interval does.
        """
        rare = read_failure(confidence) / 2
        return tuple(_up(self._error(r, rare)) for r in self.reports)

    def consistent(self) -> tuple[Fraction, ...]:
        """Return the possible shares, none negative and 1 in all, that are nearest to the estimates in l2.

        Claim: they are never farther from the true shares, in l2, than the estimates are; post-processing.
        """
        total, surplus = Fraction(0), Fraction(0)
        for place, share in enumerate(sorted(self.proportions, reverse=True), 1):
            total += share
            if share > (total - 1) / place:
                surplus = (total - 1) / place
        return tuple(max(share - surplus, Fraction(0)) for share in self.proportions)

    def _share(self, reports: int) -> Fraction:
        return (Fraction(reports, self.n) - self.lie) / (self.truth - self.lie)

    def _error(self, reports: int, rare: Fraction) -> Fraction:
        low, high = self._limits(reports, rare, False)
        return max(high - self._share(reports), self._share(reports) - low)

    def _limits(self, reports: int, rare: Fraction, population: bool) -> tuple[Fraction, Fraction]:
        """Return the shares of an answer at which neither side is certainly rarer than `rare`."""
        n, p, q = self.n, self.truth, self.lie
        steps = _POPULATION_STEPS if population else n
        depth = 30 + math.log(rare.denominator) - math.log(rare.numerator)

        def is_rare(ones: int, p: Fraction, q: Fraction, least: int) -> bool:
            if population:
                mixed = q + Fraction(ones, steps) * (p - q)
                return Fraction(reports_tail(n, 0, mixed, mixed, least, depth)) <= rare
            return Fraction(reports_tail(ones, n - ones, p, q, least, depth)) <= rare

        def first_not_rare(is_rare: Callable[[int], bool]) -> int:
            if not is_rare(0):
                return 0
            last = greatest_whole(lambda ones: ones <= steps and is_rare(ones))
            # Between steps of a population's share nothing is known; the count of these people is whole.
            return min(last + (not population), steps)

        low = first_not_rare(lambda ones: is_rare(ones, p, q, reports))
        # Seen from the other side: so many reports of other answers.
        high = steps - first_not_rare(lambda rest: is_rare(steps - rest, 1 - p, 1 - q, n - reports))
        return Fraction(low, steps), Fraction(high, steps)

    def __repr__(self) -> str:
        names = self.answers or range(len(self.reports))
        few = list(zip(names, self.reports, strict=True))[:_MOST_SHOWN]
        texts = [f"{name}: {_with_error(self._share(r), self._error(r, _RARE_SHOWN))}" for name, r in few]
        more = ", ..." if len(few) < len(self.reports) else ""
        return f"Estimate(n={self.n}; {', '.join(texts)}{more}; each with 95% confidence)"


def read_failure(confidence: Exactable) -> Fraction:
    """Return the chance that a confidence leaves."""
    sure = probability(confidence, "confidence")
    if sure in (0, 1):
        raise InvalidInput("confidence must be above 0 and below 1: coins may fall any way, if seldom")
    return 1 - sure


def _up(number: Fraction) -> float:
    return enclose(lambda: number).upper


def _with_error(share: Fraction, error: Fraction) -> str:
    """Write a share with an error of two digits or so, rounded up to cover what rounding the share does."""
    places = max(0, 1 - math.floor(math.log10(error))) if error > Fraction(1, 10**5) else 6
    centre = round(share, places)
    around = Fraction(math.ceil((error + abs(share - centre)) * 10**places), 10**places)
    return f"{float(centre):.{places}f} ± {float(around):.{places}f}"


# --- before any report is seen ----------------------------------------------------------------------


def reports_variances(p: Fraction, q: Fraction) -> tuple[Fraction, Fraction]:
    """Return the variance of whether a report is j, for one whose answer is j and for another."""
    return p * (1 - p), q * (1 - q)


def worst_tails(p: Fraction, q: Fraction, reach: Fraction, n: int) -> Iterator[Fraction]:
    """Bound Pr(|reports of an answer - their mean| >= reach) for n people, over one range of N after another.

    Claim: no bound is too low, and the largest holds for all N. Each is the least of Bernstein's, of the
    normal law's with Berry and Esseen's remainder, and, for up to 20,000 people, of the exact law's.
    """
    most, least = (n * extreme(reports_variances(p, q)) for extreme in (max, min))
    skew = max(p**2 + (1 - p) ** 2, q**2 + (1 - q) ** 2)

    def normal() -> arb:
        remainder = 2 * ball(_BERRY_ESSEEN * skew) / ball(least).sqrt()
        return (ball(reach) / ball(2 * most).sqrt()).erfc() + remainder

    bernstein = enclose(lambda: 2 * (-ball(reach**2 / (2 * (most + reach / 3)))).exp()).upper
    closed = min(Fraction(1), Fraction(bernstein), Fraction(enclose(normal).upper))
    if n > _MOST_BY_RANGES:
        yield closed
        return
    width = -(-(n + 1) // _RANGES)
    lows = list(range(0, n + 1, width))
    for low in lows[-1:] + lows[:-1]:  # both ends first: whoever asks whether all are small may be done
        yield min(closed, _range_tail(p, q, reach, n, low, min(low + width - 1, n)))


def _range_tail(p: Fraction, q: Fraction, reach: Fraction, n: int, low: int, high: int) -> Fraction:
    """Bound it for every true count from low to high: reports of j rise with the count of j."""
    least_mean, most_mean = (ones * p + (n - ones) * q for ones in (low, high))
    above = reports_tail(high, n - high, p, q, math.ceil(least_mean + reach))
    below = reports_tail(low, n - low, 1 - p, 1 - q, n - math.floor(most_mean - reach))
    return Fraction(above) + Fraction(below)


# --- the law of reports -----------------------------------------------------------------------------


def reports_tail(ones: int, zeros: int, p: Fraction, q: Fraction, least: int, depth: float = 100.0) -> float:
    """Bound Pr(Binomial(ones, p) + Binomial(zeros, q) >= least) from above, by at most a hair.

    Claim: it is at least the true chance, and exceeds it by less than one part in 2**29 (for fewer than
    10**5 terms) and e**-depth * 6. Everything added is positive, so doubles lose at most a part in 2**52 at
    each step: docs/proofs/response.md.
    """
    if least <= 0:
        return 1.0
    if least > ones + zeros:
        return 0.0
    first, masses = _window(ones, p, depth)
    second, others = _window(zeros, q, depth)
    beyond = np.append(np.cumsum(others[::-1])[::-1], 0.0)
    wanted = least - first - second - np.arange(masses.size)
    total = float(masses @ beyond[np.clip(wanted, 0, others.size)])
    lost = 2.0**-40 + (masses.size + others.size) * 2.0**-47
    return min(1.0, total * (1 + lost) + 5 * math.exp(-depth))


def _window(n: int, p: Fraction, depth: float) -> tuple[int, NDArray[np.float64]]:
    """Return the law of Binomial(n, p) where nearly all of it is: its first place, and its masses.

    Claim: by Hoeffding's inequality less than 2 exp(-depth) is left out.
    """
    if n == 0:
        return 0, np.ones(1)
    mode, reach = min(n, math.floor((n + 1) * p)), math.isqrt(math.ceil(n * depth / 2)) + 2
    first, last = max(0, mode - reach), min(n, mode + reach)
    x = np.arange(first + 1, last + 1, dtype=np.float64)
    ratios = (n - x + 1) / x * float(p / (1 - p))
    up = np.cumprod(ratios[mode - first :])
    down = np.cumprod(1 / ratios[: mode - first][::-1])[::-1]
    weights = np.concatenate([down, np.ones(1), up])
    return first, weights / weights.sum()
