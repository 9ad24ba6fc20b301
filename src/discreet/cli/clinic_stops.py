"""The stops of the tour that release something: a clinic's counts, many counts at once, and a survey."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from discreet.cli.promise_stops import Bars

__all__ = ["counts", "many_counts", "survey"]

_VISITS = {"well": 1_931, "flu": 871, "asthma": 640, "diabetes": 438, "angina": 229, "lupus": 19}
_ASKED, _TRULY_YES = 2_000, 460


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", overflow="fold" if column else "crop")
    return table


def counts(bars: Bars) -> Iterator[RenderableType]:
    """Release a histogram with Laplace and with Gaussian noise."""
    from discreet.mechanisms import Gaussian, Laplace, Sensitivity

    one_each = Sensitivity.histogram(len(_VISITS))
    laplace = Laplace.calibrate(epsilon=0.5, sensitivity=one_each)
    gaussian = Gaussian.calibrate(epsilon=0.5, delta=1e-6, sensitivity=one_each)
    true = list(_VISITS.values())
    released = laplace.release(true), gaussian.release(true)
    errors = laplace.error(0.95), gaussian.error(0.95)

    table = _table("diagnosis", "patients", "Laplace, 95%", "Gaussian, 95%", "")
    for name, patients, by_laplace, by_gaussian in zip(_VISITS, true, *released, strict=True):
        bar = bars.full * max(0, round(bars.width * int(by_laplace) / max(true)))
        table.add_row(
            name,
            f"{patients:,}",
            f"{by_laplace:,} +- {errors[0]}",
            f"{by_gaussian:,} +- {errors[1]}",
            f"[cyan]{bar}[/cyan]",
        )
    table.columns[-1].justify = "left"
    yield (
        "Each patient has one diagnosis, so leaving one out changes one count by 1: all six counts together "
        "cost an epsilon of 0.5. Laplace noise keeps it purely, Gaussian noise but for a delta of 1e-6.\n"
    )
    yield table
    yield "\n[dim]'patients' is shown because nobody in this clinic exists.[/dim]"


def many_counts() -> Iterator[RenderableType]:
    """Compare both kinds of noise on overlapping counts: how far off is one, the worst, and all together?"""
    from discreet.mechanisms import Gaussian, Laplace, Sensitivity

    k = 20
    overlapping = Sensitivity.counts(k)
    laplace = Laplace.calibrate(epsilon=1, sensitivity=overlapping)
    gaussian = Gaussian.calibrate(epsilon=1, delta=1e-6, sensitivity=overlapping)
    table = _table(
        "within, 95% of the time",
        f"Laplace, scale {float(laplace.scale):g}",
        f"Gaussian, sigma {gaussian.sigma:.1f}",
    )
    table.add_row("promise", "epsilon 1", "epsilon 1, delta 1e-6")
    table.add_row("one count", f"{laplace.error(0.95)}", f"{gaussian.error(0.95)}")
    table.add_row("the worst of 20", f"{laplace.error(0.95, size=k)}", f"{gaussian.error(0.95, size=k)}")
    table.add_row("the sum of all 20 sizes", f"{laplace.error(0.95, size=k, norm='l1'):,}", "")
    by_union = (f"{noise.error(0.95, size=k, norm='l1', bound='union'):,}" for noise in (laplace, gaussian))
    table.add_row("the same, by the union bound", *by_union)
    yield (
        "Twenty symptoms, and one patient may have them all: in l1 they move the counts by 20, in l2 by the "
        "square root of 20. That is why many counts want Gaussian noise.\n"
    )
    yield table


def survey(bars: Bars) -> Iterator[RenderableType]:
    """Ask everyone to flip coins before answering, and recover the share of yes."""
    from discreet.mechanisms import RandomizedResponse

    coins = RandomizedResponse.two_coins(answers=["no", "yes"])
    truths = ["yes"] * _TRULY_YES + ["no"] * (_ASKED - _TRULY_YES)
    reports = coins.release(truths)
    estimate = coins.estimate(reports)
    low, high = estimate.interval(0.95)[1]
    said = sum(report == "yes" for report in reports) / _ASKED
    yield (
        f"{_ASKED:,} people toss a coin: heads, they answer truly; tails, they let a second coin answer. "
        "Whatever one of them says, they can deny: no report moves the odds about them by more than a factor "
        "of 3, an epsilon of ln 3.\n"
    )
    table = _table("share of yes", "", "")
    table.columns[2].justify = "left"
    for name, share, note in (
        ("among the reports", said, "before the coins are taken out"),
        ("estimated", estimate.values[1], f"between {low:.1%} and {high:.1%}, at 95%"),
        ("in truth", _TRULY_YES / _ASKED, "which nobody was told"),
    ):
        bar = bars.full * max(1, round(bars.width * share))
        table.add_row(name, f"{share:.1%}", f"[cyan]{bar}[/cyan]  {note}")
    yield table
