"""Randomised response has the law, the loss and the errors that it claims; planted errors are caught."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.errors import InvalidInput, NotPrivateWarning, Unsupported
from discreet.mechanisms import estimates
from discreet.mechanisms.response import RandomizedResponse
from discreet.noise import NotPrivate
from discreet.noise.source import NotPrivateArray
from discreet.privacy import GDP, ZCDP, ApproxDP, Neighbours, PrivacyLoss, PureDP, verify
from discreet.privacy.distributions import Distribution
from discreet.privacy.loss import FiniteLoss
from tests.mechanisms.report_laws import CASES, law, laws_product, reports_law
from tests.statistics import Finding, assert_passes, chi_square, judge

MANY = 1 << 18


# --- the protocol --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tell", "k"), [(Fraction(1, 2), 2), (Fraction(1, 3), 2), (Fraction(7, 10), 5)])
def test_two_coins(tell: Fraction, k: int) -> None:
    """Enumerate both coins: the second may show the truth too."""
    report = {j: Fraction(0) for j in range(k)}
    for honest, second in product([True, False], range(k)):
        chance = (tell if honest else 1 - tell) / k
        report[0 if honest else second] += chance
    m = RandomizedResponse.two_coins(tell, k)
    assert law(m, 0) == report
    assert RandomizedResponse.two_coins() == RandomizedResponse(0.75)
    assert RandomizedResponse.two_coins().loss().max_divergence == pytest.approx(math.log(3), rel=1e-14)


def report_findings(reports: NDArray[Any], answers: NDArray[Any], m: RandomizedResponse) -> list[Finding]:
    """Each report by itself, and with the next: what is independent has a product law."""
    same = reports == answers
    shift = (reports - answers) % m.k
    chances = [float(law(m, 0)[j]) for j in range(m.k)]
    joint = np.bincount(shift[:-1:2] * m.k + shift[1::2], minlength=m.k**2)
    assert same.size
    return [
        *(
            chi_square(f"of {a}", np.bincount(shift[answers == a], minlength=m.k), chances)
            for a in range(m.k)
        ),
        chi_square("pairs", joint, np.outer(chances, chances).ravel()),
    ]


@pytest.mark.parametrize("m", CASES, ids=str)
def test_release(m: RandomizedResponse) -> None:
    answers = np.arange(MANY) // 2 % m.k
    assert_passes(*report_findings(m.release(answers), answers, m))
    single = np.bincount([m.release(1) for _ in range(1 << 13)], minlength=m.k)
    assert_passes(chi_square("one by one", single, [float(law(m, 1)[j]) for j in range(m.k)]))


def lies_among_all(m: RandomizedResponse, answers: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    honest = rng.random(answers.size) < float(m.truth)
    return np.where(honest, answers, rng.integers(m.k, size=answers.size))


def one_coin_for_both(m: RandomizedResponse, answers: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    word = rng.integers(1 << 32, size=answers.size)
    honest = word < float(m.truth) * 2**32
    return np.where(honest, answers, (answers + 1 + (word >> 31)) % m.k)


def lies_to_the_next(m: RandomizedResponse, answers: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    honest = rng.random(answers.size) < float(m.truth)
    return np.where(honest, answers, (answers + 1) % m.k)


def coins_for_two(m: RandomizedResponse, answers: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    honest = np.repeat(rng.random(answers.size // 2) < float(m.truth), 2)
    return np.where(honest, answers, (answers + rng.integers(1, m.k, size=answers.size)) % m.k)


@pytest.mark.parametrize("bug", [lies_among_all, one_coin_for_both, lies_to_the_next, coins_for_two])
def test_planted_errors_are_caught(bug: Callable[..., NDArray[Any]]) -> None:
    m, answers = CASES[2], np.arange(MANY) // 2 % 3
    assert judge(report_findings(bug(m, answers, np.random.default_rng()), answers, m))


def test_one_percent_is_seen() -> None:
    m, answers = CASES[0], np.arange(MANY) // 2 % 2
    nearly = RandomizedResponse(m.truth + Fraction(1, 100))
    assert judge(report_findings(nearly.release(answers), answers, m))


def test_release_returns_what_came() -> None:
    m = RandomizedResponse(0.9, answers=["yes", "no", "unsure"])
    assert m.release("yes") in m.answers  # type: ignore[operator]
    reports = m.release(["yes", "no"] * 5)
    assert isinstance(reports, list)
    assert set(reports) <= set(m.answers or ())
    array = m.release(np.array([["yes", "no"], ["no", "unsure"]]))
    assert array.shape == (2, 2)
    assert array.dtype.kind == "U"
    plain = RandomizedResponse(0.9, 3)
    assert isinstance(plain.release(2), int)
    assert isinstance(plain.release([0, 1]), list)
    assert plain.release(np.zeros((2, 3), np.int8)).shape == (2, 3)
    nearly_sure = RandomizedResponse(1 - Fraction(1, 10**30), answers=["yes", "no", "unsure"])
    assert nearly_sure.release(["unsure", "yes"]) == ["unsure", "yes"]
    assert nearly_sure.release(np.array(["no", "yes"], object)).tolist() == ["no", "yes"]
    assert nearly_sure.release([["no", "yes"]]) == [["no", "yes"]]
    assert nearly_sure.release(("no",)) == ["no"]


def test_reports_from_a_seed_are_marked() -> None:
    with pytest.warns(NotPrivateWarning):
        source = NotPrivate(seed=1)
    assert isinstance(RandomizedResponse(0.75).release([0, 1], source=source), NotPrivateArray)


# --- the loss ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", CASES, ids=str)
@pytest.mark.parametrize("questions", [1, 2, 3])
def test_loss(m: RandomizedResponse, questions: int) -> None:
    """All reports are enumerated, for every way in which one person's answers can change."""
    claimed = m.loss(questions)
    assert isinstance(claimed, FiniteLoss)
    odds = m.truth / m.lie
    ratios = [Fraction(1), Fraction(3, 2), odds, odds ** (questions - 1), odds**questions * Fraction(99, 100)]
    before = laws_product(m, (0,) * questions)
    worst = [Fraction(0)] * len(ratios)
    for answers in product(range(m.k), repeat=questions):
        after = laws_product(m, answers)
        sticks = [
            sum((max(before[o] - r * after[o], Fraction(0)) for o in before), Fraction(0)) for r in ratios
        ]
        worst = [max(w, s) for w, s in zip(worst, sticks, strict=True)]
    assert [claimed.hockey_stick(r) for r in ratios] == worst
    assert claimed.max_ratio == odds**questions
    assert claimed.neighbours == Neighbours("replace")


