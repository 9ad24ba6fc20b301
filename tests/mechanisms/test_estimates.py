"""Estimates are unbiased, intervals hold the truth as often as claimed, and the bounds under them hold."""

import math
import re
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidInput
from discreet.mechanisms import estimates
from discreet.mechanisms.response import RandomizedResponse
from tests.mechanisms.report_laws import CASES, laws_product, reports_law


@pytest.mark.parametrize("m", CASES[:3], ids=str)
@pytest.mark.parametrize("answers", [(0,), (0, 1, 1), (1, 1, 0, 0)])
def test_estimate(m: RandomizedResponse, answers: tuple[int, ...]) -> None:
    """Unbiased: the mean over all possible reports, each with its exact chance, is the true count."""
    means = [Fraction(0)] * m.k
    for reports, chance in laws_product(m, answers).items():
        found = m.estimate(list(reports))
        assert found.counts == m.estimate(np.array(reports)).counts
        assert sum(found.counts) == len(answers)
        means = [mean + chance * count for mean, count in zip(means, found.counts, strict=True)]
    assert means == [answers.count(j) for j in range(m.k)]


def test_estimate_from_names_and_counts() -> None:
    m = RandomizedResponse(0.9, answers=["yes", "no"])
    found = m.estimate(["no", "no", "yes", "no"])
    assert found == m.estimate(counts=[1, 3])
    assert found.n == 4
    assert found.counts == ((1 - Fraction(4, 10)) / Fraction(8, 10), (3 - Fraction(4, 10)) / Fraction(8, 10))
    assert found.values == (0.1875, 0.8125)


@pytest.mark.parametrize(
    ("m", "n"), [*((m, n) for m in CASES for n in (1, 2, 9)), (CASES[0], 40), (CASES[2], 33)], ids=str
)
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(19, 20)])
def test_interval(m: RandomizedResponse, n: int, confidence: Fraction) -> None:
    """Coverage, exactly, for every true count: each is held with the probability claimed."""
    limits = []
    errors = []
    for r in range(n + 1):
        found = m.estimate(counts=[r, n - r, *[0] * (m.k - 2)])
        limits.append(found.interval(confidence)[0])
        errors.append((found.proportions[0], Fraction(found.error(confidence)[0])))
    held = []
    for ones in range(n + 1):
        chances, share = reports_law(n, ones, m), Fraction(ones, n)
        inside = [
            Fraction(a) <= share <= Fraction(b) or math.isclose(a, share) or math.isclose(b, share)
            for a, b in limits
        ]
        near = [abs(x - share) <= e * (1 + Fraction(1, 10**12)) for x, e in errors]
        held.append(sum((c for c, yes in zip(chances, inside, strict=True) if yes), Fraction(0)))
        assert sum((c for c, yes in zip(chances, near, strict=True) if yes), Fraction(0)) >= confidence
    assert min(held) >= confidence
    # No wider than the tails require: the limits are the first counts that are not too rare on either side.
    laws = [reports_law(n, ones, m) for ones in range(n + 1)]
    rare = (1 - confidence) / 2 * (1 - Fraction(1, 10**9))  # a tie is not certainly rare
    for r, (low, high) in enumerate(limits):
        least = [ones for ones in range(n + 1) if sum(laws[ones][r:], Fraction(0)) > rare]
        most = [ones for ones in range(n + 1) if sum(laws[ones][: r + 1], Fraction(0)) > rare]
        assert low == pytest.approx(min(least, default=n) / n)
        assert high == pytest.approx(max(most, default=0) / n)


@pytest.mark.parametrize("m", CASES, ids=str)
def test_interval_of_a_population(m: RandomizedResponse) -> None:
    n, confidence = 15, Fraction(9, 10)
    limits = [
        m.estimate(counts=[r, n - r, *[0] * (m.k - 2)]).interval(confidence, population=True)[0]
        for r in range(n + 1)
    ]
    rare = (1 - confidence) / 2
    for r, ends in enumerate(limits):
        for end, side in zip(map(Fraction, ends), (slice(r, None), slice(None, r + 1)), strict=True):
            if end in (0, 1):
                continue
            yes = end * m.truth + (1 - end) * m.lie
            chances = [comb(n, i) * yes**i * (1 - yes) ** (n - i) for i in range(n + 1)]
            assert rare * Fraction(999_999, 10**6) < sum(chances[side], Fraction(0)) <= rare
    for step in range(101):
        share = Fraction(step, 100)
        yes = share * m.truth + (1 - share) * m.lie
        chances = [comb(n, r) * yes**r * (1 - yes) ** (n - r) for r in range(n + 1)]
        held = sum((c for c, (a, b) in zip(chances, limits, strict=True) if a <= share <= b), Fraction(0))
        assert held >= confidence
    assert all(0 <= a <= b <= 1 for a, b in limits)


def test_interval_knows_that_coins_are_all_that_is_random() -> None:
    """For 1,000 people the finite interval is as wide as the normal law's, and the population's is wider."""
    found = CASES[0].estimate(counts=[500, 500])
    ((low, high), _), ((below, above), _) = found.interval(), found.interval(population=True)
    width = 2 * 1.959964 * math.sqrt(1000 * 3 / 16) / 500
    assert width < high - low < width * 1.05
    assert (above - below) / (high - low) == pytest.approx(2 / math.sqrt(3), rel=0.03)
    assert found.error()[0] == pytest.approx((high - low) / 2)
    many = RandomizedResponse(Fraction(501, 1000), 3).estimate(counts=[2 * 10**6, 2 * 10**6, 3 * 10**6])
    assert all(a < x < b for x, (a, b) in zip(many.values, many.interval(), strict=True))


