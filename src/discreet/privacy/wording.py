"""The fixed words of an explanation: what a neighbour is called, and what no promise covers."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

__all__ = ["NOT_PROMISED", "WORDS", "Words"]


@dataclass(frozen=True)
class Words:
    """How the text says what a neighbour is."""

    without: str
    belief: str
    attack: str
    coin: str
    others: str
    those: str
    few: str
    table: str
    all: str


WORDS = {
    "add-remove": Words(
        without="without them",
        belief="that your data are in the table",
        attack="How well anyone could tell that you took part",
        coin="whether you are in the table",
        others="those who did not take part",
        those="those who did",
        few="one in a thousand took part",
        table="without you",
        all="leaving out",
    ),
    "replace": Words(
        without="with anybody else's in their place",
        belief="that your data say one thing and not another",
        attack="How well anyone could tell what your data say",
        coin="which of two rows is yours",
        others="those who have the one row",
        those="those who have the other",
        few="one in a thousand has the other",
        table="with anybody else's data in place of yours",
        all="exchanging",
    ),
}

NOT_PROMISED = textwrap.dedent(
    """\
    - That nothing will be learned about you. A survey that shows that smoking causes cancer harms a smoker
      who never took part in it: what is true of people like you can be learned without you.
    - That your data are safe where they are not tied to you. If what one person contributed is spread over
      many rows and a row is the unit, it is the row that is protected, not the person.
    - Anything about what is published without noise, or about other releases from the same data: their
      losses add up, and belong in one budget.
    - That what you say elsewhere, or what others say about you, stays secret."""
)
