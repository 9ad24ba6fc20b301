"""The statistical tests themselves: their p-values are right, and they see what they are for."""

import mpmath
import numpy as np
import pytest

from tests.statistics import (
    FALSE_ALARM,
    Finding,
    assert_passes,
    at_most,
    binomial,
    bit_findings,
    chi_square,
    judge,
    kolmogorov,
)


@pytest.mark.parametrize(
    ("successes", "trials", "chance"), [(30, 100, 0.1), (0, 50, 0.2), (100, 100, 0.9), (7, 1000, 1e-3)]
)
def test_binomial_is_exact(successes: int, trials: int, chance: float) -> None:
    with mpmath.workdps(40):
        p = mpmath.mpf(chance)
        mass = [mpmath.binomial(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]
        tails = sum(mass[successes:]), sum(mass[: successes + 1])
    assert binomial("", successes, trials, chance).p_value == pytest.approx(
        float(min(1, 2 * min(tails))), rel=1e-9
    )
    if successes > trials * chance:
        assert at_most("", successes, trials, chance).p_value == pytest.approx(float(tails[0]), rel=1e-9)


def test_binomial_at_its_ends() -> None:
    assert binomial("", 0, 10, 0.0).p_value == binomial("", 10, 10, 1.0).p_value == 1
    assert binomial("", 1, 10, 0.0).p_value == binomial("", 9, 10, 1.0).p_value == 0
    assert binomial("", 510, 1000, 0.5, slack=0.01).p_value == 1


def test_chi_square_of_two_cells_is_a_normal_squared() -> None:
    found = chi_square("", [5300, 4700], [0.5, 0.5]).p_value
    assert found == pytest.approx(float(mpmath.erfc(6 / mpmath.sqrt(2))), rel=1e-9)


def test_chi_square_pools_small_cells() -> None:
    chances = 0.5 ** np.arange(1, 31)
    chances[-1] *= 2
    assert chi_square("", np.rint(1000 * chances), chances).p_value > 0.99
    assert chi_square("", [10, 990], [0.0, 1.0]).p_value == 0


def test_the_tail_of_chi_square_is_good_with_the_least_cells_allowed() -> None:
    """With 100 expected in each of 20 cells, alarms at 1e-3 and 1e-4 are as rare as they should be, about."""
    rng = np.random.default_rng(20261118)
    counts = rng.multinomial(2000, [0.05] * 20, size=200_000)
    extreme = np.sort(((counts - 100.0) ** 2 / 100).sum(axis=1))[-1000:]
    p_values = np.array(
        [float(mpmath.gammainc(19 / 2, x / 2, mpmath.inf, regularized=True)) for x in extreme]
    )
    for level, most in ((1e-3, 1.3e-3), (1e-4, 1.9e-4)):
        assert (p_values < level).sum() < most * 200_000


def test_kolmogorov_is_the_bound_it_states() -> None:
    trials = 10_000
    limit = float(np.sqrt(np.log(2 / FALSE_ALARM) / (2 * trials)))
    assert judge([kolmogorov("", [0.5 + 1.001 * limit], [0.5], trials)])
    assert not judge([kolmogorov("", [0.5 + 0.999 * limit], [0.5], trials)])


def test_bit_findings_count() -> None:
    values = np.arange(1 << 12)
    assert all(finding.p_value == 1 for finding in bit_findings(values, 5, 0.0))
    names = {f.test: f.p_value for f in bit_findings(values | 2, 3, 0.0)}
    assert names["bit 1"] == 0
    assert names["bit 0"] == names["bits 0 and 2"] == 1


def test_the_level_is_shared_by_those_judged_together() -> None:
    found = [Finding("a", FALSE_ALARM * 0.4), Finding("b", 1.0)]
    assert len(judge(found)) == 1
    assert judge([*found, Finding("c", 1.0)]) == []
    with pytest.raises(AssertionError, match="a: p ="):
        assert_passes(*found)
