"""How fast exact noise is, beside NumPy's rounded floats (which are not private) and OpenDP's exact integers.

Limits: in bulk at least as fast per sample as NumPy and 200 times OpenDP, at scales 1, 10, 1e3 and 1e6; one
draw under 60 us once warm; the first draw at a new scale under 50 ms. One core does all of it.
"""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import median
from typing import Any

import numpy as np

from bench._common import best, race, report, rival
from discreet import noise
from discreet.noise.blocks import block_sampler
from discreet.noise.source import SYSTEM

MANY = 1 << 20
MANY_SLOW = 1 << 13  # for whoever takes microseconds a sample
ROUNDS = 15
SINGLES = 2000
LEAST_OF_NUMPY, LEAST_OF_OPENDP = 1.0, 200.0
MOST_SINGLE, MOST_FIRST = 60e-6, 50e-3

SCALES = {"1": 1, "10": 10, "1e3": 10**3, "1e6": 10**6}
HUGE = 2**80
FIRST_SCALES = {
    "7": Fraction(7),
    "6399/100": Fraction(6399, 100),
    "(10**30 + 7) / (10**25 + 9)": Fraction(10**30 + 7, 10**25 + 9),
    "2**80 / 3": Fraction(2**80, 3),
    "1e-300": Fraction(1, 10**300),
}

opendp: Any = rival("opendp.prelude")
if opendp:
    opendp.enable_features("contrib")


@dataclass(frozen=True)
class Law:
    """One law by all contenders, each a sampler of `size` integers (None for a single one)."""

    name: str
    ours: Callable[[Fraction, int | None], object]
    floats: Callable[[float, int], object]
    make_opendp: Callable[[float, bool], Callable[[object], object]]


generator = np.random.default_rng()


def opendp_laplace(scale: float, vector: bool) -> Any:
    integers = opendp.atom_domain(T=int)
    if vector:
        return opendp.m.make_laplace(opendp.vector_domain(integers), opendp.l1_distance(T=int), scale)
    return opendp.m.make_laplace(integers, opendp.absolute_distance(T=int), scale)


def opendp_gaussian(scale: float, vector: bool) -> Any:
    integers = opendp.atom_domain(T=int)
    if vector:
        return opendp.m.make_gaussian(opendp.vector_domain(integers), opendp.l2_distance(T=float), scale)
    return opendp.m.make_gaussian(integers, opendp.absolute_distance(T=float), scale)


LAPLACE = Law(
    "discrete Laplace",
    noise.discrete_laplace,
    lambda scale, size: np.rint(generator.laplace(0, scale, size)),
    opendp_laplace,
)
GAUSSIAN = Law(
    "discrete Gaussian",
    lambda scale, size: noise.discrete_gaussian(scale * scale, size),
    lambda scale, size: np.rint(generator.normal(0, scale, size)),
    opendp_gaussian,
)

Row = list[str]


def bulk(law: Law, name: str, scale: int, failures: list[str]) -> Row:
    """Time arrays. At 2**80 NumPy still makes doubles, and OpenDP's integers end at 64 bits."""
    wide = scale == HUGE
    sizes = {"ours": MANY_SLOW if wide else MANY, "numpy": MANY, "opendp": MANY_SLOW}
    contenders: dict[str, Callable[[], object]] = {
        "ours": lambda: law.ours(Fraction(scale), sizes["ours"]),
        "numpy": lambda: law.floats(float(scale), sizes["numpy"]),
    }
    if opendp and not wide:
        zeros = [0] * sizes["opendp"]
        measure = law.make_opendp(float(scale), True)
        contenders["opendp"] = lambda: measure(zeros)
    each = {who: seconds / sizes[who] for who, seconds in best(race(contenders, ROUNDS)).items()}
    ratios = {who: seconds / each["ours"] for who, seconds in each.items()}
    if not wide:
        for who, least in (("numpy", LEAST_OF_NUMPY), ("opendp", LEAST_OF_OPENDP)):
            if ratios.get(who, least) < least:
                failures.append(f"{law.name}, scale {name}: {ratios[who]:.2f} times {who}, not {least:g}")
    return [
        f"{law.name}, scale {name}, a sample of many",
        *(duration(each.get(who)) for who in ("ours", "numpy", "opendp")),
        *(ratio(ratios.get(who)) for who in ("numpy", "opendp")),
        "" if wide else f"{LEAST_OF_NUMPY:g} and {LEAST_OF_OPENDP:g} times",
    ]


