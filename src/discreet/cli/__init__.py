"""The ``discreet`` command.

One file per command: ``cli/demo.py`` holds a function ``demo`` and is added to `app` below. A command's file
imports only typer at its top; what it works with is imported inside the function, so that ``discreet --help``
and shell completion stay quick however much the house grows.
"""

import sys
from typing import Annotated

import typer

from discreet import __version__
from discreet.cli.demo import demo
from discreet.cli.explain import explain
from discreet.cli.noise import noise
from discreet.cli.solve import solve
from discreet.errors import DiscreetError

__all__ = ["app", "main"]

app = typer.Typer(name="discreet", add_completion=False, pretty_exceptions_enable=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _discreet(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Ask a table about people without telling on any of them."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command()(demo)
app.command()(explain)
app.command()(solve)
app.command()(noise)


def main() -> None:
    """Run the command line; an error of ours is one red line and exit code 2, as a wrong option is."""
    try:
        app()
    except DiscreetError as error:
        # Plain text in one style: a message may quote brackets and braces that rich would read as markup.
        typer.secho(f"discreet: {error}", fg="red", err=True)
        sys.exit(2)
