"""Gaussian noise.

>>> m = Gaussian.calibrate(rho=0.5, sensitivity=3)
>>> m, m.guarantee(3), m.error(confidence=0.95)
(Gaussian(variance=9), ZCDP(rho=0.5), 6)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from flint import arb

from discreet.errors import InvalidInput, Unsupported
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
from discreet.mechanisms.tails import DiscreteGaussianLaw
from discreet.noise.blocks import BlockSampler
from discreet.noise.laws import gaussian_sampler
from discreet.numbers import Exactable, exact, positive
from discreet.privacy import GDP, ZCDP, ApproxDP, Guarantee, Neighbours, PrivacyLoss, PureDP
from discreet.privacy.reals import ball, enclose, precision

__all__ = ["Gaussian"]

_GUESS_BITS = 64
# Variances, in steps, that may be taken from the noise to smooth the rest: see `gaussian_promise`.
_SMOOTHINGS = tuple(Fraction(r, 8) for r in (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64))


@dataclass(frozen=True, repr=False)
class Gaussian(AdditiveNoise):
    """Adds integer noise with P(x) proportional to exp(-(x grid)**2 / (2 variance)), times the grid.

    Claim: if between neighbours the answers differ by at most `sensitivity` in l2, a release keeps
    `guarantee(sensitivity)`, in zero-concentrated terms, and has `loss(sensitivity)` at worst.
    """

    variance: Fraction
    grid: Fraction | None = None
    size: int | None = None

    def __init__(
        self,
        variance: Exactable | None = None,
        *,
        sigma: Exactable | None = None,
        grid: Exactable | None = None,
        size: int | None = None,
    ) -> None:
        if (variance is None) == (sigma is None):
            raise InvalidInput("give exactly one of variance= and sigma=, its square root")
        square = positive(variance, "variance") if variance is not None else positive(sigma, "sigma") ** 2  # type: ignore[arg-type]
        object.__setattr__(self, "variance", square)
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
        """Return the least noise that keeps a promise about answers of this sensitivity (in l2).

        The promise is `epsilon=` with `delta=`, `rho=`, `mu=`, or a guarantee; a pure epsilon is refused.
        For rho it is exact: variance = l2**2 / (2 rho).
        """
        promise = guarantee_asked(guarantee, epsilon, delta, rho, mu)
        step, count = choose_grid(sensitivity, grid, size)
        if isinstance(promise, PureDP) or (isinstance(promise, ApproxDP) and not promise.delta):
            raise Unsupported(
                "Gaussian noise allows losses of any size, so no pure epsilon holds: "
                "add delta=, such as 1e-6, or choose Laplace noise"
            )
        square = squared_steps(sensitivity, step, count) * (step or 1) ** 2
        if isinstance(promise, ZCDP):
            return cls(square / (2 * promise.rho), grid=step, size=count)
        if isinstance(promise, ApproxDP):
            near = square * _reach(promise.delta) / max(promise.epsilon, Fraction(1, 1000)) ** 2
        else:
            near = square / promise.figures()[0] ** 2
        return cls._least_width(sensitivity, promise, near, step, count)

    @classmethod
    def _with(cls, width: Fraction, grid: Fraction | None, size: int | None) -> Self:
        return cls(width, grid=grid, size=size)

    @property
    def _width(self) -> Fraction:
        return self.variance

    @property
    def sigma(self) -> float:
        """The square root of the variance, rounded up."""
        return enclose(lambda: ball(self.variance).sqrt()).upper

    @property
    def _law(self) -> DiscreteGaussianLaw:
        return DiscreteGaussianLaw(self.variance / self._step**2)

    def _make_sampler(self) -> BlockSampler:
        return gaussian_sampler(self.variance / self._step**2)

    def loss(self, sensitivity: Sensitive = 1, *, neighbours: Neighbours | str | None = None) -> PrivacyLoss:
        """Return the loss of a release whose answers move by at most `sensitivity` in l2.

        Claim: for one answer, and for whole answers of which only one moves, by 1, it is exact. For several
        it is the loss of `gaussian_promise`: no smaller, and little larger for noise of several steps.
        """
        square = self._moved(sensitivity)
        relation = relation_of(sensitivity, neighbours)
        variance = self._law.variance
        if self._moves_one(square):
            return PrivacyLoss.discrete_gaussian(
                variance=variance, sensitivity=math.isqrt(math.floor(square)), neighbours=relation
            )
        promise = gaussian_promise(variance, square, self._most_moved(square))
        return PrivacyLoss.gaussian(sigma=1 / promise.mu, neighbours=relation)

    def guarantee(self, sensitivity: Sensitive = 1) -> ZCDP:
        """Return the zero-concentrated promise, exactly: l2**2 / (2 variance)."""
        return ZCDP(self._moved(sensitivity) / (2 * self._law.variance))

    def _moved(self, sensitivity: Sensitive) -> Fraction:
        fits(self.size, sensitivity)
        return squared_steps(sensitivity, self.grid, self.size)

    def _keeps(self, promise: Guarantee, sensitivity: Sensitive) -> bool:
        if not isinstance(promise, GDP):
            return super()._keeps(promise, sensitivity)
        square = squared_steps(sensitivity, self.grid, self.size)
        return gaussian_promise(self._law.variance, square, self._most_moved(square)).mu <= promise.mu

    def _moves_one(self, square: Fraction) -> bool:
        alone = self.size == 1 or (self.grid is not None and self.size is None)
        return alone or (self.grid is None and square < 2)

    def _most_moved(self, square: Fraction) -> int:
        """Return how many answers can move at once: each by a whole step at least."""
        most = math.floor(square)
        size = 1 if self.size is None and self.grid is not None else self.size
        return most if size is None else min(most, size)

    def __repr__(self) -> str:
        return self._text(variance=self.variance)


def squared_steps(sensitivity: Sensitive, grid: Fraction | None, size: int | None) -> Fraction:
    """Return the most that the squared l2 distance of the rounded answers can be, in squared steps.

    Claim: integers move by at most floor(l2**2), squared. Real answers that differ by at most l2 + grid, so
    that a float's own rounding is covered, move by less than l2 / grid + 1 + sqrt(size) steps: rounding each
    to floor(x + 1/2) moves their distance by less than 1 in each coordinate. A single one, by at most
    ceil(l2 / grid) + 1.
    """
    square = (
        sensitivity.l2_squared
        if isinstance(sensitivity, Sensitivity)
        else positive(sensitivity, "sensitivity") ** 2
    )
    if grid is not None:
        moved = square / grid**2
        if size is None or size == 1:
            return Fraction((_root_above(moved) + 1) ** 2)
        return (_root(moved) + 1 + _root(Fraction(size))) ** 2
    if isinstance(sensitivity, Sensitivity) and not sensitivity.whole:
        raise InvalidInput(
            "these answers are real: choose noise with a grid=, which counts what rounding costs"
        )
    if square < 1:
        raise InvalidInput(
            f"whole answers that move at all move by 1 or more, and the sensitivity is {sensitivity}: "
            "choose noise with a grid= for real answers"
        )
    return Fraction(math.floor(square))


def gaussian_promise(variance: Fraction, square: Fraction, moved: int) -> GDP:
    """Return a Gaussian promise of discrete Gaussian noise on answers that move by sqrt(square) in l2.

    Claim: for every r**2 < variance, noise on `moved` integers is mu-GDP with

        mu = sqrt(square / (variance - r**2)) + 12 moved artanh(eta),
        eta = 2 (e**(-2 (pi r)**2) + e**(-2 (2 pi r)**2) + ...),

    because but for a factor of ((1 + eta) / (1 - eta))**moved it is continuous Gaussian noise of variance
    variance - r**2 with every answer rounded at random. The best of a few r is taken, rounded up. Proof:
    docs/proofs/gaussian.md.
    """
    # As many answers as there are atoms want a little more smoothing: e**(-2 pi**2 r**2) times them is small.
    wide = Fraction(moved.bit_length() // 27 + 8)
    possible = [r for r in (*_SMOOTHINGS, wide) if r < variance]
    if not possible:
        raise Unsupported(
            "noise this narrow has no certified loss here, for any number of answers at once, but "
            ".guarantee(...), in zero-concentrated terms: .guarantee(...).to(ApproxDP, delta=...). Say "
            "size=1 if there is a single answer, or choose a finer grid"
        )
    with precision(_GUESS_BITS):
        best = min(possible, key=lambda r: float(_promised_mu(variance, square, moved, r).mid()))
    return GDP(exact(enclose(lambda: _promised_mu(variance, square, moved, best)).upper, "mu"))


def _promised_mu(variance: Fraction, square: Fraction, moved: int, smoothing: Fraction) -> arb:
    first = (-2 * arb.pi() ** 2 * ball(smoothing)).exp()
    # The terms e**(-2 (pi r j)**2) fall faster than first**j.
    eta = 2 * first / (1 - first)
    return (ball(square) / ball(variance - smoothing)).sqrt() + 12 * moved * eta.atanh()


def _root(square: Fraction) -> Fraction:
    """Return a short rational not below the square root, and within 2**-40 of it, relatively."""
    shift = 2 * max(0, 48 - (square.numerator.bit_length() - square.denominator.bit_length()) // 2)
    scaled = -((-square.numerator << shift) // square.denominator)
    return Fraction(_ceil_root(scaled), 1 << shift // 2)


def _root_above(square: Fraction) -> int:
    """Return the square root, rounded up to an integer."""
    return _ceil_root(math.ceil(square))


def _ceil_root(number: int) -> int:
    return math.isqrt(number - 1) + 1 if number else 0


def _reach(delta: Fraction) -> int:
    """Return about 2 ln(1/delta), to begin a search."""
    return 2 + (delta.denominator // delta.numerator).bit_length()
