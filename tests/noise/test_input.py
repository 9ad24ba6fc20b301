"""Bad input is refused with a reason, odd but good input works, and nothing hangs."""

import os
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet import noise
from discreet.errors import InvalidInput

NOT_NUMBERS = [
    float("nan"), float("inf"), -float("inf"), Decimal("NaN"), Decimal("Infinity"), np.float64("nan"), "0.1",
    True, np.True_, np.float16(0.5), 1 + 0j, None, np.array([1.0], object), np.array(1.0), [1], b"1",
]  # fmt: skip

TAKES_POSITIVE: dict[str, Callable[..., Any]] = {
    "discrete_laplace": noise.discrete_laplace,
    "discrete_gaussian": noise.discrete_gaussian,
    "geometric": noise.geometric,
    "exponential_ranking": lambda scale, size=None: noise.exponential_ranking([1, 2], scale, size=size),
}
TAKES_A_NUMBER = TAKES_POSITIVE | {"bernoulli": noise.bernoulli, "bernoulli_exp": noise.bernoulli_exp}


@pytest.mark.parametrize("sample", TAKES_A_NUMBER.values(), ids=TAKES_A_NUMBER)
@pytest.mark.parametrize("value", NOT_NUMBERS, ids=lambda value: f"{type(value).__name__} {value}")
def test_what_is_no_number_is_refused(sample: Callable[..., Any], value: Any) -> None:
    with pytest.raises(InvalidInput, match="must be"):
        sample(value)


@pytest.mark.parametrize("sample", TAKES_POSITIVE.values(), ids=TAKES_POSITIVE)
@pytest.mark.parametrize("value", [0, 0.0, -0.0, -1, Fraction(-1, 3), -1e-300])
def test_a_scale_is_above_zero(sample: Callable[..., Any], value: Any) -> None:
    with pytest.raises(InvalidInput, match="must be above 0"):
        sample(value)


def test_a_probability_is_between_0_and_1() -> None:
    for p in (-0.1, 1.0000001, Fraction(-1, 10**30), Fraction(10**30 + 1, 10**30), 2):
        with pytest.raises(InvalidInput, match="from 0 to 1"):
            noise.bernoulli(p)
    with pytest.raises(InvalidInput, match="must not be negative"):
        noise.bernoulli_exp(-0.1)


@pytest.mark.parametrize("n", [0, -1, 1.0, "3", True, None, Fraction(3), float("nan")])
def test_uniform_is_below_a_whole_number(n: Any) -> None:
    with pytest.raises(InvalidInput):
        noise.uniform(n)


SAMPLERS: dict[str, Callable[..., Any]] = {
    "uniform": lambda size: noise.uniform(10, size),
    "uniform, big": lambda size: noise.uniform(10**30, size),
    "bernoulli": lambda size: noise.bernoulli(0.5, size),
    "bernoulli_exp": lambda size: noise.bernoulli_exp(0.5, size),
    "geometric": lambda size: noise.geometric(5, size),
    "discrete_laplace": lambda size: noise.discrete_laplace(5, size),
    "discrete_laplace, big": lambda size: noise.discrete_laplace(2**80, size),
    "discrete_gaussian": lambda size: noise.discrete_gaussian(5, size),
    "exponential_ranking": lambda size: noise.exponential_ranking([0, 0, 0], size=size),
}
every_sampler = pytest.mark.parametrize("sample", SAMPLERS.values(), ids=SAMPLERS)


@every_sampler
@pytest.mark.parametrize(
    "size",
    [-1, 2.0, "3", True, (2, -1), (2, 1.5), ((2, 3), 4), [2, 3], 10**30, (0, 10**30), 2**62, np.array([2])],
    ids=str,
)
def test_a_size_is_whole_numbers(sample: Callable[..., Any], size: Any) -> None:
    with pytest.raises(InvalidInput, match="size"):
        sample(size)


@every_sampler
def test_a_size_of_more_dimensions_than_arrays_have_is_refused(sample: Callable[..., Any]) -> None:
    assert sample((1,) * 31).size == 1
    with pytest.raises(InvalidInput, match="size has 65 dimensions"):
        sample((1,) * 65)


