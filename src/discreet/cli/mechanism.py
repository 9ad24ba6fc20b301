"""What ``solve`` and ``noise`` share: naming a mechanism's noise on a command line, and saying what it is."""

from __future__ import annotations

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
    """Return the least noise that keeps the promise that was typed."""
    return kind.calibrate(
        epsilon=epsilon, delta=delta, rho=rho, sensitivity=sensitivity, grid=grid, size=size
    )


def about(noise: Noise, sensitivity: Fraction, delta: Fraction | None, size: int) -> dict[str, Any]:
    """Return what there is to know about noise, as plain values; floats err on the safe side."""
    from discreet.mechanisms import Laplace
    from discreet.privacy.reals import enclose

    loss, width = noise.loss(sensitivity), noise.scale if isinstance(noise, Laplace) else noise.variance
    figures: dict[str, Any] = {
        "mechanism": type(noise).__name__,
        "scale" if isinstance(noise, Laplace) else "variance": enclose(lambda: width).upper,
        "grid": 1 if noise.grid is None else enclose(lambda: noise.grid).upper,  # type: ignore[arg-type, return-value]
        "sensitivity": float(sensitivity),
        "size": size,
    }
    if isinstance(noise, Laplace):
        figures["epsilon"] = loss.max_divergence
    else:
        figures["rho"] = enclose(lambda: noise.guarantee(sensitivity).rho).upper
    if delta:
        figures["delta"] = enclose(lambda: delta).upper
        figures["epsilon_at_delta"] = loss.epsilon(delta)
    figures["expected_error"] = noise.expected_error()
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
    from discreet.numbers import digits_text

    def up(key: str, digits: int = 6) -> str:
        return digits_text(figures[key], up=True, digits=digits)

    several = f", the largest of {figures['size']}" if figures["size"] > 1 else ""
    width = "scale" if "scale" in figures else "variance"
    lines = [("noise", f"{figures['mechanism']}, {width} {up(width)}, in steps of {up('grid')}")]
    if "epsilon" in figures:
        lines.append(("epsilon", f"{up('epsilon')}, for a sensitivity of {up('sensitivity')}"))
    else:
        lines.append(("rho", f"{up('rho')}, for a sensitivity of {up('sensitivity')}"))
    if "delta" in figures:
        lines.append((f"epsilon at delta {up('delta', 3)}", up("epsilon_at_delta")))
    lines.append(("expected size", up("expected_error")))
    for level, error in figures["error"].items():
        lines.append(
            (
                f"{100 * float(level):g}% of the time",
                f"within {digits_text(error, up=True, digits=6)}{several}",
            )
        )
    return lines
