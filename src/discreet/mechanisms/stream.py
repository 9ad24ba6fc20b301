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

import math
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn, Self

import numpy as np
from flint import arb
from numpy.typing import NDArray

from discreet.errors import InvalidInput, Unsupported
from discreet.mechanisms.additive import choose_grid, guarantee_asked, relation_of
from discreet.mechanisms.answers import Answers, add, from_steps, read_answers, to_steps
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace, steps_moved
from discreet.mechanisms.search import greatest, least_whole
from discreet.mechanisms.sensitivity import Sensitivity
from discreet.noise import SYSTEM, Source, discrete_gaussian, discrete_laplace
from discreet.noise.source import checked
from discreet.numbers import Exactable, nonnegative, positive, probability, whole
from discreet.privacy import ZCDP, ApproxDP, Guarantee, Neighbours, PrivacyLoss, PureDP
from discreet.privacy.lattice import gaussian_mass_from
from discreet.privacy.reals import Inexact, ball, certainly, enclose

__all__ = ["CounterRun", "TreeCounter"]

Noise = Laplace | Gaussian
Reals = NDArray[np.float64]

_HALF = 1 << 62
_TILTS = 32
_ROUNDS = 64


@dataclass(frozen=True, repr=False)
class TreeCounter:
    """Adds noise to every node of a binary tree over up to `horizon` steps, and sums nodes to running totals.

    Claim: if between neighbours the values of at most `steps_per_unit` steps change, each by at most
    `sensitivity`, all running totals together have at worst `loss(sensitivity, steps_per_unit=...)`, also
    where the values of later steps depend on totals seen before. A person in many steps is such a group.

    `consistent=True` refines each node by the nodes below it, and `increasing=True` makes the totals
    nondecreasing and at least 0, which suits values that are known to be; both cost nothing, since they use
    nothing but noisy nodes.
    """

    horizon: int
    noise: Noise
    consistent: bool = False
    increasing: bool = False

    def __init__(
        self, horizon: int, noise: Noise, *, consistent: bool = False, increasing: bool = False
    ) -> None:
        if type(noise) not in (Laplace, Gaussian):
            raise InvalidInput(f"noise must be Laplace(...) or Gaussian(...), not {noise!r}")
        if noise.size is not None:
            raise InvalidInput("the noise is for the nodes of the tree, however many: leave out its size=")
        object.__setattr__(self, "horizon", whole(horizon, "horizon", least=1))
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "consistent", _flag(consistent, "consistent"))
        object.__setattr__(self, "increasing", _flag(increasing, "increasing"))

    # --- what it costs -------------------------------------------------------------------------------

    def sensitivity(
        self,
        sensitivity: Exactable = 1,
        *,
        steps_per_unit: int = 1,
        neighbours: Neighbours | str | None = None,
    ) -> Sensitivity:
        """Return how far the nodes move together, in steps of the grid.

        `sensitivity` is the most that the value of one step changes, and `steps_per_unit` in how many steps a
        unit is. Claim: over all nodes, exact (for one unit under add-remove, whose steps all lie in the
        horizon). Under replace one unit leaves its steps and another enters as many.
        """
        relation = relation_of(positive(sensitivity, "sensitivity"), neighbours)
        moved = steps_moved(sensitivity, self.noise.grid, None)
        steps = whole(steps_per_unit, "steps_per_unit", least=1) * (1 if relation.kind == "add-remove" else 2)
        return tree_sensitivity(self.horizon, moved, steps, Neighbours(relation.kind)).group(
            relation.distance
        )

    def loss(
        self,
        sensitivity: Exactable = 1,
        *,
        steps_per_unit: int = 1,
        neighbours: Neighbours | str | None = None,
    ) -> PrivacyLoss:
        """Return the loss of all running totals together, where a unit changes so much."""
        nodes = self.sensitivity(sensitivity, steps_per_unit=steps_per_unit, neighbours=neighbours)
        return self._in_steps(nodes.size).loss(nodes)

    def guarantee(
        self,
        sensitivity: Exactable = 1,
        *,
        steps_per_unit: int = 1,
        neighbours: Neighbours | str | None = None,
    ) -> PureDP | ZCDP:
        """Return the promise that holds exactly: pure for Laplace noise, zero-concentrated for Gaussian."""
        nodes = self.sensitivity(sensitivity, steps_per_unit=steps_per_unit, neighbours=neighbours)
        return self._in_steps(nodes.size).guarantee(nodes)

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
        neighbours: Neighbours | str | None = None,
        noise: type[Laplace] | type[Gaussian] | None = None,
        grid: Exactable | None = None,
        consistent: bool = False,
        increasing: bool = False,
    ) -> Self:
        """Return the least noise that keeps a promise about all running totals together.

        It is Laplace noise for a pure promise and Gaussian for others, unless `noise` says which. Whole
        values need no grid; real ones are rounded to `grid`, or to a fine one.
        """
        promise = guarantee_asked(guarantee, epsilon, delta, rho, mu)
        pure = isinstance(promise, PureDP) or (isinstance(promise, ApproxDP) and not promise.delta)
        kind = _kind(noise or (Laplace if pure else Gaussian))
        step = choose_grid(positive(sensitivity, "sensitivity"), grid, None)[0]
        shape = cls(horizon, kind(1, grid=step), consistent=consistent, increasing=increasing)
        nodes = shape.sensitivity(sensitivity, steps_per_unit=steps_per_unit, neighbours=neighbours)
        found = kind.calibrate(promise, sensitivity=nodes)
        return shape._with(kind, _width(found), step)

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
        increasing: bool = False,
    ) -> Self:
        """Return the most private noise with which `tail(error, time=time)` is at most `failure`."""
        kind, chance = _kind(noise), probability(failure, "failure")
        if chance in (0, 1):
            raise InvalidInput(
                "failure must be above 0 and below 1: no noise never fails, and any may always"
            )
        step = None if grid is None else positive(grid, "grid")
        most = positive(error, "error") / (step or 1)
        shape = cls(horizon, kind(1, grid=step), consistent=consistent, increasing=increasing)

        def keeps(width: Fraction) -> bool:
            return shape._with(kind, width, step)._fails_at_most(most, chance, time)

        return shape._with(kind, greatest(keeps, most), step)

    def _with(self, kind: type[Laplace] | type[Gaussian], width: Fraction, step: Fraction | None) -> Self:
        """Return the same tree with noise of this width in steps of the grid."""
        unit = step or Fraction(1)
        noise = kind(width * (unit if kind is Laplace else unit**2), grid=step)
        return type(self)(self.horizon, noise, consistent=self.consistent, increasing=self.increasing)

    def _in_steps(self, size: int | None = None) -> Noise:
        """Return the noise of a node as noise on the integers: in steps of the grid."""
        noise, step = self.noise, self._step
        if isinstance(noise, Laplace):
            return Laplace(noise.scale / step, size=size)
        return Gaussian(noise.variance / step**2, size=size)

    @property
    def _step(self) -> Fraction:
        return self.noise.grid or Fraction(1)

    # --- how far off a total is ----------------------------------------------------------------------

    def tail(self, reach: Exactable, *, time: int | None = None) -> float:
        """Return a bound on the chance that the noise of a running total reaches this far, rounded up.

        Of the total at one `time` (1 is the first step); or, with None, of any total up to the horizon.
        Totals made `increasing` are only bounded at all times together, so `time` makes no difference, and
        those of a run have an error of their own, `CounterRun.error`.
        """
        far = nonnegative(reach, "reach") / self._step
        when = self._time(time)
        return min(1.0, max(0.0, enclose(lambda: self._tail(far, when)).upper))

    def error(self, confidence: Exactable = 0.95, *, time: int | None = None) -> int | float:
        """Return an e that the noise of the total at one time, or with None of any total, keeps within.

        The least whole number of steps of the grid of which this is certified.
        """
        sure = probability(confidence, "confidence")
        if sure == 1:
            raise InvalidInput("noise has no end: ask for a confidence below 1, such as 0.999999")
        # Whole totals that are off by more than m are off by m + 1.
        beyond = 0 if self.consistent or self.increasing else 1
        steps = least_whole(lambda m: self._fails_at_most(Fraction(m + beyond), 1 - sure, time))
        return steps if self.noise.grid is None else enclose(lambda: steps * self._step).upper

    def expected_error(self, *, time: int | None = None) -> float:
        """Bound E|noise| of the total at one time, or of the worst with None, by its root mean square."""
        if self.increasing:
            raise Unsupported("totals made increasing are off by an amount that depends on the values")
        share = self._most_share(self._time(time))
        return enclose(lambda: (self._variance() * ball(share)).sqrt() * ball(self._step)).upper

    def _most_share(self, time: int | None) -> Fraction:
        return max(self._share(t) for t in (_fullest(self.horizon) if time is None else [time]))

    def _share(self, time: int) -> Fraction:
        """Return the variance of the total at a time, in variances of a node."""
        shares = (_kept(level) if self.consistent else Fraction(1) for level in _levels(time))
        return sum(shares, Fraction(0))

    def _variance(self) -> arb:
        """Return the variance of the noise of a node, in steps; for Gaussian noise a little more."""
        noise = self._in_steps()
        if isinstance(noise, Gaussian):
            return ball(noise.variance)
        q = (-ball(1 / noise.scale)).exp()
        return 2 * q / (1 - q) ** 2

    def _time(self, time: int | None) -> int | None:
        if time is not None and whole(time, "time", least=1) > self.horizon:
            raise InvalidInput(f"time must be one of the steps 1 to {self.horizon}, not {time}")
        return None if self.increasing else time

    def _fails_at_most(self, far: Fraction, failure: Fraction, time: int | None) -> bool:
        when = self._time(time)
        try:
            return not certainly(lambda: (self._tail(far, when), ball(failure)))
        except Inexact:
            return False

    def _tail(self, far: Fraction, time: int | None) -> arb:
        if far <= 0:
            return arb(1)
        if self.consistent:
            return self._refined_tail(far, time)
        tail = self._node_sums(math.ceil(far))
        if time is not None:
            return tail(time.bit_count())
        return sum((times * tail(nodes) for nodes, times in _node_counts(self.horizon).items()), arb(0))

    def _node_sums(self, m: int) -> Callable[[int], arb]:
        noise = self._in_steps()
        if isinstance(noise, Laplace):
            q = (-ball(1 / noise.scale)).exp()
            return lambda k: laplace_sum_tail(m, k, q)
        return lambda k: gaussian_sum_tail(m, k, noise.variance)

    def _refined_tail(self, far: Fraction, time: int | None) -> arb:
        """Bound the tail of refined totals by Chernoff's inequality, at the best of a few tilts.

        Claim: whatever the tilt s, Pr(|noise| >= far) <= 2 E exp(s noise) / exp(s far); and over all times
        the sum of the right sides, which are products over the bits of the time.
        """
        worst = self._most_share(time)
        spread, far = max(enclose(self._variance).upper, 1e-300), min(far, Fraction(10**300))
        if isinstance(self.noise, Gaussian):
            tilts = [float(far) / (spread * float(worst))]
        else:
            end = math.acosh(1 + 1 / spread)
            tilts = [end * i / (_TILTS + 1) for i in range(1, _TILTS + 1)]
        guesses = [(self._chernoff(float(far), spread, s, time), s) for s in tilts]
        best = Fraction(min(guesses)[1])
        return self._certified_chernoff(far, best, time)

    def _chernoff(self, far: float, spread: float, tilt: float, time: int | None) -> float:
        """Guess ln of the bound in doubles."""
        levels = [
            min(600.0, self._log_moment(level, tilt, spread)) for level in range(self.horizon.bit_length())
        ]
        if time is not None:
            return sum(levels[level] for level in _levels(time)) - tilt * far
        return math.log(_over_times(self.horizon, [math.exp(x) for x in levels])) - tilt * far

    def _log_moment(self, level: int, tilt: float, spread: float) -> float:
        if isinstance(self.noise, Gaussian):
            return tilt**2 * spread * float(_kept(level)) / 2
        weights = ((2.0 ** (level - i), 2.0**i / (2.0 ** (level + 1) - 1)) for i in range(level + 1))
        return -sum(n * math.log1p(-spread * (math.cosh(tilt * w) - 1)) for n, w in weights)

    def _certified_chernoff(self, far: Fraction, tilt: Fraction, time: int | None) -> arb:
        levels = self.horizon if time is None else time
        moments = [self._moment(level, tilt) for level in range(levels.bit_length())]
        bound: arb = 2 * (-ball(tilt * far)).exp()
        if time is None:
            bound *= _over_times(self.horizon, moments)
            return bound
        for level in _levels(time):
            bound *= moments[level]
        return bound

    def _moment(self, level: int, tilt: Fraction) -> arb:
        """Enclose, or for Gaussian noise bound, E exp(tilt * noise) of a refined node of this level.

        Claim: its noise is the sum over the 2**(level - i) nodes of level i below it of their noises times
        2**i / (2**(level + 1) - 1). Discrete Laplace noise of variance V has the moment
        1 / (1 - V (cosh s - 1)), and discrete Gaussian noise at most exp(s**2 V / 2).
        """
        if isinstance(self.noise, Gaussian):
            return (ball(tilt**2 * _kept(level) / 2) * self._variance()).exp()
        log = arb(0)
        for i in range(level + 1):
            weight = Fraction(2**i, 2 ** (level + 1) - 1)
            rest = 1 - self._variance() * (ball(tilt * weight).cosh() - 1)
            if not rest > 0:
                return arb("+inf")
            log -= 2 ** (level - i) * rest.log()
        return log.exp()

    # --- release -------------------------------------------------------------------------------------

    def release(self, values: Any, *, source: Source = SYSTEM) -> Any:
        """Return the noisy running totals of a whole stream: an array of ints, or of floats.

        Ints for whole values; floats on a grid, and for totals made consistent or increasing. These last are
        the nondecreasing totals nearest to the noisy ones (least squares over the whole stream), so that an
        earlier total may use later nodes. Claim: the law of the others is that of `start()`, step by step.
        """
        source = checked(source)
        read = self._read(values)
        if read.values.ndim != 1 or read.scalar:
            raise InvalidInput("a stream is one row of values, one for each step: a list or an array")
        if read.values.size > self.horizon:
            raise InvalidInput(
                f"this counter is for {self.horizon} steps, and here are {read.values.size}: "
                f"choose it for as many, TreeCounter.calibrate(..., horizon={read.values.size})"
            )
        steps = to_steps(read, self._step)
        if self.consistent:
            totals = self._refined_totals(steps, source)
        elif self.increasing:
            totals = self._out(self._totals(steps, source).astype(np.float64))
        else:
            return source.label(from_steps(self._totals(steps, source), self._step, read))
        return source.label(np.maximum(isotonic(totals), 0.0) if self.increasing else totals)

    def _read(self, values: Any) -> Answers:
        read = read_answers(values)
        if self.noise.grid is None and not read.whole:
            raise InvalidInput(
                "this counter is for whole values, and others are here: choose a grid for real ones, such "
                "as TreeCounter.calibrate(..., grid=0.01), which counts what rounding to it costs"
            )
        return read

    def _totals(self, steps: NDArray[Any], source: Source) -> NDArray[Any]:
        """Add up values and noise. Of the nodes that end at a step only the highest is in any total.

        The total at time t is that at t less its lowest bit, and the node between; so is its noise.
        """
        nodes = np.asarray(draw(self._in_steps(), len(steps), source))
        noise = np.zeros(len(steps) + 1, _sums_dtype(nodes, 64))
        noise[1:] = nodes
        for level in range(len(steps).bit_length() - 1, -1, -1):
            upper = noise[1 << level :: 2 << level]
            upper += noise[:: 2 << level][: len(upper)]
        return add(_prefixes(steps)[1:], noise[1:])

    def _refined_totals(self, steps: NDArray[Any], source: Source) -> Reals:
        """Refine all nodes level by level: see `_refined`."""
        n = len(steps)
        noise = np.asarray(draw(self._in_steps(), 2 * n - n.bit_count(), source))
        prefixes = _prefixes(steps)
        ends = np.arange(n, dtype=np.int64)
        first = 2 * ends - np.bitwise_count(ends)  # of the nodes that end at each step, the lowest
        totals = np.zeros(n + 1)
        below: NDArray[Any] = prefixes[:0]
        refined = []
        for level in range(n.bit_length()):
            width = 1 << level
            count = n >> level
            sums = prefixes[width::width] - prefixes[:-width:width][:count]
            nodes = add(sums, noise[first[width - 1 :: width] + level])
            nodes = nodes.astype(_sums_dtype(nodes, (level + 1) << level))
            pairs = below[: 2 * count].reshape(-1, 2).sum(axis=1) if level else 0
            below = nodes * width + pairs
            refined.append(below[::2].astype(np.float64) / float(2 * width - 1))
        for level in range(n.bit_length() - 1, -1, -1):
            upper = totals[1 << level :: 2 << level]
            upper += totals[:: 2 << level][: len(upper)]
            upper += refined[level]
        return np.asarray(self._out(totals[1:]))

    def _out(self, steps: Any) -> Any:
        """Return multiples of the grid, in doubles: of noisy values only, so that no bits betray others."""
        return steps * float(self._step.numerator) / float(self._step.denominator)

    def start(self, *, source: Source = SYSTEM) -> CounterRun:
        """Start a run that takes one value at a time. It is one release: what it costs is `loss(...)`."""
        return CounterRun(self, checked(source))

    def __repr__(self) -> str:
        said = [f"horizon={self.horizon}", f"noise={self.noise!r}"]
        said += [f"{name}=True" for name in ("consistent", "increasing") if getattr(self, name)]
        return f"TreeCounter({', '.join(said)})"