@pytest.mark.parametrize("m", CASES[:3], ids=str)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_loss_over_all_databases(m: RandomizedResponse, n: int) -> None:
    """Reports in a ballot box: for one person as claimed, for more no worse. In order: as claimed, always."""

    def ballots(database: Any) -> Distribution[Any]:
        boxes: Distribution[Any] = Distribution.certain(())
        for answer in database:
            boxes = boxes.product(Distribution(law(m, answer))).map(
                lambda pair: tuple(sorted((*pair[0], pair[1])))
            )
        return boxes

    claimed = m.loss()
    assert isinstance(claimed, FiniteLoss)
    found = verify(ballots, universe=range(m.k), n=n, neighbours="replace", limit=10**6)
    found_ratio = found.ratio()
    assert found_ratio is not None
    assert claimed.max_ratio is not None
    assert found_ratio <= claimed.max_ratio
    assert n > 1 or found_ratio == claimed.max_ratio
    assert found.statistical_distance <= claimed.statistical_distance
    for answers in product(range(m.k), repeat=n):
        for new in range(m.k):
            one, other = laws_product(m, answers), laws_product(m, (new, *answers[1:]))
            greatest = max(one[o] / other[o] for o in one)
            assert greatest == (1 if new == answers[0] else claimed.max_ratio)


@pytest.mark.parametrize("m", CASES, ids=str)
def test_guarantee(m: RandomizedResponse) -> None:
    """m questions cost the sum: exactly, but for rounding up."""
    for questions in (1, 7, 10**6):
        epsilon = m.guarantee(questions).epsilon
        exact = questions * math.log(m.truth / m.lie)
        assert exact * (1 - 1e-13) < epsilon < exact * (1 + 1e-13)
        assert m.loss(questions).max_divergence <= epsilon * (1 + Fraction(1, 10**15))
    assert Fraction(m.loss(7).max_divergence) <= m.guarantee(7).epsilon * (1 + Fraction(1, 10**15))
    assert m.loss(100).satisfies(m.guarantee(100).epsilon, 0)


def test_many_questions_keep_the_promise_written_out_or_not() -> None:
    m = CASES[0]
    assert isinstance(m.loss(400), FiniteLoss)
    assert m.loss(10**5) == PrivacyLoss.pure(m.guarantee(10**5).epsilon, neighbours="replace")
    assert m.loss(400).epsilon(1e-6) < 0.8 * m.guarantee(400).epsilon


