"""What every benchmark shares: a fair race and one table."""

import gc
import importlib
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from types import ModuleType

Times = dict[str, list[float]]


def race(contenders: Mapping[str, Callable[[], object]], rounds: int = 10) -> Times:
    """Time each contender once a round, in seconds.

    They take turns, so that a busy minute or a warm processor touches all of them alike, and the order turns
    by one each round, so that nobody always runs in the same one's wake. A first round that is not counted
    pays for caches and lazy imports.
    """
    names = list(contenders)
    times: Times = {name: [] for name in names}
    for name in names:
        contenders[name]()
    collecting = gc.isenabled()
    gc.disable()
    try:
        for turn in range(rounds):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                start = time.perf_counter()
                contenders[name]()
                times[name].append(time.perf_counter() - start)
    finally:
        if collecting:
            gc.enable()
    return times


def best(times: Times) -> dict[str, float]:
    """Each contender's fastest round: for work in one process, all above it is other people's noise."""
    return {name: min(rounds) for name, rounds in times.items()}


def typical(times: Times) -> dict[str, float]:
    """Each contender's median round: for whole processes, whose cost does vary."""
    return {name: median(rounds) for name, rounds in times.items()}


def rival(name: str) -> ModuleType | None:
    """A rival library if this environment has it; otherwise it is left out, and `report` says so."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name.partition(".")[0]:
            raise  # the rival is there and broken: a benchmark that hid that would mislead
        return None


def report(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], packages: Sequence[str]) -> None:
    """Print one Markdown table, and under it what it was measured on and who was left out."""
    table = [list(header), *map(list, rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    rule = ["-" * width if column == 0 else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    print(f"\n### {title}\n")
    for row in [table[0], rule, *table[1:]]:
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print(f"| {' | '.join(cells)} |")
    have, lack = _versions(packages)
    where = f"{_machine()}; Python {platform.python_version()}"
    print(f"\n{datetime.now(UTC):%Y-%m-%d}; {where}, {', '.join(have)}.")
    if lack:
        print(f"Left out, not installed here: {', '.join(lack)}. To measure them too: make bench-rivals")
    sys.stdout.flush()


def _versions(packages: Sequence[str]) -> tuple[list[str], list[str]]:
    have, lack = [], []
    for package in packages:
        try:
            have.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            lack.append(package)
    return have, lack


def _machine() -> str:
    """The processor's name (Linux tells it in a file only) and how many cores this process may use."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{names[0] if names else platform.processor() or platform.machine()}, {cores} cores"