class CounterRun:
    """One stream, step by step: `add(value)` returns the noisy running total so far.

    It keeps one exact and one noisy partial sum a level. Claim: the totals returned have the law of
    `TreeCounter.release` of the same values. If they are to be `increasing`, each is the greatest so far of
    the totals less one standard deviation of their noise: the plain greatest so far would drift upwards while
    the exact total grows slowly, by several deviations, and this one is low by one where it grows fast.
    """

    def __init__(self, counter: TreeCounter, source: Source) -> None:
        self.counter, self._source = counter, source
        self._noise = counter._in_steps()
        self._lock, self._process = threading.Lock(), os.getpid()
        self._time = 0
        # By level: the exact sum of the node that is complete, and what stands for it in totals.
        self._sums: list[int] = []
        self._nodes: list[int] = []
        self._highest = 0.0
        self._deviation = counter._out(math.sqrt(enclose(counter._variance).upper))

    @property
    def time(self) -> int:
        """How many steps have been taken."""
        return self._time

    def add(self, value: Any) -> Any:
        """Take the value of the next step, and return the noisy running total."""
        read = self.counter._read(value)
        if not read.scalar:
            raise InvalidInput("a step has one value: hand over a whole stream to release(...)")
        step = int(to_steps(read, self.counter._step)[()])
        with self._lock:
            self._refuse_to_go_on()
            self._time += 1
            self._take(step)
            total = self._total(read)
            if self.counter.increasing:
                lowered = float(total) - self._deviation * math.sqrt(self.counter._share(self._time))
                self._highest = total = max(self._highest, lowered)
        return self._source.label(total)

    def error(self, confidence: Exactable = 0.95) -> int | float:
        """Return an e that all totals of a run keep within of the exact ones, with this confidence."""
        far = self.counter.error(confidence)
        if not self.counter.increasing:
            return far
        # The deviations are doubles, off by less than this.
        most = self._deviation * math.sqrt(self.counter._most_share(None)) * (1 + 2**-40)
        return math.nextafter(far + most, math.inf)

    def _refuse_to_go_on(self) -> None:
        if self._process != os.getpid():
            raise Unsupported("a run goes on in the process that started it: two would release one stream")
        if self._time == self.counter.horizon:
            raise Unsupported(
                f"this stream was to have {self.counter.horizon} steps, and they are over: what was promised "
                "holds for as many. Start another run, which is another release and costs as much again"
            )

    def _take(self, step: int) -> None:
        """Complete the nodes that end here, from below: all levels up to the lowest bit of the time."""
        last = _lowest_bit(self._time)
        if last == len(self._sums):
            self._sums.append(0)
            self._nodes.append(0)
        total, refined = step, 0
        for level in range(last + 1):
            if self.counter.consistent:
                refined += (total + self._draw()) << level
                total, refined = self._joined(level, last, total, refined)
            elif level < last:
                total += self._sums[level]
        self._sums[last] = total
        self._nodes[last] = refined if self.counter.consistent else total + self._draw()

    def _joined(self, level: int, last: int, total: int, refined: int) -> tuple[int, int]:
        """Add the sibling on the left, where there is one: its sum, and its refined sum as numerators."""
        if level == last:
            return total, refined
        return total + self._sums[level], refined + self._nodes[level]

    def _draw(self) -> int:
        return int(draw(self._noise, None, self._source))

    def _total(self, read: Answers) -> Any:
        levels = list(_levels(self._time))
        if not self.counter.consistent:
            noisy = np.array(sum(self._nodes[level] for level in levels), object)
            return from_steps(noisy, self.counter._step, read)
        total = 0.0
        for level in levels:
            total += float(self._nodes[level]) / float(2 ** (level + 1) - 1)
        return self.counter._out(total)

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a run is not copied or pickled: two copies would release one stream twice")

    def __repr__(self) -> str:
        return f"<CounterRun at step {self._time} of {self.counter.horizon}>"