NOT_SOURCES = [None, "SYSTEM", 5, noise.NotPrivate, np.random.default_rng(), random.SystemRandom(), os]
TAKES_A_SOURCE: dict[str, Callable[..., Any]] = {
    "uniform": lambda **how: noise.uniform(10, **how),
    "uniform, big": lambda **how: noise.uniform(10**30, **how),
    "bernoulli": lambda **how: noise.bernoulli(0.5, **how),
    "bernoulli_exp": lambda **how: noise.bernoulli_exp(0.5, **how),
    "geometric": lambda **how: noise.geometric(5, **how),
    "discrete_laplace": lambda **how: noise.discrete_laplace(5, **how),
    "discrete_gaussian": lambda **how: noise.discrete_gaussian(5, **how),
    "exponential_ranking": lambda **how: noise.exponential_ranking([1, 2], **how),
}


@pytest.mark.parametrize("sample", TAKES_A_SOURCE.values(), ids=TAKES_A_SOURCE)
@pytest.mark.parametrize("source", NOT_SOURCES, ids=lambda source: type(source).__name__)
def test_what_is_no_source_is_refused(sample: Callable[..., Any], source: Any) -> None:
    for size in (None, 0, 3):
        with pytest.raises(InvalidInput, match=r"source must be noise\.SYSTEM"):
            sample(size=size, source=source)


@every_sampler
@pytest.mark.parametrize("size", [0, 1, (), (2, 3), (0, 5), (3, 0, 2), np.int64(4), (np.int32(2),)], ids=str)
def test_every_shape_is_given(sample: Callable[..., Any], size: Any) -> None:
    inner = (1,) if sample is SAMPLERS["exponential_ranking"] else ()
    draws = sample(size)
    assert isinstance(draws, np.ndarray)
    assert draws.shape == (size if isinstance(size, tuple) else (size,)) + inner


def test_every_number_is_taken_for_what_it_says() -> None:
    for value in (
        3,
        3.0,
        0.1,
        Fraction(22, 7),
        Decimal("0.01"),
        np.int64(3),
        np.float64(0.5),
        np.float32(0.1),
    ):
        assert isinstance(noise.discrete_laplace(value), int)
    from discreet.noise.blocks import block_sampler

    block_sampler.cache_clear()
    for value in (0.1, np.float32(0.1), Decimal("0.1"), Fraction(1, 10)):
        noise.discrete_laplace(value)
    assert block_sampler.cache_info().misses == 1


@pytest.mark.parametrize(
    "scale",
    [
        1e-300,
        5e-324,
        1e308,
        10**400,
        Fraction(1, 10**400),
        Fraction(10**600 + 7, 10**599 + 9),
        Fraction(2**4000, 3),
    ],
    ids=["1e-300", "5e-324", "1e308", "10**400", "10**-400", "long, near 10", "2**4000/3"],
)
def test_extreme_scales_work(scale: Any) -> None:
    for sample in (noise.discrete_laplace, noise.discrete_gaussian, noise.geometric):
        draws = [sample(scale), *sample(scale, 20).tolist()]
        assert all(type(x) is int for x in draws)
        assert any(draws) == (scale > 1e-3)


@pytest.mark.parametrize("scale", [2**5000, Fraction(1, 2**5000), Fraction(10**2000 + 1, 10**2000)])
def test_a_scale_too_long_to_handle_is_refused(scale: Any) -> None:
    for sample in (noise.discrete_laplace, noise.discrete_gaussian, noise.geometric):
        with pytest.raises(InvalidInput, match="Round it up"):
            sample(scale)


def test_long_chances_take_no_time() -> None:
    assert noise.bernoulli_exp(10**3900) is False
    assert noise.bernoulli_exp(Fraction(1, 10**3900)) is True
    assert noise.bernoulli(Fraction(10**3900 - 1, 10**3900)) is True
    assert not noise.bernoulli_exp(10**3900, 1000).any()


@pytest.mark.parametrize(
    "offsets",
    [
        5,
        None,
        "12",
        b"12",
        bytearray(b"12"),
        {1, 2},
        [[1, 2]],
        np.zeros((2, 2)),
        np.array(5),
        [1, float("nan")],
        ["1"],
        iter([1]),
    ],
    ids=lambda offsets: type(offsets).__name__,
)
def test_offsets_are_a_row_of_numbers(offsets: Any) -> None:
    with pytest.raises(InvalidInput, match="offset"):
        noise.exponential_ranking(offsets)


@pytest.mark.parametrize("top", [0, 4, 1.0, True])
def test_top_is_at_most_all(top: Any) -> None:
    with pytest.raises(InvalidInput, match="top"):
        noise.exponential_ranking([1, 2, 3], top=top)
    with pytest.raises(InvalidInput, match="top"):
        noise.exponential_ranking([])
