"""``discreet demo``: a tour of what is there, on numbers drawn while you watch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["demo"]


def demo(
    picture: Annotated[Path, typer.Option(help="Where to write the picture of epsilon.")] = Path(
        "discreet-demo.png"
    ),
) -> None:
    """Tour what is there: a clinic's counts, a survey, noise against its law, and what an epsilon means."""
    from rich.console import Console
    from rich.panel import Panel

    from discreet.cli import clinic_stops, promise_stops

    console = Console(width=min(108, Console().width), highlight=False)
    bars = promise_stops.Bars(console)
    stops = [
        ("A clinic's counts, released with error bars", clinic_stops.counts(bars)),
        ("Twenty counts at once, all of which one person may be in", clinic_stops.many_counts()),
        ("A survey by coin flips, and what it recovers", clinic_stops.survey(bars)),
        ("Noise, drawn exactly from the law it claims", promise_stops.noise_and_its_law(bars)),
        (
            "Ideas that look private, and the pair of databases that gives each away most",
            promise_stops.bad_ideas(),
        ),
        ("What an epsilon of 1 means for one person", promise_stops.epsilon(bars, picture)),
    ]
    console.print("\n[bold]discreet[/bold]: ask a table about people without telling on any of them.\n")
    for number, (title, stop) in enumerate(stops, start=1):
        console.print(Panel.fit(f"[bold]{number}  {title}[/bold]", border_style="cyan"))
        for piece in stop:
            console.print(piece)
        console.print()
    _next(console)


def _next(console: Console) -> None:
    console.print(
        "Go on:  [bold]discreet solve laplace --error 10 --failure 1e-5[/bold]\n"
        "        [bold]discreet explain 0.5 --delta 1e-6 --n 20000[/bold]\n"
        ">>> import discreet as dx\n"
        ">>> dx.PrivacyLoss.gaussian(sigma=4).epsilon(delta=1e-6)"
    )
