"""What mpmath says, at 80 digits, about pairs of distributions written down here from their definitions.

`disagreements` compares a PrivacyLoss with such a truth figure by figure. It returns sentences rather than
failing, so that planted bugs can be shown to be caught by it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from mpmath import inf, mp, mpf

from discreet.privacy.loss import PrivacyLoss
from discreet.privacy.reals import Bounds

__all__ = [
    "TINY",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "F",
    "Finite",
    "Gaussian",
    "Laplace",
    "Truth",
    "disagreements",
    "encloses",
    "is_tight",
    "mp",
    "mpf",
    "neyman_pearson",
    "promise",
    "readings",
    "real",
]

mp.dps = 90
TINY = mpf(10) ** -80
NOTHING = Fraction(0)
F = Fraction

# Two certified ends are at most this many units in the last place apart.
ULPS = 6


def real(x: Fraction | float | int) -> mpf:
    x = Fraction(x)
    return mpf(x.numerator) / x.denominator


def readings(x: float) -> tuple[mpf, mpf]:
    """The two meanings of a float: its binary value, and the shortest decimal that it is written as."""
    return (mpf(x), mpf(x)) if math.isinf(x) else (real(x), real(Fraction(repr(x))))


def encloses(bounds: Bounds, truth: mpf) -> bool:
    """Whether both readings of both ends are on the right sides, or the figure is that very decimal."""
    if bounds.lower == bounds.upper:
        return bool(truth == bounds.lower or abs(readings(bounds.lower)[1] - truth) <= TINY * abs(truth))
    return all(x <= truth * (1 + TINY) for x in readings(bounds.lower)) and all(
        x >= truth * (1 - TINY) for x in readings(bounds.upper)
    )


def is_tight(bounds: Bounds, ulps: int = ULPS) -> bool:
    if bounds.lower == bounds.upper:
        return True
    return bounds.upper - bounds.lower <= ulps * max(math.ulp(bounds.upper), 5e-324)


class Truth(ABC):
    """One direction of a pair: P against Q."""

    @abstractmethod
    def above(self, epsilon: Fraction) -> tuple[mpf, mpf]:
        """P(L > epsilon) and Q(L > epsilon)."""

    @abstractmethod
    def moment(self, alpha: Fraction) -> mpf:
        """E_Q[(P/Q)**alpha]."""

    @abstractmethod
    def kl(self) -> mpf: ...

    def delta(self, epsilon: Fraction) -> mpf:
        with mp.workdps(mp.dps + max(0, int(abs(epsilon)))):
            p, q = self.above(epsilon)
            return p - mp.exp(real(epsilon)) * q

    def renyi(self, alpha: Fraction) -> mpf:
        with mp.workdps(mp.dps + 15):
            return mp.log(self.moment(alpha)) / real(alpha - 1)


@dataclass
class Laplace(Truth):
    """Density exp(-|x|)/2 against the same around `apart`, integrated piece by piece."""

    apart: Fraction

    def above(self, epsilon: Fraction) -> tuple[mpf, mpf]:
        e = real(self.apart)
        if epsilon >= self.apart:
            return mpf(0), mpf(0)
        # |x - e| - |x| > epsilon up to this x.
        last = inf if epsilon < -self.apart else (e - real(epsilon)) / 2
        return self._cdf(last), self._cdf(last - e)

    @staticmethod
    def _cdf(x: mpf) -> mpf:
        return mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2

    def _mean(self, f: Callable[[mpf], mpf]) -> mpf:
        """Integrate f(loss) under P."""
        e = real(self.apart)
        between = mp.quad(lambda x: mp.exp(-x) / 2 * f(e - 2 * x), mp.linspace(0, e, 2 + int(e)))
        return f(e) / 2 + between + f(-e) * mp.exp(-e) / 2

    def moment(self, alpha: Fraction) -> mpf:
        return self._mean(lambda loss: mp.exp((real(alpha) - 1) * loss))

    def kl(self) -> mpf:
        return self._mean(lambda loss: loss)


@dataclass
class Gaussian(Truth):
    """Normal laws of deviation `sigma` and means 0 and `apart`; L = (apart**2 - 2 apart x) / (2 sigma**2)."""

    sigma: Fraction
    apart: Fraction = Fraction(1)

    def above(self, epsilon: Fraction) -> tuple[mpf, mpf]:
        s, d = real(self.sigma), real(self.apart)
        last = (d * d - 2 * s * s * real(epsilon)) / (2 * d)
        return self._cdf(last / s), self._cdf((last - d) / s)

    @staticmethod
    def _cdf(x: mpf) -> mpf:
        return mp.erfc(-x / mp.sqrt(2)) / 2

    def _mean(self, f: Callable[[mpf], mpf], around: mpf) -> mpf:
        s, d = real(self.sigma), real(self.apart)

        def density(x: mpf) -> mpf:
            return mp.exp(-x * x / (2 * s * s)) / (s * mp.sqrt(2 * mp.pi))

        return mp.quad(
            lambda x: density(x) * f((d * d - 2 * d * x) / (2 * s * s)),
            [around + s * i for i in range(-22, 23, 4)],
        )

    def moment(self, alpha: Fraction) -> mpf:
        a = real(alpha)
        return self._mean(lambda loss: mp.exp((a - 1) * loss), (1 - a) * real(self.apart))

    def kl(self) -> mpf:
        return self._mean(lambda loss: loss, mpf(0))


_TOTALS: dict[tuple[str, int], mpf] = {}


class Lattice(Truth):
    """A law on the integers, decreasing and symmetric about 0, against itself moved by `shift`."""

    shift: int

    @abstractmethod
    def loss(self, x: int) -> Fraction:
        """ln P(x)/Q(x), which is rational and never rises with x."""

    @abstractmethod
    def weight(self, x: int) -> mpf: ...

    def _down(self, start: int, weight: Callable[[int], mpf]) -> mpf:
        """Sum over start, start - 1, ... of a weight that falls at least geometrically in the end."""
        total, x = mpf(0), start
        while True:
            term = weight(x)
            total += term
            if x < 0 and term < total * mpf(10) ** -(mp.dps + 5):
                return total
            x -= 1

    def _total(self) -> mpf:
        key = (repr(self), mp.prec)
        if key not in _TOTALS:
            _TOTALS[key] = 2 * self._down(-1, self.weight) + self.weight(0)
        return _TOTALS[key]

    def _last(self, epsilon: Fraction) -> int | None:
        """The greatest x with loss above epsilon."""
        low, high = -1, 1
        while not self.loss(low) > epsilon:
            low *= 2
            if low < -(2**80):
                return None
        while self.loss(high) > epsilon:
            high *= 2
            if high > 2**80:
                return high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.loss(middle) > epsilon else (low, middle)
        return low

    def above(self, epsilon: Fraction) -> tuple[mpf, mpf]:
        last = self._last(epsilon)
        if last is None:
            return mpf(0), mpf(0)
        return self._up_to(last), self._up_to(last - self.shift)

    def _up_to(self, last: int) -> mpf:
        if last >= 0:
            return 1 - self._down(-last - 1, self.weight) / self._total()
        return self._down(last, self.weight) / self._total()

    def moment(self, alpha: Fraction) -> mpf:
        a = real(alpha)
        peak = int(abs(alpha - 1) * self.shift) + self.shift + 1

        def tilted(x: int) -> mpf:
            return self.weight(x) * mp.exp((a - 1) * real(self.loss(x)))

        middle = mp.fsum(tilted(x) for x in range(-peak, peak))
        tail = self._down(-peak - 1, tilted) + self._down(-peak - 1, lambda x: tilted(-x - 1))
        return (middle + tail) / self._total()

    def kl(self) -> mpf:
        # Under P the loss less its value at 0 is, up to level parts, odd or even: sum it pair by pair.
        first = self.weight(0) * real(self.loss(0))
        pairs, x = mpf(0), 1
        while True:
            term = self.weight(x) * real(self.loss(x) + self.loss(-x))
            pairs += term
            if self.weight(x) * (abs(real(self.loss(x))) + 1) < mpf(10) ** -(mp.dps + 5) and x > self.shift:
                return (first + pairs) / self._total()
            x += 1


@dataclass
class DiscreteLaplace(Lattice):
    scale: Fraction
    shift: int = 1

    def loss(self, x: int) -> Fraction:
        return (abs(x - self.shift) - abs(x)) / self.scale

    def weight(self, x: int) -> mpf:
        return mp.exp(-abs(x) / real(self.scale))


@dataclass
class DiscreteGaussian(Lattice):
    variance: Fraction
    shift: int = 1

    def loss(self, x: int) -> Fraction:
        return ((x - self.shift) ** 2 - x * x) / (2 * self.variance)

    def weight(self, x: int) -> mpf:
        return mp.exp(-(mpf(x) ** 2) / (2 * real(self.variance)))

    def _down(self, start: int, weight: Callable[[int], mpf]) -> mpf:
        few_terms = self.variance < 10**5 or 250 * self.variance < 10**4 * -start
        if few_terms or weight != self.weight:
            return super()._down(start, weight)
        # The midpoint rule: the integral, and for k >= 1 the B_2k(1/2) / (2k)! f^(2k-1) at the edge.
        v, edge = real(self.variance), mpf(start) + mpf(1) / 2
        integral = mp.sqrt(v * mp.pi / 2) * mp.erfc(-edge / mp.sqrt(2 * v))
        slopes = [mp.exp(-edge * edge / (2 * v)), mpf(0)]
        slopes[1] = -edge / v * slopes[0]
        while len(slopes) < 40:  # f' = -x f / v, differentiated n times
            n = len(slopes) - 1
            slopes.append(-(edge * slopes[n] + n * slopes[n - 1]) / v)
        half = mpf(1) / 2
        return integral + mp.fsum(
            mp.bernpoly(2 * k, half) / mp.factorial(2 * k) * slopes[2 * k - 1] for k in range(1, 20)
        )

    def moment(self, alpha: Fraction) -> mpf:
        if self.variance < 10**5:
            return super().moment(alpha)
        # The theta quotient is 1 to far more than 80 digits: exp(-2 pi**2 variance).
        return mp.exp(real(alpha * (alpha - 1) * self.shift**2 / (2 * self.variance)))

    def kl(self) -> mpf:
        return super().kl() if self.variance < 10**5 else real(F(self.shift**2) / (2 * self.variance))


@dataclass
class Finite(Truth):
    """Outcomes one by one. An infinite loss is left to the caller."""

    p: list[Fraction]
    q: list[Fraction]

    def above(self, epsilon: Fraction) -> tuple[mpf, mpf]:
        threshold = mp.exp(real(epsilon))
        over = [(p, q) for p, q in zip(self.p, self.q, strict=True) if real(p) > threshold * real(q)]
        return real(sum((p for p, _ in over), F(0))), real(sum((q for _, q in over), F(0)))

    def moment(self, alpha: Fraction) -> mpf:
        both = [(real(p), real(q)) for p, q in zip(self.p, self.q, strict=True) if p]
        return mp.fsum(q * (p / q) ** real(alpha) for p, q in both)

    def kl(self) -> mpf:
        both = [(real(p), real(q)) for p, q in zip(self.p, self.q, strict=True) if p]
        return mp.fsum(p * mp.log(p / q) for p, q in both)


def promise(epsilon: Fraction, delta: Fraction = NOTHING) -> Truth:
    """Kairouz, Oh and Viswanath's four outcomes; e**epsilon is cut to 120 digits, which nobody will see."""
    with mp.workdps(150):
        grown = F(int(mp.floor(mp.exp(real(epsilon)) * mpf(10) ** 120)), 10**120)
    yes, no = (1 - delta) * grown / (1 + grown), (1 - delta) / (1 + grown)
    return Finite([delta, yes, no, F(0)], [F(0), no, yes, delta])


