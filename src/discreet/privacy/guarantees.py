"""Promises: pure, approximate, zero-concentrated and Gaussian differential privacy.

A guarantee is an exact value. One implies another when a theorem says so; `<=` reads "promises at least as
much as". Conversions never promise more than was given: what cannot be exact is rounded to the safe side.

>>> PureDP(0.5) <= PureDP(1), PureDP(1) <= ZCDP(0.5), ZCDP(0.5) <= PureDP(1)
(True, True, False)
>>> ZCDP(0.5).to(ApproxDP, delta=1e-6)
ApproxDP(epsilon=5.22153434101703, delta=1e-06)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, TypeVar

from flint import arb

from discreet.errors import InvalidInput, Unsupported
from discreet.numbers import Exactable, digits_text, exact, fraction_text, nonnegative, whole
from discreet.privacy.conversions import delta_from_rho, epsilon_from_rho
from discreet.privacy.loss import PrivacyLoss
from discreet.privacy.pairs import grouped_delta
from discreet.privacy.reals import Inexact, ball, certainly, enclose

__all__ = ["GDP", "ZCDP", "ApproxDP", "Caution", "Guarantee", "PureDP"]

G = TypeVar("G", bound="Guarantee")


@dataclass(frozen=True)
class Caution:
    """Something a promise leaves open that its owner should know. Nothing is wrong with the arithmetic."""

    summary: str
    advice: str

    def __str__(self) -> str:
        return f"{self.summary} {self.advice}"


@dataclass(frozen=True, repr=False)
class Guarantee(ABC):
    """A promise about every pair of neighbours."""

    def to(self, target: type[G], *, delta: Exactable | None = None, epsilon: Exactable | None = None) -> G:
        """Return a promise of another kind that follows from this one.

        For `ApproxDP`, give `delta` (and get the least epsilon) or `epsilon` (and get the least delta). But
        for rounding no better promise follows, except from `ZCDP`, where one Renyi order is used at a time.
        Raises `Unsupported` where it knows of none. Proofs: docs/proofs/guarantees.md.
        """
        if target not in (PureDP, ApproxDP, ZCDP, GDP):
            raise InvalidInput(f"a guarantee becomes PureDP, ApproxDP, ZCDP or GDP, not {target!r}")
        if target is ApproxDP:
            if (delta is None) == (epsilon is None):
                raise InvalidInput(
                    "an ApproxDP promise has two figures: give exactly one of delta= and epsilon="
                )
            return self._to_approx(delta, epsilon)  # type: ignore[return-value]
        if delta is not None or epsilon is not None:
            raise InvalidInput(f"delta= and epsilon= go with ApproxDP, not with {target.__name__}")
        if type(self) is target:
            return self
        convert = _CONVERSIONS.get((type(self), target))
        if convert is None:
            raise Unsupported(
                f"no {target.__name__} promise follows from {self!r}; "
                "ask for .to(ApproxDP, delta=...) instead"
            )
        return convert(self)  # type: ignore[no-any-return]

    def _to_approx(self, delta: Exactable | None, epsilon: Exactable | None) -> ApproxDP:
        if delta is not None:
            chance = _delta(delta)
            least = self._epsilon(chance)
            if least == math.inf:
                raise Unsupported(
                    f"no epsilon that a float can hold follows from {self!r} at delta={delta}; "
                    "try a larger delta"
                )
            return ApproxDP(least, chance)
        assert epsilon is not None
        bound = nonnegative(epsilon, "epsilon")
        follows = self._delta(bound)
        if follows >= 1:
            raise Unsupported(
                f"no delta that rounds to less than 1 follows from {self!r} at epsilon={epsilon}; "
                "try a larger epsilon"
            )
        return ApproxDP(bound, follows)

    @abstractmethod
    def _epsilon(self, delta: Fraction) -> float:
        """Return an epsilon, rounded up, for which (epsilon, delta)-DP follows."""

    @abstractmethod
    def _delta(self, epsilon: Fraction) -> float:
        """Return a delta, rounded up, for which (epsilon, delta)-DP follows."""

    @abstractmethod
    def _keeps(self, promise: ApproxDP) -> bool:
        """Tell whether an (epsilon, delta) promise is known to follow."""

    @abstractmethod
    def group(self: G, k: int) -> G:
        """Return what is promised to k units together."""

    def implies(self, other: Guarantee) -> bool:
        """Tell whether this promise is known to entail another; where it cannot be decided, no."""
        try:
            if isinstance(other, ApproxDP):
                return self._keeps(other)
            return self.to(type(other)).figures() <= other.figures()
        except (Unsupported, InvalidInput):  # no theorem, or figures too long to compare
            return False

    def figures(self) -> tuple[Fraction, ...]:
        """Return the figures of the promise, as exact fractions."""
        return tuple(getattr(self, field.name) for field in fields(self))

    def __le__(self, other: object) -> bool:
        return self.implies(other) if isinstance(other, Guarantee) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return other.implies(self) if isinstance(other, Guarantee) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self <= other and not other <= self if isinstance(other, Guarantee) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return other < self if isinstance(other, Guarantee) else NotImplemented

    def __repr__(self) -> str:
        figures = (f"{field.name}={fraction_text(getattr(self, field.name))}" for field in fields(self))
        return f"{type(self).__name__}({', '.join(figures)})"


@dataclass(frozen=True, repr=False)
class _WithWorstPair(Guarantee):
    """A promise with a worst case: what holds for that pair of distributions holds for all that keep it."""

    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """Return the worst loss that the promise allows."""

    def _epsilon(self, delta: Fraction) -> float:
        return self.loss().epsilon(delta)

    def _delta(self, epsilon: Fraction) -> float:
        return self.loss().delta(epsilon)

    def _keeps(self, promise: ApproxDP) -> bool:
        return self.loss().satisfies(promise.epsilon, promise.delta)


def _keep_exact(guarantee: Guarantee) -> None:
    """Replace each figure of a new guarantee by the exact, checked number that it stands for."""
    for field in fields(guarantee):
        check = _delta if field.name == "delta" else lambda value, name=field.name: nonnegative(value, name)
        object.__setattr__(guarantee, field.name, check(getattr(guarantee, field.name)))


def _delta(value: Exactable) -> Fraction:
    delta = nonnegative(value, "delta")
    if delta >= 1:
        raise InvalidInput(
            f"delta must be below 1, not {value}: a promise that may always fail promises nothing"
        )
    return delta


@dataclass(frozen=True, repr=False)
class PureDP(_WithWorstPair):
    """For neighbours and any set of outcomes S: Pr(M(D) in S) <= e**epsilon Pr(M(D') in S)."""

    epsilon: Fraction

    def __init__(self, epsilon: Exactable) -> None:
        object.__setattr__(self, "epsilon", epsilon)
        _keep_exact(self)

    def loss(self) -> PrivacyLoss:
        """Return the worst loss that the promise allows."""
        return PrivacyLoss.pure(self.epsilon)

    def implies(self, other: Guarantee) -> bool:
        """Tell whether this promise is known to entail another; where it cannot be decided, no.

        Claim: decided on the exact figures that are needed, not on rounded ones.
        """
        least = _least_rho if isinstance(other, ZCDP) else _least_mu if isinstance(other, GDP) else None
        if least is None or self.epsilon == 0:
            return super().implies(other)
        (figure,) = other.figures()
        try:
            return not certainly(lambda: (least(self.epsilon), ball(figure)))
        except Inexact:
            return False

    def group(self, k: int) -> PureDP:
        """Claim: k steps of epsilon each are k epsilon."""
        return PureDP(whole(k, "k", least=1) * self.epsilon)


@dataclass(frozen=True, repr=False)
class ApproxDP(_WithWorstPair):
    """For neighbours and any set of outcomes S: Pr(M(D) in S) <= e**epsilon Pr(M(D') in S) + delta."""

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Exactable, delta: Exactable) -> None:
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)
        _keep_exact(self)

    def loss(self) -> PrivacyLoss:
        """Return the worst loss that the promise allows."""
        return PrivacyLoss.approx(self.epsilon, self.delta)

    def _to_approx(self, delta: Exactable | None, epsilon: Exactable | None) -> ApproxDP:
        unchanged = delta is not None and _delta(delta) == self.delta
        return self if unchanged else super()._to_approx(delta, epsilon)

    def implies(self, other: Guarantee) -> bool:
        """Tell whether this promise is known to entail another; where it cannot be decided, no."""
        pure = not self.delta and not isinstance(other, ApproxDP)
        return PureDP(self.epsilon).implies(other) if pure else super().implies(other)

    def group(self, k: int) -> ApproxDP:
        """Claim: (k epsilon, delta (1 + e**epsilon + ... + e**((k - 1) epsilon))), delta rounded up."""
        k = whole(k, "k", least=1)
        delta = grouped_delta(self.epsilon, self.delta, k)
        if delta >= 1:
            raise Unsupported(
                f"{self!r} is not known to promise {k} units together anything: their delta would reach 1"
            )
        return ApproxDP(k * self.epsilon, delta)

    def cautions(self, n: int) -> tuple[Caution, ...]:
        """Return what to know about this delta for a database of n units."""
        n = whole(n, "n", least=1)
        if self.delta * n * _FAR_BELOW <= 1:
            return ()
        return (
            Caution(
                f"delta = {fraction_text(self.delta)} is not far below 1/n = "
                f"{fraction_text(Fraction(1, n))}.",
                f"A mechanism that publishes each of {n:,} units' data in full with this probability keeps "
                f"the promise, and exposes {digits_text(self.delta * n, up=True)} of them on average. Choose "
                f"delta below {digits_text(Fraction(1, n * _FAR_BELOW), up=False)}.",
            ),
        )