def draw(noise: Noise, count: int | None, source: Source) -> Any:
    """Draw independent noise on the integers: an array, or one int."""
    if isinstance(noise, Laplace):
        return discrete_laplace(noise.scale, count, source=source)
    return discrete_gaussian(noise.variance, count, source=source)


# --- the tree -----------------------------------------------------------------------------------------


def tree_sensitivity(horizon: int, moved: int, steps: int, neighbours: Neighbours) -> Sensitivity:
    """Return how far all nodes move where up to `steps` steps change, each by at most `moved`.

    Claim: exact. A level has horizon >> level complete nodes of 2**level steps. Its movements are largest, in
    each norm, where the steps that change fill its first nodes one by one, and the first ones do so on every
    level at once (docs/proofs/stream.md).
    """
    count, l1, squares = min(steps, horizon), 0, 0
    for level in range(horizon.bit_length()):
        nodes = horizon >> level
        full, rest = divmod(min(count, nodes << level), 1 << level)
        l1 += (full << level) + rest
        squares += (full << 2 * level) + rest**2
    return Sensitivity(
        l1=moved * l1,
        l2_squared=moved**2 * squares,
        linf=moved * min(count, 1 << horizon.bit_length() - 1),
        size=2 * horizon - horizon.bit_count(),
        whole=True,
        neighbours=neighbours,
    )


