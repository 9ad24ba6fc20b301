"""``discreet solve``: the noise for a promise, or the promise for an accuracy."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.figures import figure
from discreet.cli.mechanism import about, calibrated, kind_of, show
from discreet.cli.pictures import check, save

__all__ = ["solve"]

_Figure = Fraction | None


def solve(
    kind: Annotated[str, typer.Argument(help="laplace or gaussian.")],
    error: Annotated[
        _Figure, typer.Option(parser=figure, help="How far off an answer may be; with --failure.")
    ] = None,
    failure: Annotated[
        _Figure, typer.Option(parser=figure, help="How likely it may be off by that much, or more.")
    ] = None,
    epsilon: Annotated[_Figure, typer.Option(parser=figure, help="Or: the promise to keep.")] = None,
    delta: Annotated[
        _Figure, typer.Option(parser=figure, help="With --epsilon; or to read a loss at this delta.")
    ] = None,
    rho: Annotated[
        _Figure, typer.Option(parser=figure, help="Or: a zero-concentrated promise to keep.")
    ] = None,
    sensitivity: Annotated[
        Fraction,
        typer.Option(parser=figure, help="How far one person can move the answers (l1; Gaussian: l2)."),
    ] = Fraction(1),
    size: Annotated[
        int | None, typer.Option(help="How many answers are released together; the error is of the worst.")
    ] = None,
    grid: Annotated[
        _Figure, typer.Option(parser=figure, help="For real answers: what they are rounded to.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Write a picture to this file (.png, .svg, .pdf).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Choose noise by its accuracy or by its promise, and say what the other one comes to.

    For example: discreet solve laplace --sensitivity 1 --error 10 --failure 1e-5
    """
    noise_kind = kind_of(kind)
    if plot is not None:
        check(plot)
    by_promise = epsilon is not None or rho is not None
    if error is not None and failure is not None and not by_promise:
        noise = noise_kind.solve(error=error, failure=failure, sensitivity=sensitivity, size=size, grid=grid)
    elif error is None and failure is None and by_promise:
        noise = calibrated(noise_kind, sensitivity, epsilon, delta, rho, grid, size)
    else:
        raise typer.BadParameter("give --error and --failure, or --epsilon (with --delta) or --rho")
    figures = about(noise, sensitivity, delta, size or 1, error)
    if as_json:
        typer.echo(json.dumps(figures, indent=2))
    else:
        show(figures)
    if plot is not None:
        save(lambda: noise.plot(sensitivity=sensitivity, size=size or 1), plot)
        typer.echo(f"\nThe picture is in {plot}", err=as_json)
