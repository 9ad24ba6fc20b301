"""``discreet explain``: what a guarantee means, in words and a picture."""

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.figures import figure
from discreet.cli.pictures import check, save

if TYPE_CHECKING:
    from discreet.privacy import Explanation, Guarantee

__all__ = ["explain"]

_Figure = Fraction | None


def explain(
    epsilon: Annotated[
        _Figure, typer.Argument(parser=figure, metavar="[EPSILON]", help="A pure epsilon, such as 1.0.")
    ] = None,
    delta: Annotated[
        _Figure,
        typer.Option(
            parser=figure, help="With epsilon: (epsilon, delta). With --rho or --mu: read it at this delta."
        ),
    ] = None,
    rho: Annotated[_Figure, typer.Option(parser=figure, help="A zero-concentrated promise instead.")] = None,
    mu: Annotated[_Figure, typer.Option(parser=figure, help="A Gaussian promise instead.")] = None,
    n: Annotated[
        int | None, typer.Option("--n", help="How many people are in the table, if that is public.")
    ] = None,
    neighbours: Annotated[
        str,
        typer.Option(help="What is protected: taking part (add-remove), or what one's data say (replace)."),
    ] = "add-remove",
    plot: Annotated[
        Path | None, typer.Option(help="Write a picture to this file (.png, .svg, .pdf).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Say what a guarantee means for one person.

    For example: discreet explain 1.0 --delta 1e-6 --n 10000 --plot epsilon.png
    """
    from discreet.privacy import explain as explain_guarantee

    if plot is not None:
        check(plot)
    guarantee, read_at = _guarantee(epsilon, delta, rho, mu)
    explanation = explain_guarantee(guarantee, delta=read_at, n=n, neighbours=neighbours)
    if as_json:
        typer.echo(json.dumps(explanation.to_dict(), indent=2))
    else:
        _say(explanation)
    if plot is not None:
        save(explanation.plot, plot)
        typer.echo(f"\nThe picture is in {plot}", err=as_json)


def _say(explanation: "Explanation") -> None:
    typer.secho(explanation.headline(), bold=True)
    for title, text in explanation.sections().items():
        typer.echo()
        typer.secho(title, fg="cyan", bold=True)
        typer.echo(text)


def _guarantee(
    epsilon: _Figure, delta: _Figure, rho: _Figure, mu: _Figure
) -> tuple["Guarantee", Fraction | None]:
    """Return the guarantee that was named, and the delta to read it at if it has none of its own."""
    from discreet.privacy import GDP, ZCDP, ApproxDP, PureDP

    if sum(figure is not None for figure in (epsilon, rho, mu)) != 1:
        raise typer.BadParameter("give one of EPSILON, --rho and --mu")
    if epsilon is not None:
        return (PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)), None
    return (ZCDP(rho) if rho is not None else GDP(mu)), delta  # type: ignore[arg-type]