def single(law: Law, name: str, scale: int, failures: list[str]) -> Row:
    """Time draws one by one; the median, because one draw is short enough for anything to disturb."""
    ours = median_call(lambda: law.ours(Fraction(scale), None))
    theirs = None
    if opendp and scale != HUGE:
        measure = law.make_opendp(float(scale), False)
        theirs = median_call(lambda: measure(0))
    if ours > MOST_SINGLE:
        failures.append(f"{law.name}, scale {name}: one draw takes {duration(ours)}")
    return [
        f"{law.name}, scale {name}, a single draw",
        duration(ours),
        "",
        duration(theirs),
        "",
        ratio(theirs and theirs / ours),
        duration(MOST_SINGLE),
    ]


def median_call(draw: Callable[[], object]) -> float:
    times = []
    for turn in range(SINGLES + 100):
        start = time.perf_counter()
        draw()
        if turn >= 100:
            times.append(time.perf_counter() - start)
    return median(times)


def first(law: Law, name: str, scale: Fraction, failures: list[str]) -> Row:
    """Time a draw whose tables have to be made."""
    times = []
    for _ in range(ROUNDS):
        block_sampler.cache_clear()
        start = time.perf_counter()
        law.ours(scale, None)
        times.append(time.perf_counter() - start)
    if median(times) > MOST_FIRST:
        failures.append(f"{law.name}, scale {name}: the first draw takes {duration(median(times))}")
    return [
        f"{law.name}, scale {name}, the first draw",
        duration(median(times)),
        *[""] * 4,
        duration(MOST_FIRST),
    ]


def sources() -> list[Row]:
    """Time the random bits themselves, a word of 64 bits each."""
    times = best(
        race(
            {
                "AES-256 in counter mode": lambda: SYSTEM.words(MANY),
                "the operating system": lambda: os.urandom(8 * MANY),
                "numpy": lambda: generator.bytes(8 * MANY),
            },
            ROUNDS,
        )
    )
    numpy = times.pop("numpy")
    return [
        [
            f"64 random bits of many, {name}",
            duration(seconds / MANY),
            duration(numpy / MANY),
            "",
            ratio(numpy / seconds),
            "",
            "",
        ]
        for name, seconds in times.items()
    ]


def duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    for unit, size in (("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def ratio(times: float | None) -> str:
    if times is None:
        return ""
    return f"{times:,.0f}" if times >= 100 else f"{times:.3g}"


def main() -> int:
    failures: list[str] = []
    rows: list[Row] = []
    for law in (LAPLACE, GAUSSIAN):
        rows += [bulk(law, name, scale, failures) for name, scale in (SCALES | {"2**80": HUGE}).items()]
    for law in (LAPLACE, GAUSSIAN):
        rows += [
            single(law, name, scale, failures)
            for name, scale in {"10": 10, "1e6": 10**6, "2**80": HUGE}.items()
        ]
    for law in (LAPLACE, GAUSSIAN):
        rows += [first(law, name, scale, failures) for name, scale in FIRST_SCALES.items()]
    report(
        "Noise: exact integers beside NumPy's rounded floats and OpenDP's exact integers, on one core",
        ["", "discreet", "NumPy", "OpenDP", "NumPy / discreet", "OpenDP / discreet", "limit"],
        rows + sources(),
        ["discreet", "numpy", "cryptography", "opendp"],
    )
    print("\n".join(f"OVER: {failure}." for failure in failures) or "Every limit is kept.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
