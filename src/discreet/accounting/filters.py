"""Privacy filters: a budget that an adaptive analyst cannot overspend, in exact arithmetic.

>>> filter = Filter(Budget.of(PureDP(1)))
>>> for _ in range(10):
...     filter = filter.charge(EPSILON.cost(PureDP(0.1)))
>>> filter.remaining, filter.admits(EPSILON.cost(PureDP(0.001)))
(Cost(epsilon=0), False)
>>> Budget.of(ApproxDP(1, 1e-6), rule="rho")            # delta kept for converting rho back is set aside
Budget(ApproxDP(epsilon=1, delta=1e-06), Cost(rho=0.024..., delta=1e-07), set_aside=9e-07)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting.rules import EPSILON, RHO, Cost, Rule
from discreet.errors import DiscreetError, InvalidInput, Unsupported
from discreet.mechanisms.search import greatest
from discreet.numbers import Exactable, digits_text, fraction_text, probability
from discreet.privacy import ZCDP, ApproxDP, Guarantee, PrivacyLoss, PureDP

__all__ = ["Advice", "Budget", "Filter", "Overspent", "advise"]

# Of a total delta, what is kept for converting rho back; the rest is for questions with a delta of their own.
_SET_ASIDE = Fraction(9, 10)


class Overspent(DiscreetError):
    """A charge does not fit into what is left of a budget. Nothing was charged."""


@dataclass(frozen=True, repr=False)
class Budget:
    """What all releases from one database must keep together, and what that comes to by a rule.

    Claim: whatever is released at costs that a `Filter` of this budget admitted, each question and cost
    chosen in the light of all earlier answers, keeps `guarantee`, whenever one stops.
    """

    guarantee: Guarantee
    total: Cost
    set_aside: Fraction

    @classmethod
    def of(
        cls,
        guarantee: Guarantee,
        *,
        rule: Rule | str | None = None,
        set_aside: Exactable | None = None,
    ) -> Budget:
        """Read a total: by epsilon for PureDP and ApproxDP, by rho for ZCDP, unless `rule` says otherwise.

        An ApproxDP total by rho sets a part of its delta aside for good, `set_aside` (nine tenths), at which
        the rhos are read as its epsilon; the rest is for deltas of questions.
        """
        if not isinstance(guarantee, (PureDP, ApproxDP, ZCDP)):
            raise InvalidInput(f"a budget is PureDP, ApproxDP or ZCDP, not {guarantee!r}")
        if not guarantee.figures()[0]:
            raise InvalidInput(f"{guarantee!r} leaves nothing to spend")
        if rule is None:
            rule = RHO if isinstance(guarantee, ZCDP) else EPSILON
        units = Rule.of(rule)
        if set_aside is not None and not (units == RHO and isinstance(guarantee, ApproxDP)):
            raise InvalidInput(
                "a part of delta is set aside where an ApproxDP total adds up by rho, only there"
            )
        if units == EPSILON:
            if isinstance(guarantee, ZCDP):
                raise Unsupported(
                    f"{guarantee!r} has no total epsilon: let it add up by rho, or say ApproxDP(...)"
                )
            return cls(guarantee, EPSILON.cost(guarantee), Fraction(0))
        if isinstance(guarantee, ZCDP):
            return cls(guarantee, RHO.cost(guarantee), Fraction(0))
        if isinstance(guarantee, PureDP) or not guarantee.figures()[1]:
            raise Unsupported(
                f"rhos say nothing about {guarantee!r}, which has no delta: let it add up by epsilon, "
                "or add a delta"
            )
        return cls._of_rhos(guarantee, set_aside)

    @classmethod
    def _of_rhos(cls, guarantee: Guarantee, set_aside: Exactable | None) -> Budget:
        """Find the greatest rho that is read as at most epsilon at the delta set aside."""
        epsilon, delta = guarantee.figures()
        aside = delta * _SET_ASIDE if set_aside is None else probability(set_aside, "set_aside")
        if not 0 < aside <= delta:
            raise InvalidInput("set_aside must be above 0 and at most the budget's delta")

        def keeps(rho: Fraction) -> bool:
            return bool(ZCDP(rho) <= ApproxDP(epsilon, aside))

        found = greatest(keeps, epsilon * epsilon / (4 * (1 + epsilon)))
        # A total that people read: nine digits of it, rounded down.
        rho = Fraction(digits_text(found, up=False, digits=9))
        return cls(guarantee, Cost(RHO, rho, delta - aside), aside)

    @property
    def rule(self) -> Rule:
        """How costs add up."""
        return self.total.rule

    def share(self, share: Exactable) -> Cost:
        """Return a fraction of the total, its delta included."""
        return self.total * probability(share, "share")

    def __repr__(self) -> str:
        aside = f", set_aside={fraction_text(self.set_aside)}" if self.set_aside else ""
        return f"Budget({self.guarantee!r}, {self.total!r}{aside})"


@dataclass(frozen=True)
class Filter:
    """What has been spent of a budget. A value: `charge` returns the next one, or refuses."""

    budget: Budget
    spent: Cost

    def __init__(self, budget: Budget, spent: Cost | None = None) -> None:
        if not isinstance(budget, Budget):
            raise InvalidInput(f"a filter keeps a Budget, such as Budget.of(PureDP(1)), not {budget!r}")
        so_far = budget.rule.nothing() if spent is None else spent
        if not so_far <= budget.total:
            raise InvalidInput(f"{so_far!r} is more than there ever was: {budget.total!r}")
        object.__setattr__(self, "budget", budget)
        object.__setattr__(self, "spent", so_far)

    @property
    def remaining(self) -> Cost:
        """What is left, in the budget's own units."""
        return self.budget.total - self.spent

    def admits(self, cost: Cost) -> bool:
        """Tell whether a cost fits into what is left: exactly, in size and in delta."""
        if not isinstance(cost, Cost):
            raise InvalidInput(f"what is charged is a Cost, such as EPSILON.cost(PureDP(0.1)), not {cost!r}")
        return cost <= self.remaining

    def charge(self, cost: Cost) -> Filter:
        """Return the filter after one more charge, or raise `Overspent`."""
        if not self.admits(cost):
            raise Overspent(
                f"this costs {cost!r}, and {self.remaining!r} is left of {self.budget.total!r}: "
                f"{self._what_would_fit(cost)}"
            )
        return Filter(self.budget, self.spent + cost)

    def room_for(self, cost: Cost) -> int | None:
        """Return how many more such costs fit; None if it costs nothing."""
        return cost.times_in(self.remaining)

    def _what_would_fit(self, cost: Cost) -> str:
        left = self.remaining
        parts = [(have, each) for have, each in ((left.size, cost.size), (left.delta, cost.delta)) if each]
        share = min(have / each for have, each in parts)
        if not share:
            return "no question of this kind fits any more"
        return f"the same at {float(math.floor(share * 1000) / 1000):g} of its cost would fit"