# A delta is far below 1/n when it is this many times below.
_FAR_BELOW = 100


@dataclass(frozen=True, repr=False)
class ZCDP(Guarantee):
    """For neighbours and every alpha > 1: the Renyi divergence of order alpha is at most rho alpha."""

    rho: Fraction

    def __init__(self, rho: Exactable) -> None:
        object.__setattr__(self, "rho", rho)
        _keep_exact(self)

    def _epsilon(self, delta: Fraction) -> float:
        return epsilon_from_rho(self.rho, delta)

    def _delta(self, epsilon: Fraction) -> float:
        return delta_from_rho(self.rho, epsilon)

    def _keeps(self, promise: ApproxDP) -> bool:
        # Each is a bound of its own, and rounded on its own.
        epsilon, delta = self._epsilon(promise.delta), self._delta(promise.epsilon)
        return (epsilon < math.inf and exact(epsilon, "epsilon") <= promise.epsilon) or (
            exact(delta, "delta") <= promise.delta
        )

    def group(self, k: int) -> ZCDP:
        """Claim: k**2 rho (Bun and Steinke 2016, proposition 1.9)."""
        return ZCDP(whole(k, "k", least=1) ** 2 * self.rho)


@dataclass(frozen=True, repr=False)
class GDP(_WithWorstPair):
    """For neighbours: telling them apart is at least as hard as N(0, 1) from N(mu, 1)."""

    mu: Fraction

    def __init__(self, mu: Exactable) -> None:
        object.__setattr__(self, "mu", mu)
        _keep_exact(self)

    def loss(self) -> PrivacyLoss:
        """Return the worst loss that the promise allows."""
        return PrivacyLoss.pure(0) if self.mu == 0 else PrivacyLoss.gaussian(sigma=1 / self.mu)

    def group(self, k: int) -> GDP:
        """Claim: k mu (Dong, Roth, Su 2022, theorem 2.14)."""
        return GDP(whole(k, "k", least=1) * self.mu)


