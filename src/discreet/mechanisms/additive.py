"""What Laplace and Gaussian noise share: integer noise on a public grid, its size, and its choice.

Answers are rounded to whole multiples of `grid`, exact integer noise is added to the multiples, and the sum
is multiplied out again. With `grid=None` the answers are integers, by their types, and nothing is rounded.
With a grid they are real, and the claim covers what rounding does: see `steps_moved`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from flint import arb

from discreet.errors import InvalidInput, Unsupported
from discreet.mechanisms.answers import add, from_step, from_steps, read_answers, round_to_step, to_steps
from discreet.mechanisms.search import greatest, least, least_whole
from discreet.mechanisms.sensitivity import Sensitivity
from discreet.mechanisms.tails import IntegerLaw
from discreet.noise import SYSTEM, Source
from discreet.noise.blocks import BlockSampler
from discreet.noise.source import checked
from discreet.numbers import Exactable, exact, nonnegative, positive, probability, short_text, whole
from discreet.privacy import GDP, ZCDP, ApproxDP, Bounds, Guarantee, Neighbours, PrivacyLoss, PureDP
from discreet.privacy.reals import Inexact, ball, certainly, enclose

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["AdditiveNoise", "Bound", "Norm", "Sensitive", "fits", "guarantee_asked", "read_guarantee"]

Norm = Literal["linf", "l1"]
Bound = Literal["exact", "union"]
Sensitive = Exactable | Sensitivity

# A grid that nobody chose is this fine a part of the sensitivity: 2**-20.
_FINE_BITS = 20


class AdditiveNoise(ABC):
    """Noise on a grid or the integers, for `size` answers at once (None: any number of integers)."""

    grid: Fraction | None
    size: int | None

    # --- what a subclass says ------------------------------------------------------------------------

    @property
    @abstractmethod
    def _law(self) -> IntegerLaw:
        """The law of the noise, in steps of the grid."""

    @abstractmethod
    def _make_sampler(self) -> BlockSampler:
        """Return what draws the noise, in steps of the grid."""

    @abstractmethod
    def loss(self, sensitivity: Sensitive = 1, *, neighbours: Neighbours | str | None = None) -> PrivacyLoss:
        """Return the privacy loss of a release whose answers have this sensitivity."""

    # --- release -------------------------------------------------------------------------------------

    def release(self, answers: Any, *, source: Source = SYSTEM) -> Any:
        """Return the answers with noise: of the shape that came in, ints on the integers, else floats.

        Claim: what is returned is a function of the answers' types and shape, and of (multiples of the grid
        nearest to the answers) + independent exact noise; so every figure of `loss` holds for it. A single
        Fraction or Decimal on a grid comes back as a Fraction.
        """
        if type(answers) is int and self.grid is None:
            return checked(source).label(answers + self._sampler.draw(source))
        if type(answers) is float and self.grid is not None and math.isfinite(answers):
            noisy_step = round_to_step(answers, self.grid) + self._sampler.draw(checked(source))
            return source.label(from_step(noisy_step, self.grid))
        read = read_answers(answers)
        self._check_size(read.values.size, whole=read.whole)
        steps = to_steps(read, self._step)
        noisy = add(steps, np.asarray(self._draw(steps.shape, checked(source))))
        return source.label(from_steps(noisy, self._step, read))

    def _draw(self, shape: tuple[int, ...], source: Source) -> Any:
        """Draw noise, in steps of the grid: an int, or an array of this shape."""
        if shape == ():
            return self._sampler.draw(source)
        return self._sampler.fill(math.prod(shape), source).reshape(shape)

    @cached_property
    def _sampler(self) -> BlockSampler:
        return self._make_sampler()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_sampler"}

    def together(self, size: int) -> Self:
        """Return the same noise for this many answers at once: what they cost together is `loss` of that."""
        return self._with(self._width, self.grid, size)

    def _check_size(self, count: int, *, whole: bool) -> None:
        name = type(self).__name__
        if self.grid is None and not whole:
            raise InvalidInput(
                f"this noise is for whole answers, and others are here: choose {name} noise for real ones, "
                f"such as {name}.calibrate(..., grid=0.01), which counts what rounding to the grid costs"
            )
        size = 1 if self.size is None and self.grid is not None else self.size
        if size is not None and count > size:
            raise InvalidInput(
                f"this noise is for {size} answer{'s' * (size > 1)} released together, and here are {count}: "
                f"say how many when choosing it, {name}.calibrate(..., size={count})"
            )

    # --- how large the noise is ----------------------------------------------------------------------

    def tail_bounds(
        self, t: Exactable, *, size: int = 1, norm: Norm = "linf", bound: Bound = "exact"
    ) -> Bounds:
        """Bound Pr(norm of the noise >= t); see `tail`."""
        steps = math.ceil(nonnegative(t, "t") / self._step)
        return _as_chance(enclose(lambda: self._tail(steps, _size(size), norm, bound)))

    def tail(self, t: Exactable, *, size: int = 1, norm: Norm = "linf", bound: Bound = "exact") -> float:
        """Return the chance that the noise of `size` answers reaches t, rounded up.

        `size` is how many are looked at together, whatever the mechanism's own size: 1 unless it is said. In
        `norm`: the largest of their noises ("linf"), or the sum of their sizes ("l1"). `bound="union"` is
        the textbook's: the size of one, at t for the largest and at t/size for the sum, times their number.
        The chance is about the noise: rounding may have moved a real answer by half a step besides.
        """
        return self.tail_bounds(t, size=size, norm=norm, bound=bound).upper

    def error(
        self,
        confidence: Exactable = 0.95,
        *,
        size: int = 1,
        norm: Norm = "linf",
        bound: Bound = "exact",
    ) -> int | float:
        """Return half the width of an interval around a release: how far off it is, with this confidence.

        Of one answer, or in a norm of `size` of them. It is the least e with Pr(norm of the noise <= e) >=
        confidence; and for real answers half a grid step more, by which rounding may have moved each. An int
        on the integers, else a float, rounded up. It is about multiples of the grid: where a float cannot
        hold one, writing it as a float moves it a little more.
        """
        sure = probability(confidence, "confidence")
        if sure == 1:
            raise InvalidInput("noise has no end: ask for a confidence below 1, such as 0.999999")
        steps = self._least_error(1 - sure, _size(size), norm, bound)
        if self.grid is None:
            return steps
        rounding = self._step / 2 * (size if norm == "l1" else 1)
        return enclose(lambda: steps * self._step + rounding).upper

    def _least_error(self, failure: Fraction, size: int, norm: Norm, bound: Bound) -> int:
        return least_whole(lambda m: self._fails_at_most(m + 1, failure, size, norm, bound))

    def expected_error(self) -> float:
        """Return E|noise| for one answer, rounded up; for the l1 norm of several, times their number."""
        return enclose(lambda: self._law.mean_size() * ball(self._step)).upper

    def chance(self, steps: int) -> float:
        """Return the chance that the noise is exactly this many steps of the grid, rounded up."""
        at = abs(whole(steps, "steps", least=-(1 << 62)))
        return enclose(lambda: (self._law.tail(at) - self._law.tail(at + 1)) / (2 if at else 1)).upper

    def plot(self, *, confidence: Exactable = 0.95, sensitivity: Sensitive = 1, size: int = 1) -> Figure:
        """Draw the noise with its error band, beside the same on a neighbour this far away, and its tail.

        The band and the tail are those of the largest of `size` noises.
        """
        from discreet.mechanisms.picture import draw_noise

        moved = (
            sensitivity.linf if isinstance(sensitivity, Sensitivity) else positive(sensitivity, "sensitivity")
        )
        return draw_noise(self, confidence, float(moved), _size(size))

    @property
    def _step(self) -> Fraction:
        return Fraction(1) if self.grid is None else self.grid

    def _tail(self, m: int, size: int, norm: Norm, bound: Bound) -> arb:
        """Return Pr(norm >= m steps)."""
        if norm not in ("linf", "l1") or bound not in ("exact", "union"):
            raise InvalidInput(
                f"norm must be 'linf' or 'l1' and bound 'exact' or 'union', not {norm!r} and {bound!r}"
            )
        if bound == "union":
            return size * self._law.tail(-(-m // size) if norm == "l1" else m)
        return self._law.largest_tail(m, size) if norm == "linf" else self._law.sum_tail(m, size)

    def _fails_at_most(self, m: int, failure: Fraction, size: int, norm: Norm, bound: Bound) -> bool:
        """Tell whether Pr(norm >= m steps) <= failure; where that cannot be decided, no."""
        try:
            return not certainly(lambda: (self._tail(m, size, norm, bound), ball(failure)))
        except Inexact:
            return False

    # --- how it is chosen ----------------------------------------------------------------------------

    @property
    @abstractmethod
    def _width(self) -> Fraction:
        """The scale, or the variance, in the answers' own units."""

    @classmethod
    @abstractmethod
    def _with(cls, width: Fraction, grid: Fraction | None, size: int | None) -> Self:
        """Return noise of this scale, or this variance, in the answers' own units."""

    @classmethod
    def _least_width(
        cls,
        sensitivity: Sensitive,
        promise: Guarantee,
        near: Fraction,
        grid: Fraction | None,
        size: int | None,
    ) -> Self:
        """Search for the least noise whose loss keeps a promise."""

        def keeps(width: Fraction) -> bool:
            try:
                return cls._with(width, grid, size)._keeps(promise, sensitivity)
            except Unsupported:
                return False

        return cls._with(least(keeps, near), grid, size)

    def _keeps(self, promise: Guarantee, sensitivity: Sensitive) -> bool:
        """Tell whether the loss is known to keep a promise; where that cannot be decided, no."""
        return loss_keeps(self.loss(sensitivity), promise)

    @classmethod
    def solve(
        cls,
        *,
        error: Exactable,
        failure: Exactable,
        sensitivity: Sensitive = 1,
        size: int | None = None,
        norm: Norm = "linf",
        bound: Bound = "exact",
        grid: Exactable | None = None,
    ) -> Self:
        """Return the most private noise whose norm reaches `error` with probability at most `failure`.

        What it then costs is `.loss(sensitivity)`. With a `sensitivity` that is not whole, or a `grid`, the
        answers are real, and `size` of them are rounded.
        """
        chance, most = probability(failure, "failure"), positive(error, "error")
        if chance in (0, 1):
            raise InvalidInput(
                "failure must be above 0 and below 1: no noise never fails, and any may always"
            )
        step, together = choose_grid(sensitivity, grid, size)
        count = together or 1
        steps = math.ceil(most / (step or 1))

        def keeps(width: Fraction) -> bool:
            return cls._with(width, step, together)._fails_at_most(steps, chance, count, norm, bound)

        return cls._with(greatest(keeps, most), step, together)

    def _text(self, **figures: Fraction) -> str:
        shown = {name: short_text(value) for name, value in figures.items()}
        if self.grid is not None:
            shown["grid"] = short_text(self.grid)
        if self.size is not None:
            shown["size"] = str(self.size)
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in shown.items())})"