@pytest.mark.parametrize("relation", ["add-remove", Neighbours("replace", 2)])
def test_other_neighbours_are_refused(relation: Any) -> None:
    with pytest.raises(Unsupported, match="replace"):
        CASES[0].loss(neighbours=relation)


# --- calibration ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), 0.1, 1, 5])
def test_calibrate(epsilon: Any, k: int) -> None:
    m = RandomizedResponse.calibrate(epsilon=epsilon, k=k)
    assert m.loss().satisfies(epsilon, 0)
    assert not RandomizedResponse(m.truth + Fraction(1, 10**14), k).loss().satisfies(epsilon, 0)
    for promise in (ApproxDP(epsilon, 0.01), ZCDP(epsilon), GDP(epsilon)):
        kept = RandomizedResponse.calibrate(promise, k=k)
        assert keeps(kept.loss(), promise)
        more = RandomizedResponse(kept.truth + Fraction(1, 10**5), k)
        assert not keeps(more.loss(), promise)
        if isinstance(promise, ApproxDP):
            assert kept.truth > m.truth
            assert not keeps(RandomizedResponse(kept.truth + Fraction(1, 10**14), k).loss(), promise)


def keeps(loss: PrivacyLoss, promise: Any) -> bool:
    if isinstance(promise, ApproxDP):
        return loss.satisfies(promise.epsilon, promise.delta)
    if isinstance(promise, ZCDP):
        return Fraction(repr(loss.rho)) <= promise.rho
    return bool(PureDP(loss.max_divergence) <= promise)


def test_a_large_epsilon_leaves_some_lies() -> None:
    assert RandomizedResponse.calibrate(epsilon=10**6).truth < 1
    with pytest.raises(InvalidInput, match="small"):
        RandomizedResponse.calibrate(epsilon=1e-17)


@pytest.mark.parametrize(
    ("error", "failure", "n", "k"), [(0.2, 0.05, 60, 2), (0.3, 0.1, 40, 3), (0.02, 1e-5, 100_000, 2)]
)
def test_solve(error: float, failure: float, n: int, k: int) -> None:
    m = RandomizedResponse.solve(error=error, failure=failure, n=n, k=k)
    assert m.tail(error, n) <= failure
    gap = m.truth - m.lie
    less = (1 + (k - 1) * gap * Fraction(999, 1000)) / k
    assert RandomizedResponse(less, k).tail(error, n) > failure
    if n < 100:
        assert max(exact_tail(m, Fraction(repr(error)), n)) <= failure


def test_too_few_people_are_refused() -> None:
    with pytest.raises(Unsupported, match="too few"):
        RandomizedResponse.solve(error=1e-6, failure=1e-30, n=3)


# --- errors before any report --------------------------------------------------------------------------


def exact_tail(m: RandomizedResponse, t: Fraction, n: int) -> list[Fraction]:
    """Pr(|estimated proportion - true one| >= t) for each true count, by all possible reports."""
    reach = t * n * (m.truth - m.lie)
    tails = []
    for ones in range(n + 1):
        mean = ones * m.truth + (n - ones) * m.lie
        chances = enumerate(reports_law(n, ones, m))
        tails.append(sum((chance for r, chance in chances if abs(r - mean) >= reach), Fraction(0)))
    return tails


@pytest.mark.parametrize("m", CASES, ids=str)
@pytest.mark.parametrize("n", [1, 2, 7, 24])
def test_tail(m: RandomizedResponse, n: int) -> None:
    """Never below the exact worst case, and for few people the least of it and the closed forms."""
    for t in (Fraction(1, 100), Fraction(1, 4), Fraction(1, 2), Fraction(9, 10), Fraction(2)):
        exact = max(exact_tail(m, t, n))
        bound = Fraction(m.tail(t, n))
        assert exact <= bound <= min(Fraction(1), exact * (1 + Fraction(1, 10**9))) + Fraction(1, 10**40)
        assert exact <= closed_form(m, t * n * (m.truth - m.lie), n)
    assert m.tail(0, n) == 1