def test_standard_errors() -> None:
    m = CASES[0]
    assert m.estimate(counts=[30, 70]).standard_errors[0] == pytest.approx(math.sqrt(3 / 16 / 100) / 0.5)
    three = CASES[2]
    # At the estimated count: none of the first, whose estimate is below 0.
    found = three.estimate(counts=[0, 50, 50])
    assert found.counts[0] < 0
    assert found.standard_errors[0] == pytest.approx(math.sqrt(3 / 16 / 100) / 0.25)
    assert found.standard_errors[1] == pytest.approx(math.sqrt(1 / 4 / 100) / 0.25)


def test_consistent() -> None:
    """Nonnegative, 1 in all, and no possible shares on a fine grid are nearer to the estimates."""
    rng = np.random.default_rng(5)
    grid = [(i, j, 24 - i - j) for i in range(25) for j in range(25 - i)]
    for counts in [[0, 0, 9], [9, 0, 0], [3, 3, 3], *rng.integers(1, 20, (30, 3)).tolist()]:
        found = CASES[2].estimate(counts=counts)
        nearest = found.consistent()
        assert sum(nearest) == 1
        assert min(nearest) >= 0

        def distance(shares: Any, found: Any = found) -> Fraction:
            return sum(((a - b) ** 2 for a, b in zip(shares, found.proportions, strict=True)), Fraction(0))

        assert distance(nearest) <= min(distance([Fraction(i, 24) for i in point]) for point in grid)
    assert CASES[2].estimate(counts=[3, 3, 3]).consistent() == (Fraction(1, 3),) * 3


def test_repr_shows_every_share_with_an_error_that_covers_it() -> None:
    named = RandomizedResponse(0.75, answers=["yes", "no"])
    text = repr(named.estimate(counts=[402, 598]))
    assert text == "Estimate(n=1000; yes: 0.304 ± 0.054, no: 0.696 ± 0.054; each with 95% confidence)"
    for m, counts in [
        (CASES[0], [1, 0]), (CASES[0], [3, 4]), (CASES[1], [90, 10]), (CASES[2], [1, 1, 7]),
        (RandomizedResponse(Fraction(10**30 - 1, 10**30)), [3, 4]), (CASES[3], [10**6, 0, 1, 10**5]),
    ]:  # fmt: skip
        found = m.estimate(counts=counts)
        shown = re.findall(r"\d: (-?[\d.]+) ± ([\d.]+)", repr(found))
        assert len(shown) == m.k
        for (centre, around), share, error in zip(shown, found.proportions, found.error(), strict=True):
            assert abs(Fraction(centre) - share) + Fraction(error) * Fraction(999_999, 10**6) <= Fraction(
                around
            )
            assert Fraction(around) <= Fraction(error) * Fraction(5, 4) + Fraction(1, 10**6)
    many = RandomizedResponse(0.9, 50).estimate(counts=[1] * 50)
    assert repr(many).count("±") == 8
    assert ", ...;" in repr(many)


# --- the law of reports --------------------------------------------------------------------------------


@pytest.mark.parametrize(("ones", "zeros"), [(0, 30), (30, 0), (13, 28), (1, 1)])
def test_reports_tail(ones: int, zeros: int) -> None:
    for m in CASES:
        chances = reports_law(ones + zeros, ones, m)
        for least in range(-1, ones + zeros + 2):
            exact = sum(chances[max(least, 0) :], Fraction(0))
            found = Fraction(estimates.reports_tail(ones, zeros, m.truth, m.lie, least))
            assert exact <= found <= exact * (1 + Fraction(1, 10**10)) + Fraction(1, 10**40)


@pytest.mark.parametrize("p", [Fraction(1, 1000), Fraction(1, 2), Fraction(9, 10), 1 - Fraction(1, 1 << 256)])
@pytest.mark.parametrize("n", [1, 2, 9, 1000])
def test_weights_never_exceed_one(p: Fraction, n: int) -> None:
    """Masses fall from the mode on: so nothing overflows, and what underflows is nothing."""
    first, masses = estimates._window(n, p, 100.0)
    mode = min(n, math.floor((n + 1) * p))
    assert masses.max() <= masses[mode - first] * (1 + 1e-12)


def test_window() -> None:
    """It leaves out less than it claims, and is normalised: compared with integers far out and far in."""
    first, masses = estimates._window(10**6, Fraction(3, 4), 60.0)
    assert first > 0
    assert masses.size < 12_000
    for place in (0, masses.size // 2, masses.size - 1):
        k = first + place
        logarithm = math.lgamma(10**6 + 1) - math.lgamma(k + 1) - math.lgamma(10**6 - k + 1)
        logarithm += k * math.log(0.75) + (10**6 - k) * math.log(0.25)
        assert math.log(masses[place]) == pytest.approx(logarithm, abs=1e-6)


@pytest.mark.parametrize("confidence", [0, 1, 2, -1, "0.95", None, True, math.nan])
def test_bad_confidences(confidence: Any) -> None:
    found = CASES[0].estimate(counts=[1, 2])
    for call in (found.interval, found.error):
        with pytest.raises(InvalidInput):
            call(confidence)
