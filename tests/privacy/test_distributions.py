"""Claims about exact finite distributions."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.privacy.distributions import Distribution, told_apart

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)

weights = st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(any)


def weighted(numbers: list[int]) -> Distribution[int]:
    return Distribution({i: Fraction(number, sum(numbers)) for i, number in enumerate(numbers)})


@pytest.mark.parametrize("tenth", [0.1, Decimal("0.1"), Fraction(1, 10)])
def test_probabilities_are_the_numbers_that_were_written(tenth: Any) -> None:
    law = Distribution(dict.fromkeys(range(10), tenth))
    assert law[3] == Fraction(1, 10)
    assert law.probability(range(5)) == HALF


def test_what_cannot_happen_is_not_there() -> None:
    law = Distribution({"a": 1, "b": 0})
    assert law.support == ("a",)
    assert law["b"] == law["never heard of"] == 0
    assert law == Distribution.certain("a")
    assert hash(law) == hash(Distribution.certain("a"))


def test_order_is_nothing_and_an_event_counts_each_outcome_once() -> None:
    assert Distribution({"a": THIRD, "b": 2 * THIRD}) == Distribution({"b": 2 * THIRD, "a": THIRD})
    assert Distribution.uniform("ab").probability(["a", "a"]) == HALF


def test_a_list_with_repeats_is_a_uniform_choice_among_places() -> None:
    assert Distribution.uniform("aab") == Distribution({"a": 2 * THIRD, "b": THIRD})


@given(weights)
def test_map_adds_up_what_falls_together(numbers: list[int]) -> None:
    law = weighted(numbers)
    parity = law.map(lambda i: i % 2)
    assert parity[0] == Fraction(sum(numbers[::2]), sum(numbers))
    assert law.map(lambda i: "same") == Distribution.certain("same")
    assert law.map(lambda i: i) == law


@given(weights, weights)
def test_a_product_is_independent(one: list[int], other: list[int]) -> None:
    p, q = weighted(one), weighted(other)
    both = p.product(q)
    assert all(both[a, b] == p[a] * q[b] for a in range(5) for b in range(5))
    assert both.map(lambda pair: pair[0]) == p
    assert both.map(lambda pair: pair[1]) == q


@given(weights, weights, weights)
def test_then_is_a_mixture_by_the_law_of_total_probability(
    first: list[int], one: list[int], other: list[int]
) -> None:
    parts = [weighted(one), weighted(other)]
    mixed = weighted(first).then(lambda i: parts[i % 2])
    share = weighted(first).probability(range(0, 5, 2))
    assert all(mixed[o] == share * parts[0][o] + (1 - share) * parts[1][o] for o in range(5))


@given(weights, st.integers(0, 4))
def test_a_step_after_certainty_is_that_step_and_certainty_after_a_step_changes_nothing(
    numbers: list[int], outcome: int
) -> None:
    law = weighted(numbers)
    assert Distribution.certain(outcome).then(lambda i: law.map(lambda j: i + j)) == law.map(
        lambda j: outcome + j
    )
    assert law.then(Distribution.certain) == law


def test_a_distribution_cannot_be_changed() -> None:
    law = Distribution.uniform("ab")
    with pytest.raises(TypeError):
        law.probabilities["a"] = THIRD  # type: ignore[index]
    with pytest.raises(AttributeError):
        law.probabilities = {}  # type: ignore[misc]


def test_a_distribution_does_not_follow_the_mapping_it_was_made_from() -> None:
    chances = {"a": HALF, "b": HALF}
    law = Distribution(chances)
    chances["a"] = Fraction(1)
    assert law["a"] == HALF


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: Distribution({"a": 1 / 3, "b": 2 / 3}), r"exactly 1, not 0\.99.*Fraction\(1, 3\)"),
        (lambda: Distribution({"a": 0.5, "b": 0.6}), r"exactly 1, not 1\.1"),
        (lambda: Distribution({}), "exactly 1, not 0"),
        (lambda: Distribution({"a": -1, "b": 2}), "the probability of 'a' must be a probability"),
        (lambda: Distribution({"a": float("nan")}), "the probability of 'a' must be finite"),
        (lambda: Distribution({"a": "1"}), "the probability of 'a' must be a number"),  # type: ignore[dict-item]
        (lambda: Distribution([("a", 1)]), "mapping of each outcome"),  # type: ignore[arg-type]
        (lambda: Distribution("a"), "mapping of each outcome"),  # type: ignore[arg-type]
        (lambda: Distribution.uniform([]), "no outcome to choose from"),
        (lambda: Distribution.uniform([[1], [2]]), "hashable"),  # type: ignore[type-var]
        (lambda: Distribution({float("nan"): 1}), "equal itself"),
        (lambda: Distribution.uniform("ab").map(lambda o: [o]), "hashable"),  # type: ignore[type-var]
        (lambda: Distribution.uniform([1, True]), "a reader can tell them apart"),
        (lambda: Distribution.uniform([0.0, -0.0]), "a reader can tell them apart"),
        (lambda: Distribution.uniform([("x", 0.0), ("x", -0.0)]), "a reader can tell them apart"),
        (
            lambda: Distribution.uniform("ab").map(lambda o: 1 if o == "a" else 1.0),
            "a reader can tell them apart",
        ),
    ],
)
def test_what_is_no_distribution_is_refused_in_words(act: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        act()


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        (1, 1, False),
        ("a", "".join(["", "a"]), False),
        (1, 1.0, True),
        (0.0, -0.0, True),
        (Decimal("1.0"), Decimal("1.00"), True),
        ((1, (2, -0.0)), (1, (2, 0.0)), True),
        ((1, (2, 0.5)), (1, (2, 0.5)), False),
        (frozenset({0, 8}), frozenset({8, 0}), False),
    ],
)
def test_look_alikes_are_told_apart_when_they_print_differently(
    one: object, other: object, apart: bool
) -> None:
    assert one == other
    assert told_apart(one, other) == told_apart(other, one) == apart


def test_a_certain_outcome_must_be_hashable_too() -> None:
    with pytest.raises(InvalidInput, match="hashable"):
        Distribution.certain([1])  # type: ignore[type-var]