def closed_form(m: RandomizedResponse, reach: Fraction, n: int) -> Fraction:
    """The bound for many people, asked for few."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimates, "_MOST_BY_RANGES", 0)
        (bound,) = estimates.worst_tails(m.truth, m.lie, reach, n)
    return bound


def test_closed_forms_hold_at_every_true_count() -> None:
    """Where lies vary more and where truths do. Far out, Bernstein's bound is what is left."""
    for m in CASES:
        for reach in (Fraction(1, 2), Fraction(2), Fraction(5), Fraction(10), Fraction(19)):
            exact = max(exact_tail(m, reach / 20 / (m.truth - m.lie), 20))
            assert exact <= closed_form(m, reach, 20)
    assert closed_form(CASES[0], Fraction(19), 20) < Fraction(1, 10**6)


def test_tail_of_ranges_of_true_counts() -> None:
    """With more people than ranges, a bound for a range is one for every count in it."""
    m, n, reach = CASES[0], 1500, Fraction(27)
    one_by_one = max(
        estimates._range_tail(m.truth, m.lie, reach, n, ones, ones) for ones in range(0, n + 1, 7)
    )
    bounds = list(estimates.worst_tails(m.truth, m.lie, reach, n))
    assert len(bounds) == 501
    assert one_by_one <= max(bounds) <= one_by_one * Fraction(13, 10)


def test_a_range_is_bounded_on_either_side_by_the_end_that_is_worse() -> None:
    m, n, low, high = CASES[3], 30, 0, 5
    for reach in (Fraction(6), Fraction(8)):  # too far for any to be as far below their mean
        above = []
        for ones in range(low, high + 1):
            mean = ones * m.truth + (n - ones) * m.lie
            chances = reports_law(n, ones, m)
            above.append(sum((c for r, c in enumerate(chances) if r >= mean + reach), Fraction(0)))
        assert max(above) <= estimates._range_tail(m.truth, m.lie, reach, n, low, high)


@pytest.mark.parametrize("m", CASES, ids=str)
def test_closed_forms_for_many_people(m: RandomizedResponse) -> None:
    """The normal law's figures for the true answers that vary most."""
    widest = max(float(p * (1 - p)) for p in (m.truth, m.lie))
    near = 1.959964 * math.sqrt(widest / 10**8) / float(m.truth - m.lie)
    assert near * 0.9999 < m.error(0.95, n=10**8) < near * 1.01
    assert m.expected_error(10**8) == pytest.approx(near / 1.959964)


def test_far_out_bernstein_is_the_bound_that_is_left() -> None:
    m = CASES[0]
    far = m.tail(Fraction(1, 100), 10**6)
    exact = math.erfc(0.01 * 0.5 * 10**6 / math.sqrt(2 * 10**6 * 3 / 16))
    assert exact < far < 80 * exact


@pytest.mark.parametrize("m", CASES, ids=str)
def test_error(m: RandomizedResponse) -> None:
    for n in (3, 20):
        for confidence in (Fraction(1, 2), Fraction(19, 20), Fraction(999, 1000)):
            e = Fraction(m.error(confidence, n=n))
            beyond = exact_beyond(m, e, n)
            assert beyond <= 1 - confidence
            less = e - Fraction(1, 4 * n) / (m.truth - m.lie)
            assert less <= 0 or exact_beyond(m, less, n) > 1 - confidence


def exact_beyond(m: RandomizedResponse, e: Fraction, n: int) -> Fraction:
    return max(exact_tail(m, e + Fraction(1, 10**12), n))


@pytest.mark.parametrize("m", CASES, ids=str)
def test_expected_error(m: RandomizedResponse) -> None:
    for n in (1, 9, 25):
        means = []
        for ones in range(n + 1):
            mean = ones * m.truth + (n - ones) * m.lie
            off = sum((abs(r - mean) * c for r, c in enumerate(reports_law(n, ones, m))), Fraction(0))
            means.append(off / n / (m.truth - m.lie))
        assert max(means) <= Fraction(m.expected_error(n))
        assert n == 1 or Fraction(m.expected_error(n)) < 2 * max(means)


# --- what is refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize("truth", [0, 1, 0.5, 0.25, -1, 2, math.nan, math.inf, "0.75", True, None])
def test_bad_truths(truth: Any) -> None:
    with pytest.raises(InvalidInput):
        RandomizedResponse(truth)


@pytest.mark.parametrize("k", [0, 1, -2, 2.0, True, "2", 2**40])
def test_bad_numbers_of_answers(k: Any) -> None:
    with pytest.raises(InvalidInput):
        RandomizedResponse(Fraction(99, 100), k)
    with pytest.raises(InvalidInput):
        RandomizedResponse.calibrate(epsilon=1, k=k)