def read_grid(grid: Exactable | None, size: int | None) -> tuple[Fraction | None, int | None]:
    """Read the two fields that all noise has."""
    return (
        None if grid is None else positive(grid, "grid"),
        None if size is None else whole(size, "size", least=1),
    )


def choose_grid(
    sensitivity: Sensitive, grid: Exactable | None, size: int | None
) -> tuple[Fraction | None, int | None]:
    """Return the grid and size to use: the integers for whole answers, else a grid that costs little."""
    step, count = read_grid(grid, size)
    is_whole, size_known, least_norm = (
        (sensitivity.whole, sensitivity.size, sensitivity.linf)
        if isinstance(sensitivity, Sensitivity)
        else ((s := positive(sensitivity, "sensitivity")).denominator == 1, None, s)
    )
    if isinstance(sensitivity, Sensitivity) and count is not None:
        fits(count, sensitivity)
    count = size_known if count is None else count
    if step is None and not is_whole:
        step = least_norm / 2 ** (_FINE_BITS + ((count or 1) - 1).bit_length())
    return step, count


def fits(size: int | None, sensitivity: Sensitive) -> None:
    """Refuse noise for more answers than a sensitivity is about."""
    if isinstance(sensitivity, Sensitivity) and size is not None and size > sensitivity.size:
        raise InvalidInput(
            f"this sensitivity is that of {sensitivity.size} answers together, and not of {size}: "
            f"ask for one of so many, such as Sensitivity.counts({size})"
        )


