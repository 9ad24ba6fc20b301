"""``discreet noise``: draw noise, or a picture of it."""

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.figures import figure
from discreet.cli.mechanism import about, calibrated, kind_of, show
from discreet.cli.pictures import check, save

if TYPE_CHECKING:
    from discreet.mechanisms import Gaussian, Laplace

__all__ = ["noise"]

_Figure = Fraction | None
_MOST, _BLOCK = 10_000_000, 100_000


def noise(
    kind: Annotated[str, typer.Argument(help="laplace or gaussian.")],
    scale: Annotated[
        _Figure, typer.Option(parser=figure, help="The scale; of Gaussian noise, its sigma.")
    ] = None,
    epsilon: Annotated[_Figure, typer.Option(parser=figure, help="Or: the promise to keep.")] = None,
    delta: Annotated[_Figure, typer.Option(parser=figure, help="With --epsilon.")] = None,
    rho: Annotated[
        _Figure, typer.Option(parser=figure, help="Or: a zero-concentrated promise to keep.")
    ] = None,
    sensitivity: Annotated[
        Fraction,
        typer.Option(parser=figure, help="How far one person can move the answers (l1; Gaussian: l2)."),
    ] = Fraction(1),
    grid: Annotated[
        _Figure, typer.Option(parser=figure, help="Draw multiples of this, not integers.")
    ] = None,
    draws: Annotated[
        int | None, typer.Option("--draws", "-n", help="Print this many draws, one a line.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Write a picture to this file (.png, .svg, .pdf).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Draw exact noise, or say and show how large it is.

    For example: discreet noise laplace --epsilon 0.1 -n 5
    """
    if plot is not None:
        check(plot)
    mechanism = _mechanism(kind, scale, epsilon, delta, rho, sensitivity, grid)
    if draws is not None:
        _print_draws(mechanism, draws, as_json)
    else:
        figures = about(mechanism, sensitivity, delta, 1)
        if as_json:
            typer.echo(json.dumps(figures, indent=2))
        else:
            show(figures)
    if plot is not None:
        save(lambda: mechanism.plot(sensitivity=sensitivity), plot)
        typer.echo(f"\nThe picture is in {plot}", err=as_json or draws is not None)


def _mechanism(
    kind: str,
    scale: _Figure,
    epsilon: _Figure,
    delta: _Figure,
    rho: _Figure,
    sensitivity: Fraction,
    grid: _Figure,
) -> "Laplace | Gaussian":
    from discreet.mechanisms import Gaussian

    cls = kind_of(kind)
    if (scale is None) == (epsilon is None and rho is None):
        raise typer.BadParameter("give --scale, or a promise: --epsilon (with --delta) or --rho")
    if scale is None:
        return calibrated(cls, sensitivity, epsilon, delta, rho, grid, None)
    return cls(sigma=scale, grid=grid) if cls is Gaussian else cls(scale, grid=grid)


def _print_draws(mechanism: "Laplace | Gaussian", draws: int, as_json: bool) -> None:
    import numpy as np

    if not 1 <= draws <= _MOST:
        raise typer.BadParameter(f"--draws must be between 1 and {_MOST:,}, not {draws}")
    many = mechanism.together(min(draws, _BLOCK))
    zeros = np.zeros(min(draws, _BLOCK), np.int64 if mechanism.grid is None else np.float64)
    if as_json:
        blocks = [many.release(zeros[: draws - start]).tolist() for start in range(0, draws, _BLOCK)]
        typer.echo(json.dumps([value for block in blocks for value in block]))
        return
    for start in range(0, draws, _BLOCK):
        typer.echo("\n".join(map(str, many.release(zeros[: draws - start]).tolist())))