@pytest.mark.parametrize("answers", ["yes", [], ["yes"], ["yes", "yes"], [1, 2], {"yes", "no"}, [None, "no"]])
def test_bad_names(answers: Any) -> None:
    with pytest.raises(InvalidInput):
        RandomizedResponse(0.75, answers=answers)
    with pytest.raises(InvalidInput):
        RandomizedResponse(0.75, 3, answers=["yes", "no"])


@pytest.mark.parametrize(
    "answers",
    [
        [], np.array([], np.int64), None, True, [True, False], 0.0, [0.0], [1, math.nan], "1", ["1"], 3, -1,
        [0, 3], [0, 10**30], np.array([0, 250], np.uint8), np.array([True]), np.array([0.0]),
        np.ma.masked_array([0, 1], [False, True]), Fraction(1), {0: 1}, [[0, 1], [0]], np.array(["a"]),
        np.timedelta64(1), np.float16(1),
    ],
    ids=repr,
)  # fmt: skip
def test_bad_answers(answers: Any) -> None:
    m = RandomizedResponse(0.75, 3)
    with pytest.raises(InvalidInput):
        m.release(answers)
    with pytest.raises(InvalidInput):
        m.estimate(answers)


@pytest.mark.parametrize(
    "answers",
    [
        "maybe",
        ["yes", "maybe"],
        [],
        None,
        0,
        [0],
        np.array(["yes", "maybe"]),
        [None],
        b"yes",
        {"yes"},
        [["yes"], ["no", "no"]],
        np.ma.masked_array(["yes", "no"], [False, True]),
    ],
)
def test_bad_named_answers_are_refused_without_their_text(answers: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        RandomizedResponse(0.75, answers=["yes", "no"]).release(answers)
    assert "maybe" not in str(caught.value)


def test_first_steps() -> None:
    """What a newcomer types works, or is answered with the line to type."""
    rr = RandomizedResponse.two_coins(answers=["yes", "no"])
    found = rr.estimate(rr.release(["yes", "no", "no"]))
    assert found.n == 3
    assert "yes: " in repr(found)
    for answers in (["yes", "no"], "yes", [True, False], [1.0], []):
        with pytest.raises(InvalidInput, match=r"two_coins\(answers=\['yes', 'no'\]\)"):
            RandomizedResponse.two_coins().release(answers)
    for call in (RandomizedResponse, RandomizedResponse.two_coins):
        with pytest.raises(InvalidInput, match="answers="):
            call(0.75, ["yes", "no"])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="in the order"):
        rr.estimate(counts={"yes": 1, "no": 2})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "counts",
    [[1], [1, 2, 3], [0, 0], [-1, 2], [1.0, 2], ["1", 2], 5, "12", np.array(3), np.ones((2, 2), int)],
)
def test_bad_counts(counts: Any) -> None:
    with pytest.raises(InvalidInput):
        CASES[0].estimate(counts=counts)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m.estimate(),
        lambda m: m.estimate([0], counts=[1, 0]),
        lambda m: m.loss(0),
        lambda m: m.loss(1.5),
        lambda m: m.guarantee(0),
        lambda m: m.error(1, n=5),
        lambda m: m.error(0, n=5),
        lambda m: m.error(0.95, n=0),
        lambda m: m.tail(-1, 5),
        lambda m: m.tail(0.1, 5.0),
        lambda m: m.two_coins(0),
        lambda m: m.two_coins(1),
        lambda m: m.calibrate(),
        lambda m: m.calibrate(epsilon=0),
        lambda m: m.calibrate(epsilon=-1),
        lambda m: m.calibrate(epsilon=math.inf),
        lambda m: m.calibrate(epsilon="0.1"),
        lambda m: m.calibrate(epsilon=1, rho=1),
        lambda m: m.calibrate(epsilon=1, delta=1),
        lambda m: m.solve(error=0, n=100, failure=0.1),
        lambda m: m.solve(error=1, n=100, failure=0.1),
        lambda m: m.solve(error=0.1, n=100, failure=0),
        lambda m: m.release([0], source=None),
    ],
)
def test_bad_calls(call: Callable[[RandomizedResponse], object]) -> None:
    with pytest.raises(InvalidInput):
        call(CASES[0])


def test_too_many_respondents() -> None:
    with pytest.raises(Unsupported):
        CASES[0].error(n=10**13)


def test_repr_is_what_to_type() -> None:
    for m in (*CASES, RandomizedResponse(0.75, answers=["yes", "no"])):
        text = repr(m)
        assert eval(text, {"RandomizedResponse": RandomizedResponse}) == m
