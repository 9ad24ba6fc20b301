"""Keys and noisy counts, of all keys whose noisy count is above a threshold: Gaussian or Laplace noise.

>>> m = LaplaceKeys.calibrate(epsilon=1, delta=1e-6)
>>> m, m.guarantee() <= ApproxDP(1, 1e-6)
(LaplaceKeys(scale=1, threshold=14, keys_per_unit=1), True)
>>> GaussianKeys.calibrate(epsilon=1, delta=1e-6, keys_per_unit=20).shown_from(0.95)     # units
141
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from flint import arb

from discreet.errors import InvalidInput, Unsupported
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.keys import (
    CountedKeys,
    Keys,
    any_of,
    chance_bounds,
    read_delta,
    read_keep,
    read_promise,
)
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.search import greatest, least_whole
from discreet.mechanisms.sensitivity import Sensitivity
from discreet.noise import SYSTEM, Source
from discreet.numbers import Exactable, exact, positive, whole
from discreet.privacy import ZCDP, ApproxDP, Bounds, Guarantee, Neighbours, PrivacyLoss
from discreet.privacy.pairs import Masses, Pair
from discreet.privacy.reals import Real, as_ball, ball

__all__ = ["GaussianKeys", "LaplaceKeys"]


class _NoisyKeys(Keys):
    """Adds noise to the count of every key that is in the data, and shows what is above a threshold."""

    threshold: int

    # What the width of the noise is called.
    _WIDTH: ClassVar[str]
    # The part of delta that is for keys that are one unit's own; the noise has what that leaves.
    _SHARE: ClassVar[Fraction]

    @abstractmethod
    def __init__(self, width: Exactable, threshold: int, keys_per_unit: int = 1) -> None:
        """Take a scale or a variance, of the noise of one count."""

    def _set(self, width: Exactable, threshold: int, keys_per_unit: int) -> None:
        object.__setattr__(self, self._WIDTH, positive(width, self._WIDTH))
        object.__setattr__(self, "threshold", whole(threshold, "threshold", least=1))
        object.__setattr__(self, "keys_per_unit", whole(keys_per_unit, "keys_per_unit", least=1))

    @property
    @abstractmethod
    def noise(self) -> Gaussian | Laplace:
        """The noise of one count."""

    def release(self, counts: Any, *, keys: Any = None, source: Source = SYSTEM) -> dict[Any, Any]:
        """Return the keys that may be shown, with noisy counts: of a mapping, or of counts and their keys.

        Claim: each key of n > 0 units is shown just when n + X, with independent exact noise X, is above the
        threshold, and with that number; in the natural order of keys. Counts that are shown are biased
        upward, since they are shown for being large.
        """
        read = CountedKeys.of(counts, keys)
        # With a count more, which is thrown away, a table without keys is treated like any other.
        noisy = np.asarray(self.noise.release(np.append(read.counts, 0), source=source))[:-1]
        return read.shown_with(noisy, (read.counts > 0) & (noisy > self.threshold), source)

    def keep_probability(self, n: int) -> Bounds:
        """Bound Pr(n + X > threshold); a key that nobody has is never shown."""
        n = whole(n, "n")
        return chance_bounds(lambda: self._shown(n) if n else Fraction(0))

    def _shown(self, n: int) -> arb:
        law, m = self.noise._law, self.threshold + 1 - n
        return law.tail(m) / 2 if m > 0 else 1 - law.tail(1 - m) / 2

    def escape(self) -> Fraction:
        """Return the chance that any of a unit's keys is shown, if nobody else has them, rounded up."""
        return any_of(lambda: self._shown(1), self.keys_per_unit)

    def error(self, confidence: Exactable = 0.95) -> int:
        """Return e such that a key is shown with a count further off than e this seldom.

        Claim: for each key, "it is shown, and its count is off by more than e" has probability at most
        1 - confidence. Given that it is shown no interval is claimed: see discreet.mechanisms.keys.
        """
        return int(self.noise.error(confidence))

    def expected_error(self) -> float:
        """Return how far off a count is expected to be where it is shown, times how often it is, rounded up.

        Claim: for each key, the mean of the distance if it is shown and of 0 if not is at most E|noise|.
        """
        return self.noise.expected_error()

    def loss(self, *, neighbours: Neighbours | str = "add-remove") -> PrivacyLoss:
        """Return the loss of a release: with probability `escape` everything, otherwise that of the noise.

        Claim: no divergence between neighbours is greater, however many of a unit's keys are its own.
        """
        noise = self.noise.loss(Sensitivity.counts(self._moved(neighbours), neighbours=neighbours))
        return PrivacyLoss.of(_EscapePair(noise.there, self.escape()), neighbours)

    @classmethod
    def _above(cls, width: Fraction, chance: Fraction, keys_per_unit: int) -> Self:
        """Return noise with the least threshold that lets a unit's own keys pass at most this often."""

        def keeps(threshold: int) -> bool:
            return threshold > 0 and cls(width, threshold, keys_per_unit).escape() <= chance

        return cls(width, least_whole(keeps), keys_per_unit)

    @classmethod
    def solve(cls, *, keep: int, failure: Exactable, delta: Exactable, keys_per_unit: int = 1) -> Self:
        """Return the widest noise that misses a key of `keep` units at most this often, at a delta.

        What it then costs is `.loss().epsilon(delta)`.
        """
        (n, rare), chance = read_keep(keep, failure), read_delta(delta) * cls._SHARE
        count = whole(keys_per_unit, "keys_per_unit", least=1)

        def keeps(width: Fraction) -> bool:
            return exact(cls._above(width, chance, count).shows(n), "chance") >= 1 - rare

        return cls._above(greatest(keeps, Fraction(n)), chance, count)