def neyman_pearson(p: list[Fraction], q: list[Fraction], fpr: Fraction) -> Fraction:
    """The least false-negative rate of a randomised test of q: outcomes taken greedily, a last by a coin."""
    power, left = F(0), fpr
    for a, b in sorted(zip(p, q, strict=True), key=lambda o: (o[1] == 0, o[0] / (o[1] or 1)), reverse=True):
        share = min(F(1), left / b) if b else F(1)
        power, left = power + share * a, left - share * b
    return 1 - power


# --- comparing ------------------------------------------------------------------------------------


def disagreements(
    loss: PrivacyLoss,
    truths: Iterable[Truth],
    *,
    epsilons: Iterable[Fraction] = (),
    deltas: Iterable[Fraction] = (),
    alphas: Iterable[Fraction] = (),
    ulps: int = ULPS,
) -> list[str]:
    """Compare with the worse of the directions given; several if the pair is not symmetric."""
    return list(_disagreements(loss, list(truths), list(epsilons), list(deltas), list(alphas), ulps))


def _disagreements(
    loss: PrivacyLoss,
    truths: list[Truth],
    epsilons: list[Fraction],
    deltas: list[Fraction],
    alphas: list[Fraction],
    ulps: int,
) -> Iterator[str]:
    def compare(figure: str, bounds: Bounds, truth: mpf) -> Iterator[str]:
        truth = max(truth, mpf(0))
        if not encloses(bounds, truth):
            yield f"{figure}: {mp.nstr(truth, 25)} is not in {bounds}"
        elif not is_tight(bounds, ulps):
            yield f"{figure}: {bounds} is wide"

    for epsilon in epsilons:
        worst = max(truth.delta(epsilon) for truth in truths)
        yield from compare(f"delta({float(epsilon):g})", loss.delta_bounds(epsilon), worst)
    for delta in deltas:
        bounds = loss.epsilon_bounds(delta)
        for low in readings(bounds.lower):
            at = F(int(low * 2**1100), 2**1100)
            if bounds.lower > 0 and max(t.delta(at) for t in truths) < real(delta) * (1 - TINY):
                yield f"epsilon({float(delta):g}): above {bounds.lower!r}"
        for high in readings(bounds.upper):
            at = F(int(mp.ceil(high * 2**1100)), 2**1100)
            if max(t.delta(at) for t in truths) > real(delta) * (1 + TINY):
                yield f"epsilon({float(delta):g}): below {bounds.upper!r}"
        if not is_tight(bounds, ulps):
            yield f"epsilon({float(delta):g}): {bounds} is wide"
    for alpha in alphas:
        worst = max(truth.renyi(alpha) for truth in truths)
        yield from compare(f"renyi({float(alpha):g})", loss.renyi_bounds(alpha), worst)
    if alphas:
        yield from compare("kl", loss.kl_bounds, max(truth.kl() for truth in truths))
    yield from compare("distance", loss.statistical_distance_bounds, max(t.delta(F(0)) for t in truths))
