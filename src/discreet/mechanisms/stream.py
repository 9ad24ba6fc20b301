"""Running totals over a stream, each private and all together one release: binary tree aggregation.

>>> counter = TreeCounter.calibrate(epsilon=1, horizon=1000)
>>> counter                                            # a step is in 10 nodes, each of which gets this noise
TreeCounter(horizon=1000, noise=Laplace(scale=10))
>>> totals = counter.release([1, 0, 1, 1])             # a whole stream at once
>>> run = counter.start(); total = run.add(1)          # or a step at a time
>>> counter.guarantee(), counter.guarantee(steps_per_unit=3)
(PureDP(epsilon=1), PureDP(epsilon=3))

Every step belongs to one node of each level of a binary tree, whose noisy sums are what is released; a
running total is the sum of at most one node a level (Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song
2011).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from discreet.errors import InvalidInput
from discreet.mechanisms.additive import choose_grid, guarantee_asked, relation_of
from discreet.mechanisms.answers import Answers, add, from_step, from_steps, read_answers, to_steps
from discreet.mechanisms.counter_run import CounterRun
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace, steps_moved
from discreet.mechanisms.scores import fails_at_most, failure_of, read_failure
from discreet.mechanisms.search import greatest, least_whole
from discreet.mechanisms.sensitivity import Sensitivity
from discreet.mechanisms.tree import add_up, pairs, tree_sensitivity
from discreet.mechanisms.tree_errors import TreeErrors
from discreet.noise import SYSTEM, Source
from discreet.noise.source import checked
from discreet.numbers import Exactable, nonnegative, positive, whole
from discreet.privacy import ZCDP, ApproxDP, Guarantee, Neighbours, PrivacyLoss, PureDP
from discreet.privacy.reals import ball, enclose

__all__ = ["CounterRun", "TreeCounter"]

Noise = Laplace | Gaussian
Relation = Neighbours | str

_HALF = 1 << 62


@dataclass(frozen=True, repr=False)
class TreeCounter:
    """Adds noise to every node of a binary tree over up to `horizon` steps, and sums nodes to running totals.

    Claim: if between neighbours the values of at most `steps_per_unit` steps change, each by at most
    `sensitivity`, all running totals together have at worst `loss(sensitivity, steps_per_unit=...)`, also
    where the values of later steps depend on totals seen before. A person in many steps is such a group. How
    many steps there are is public.

    `consistent=True` refines each node by the nodes below it. It costs nothing, since it uses nothing but
    noisy nodes.
    """

    horizon: int
    noise: Noise
    consistent: bool = False

    def __init__(self, horizon: int, noise: Noise, *, consistent: bool = False) -> None:
        if type(noise) not in (Laplace, Gaussian):
            raise InvalidInput(f"noise must be Laplace(...) or Gaussian(...), not {noise!r}")
        if noise.size is not None:
            raise InvalidInput("the noise is for the nodes of the tree, however many: leave out its size=")
        if not isinstance(consistent, bool):
            raise InvalidInput(f"consistent must be True or False, not {consistent!r}")
        object.__setattr__(self, "horizon", whole(horizon, "horizon", least=1))
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "consistent", consistent)

    # --- what it costs -------------------------------------------------------------------------------

    def sensitivity(
        self, sensitivity: Exactable = 1, *, steps_per_unit: int = 1, neighbours: Relation | None = None
    ) -> Sensitivity:
        """Return how far the nodes move together, in steps of the grid.

        `sensitivity` is the most that the value of one step changes, and `steps_per_unit` in how many steps a
        unit is. Claim: over all nodes, exact (for one unit under add-remove, whose steps all lie in the
        horizon). Under replace one unit leaves its steps and another enters as many.
        """
        relation = relation_of(positive(sensitivity, "sensitivity"), neighbours)
        moved = steps_moved(sensitivity, self.noise.grid, None)
        steps = whole(steps_per_unit, "steps_per_unit", least=1) * (1 if relation.kind == "add-remove" else 2)
        one = tree_sensitivity(self.horizon, moved, steps, Neighbours(relation.kind))
        return one.group(relation.distance)

    def loss(
        self, sensitivity: Exactable = 1, *, steps_per_unit: int = 1, neighbours: Relation | None = None
    ) -> PrivacyLoss:
        """Return the loss of all running totals together, where a unit changes so much."""
        nodes = self.sensitivity(sensitivity, steps_per_unit=steps_per_unit, neighbours=neighbours)
        return self._together(nodes.size).loss(nodes)

    def guarantee(
        self, sensitivity: Exactable = 1, *, steps_per_unit: int = 1, neighbours: Relation | None = None
    ) -> PureDP | ZCDP:
        """Return the promise that holds exactly: pure for Laplace noise, zero-concentrated for Gaussian."""
        nodes = self.sensitivity(sensitivity, steps_per_unit=steps_per_unit, neighbours=neighbours)
        return self._together(nodes.size).guarantee(nodes)

    def _together(self, nodes: int) -> Noise:
        """Return the noise of all nodes as noise on the integers: in steps of the grid."""
        return _in_units(self.noise, 1 / self._step, size=nodes)

    @classmethod
    def calibrate(
        cls,
        guarantee: Guarantee | None = None,
        *,
        horizon: int,
        epsilon: Exactable | None = None,
        delta: Exactable | None = None,
        rho: Exactable | None = None,
        mu: Exactable | None = None,
        sensitivity: Exactable = 1,
        steps_per_unit: int = 1,
        neighbours: Relation | None = None,
        noise: type[Laplace] | type[Gaussian] | None = None,
        grid: Exactable | None = None,
        consistent: bool = False,
    ) -> Self:
        """Return the least noise that keeps a promise about all running totals together.

        It is Laplace noise for a pure promise and Gaussian for others, unless `noise` says which. Whole
        values need no grid; real ones are rounded to `grid`, or to a fine one.
        """
        promise = guarantee_asked(guarantee, epsilon, delta, rho, mu)
        pure = isinstance(promise, PureDP) or (isinstance(promise, ApproxDP) and not promise.delta)
        kind = _kind(noise or (Laplace if pure else Gaussian))
        step = choose_grid(positive(sensitivity, "sensitivity"), grid, None)[0]
        shape = cls(horizon, kind(1, grid=step), consistent=consistent)
        nodes = shape.sensitivity(sensitivity, steps_per_unit=steps_per_unit, neighbours=neighbours)
        found = kind.calibrate(promise, sensitivity=nodes)
        return replace(shape, noise=_in_units(found, shape._step, grid=step))

    @classmethod
    def solve(
        cls,
        *,
        error: Exactable,
        failure: Exactable,
        horizon: int,
        time: int | None = None,
        noise: type[Laplace] | type[Gaussian] = Laplace,
        grid: Exactable | None = None,
        consistent: bool = False,
    ) -> Self:
        """Return the most private noise with which `tail(error, time=time)` is at most `failure`."""
        kind, chance, most = _kind(noise), read_failure(failure), positive(error, "error")
        shape = cls(horizon, kind(1, grid=grid), consistent=consistent)
        when, far = shape._time(time), most / shape._step

        def wide(width: Fraction) -> Noise:
            return _in_units(kind(width), shape._step, grid=shape.noise.grid)

        def keeps(width: Fraction) -> bool:
            return fails_at_most(lambda: replace(shape, noise=wide(width))._errors.tail(far, when), chance)

        return replace(shape, noise=wide(greatest(keeps, far)))

    # --- how far off a total is ----------------------------------------------------------------------

    def tail(self, reach: Exactable, *, time: int | None = None) -> float:
        """Return a bound on the chance that the noise of a running total reaches this far, rounded up.

        Of the total at one `time` (1 is the first step); or, with None, of any total up to the horizon.
        """
        far, when = nonnegative(reach, "reach") / self._step, self._time(time)
        return min(1.0, max(0.0, enclose(lambda: self._errors.tail(far, when)).upper))

    def error(self, confidence: Exactable = 0.95, *, time: int | None = None) -> int | float:
        """Return an e that the noise of the total at one time, or with None of any total, keeps within.

        The least whole number of steps of the grid of which this is certified.
        """
        failure, when = failure_of(confidence), self._time(time)
        # Totals that are whole steps off by more than m are off by m + 1.
        beyond = 0 if self.consistent else 1

        def keeps(m: int) -> bool:
            return fails_at_most(lambda: self._errors.tail(Fraction(m + beyond), when), failure)

        steps = least_whole(keeps)
        return steps if self.noise.grid is None else enclose(lambda: steps * self._step).upper

    def expected_error(self, *, time: int | None = None) -> float:
        """Bound E|noise| of the total at one time, or of the worst with None, by its root mean square."""
        when = self._time(time)
        return enclose(lambda: self._errors.deviation(when) * ball(self._step)).upper

    def _time(self, time: int | None) -> int | None:
        if time is not None and whole(time, "time", least=1) > self.horizon:
            raise InvalidInput(f"time must be one of the steps 1 to {self.horizon}, not {time}")
        return time

    @property
    def _errors(self) -> TreeErrors:
        return TreeErrors(self.horizon, self.noise._law, self.consistent)

    @property
    def _step(self) -> Fraction:
        return self.noise.grid or Fraction(1)

    # --- release -------------------------------------------------------------------------------------

    def release(self, values: Any, *, increasing: bool = False, source: Source = SYSTEM) -> Any:
        """Return the noisy running totals of a whole stream: an array of ints, or of floats.

        Ints for whole values; floats on a grid, and for totals that are consistent or increasing. Claim: the
        law is that of `start()`, step by step.

        `increasing=True` suits values that are known to be at least 0. It returns the nondecreasing totals
        nearest to the noisy ones (least squares over the whole stream, so that an earlier total uses later
        nodes), none below 0. Claim: what holds for all totals together, such as `error()`, still does.
        """
        source = checked(source)
        read, steps = self._read(values)
        if read.values.ndim != 1:
            raise InvalidInput("a stream is one row of values, one for each step: a list or an array")
        if steps.size > self.horizon:
            raise InvalidInput(
                f"this counter is for {self.horizon} steps, and here are {steps.size}: "
                f"choose it for as many, TreeCounter.calibrate(..., horizon={steps.size})"
            )
        if increasing:
            read = replace(read, whole=False)
        totals = self._refined_totals(steps, source) if self.consistent else self._totals(steps, read, source)
        return source.label(np.maximum(isotonic(totals), 0.0) if increasing else totals)

    def start(self, *, source: Source = SYSTEM) -> CounterRun:
        """Start a run that takes one value at a time. It is one release: what it costs is `loss(...)`."""
        return CounterRun(self, source)

    def _read(self, values: Any) -> tuple[Answers, NDArray[Any]]:
        """Read values, and round them to steps of the grid."""
        read = read_answers(values)
        if self.noise.grid is None and not read.whole:
            raise InvalidInput(
                "this counter is for whole values, and others are here: choose a grid for real ones, such "
                "as TreeCounter.calibrate(..., grid=0.01), which counts what rounding to it costs"
            )
        return read, to_steps(read, self._step)

    def _totals(self, steps: NDArray[Any], read: Answers, source: Source) -> Any:
        """Add up values and noise. Of the nodes that end at a step only the longest is in any total."""
        noise = self.noise._draw(steps.shape, source)
        steps, noise = _roomy(steps, noise, len(steps))
        return from_steps(add(np.cumsum(steps), add_up(noise)), self._step, read)

    def _refined_totals(self, steps: NDArray[Any], source: Source) -> Any:
        """Refine all nodes, level by level, and add up those that are in totals.

        Claim: a total is a function of noisy nodes alone, computed as such: no bit of the doubles depends on
        how a noisy node is divided into value and noise. The refined sum of a node of n steps is N / (2n -
        1), where N is n times its noisy sum and the N of its two halves.
        """
        n = len(steps)
        noise = self.noise._draw((2 * n - n.bit_count(),), source)
        sums, noise = _roomy(steps, noise, 2 * n * n)
        refined, nodes = np.zeros_like(sums), np.zeros(n, np.float64)
        for level in range(n.bit_length()):
            width, count = 1 << level, n >> level
            sums, refined = (sums, refined) if not level else (pairs(sums), pairs(refined))
            refined = refined + (sums + noise[:count]) * width
            noise = noise[count:]
            # The first, third, fifth ... node of a level are in totals, and are the longest that end there.
            nodes[width - 1 :: 2 * width] = refined[::2].astype(np.float64) / float(2 * width - 1)
        return add_up(nodes) * from_step(1, self._step)

    def __repr__(self) -> str:
        consistent = ", consistent=True" if self.consistent else ""
        return f"TreeCounter(horizon={self.horizon}, noise={self.noise!r}{consistent})"


# --- arrays -------------------------------------------------------------------------------------------


def _roomy(steps: NDArray[Any], noise: NDArray[Any], times: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return integers as 64-bit ones if so many times their sizes fit, or else as Python's."""
    most = sum(max(int(part.max()), -int(part.min())) for part in (steps, noise))
    kind = np.int64 if most * times < _HALF else object
    return steps.astype(kind), noise.astype(kind)


def isotonic(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nondecreasing sequence nearest to the values, by pooling adjacent violators.

    Claim: it is no further than they from any nondecreasing sequence, at its worst place.
    """
    blocks: list[tuple[float, int]] = []
    for total in values.tolist():
        count = 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before, more = blocks.pop()
            total, count = total + before, count + more
        blocks.append((total, count))
    sums, counts = zip(*blocks, strict=True)
    return np.repeat(np.array(sums) / np.array(counts), counts)


# --- kinds of noise -----------------------------------------------------------------------------------


def _kind(noise: type[Laplace] | type[Gaussian]) -> type[Laplace] | type[Gaussian]:
    if noise is not Laplace and noise is not Gaussian:
        raise InvalidInput(f"noise must be the class Laplace or Gaussian, not {noise!r}")
    return noise


def _in_units(
    noise: Noise, unit: Fraction, *, grid: Fraction | None = None, size: int | None = None
) -> Noise:
    """Return noise times the unit, on this grid."""
    if isinstance(noise, Laplace):
        return Laplace(noise.scale * unit, grid=grid, size=size)
    return Gaussian(noise.variance * unit**2, grid=grid, size=size)
