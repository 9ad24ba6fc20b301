"""The privacy loss: how far apart two neighbours' outputs can be, and every figure read off that.

`PrivacyLoss` holds a pair of output distributions in both directions. Its figures are those of the worse
direction, bounded from both sides with certified arithmetic; the plain ones (`epsilon`, `delta`, `kl`,
...) return the bound that errs toward privacy.

>>> loss = PrivacyLoss.gaussian(sigma=2)
>>> loss.epsilon(delta=1e-6)
2.2540846502197414
>>> PrivacyLoss.randomized_response(truth=0.75).max_divergence     # ln 3, rounded up
1.0986122886681098
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from discreet.errors import InvalidInput
from discreet.numbers import Exactable, exact, is_infinite, nonnegative, positive, probability, whole
from discreet.privacy import curve
from discreet.privacy.finite import FinitePair
from discreet.privacy.neighbours import ADD_REMOVE, Neighbours
from discreet.privacy.pairs import (
    DiscreteGaussianPair,
    DiscreteLaplacePair,
    GaussianPair,
    LaplacePair,
    Pair,
    PromisePair,
)
from discreet.privacy.posterior import Posterior, loss_within, posterior_after
from discreet.privacy.reals import Bounds, enclose

__all__ = ["FiniteLoss", "PrivacyLoss"]


@dataclass(frozen=True, repr=False)
class PrivacyLoss:
    """The loss ln P(o)/Q(o) between the outputs on two neighbours, in both directions.

    `there` compares P with Q, `back` compares Q with P; noise that is symmetric has the same loss both
    ways. Claim: each `..._bounds` encloses the true figure of the worse direction, and each plain figure is
    the end of that enclosure that promises less privacy. Both ends hold as binary values and as shortest
    decimals; a figure that is itself a float's shortest decimal is that float, twice.
    """

    there: Pair
    back: Pair
    neighbours: Neighbours = ADD_REMOVE

    @classmethod
    def of(cls, pair: Pair, neighbours: Neighbours | str = ADD_REMOVE) -> PrivacyLoss:
        """Take a pair in both directions."""
        return cls(pair, pair.reversed(), Neighbours.of(neighbours))

    # --- mechanisms by name, one sensitivity apart -----------------------------------------------

    @staticmethod
    def laplace(
        *, scale: Exactable, sensitivity: Exactable = 1, neighbours: Neighbours | str = ADD_REMOVE
    ) -> PrivacyLoss:
        """Laplace noise on the real line, density exp(-|x| / scale) / (2 scale)."""
        return PrivacyLoss.of(
            LaplacePair(positive(sensitivity, "sensitivity") / positive(scale, "scale")), neighbours
        )

    @staticmethod
    def gaussian(
        *, sigma: Exactable, sensitivity: Exactable = 1, neighbours: Neighbours | str = ADD_REMOVE
    ) -> PrivacyLoss:
        """Gaussian noise on the real line, with standard deviation sigma."""
        return PrivacyLoss.of(
            GaussianPair(positive(sensitivity, "sensitivity") / positive(sigma, "sigma")), neighbours
        )

    @staticmethod
    def discrete_laplace(
        *, scale: Exactable, sensitivity: int = 1, neighbours: Neighbours | str = ADD_REMOVE
    ) -> PrivacyLoss:
        """Integer noise with P(x) proportional to exp(-|x| / scale)."""
        shift = whole(sensitivity, "sensitivity", least=1)
        return PrivacyLoss.of(DiscreteLaplacePair(1 / positive(scale, "scale"), shift), neighbours)

    @staticmethod
    def discrete_gaussian(
        *, variance: Exactable, sensitivity: int = 1, neighbours: Neighbours | str = ADD_REMOVE
    ) -> PrivacyLoss:
        """Integer noise with P(x) proportional to exp(-x**2 / (2 variance))."""
        shift = whole(sensitivity, "sensitivity", least=1)
        return PrivacyLoss.of(DiscreteGaussianPair(positive(variance, "variance"), shift), neighbours)

    @staticmethod
    def pure(epsilon: Exactable, *, neighbours: Neighbours | str = ADD_REMOVE) -> PrivacyLoss:
        """The worst that a promise of pure epsilon allows: one bit, told truly with odds e**epsilon."""
        return PrivacyLoss.approx(epsilon, 0, neighbours=neighbours)

    @staticmethod
    def approx(
        epsilon: Exactable, delta: Exactable, *, neighbours: Neighbours | str = ADD_REMOVE
    ) -> PrivacyLoss:
        """The worst that an (epsilon, delta) promise allows: with probability delta, everything."""
        promise = PromisePair(nonnegative(epsilon, "epsilon"), probability(delta, "delta"))
        return PrivacyLoss.of(promise, neighbours)

    @staticmethod
    def randomized_response(
        *, truth: Exactable, k: int = 2, neighbours: Neighbours | str = "replace"
    ) -> FiniteLoss:
        """One person's report among k answers: the true one with probability `truth`, all coins counted.

        Each other answer is equally likely. `truth=0.75` is the textbook's two coins (tell the truth on
        heads; on tails answer by a second coin): a loss of ln 3. The respondent's answer is replaced.
        """
        p, k = probability(truth, "truth"), whole(k, "k", least=2)
        other = (1 - p) / (k - 1)
        rest = [(k - 2) * other] if k > 2 else []
        return PrivacyLoss.finite([p, other, *rest], [other, p, *rest], neighbours=neighbours)

    @staticmethod
    def finite(
        p: Sequence[Exactable], q: Sequence[Exactable], *, neighbours: Neighbours | str = ADD_REMOVE
    ) -> FiniteLoss:
        """Two exact distributions over the same outcomes, listed in the same order."""
        pair = FinitePair.of(p, q)
        return FiniteLoss(pair, pair.reversed(), Neighbours.of(neighbours))

    # --- figures -----------------------------------------------------------------------------------

    def delta_bounds(self, epsilon: Exactable) -> Bounds:
        """Bound the hockey-stick divergence at epsilon: the least delta that goes with it."""
        point = exact(epsilon, "epsilon")
        return self._worse(lambda pair: curve.delta_bounds(pair, point))

    def delta(self, epsilon: Exactable) -> float:
        """Return the least delta for which this loss is (epsilon, delta)-DP, rounded up."""
        return self.delta_bounds(epsilon).upper

    def epsilon_bounds(self, delta: Exactable) -> Bounds:
        """Bound the least epsilon that goes with delta; infinite where there is none."""
        chance = probability(delta, "delta")
        return self._worse(lambda pair: curve.epsilon_bounds(pair, chance))

    def epsilon(self, delta: Exactable) -> float:
        """Return the least epsilon for which this loss is (epsilon, delta)-DP, rounded up, or infinity."""
        return self.epsilon_bounds(delta).upper

    def satisfies(self, epsilon: Exactable, delta: Exactable) -> bool:
        """Tell whether this loss is (epsilon, delta)-DP: decided, not rounded; if it cannot be, no."""
        point, chance = nonnegative(epsilon, "epsilon"), probability(delta, "delta")
        return all(curve.satisfies(pair, point, chance) for pair in self._directions())

    @property
    def max_divergence_bounds(self) -> Bounds:
        """Bound the greatest loss."""
        return self._worse(curve.max_divergence_bounds)

    @property
    def max_divergence(self) -> float:
        """The greatest loss, which is the pure epsilon, rounded up; infinite where there is none."""
        return self.max_divergence_bounds.upper

    @property
    def kl_bounds(self) -> Bounds:
        """Bound the Kullback-Leibler divergence."""
        return self._worse(curve.kl_bounds)

    @property
    def kl(self) -> float:
        """The Kullback-Leibler divergence, the loss to expect, in nats and rounded up."""
        return self.kl_bounds.upper

    @property
    def statistical_distance_bounds(self) -> Bounds:
        """Bound the statistical (total variation) distance."""
        return self.delta_bounds(0)

    @property
    def statistical_distance(self) -> float | Fraction:
        """The most that the probability of any event differs, rounded up (a Fraction where it is one)."""
        return self.statistical_distance_bounds.upper

    @property
    def advantage(self) -> float | Fraction:
        """The most by which true- exceeds false-positive rate, whoever guesses if the person is in."""
        return self.statistical_distance

    def renyi_bounds(self, alpha: Exactable) -> Bounds:
        """Bound the Renyi divergence of order alpha >= 1 (1: Kullback-Leibler; math.inf: greatest loss)."""
        if is_infinite(alpha):
            return self.max_divergence_bounds
        order = exact(alpha, "alpha")
        if order < 1:
            raise InvalidInput(f"alpha must be at least 1, not {alpha}")
        return self.kl_bounds if order == 1 else self._worse(lambda pair: curve.renyi_bounds(pair, order))

    def renyi(self, alpha: Exactable) -> float:
        """Return the Renyi divergence of order alpha, rounded up."""
        return self.renyi_bounds(alpha).upper

    @property
    def rho_bounds(self) -> Bounds:
        """Bound the zero-concentrated loss."""
        return self._worse(curve.rho_bounds)

    @property
    def rho(self) -> float:
        """The least rho with renyi(alpha) <= rho alpha for every alpha > 1, rounded up."""
        return self.rho_bounds.upper

    def tradeoff_bounds(self, fpr: Exactable) -> Bounds:
        """Bound the best false-negative rate at a false-positive rate, whichever database is the null."""
        rate = probability(fpr, "fpr")
        return self._best_attack(lambda pair: curve.tradeoff_bounds(pair, rate))

    def tradeoff(self, fpr: Exactable) -> float | Fraction:
        """Return the lowest false-negative rate of any attack at a false-positive rate, rounded down."""
        return self.tradeoff_bounds(fpr).lower

    def within(self, failure: Exactable) -> float:
        """Return a loss that is exceeded with probability at most `failure`, rounded up.

        Under P for the loss ln P/Q and under Q for ln Q/P; with `failure` 0 it is the greatest loss.
        """
        return loss_within(self.epsilon_bounds, self.delta_bounds, failure)

    def posterior(self, prior: Exactable = 0.5, *, failure: Exactable = 0) -> Posterior:
        """Return how far a belief that the person is in the data can move, from a prior.

        With `failure` 0 this holds whatever comes out, and is (0, 1) where some outcome can give the
        person away. Otherwise: if they are in the data the belief rises above `high` with probability at
        most `failure` over the mechanism's own coins, if not it falls below `low` as seldom.
        """
        return posterior_after(self.within(failure), prior)

    def group(self, k: int) -> Self:
        """Return the loss between databases that differ in k units.

        Exact for Laplace and Gaussian noise, continuous or discrete. For a promise, (k epsilon, delta
        (e**(k epsilon) - 1) / (e**epsilon - 1)). For finite distributions, the least trade-off curve that is
        no better than either direction, applied k times; where both directions have the same curve, no
        better bound holds for every mechanism that has it.
        """
        pair = self.there.group(whole(k, "k", least=1))
        return type(self)(pair, pair.reversed(), self.neighbours.at(k))

    def __repr__(self) -> str:
        other = "" if self.there == self.back else f", {self.back!r}"
        return f"{type(self).__name__}({self.there!r}{other}, {self.neighbours!r})"

    def _directions(self) -> list[Pair]:
        return [self.there] if self.there == self.back else [self.there, self.back]

    def _best_attack(self, missed: Callable[[Pair], Bounds]) -> Bounds:
        both = [missed(pair) for pair in self._directions()]
        return Bounds(min(b.lower for b in both), min(b.upper for b in both))

    def _worse(self, figure: Callable[[Pair], Bounds]) -> Bounds:
        both = [figure(pair) for pair in self._directions()]
        return Bounds(max(b.lower for b in both), max(b.upper for b in both))


@dataclass(frozen=True, repr=False)
class FiniteLoss(PrivacyLoss):
    """The loss between two finite distributions given as exact fractions: rational figures are exact.

    >>> loss = PrivacyLoss.randomized_response(truth=Fraction(3, 4))
    >>> loss.max_ratio, loss.statistical_distance, loss.tradeoff(Fraction(1, 8))
    (Fraction(3, 1), Fraction(1, 2), Fraction(5, 8))
    """

    there: FinitePair
    back: FinitePair

    def hockey_stick(self, ratio: Exactable) -> Fraction:
        """Return the hockey-stick divergence at a rational ratio e**epsilon, exactly."""
        at = nonnegative(ratio, "ratio")
        return max(self.there.hockey_stick(at), self.back.hockey_stick(at))

    @property
    def max_ratio(self) -> Fraction | None:
        """The greatest ratio of probabilities, e to the max-divergence, exactly; None if it is infinite."""
        ratios = self.there.greatest_ratio(), self.back.greatest_ratio()
        return None if ratios[0] is None or ratios[1] is None else max(ratios[0], ratios[1])

    @property
    def statistical_distance(self) -> Fraction:
        """The most that the probability of any event differs, exactly."""
        return self.there.hockey_stick(Fraction(1))

    def tradeoff(self, fpr: Exactable) -> Fraction:
        """Return the lowest false-negative rate an attacker can reach at a false-positive rate, exactly."""
        rate = probability(fpr, "fpr")
        return 1 - max(pair.power_curve()(rate) for pair in (self.there, self.back))

    def tradeoff_bounds(self, fpr: Exactable) -> Bounds:
        """Return floats around `tradeoff(fpr)`."""
        missed = self.tradeoff(fpr)
        return enclose(lambda: missed)
