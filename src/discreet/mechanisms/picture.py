"""A picture of noise: its law, the band it stays in, and the law on a neighbour. Needs matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import Unsupported
from discreet.numbers import digits_text, exact

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from discreet.mechanisms.additive import AdditiveNoise
    from discreet.numbers import Exactable

__all__ = ["draw_noise"]

_INK, _QUIET, _BAND, _OTHER = "#1b3a4b", "#8a8f98", "#7fb7be", "#c8553d"
_POINTS = 400
# With at most this many steps to show, each is drawn as a bar.
_BARS = 120


def draw_noise(noise: AdditiveNoise, confidence: Exactable, moved: float, size: int = 1) -> Figure:
    """Draw the law of the noise, the same moved as far as a neighbour can, and its tail."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise Unsupported(
            "plots need matplotlib: pip install matplotlib, or discreet with its extra, plot"
        ) from missing
    figure = Figure(figsize=(10, 4), layout="constrained")
    law, tail = figure.subplots(1, 2, width_ratios=[3, 2])
    _draw_law(law, noise, confidence, moved, size)
    _draw_tail(tail, noise, confidence, size)
    for axes in (law, tail):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=_QUIET)
    figure.suptitle(_title(noise), color=_INK, fontweight="bold")
    return figure


def _title(noise: AdditiveNoise) -> str:
    name = "scale" if hasattr(noise, "scale") else "variance"
    grid = "" if noise.grid is None else f", in steps of {digits_text(noise.grid, up=True, digits=4)}"
    return (
        f"{type(noise).__name__} noise, {name} {digits_text(getattr(noise, name), up=True, digits=4)}{grid}"
    )


def _draw_law(axes: Axes, noise: AdditiveNoise, confidence: Exactable, moved: float, size: int) -> None:
    step = 1.0 if noise.grid is None else float(noise.grid)
    reach = float(noise.error(0.9995, size=size)) + step
    stride = max(1, round(2 * reach / step / _POINTS))
    steps = np.arange(-int(reach / step), int(reach / step) + 1, stride)
    # Of one step, and per step: what is between the steps shown is not summed.
    chances = np.array([float(noise.chance(int(at))) for at in steps])
    x, band = steps * step, float(noise.error(confidence, size=size))
    inside = np.abs(x) <= band
    percent = digits_text(100 * exact(confidence, "confidence"), up=False)
    if steps.size <= _BARS:
        axes.bar(x[inside], chances[inside], 0.8 * step, color=_BAND, label="within the error")
        axes.bar(x[~inside], chances[~inside], 0.8 * step, color=_QUIET, alpha=0.4)
    else:
        axes.fill_between(x, chances, where=inside, color=_BAND, alpha=0.6, lw=0, label="within the error")
    axes.plot(x, chances, color=_INK, lw=1.6, label="noise")
    axes.plot(x + moved, chances, color=_OTHER, lw=1.2, ls="--", label="on a neighbour")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("noise")
    axes.set_ylabel("chance of each step")
    whose = "the noise is" if size == 1 else f"the time all {size} noises are"
    axes.set_title(f"{percent}% of {whose} within {band:g}", fontsize=10, color=_INK)
    axes.legend(frameon=False, loc="upper right")


def _draw_tail(axes: Axes, noise: AdditiveNoise, confidence: Exactable, size: int) -> None:
    band = float(noise.error(confidence, size=size))
    step = 1.0 if noise.grid is None else float(noise.grid)
    most = max(float(noise.error(1 - 1e-6, size=size)), 2 * step)
    t = np.unique(np.round(np.linspace(0, most / step, _POINTS // 2))) * step
    axes.step(t, [noise.tail(float(at), size=size) for at in t], where="pre", color=_INK, lw=1.8)
    axes.set_yscale("log")
    failure = float(1 - exact(confidence, "confidence"))
    axes.plot([0, band, band], [failure, failure, 1e-6], color=_BAND, lw=1.5)
    axes.set_ylim(1e-6, 1.5)
    axes.set_xlim(0, most)
    axes.set_xlabel("t")
    axes.set_title(
        "How likely noise reaches t" if size == 1 else f"How likely any of {size} reaches t",
        fontsize=10,
        color=_INK,
    )
