"""Choosing the best of several candidates by their scores, and saying only which.

The candidates and their order are public; their scores are not. Scores of neighbouring databases differ by
at most `sensitivity` each, under whichever relation that is stated. `monotonic` says more: adding a unit
lowers no score (or: raises none), as with counts; then half the noise is enough.

>>> m = PermuteAndFlip(epsilon=1, sensitivity=1)
>>> m.error(confidence=0.95, candidates=100)        # what is chosen is so close to the best
13.7277...
>>> float(PermuteAndFlip.solve(error=10, failure=0.01, candidates=100).epsilon)
1.7001...
>>> ExponentialMechanism.calibrate(rho=0.5)
ExponentialMechanism(epsilon=2, sensitivity=1)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.mechanisms.additive import Sensitive, guarantee_asked, relation_of
from discreet.mechanisms.scores import (
    affordable,
    each_moves,
    fails_at_most,
    failure_of,
    one_way,
    read_failure,
    read_scores,
    read_sensitivity,
)
from discreet.mechanisms.search import least
from discreet.mechanisms.sensitivity import Sensitivity
from discreet.mechanisms.tails import falling_sum
from discreet.mechanisms.weighted import Weights, nearest
from discreet.noise import SYSTEM, Source
from discreet.noise.ranking import exact_ranking
from discreet.noise.source import checked
from discreet.numbers import Exactable, fraction_text, nonnegative, positive, whole
from discreet.privacy import ZCDP, Guarantee, Neighbours, PrivacyLoss, PureDP
from discreet.privacy.reals import ball, enclose

__all__ = ["ExponentialMechanism", "PermuteAndFlip", "Selector", "TopK", "harmonic", "rivals_of"]

# Pr(a rival wins), given exp(-rate gap) for the gap by which each is behind, and how many they are.
Misses = Callable[[arb, int], arb]


@dataclass(frozen=True, repr=False)
class Selector(ABC):
    """What all selections share: pure epsilon for scores that move by at most `sensitivity` each."""

    epsilon: Fraction
    sensitivity: Fraction | Sensitivity
    monotonic: bool

    def __init__(self, epsilon: Exactable, sensitivity: Sensitive = 1, monotonic: bool = False) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", read_sensitivity(sensitivity, monotonic))
        object.__setattr__(self, "monotonic", monotonic)

    def loss(self, *, neighbours: Neighbours | str | None = None) -> PrivacyLoss:
        """Return the worst loss that pure epsilon allows."""
        relation = relation_of(self.sensitivity, neighbours)
        if self.monotonic:
            one_way(relation)
        return PrivacyLoss.pure(self.epsilon, neighbours=relation)

    def guarantee(self) -> PureDP:
        """Return the pure promise."""
        return PureDP(self.epsilon)

    @property
    def _rate(self) -> Fraction:
        """The loss that a release may have for each unit that a score moves, if it is spent on one choice."""
        return self.epsilon / (each_moves(self.sensitivity) * (1 if self.monotonic else 2))

    def _text(self, **figures: str) -> str:
        shown = {"epsilon": fraction_text(self.epsilon), **figures}
        shown["sensitivity"] = fraction_text(each_moves(self.sensitivity))
        if self.monotonic:
            shown["monotonic"] = "True"
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in shown.items())})"

    def __repr__(self) -> str:
        return self._text()


class _Chooser(Selector):
    """One winner of several candidates."""

    @classmethod
    def _keeps(cls, epsilon: Fraction, promise: Guarantee) -> bool:
        return PureDP(epsilon) <= promise

    @classmethod
    def calibrate(
        cls,
        guarantee: Guarantee | None = None,
        *,
        epsilon: Exactable | None = None,
        delta: Exactable | None = None,
        rho: Exactable | None = None,
        mu: Exactable | None = None,
        sensitivity: Sensitive = 1,
        monotonic: bool = False,
    ) -> Self:
        """Return the most accurate one that keeps a promise: `epsilon=` (and `delta=`), `rho=` or `mu=`."""
        promise = guarantee_asked(guarantee, epsilon, delta, rho, mu)
        return cls(affordable(promise, lambda e: cls._keeps(e, promise)), sensitivity, monotonic)

    @staticmethod
    @abstractmethod
    def _misses(q: arb, rivals: int) -> arb:
        """Return Pr(a rival wins), where each of the `rivals` is behind by a gap with exp(-rate gap) = q."""

    def tail(self, t: Exactable, *, candidates: int) -> float:
        """Return the chance that the one chosen is worse than the best by t or more, rounded up.

        Claim: it is that chance for the worst scores of so many candidates, so for any it is at most this.
        """
        gap, rivals = nonnegative(t, "t"), rivals_of(candidates)
        return _tail(self._misses, self._rate * gap, rivals) if gap else 1.0

    def error(self, confidence: Exactable = 0.95, *, candidates: int) -> float:
        """Return a gap to the best that is not exceeded with this confidence, rounded up.

        Claim: no smaller one would do for the worst scores of so many candidates, but for rounding.
        """
        x = _least_exponent(self._misses, failure_of(confidence), rivals_of(candidates))
        return enclose(lambda: x / self._rate).upper

    def expected_error(self, *, candidates: int) -> float:
        """Return the expected gap to the best, at most, rounded up.

        Claim: it is that of the exponential mechanism for its worst scores, W((candidates - 1) / e) / rate,
        where W is Lambert's function.
        """
        rivals = rivals_of(candidates)
        return max(0.0, enclose(lambda: (rivals / arb(1).exp()).lambertw() / ball(self._rate)).upper)

    @classmethod
    def solve(
        cls,
        *,
        error: Exactable,
        failure: Exactable,
        candidates: int,
        sensitivity: Sensitive = 1,
        monotonic: bool = False,
    ) -> Self:
        """Return the most private one that is worse than the best by `error` with at most this chance."""
        gap, chance = positive(error, "error"), read_failure(failure)
        x = _needed(cls._misses, chance, rivals_of(candidates))
        return cls(x / (gap * cls(1, sensitivity, monotonic)._rate), sensitivity, monotonic)


class ExponentialMechanism(_Chooser):
    """Chooses index i with probability exactly proportional to exp(epsilon * score[i] / (2 * sensitivity)).

    Claim: if between neighbours each score differs by at most `sensitivity`, a release keeps pure `epsilon`
    and ZCDP(epsilon**2 / 8); for monotonic scores also without the 2. Scores are taken exactly, floats at
    their binary values, so the sensitivity must hold for these: it includes what computing them rounded.
    """

    def release(self, scores: Any, *, source: Source = SYSTEM) -> int:
        """Return the index of the one chosen."""
        chosen: int = checked(source).label(int(self._choices(scores, 1, source)[0]))
        return chosen

    def _choices(self, scores: Any, draws: int, source: Source) -> NDArray[np.intp]:
        """Make independent choices, which cost `draws` times as much."""
        values = read_scores(scores).values
        best, rate = Fraction(values.max()), self._rate
        gaps = _gaps(values, rate)
        return Weights(gaps, lambda i: (best - Fraction(values.item(i))) * rate, None).fill(draws, source)

    def concentrated(self) -> ZCDP:
        """Return the zero-concentrated promise, epsilon**2 / 8, from the range of the loss."""
        return ZCDP(self.epsilon**2 / 8)

    @classmethod
    def _keeps(cls, epsilon: Fraction, promise: Guarantee) -> bool:
        return PureDP(epsilon) <= promise or ZCDP(epsilon**2 / 8) <= promise

    @staticmethod
    def _misses(q: arb, rivals: int) -> arb:
        return rivals * q / (1 + rivals * q)


def _gaps(values: NDArray[Any], rate: Fraction) -> NDArray[np.float64]:
    """Return (best - value) * rate in doubles, each off by at most 2**-50 of itself or 2**-1000.

    A difference beyond any double becomes an infinite gap: at these rates it is above 2**100.
    """
    best = values.max()
    if values.dtype != object and Fraction(1, 2**900) < rate < 2**900:
        with np.errstate(over="ignore"):
            gaps: NDArray[np.float64] = (best - values).astype(np.float64) * float(rate)
        return gaps
    top = Fraction(best)
    return np.array([nearest((top - Fraction(value)) * rate) for value in values.tolist()])


class PermuteAndFlip(_Chooser):
    """Chooses the largest of score[i] + Exponential noise of scale 2 * sensitivity / epsilon, on the reals.

    Claim: if between neighbours each score differs by at most `sensitivity`, a release keeps pure `epsilon`;
    for monotonic scores also without the 2. This is report-noisy-max with exponential noise, and has the law
    of permute-and-flip (McKenna and Sheldon 2020): whatever the scores, its expected error is no larger than
    the exponential mechanism's. Scores are taken exactly, as there.
    """

    def release(self, scores: Any, *, source: Source = SYSTEM) -> int:
        """Return the index of the one chosen."""
        chosen: int = checked(source).label(int(_ranked(scores, self._rate, 1, source)[0]))
        return chosen

    @staticmethod
    def _misses(q: arb, rivals: int) -> arb:
        return _outranked(q, 1, rivals)


def _ranked(scores: Any, rate: Fraction, top: int, source: Source) -> NDArray[np.intp]:
    """Return the places of the largest of rate * score + Exponential(1)."""
    values, unit = _as_integers(read_scores(scores).values.tolist())
    if top > len(values):
        raise InvalidInput(f"there are only {len(values)} candidates to choose the top {top} from")
    return exact_ranking(values, unit * rate, top, checked(source))


def _as_integers(scores: list[Any]) -> tuple[list[Any], Fraction]:
    """Return scores as multiples of a unit: whole ones, of floats, whose denominators are powers of two."""
    if not all(type(score) is float for score in scores):
        return scores, Fraction(1)
    ratios = [score.as_integer_ratio() for score in scores]
    common = max(bottom for _, bottom in ratios)
    return [top * (common // bottom) for top, bottom in ratios], Fraction(1, common)


def _outranked(q: arb, k: int, rivals: int) -> arb:
    """Return the chance that one of the rivals is among the top k, where each is behind by a gap of q.

    Claim: with n = k + rivals and q < 1 it is 1 - Pr(Binomial(n, q) >= k) / (C(n, k) q**k). Divided out, the
    quotient is (1 - q)**rivals times a sum of positive terms, each of which is less of the one before.
    """
    odds = q / (1 - q)
    none = (rivals * (-q).log1p()).exp()
    return 1 - falling_sum(none, lambda i: odds * (rivals - i) / (k + i + 1), rivals)


@dataclass(frozen=True, repr=False)
class TopK(Selector):
    """Chooses the k largest of score[i] + Exponential noise of scale 2 k sensitivity / epsilon, in order.

    Claim: if between neighbours each score differs by at most `sensitivity`, the whole ordered list keeps
    pure `epsilon`; for monotonic scores also without the 2. Noise is drawn once, on the reals.
    """

    k: int

    def __init__(
        self, k: int, epsilon: Exactable, sensitivity: Sensitive = 1, monotonic: bool = False
    ) -> None:
        object.__setattr__(self, "k", whole(k, "k", least=1))
        super().__init__(epsilon, sensitivity, monotonic)

    def release(self, scores: Any, *, source: Source = SYSTEM) -> NDArray[np.intp]:
        """Return the indices of those chosen, the first first."""
        chosen: NDArray[np.intp] = checked(source).label(_ranked(scores, self._rate, self.k, source))
        return chosen

    @property
    def _rate(self) -> Fraction:
        return super()._rate / self.k

    @classmethod
    def calibrate(
        cls,
        k: int,
        guarantee: Guarantee | None = None,
        *,
        epsilon: Exactable | None = None,
        delta: Exactable | None = None,
        rho: Exactable | None = None,
        mu: Exactable | None = None,
        sensitivity: Sensitive = 1,
        monotonic: bool = False,
    ) -> Self:
        """Return the most accurate one that keeps a promise: `epsilon=` (and `delta=`), `rho=` or `mu=`."""
        promise = guarantee_asked(guarantee, epsilon, delta, rho, mu)
        return cls(k, affordable(promise, lambda e: PureDP(e) <= promise), sensitivity, monotonic)

    def tail(self, t: Exactable, *, candidates: int) -> float:
        """Return the chance that any one chosen is worse than the k-th best by t or more, rounded up.

        Claim: it is that chance for the worst scores of so many candidates, so for any it is at most this.
        """
        gap, rivals = nonnegative(t, "t"), rivals_of(candidates, self.k)
        return _tail(self._misses, self._rate * gap, rivals) if gap else 1.0

    def error(self, confidence: Exactable = 0.95, *, candidates: int) -> float:
        """Return a gap to the k-th best that none chosen exceeds with this confidence, rounded up.

        Claim: no smaller one would do for the worst scores of so many candidates, but for rounding.
        """
        x = _least_exponent(self._misses, failure_of(confidence), rivals_of(candidates, self.k), self.k)
        return enclose(lambda: x / self._rate).upper

    def expected_error(self, *, candidates: int) -> float:
        """Return the expected gap of the worst one chosen to the k-th best, at most, rounded up.

        Claim: one chosen in place of another is behind it by no more than its own noise, so that this is at
        most the expected largest noise of the rivals: (1 + 1/2 + ... + 1/rivals) / rate. With k = 1 it is
        permute-and-flip, and has its bound.
        """
        rivals = rivals_of(candidates, self.k)
        if self.k == 1:
            return PermuteAndFlip(self.epsilon, self.sensitivity, self.monotonic).expected_error(
                candidates=candidates
            )
        return enclose(lambda: harmonic(rivals) / ball(self._rate)).upper

    @classmethod
    def solve(
        cls,
        *,
        k: int,
        error: Exactable,
        failure: Exactable,
        candidates: int,
        sensitivity: Sensitive = 1,
        monotonic: bool = False,
    ) -> Self:
        """Return the most private one of which any is worse than the k-th best by `error` so seldom."""
        gap, chance = positive(error, "error"), read_failure(failure)
        one = cls(k, 1, sensitivity, monotonic)
        x = _needed(one._misses, chance, rivals_of(candidates, k), k)
        return cls(k, x / (gap * one._rate), sensitivity, monotonic)

    def _misses(self, q: arb, rivals: int) -> arb:
        return _outranked(q, self.k, rivals)

    def __repr__(self) -> str:
        return self._text(k=str(self.k))


def rivals_of(candidates: int, k: int = 1) -> int:
    """Return how many candidates are not among the best k."""
    count = whole(candidates, "candidates", least=1)
    if count < k:
        raise InvalidInput(f"there are only {count} candidates to choose the top {k} from")
    return count - k


def harmonic(n: int) -> arb:
    """Return 1 + 1/2 + ... + 1/n, the expected largest of n exponential variates."""
    return arb(n + 1).digamma() + arb.const_euler() if n else arb(0)


def _chance(misses: Misses, x: Fraction, rivals: int) -> arb:
    return misses((-ball(x)).exp(), rivals) if rivals else arb(0)


def _tail(misses: Misses, x: Fraction, rivals: int) -> float:
    return min(1.0, max(0.0, enclose(lambda: _chance(misses, x, rivals)).upper))


def _least_exponent(misses: Misses, failure: Fraction, rivals: int, k: int = 1) -> Fraction:
    """Return the least x = rate * gap at which rivals that far behind win with at most this chance.

    Without any gap all choices of k are alike, and one has no rival in it: this is decided exactly.
    """
    if 1 - Fraction(1, math.comb(k + rivals, k)) <= failure:
        return Fraction(0)
    return least(lambda x: fails_at_most(lambda: _chance(misses, x, rivals), failure), Fraction(1))


def _needed(misses: Misses, failure: Fraction, rivals: int, k: int = 1) -> Fraction:
    x = _least_exponent(misses, failure, rivals, k)
    if not x:
        raise InvalidInput(
            "choosing among so few candidates at random, without any score, fails as seldom as that: "
            "ask for a smaller failure"
        )
    return x
