"""Keys come out in their own order and look, counts with them, and nothing else; what is refused."""

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from discreet.errors import InvalidInput, NotPrivateWarning, Unsupported
from discreet.mechanisms.noisy_keys import GaussianKeys, LaplaceKeys
from discreet.mechanisms.optimal_keys import OptimalKeys
from discreet.noise import NotPrivate
from discreet.privacy import GDP, ZCDP, ApproxDP, PureDP

NOISY: list[Any] = [LaplaceKeys(1, 4, 2), GaussianKeys(2, 3, 2)]
SURE: list[Any] = [OptimalKeys(30, 0.9), LaplaceKeys(1, 10), GaussianKeys(1, 10)]


# --- choosing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [1, 7])
@pytest.mark.parametrize("epsilon", [0.5, 2])
def test_calibrate(keys: int, epsilon: float) -> None:
    promise = ApproxDP(epsilon, 1e-6)
    for kind in (OptimalKeys, LaplaceKeys, GaussianKeys):
        m = kind.calibrate(promise, keys_per_unit=keys)
        assert m == kind.calibrate(epsilon=epsilon, delta=1e-6, keys_per_unit=keys)
        assert m.keys_per_unit == keys
        assert m.loss().satisfies(epsilon, 1e-6)
        if isinstance(m, (LaplaceKeys, GaussianKeys)):
            lower = type(m)(m.scale if isinstance(m, LaplaceKeys) else m.variance, m.threshold - 1, keys)
            part = Fraction(1, 10**6) / (1 if isinstance(m, LaplaceKeys) else 2)
            assert m.escape() <= part < lower.escape()
    least_noise = GaussianKeys.calibrate(promise, keys_per_unit=keys)
    assert least_noise.guarantee(delta=1e-6) <= promise
    narrower = GaussianKeys(least_noise.variance * Fraction(9, 10), least_noise.threshold, keys)
    assert not narrower.loss().satisfies(epsilon, 1e-6)


def test_solve() -> None:
    for keys in (1, 4):
        m = OptimalKeys.solve(keep=20, failure=0.05, delta=1e-6, keys_per_unit=keys)
        assert m.shows(20) >= 0.95
        assert OptimalKeys(m.epsilon * Fraction(999, 1000), 1e-6, keys).keep_probability(20).lower < 0.95
        laplace = LaplaceKeys.solve(keep=20, failure=0.05, delta=1e-6, keys_per_unit=keys)
        gaussian = GaussianKeys.solve(keep=20, failure=0.05, delta=1e-6, keys_per_unit=keys)
        for noisy in (laplace, gaussian):
            assert noisy.shows(20) >= 0.95
            assert noisy.escape() <= Fraction(1, 10**6)
        assert m.epsilon <= laplace.guarantee().epsilon
        assert gaussian.guarantee(delta=1e-6).delta == Fraction(1, 10**6)
        less = LaplaceKeys._above(laplace.scale * Fraction(101, 100), Fraction(1, 10**6), keys)
        assert less.shows(20) < 0.95
    with pytest.raises(InvalidInput, match="any epsilon"):
        OptimalKeys.solve(keep=20, failure=0.5, delta=0.1)
    for kind in (OptimalKeys, LaplaceKeys, GaussianKeys):
        with pytest.raises(Unsupported, match="2 or more"):
            kind.solve(keep=1, failure=0.05, delta=1e-6)


def test_shown_from() -> None:
    for noisy in (LaplaceKeys(2, 30), GaussianKeys(4, 12)):
        with pytest.raises(InvalidInput, match="no end"):
            noisy.shown_from(1)
    m = OptimalKeys(1, 1e-6)
    assert (m.shown_from(0.5), m.shown_from(1)) == (14, m._sure)
    for chosen in (m, LaplaceKeys(2, 30), GaussianKeys(4, 12)):
        n = chosen.shown_from(0.95)
        assert chosen.shows(n) >= 0.95 > chosen.shows(n - 1)


@pytest.mark.parametrize("promise", [PureDP(1), ZCDP(1), GDP(1), ApproxDP(1, 0)])
def test_no_promise_without_a_delta_shows_keys(promise: Any) -> None:
    for kind in (OptimalKeys, LaplaceKeys, GaussianKeys):
        with pytest.raises(Unsupported, match="delta"):
            kind.calibrate(promise)


