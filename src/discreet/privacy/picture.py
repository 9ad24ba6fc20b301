"""Pictures of what a guarantee means. Needs matplotlib."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.errors import Unsupported
from discreet.numbers import digits_text
from discreet.privacy.posterior import posterior_after

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from discreet.privacy.explain import Explanation

__all__ = ["draw_explanation"]

_INK, _QUIET, _BAND = "#1b3a4b", "#8a8f98", "#7fb7be"
_POINTS = 61


def draw_explanation(explanation: Explanation) -> Figure:
    """Draw three views of one guarantee, side by side."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise Unsupported(
            "plots need matplotlib: pip install matplotlib, or discreet with its extra, plot"
        ) from missing
    figure = Figure(figsize=(13, 4.2), layout="constrained")
    band, tradeoff, belief = figure.subplots(1, 3)
    _draw_band(band, explanation)
    _draw_tradeoff(tradeoff, explanation)
    _draw_belief(belief, explanation)
    figure.suptitle(repr(explanation.guarantee), color=_INK, fontweight="bold")
    for axes in (band, tradeoff, belief):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=_QUIET)
    return figure


def _draw_band(axes: Axes, explanation: Explanation) -> None:
    """The density of one answer, and where its neighbour's must lie."""
    factor = math.exp(min(explanation.promise.epsilon, Fraction(50)))
    x = np.linspace(-4.0, 4.0, 401)
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    axes.fill_between(
        x, density / factor, density * factor, color=_BAND, alpha=0.45, lw=0, label=explanation.beside()
    )
    axes.plot(x, density, color=_INK, lw=2, label="with you")
    axes.set_ylim(0, max(1.25, min(factor, 3.0) * 1.1) * density.max())
    axes.set_yticks([])
    axes.set_xticks([])
    axes.set_xlabel("what is published")
    title = f"The chance of any result: within {explanation.factor()} times"
    if explanation.promise.delta:
        title += f", plus {digits_text(explanation.promise.delta, up=True)}"
    axes.set_title(title, fontsize=10, color=_INK)
    axes.legend(frameon=False, loc="upper right")


def _draw_tradeoff(axes: Axes, explanation: Explanation) -> None:
    """The false-negative rate that an attacker cannot beat at each false-positive rate."""
    rates = [Fraction(i, _POINTS - 1) for i in range(_POINTS)]
    missed = [float(explanation.missed(rate)) for rate in rates]
    shown = [float(rate) for rate in rates]
    axes.fill_between(shown, missed, 0, color=_QUIET, alpha=0.15, lw=0)
    axes.plot(shown, missed, color=_INK, lw=2)
    axes.plot([0, 1], [1, 0], color=_QUIET, lw=1, ls="--")
    axes.text(0.52, 0.52, "blind guessing", color=_QUIET, rotation=-45, rotation_mode="anchor", fontsize=8)
    axes.text(0.06, 0.05, "out of any attacker's reach", color=_QUIET, fontsize=8)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_xlabel("false alarms")
    axes.set_ylabel("members missed")
    axes.set_title("The best that any attacker can do", fontsize=10, color=_INK)


def _draw_belief(axes: Axes, explanation: Explanation) -> None:
    """Posterior against prior."""
    priors = [Fraction(i, _POINTS - 1) for i in range(_POINTS)]
    after = [posterior_after(explanation.moved, prior) for prior in priors]
    shown = [float(prior) for prior in priors]
    axes.fill_between(shown, [b.low for b in after], [b.high for b in after], color=_BAND, alpha=0.45, lw=0)
    axes.plot(shown, [b.high for b in after], color=_INK, lw=2)
    axes.plot(shown, [b.low for b in after], color=_INK, lw=2)
    axes.plot([0, 1], [0, 1], color=_QUIET, lw=1, ls="--")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_xlabel("belief about you before")
    axes.set_ylabel("belief about you after")
    title = "How far a belief can move"
    if explanation.failure:
        title += f" (but for a chance of {digits_text(explanation.failure, up=True)})"
    axes.set_title(title, fontsize=10, color=_INK)
