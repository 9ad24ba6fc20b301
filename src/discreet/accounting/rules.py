"""How costs add up under full adaptivity: by epsilons and deltas, or by rhos and deltas.

An analyst who picks each question after seeing earlier answers also picks each cost. Only a sum that is a
valid *privacy filter* may be kept then; the two here are, by the theorems in docs/proofs/filters.md. Tight
composition, of losses that were all fixed in advance, has no place here: its result enters as a single cost.

>>> EPSILON.cost(PureDP(0.1)) + EPSILON.cost(ApproxDP(0.2, 1e-6))
Cost(epsilon=0.3, delta=1e-06)
>>> RHO.cost(ZCDP(0.125)) * Fraction(1, 2)
Cost(rho=0.0625)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from discreet.errors import InvalidInput, Unsupported
from discreet.numbers import Exactable, exact, fraction_text, nonnegative, probability
from discreet.privacy import GDP, ZCDP, ApproxDP, Guarantee, PrivacyLoss, PureDP

__all__ = ["EPSILON", "RHO", "Cost", "Rule"]


@dataclass(frozen=True)
class Rule:
    """The units in which costs add up: `epsilon` or `rho`, each with its deltas."""

    name: str

    NAMES: ClassVar[tuple[str, ...]] = ("epsilon", "rho")

    def __post_init__(self) -> None:
        if self.name not in self.NAMES:
            raise InvalidInput(f"costs add up by 'epsilon' or by 'rho', not by {self.name!r}")

    @classmethod
    def of(cls, rule: Rule | str) -> Rule:
        """Read a rule given by name, or pass one through."""
        return rule if isinstance(rule, Rule) else cls(rule)

    def nothing(self) -> Cost:
        """The cost of no release."""
        return Cost(self, Fraction(0), Fraction(0))

    def cost(self, guarantee: Guarantee, *, delta: Exactable | None = None) -> Cost:
        """Return what a release that keeps this promise costs, rounded up where it is rounded.

        Claim: by epsilon, the release is (size, delta)-DP; by rho, it is delta-approximately size-zCDP. A
        ZCDP or GDP promise has an epsilon only at a `delta`, which is part of the cost; by rho it has none.
        """
        if delta is not None and (self.name == "rho" or isinstance(guarantee, (PureDP, ApproxDP))):
            raise InvalidInput("delta= reads a ZCDP or GDP promise in epsilons; this one needs none here")
        inner, chance = guarantee, Fraction(0)
        if isinstance(guarantee, ApproxDP):
            inner, chance = PureDP(guarantee.epsilon), guarantee.delta
        elif not isinstance(guarantee, (PureDP, ZCDP, GDP)):
            raise InvalidInput(f"a cost is that of PureDP, ApproxDP, ZCDP or GDP, not of {guarantee!r}")
        if self.name == "rho":
            return Cost(self, inner.to(ZCDP).rho, chance)
        if isinstance(inner, PureDP):
            return Cost(self, inner.epsilon, chance)
        if delta is None:
            raise Unsupported(
                f"{guarantee!r} has an epsilon only at some delta: name one that this question may cost, "
                "delta=, or keep a budget that adds up by rho"
            )
        read = inner.to(ApproxDP, delta=delta)
        return Cost(self, read.epsilon, read.delta)

    def cost_of(self, loss: PrivacyLoss, *, delta: Exactable = 0) -> Cost:
        """Return what a release with this loss costs: its own rho, or its epsilon at `delta`, rounded up."""
        if self.name == "rho":
            if delta:
                raise InvalidInput("by rho a loss is paid without a delta")
            figure, chance = loss.rho, Fraction(0)
        else:
            chance = probability(delta, "delta")
            figure = loss.epsilon(chance)
        if math.isinf(figure):
            raise Unsupported(f"this loss has no {self.name} without a larger delta: name one, delta=")
        return Cost(self, exact(figure, self.name), chance)


EPSILON, RHO = Rule("epsilon"), Rule("rho")


@dataclass(frozen=True, repr=False)
class Cost:
    """An amount of loss in the units of a rule, exact: sums of costs are never rounded."""

    rule: Rule
    size: Fraction
    delta: Fraction

    def __init__(self, rule: Rule | str, size: Exactable, delta: Exactable = 0) -> None:
        object.__setattr__(self, "rule", Rule.of(rule))
        object.__setattr__(self, "size", nonnegative(size, self.rule.name))
        object.__setattr__(self, "delta", nonnegative(delta, "delta"))

    def __add__(self, other: Cost) -> Cost:
        self._same_rule(other)
        return Cost(self.rule, self.size + other.size, self.delta + other.delta)

    def __sub__(self, other: Cost) -> Cost:
        if not other <= self:
            raise InvalidInput(f"{other!r} cannot be taken from {self!r}: there would be less than nothing")
        return Cost(self.rule, self.size - other.size, self.delta - other.delta)

    def __mul__(self, share: Exactable) -> Cost:
        part = nonnegative(share, "share")
        return Cost(self.rule, self.size * part, self.delta * part)

    __rmul__ = __mul__

    def __le__(self, other: Cost) -> bool:
        """Whether this fits into the other, in both of its figures."""
        self._same_rule(other)
        return self.size <= other.size and self.delta <= other.delta

    def times_in(self, room: Cost) -> int | None:
        """Return how often this cost fits into some room; None if it costs nothing."""
        self._same_rule(room)
        fits = [have // each for have, each in ((room.size, self.size), (room.delta, self.delta)) if each]
        return min(fits, default=None)

    def _same_rule(self, other: Cost) -> None:
        if not isinstance(other, Cost):
            raise InvalidInput(f"a cost is compared with a cost, not with {type(other).__name__}")
        if self.rule != other.rule:
            raise InvalidInput(
                f"costs by {self.rule.name} and by {other.rule.name} do not add up: a budget keeps one rule"
            )

    def __repr__(self) -> str:
        delta = f", delta={fraction_text(self.delta)}" if self.delta else ""
        return f"Cost({self.rule.name}={fraction_text(self.size)}{delta})"
