"""Claims about the closed forms: each agrees with its definition, worked out by mpmath at 90 digits."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import pytest
from flint import arb

from discreet.privacy.loss import PrivacyLoss
from discreet.privacy.pairs import (
    DiscreteGaussianPair,
    DiscreteLaplacePair,
    GaussianPair,
    LaplacePair,
    Masses,
    Pair,
    PromisePair,
    grouped_delta,
)
from discreet.privacy.reals import Real, as_ball, ball, enclose
from tests.privacy.truths import (
    TINY,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Truth,
    disagreements,
    mp,
    promise,
    real,
)

F = Fraction

EPSILONS = [F(-40), F(-1, 2), F(0), F(1, 10**9), F(1, 20), F(1), F(7)]
DELTAS = [F(1, 10), F(1, 10**6), F(1, 10**30), F(1, 10**300)]
ALPHAS = [F(1001, 1000), F(2), F(7, 2), F(50)]

LAPLACES = [F(1, 10**12), F(1, 10), F(1), F(31, 7), F(12)]
GAUSSIANS = [F(1, 3), F(2), F(1000, 7)]
DISCRETE_LAPLACES = [
    (F(1, 3), 1),
    (F(1, 3), 2),
    (F(3), 1),
    (F(3), 2),
    (F(3), 7),
    (F(22, 7), 100),
    (F(70), 7),
]
DISCRETE_GAUSSIANS = [
    (F(1, 10), 1),
    (F(1), 1),
    (F(4), 1),
    (F(4), 7),
    (F(22, 7), 2),
    (F(63), 1),
    (F(65), 2),
    (F(899), 1),
    (F(901), 1),
    (F(123456789, 98765), 3),
    (F(10**6), 1),
    (F(10**12), 1),
    (F(10**12), 10**6),
]


@pytest.mark.parametrize("apart", LAPLACES, ids=str)
def test_laplace_agrees_with_its_definition(apart: Fraction) -> None:
    loss = PrivacyLoss.laplace(scale=1 / apart)
    assert not disagreements(loss, [Laplace(apart)], epsilons=EPSILONS, deltas=DELTAS, alphas=ALPHAS)
    assert not disagreements(loss, [Laplace(apart)], epsilons=[apart - F(1, 10**40), apart, apart + 1])


@pytest.mark.parametrize("sigma", GAUSSIANS, ids=str)
def test_gaussian_agrees_with_its_definition(sigma: Fraction) -> None:
    loss = PrivacyLoss.gaussian(sigma=sigma)
    assert not disagreements(loss, [Gaussian(sigma)], epsilons=EPSILONS, deltas=DELTAS, alphas=[F(3, 2)])


@pytest.mark.parametrize("alpha", [F(1001, 1000), F(2), F(7)], ids=str)
def test_gaussian_renyi_divergence_is_the_integral(alpha: Fraction) -> None:
    assert not disagreements(PrivacyLoss.gaussian(sigma=2), [Gaussian(F(2))], alphas=[alpha])


@pytest.mark.parametrize(("scale", "shift"), DISCRETE_LAPLACES, ids=str)
def test_discrete_laplace_agrees_with_its_definition(scale: Fraction, shift: int) -> None:
    loss, truth = PrivacyLoss.discrete_laplace(scale=scale, sensitivity=shift), DiscreteLaplace(scale, shift)
    at_atoms = [F(shift) / scale, F(shift - 2) / scale, F(-shift) / scale]
    few = scale > 50
    assert not disagreements(
        loss,
        [truth],
        epsilons=[F(1, 1000)] if few else [*EPSILONS, *at_atoms],
        deltas=DELTAS[1:2] if few else DELTAS,
        alphas=[] if few else ALPHAS,
    )


@pytest.mark.parametrize(("variance", "shift"), DISCRETE_GAUSSIANS, ids=str)
def test_discrete_gaussian_agrees_with_its_definition(variance: Fraction, shift: int) -> None:
    loss = PrivacyLoss.discrete_gaussian(variance=variance, sensitivity=shift)
    truth = DiscreteGaussian(variance, shift)
    size = F(shift) / F(math.isqrt(int(variance)) or 1)
    epsilons = [-size, F(0), size / 7, size, 6 * size, F(shift**2) / (2 * variance)]
    alphas = ALPHAS if variance < 10**4 else [F(2)]
    assert not disagreements(loss, [truth], epsilons=epsilons, deltas=DELTAS, alphas=alphas)


@pytest.mark.parametrize("epsilon", [F(1, 10**6), F(1, 10), F(1), F(5), F(40)], ids=str)
def test_the_worst_pair_of_a_pure_promise_agrees_with_its_definition(epsilon: Fraction) -> None:
    loss = PrivacyLoss.pure(epsilon)
    assert not disagreements(loss, [promise(epsilon)], epsilons=EPSILONS, deltas=DELTAS, alphas=ALPHAS)


@pytest.mark.parametrize("delta", [F(1, 10**300), F(1, 10**6), F(1, 3), F(99, 100)], ids=str)
@pytest.mark.parametrize("epsilon", [F(0), F(1, 10), F(2)], ids=str)
def test_the_worst_pair_of_an_approximate_promise_agrees_with_its_definition(
    epsilon: Fraction, delta: Fraction
) -> None:
    loss = PrivacyLoss.approx(epsilon, delta)
    larger = [delta, (1 + delta) / 2, delta + delta / 10**3]
    assert not disagreements(loss, [promise(epsilon, delta)], epsilons=EPSILONS, deltas=larger)
    assert loss.kl == loss.rho == loss.max_divergence == loss.renyi(2) == math.inf


@pytest.mark.parametrize("sigma", [F(1, 40), F(1, 10)])
def test_figures_are_right_for_epsilons_of_hundreds_and_more(sigma: Fraction) -> None:
    loss, truth = PrivacyLoss.gaussian(sigma=sigma), Gaussian(sigma)
    assert not disagreements(loss, [truth], epsilons=[F(700), F(1200)], deltas=DELTAS[2:])
    assert loss.epsilon(1e-30) > (700 if sigma < F(1, 20) else 150)


@pytest.mark.parametrize(
    "loss",
    [
        PrivacyLoss.gaussian(sigma=1),
        PrivacyLoss.laplace(scale=1),
        PrivacyLoss.discrete_gaussian(variance=1),
        PrivacyLoss.discrete_laplace(scale=2, sensitivity=7),
        PrivacyLoss.pure(1),
    ],
    ids=lambda loss: type(loss.there).__name__,
)
def test_renyi_divergence_rises_to_the_greatest_loss(loss: PrivacyLoss) -> None:
    orders = [1, 1.0000001, 1.5, 2, 10, 1e3, 1e6, 1e12]
    bounds = [loss.renyi_bounds(order) for order in orders] + [loss.renyi_bounds(math.inf)]
    assert all(a.lower <= b.upper for a, b in pairwise(bounds))
    if math.isfinite(loss.max_divergence):
        assert loss.renyi(1e12) == pytest.approx(loss.max_divergence, rel=1e-9)


# --- rho is the divergence at one -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "truth"),
    [
        *((PrivacyLoss.pure(e), promise(e)) for e in (F(1, 100), F(1), F(8), F(50))),
        *((PrivacyLoss.laplace(scale=1 / e), Laplace(e)) for e in (F(1, 100), F(1), F(3))),
        *(
            (PrivacyLoss.discrete_laplace(scale=s, sensitivity=k), DiscreteLaplace(s, k))
            for s, k in ((F(1, 5), 1), (F(1), 2), (F(2), 7), (F(1, 3), 30))
        ),
        *(
            (PrivacyLoss.discrete_gaussian(variance=v, sensitivity=k), DiscreteGaussian(v, k))
            for v, k in ((F(1, 10), 1), (F(1), 2), (F(9), 7))
        ),
    ],
    ids=lambda x: repr(x) if isinstance(x, Truth) else "",
)
def test_no_order_has_a_greater_quotient_than_rho(loss: PrivacyLoss, truth: Truth) -> None:
    """rho: the supremum of D_alpha / alpha over alpha > 1 is the limit at 1."""
    assert loss.rho_bounds == loss.kl_bounds
    with mp.workdps(40):
        for power in range(-60, 60, 7):
            alpha = 1 + F(2) ** F(power, 6).__floor__() * F(113, 100)
            assert truth.renyi(alpha) <= real(alpha) * truth.kl() * (1 + mp.mpf(10) ** -25)
    assert truth.renyi(1 + F(1, 10**9)) == pytest.approx(float(truth.kl()), rel=1e-6)


# --- groups ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_group_of_k_is_the_same_noise_k_times_as_far_apart(k: int) -> None:
    laplace, gaussian = PrivacyLoss.laplace(scale=3).group(k), PrivacyLoss.gaussian(sigma=3).group(k)
    lattice = PrivacyLoss.discrete_laplace(scale=3).group(k)
    bell = PrivacyLoss.discrete_gaussian(variance=9).group(k)
    some, delta = [F(0), F(1, 2)], [F(1, 10**6)]
    assert not disagreements(laplace, [Laplace(F(k, 3))], epsilons=some, deltas=delta)
    assert not disagreements(gaussian, [Gaussian(F(3), F(k))], epsilons=some, deltas=delta)
    assert not disagreements(lattice, [DiscreteLaplace(F(3), k)], epsilons=some, deltas=delta)
    assert not disagreements(bell, [DiscreteGaussian(F(9), k)], epsilons=some, deltas=delta)
    assert laplace.neighbours.distance == gaussian.neighbours.distance == k


@pytest.mark.parametrize("epsilon", [F(0), F(1, 10**9), F(1, 3), F(2)])
@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_the_delta_of_a_group_is_the_geometric_sum_rounded_up(epsilon: Fraction, k: int) -> None:
    delta = F(1, 10**9)
    truth = mp.fsum(real(delta) * mp.exp(i * real(epsilon)) for i in range(k))
    found = grouped_delta(epsilon, delta, k)
    assert truth * (1 - TINY) <= real(found) <= truth * (1 + mp.mpf(10) ** -14)


def test_the_delta_of_a_group_is_never_more_than_one() -> None:
    assert grouped_delta(F(1), F(1, 2), 10) == grouped_delta(F(1000), F(1, 10**9), 10**9) == 1
    assert grouped_delta(F(0), F(1, 2), 10) == 1
    assert grouped_delta(F(5), F(0), 10**9) == 0


def test_the_group_of_a_promise_is_kept_by_the_group_of_every_mechanism_that_keeps_it() -> None:
    noise = PrivacyLoss.gaussian(sigma=2)
    for delta in (F(1, 10), F(1, 10**4), F(1, 10**8)):
        kept = PrivacyLoss.approx(F(repr(noise.epsilon(delta))), delta)
        for k in (2, 3, 5):
            for epsilon in (0, F(1, 2), 1, 4, 10):
                assert noise.group(k).delta_bounds(epsilon).lower <= kept.group(k).delta(epsilon)


# --- extremes -------------------------------------------------------------------------------------

TINIEST, HUGEST = F(1, 10**300), F(10**300)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: PrivacyLoss.laplace(scale=x),
        lambda x: PrivacyLoss.gaussian(sigma=x),
        lambda x: PrivacyLoss.discrete_laplace(scale=x),
        lambda x: PrivacyLoss.discrete_laplace(scale=x, sensitivity=10**20),
        lambda x: PrivacyLoss.discrete_gaussian(variance=x),
        lambda x: PrivacyLoss.discrete_gaussian(variance=x, sensitivity=10**20),
        PrivacyLoss.pure,
        lambda x: PrivacyLoss.approx(x, F(1, 10**6)),
    ],
    ids=["laplace", "gaussian", "dlaplace", "dlaplace far", "dgauss", "dgauss far", "pure", "approx"],
)
@pytest.mark.parametrize(
    "x", [TINIEST, F(1, 10**10), F(10**10), F(10**40), HUGEST], ids=lambda x: f"{float(x):g}"
)
def test_extremes_neither_hang_nor_fail(make: Callable[[Fraction], PrivacyLoss], x: Fraction) -> None:
    loss = make(x)
    started = time.monotonic()
    figures = [loss.kl_bounds, loss.rho_bounds, loss.max_divergence_bounds]
    figures += [loss.delta_bounds(e) for e in (-HUGEST, -1, 0, TINIEST, 1, 10**10, HUGEST)]
    figures += [loss.epsilon_bounds(d) for d in (0, TINIEST, F(1, 10**6), 1 - TINIEST, 1)]
    figures += [loss.renyi_bounds(a) for a in (1 + TINIEST, 2, HUGEST, math.inf)]
    figures += [loss.tradeoff_bounds(a) for a in (0, TINIEST, F(1, 20), 1 - TINIEST, 1)]
    assert not any(math.isnan(lower) or math.isnan(upper) for lower, upper in figures)
    assert all(0 <= lower <= upper for lower, upper in figures)
    assert loss.within(F(1, 10**6)) >= 0
    assert time.monotonic() - started < 20


def test_what_is_too_small_for_a_float_is_between_zero_and_the_least_one() -> None:
    assert PrivacyLoss.gaussian(sigma=10**300).delta_bounds(1).upper <= 1e-323
    assert PrivacyLoss.laplace(scale=10**300).kl_bounds == (0.0, 5e-324)
    assert PrivacyLoss.gaussian(sigma=TINIEST).delta(1) == 1.0


# --- planted bugs: the comparison above must catch them -------------------------------------------


@dataclass(frozen=True)
class SigmaForVariance(DiscreteGaussianPair):
    def above(self, epsilon: Fraction) -> Masses:
        return DiscreteGaussianPair(self.variance**2, self.shift).above(epsilon)


@dataclass(frozen=True)
class VarianceForSigma(GaussianPair):
    def above(self, epsilon: Fraction) -> Masses:
        return GaussianPair(self.mu**2).above(epsilon)


@dataclass(frozen=True)
class ContinuousForDiscrete(DiscreteLaplacePair):
    def above(self, epsilon: Fraction) -> Masses:
        return LaplacePair(self.rate * self.shift).above(epsilon)


@dataclass(frozen=True)
class ContinuousGaussianForDiscrete(DiscreteGaussianPair):
    def above(self, epsilon: Fraction) -> Masses:
        # The variance is 901, where the two differ from the third digit on.
        return GaussianPair(self.shift / F(30)).above(epsilon)


@dataclass(frozen=True)
class WrongSignInKl(LaplacePair):
    def kl(self) -> Real:
        return ball(self.epsilon) - (-ball(self.epsilon)).expm1()


@dataclass(frozen=True)
class WrongSignInDiscreteKl(DiscreteLaplacePair):
    def kl(self) -> Real:
        return ball(2 * self.rate * self.shift) - as_ball(super().kl())


@dataclass(frozen=True)
class RoundedToNearest(GaussianPair):
    """Each mass is the float beside it: what one gets without balls."""

    def above(self, epsilon: Fraction) -> Masses:
        p, q = super().above(epsilon)
        return arb(float(p)), arb(float(q))


@dataclass(frozen=True)
class NoTheta(DiscreteGaussianPair):
    def renyi(self, alpha: Fraction) -> Real:
        return alpha * self.shift**2 / (2 * self.variance)


@pytest.mark.parametrize(
    ("pair", "truth"),
    [
        (SigmaForVariance(F(4)), DiscreteGaussian(F(4))),
        (VarianceForSigma(F(1, 2)), Gaussian(F(2))),
        (ContinuousForDiscrete(F(1, 10)), DiscreteLaplace(F(10))),
        (ContinuousForDiscrete(F(1, 10), 7), DiscreteLaplace(F(10), 7)),
        (ContinuousGaussianForDiscrete(F(900)), DiscreteGaussian(F(900))),
        (WrongSignInKl(F(1)), Laplace(F(1))),
        (WrongSignInDiscreteKl(F(1)), DiscreteLaplace(F(1))),
        (RoundedToNearest(F(1, 2)), Gaussian(F(2))),
        (NoTheta(F(1, 10)), DiscreteGaussian(F(1, 10))),
        (PromisePair(F(1), F(1, 10**20)), promise(F(1), F(1, 10**19))),
        (LaplacePair(F(1)), Laplace(1 + F(1, 10**15))),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, Pair) else "",
)
def test_planted_bugs_are_caught(pair: Pair, truth: Truth) -> None:
    alphas = [] if pair.escaped() else [F(3, 2)]
    loss = PrivacyLoss.of(pair)
    assert disagreements(loss, [truth], epsilons=[F(1, 20), F(2)], deltas=[F(1, 10**6)], alphas=alphas)


def test_rounding_to_nearest_instead_of_outward_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.privacy import curve, reals

    def nearest(quantity: Callable[[], Real], relative: float = 0.0) -> reals.Bounds:
        upper = float(arb(enclose(quantity).upper))
        return reals.Bounds(math.nextafter(upper, -1), math.nextafter(upper, -1))

    monkeypatch.setattr(curve, "enclose", nearest)
    assert disagreements(PrivacyLoss.gaussian(sigma=2), [Gaussian(F(2))], epsilons=[F(1, 3)])


def test_a_promise_that_always_fails_has_no_finite_loss() -> None:
    """With a delta of 1 all losses are infinite, and at that delta no epsilon is needed."""
    loss, same = PrivacyLoss.approx(2, 1), PrivacyLoss.finite([1, 0], [0, 1])
    assert loss.epsilon_bounds(1) == same.epsilon_bounds(1) == (0.0, 0.0)
    assert loss.max_divergence == same.max_divergence == math.inf
    assert loss.epsilon_bounds(F(1, 2)) == same.epsilon_bounds(F(1, 2)) == (math.inf, math.inf)