@dataclass(frozen=True, repr=False)
class GaussianKeys(_NoisyKeys):
    """Shows keys and counts with discrete Gaussian noise, where they are above a threshold.

    Claim: for neighbours that differ in one unit, which has at most `keys_per_unit` keys and counts once for
    each, a release has `loss()` at worst, and is rho-zCDP but for an event of probability `escape()`.
    """

    variance: Fraction
    threshold: int
    keys_per_unit: int

    _WIDTH = "variance"
    _SHARE = Fraction(1, 2)

    def __init__(self, variance: Exactable, threshold: int, keys_per_unit: int = 1) -> None:
        self._set(variance, threshold, keys_per_unit)

    @classmethod
    def calibrate(
        cls,
        guarantee: Guarantee | None = None,
        *,
        epsilon: Exactable | None = None,
        delta: Exactable | None = None,
        rho: Exactable | None = None,
        keys_per_unit: int = 1,
    ) -> Self:
        """Return the least noise and threshold for an (epsilon, delta) promise, or for rho and a delta.

        Half of delta is for keys that are one unit's own, and what that leaves for the noise. With `rho=` all
        of delta is for the keys: the release is delta-approximate rho-zCDP.
        """
        moved = Sensitivity.counts(keys_per_unit)
        if rho is not None:
            if guarantee is not None or epsilon is not None or delta is None:
                raise InvalidInput("give rho= with delta=, or epsilon= with delta=, or a guarantee")
            noise = Gaussian.calibrate(rho=rho, sensitivity=moved)
            return cls._above(noise.variance, read_delta(delta), keys_per_unit)
        promise = read_promise(guarantee, epsilon, delta)
        chance = promise.delta * cls._SHARE
        # Either happens with probability 1 - (1 - chance) (1 - rest) = delta.
        rest = 1 - (1 - promise.delta) / (1 - chance)
        noise = Gaussian.calibrate(epsilon=promise.epsilon, delta=rest, sensitivity=moved)
        return cls._above(noise.variance, chance, keys_per_unit)

    @property
    def noise(self) -> Gaussian:
        """The noise of one count."""
        return Gaussian(self.variance)

    def guarantee(self, *, delta: Exactable, neighbours: Neighbours | str = "add-remove") -> ApproxDP:
        """Return the promise at a delta, which must be above `escape()`."""
        epsilon = self.loss(neighbours=neighbours).epsilon(delta)
        if math.isinf(epsilon):
            raise Unsupported(
                "a unit's own keys are shown more often than that: ask for a delta above .escape()"
            )
        return ApproxDP(epsilon, delta)

    def approximate_zcdp(self, *, neighbours: Neighbours | str = "add-remove") -> tuple[ZCDP, Fraction]:
        """Return (rho, delta): delta-approximate rho-zCDP (Bun and Steinke 2016, definition 8.1)."""
        return self.noise.guarantee(Sensitivity.counts(self._moved(neighbours))), self.escape()


@dataclass(frozen=True, repr=False)
class LaplaceKeys(_NoisyKeys):
    """Shows keys and counts with discrete Laplace noise, where they are above a threshold.

    Claim: for neighbours that differ in one unit, which has at most `keys_per_unit` keys and counts once for
    each, a release is (keys_per_unit / scale, escape())-DP, and has `loss()` at worst.
    """

    scale: Fraction
    threshold: int
    keys_per_unit: int

    _WIDTH = "scale"
    _SHARE = Fraction(1)

    def __init__(self, scale: Exactable, threshold: int, keys_per_unit: int = 1) -> None:
        self._set(scale, threshold, keys_per_unit)

    @classmethod
    def calibrate(
        cls,
        guarantee: Guarantee | None = None,
        *,
        epsilon: Exactable | None = None,
        delta: Exactable | None = None,
        keys_per_unit: int = 1,
    ) -> Self:
        """Return the noise of a pure epsilon, and the least threshold for delta."""
        promise = read_promise(guarantee, epsilon, delta)
        count = whole(keys_per_unit, "keys_per_unit", least=1)
        return cls._above(count / promise.epsilon, promise.delta, count)

    @property
    def noise(self) -> Laplace:
        """The noise of one count."""
        return Laplace(self.scale)

    def guarantee(self, *, neighbours: Neighbours | str = "add-remove") -> ApproxDP:
        """Return the promise, its delta rounded up."""
        return ApproxDP(self._moved(neighbours) / self.scale, self.escape())


@dataclass(frozen=True)
class _EscapePair(Pair):
    """With probability `chance` an outcome that the other side never has; otherwise those of a pair."""

    pair: Pair
    chance: Fraction

    def above(self, epsilon: Fraction) -> Masses:
        """The outcome that escapes has infinite loss, and the other's own, which P never has, minus that."""
        p, q = self.pair.above(epsilon)
        if isinstance(p, Fraction) and isinstance(q, Fraction):
            return self.chance + (1 - self.chance) * p, (1 - self.chance) * q
        rest = ball(1 - self.chance)
        return ball(self.chance) + rest * as_ball(p), rest * as_ball(q)

    def kl(self) -> Real:
        """Not asked: something escapes."""
        return self.pair.kl()

    def renyi(self, alpha: Fraction) -> Real:
        """Not asked: something escapes."""
        return self.pair.renyi(alpha)

    def greatest(self) -> Real | None:
        """The noise's own."""
        return self.pair.greatest()

    def escaped(self) -> Fraction:
        """The chance itself."""
        return self.chance

    def group(self, k: int) -> Pair:
        """Keys that several units have are shown more often than their own: there is no such pair."""
        if k == 1:
            return self
        raise Unsupported("take the group of a promise instead: m.guarantee(...).group(k)")
