"""How large noise gets, against sums term by term in mpmath and against planted mistakes."""

from fractions import Fraction as F

import pytest

from discreet.errors import Unsupported
from discreet.mechanisms.tails import DiscreteGaussianLaw, DiscreteLaplaceLaw, IntegerLaw
from discreet.privacy.lattice import gaussian_mean_size
from discreet.privacy.reals import enclose, precision
from tests.privacy.truths import encloses, is_tight, mp, mpf, real

LAPLACES = [F(1, 50), F(1, 3), F(1), F(4), F(40)]
GAUSSIANS = [F(1, 50), F(1, 3), F(2), F(63), F(64), F(65), F(1000, 3)]


def sizes(law: IntegerLaw) -> list[mpf]:
    """Pr(|X| = 0), Pr(|X| = 1), ... until nothing is left at 90 digits."""
    weights: list[mpf] = [mpf(1)]
    while weights[-1] > mpf(10) ** -110:
        x = len(weights)
        energy = law.rate * x if isinstance(law, DiscreteLaplaceLaw) else F(x * x) / (2 * law.variance)  # type: ignore[attr-defined]
        weights.append(2 * mp.exp(-real(energy)))
    total = mp.fsum(weights)
    return [weight / total for weight in weights]


def folded(masses: list[mpf], k: int) -> list[mpf]:
    """The law of the sum of k sizes, by convolution."""
    law = [mpf(1)]
    for _ in range(k):
        law = [
            mp.fsum(law[i] * masses[n - i] for i in range(max(0, n - len(masses) + 1), min(n + 1, len(law))))
            for n in range(len(law) + len(masses) - 1)
        ]
    return law