def relation_of(sensitivity: Sensitive, neighbours: Neighbours | str | None) -> Neighbours:
    """Return the relation that a sensitivity is stated under, and refuse a second one that differs."""
    stated = sensitivity.neighbours if isinstance(sensitivity, Sensitivity) else None
    if neighbours is None:
        return stated or Neighbours("add-remove")
    asked = Neighbours.of(neighbours)
    if stated is not None and stated != asked:
        raise InvalidInput(
            f"this sensitivity is stated under {stated!r}, not under {asked!r}: "
            "ask for it under the relation that you mean"
        )
    return asked


def guarantee_asked(
    guarantee: Guarantee | None,
    epsilon: Exactable | None,
    delta: Exactable | None,
    rho: Exactable | None,
    mu: Exactable | None,
) -> Guarantee:
    """Read a promise given as one value or by its figures: exactly one of them."""
    given = [guarantee is not None, epsilon is not None, rho is not None, mu is not None]
    if sum(given) != 1 or (delta is not None and epsilon is None):
        raise InvalidInput(
            "say what to promise, once: epsilon=, epsilon= and delta=, rho=, mu=, or a guarantee"
        )
    if guarantee is not None:
        return read_guarantee(guarantee)
    if rho is not None:
        return read_guarantee(ZCDP(rho))
    if mu is not None:
        return read_guarantee(GDP(mu))
    assert epsilon is not None
    if delta is None:
        return read_guarantee(PureDP(epsilon))
    promise = ApproxDP(epsilon, delta)
    return read_guarantee(promise if promise.delta else PureDP(epsilon))


