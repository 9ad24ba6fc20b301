"""Is this mechanism private? For a small one: run it on every database there is, and compare, exactly.

A mechanism here returns the whole distribution of its outcome rather than one outcome. `verify` enumerates
all databases over a finite universe and all pairs of neighbours, in both directions, and finds the tight
value of each measure of privacy with the pair and the outcomes that attain it. No float decides anything.

>>> def random_row(database):
...     return Distribution.uniform(database)
>>> found = verify(random_row, universe=["well", "sick"], n=10, neighbours="replace")
>>> found.statistical_distance, found.epsilon()             # looks harmless, and is not
(Fraction(1, 10), inf)
>>> worst = found.worst_ratio()
>>> worst.event, worst.neighbour.count("sick")              # seeing "sick" proves that somebody is
(('sick',), 0)

A bound that holds here is proved for this universe and n alone. A pair that breaks a bound here breaks it
for every universe that holds this one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from discreet.errors import InvalidInput
from discreet.numbers import Exactable, exact, fraction_text, nonnegative, whole
from discreet.privacy.database import Database, count_databases, databases, neighbours_of, read_universe
from discreet.privacy.distributions import Distribution, told_apart
from discreet.privacy.divergences import (
    distinguishing_event,
    hockey_stick,
    hockey_stick_bounds,
    kl_bounds,
    least_ratio,
    log_bounds,
    posterior_shift_bounds,
    ratio_event,
    simulation_event,
    simulation_square,
)
from discreet.privacy.neighbours import ADD_REMOVE, Neighbours
from discreet.privacy.reals import Bounds, ball, certainly, enclose

__all__ = ["Verification", "Worst", "WorstSimulation", "verify"]

Row = TypeVar("Row", bound=Hashable)
Value = TypeVar("Value")


def verify(
    mechanism: Callable[[Database[Row]], Distribution[Any] | Mapping[Any, Exactable]],
    universe: Iterable[Row],
    n: int,
    neighbours: Neighbours | str = ADD_REMOVE,
    *,
    limit: int = 100_000,
) -> Verification:
    """Find how private `mechanism` is on every database over `universe`.

    These are the databases of n rows (replace), or of at most n (add-remove). The mechanism gets a `Database`
    and returns a `Distribution`, or a plain mapping of each outcome to its probability. It is called twice on
    each database, to refuse one that draws its own randomness. `limit` is the most pairs to enumerate.

    Claim: every number read off the result is the tight one, no smaller and no larger, over all ordered pairs
    of neighbours among these databases.
    """
    relation, known, size = Neighbours.of(neighbours), read_universe(universe), whole(n, "n", least=1)
    _refuse_too_many(known, size, relation, limit)
    laws = {database: _law(mechanism, database) for database in databases(known, size, relation)}
    for database, law in laws.items():
        if _law(mechanism, database) != law:
            raise InvalidInput(
                f"the mechanism gave two distributions for {database!r}: it draws its own randomness, or "
                "remembers earlier calls. Return the distribution of the outcome, the same at every call"
            )
    _refuse_look_alikes(laws.values())
    return Verification(known, size, relation, MappingProxyType(laws))


@dataclass(frozen=True)
class Worst(Generic[Value]):
    """A number and where it is attained: outcomes in `event` give `database` away against its `neighbour`."""

    value: Value
    database: Database[Any]
    neighbour: Database[Any]
    event: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.database!r} against {self.neighbour!r}" + _on(self.event)


@dataclass(frozen=True)
class WorstSimulation:
    """The e^(2 epsilon) of the best simulator that knows all but one unit, where that is worst.

    `without` is what it knows. `event` holds the outcomes that alone leave it no better choice, if any do.
    """

    value: Fraction | None
    without: Database[Any]
    event: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"given only {self.without!r}" + _on(self.event)


class _Pair(NamedTuple):
    """Two neighbours and the laws p and q of the mechanism on them."""

    database: Database[Any]
    neighbour: Database[Any]
    p: Distribution[Any]
    q: Distribution[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Verification:
    """What `verify` found: the law of the mechanism on every database, and what can be read off their pairs.

    Floats err toward privacy; `..._bounds` gives both certified ends; `ratio`, `delta_at_ratio`,
    `statistical_distance` and `simulation_square` are exact. `worst_...` says where each is attained.
    """

    universe: tuple[Any, ...]
    n: int
    neighbours: Neighbours
    laws: Mapping[Database[Any], Distribution[Any]]

    # --- epsilon and delta ------------------------------------------------------------------------

    def ratio(self, delta: Exactable = 0) -> Fraction | None:
        """The least e^epsilon >= 1 with delta(epsilon) <= delta; None where no epsilon is enough."""
        return self.worst_ratio(delta).value

    def epsilon(self, delta: Exactable = 0) -> float:
        """The least epsilon with delta(epsilon) <= delta, rounded up."""
        return self.epsilon_bounds(delta).upper

    def epsilon_bounds(self, delta: Exactable = 0) -> Bounds:
        """The least epsilon with delta(epsilon) <= delta, between two doubles."""
        return log_bounds(self.ratio(delta))

    def worst_ratio(self, delta: Exactable = 0) -> Worst[Fraction | None]:
        """The pair that needs the largest ratio r; where r > 1, P(event) = r Q(event) + delta there."""
        allowed = exact(delta, "delta")
        pair = max(self._pairs, key=lambda pair: _size(least_ratio(pair.p, pair.q, allowed)))
        ratio = least_ratio(pair.p, pair.q, allowed)
        event = () if ratio == 1 else ratio_event(pair.p, pair.q, ratio)
        return Worst(ratio, pair.database, pair.neighbour, event)

    def delta_at_ratio(self, ratio: Exactable) -> Fraction:
        """The least delta for which (ln ratio, delta) holds, exactly."""
        return self.worst_delta(ratio).value

    def delta(self, epsilon: Exactable) -> float:
        """The least delta for which (epsilon, delta) holds, rounded up."""
        return self.delta_bounds(epsilon).upper

    def delta_bounds(self, epsilon: Exactable) -> Bounds:
        """The least delta for which (epsilon, delta) holds, between two doubles."""
        return _largest([hockey_stick_bounds(pair.p, pair.q, epsilon) for pair in self._pairs])

    def worst_delta(self, ratio: Exactable) -> Worst[Fraction]:
        """The pair and event with the largest P(event) - ratio Q(event)."""
        factor = exact(ratio, "ratio")
        if factor < 1:
            raise InvalidInput(f"ratio stands for e^epsilon, which is at least 1, not {ratio}")
        pair = max(self._pairs, key=lambda pair: hockey_stick(pair.p, pair.q, factor))
        event = distinguishing_event(pair.p, pair.q, factor)
        return Worst(hockey_stick(pair.p, pair.q, factor), pair.database, pair.neighbour, event)

    def satisfies(self, *, epsilon: Exactable, delta: Exactable = 0) -> bool:
        """Whether the mechanism is (epsilon, delta)-differentially private here, decided without rounding."""
        level, ratio = nonnegative(epsilon, "epsilon"), self.ratio(delta)
        # For a rational epsilon above 0, e^epsilon is irrational and cannot tie with the ratio (Lindemann).
        return ratio == 1 or (ratio is not None and certainly(lambda: (ball(level), ball(ratio).log())))

    # --- other distances --------------------------------------------------------------------------

    @property
    def statistical_distance(self) -> Fraction:
        """The most by which the probability of an event differs between neighbours: delta at epsilon 0."""
        return self.delta_at_ratio(1)

    @property
    def kl(self) -> float:
        """The largest Kullback-Leibler divergence between neighbours, in nats, rounded up."""
        return self.kl_bounds.upper

    @property
    def kl_bounds(self) -> Bounds:
        """The largest Kullback-Leibler divergence between neighbours, between two doubles."""
        return self.worst_kl.value

    @cached_property
    def worst_kl(self) -> Worst[Bounds]:
        """The pair with the largest Kullback-Leibler divergence (no one event attains it)."""
        found = [kl_bounds(pair.p, pair.q) for pair in self._pairs]
        pair = max(zip(self._pairs, found, strict=True), key=lambda each: each[1].upper)[0]
        return Worst(_largest(found), pair.database, pair.neighbour)

    # --- what it means for a person ---------------------------------------------------------------

    @property
    def posterior_shift(self) -> float:
        """The most that an outcome can move a belief about which of two neighbours it is, rounded up."""
        return self.posterior_shift_bounds.upper

    @property
    def posterior_shift_bounds(self) -> Bounds:
        """The most that one outcome can move a belief, between two doubles; `worst_ratio()` says where."""
        return posterior_shift_bounds(self.ratio())

    @property
    def worst_prior(self) -> Bounds:
        """The belief in `worst_ratio().database` that moves most; the limit 0 where the ratio is infinite."""
        ratio = self.ratio()
        return Bounds(0.0, 0.0) if ratio is None else enclose(lambda: 1 / (1 + ball(ratio).sqrt()))

    @property
    def simulation_square(self) -> Fraction | None:
        """e^(2 epsilon) for the least epsilon at which a simulator can do without any one unit."""
        return self.worst_simulation.value

    @property
    def simulation_epsilon(self) -> float:
        """The least epsilon at which a simulator can do without any one unit, rounded up."""
        return self.simulation_epsilon_bounds.upper

    @property
    def simulation_epsilon_bounds(self) -> Bounds:
        """The least epsilon at which a simulator can do without any one unit, between two doubles."""
        square = self.simulation_square
        if square is None or square == 1:
            return log_bounds(square)
        return enclose(lambda: ball(square).log() / 2)

    @cached_property
    def worst_simulation(self) -> WorstSimulation:
        """The database on which doing without one unit (or, at distance k, without k) is hardest."""
        without, laws = max(self._left_out(), key=lambda case: _size(simulation_square(case[1])))
        square = simulation_square(laws)
        return WorstSimulation(square, without, simulation_event(laws, square))

    # --- the enumeration --------------------------------------------------------------------------

    @cached_property
    def _pairs(self) -> tuple[_Pair, ...]:
        """Ordered pairs of neighbours, one for every two laws that occur."""
        found: dict[tuple[Distribution[Any], Distribution[Any]], _Pair] = {}
        for database, neighbour in self.pairs():
            laws = self.laws[database], self.laws[neighbour]
            found.setdefault(laws, _Pair(database, neighbour, *laws))
        return tuple(found.values())

    def pairs(self) -> Iterator[tuple[Database[Any], Database[Any]]]:
        """Yield every ordered pair of neighbours: both (D, D') and (D', D)."""
        for database in self.laws:
            for neighbour in neighbours_of(database, self.universe, self.neighbours, among=self.laws):
                yield database, neighbour

    def _left_out(self) -> Iterator[tuple[Database[Any], list[Distribution[Any]]]]:
        """Yield every database with a unit left out, and the laws for all that can stand in its place."""
        units = min(self.neighbours.distance, self.n)
        choices = list(databases(self.universe, units, self.neighbours))
        for rest in databases(self.universe, self.n - units, self.neighbours):
            yield rest, [self.laws[Database((*rest, *choice))] for choice in choices]

    def __str__(self) -> str:
        most = "" if self.neighbours.kind == "replace" else "at most "
        size = f"{most}{self.n} row{'s' if self.n > 1 else ''}"
        ratio, event = self.worst_ratio(), self.worst_delta(1)
        return "\n".join(
            [
                f"all {len(self.laws):,} databases of {size} over {self.universe!r}, by {self.neighbours!r}",
                _line("epsilon", _rounded_up(log_bounds(ratio.value).upper), ratio),
                _line("statistical distance", _short(event.value), event),
                _line("KL divergence", _rounded_up(self.kl), self.worst_kl),
                _line("posterior shift", _rounded_up(posterior_shift_bounds(ratio.value).upper), ratio),
                _line("simulation epsilon", _rounded_up(self.simulation_epsilon), self.worst_simulation),
            ]
        )

    def __repr__(self) -> str:
        return f"<Verification of {len(self.laws):,} databases by {self.neighbours!r}>"


# --- running a mechanism -----------------------------------------------------------------------------


def _law(mechanism: Callable[[Database[Any]], object], database: Database[Any]) -> Distribution[Any]:
    try:
        law = mechanism(database)
    except Exception as error:
        raise InvalidInput(
            f"the mechanism fails on {database!r} ({type(error).__name__}: {error}). Whoever asked would see "
            "that, so failing is an outcome too: return one that says so"
        ) from error
    if isinstance(law, Distribution):
        return law
    if isinstance(law, Mapping):
        return Distribution(law)
    raise InvalidInput(
        f"the mechanism must return the distribution of its outcome, not one outcome ({law!r}): "
        "a Distribution, or a mapping of each outcome to its probability"
    )


def _refuse_look_alikes(laws: Iterable[Distribution[Any]]) -> None:
    first: dict[Any, Any] = {}
    for law in laws:
        for outcome in law.support:
            if told_apart(first.setdefault(outcome, outcome), outcome):
                raise InvalidInput(
                    f"one database gives {first[outcome]!r} and another {outcome!r}, which are equal to "
                    "Python, and a reader can tell them apart: return one type, or the text to be shown"
                )


def _refuse_too_many(universe: tuple[Any, ...], n: int, relation: Neighbours, limit: int) -> None:
    if relation.kind == "replace" and len(universe) == 1:
        raise InvalidInput(
            "a universe of one row has no neighbours under replace: there is nothing to exchange it for"
        )
    count = count_databases(universe, n, relation)
    different = min(n, len(universe))
    step = different * (len(universe) - 1) if relation.kind == "replace" else different + len(universe)
    each = min(count - 1, step ** min(relation.distance, _FAR))
    if count * each > whole(limit, "limit", least=1):
        raise InvalidInput(
            f"that is {_count(count)} databases with up to {_count(each)} neighbours each, and "
            f"limit={_count(limit)} pairs. "
            "Most mechanisms that can be broken are broken by two or three rows of two or three values: "
            "lower n, take a smaller universe, or raise limit"
        )


# At this distance the neighbours are counted as all databases, unless each has a single one.
_FAR = 100


def _count(number: int) -> str:
    digits = round(number.bit_length() * math.log10(2))
    return f"{number:,}" if digits < 20 else f"about 10**{digits}"


# --- values ------------------------------------------------------------------------------------------


def _size(ratio: Fraction | None) -> Fraction | float:
    return math.inf if ratio is None else ratio


def _largest(bounds: Iterable[Bounds]) -> Bounds:
    """Bounds on the largest of the numbers that are bounded."""
    lower, upper = zip(*bounds, strict=True)
    return Bounds(max(lower), max(upper))


def _line(name: str, value: str, where: object) -> str:
    return f"  {name:<21} {value:<9} {where}"


def _on(event: tuple[Any, ...]) -> str:
    shown = ", ".join(map(repr, event[:3])) + (", ..." if len(event) > 3 else "")
    return f", on {shown}" if event else ""


def _short(number: Fraction) -> str:
    text = fraction_text(number)
    return text if len(text) < 9 else _rounded_up(enclose(lambda: number).upper)


def _rounded_up(number: float) -> str:
    if number == math.inf:
        return "infinite"
    return fraction_text(Fraction(Context(prec=5, rounding=ROUND_CEILING).create_decimal(repr(number))))