def _levels(time: int) -> Iterator[int]:
    """Yield the levels of the nodes of a total, highest first: the bits of the time."""
    return (level for level in range(time.bit_length() - 1, -1, -1) if time >> level & 1)


def _lowest_bit(time: int) -> int:
    return (time & -time).bit_length() - 1


def _kept(level: int) -> Fraction:
    """Return the variance of a refined node, in variances of one that is not.

    Claim: a node combined with the sum of its two refined halves, each weighted by the other's variance, has
    1 / (1 + 1 / (2 v)) where these have v; from 1 at the bottom that is 2**level / (2**(level + 1) - 1).
    """
    return Fraction(2**level, 2 ** (level + 1) - 1)


def _fullest(horizon: int) -> list[int]:
    """Return times up to the horizon of which one has the largest sum over its bits, whatever each counts."""
    ends = (horizon >> level << level for level in _levels(horizon))
    return [horizon, *(end - 1 for end in ends if end > 1)]


def _node_counts(horizon: int) -> dict[int, int]:
    """Return how many times from 1 to the horizon have each number of bits."""
    counts: dict[int, int] = {horizon.bit_count(): 1}
    for before, level in enumerate(_levels(horizon)):
        for bits in range(level + 1):
            counts[before + bits] = counts.get(before + bits, 0) + math.comb(level, bits)
    counts[0] -= 1
    return {bits: times for bits, times in counts.items() if times}