# --- what comes out ------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [OptimalKeys(1, 0.1), *NOISY], ids=str)
def test_an_empty_table_is_answered_like_any_other(m: Any) -> None:
    """Refusing it would tell that nobody is in it; a table of one unit is its neighbour."""
    nothing: Any = [] if isinstance(m, OptimalKeys) else {}
    assert m.release({}) == nothing
    none: list[Any] = [
        [],
        range(0),
        np.zeros(0),
        np.zeros(0, np.int64),
        np.zeros(0, "U3"),
        np.zeros(0, object),
    ]
    for counts, keys in product(none, none):
        assert m.release(counts, keys=keys) == nothing


@pytest.mark.parametrize("m", [OptimalKeys(30, 0.9), *NOISY], ids=str)
def test_a_key_that_nobody_has_is_never_shown(m: Any) -> None:
    counts = dict.fromkeys(range(20_000), 0)
    assert not m.release(counts)


ORDERS: list[tuple[list[Any], list[Any]]] = [
    (["b", "a", "c"], ["a", "b", "c"]),
    ([10, -3, 2], [-3, 2, 10]),
    ([None, "b", "a"], [None, "a", "b"]),
    ([("b", 1), ("a", None), ("a", 0)], [("a", None), ("a", 0), ("b", 1)]),
    (
        [datetime.date(2026, 1, 2), datetime.date(2025, 1, 2)],
        [datetime.date(2025, 1, 2), datetime.date(2026, 1, 2)],
    ),
    ([True, False], [False, True]),
    ([np.int64(3), np.int64(1)], [1, 3]),
    ([b"b", b"a"], [b"a", b"b"]),
]


@pytest.mark.parametrize(("came", "ordered"), ORDERS)
@pytest.mark.parametrize("m", SURE, ids=str)
def test_order_and_look_of_keys_are_their_own(m: Any, came: list[Any], ordered: list[Any]) -> None:
    for keys in (came, came[::-1]):
        found = list(m.release(dict.fromkeys(keys, 1000)))
        assert found == ordered
        assert list(map(repr, found)) == list(map(repr, ordered))
        side_by_side = m.release([1000] * len(keys), keys=keys)
        assert list(side_by_side) == ordered


@pytest.mark.parametrize("m", SURE, ids=str)
def test_hidden_keys_leave_no_trace(m: Any) -> None:
    """An array of strings is as wide as the longest, hidden or not: so lists and dicts come out."""
    for keys in (np.array(["flu", "a rare and long name"]), np.array([1, 2**62]), np.array([b"a", b"bbbb"])):
        found = m.release(np.array([1000, 0]), keys=keys)
        assert type(found) is (list if isinstance(m, OptimalKeys) else dict)
        assert [type(key) for key in found] == [type(keys[0].item())]
        assert list(found) == [keys[0]]


@pytest.mark.parametrize("m", SURE, ids=str)
def test_the_only_group_of_a_table_is_a_key(m: Any) -> None:
    assert list(m.release({(): 1000})) == [()]
    assert list(m.release([1000], keys=[()])) == [()]


def test_counts_stay_with_their_keys() -> None:
    m = LaplaceKeys(Fraction(1, 100), 5)
    for found in (
        m.release({"b": 200, "c": 1, "a": 100}),
        m.release(np.array([200, 1, 100]), keys=np.array(["b", "c", "a"])),
    ):
        assert list(found.items()) == [("a", 100), ("b", 200)]
    assert m.release([9, 0, 7], keys=range(3)) == {0: 9, 2: 7}


@pytest.mark.parametrize(
    "keys",
    [[1, "a"], [1.5, 2.5], [Decimal("1.0")], [1, True], [math.nan], [datetime.datetime(2026, 1, 1)],
     [(1, 2), (1,)], [(1, "a"), ("b", 2)], [frozenset("a")], [object()], [("a", 1.0)], [np.float64(1)],
     [("a",), "a"]],
    ids=lambda keys: repr(keys).partition(" at 0x")[0],
)  # fmt: skip
def test_keys_whose_look_could_tell_whose_came_first_are_refused(keys: list[Any]) -> None:
    for m in SURE:
        with pytest.raises(InvalidInput, match=r"type|length|once"):
            m.release([5] * len(keys), keys=keys)


