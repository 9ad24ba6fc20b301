"""Which keys of a GROUP BY may be shown: what every private choice of them shares.

A key that only one person has gives that person away by being shown at all, whatever noise its count has.
`optimal_keys` shows keys as often as a promise allows; `noisy_keys` shows those whose noisy count is large.

>>> from discreet.mechanisms.noisy_keys import GaussianKeys
>>> from discreet.mechanisms.optimal_keys import OptimalKeys
>>> m = OptimalKeys(epsilon=1, delta=1e-6)         # each unit has one key
>>> m.shown_from(0.5), m.shown_from(1)             # units it takes to be shown more often than not; for sure
(14, 28)
>>> g = GaussianKeys.calibrate(epsilon=1, delta=1e-6, keys_per_unit=20)      # shows noisy counts too
>>> "flu" in m.release({"flu": 400, "plague": 1}), "flu" in g.release({"flu": 40_000, "plague": 1})
(True, True)

A count that is shown because it is large is too large on average. For counts without that, choose keys with
one share of a budget, and release the counts of those keys with another:

>>> counts = {"flu": 400, "measles": 250, "plague": 1}
>>> shown = m.release(counts)
>>> from discreet.mechanisms.laplace import Laplace
>>> noisy = Laplace.calibrate(epsilon=1).release([counts[key] for key in shown])     # keys_per_unit=1
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidInput, Unsupported
from discreet.mechanisms.additive import guarantee_asked
from discreet.mechanisms.answers import read_answers
from discreet.mechanisms.search import least_whole
from discreet.noise import SYSTEM, Source
from discreet.numbers import Exactable, exact, fraction_text, probability, whole
from discreet.privacy import ApproxDP, Bounds, Guarantee, Neighbours
from discreet.privacy.reals import Real, enclose

__all__ = ["CountedKeys", "Keys", "any_of", "chance_bounds", "read_delta", "read_keep", "read_promise"]

# More units than any table has.
_MANY = 1 << 62


class Keys(ABC):
    """A choice of keys by the number of units that have them, each key on its own."""

    keys_per_unit: int

    @abstractmethod
    def release(self, counts: Any, *, keys: Any = None, source: Source = SYSTEM) -> Any:
        """Return the keys that may be shown: of a mapping to counts of units, or of counts and keys."""

    @abstractmethod
    def keep_probability(self, n: int) -> Bounds:
        """Bound the chance that a key of n units is shown."""

    def shows(self, n: int) -> float:
        """Return the chance that a key of n units is shown, rounded down."""
        return self.keep_probability(n).lower

    def shown_from(self, confidence: Exactable = 0.95) -> int:
        """Return the least number of units at which a key is shown with this confidence at least."""
        sure = probability(confidence, "confidence")
        if sure == 1 and self.keep_probability(_MANY).lower < 1:
            raise InvalidInput("noise has no end: ask for a confidence below 1, such as 0.999999")
        return least_whole(lambda n: exact(self.shows(n), "chance") >= sure)

    def _moved(self, neighbours: Neighbours | str) -> int:
        """Return how many keys' counts differ between neighbours, each by 1."""
        relation = Neighbours.of(neighbours)
        if relation.distance != 1:
            raise Unsupported("for units far apart take a promise of one, such as m.guarantee().group(2)")
        return self.keys_per_unit * relation.histogram_l1

    def __repr__(self) -> str:
        values = ((field.name, getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]
        texts = (
            f"{name}={value if isinstance(value, int) else fraction_text(value)}" for name, value in values
        )
        return f"{type(self).__name__}({', '.join(texts)})"


# --- keys and counts, as they come and as they go ---------------------------------------------------


@dataclass(frozen=True)
class CountedKeys:
    """Keys as plain Python values, and the number of units that have each."""

    keys: list[Any]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, counts: Any, keys: Any = None) -> CountedKeys:
        """Read a mapping of keys to counts, or counts and keys side by side, or refuse them.

        Claim: whether they are accepted depends on types alone, for the counts of units that a group-by
        gives. No keys at all are accepted like others: an empty table must not be told from one with a row.
        """
        if isinstance(counts, Mapping):
            if keys is not None:
                raise InvalidInput("a mapping has its keys in it: leave keys= out")
            keys, counts = list(counts), list(counts.values())
        elif keys is None:
            raise InvalidInput(
                "give a mapping of keys to counts, or counts and keys=: which places of a list are shown "
                "tells how many keys there are. For places that are public, keys=range(len(counts))"
            )
        if not (_is_row(keys) and _is_row(counts)) or len(keys) != len(counts):
            raise InvalidInput("counts and keys= must be lists or arrays, one as long as the other")
        names = _plain(list(keys))
        if len(set(names)) != len(names):
            raise InvalidInput("every key must be there once, with the number of units that have it")
        return cls(names, _read_counts(counts) if names else np.zeros(0, np.int64))

    def shown(self, chosen: NDArray[np.bool_], source: Source) -> Any:
        """Return the keys that are chosen, in their natural order."""
        return source.label([self.keys[place] for place in self._in_order(chosen)])

    def shown_with(self, noisy: NDArray[Any], chosen: NDArray[np.bool_], source: Source) -> dict[Any, Any]:
        """Return the keys that are chosen, in their natural order, with their noisy counts."""
        return {self.keys[place]: source.label(int(noisy[place])) for place in self._in_order(chosen)}

    def _in_order(self, chosen: NDArray[np.bool_]) -> list[int]:
        """Return the places of the keys that are chosen, in an order that the data's own does not touch."""
        return sorted(np.flatnonzero(chosen).tolist(), key=lambda place: _rank(self.keys[place]))