def _over_times(horizon: int, factors: list[Any]) -> Any:
    """Sum over the times from 1 to the horizon of the product of the factors of their bits."""
    total, before, below = -1, 1, [1]
    for factor in factors[: horizon.bit_length()]:
        below.append(below[-1] * (1 + factor))
    for level in _levels(horizon):
        total += before * below[level]
        before *= factors[level]
    return total + before


# --- sums of noise ------------------------------------------------------------------------------------


def laplace_sum_tail(m: int, k: int, q: arb) -> arb:
    """Return Pr(|X_1 + ... + X_k| >= m) for P(x) proportional to q**|x|, exactly.

    Claim: Pr(sum >= m) = q**m times the sum over s < k of C(m - 1 + s, s) (1 - q)**s (h_0 + ... +
    h_(k-1-s)), for m > 0, where h_l (1 + q)**(k + l) is the sum over r of C(k, r) C(l - 1, r - 1) q**(2 r),
    and 1 for l = 0 (docs/proofs/stream.md).
    """
    if m <= 0:
        return arb(1)
    square, shrink = q * q, 1 / (1 + q)
    h = [shrink**k]
    for left in range(1, k):
        terms = (math.comb(k, r) * math.comb(left - 1, r - 1) * square**r for r in range(1, left + 1))
        h.append(h[-1] + sum(terms, arb(0)) * shrink ** (k + left))
    total = sum((math.comb(m - 1 + s, s) * (1 - q) ** s * h[k - 1 - s] for s in range(k)), arb(0))
    return 2 * q**m * total


