"""Keys shown as often as an (epsilon, delta) promise allows.

>>> m = OptimalKeys(epsilon=1, delta=1e-6)
>>> m.keep_probability(28), m.release({"flu": 400, "plague": 0})
(Bounds(lower=1.0, upper=1.0), ['flu'])
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.mechanisms.keys import (
    CountedKeys,
    Keys,
    any_of,
    chance_bounds,
    read_delta,
    read_keep,
    read_promise,
)
from discreet.mechanisms.search import greatest_whole, least, least_whole
from discreet.noise import SYSTEM, Source
from discreet.noise.coins import uniform_is_below
from discreet.noise.exponent import Enclosure
from discreet.noise.source import checked
from discreet.numbers import Exactable, exact, positive, whole
from discreet.privacy import ApproxDP, Bounds, Guarantee, Neighbours, PrivacyLoss
from discreet.privacy.reals import ball, certainly, enclose, precision

__all__ = ["OptimalKeys"]

_WORD = 64
_GUARD_BITS = 64
_HALF = Fraction(1, 2)


@dataclass(frozen=True, repr=False)
class OptimalKeys(Keys):
    """Shows each key of n units with the greatest probability pi(n) that a promise allows.

    Claim: for neighbours that differ in one unit, which has at most `keys_per_unit` keys and counts once for
    each, a release is (epsilon, delta)-DP. With one key a unit no mechanism that is, and that treats keys
    alike, shows a key of any n with a greater probability (Desfontaines, Voss, Gipson, Mandayam 2022, theorem
    1): pi(0) = 0, and pi(n + 1) is the least of 1, e**eps pi(n) + delta and 1 - e**-eps (1 - pi(n) - delta).
    With more, every key has epsilon / keys_per_unit and 1 - (1 - delta)**(1 / keys_per_unit), which is more
    than its part of delta, and nothing is claimed to be optimal: see docs/proofs/keys.md.
    """

    epsilon: Fraction
    delta: Fraction
    keys_per_unit: int

    def __init__(self, epsilon: Exactable, delta: Exactable, keys_per_unit: int = 1) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "delta", read_delta(delta))
        object.__setattr__(self, "keys_per_unit", whole(keys_per_unit, "keys_per_unit", least=1))
        if not self.key_delta:
            raise InvalidInput("so small a delta, divided among so many keys, is none: take a larger one")

    @classmethod
    def calibrate(
        cls,
        guarantee: Guarantee | None = None,
        *,
        epsilon: Exactable | None = None,
        delta: Exactable | None = None,
        keys_per_unit: int = 1,
    ) -> Self:
        """Return the choice of keys that keeps an (epsilon, delta) promise: ApproxDP, and no other."""
        promise = read_promise(guarantee, epsilon, delta)
        return cls(promise.epsilon, promise.delta, keys_per_unit)

    @classmethod
    def solve(cls, *, keep: int, failure: Exactable, delta: Exactable, keys_per_unit: int = 1) -> Self:
        """Return the most private choice that misses a key of `keep` units at most this often, at a delta."""
        n, chance = read_keep(keep, failure)
        if n * cls(1, delta, keys_per_unit).key_delta >= 1 - chance:
            raise InvalidInput(
                "delta alone shows such a key often enough, at any epsilon: take a smaller one"
            )

        def keeps(epsilon: Fraction) -> bool:
            return exact(cls(epsilon, delta, keys_per_unit).shows(n), "chance") >= 1 - chance

        return cls(least(keeps, Fraction(1)), delta, keys_per_unit)

    # --- how often a key is shown --------------------------------------------------------------------

    @property
    def key_epsilon(self) -> Fraction:
        """The epsilon of one key."""
        return self.epsilon / self.keys_per_unit

    @cached_property
    def key_delta(self) -> Fraction:
        """The delta of one key: 1 - (1 - delta)**(1 / keys_per_unit), rounded down."""
        if self.keys_per_unit == 1:
            return self.delta
        each = enclose(lambda: -((-ball(self.delta)).log1p() / self.keys_per_unit).expm1()).lower
        return exact(max(each, 0.0), "delta")

    @cached_property
    def threshold(self) -> int:
        """The last n at which pi(n) = e**eps pi(n - 1) + delta."""

        def grows(n: int) -> bool:
            # Never equal: e**eps is transcendental, and would be the root of a polynomial.
            rest = 1 - self.key_delta
            return not certainly(lambda: (self._growth(n), ball(rest) / (1 + ball(self.key_epsilon).exp())))

        return 1 + greatest_whole(grows)

    @cached_property
    def _sure(self) -> int:
        """The first n at which pi(n) = 1."""
        if self.key_delta >= _HALF:  # at 1/2 the chance left at 2 is exactly 0, which no ball would show
            return 2
        left = least_whole(lambda j: not certainly(lambda: (self._left(self.threshold + j), arb(0))))
        return self.threshold + left

    def _growth(self, n: int) -> arb:
        """Return delta (1 + e**eps + ... + e**((n - 1) eps))."""
        return ball(self.key_delta) * ball(n * self.key_epsilon).expm1() / ball(self.key_epsilon).expm1()

    def _left(self, n: int) -> arb:
        """Return 1 - pi(n) for n from the threshold up, if that is positive."""
        turn = self.threshold
        more = ball(self.key_delta) / ball(self.key_epsilon).expm1()
        return (-ball((n - turn) * self.key_epsilon)).exp() * (1 - self._growth(turn) + more) - more

    def _keep(self, n: int) -> arb:
        """Return pi(n) for 0 < n < the first that is sure."""
        return self._growth(n) if n <= self.threshold else 1 - self._left(n)

    def keep_probability(self, n: int) -> Bounds:
        """Bound pi(n)."""
        n = whole(n, "n")
        if n == 0 or n >= self._sure:
            return Bounds(float(n > 0), float(n > 0))
        return chance_bounds(lambda: self._keep(n))

    # --- release ----------------------------------------------------------------------------------

    def release(self, counts: Any, *, keys: Any = None, source: Source = SYSTEM) -> Any:
        """List the keys that may be shown: of a mapping to counts of units, or of counts and keys.

        Claim: keys are shown independently, each with probability exactly pi(its count), and come in their
        natural order, so that the order of the data, in which they came, cannot be seen.
        """
        read = CountedKeys.of(counts, keys)
        return read.shown(self._chosen(read.counts, checked(source)), source)

    def _chosen(self, counts: NDArray[np.int64], source: Source) -> NDArray[np.bool_]:
        """Compare a word a key with pi(n); only a word that ties with it needs more bits."""
        chosen = counts >= self._sure
        places = np.flatnonzero((counts > 0) & ~chosen)
        levels, which = np.unique(counts[places], return_inverse=True)
        ends = [self._keep_bounds(n, _WORD) for n in levels.tolist()]
        low = np.array([low for low, _ in ends], np.uint64)[which]
        last = np.array([high - 1 for _, high in ends], np.uint64)[which]
        words = source.words(places.size)
        heads = words < low
        for tie in np.flatnonzero(~heads & (words <= last)):
            n = int(levels[which[tie]])
            heads[tie] = uniform_is_below(
                source,
                int(words[tie]),
                _WORD,
                lambda bits, n=n: self._keep_bounds(n, bits),  # type: ignore[misc]
            )
        chosen[places] = heads
        return chosen

    def _keep_bounds(self, n: int, bits: int) -> Enclosure:
        """Return integers around 2**bits pi(n), of which the first is below 2**bits."""
        with precision(bits + _GUARD_BITS):
            scaled = self._keep(n) * arb(2) ** bits
            low, high = _integer(scaled.lower().floor()), _integer(scaled.upper().ceil())
        low = min(max(low, 0), (1 << bits) - 1)
        return low, min(max(high, low + 1), 1 << bits)

    # --- what it costs -------------------------------------------------------------------------------

    def loss(self, *, neighbours: Neighbours | str = "add-remove") -> PrivacyLoss:
        """Return the loss of a release: that of the promise."""
        promise = self.guarantee(neighbours=neighbours)
        return PrivacyLoss.approx(promise.epsilon, promise.delta, neighbours=neighbours)

    def guarantee(self, *, neighbours: Neighbours | str = "add-remove") -> ApproxDP:
        """Return the promise; where a unit is replaced, twice as many keys move.

        Claim: m keys of (e, d) each are (m e, 1 - (1 - d)**m) together (Kairouz, Oh, Viswanath 2015).
        """
        moved = self._moved(neighbours)
        if moved == self.keys_per_unit:
            return ApproxDP(self.epsilon, self.delta)
        return ApproxDP(moved * self.key_epsilon, any_of(lambda: ball(self.key_delta), moved))


def _integer(value: arb) -> int:
    number = value.unique_fmpz()
    assert number is not None
    return int(number)
