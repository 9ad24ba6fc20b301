"""Finite distributions in exact arithmetic: what a small mechanism returns instead of one outcome.

A mechanism is built by hand from a few verbs: `uniform` and `certain` make a distribution, `map`
post-processes it, `then` lets a second random step depend on the first, `product` releases two at once.

>>> coin = Distribution.uniform(["heads", "tails"])
>>> def two_coins(truth):                      # heads: tell the truth; tails: let a second coin answer
...     return coin.then(lambda side: Distribution.certain(truth) if side == "heads" else
...                                   coin.map(lambda side: "yes" if side == "heads" else "no"))
>>> two_coins("yes")
Distribution({'yes': 3/4, 'no': 1/4})
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Generic, TypeVar

from discreet.errors import InvalidInput
from discreet.numbers import Exactable, fraction_text, probability

__all__ = ["Distribution", "told_apart"]

Outcome = TypeVar("Outcome", bound=Hashable)
Other = TypeVar("Other", bound=Hashable)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Distribution(Generic[Outcome]):
    """A probability for each of finitely many outcomes, exact and adding up to exactly 1.

    Outcomes of probability 0 are dropped: they cannot happen. Outcomes are one when Python holds them equal,
    except that a look-alike which prints differently (1 and True, 0.0 and -0.0) is refused, since whoever
    reads a release could tell them apart.
    """

    probabilities: Mapping[Outcome, Fraction]

    def __init__(self, probabilities: Mapping[Outcome, Exactable]) -> None:
        if not isinstance(probabilities, Mapping):
            raise InvalidInput(
                "a Distribution is built from a mapping of each outcome to its probability, "
                f"not from {type(probabilities).__name__}: {probabilities!r}"
            )
        chances = _gathered(
            (outcome, probability(chance, f"the probability of {outcome!r}"))
            for outcome, chance in probabilities.items()
        )
        total = sum(chances.values(), Fraction(0))
        if total != 1:
            raise InvalidInput(
                f"probabilities must add up to exactly 1, not {fraction_text(total)}: "
                "a float counts as its decimal, so write a third as Fraction(1, 3), not as 1/3"
            )
        object.__setattr__(self, "probabilities", MappingProxyType(chances))

    @classmethod
    def certain(cls, outcome: Outcome) -> Distribution[Outcome]:
        """The outcome that always happens."""
        _check(outcome)
        return cls({outcome: 1})

    @classmethod
    def uniform(cls, outcomes: Iterable[Outcome]) -> Distribution[Outcome]:
        """One of `outcomes` at random; one that is listed twice is twice as likely.

        >>> Distribution.uniform("aab")
        Distribution({'a': 2/3, 'b': 1/3})
        """
        listed = list(outcomes)
        if not listed:
            raise InvalidInput("there is no outcome to choose from: say what happens when the list is empty")
        return cls(_gathered((outcome, Fraction(1, len(listed))) for outcome in listed))

    def __getitem__(self, outcome: Outcome) -> Fraction:
        """The probability of `outcome`: zero when it cannot happen."""
        return self.probabilities.get(outcome, Fraction(0))

    @property
    def support(self) -> tuple[Outcome, ...]:
        """The outcomes that can happen."""
        return tuple(self.probabilities)

    def probability(self, event: Iterable[Outcome]) -> Fraction:
        """The probability that the outcome is in `event`."""
        return sum((self[outcome] for outcome in frozenset(event)), Fraction(0))

    def map(self, function: Callable[[Outcome], Other]) -> Distribution[Other]:
        """The law of `function(outcome)`: post-processing.

        Claim: no divergence between two distributions rises when both are mapped by the same function.
        """
        return Distribution(
            _gathered((function(outcome), chance) for outcome, chance in self.probabilities.items())
        )

    def then(self, step: Callable[[Outcome], Distribution[Other]]) -> Distribution[Other]:
        """The law of a second random step whose distribution depends on the outcome of this one.

        A mixture is the same thing: `Distribution(weights).then(lambda part: parts[part])`. To keep the first
        outcome as well, as in an adaptive composition: `p.then(lambda a: step(a).map(lambda b: (a, b)))`.
        """
        return Distribution(
            _gathered(
                (other, chance * more)
                for outcome, chance in self.probabilities.items()
                for other, more in step(outcome).probabilities.items()
            )
        )

    def product(self, other: Distribution[Other]) -> Distribution[tuple[Outcome, Other]]:
        """The law of two independent releases, seen together."""
        return self.then(lambda first: other.map(lambda second: (first, second)))

    def __eq__(self, other: object) -> bool:
        return (
            self.probabilities == other.probabilities if isinstance(other, Distribution) else NotImplemented
        )

    @cached_property
    def _hash(self) -> int:
        return hash(frozenset(self.probabilities.items()))

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        inside = ", ".join(f"{outcome!r}: {chance}" for outcome, chance in self.probabilities.items())
        return f"Distribution({{{inside}}})"


def told_apart(one: object, other: object) -> bool:
    """Whether a reader could tell apart two outcomes that Python holds equal.

    >>> told_apart(1, True), told_apart(0.0, -0.0), told_apart((2, "a"), (2, "a"))
    (True, True, False)
    """
    if one is other:
        return False
    if type(one) is not type(other):
        return True
    if isinstance(one, tuple) and isinstance(other, tuple):
        return any(map(told_apart, one, other))
    return isinstance(one, (float, complex, Decimal)) and repr(one) != repr(other)


def _gathered(chances: Iterable[tuple[Outcome, Fraction]]) -> dict[Outcome, Fraction]:
    """Add up the chances of each outcome, dropping those that cannot happen."""
    first: dict[Outcome, Outcome] = {}
    total: dict[Outcome, Fraction] = {}
    for outcome, chance in chances:
        _check(outcome)
        if told_apart(first.setdefault(outcome, outcome), outcome):
            raise InvalidInput(
                f"{first[outcome]!r} and {outcome!r} are equal to Python, and a reader can tell them apart: "
                "return one type, or the text that will be shown"
            )
        total[outcome] = total.get(outcome, Fraction(0)) + chance
    return {outcome: chance for outcome, chance in total.items() if chance}


def _check(outcome: Hashable) -> None:
    try:
        hash(outcome)
    except TypeError:
        raise InvalidInput(
            f"an outcome must be hashable, so that equal outcomes can be added up: {outcome!r} is not. "
            "Write a list or an array as a tuple"
        ) from None
    if outcome != outcome:
        raise InvalidInput(
            f"an outcome must equal itself, and {outcome!r} does not: return None or a word instead"
        )