def gaussian_sum_tail(m: int, k: int, variance: Fraction) -> arb:
    """Bound Pr(|X_1 + ... + X_k| >= m) for discrete Gaussian noise.

    Claim: it is at most 2 exp(-m**2 / (2 k variance)), and at most the tail of one of k times the variance,
    times (1 + eta) / (1 - eta) for each addition, where eta is what the sum over a shifted lattice differs
    by from its integral (docs/proofs/stream.md). The smaller of the two.
    """
    if m <= 0:
        return arb(1)
    rough = 2 * (-ball(Fraction(m * m) / (2 * k * variance))).exp()
    tail = 2 * gaussian_mass_from(m, k * variance)
    for i in range(2, k + 1):
        first = (-2 * arb.pi() ** 2 * ball(variance * (i - 1) / i)).exp()
        eta = 2 * first / (1 - first)
        if not eta < 1:
            return rough
        tail *= (1 + eta) / (1 - eta)
    return tail if tail < rough else rough


# --- arrays -------------------------------------------------------------------------------------------


def _prefixes(steps: NDArray[Any]) -> NDArray[Any]:
    """Return 0 and the running totals, as integers that cannot overflow."""
    sums = np.zeros(len(steps) + 1, _sums_dtype(steps, len(steps)))
    np.cumsum(steps, out=sums[1:], dtype=sums.dtype)
    return sums