def _is_row(values: Any) -> bool:
    listed = isinstance(values, Sequence) and not isinstance(values, (str, bytes))
    return listed or getattr(values, "ndim", None) == 1


def _read_counts(counts: Any) -> NDArray[np.int64]:
    read = read_answers(counts)
    values = read.values
    if not read.whole or values.ndim != 1 or values.dtype == object or values.min() < 0:
        raise InvalidInput("counts must be whole numbers of units, in one row, none of them negative")
    return values


# Equal keys of these types look alike, and they have an order.
_KINDS = {str, bytes, int, bool, datetime.date}


def _plain(keys: list[Any]) -> list[Any]:
    """Return keys as plain values of one type (or None), or as tuples of such columns, or refuse them.

    1, 1.0 and True are one key to Python, and so are two spellings of a Decimal: which of them is shown would
    depend on whose row came first. A NumPy string's type tells how long the longest one is.
    """
    if not keys or any(type(key) is not tuple for key in keys):
        return _column(keys)
    if len({len(key) for key in keys}) > 1:
        raise InvalidInput("keys that are tuples must have the same length")
    columns = [_column([key[i] for key in keys]) for i in range(len(keys[0]))]
    return [tuple(column[row] for column in columns) for row in range(len(keys))]


def _column(keys: list[Any]) -> list[Any]:
    plain = [
        key.item() if isinstance(key, (np.integer, np.str_, np.bytes_, np.bool_)) else key for key in keys
    ]
    kinds = {type(key) for key in plain} - {type(None)}
    if not kinds <= _KINDS or len(kinds) > 1:
        raise InvalidInput(
            "keys must all be of one type, which is str, bytes, int, bool or a date (or None), or tuples of "
            "such: equal keys that look different would show whose came first. Write others as text"
        )
    return plain


def _rank(key: Any) -> Any:
    """Return what a key is sorted by: None first."""
    if isinstance(key, tuple):
        return tuple(map(_rank, key))
    return (key is not None, 0 if key is None else key)


# --- what is asked of a choice ----------------------------------------------------------------------


def read_promise(guarantee: Guarantee | None, epsilon: Exactable | None, delta: Exactable | None) -> ApproxDP:
    """Read an (epsilon, delta) promise, and refuse any other."""
    promise = guarantee_asked(guarantee, epsilon, delta, None, None)
    if not isinstance(promise, ApproxDP) or not promise.delta:
        raise Unsupported(
            "keys that come from the data are shown under no promise without a delta: one that nobody has "
            "is never shown, so one that a single unit has could not be. Say epsilon= and delta=, such as "
            "1e-9; or list the keys that can occur, and release a count for each"
        )
    read_delta(promise.delta)
    return promise


def read_delta(delta: Exactable) -> Fraction:
    """Read a delta that lets some keys be shown, and not any."""
    chance = probability(delta, "delta")
    if not 0 < chance < 1:
        raise InvalidInput(
            "delta must be above 0 and below 1: with 0 no key can ever be shown, since a key that nobody "
            "has never is; take one far below 1 / (number of units), such as 1e-9"
        )
    return chance


def read_keep(keep: int, failure: Exactable) -> tuple[int, Fraction]:
    """Read a number of units, and how seldom a key of so many may be missed."""
    n, chance = whole(keep, "keep", least=1), probability(failure, "failure")
    if chance in (0, 1):
        raise InvalidInput("failure must be above 0 and below 1, such as 0.05")
    if n == 1:
        raise Unsupported(
            "a key of one unit is shown with probability delta at most: keep= must be 2 or more"
        )
    return n, chance


def chance_bounds(chance: Callable[[], Real]) -> Bounds:
    """Enclose a probability."""
    low, high = enclose(chance)
    return Bounds(max(0.0, low), min(1.0, high))


def any_of(chance: Callable[[], arb], m: int) -> Fraction:
    """Return 1 - (1 - chance)**m, the chance that any of m independent keys is shown, rounded up."""
    most = enclose(lambda: chance() if m == 1 else -(m * (-chance()).log1p()).expm1()).upper
    return exact(min(1.0, most), "chance")
