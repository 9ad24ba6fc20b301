"""A value that has been released, with what was promised about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from discreet.errors import InvalidInput
from discreet.privacy.guarantees import Guarantee

__all__ = ["Released"]

Value = TypeVar("Value")
Other = TypeVar("Other")


@dataclass(frozen=True)
class Released(Generic[Value]):
    """What a mechanism let out, and the guarantee it keeps.

    >>> from discreet.privacy import PureDP
    >>> Released(4_219, PureDP(0.1)).map(lambda count: round(count, -2))
    Released(value=4200, guarantee=PureDP(epsilon=0.1))
    """

    value: Value
    guarantee: Guarantee

    def __post_init__(self) -> None:
        if not isinstance(self.guarantee, Guarantee):
            raise InvalidInput(
                f"a released value keeps a PureDP, ApproxDP, ZCDP or GDP promise, not {self.guarantee!r}"
            )

    def map(self, function: Callable[[Value], Other]) -> Released[Other]:
        """Return `function` of the value, under the same guarantee: post-processing.

        Claim: for every function, random or not, that does not look at the data again, no divergence between
        the outputs on two databases is raised. An event about f(o) is an event about o: {o : f(o) in S}.
        """
        return Released(function(self.value), self.guarantee)
