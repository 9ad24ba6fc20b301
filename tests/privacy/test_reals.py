"""Claims about certified numbers: what is said to enclose encloses, read either way."""

import math
import threading
from fractions import Fraction

import flint
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import DiscreetError
from discreet.privacy.reals import (
    Bounds,
    Inexact,
    Real,
    as_ball,
    ball,
    certainly,
    enclose,
    lower_float,
    precision,
    upper_float,
)
from tests.privacy.truths import encloses, is_tight, mp, mpf, real

F = Fraction
DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
EXACT = st.fractions(max_denominator=10**30) | DOUBLES.map(Fraction) | DOUBLES.map(lambda x: F(repr(x)))


@given(EXACT)
def test_a_float_below_a_number_is_below_it_in_binary_and_as_a_decimal(number: Fraction) -> None:
    low, high = lower_float(ball(number)), upper_float(ball(number))
    for x in (low, high):
        assert not math.isnan(x)
    if math.isfinite(low):
        assert F(low) <= number
        assert F(repr(low)) <= number
    if math.isfinite(high):
        assert F(high) >= number
        assert F(repr(high)) >= number


@given(st.fractions(min_value=-(10**15), max_value=10**15, max_denominator=10**30))
def test_floats_around_a_number_are_a_few_apart(number: Fraction) -> None:
    with precision(128):
        low, high = lower_float(ball(number)), upper_float(ball(number))
    assert high - low <= 4 * math.ulp(max(abs(low), abs(high)))


def test_no_float_is_above_what_exceeds_them_all() -> None:
    assert lower_float(ball(10**400)) == 1.7976931348623157e308
    assert upper_float(ball(10**400)) == math.inf
    assert lower_float(ball(-(10**400))) == -math.inf
    assert upper_float(ball(F(1, 10**400))) == 5e-324
    assert lower_float(ball(F(1, 10**400))) == 0.0


def test_nothing_is_known_of_a_ball_without_bounds() -> None:
    nothing = arb(1) / arb(0)
    assert lower_float(nothing) == -math.inf
    assert upper_float(nothing) == math.inf


@given(st.fractions(min_value=-300, max_value=300, max_denominator=10**6))
def test_enclose_holds_the_exponential_and_is_tight(x: Fraction) -> None:
    bounds = enclose(lambda: ball(x).exp())
    assert encloses(bounds, mp.exp(real(x)))
    assert is_tight(bounds, 4)


@given(st.fractions(min_value=F(1, 10**12), max_value=1, max_denominator=10**40))
def test_enclose_raises_precision_until_cancellation_is_gone(x: Fraction) -> None:
    bounds = enclose(lambda: ball(x).exp() - 1 - ball(x))
    with mp.workdps(200):
        truth = mp.expm1(real(x)) - real(x)
    assert encloses(bounds, truth)
    assert is_tight(bounds, 4)


def test_a_rational_that_a_float_stands_for_is_that_float() -> None:
    assert enclose(lambda: F(7, 10)) == Bounds(0.7, 0.7)
    third = enclose(lambda: F(1, 3))
    assert third.lower < third.upper
    assert encloses(third, mpf(1) / 3)
    assert enclose(lambda: F(10**400)) == Bounds(1.7976931348623157e308, math.inf)


def test_enclose_does_not_take_a_ball_without_bounds_for_an_answer() -> None:
    tried: list[int] = []

    def unbounded_at_first() -> Real:
        tried.append(flint.ctx.prec)
        return arb(1) / arb(0) if len(tried) < 3 else arb(2).sqrt()

    assert encloses(enclose(unbounded_at_first), mp.sqrt(2))
    assert tried == sorted(set(tried))
    assert len(tried) == 3


def test_enclose_gives_up_on_a_zero_that_it_cannot_see_with_bounds_that_hold() -> None:
    low, high = enclose(lambda: arb(2).sqrt() ** 2 - 2)
    assert -1e-323 <= low <= 0 <= high <= 1e-323


@given(EXACT, EXACT)
def test_comparisons_are_decided_rightly(a: Fraction, b: Fraction) -> None:
    if abs(a) < 10**3 and abs(b) < 10**3 and a != b:
        assert certainly(lambda: (ball(a).exp(), ball(b).exp())) == (a > b)


def test_what_cannot_be_told_apart_is_said_to_be_so() -> None:
    with pytest.raises(Inexact, match="equal, or closer"):
        certainly(lambda: (arb(2).sqrt() ** 2, arb(2)))
    assert issubclass(Inexact, DiscreetError)


@given(EXACT)
def test_a_ball_contains_the_number_it_is_made_of(number: Fraction) -> None:
    with precision(300):
        assert ball(number).contains(as_ball(number))
        wanted = flint.fmpq(number.numerator, number.denominator)
        assert ball(number).contains(arb(wanted))


def test_precision_is_put_back_even_after_an_error() -> None:
    before = flint.ctx.prec
    seen: list[int] = []

    def fail() -> None:
        with precision(777):
            seen.append(flint.ctx.prec)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert seen == [777]
    assert flint.ctx.prec == before


def test_threads_that_enclose_together_all_get_the_same_answer() -> None:
    found: list[Bounds] = []

    def work() -> None:
        found.extend(enclose(lambda: ball(F(1, 10**40)).exp() - 1) for _ in range(40))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 160
    assert len(set(found)) == 1


def test_a_ball_wider_than_the_doubles_is_not_taken_for_narrow() -> None:
    """An infinite width is no more than a part of an infinite end; it must call for more bits."""
    assert enclose(lambda: (arb(10) ** 500 + 1) - arb(10) ** 500) == (1.0, 1.0)
    beyond = enclose(lambda: arb(10) ** 500)
    assert beyond.upper == math.inf
    assert beyond.lower >= 1e308
