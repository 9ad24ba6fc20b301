"""Claims about the picture: it draws for every promise, without a warning, and shows what is said."""

import builtins
import time
from typing import Any

import numpy as np
import pytest

from discreet.errors import Unsupported
from discreet.privacy.explain import explain
from discreet.privacy.guarantees import Guarantee
from tests.privacy.test_explain import GUARANTEES

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=repr)
def test_every_promise_is_drawn_without_a_warning(guarantee: Guarantee) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    started = time.monotonic()
    figure = explain(guarantee).plot()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    assert np.asarray(canvas.buffer_rgba()).std() > 0  # type: ignore[no-untyped-call]
    assert len(figure.axes) == 3
    assert all(axes.get_title() and axes.get_xlabel() for axes in figure.axes)
    assert repr(guarantee)[:20] in figure.get_suptitle()
    assert time.monotonic() - started < 20


def test_the_curves_are_those_of_the_figures() -> None:
    said = explain(1)
    _, tradeoff, belief = said.plot().axes
    rates, missed = (np.asarray(line, float) for line in tradeoff.lines[0].get_data())
    assert missed[0] == 1
    assert missed[-1] == 0
    at = int(np.argmin(np.abs(rates - 0.05)))
    assert missed[at] == pytest.approx(float(said.loss.tradeoff(float(rates[at]))), abs=1e-12)
    priors, high = (np.asarray(line, float) for line in belief.lines[0].get_data())
    middle = len(priors) // 2
    assert (priors[middle], high[middle]) == (0.5, said.loss.posterior(0.5).high)


def test_the_title_names_the_factor_and_never_a_smaller_one() -> None:
    band = explain(1000, delta=1e-6).plot().axes[0]
    assert "within 1.98e+434 times, plus 1e-6" in band.get_title()


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = builtins.__import__

    def missing(name: str, *args: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return ordinary(name, *args)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(Unsupported, match="pip install matplotlib"):
        explain(1).plot()