def test_what_a_seed_gave_is_marked() -> None:
    with pytest.warns(NotPrivateWarning):
        source = NotPrivate(seed=1)
    counts = {"a": 1000, "b": 1000}
    assert "NotPrivate" in type(SURE[0].release(counts, source=source)).__name__
    assert "NotPrivate" in type(SURE[1].release(counts, source=source)["a"]).__name__
    assert "NotPrivate" in type(SURE[2].release([1000, 2], keys=np.arange(2), source=source)[0]).__name__
    assert SURE[0].release(dict.fromkeys([("a", 1), ("b", 2)], 1000), source=source)[1] == ("b", 2)


# --- what is refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "counts",
    [
        {"secret": -1}, {"secret": 1.0}, {"secret": math.nan}, {"secret": True}, {"secret": "7"},
        {"secret": None},
        {"secret": 10**30}, {"secret": [1]}, {"secret": Fraction(1)}, {"secret": np.float16(1)},
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("m", SURE, ids=str)
def test_bad_counts(m: Any, counts: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        m.release(counts)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("counts", "keys"),
    [
        ([1, 2], None), (np.array([1, 2]), None), (5, None), (None, None), ("ab", None), ({"a": 1}, ["a"]),
        ([1, 2], ["a"]), ([1, 2], ["a", "a"]), ([1, 2], "ab"), ([1, 2], 5), ([[1, 2]], ["a", "b"]),
        ([1, 2], np.array([1, 1])), ([1, 2], np.array([[1, 2]])), ([1, 2], np.array([1.0, 2.0])),
        (5, ["a"]), ([1.0], ["a"]), (np.array([True]), ["a"]),
        ([1, 2], {"a", "b"}), (np.array(1), ["a"]), ("", []), ([], ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("m", SURE, ids=str)
def test_bad_keys(m: Any, counts: Any, keys: Any) -> None:
    with pytest.raises(InvalidInput):
        m.release(counts, keys=keys)


BAD = [0, -1, math.nan, math.inf, "0.1", True, None]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_bad_parameters(bad: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: OptimalKeys(bad, 0.1),
        lambda: OptimalKeys(1, bad),
        lambda: LaplaceKeys(bad, 5),
        lambda: GaussianKeys(bad, 5),
        lambda: LaplaceKeys(1, bad),
        lambda: OptimalKeys(1, 0.1, bad) if bad is not True else OptimalKeys(1, 1),
        lambda: LaplaceKeys(1, 5, bad),
        lambda: GaussianKeys.calibrate(epsilon=1, delta=0.1, keys_per_unit=bad),
        lambda: LaplaceKeys.solve(keep=20, failure=bad, delta=0.1),
        lambda: OptimalKeys.solve(keep=bad, failure=0.1, delta=0.01),
        lambda: OptimalKeys(1, 0.1).keep_probability(bad if bad != 0 else -1),
        lambda: LaplaceKeys(1, 5).error(bad if bad != 0 else 2),
        lambda: GaussianKeys(1, 5).guarantee(delta=bad if bad != 0 else 2),
    ]
    for call in calls:
        with pytest.raises(InvalidInput):
            call()


def test_bad_calls() -> None:
    calls: list[Callable[[], object]] = [
        lambda: OptimalKeys(1, 1),
        lambda: OptimalKeys(1, Fraction(1, 10**330), 10),
        OptimalKeys.calibrate,
        lambda: OptimalKeys.calibrate(delta=0.1),
        lambda: GaussianKeys.calibrate(rho=1),
        lambda: GaussianKeys.calibrate(rho=1, epsilon=1, delta=0.1),
        lambda: LaplaceKeys.calibrate(epsilon=1, delta=1),
        lambda: GaussianKeys.calibrate(rho=1, delta=1),
        lambda: OptimalKeys(1, 0.1).release({"a": 1}, source=None),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(InvalidInput):
            call()
    with pytest.raises(Unsupported, match="escape"):
        GaussianKeys(1, 1).guarantee(delta=1e-9)


def test_repr_is_what_to_type() -> None:
    names = {"OptimalKeys": OptimalKeys, "LaplaceKeys": LaplaceKeys, "GaussianKeys": GaussianKeys}
    for m in (OptimalKeys(1, 0.1, 3), LaplaceKeys(1, 5, 2), GaussianKeys(2.5, 5)):
        assert eval(repr(m), names) == m