def _sums_dtype(values: NDArray[Any], count: int) -> Any:
    """Return int64 where sums of this many values fit it, or else Python's integers."""
    if values.dtype != np.int64:
        return object
    return np.int64 if max(int(values.max()), -int(values.min())) * count < _HALF else object


def isotonic(values: Reals) -> Reals:
    """Return the nondecreasing sequence nearest to the values, by pooling adjacent violators.

    Claim: it is no further than they from any nondecreasing sequence, at its worst place. Whole falling runs
    are pooled at a time, and what is left after many rounds block by block.
    """
    sums, counts = values.astype(np.float64), np.ones(len(values), np.int64)
    for _ in range(_ROUNDS):
        means = sums / counts
        rises = np.concatenate([[True], means[1:] >= means[:-1]])
        if rises.all():
            return np.repeat(means, counts)
        starts = np.flatnonzero(rises)
        sums, counts = np.add.reduceat(sums, starts), np.add.reduceat(counts, starts)
    blocks: list[tuple[float, int]] = []
    for total, count in zip(sums.tolist(), counts.tolist(), strict=True):
        while blocks and blocks[-1][0] * count > total * blocks[-1][1]:
            before, more = blocks.pop()
            total, count = total + before, count + more
        blocks.append((total, count))
    pooled, sizes = zip(*blocks, strict=True)
    return np.repeat(np.maximum.accumulate(np.array(pooled) / np.array(sizes)), sizes)


def _flag(value: bool, name: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be True or False, not {value!r}")
    return value


def _kind(noise: Any) -> type[Laplace] | type[Gaussian]:
    if noise is Laplace:
        return Laplace
    if noise is Gaussian:
        return Gaussian
    raise InvalidInput(f"noise must be the class Laplace or Gaussian, not {noise!r}")


def _width(noise: Noise) -> Fraction:
    return noise.scale if isinstance(noise, Laplace) else noise.variance
