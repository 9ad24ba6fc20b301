"""What ``solve`` and ``noise`` share: naming a mechanism's noise on a command line, and saying what it is."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from discreet.mechanisms import Gaussian, Laplace

    Noise = Laplace | Gaussian

__all__ = ["about", "calibrated", "kind_of", "show"]

_LEVELS = (0.5, 0.95, 0.999)


def kind_of(name: str) -> type[Noise]:
    """Return the class of noise of this name."""
    from discreet.mechanisms import Gaussian, Laplace

    kinds: dict[str, type[Noise]] = {"laplace": Laplace, "gaussian": Gaussian}
    if name.lower() not in kinds:
        raise typer.BadParameter(f"{name!r} is not a kind of noise: write laplace or gaussian")
    return kinds[name.lower()]


def calibrated(
    kind: type[Noise],
    sensitivity: Fraction,
    epsilon: Fraction | None,
    delta: Fraction | None,
    rho: Fraction | None,
    grid: Fraction | None,
    size: int | None,
) -> Noise:
    """Return the least noise that keeps the promise that was typed; a delta without epsilon only reads it."""
    if epsilon is not None and rho is not None:
        raise typer.BadParameter("give one promise: --epsilon (with --delta) or --rho")
    return kind.calibrate(
        epsilon=epsilon,
        delta=delta if epsilon is not None else None,
        rho=rho,
        sensitivity=sensitivity,
        grid=grid,
        size=size,
    )


def about(
    noise: Noise,
    sensitivity: Fraction,
    delta: Fraction | None,
    size: int,
    reach: Fraction | None = None,
) -> dict[str, Any]:
    """Return what there is to know about noise, as plain values; floats err on the safe side."""
    from discreet.errors import InvalidInput
    from discreet.mechanisms import Laplace
    from discreet.privacy.reals import enclose

    def up(number: Fraction) -> float:
        return enclose(lambda: number).upper

    loss = noise.loss(sensitivity)
    figures: dict[str, Any] = {"mechanism": type(noise).__name__}
    if isinstance(noise, Laplace):
        figures |= {"scale": up(noise.scale), "epsilon": up(noise.guarantee(sensitivity).epsilon)}
    else:
        figures |= {"variance": up(noise.variance), "sigma": noise.sigma}
        figures |= {"rho": up(noise.guarantee(sensitivity).rho)}
    figures |= {
        "grid": 1 if noise.grid is None else up(noise.grid),
        "sensitivity": up(sensitivity),
        "size": size,
    }
    if delta:
        figures |= {"delta": up(delta), "epsilon_at_delta": loss.epsilon(delta)}
    figures["expected_error"] = noise.expected_error()
    if any(figure == math.inf for figure in figures.values()):
        raise InvalidInput("these figures are beyond any float: choose less extreme ones")
    if reach is not None:
        figures["reaches"] = {"error": up(reach), "chance": noise.tail(reach, size=size)}
    figures["error"] = {str(level): noise.error(level, size=size) for level in _LEVELS}
    return figures


def show(figures: dict[str, Any]) -> None:
    """Print what `about` returns as a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="cyan")
    table.add_column()
    for name, text in _lines(figures):
        table.add_row(name, text)
    Console(highlight=False).print(table)


def _lines(figures: dict[str, Any]) -> list[tuple[str, str]]:
    several = f", the largest of {figures['size']}" if figures["size"] > 1 else ""
    width = "scale" if "scale" in figures else "sigma"
    lines = [
        (
            "noise",
            f"{figures['mechanism']}, {width} {_up(figures[width])}, in steps of {_up(figures['grid'])}",
        )
    ]
    unit = "epsilon" if "epsilon" in figures else "rho"
    lines.append((unit, f"{_up(figures[unit])}, for a sensitivity of {_up(figures['sensitivity'])}"))
    if "delta" in figures:
        lines.append((f"epsilon at delta {_up(figures['delta'])}", _up(figures["epsilon_at_delta"])))
    lines.append(("expected size", _up(figures["expected_error"])))
    if "reaches" in figures:
        asked = figures["reaches"]
        lines.append(
            (f"reaches {_up(asked['error'])}", f"with a chance of at most {_up(asked['chance'])}{several}")
        )
    for level, error in figures["error"].items():
        lines.append((f"{100 * float(level):g}% of the time", f"within {_up(error)}{several}"))
    return lines


def _up(figure: float) -> str:
    """Write six digits, rounded up once: a float stands for its shortest decimal."""
    from discreet.numbers import digits_text, exact

    return digits_text(exact(figure, "figure"), up=True, digits=6)