def _least_rho(epsilon: Fraction) -> arb:
    """Claim: the rho that PureDP implies is epsilon tanh(epsilon / 2), no less; docs/proofs/guarantees.md."""
    return ball(epsilon) * (ball(epsilon) / 2).tanh()


def _least_mu(epsilon: Fraction) -> arb:
    """Claim: the mu that PureDP implies is -2 Phi**-1(1 / (1 + e**epsilon)), no less; where epsilon > 0."""
    # Phi**-1(p) = -sqrt(2) erfcinv(2p).
    return 2 * arb(2).sqrt() * (2 / (1 + ball(epsilon).exp())).erfcinv()


def _pure_to_zcdp(promise: PureDP) -> ZCDP:
    return ZCDP(_finite(enclose(lambda: _least_rho(promise.epsilon)).upper))


def _pure_to_gdp(promise: PureDP) -> GDP:
    if promise.epsilon == 0:
        return GDP(0)
    return GDP(_finite(enclose(lambda: _least_mu(promise.epsilon)).upper))


def _finite(figure: float) -> float:
    if figure == math.inf:
        raise Unsupported("the figure that follows from so large an epsilon is beyond any float")
    return figure


def _approx_to_pure(promise: ApproxDP) -> PureDP:
    if promise.delta:
        raise Unsupported(
            f"{promise!r} promises nothing about outcomes of probability delta; "
            "no PureDP, ZCDP or GDP promise follows"
        )
    return PureDP(promise.epsilon)


def _zero_to_pure(promise: ZCDP | GDP) -> PureDP:
    if any(promise.figures()):
        raise Unsupported(f"{promise!r} allows losses of any size; ask for .to(ApproxDP, delta=...) instead")
    return PureDP(0)


def _zcdp_to_gdp(promise: ZCDP) -> GDP:
    if promise.rho:
        raise Unsupported(
            f"discreet knows of no good GDP promise that follows from {promise!r}; "
            "ask for .to(ApproxDP, delta=...) instead"
        )
    return GDP(0)


_CONVERSIONS: dict[tuple[type[Guarantee], type[Guarantee]], Callable[[Any], Any]] = {
    (PureDP, ZCDP): _pure_to_zcdp,
    (PureDP, GDP): _pure_to_gdp,
    (ApproxDP, PureDP): _approx_to_pure,
    (ApproxDP, ZCDP): lambda promise: _pure_to_zcdp(_approx_to_pure(promise)),
    (ApproxDP, GDP): lambda promise: _pure_to_gdp(_approx_to_pure(promise)),
    (ZCDP, PureDP): _zero_to_pure,
    (ZCDP, GDP): _zcdp_to_gdp,
    (GDP, PureDP): _zero_to_pure,
    (GDP, ZCDP): lambda promise: ZCDP(promise.mu**2 / 2),
}
