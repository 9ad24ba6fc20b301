"""Laplace noise.

>>> m = Laplace.calibrate(epsilon=0.1, sensitivity=1)
>>> m, m.loss(1).max_divergence, m.error(confidence=0.95)
(Laplace(scale=10), 0.1, 30)
>>> Laplace.solve(sensitivity=1, error=10, failure=1e-5).loss(1).max_divergence   # +- 10 but once in 100,000
1.1941431406062084
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from discreet.errors import InvalidInput
from discreet.mechanisms.additive import (
    AdditiveNoise,
    Sensitive,
    choose_grid,
    fits,
    guarantee_asked,
    read_grid,
    relation_of,
)
from discreet.mechanisms.sensitivity import Sensitivity
from discreet.mechanisms.tails import DiscreteLaplaceLaw
from discreet.noise.blocks import BlockSampler
from discreet.noise.laws import laplace_sampler
from discreet.numbers import Exactable, positive
from discreet.privacy import ApproxDP, Guarantee, Neighbours, PrivacyLoss, PureDP

__all__ = ["Laplace"]


@dataclass(frozen=True, repr=False)
class Laplace(AdditiveNoise):
    """Adds integer noise with P(x) proportional to exp(-|x| grid / scale), times the grid.

    Claim: if between neighbours the answers differ by at most `sensitivity` in l1, a release has exactly
    `loss(sensitivity)` at worst, and pure epsilon = steps_moved(sensitivity) * grid / scale.
    """

    scale: Fraction
    grid: Fraction | None = None
    size: int | None = None

    def __init__(self, scale: Exactable, *, grid: Exactable | None = None, size: int | None = None) -> None:
        object.__setattr__(self, "scale", positive(scale, "scale"))
        for name, value in zip(("grid", "size"), read_grid(grid, size), strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def calibrate(
        cls,
        guarantee: Guarantee | None = None,
        *,
        epsilon: Exactable | None = None,
        delta: Exactable | None = None,
        rho: Exactable | None = None,
        mu: Exactable | None = None,
        sensitivity: Sensitive = 1,
        grid: Exactable | None = None,
        size: int | None = None,
    ) -> Self:
        """Return the least noise that keeps a promise about answers of this sensitivity (in l1).

        The promise is `epsilon=`, `epsilon=` with `delta=`, `rho=`, `mu=`, or a guarantee. Whole answers need
        no grid; for real ones it is `grid`, or a fine one, and `size` of them are released together.
        """
        promise = guarantee_asked(guarantee, epsilon, delta, rho, mu)
        step, count = choose_grid(sensitivity, grid, size)
        epsilon_at = steps_moved(sensitivity, step, count) * (step or 1)
        if isinstance(promise, PureDP) or (isinstance(promise, ApproxDP) and not promise.delta):
            return cls(epsilon_at / promise.figures()[0], grid=step, size=count)
        return cls._least_width(sensitivity, promise, epsilon_at / promise.figures()[0], step, count)

    @classmethod
    def _with(cls, width: Fraction, grid: Fraction | None, size: int | None) -> Self:
        return cls(width, grid=grid, size=size)

    @property
    def _width(self) -> Fraction:
        return self.scale

    @property
    def _law(self) -> DiscreteLaplaceLaw:
        return DiscreteLaplaceLaw(self._step / self.scale)

    def _make_sampler(self) -> BlockSampler:
        return laplace_sampler(self.scale / self._step)

    def loss(self, sensitivity: Sensitive = 1, *, neighbours: Neighbours | str | None = None) -> PrivacyLoss:
        """Return the loss of a release whose answers move by at most `sensitivity` in l1.

        Claim: exact for one answer; for several it is that of one answer that moves as far as all together,
        which no division of the movement among them exceeds (docs/proofs/laplace.md).
        """
        steps = self._moved(sensitivity)
        return PrivacyLoss.discrete_laplace(
            scale=self.scale / self._step, sensitivity=steps, neighbours=relation_of(sensitivity, neighbours)
        )

    def guarantee(self, sensitivity: Sensitive = 1) -> PureDP:
        """Return the pure promise, exactly."""
        return PureDP(self._moved(sensitivity) * self._step / self.scale)

    def _moved(self, sensitivity: Sensitive) -> int:
        fits(self.size, sensitivity)
        return steps_moved(sensitivity, self.grid, self.size)

    def __repr__(self) -> str:
        return self._text(scale=self.scale)


def steps_moved(sensitivity: Sensitive, grid: Fraction | None, size: int | None) -> int:
    """Return how many steps of the grid all answers together can move, once they are rounded to it.

    Claim: integers move by at most floor(l1). Real answers that differ by at most l1 + grid, so that a
    float's own rounding is covered, move by at most ceil(l1 / grid) + size steps: each is rounded to
    floor(x + 1/2), which turns a distance d into at most ceil(d), and the ceilings of size numbers exceed
    their sum by less than size.
    """
    l1 = sensitivity.l1 if isinstance(sensitivity, Sensitivity) else positive(sensitivity, "sensitivity")
    if grid is not None:
        return math.ceil(l1 / grid) + (1 if size is None else size)
    if isinstance(sensitivity, Sensitivity) and not sensitivity.whole:
        raise InvalidInput(
            "these answers are real: choose noise with a grid=, which counts what rounding costs"
        )
    if l1 < 1:
        raise InvalidInput(
            f"whole answers that move at all move by 1 or more, and the sensitivity is {sensitivity}: "
            "choose noise with a grid= for real answers"
        )
    return math.floor(l1)
