"""The stops of the tour that show what a promise is: noise and its law, bad ideas, and an epsilon of 1."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fractions import Fraction

    from rich.console import Console, RenderableType
    from rich.table import Table

    from discreet.privacy import Database, Distribution, Posterior

__all__ = ["Bars", "bad_ideas", "epsilon", "noise_and_its_law"]

_DRAWS = 1_000_000
_SCALE = 10
_SHOWN = range(-20, 21, 2)
_BAR = 34


class Bars:
    """What fits on the console: how wide a bar may be, and what it is made of."""

    def __init__(self, console: Console) -> None:
        self.width = max(8, min(_BAR, console.width - 46))
        blocks = console.encoding.lower().startswith("utf")
        self.full, self.dot = ("█", "·") if blocks else ("#", ".")


def noise_and_its_law(bars: Bars) -> Iterator[RenderableType]:
    """Draw a million integers, time it beside NumPy's floats, and hold the counts against the exact law."""
    import numpy as np

    from discreet import noise

    noise.discrete_laplace(_SCALE)
    start = time.perf_counter()
    drawn = noise.discrete_laplace(_SCALE, _DRAWS)
    ours = time.perf_counter() - start
    floats = np.random.default_rng()
    start = time.perf_counter()
    np.rint(floats.laplace(0.0, _SCALE, _DRAWS))
    theirs = time.perf_counter() - start

    values = np.arange(-2000, 2001)
    law = np.tanh(0.5 / _SCALE) * np.exp(-np.abs(values) / _SCALE)
    counts = np.bincount(np.clip(drawn, -2000, 2000) + 2000, minlength=values.size)
    yield (
        f"discreet.noise.discrete_laplace({_SCALE}, {_DRAWS:_}): "
        "the noise that makes a count private at epsilon 0.1.\n"
    )
    yield _histogram(bars, {int(v): (int(c), float(p)) for v, c, p in zip(values, counts, law, strict=True)})
    # Dvoretzky, Kiefer, Wolfowitz, with Massart's constant: a right sampler exceeds this once in a million.
    distance = float(np.abs(np.cumsum(counts) / _DRAWS - np.cumsum(law)).max())
    limit = float(np.sqrt(np.log(2 / 1e-6) / (2 * _DRAWS)))
    verdict = "[green]as it should be[/green]" if distance <= limit else "[red]this should never happen[/red]"
    yield (
        f"\nFarthest from the exact law: {distance:.5f}; a right sampler passes {limit:.5f} once in a "
        f"million runs: {verdict}.\nDrawn in {ours * 1e3:.1f} ms, {ours / theirs:.2f} times what NumPy "
        "takes for as many rounded floats, which are neither secret nor exact."
    )


def _histogram(bars: Bars, shown: dict[int, tuple[int, float]]) -> RenderableType:
    from rich.text import Text

    most = max(chance for _, chance in shown.values())
    lines = Text()
    for value in _SHOWN:
        count, chance = shown[value]
        bar = bars.full * round(bars.width * count / _DRAWS / most)
        lines.append(f"{value:>5} ")
        lines.append(f"{bar:<{bars.width + 2}}", style="cyan")
        lines.append(f"{count:>8,} drawn, {chance * _DRAWS:>9,.1f} expected\n")
    lines.rstrip()
    return lines


def bad_ideas() -> Iterator[RenderableType]:
    """Verify four mechanisms exactly, by going through every pair of neighbours."""
    from fractions import Fraction

    from rich.table import Table

    from discreet.privacy import Distribution, verify

    def random_row(rows: Database[str]) -> Distribution[str]:
        return Distribution.uniform(rows)

    def seldom_a_row(rows: Database[str]) -> Distribution[str]:
        spoken = Distribution({True: Fraction(1, 10), False: Fraction(9, 10)})
        return spoken.then(lambda aloud: random_row(rows) if aloud else Distribution.certain("nothing"))

    def exact_count(rows: Database[str]) -> Distribution[int]:
        return Distribution.certain(rows.count("sick"))

    def coin_flips(rows: Database[str]) -> Distribution[int]:
        total = Distribution.certain(0)
        for row in rows:
            yes = Fraction(3, 4) if row == "sick" else Fraction(1, 4)
            total = total.product(Distribution({1: yes, 0: 1 - yes})).map(sum)
        return total

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("publish", "seems: advantage", "is: epsilon", "what gives it away"):
        table.add_column(column)
    ideas: dict[str, Callable[[Database[str]], Distribution[Any]]] = {
        "one random row": random_row,
        "one random row, one time in ten": seldom_a_row,
        "the number of the sick": exact_count,
        "the number of 'sick' after coin flips": coin_flips,
    }
    for name, mechanism in ideas.items():
        found = verify(mechanism, universe=["well", "sick"], n=5, neighbours="replace")
        worst = found.worst_ratio()
        seen, sick, other = worst.event[0], worst.database.count("sick"), worst.neighbour.count("sick")
        if worst.value is None:
            needed, tale = (
                "[red]none will do[/red]",
                f"{seen!r} is possible with {sick} sick, never with {other}",
            )
        else:
            needed = f"{found.epsilon():.4g}"
            tale = f"{seen!r} is {worst.value} times as likely with {sick} sick as with {other}"
        table.add_row(name, f"{float(found.statistical_distance):.3g}", needed, tale)
    yield "Every database of five people, with every neighbour, in exact fractions:\n"
    yield table


def epsilon(bars: Bars, picture: Path) -> Iterator[RenderableType]:
    """Explain an epsilon of 1, in words, as bars and as a picture."""
    from rich.markup import escape

    from discreet.cli.pictures import save
    from discreet.errors import DiscreetError
    from discreet.privacy import PureDP, explain

    explanation = explain(PureDP(1), n=10_000)
    yield " ".join(explanation.summary.split()) + "\n"
    yield _beliefs(bars, explanation.posteriors)
    rightly = math.ceil(explanation.best_guess * 1000) / 10
    yield f"\nThe cleverest attacker guesses rightly at most {rightly}% of the time; a coin, 50%."
    try:
        save(explanation.plot, picture)
        yield f"The picture is in [bold]{escape(str(picture))}[/bold]."
    except DiscreetError as missing:
        yield f"[dim]No picture: {escape(str(missing))}[/dim]"


def _beliefs(bars: Bars, posteriors: tuple[tuple[Fraction, Posterior], ...]) -> Table:
    from rich.table import Table

    from discreet.numbers import digits_text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("sure of you before", justify="right")
    table.add_column("0%" + " " * (bars.width - 6) + "100%")
    table.add_column("after")
    for prior, (low, high) in posteriors:
        left = round(low * bars.width)
        right = max(round(high * bars.width), left + 1)
        bar = (
            f"[dim]{bars.dot * left}[/dim][cyan]{bars.full * (right - left)}[/cyan]"
            f"[dim]{bars.dot * (bars.width - right)}[/dim]"
        )
        after = f"{digits_text(100 * low, up=False)}% to {digits_text(100 * high, up=True)}%"
        table.add_row(f"{float(prior):.1%}", bar, after)
    return table
