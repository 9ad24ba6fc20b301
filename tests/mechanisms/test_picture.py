"""What the picture of noise shows is what the noise does."""

import builtins
from typing import Any

import pytest

from discreet.errors import Unsupported
from discreet.mechanisms.additive import AdditiveNoise
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace

NOISES: list[AdditiveNoise] = [
    Laplace(3),
    Laplace(0.05),
    Gaussian(sigma=4),
    Laplace(1000),
    Laplace.calibrate(epsilon=1, sensitivity=0.3),
    Gaussian(sigma=2, grid=0.5, size=7),
]


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_the_band_and_the_tail_are_those_of_the_noise(noise: AdditiveNoise) -> None:
    figure: Any = noise.plot(confidence=0.9, sensitivity=2)
    law, tail = figure.axes
    assert f"within {float(noise.error(0.9)):g}" in law.get_title()
    (here, there) = law.get_lines()
    assert there.get_xdata() == pytest.approx(here.get_xdata() + 2)
    at, chance = tail.get_lines()[0].get_data()
    for x, y in list(zip(at, chance, strict=True))[::37]:
        assert noise.tail_bounds(float(x)).lower <= y <= noise.tail(float(x)) * (1 + 1e-9)


@pytest.mark.parametrize("noise", [Laplace(3), Gaussian(sigma=4), Laplace(1, grid=0.5)], ids=repr)
def test_chance(noise: AdditiveNoise) -> None:
    assert sum(noise.chance(x) for x in range(-150, 151)) == pytest.approx(1, abs=1e-12)
    assert noise.chance(3) == noise.chance(-3)


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def refuse(name: str, *rest: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(Unsupported, match="matplotlib"):
        Laplace(1).plot()
