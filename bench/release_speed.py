"""How fast answers are released, beside OpenDP's exact mechanisms and diffprivlib's floats, which are unsafe.

Limits: vectors at least 100 times as fast, per answer, as OpenDP's, and no slower than diffprivlib, which
takes one number at a time; single answers no slower than either. One core does all of it.
"""

import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from bench._common import best, race, report, rival
from bench.noise_speed import duration, median_call, ratio
from discreet.mechanisms import Gaussian, Laplace

MANY = 10**6
MANY_SLOW = 1 << 13  # for whoever takes microseconds an answer
ROUNDS = 10
LEAST_OF_OPENDP, LEAST_OF_DIFFPRIVLIB, LEAST_SINGLE = 100.0, 1.0, 1.0
EPSILON, DELTA = 1, 1e-6
GRID = Fraction(1, 1 << 20)

opendp: Any = rival("opendp.prelude")
if opendp:
    opendp.enable_features("contrib")
diffprivlib: Any = rival("diffprivlib.mechanisms")

Release = Callable[[Any], object]


def contenders(
    kind: str, real: bool
) -> tuple[Release, Release, Release | None, Release | None, Release | None]:
    """Return our releases of one number and of many, OpenDP's likewise, and diffprivlib's of one."""
    cls = Laplace if kind == "Laplace" else Gaussian
    promise: dict[str, Any] = {"epsilon": EPSILON} if cls is Laplace else {"epsilon": EPSILON, "delta": DELTA}
    one = cls.calibrate(**promise, grid=GRID if real else None)
    many = cls.calibrate(**promise, grid=GRID if real else None, size=MANY if real else None)
    theirs: tuple[Release | None, Release | None] = (None, None)
    if opendp:
        width = float(one.scale if isinstance(one, Laplace) else one.sigma)
        make = opendp.m.make_laplace if cls is Laplace else opendp.m.make_gaussian
        atoms = opendp.atom_domain(T=float, nan=False) if real else opendp.atom_domain(T=int)
        number = float if real else int
        far = opendp.l1_distance(T=number) if cls is Laplace else opendp.l2_distance(T=float)
        theirs = (
            make(atoms, opendp.absolute_distance(T=number), width),
            make(opendp.vector_domain(atoms), far, width),
        )
    floats: Release | None = None
    if diffprivlib:
        if cls is Gaussian:
            floats = diffprivlib.GaussianAnalytic(epsilon=EPSILON, delta=DELTA, sensitivity=1).randomise
        elif real:
            floats = diffprivlib.Laplace(epsilon=EPSILON, sensitivity=1).randomise
        else:
            floats = diffprivlib.Geometric(epsilon=EPSILON, sensitivity=1).randomise
    return one.release, many.release, *theirs, floats


def rows(kind: str, real: bool, failures: list[str]) -> list[list[str]]:
    """Time one answer, and a million."""
    one, many, opendp_one, opendp_many, floats = contenders(kind, real)
    number: Any = 42.0 if real else 42
    answers = np.arange(MANY) / 8 if real else np.arange(MANY)
    name = f"{kind}, {'real' if real else 'whole'} answers"

    single = {"ours": median_call(lambda: one(number))}
    if opendp_one:
        single["opendp"] = median_call(lambda: opendp_one(number))
    if floats:
        single["diffprivlib"] = median_call(lambda: floats(number))

    fewer = answers[:MANY_SLOW].tolist()
    racers: dict[str, tuple[int, Callable[[], object]]] = {"ours": (MANY, lambda: many(answers))}
    if opendp_many:
        racers["opendp"] = (MANY_SLOW, lambda: opendp_many(fewer))
    if floats:
        racers["diffprivlib"] = (MANY_SLOW, lambda: [floats(value) for value in fewer])
    times = best(race({who: run for who, (_, run) in racers.items()}, ROUNDS))
    each = {who: times[who] / size for who, (size, _) in racers.items()}
    return [
        row(f"{name}, one", single, {"opendp": LEAST_SINGLE, "diffprivlib": LEAST_SINGLE}, failures),
        row(
            f"{name}, each of a million",
            each,
            {"opendp": LEAST_OF_OPENDP, "diffprivlib": LEAST_OF_DIFFPRIVLIB},
            failures,
        ),
    ]


def row(name: str, times: dict[str, float], least: dict[str, float], failures: list[str]) -> list[str]:
    ratios = {who: seconds / times["ours"] for who, seconds in times.items() if who != "ours"}
    failures += [
        f"{name}: {ratios[who]:.2f} times {who}, not {limit:g}"
        for who, limit in least.items()
        if ratios.get(who, limit) < limit
    ]
    return [
        name,
        duration(times["ours"]),
        f"{1 / times['ours']:,.0f}",
        *(duration(times.get(who)) for who in least),
        *(ratio(ratios.get(who)) for who in least),
        " and ".join(f"{limit:g}" for limit in least.values()),
    ]


def main() -> int:
    failures: list[str] = []
    table = [
        line
        for kind in ("Laplace", "Gaussian")
        for real in (False, True)
        for line in rows(kind, real, failures)
    ]
    report(
        "Releases: exact, beside OpenDP's exact ones and diffprivlib's floats, on one core",
        [
            "",
            "discreet",
            "a second",
            "OpenDP",
            "diffprivlib",
            "OpenDP / discreet",
            "diffprivlib / discreet",
            "limits",
        ],
        table,
        ["discreet", "numpy", "opendp", "diffprivlib"],
    )
    print("\n".join(f"OVER: {failure}." for failure in failures) or "Every limit is kept.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