@dataclass(frozen=True)
class Advice:
    """How many questions of one kind a budget has room for, by either rule; None where it cannot be kept."""

    by_epsilon: int | None
    by_rho: int | None

    @property
    def rule(self) -> Rule:
        """The rule with room for more of them."""
        return RHO if (self.by_rho or 0) > (self.by_epsilon or 0) else EPSILON

    def __str__(self) -> str:
        counts = {"epsilon": self.by_epsilon, "rho": self.by_rho}
        said = "; ".join(f"by {name}: {count:,}" for name, count in counts.items() if count is not None)
        return f"room for so many of these questions, {said}. Let costs add up by {self.rule.name}."


def advise(guarantee: Guarantee, question: PrivacyLoss, *, delta: Exactable = 0) -> Advice:
    """Say which rule of a budget holds more questions with this loss.

    `delta` is what each question may cost besides its epsilon, where costs add up by epsilon (Gaussian noise
    has none without). A ledger keeps the rule that it was created with: to choose the cheaper one charge by
    charge would be no filter.
    """

    def room(rule: Rule) -> int | None:
        try:
            cost = rule.cost_of(question, delta=delta if rule == EPSILON else 0)
            return Filter(Budget.of(guarantee, rule=rule)).room_for(cost)
        except Unsupported:
            return None

    return Advice(room(EPSILON), room(RHO))
