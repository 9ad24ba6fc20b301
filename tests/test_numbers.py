"""Claims about numbers as they come in and go out: exact, or refused by name."""

import math
import numbers
import time
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.numbers import (
    decimal_text,
    digits_text,
    exact,
    fraction_text,
    nonnegative,
    positive,
    probability,
    short_text,
    whole,
)

F = Fraction
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
RATIONALS = st.fractions(max_denominator=10**30) | DOUBLES.map(Fraction) | st.integers().map(Fraction)
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


# --- exact ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (0.1, F(1, 10)),
        (1e-320, F(1, 10**320)),
        (5e-324, F(5, 10**324)),
        (1e308, F(10**308)),
        (-0.0, F(0)),
        (2.5, F(5, 2)),
        (-7, F(-7)),
        (F(1, 3), F(1, 3)),
        (Decimal("0.1"), F(1, 10)),
        (Decimal("0.1000000000000000055511151231257827"), F(1000000000000000055511151231257827, 10**34)),
        (Decimal("-0E+999999"), F(0)),
        (Decimal("1E+3900"), F(10**3900)),
        (np.float64(0.1), F(1, 10)),
        (np.float32(0.1), F(1, 10)),
        (np.float32(1e-45), F(1, 10**45)),
        (np.longdouble("0.1"), F(1, 10)),
        (10**3900, F(10**3900)),
    ],
)
def test_a_number_is_the_rational_it_is_written_as(value: Any, meant: Fraction) -> None:
    assert exact(value, "x") == meant
    assert type(exact(value, "x")) is Fraction


@given(DOUBLES)
def test_a_float_is_its_shortest_decimal_and_reads_back(value: float) -> None:
    assert exact(value, "x") == F(repr(value))
    assert float(exact(value, "x")) == value
    assert exact(np.float64(value), "x") == exact(value, "x")


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_single_float_is_its_own_shortest_decimal(value: float) -> None:
    single = np.float32(value)
    meant = exact(single, "x")
    assert np.float32(float(meant)) == single
    assert meant == F(str(single))


@given(RATIONALS)
def test_rationals_keep_their_value(number: Fraction) -> None:
    assert exact(number, "x") == number


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_decimals_keep_their_value(number: Decimal) -> None:
    assert exact(number, "x") == F(number)


class Ratio(numbers.Rational):
    """A rational made of NumPy's integers, as other libraries' are made of integers of their own."""

    numerator = property(lambda self: np.int64(3))
    denominator = property(lambda self: np.int64(2))


Ratio.__abstractmethods__ = frozenset()


def test_a_rational_of_another_library_becomes_one_of_plain_integers() -> None:
    foreign: Any = Ratio
    number = exact(foreign(), "x")
    assert number == F(3, 2)
    assert type(number.numerator) is type(number.denominator) is int


def test_a_decimal_of_a_million_digits_is_refused_before_it_is_converted() -> None:
    started = time.monotonic()
    with pytest.raises(InvalidInput, match="more digits than anyone needs"):
        exact(Decimal("1." + "3" * 1_000_000), "x")
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("kind", INTEGERS)
def test_numpy_integers_of_every_width_keep_their_ends(kind: Any) -> None:
    for end in (np.iinfo(kind).min, np.iinfo(kind).max):
        assert exact(kind(end), "x") == F(int(end))
        assert whole(kind(np.iinfo(kind).max), "x") == int(np.iinfo(kind).max)


def test_print_options_do_not_change_what_a_number_is() -> None:
    with np.printoptions(precision=2, floatmode="fixed"):
        assert exact(np.float32(0.12345), "x") == F(12345, 100000)
        assert exact(np.float64(0.12345), "x") == F(12345, 100000)


NOT_NUMBERS = [
    True,
    False,
    np.bool_(True),
    "1",
    "0.1",
    b"1",
    None,
    1j,
    np.complex128(1),
    [1],
    (1,),
    np.array(1.0),
    np.array([1, 2]),
    np.timedelta64(5),
    np.timedelta64(5, "ns"),
    np.timedelta64("NaT"),
    object,
]


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
def test_what_is_no_number_is_refused_by_name_and_kind(value: Any) -> None:
    for read in (exact, positive, nonnegative, probability, whole):
        with pytest.raises(InvalidInput, match=r"epsilon must be a (whole )?number") as refusal:
            read(value, "epsilon")
        assert type(value).__name__ in str(refusal.value)


def test_a_half_float_is_refused_because_it_cannot_hold_a_hundredth() -> None:
    with pytest.raises(InvalidInput, match=r"sigma must be a number .* not float16"):
        exact(np.float16(0.01), "sigma")


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        np.float32("nan"),
        np.longdouble("inf"),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("-Infinity"),
    ],
    ids=repr,
)
def test_what_is_not_finite_is_refused_by_name(value: Any) -> None:
    for read in (exact, positive, nonnegative, probability):
        with pytest.raises(InvalidInput, match=r"delta must be finite, not"):
            read(value, "delta")


@pytest.mark.parametrize(
    "value",
    [
        10**5000,
        -(10**5000),
        F(1, 10**5000),
        F(10**5000, 3),
        Decimal("1E+999999999999"),
        Decimal("-1E-999999999999"),
        Decimal((0, (1,) * 9000, -4500)),
    ],
    ids=["large", "negative", "small", "quotient", "exponent", "negative exponent", "digits"],
)
def test_numbers_of_thousands_of_digits_are_refused_at_once(value: Any) -> None:
    with pytest.raises(InvalidInput, match="rho has more digits than anyone needs: at most 4,000"):
        exact(value, "rho")


