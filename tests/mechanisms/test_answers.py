"""Answers are read without loss, rounded exactly, and nothing of them shows in a message or a type."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.mechanisms.answers import add, from_steps, read_answers, to_steps

GRIDS = [
    F(1),
    F(1, 2**20),
    F(1, 100),
    F(7, 3),
    F(2**40),
    F(10**20, 3),
    F(1, 10**30),
    F(2, 10**320),
    F(10**315),
]


def nearest(value: Any, grid: F) -> int:
    return math.floor(F(value) / grid + F(1, 2))


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
    st.sampled_from(GRIDS) | st.fractions(min_value=F(1, 10**9), max_value=10**9),
)
def test_to_steps_rounds_exactly(values: list[float], grid: F) -> None:
    steps = to_steps(read_answers(np.array(values)), grid)
    assert steps.tolist() == [nearest(value, grid) for value in values]


@given(st.integers(-(2**60), 2**60), st.sampled_from(GRIDS), st.sampled_from([-1, 0, 1]))
def test_to_steps_rounds_exactly_at_and_beside_ties(twice: int, grid: F, ulps: int) -> None:
    """Half a step from everywhere, where a product in doubles is most easily wrong."""
    try:
        value = float((2 * twice + 1) * grid / 2)
    except OverflowError:
        return
    value = math.nextafter(value, math.inf * ulps) if ulps else value
    if math.isfinite(value):
        assert to_steps(read_answers([value]), grid).tolist() == [nearest(value, grid)]


@given(st.floats(-1e6, 1e6), st.floats(-3, 3), st.sampled_from([F(1), F(1, 2), F(1, 100), F(2, 3)]))
def test_answers_at_most_d_steps_apart_come_out_at_most_the_ceiling_apart(
    x: float, d: float, grid: F
) -> None:
    one, other = (int(to_steps(read_answers(value), grid)[()]) for value in (x, x + d))
    assert abs(one - other) <= math.ceil(abs(F(x) - F(x + d)) / grid)


def test_rounding_halves_to_even_would_break_that() -> None:
    """The planted bug: 1/2 goes to 0 and 3/2 to 2, two steps for a distance of one."""
    assert round(1.5) - round(0.5) == 2
    assert nearest(1.5, F(1)) - nearest(0.5, F(1)) == 1


def exactly(number: Any) -> F:
    return F(*number.as_integer_ratio()) if hasattr(number, "as_integer_ratio") else F(int(number))


@pytest.mark.parametrize(
    ("answers", "whole", "scalar"),
    [
        (3, True, True),
        (-(10**40), True, True),
        (np.int8(3), True, True),
        (3.5, False, True),
        (3.0, False, True),
        (F(3), False, True),
        (Decimal("2.5"), False, True),
        (np.float32(0.1), False, True),
        (np.array(7), True, True),
        (np.array(7.0), False, True),
        ([1, 2, 3], True, False),
        ((1, 2.0), False, False),
        ([[1, 2], [3, 4]], True, False),
        ([10**30, 1], True, False),
        (np.arange(3, dtype=np.uint64) + 2**63, True, False),
        (np.ones((2, 3), np.float32), False, False),
        ([F(1, 3), Decimal(1), 0.5], False, False),
        (np.ones(2, np.longdouble), False, False),
        (range(3), True, False),
    ],
    ids=repr,
)
def test_read_answers(answers: Any, whole: bool, scalar: bool) -> None:
    read = read_answers(answers)
    assert (read.whole, read.scalar) == (whole, scalar)
    kept = np.array(answers, dtype=object).ravel().tolist()
    assert [F(value) for value in read.values.ravel().tolist()] == list(map(exactly, kept))
    assert read.values.shape == np.shape(np.array(answers, dtype=object))


REFUSED: dict[str, Any] = {
    "nan": float("nan"),
    "inf": [1.0, -math.inf],
    "nan in an array": np.array([4711.0, math.nan]),
    "decimal nan": Decimal("NaN"),
    "decimal of a million digits": Decimal("1e1000000"),
    "string": "4711",
    "strings": ["4711"],
    "bytes": b"4711",
    "bool": True,
    "bools": [True, False],
    "array of bools": np.array([True]),
    "float16": np.float16(1),
    "array of float16": np.ones(2, np.float16),
    "object array": np.array([4711, 2], object),
    "complex": 1 + 0j,
    "array of complex": np.ones(2, complex),
    "timedelta": np.timedelta64(4711),
    "array of text": np.array(["4711"]),
    "dates": np.array(["2026-01-01"], "datetime64[D]"),
    "masked": np.ma.masked_array([4711, 2], [True, False]),
    "empty list": [],
    "empty array": np.ones((0, 3)),
    "none": None,
    "ragged": [[4711], [1, 2]],
    "set": {4711},
    "mapping": {"a": 4711},
    "generator": (n for n in [4711]),
}


@pytest.mark.parametrize("answers", REFUSED.values(), ids=REFUSED)
def test_what_is_no_answer_is_refused_and_no_value_is_repeated(answers: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_answers(answers)
    assert "4711" not in str(refused.value)


def test_sums_do_not_overflow_and_their_type_tells_of_nothing_but_themselves() -> None:
    top = 2**63 - 1
    large = np.array([2**62 - 1], np.int64)
    huge = np.array([2**63], object)
    for steps in (large, huge):
        for noise in (np.array([-1]), np.array([2**63 - 1]), np.array([-(2**63)]), np.array([2**70], object)):
            total = int(steps[0]) + int(noise[0])
            found = add(steps, noise)
            assert found.tolist() == [total]
            assert (found.dtype == np.int64) == (-top - 1 <= total <= top)


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_from_steps(grid: F) -> None:
    steps = [0, 1, -7, 2**40 + 1, -(2**62)]
    exactly = [step * grid for step in steps]
    floats = from_steps(np.array(steps), grid, read_answers(np.ones(5)))
    wide = from_steps(np.array(steps, object), grid, read_answers(np.ones(5)))
    for values in (floats, wide):
        assert values.dtype == np.float64
        for value, true in zip(values.tolist(), exactly, strict=True):
            if abs(true) < F(10) ** 300:
                assert abs(F(value) - true) <= abs(true) / 2**51 + F(5e-324)
            else:
                assert math.isinf(value) or abs(F(value) - true) <= abs(true) / 2**51
        assert math.copysign(1, values[0]) == 1  # no negative zero
    assert from_steps(np.array(3), grid, read_answers(F(1, 3))) == 3 * grid


def test_ints_stay_ints() -> None:
    one = from_steps(np.array(5), F(1), read_answers(3))
    assert (one, type(one)) == (5, int)
    many: Callable[[Any], Any] = lambda values: from_steps(values, F(1), read_answers([1, 2]))  # noqa: E731
    assert many(np.array([5, 6])).dtype == np.int64
    assert from_steps(np.array([1.0]), F(1), read_answers([1.0])).dtype == np.float64


def layouts(values: Any) -> dict[str, Any]:
    """The same numbers, laid out in memory in every way there is."""
    wide = np.zeros((2 * values.shape[0], 3 * values.shape[1]))
    wide[::2, ::3] = values
    return {
        "row by row": np.ascontiguousarray(values),
        "column by column": np.asfortranarray(values),
        "transposed twice": values.T.copy().T,
        "with gaps": wide[::2, ::3],
        "backwards": values[::-1, ::-1].copy()[::-1, ::-1],
        "big-endian": values.astype(">f8"),
        "read-only": np.broadcast_to(values, values.shape),
    }


@pytest.mark.parametrize("grid", [F(1, 10), F(1, 3), F(7), F(1, 1 << 30), F(1, 10**30)], ids=str)
def test_to_steps_rounds_exactly_however_numbers_lie_in_memory(grid: F) -> None:
    """Values close to half a step are settled apart, and must land where they came from."""
    values = np.array([[123.45, 0.05, -7.25], [1e15, 2.5, 3.5]])
    steps = [[nearest(value, grid) for value in row] for row in values.tolist()]
    for name, laid_out in layouts(values).items():
        assert to_steps(read_answers(laid_out), grid).tolist() == steps, name
    column = np.broadcast_to(np.array([[0.05], [0.15]]), (2, 4))
    assert to_steps(read_answers(column), F(1, 10)).tolist() == [
        [nearest(value, F(1, 10)) for value in row] for row in column.tolist()
    ]


@pytest.mark.parametrize(
    "answers",
    [[np.ma.masked_array([1.0, 2.0], [True, False])], np.ones(2, ">f2"), [np.ma.masked]],
    ids=["a masked array in a list", "float16 of another byte order", "masked"],
)
def test_what_hides_in_another_form_is_refused_too(answers: Any) -> None:
    with pytest.raises(InvalidInput):
        read_answers(answers)