def read_guarantee(guarantee: Guarantee) -> Guarantee:
    """Refuse what is no promise, and one that leaves nothing to spend."""
    if not isinstance(guarantee, Guarantee):
        raise InvalidInput(
            f"a promise is PureDP, ApproxDP, ZCDP or GDP, not {guarantee!r}; name a number, as in epsilon=1"
        )
    if not guarantee.figures()[0]:
        name = type(guarantee).__name__
        raise InvalidInput(f"{name} of 0 allows no release at all: its first figure must be above 0")
    return guarantee


def loss_keeps(loss: PrivacyLoss, promise: Guarantee) -> bool:
    """Tell whether a loss is known to keep a promise; where that cannot be decided, no."""
    if isinstance(promise, ApproxDP):
        return loss.satisfies(promise.epsilon, promise.delta)
    if isinstance(promise, ZCDP):
        return _at_most(loss.rho, promise.rho)
    if isinstance(promise, PureDP):
        return _at_most(loss.max_divergence, promise.epsilon)
    return math.isfinite(loss.max_divergence) and PureDP(loss.max_divergence) <= promise


def _at_most(figure: float, most: Fraction) -> bool:
    return math.isfinite(figure) and exact(figure, "figure") <= most


def _size(size: int) -> int:
    return whole(size, "size", least=1)


def _as_chance(bounds: Bounds) -> Bounds:
    return Bounds(max(0.0, bounds.lower), min(1.0, max(0.0, bounds.upper)))
