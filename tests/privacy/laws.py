"""Random laws for the tests of exact privacy, and oracles that are nothing but a definition."""

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

from discreet.privacy.database import Database
from discreet.privacy.distributions import Distribution

Law = Distribution[Any]
Mechanism = Callable[[Database[Any]], Law]


def random_law(source: random.Random, outcomes: int, least: int = 0) -> Law:
    weights = [0]
    while not any(weights):
        weights = [source.choice([least, 1, 1, 2, 3, 7]) for _ in range(outcomes)]
    return Distribution({o: Fraction(weight, sum(weights)) for o, weight in enumerate(weights)})


def random_mechanism(seed: int, outcomes: int = 3, least: int = 0) -> Mechanism:
    """A law drawn anew for every database, the same at every call."""

    def mechanism(database: Database[Any]) -> Law:
        return random_law(random.Random(f"{seed} {database!r}"), outcomes, least)

    return mechanism


def hockey_stick_over_every_event(p: Law, q: Law, ratio: Fraction) -> Fraction:
    outcomes = list(dict.fromkeys([*p.support, *q.support]))
    events = (event for size in range(len(outcomes) + 1) for event in combinations(outcomes, size))
    return max(p.probability(event) - ratio * q.probability(event) for event in events)


def least_square_of(laws: list[Law], simulator: Law) -> Fraction:
    """The definition: e^(2 epsilon) for the least epsilon at which `simulator` is within it of every law."""
    outcomes = {o for law in [*laws, simulator] for o in law.support}
    return max(max(law[o] / simulator[o], simulator[o] / law[o]) ** 2 for law in laws for o in outcomes)