@pytest.mark.skipif(np.finfo(np.longdouble).maxexp < 16000, reason="no wider float here")
def test_wide_floats_are_read_in_full_and_limited_like_the_rest() -> None:
    assert exact(np.longdouble("1e3900"), "x") == F(10**3900)
    for text in ("1e4900", "1e-4900"):
        with pytest.raises(InvalidInput, match="x has more digits"):
            exact(np.longdouble(text), "x")


# --- ranges ---------------------------------------------------------------------------------------


@given(RATIONALS)
def test_each_reader_takes_its_range_and_nothing_else(number: Fraction) -> None:
    readers: list[tuple[Callable[[Any, str], Fraction], bool]] = [
        (positive, number > 0),
        (nonnegative, number >= 0),
        (probability, 0 <= number <= 1),
    ]
    for read, belongs in readers:
        if belongs:
            assert read(number, "figure") == number
        else:
            with pytest.raises(InvalidInput, match=r"^figure must"):
                read(number, "figure")


def test_the_edges_of_each_range() -> None:
    tiny = F(1, 10**3000)
    assert positive(tiny, "x") == tiny
    assert nonnegative(-0.0, "x") == 0
    assert probability(0, "x") == 0
    assert probability(1, "x") == 1
    with pytest.raises(InvalidInput, match="x must be above 0, not 0"):
        positive(0, "x")
    with pytest.raises(InvalidInput, match="x must not be negative"):
        nonnegative(-tiny, "x")
    with pytest.raises(InvalidInput, match="x must be a probability, from 0 to 1"):
        probability(1 + tiny, "x")


def test_whole_numbers_are_integers_of_at_least_the_least() -> None:
    assert whole(0, "n") == 0
    assert type(whole(np.int16(7), "n")) is int
    for value, least, message in [
        (-1, 0, "n must be at least 0, not -1"),
        (0, 1, "n must be at least 1, not 0"),
        (10**5000, 0, "n has more digits"),
        (3.0, 0, "n must be a whole number, not float: 3.0"),
        (F(3), 0, "n must be a whole number, not Fraction"),
        (Decimal(3), 0, "n must be a whole number, not Decimal"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            whole(value, "n", least=least)  # type: ignore[arg-type]


# --- texts ----------------------------------------------------------------------------------------


@given(RATIONALS, st.integers(1, 40), st.booleans())
def test_digits_are_on_the_side_asked_for_and_no_further_than_one_in_the_last_place(
    number: Fraction, digits: int, up: bool
) -> None:
    shown = F(digits_text(number, up=up, digits=digits))
    assert (shown >= number) if up else (shown <= number)
    assert abs(shown - number) * 10 ** (digits - 1) < abs(number) or shown == number
    assert shown == 0 or _significant(shown) <= digits


def _significant(number: Fraction) -> int:
    context = Context(prec=60)
    decimal = context.divide(Decimal(number.numerator), Decimal(number.denominator))
    return len(context.normalize(decimal).as_tuple().digits)


@given(DOUBLES, st.booleans())
def test_digits_of_a_float_bound_its_binary_value(value: float, up: bool) -> None:
    shown = F(digits_text(value, up=up))
    assert (shown >= F(value)) if up else (shown <= F(value))


def test_a_threads_decimal_context_has_no_say_in_what_is_shown() -> None:
    with localcontext(Context(prec=2)):
        assert digits_text(F(271828, 100000), up=True) == "2.72"
        assert digits_text(F(271828, 100000), up=False) == "2.71"
        assert decimal_text(Decimal("2.718281828")) == "2.718281828"


def test_a_text_that_rounds_to_nearest_would_be_caught() -> None:
    nearest = f"{float(F(2714, 1000)):.3g}"
    assert F(nearest) < F(2714, 1000)
    assert F(digits_text(F(2714, 1000), up=True)) >= F(2714, 1000)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Decimal(0), "0"),
        (Decimal("0.00001"), "0.00001"),
        (Decimal("0.000001"), "1e-6"),
        (Decimal("1000000"), "1000000"),
        (Decimal("10000000"), "1e+7"),
        (Decimal("1.50"), "1.5"),
        (Decimal("-2.5"), "-2.5"),
    ],
)
def test_decimals_are_written_out_until_that_is_long(number: Decimal, text: str) -> None:
    assert decimal_text(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (F(1, 10), "0.1"),
        (F(3), "3"),
        (F(-3), "-3"),
        (F(1, 3), "1/3"),
        (F(10**300), "1e+300"),
        (F(1, 10**300), "1e-300"),
        (F(10**15), "1000000000000000"),
        (F(10**400), "1" + "0" * 400),
    ],
)
def test_rationals_are_written_the_way_a_person_would(number: Fraction, text: str) -> None:
    assert fraction_text(number) == text


@given(RATIONALS)
def test_what_is_written_reads_back_as_the_same_rational(number: Fraction) -> None:
    assert F(fraction_text(number)) == number


def test_rationals_beyond_what_python_writes_are_described() -> None:
    assert fraction_text(F(-(10**5000))) == "about -10**5000"
    assert fraction_text(F(1, 10**5000)) == "about 10**-5000"


def test_short_text_marks_what_it_cuts_and_rounds_up() -> None:
    assert short_text(Fraction(1, 3)) == "1/3"
    assert short_text(Fraction(103, 100)) == "1.03"
    long = Fraction(920753626921, 1099511627776)
    assert short_text(long) == "~0.837421"
    assert Fraction(short_text(long)[1:]) >= long