@pytest.mark.parametrize(
    "law", [*map(DiscreteLaplaceLaw, LAPLACES), *map(DiscreteGaussianLaw, GAUSSIANS)], ids=repr
)
def test_tail_and_mean_size(law: IntegerLaw) -> None:
    masses = sizes(law)
    for m in sorted({0, 1, 2, 3, 7, len(masses) // 4, len(masses) // 2}):
        one = mp.fsum(masses[m:])
        assert encloses(enclose(lambda m=m: law.tail(m)), one)  # type: ignore[misc]
        for k in (1, 2, 1000):
            every = -mp.expm1(k * mp.log1p(-one)) if m else mpf(1)
            found = enclose(lambda m=m, k=k: law.largest_tail(m, k))  # type: ignore[misc]
            assert encloses(found, every)
            assert is_tight(found)
    mean = mp.fsum(x * mass for x, mass in enumerate(masses))
    assert encloses(enclose(law.mean_size), mean)
    assert is_tight(enclose(law.mean_size))


@pytest.mark.parametrize("rate", [F(1, 2), F(1), F(4)], ids=str)
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_sum_tail(rate: F, k: int) -> None:
    """Against the convolution of k laws."""
    law = DiscreteLaplaceLaw(rate)
    total = folded([mass for mass in sizes(law) if mass > mpf(10) ** -40], k)
    for m in (0, 1, 2, k, 2 * k + 3, 20):
        found = enclose(lambda m=m: law.sum_tail(m, k))  # type: ignore[misc]
        truth = mp.fsum(total[m:]) if m else mpf(1)
        assert abs(mpf(found.lower) - truth) < mpf(10) ** -15 * truth + mpf(10) ** -36
        assert is_tight(found)


@pytest.mark.parametrize(
    ("rate", "m", "k"),
    [
        (F(1, 10), 1_100, 100),
        (F(1, 10), 700, 100),
        (F(7, 2), 60, 1000),
        (F(20), 3, 10**5),
        (F(1, 100), 900, 2),
    ],
)
def test_sum_tail_of_many(rate: F, m: int, k: int) -> None:
    """Against the generating function ((1 + qz) / (1 - qz))**k, whose coefficients obey a recurrence.

    Its logarithm has the derivative 2kq / (1 - q**2 z**2), hence
    (n + 1) c(n + 1) = 2kq c(n) + q**2 (n - 1) c(n - 1).
    """
    q = mp.exp(-real(rate))
    before, now, below = mpf(0), mpf(1), mpf(0)
    for n in range(m):
        below += now
        before, now = now, (2 * k * q * now + q**2 * (n - 1) * before) / (n + 1)
    truth = 1 - below * ((1 - q) / (1 + q)) ** k
    found = enclose(lambda: DiscreteLaplaceLaw(rate).sum_tail(m, k))
    assert abs(mpf(found.lower) - truth) <= truth * mpf(10) ** -15
    assert is_tight(found)


@pytest.mark.parametrize(
    ("bits", "m", "k"),
    [(20, 50, 10), (20, 1200, 1000), (30, 900, 1000), (40, 1_010_000, 10**6), (40, 9, 1000)],
)
def test_sum_tail_on_fine_grids(bits: int, m: int, k: int) -> None:
    """Between gamma laws: a size is at least an exponential less 1 step, and at most one more half a step."""
    found = enclose(lambda: DiscreteLaplaceLaw(F(1, 2**bits)).sum_tail(m << bits, k))
    step = mpf(2) ** -bits
    low = mp.gammainc(k, m + k * step, mp.inf, regularized=True)
    high = mp.gammainc(k, m - k * step / 2, mp.inf, regularized=True)
    assert low <= found.lower * (1 + mpf(10) ** -15)
    assert found.upper <= high * (1 + mpf(10) ** -15)
    assert high <= low * (1 + mpf(m) * k / 2 ** (bits - 2)) + mpf(10) ** -20


def test_the_sum_is_not_the_laplace_of_k_scales_nor_a_gamma_on_a_coarse_grid() -> None:
    """Planted: two formulas that look right are seen to be wrong by the same comparison."""
    law, k, m = DiscreteLaplaceLaw(F(1, 2)), 3, 8
    truth = mp.fsum(folded([mass for mass in sizes(law) if mass > mpf(10) ** -40], k)[m:])
    assert not encloses(enclose(lambda: DiscreteLaplaceLaw(F(1, 2 * k)).tail(m)), truth)
    gamma = mp.gammainc(k, mpf(m) / 2, mp.inf, regularized=True)
    assert abs(gamma - truth) > truth / 20


def test_the_sum_of_several_gaussian_sizes_is_refused() -> None:
    law = DiscreteGaussianLaw(F(3))
    assert enclose(lambda: law.sum_tail(2, 1)) == enclose(lambda: law.tail(2))
    with pytest.raises(Unsupported, match="bound='union'"):
        law.sum_tail(2, 2)


@pytest.mark.parametrize("variance", [F(64), F(10**6), F(10**14, 3), F(2**100)], ids=str)
def test_gaussian_mean_size(variance: F) -> None:
    """Against Poisson's summation, whose terms for |x| are Dawson's function; the first ones suffice."""
    found = enclose(lambda: gaussian_mean_size(variance))
    smooth = mp.sqrt(2 * real(variance) / mp.pi)
    # E|X| = sqrt(2 v / pi) (1 - 1/(12 v) - 1/(240 v**2) - ...), from Euler and Maclaurin by hand.
    series = smooth * (1 - 1 / (12 * real(variance)) - 1 / (240 * real(variance) ** 2))
    assert abs(found.lower - series) <= smooth / real(variance) ** 3 + smooth * mpf(10) ** -15
    assert is_tight(found)


@pytest.mark.parametrize("first", [0, 3, 8, 20])
def test_a_bad_place_to_begin_widens_the_ball_and_does_no_more(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    law, m, k = DiscreteLaplaceLaw(F(1, 2)), 60, 20
    with precision(96):
        truth = law.sum_tail(m, k)
        monkeypatch.setattr(DiscreteLaplaceLaw, "_first_that_matters", lambda *_: first)
        found = law.sum_tail(m, k)
    assert found.overlaps(truth)
    assert found.upper() >= truth.lower()
    if first >= 8:
        assert found.rad() > truth.rad()
