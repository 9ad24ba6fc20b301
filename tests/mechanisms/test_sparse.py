"""The sparse vector technique: exact laws of runs against the promise, and what runs do against the laws."""

import copy
import math
import pickle
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import DiscreetError, InvalidInput, NotPrivateWarning, Unsupported
from discreet.mechanisms.sensitivity import Sensitivity
from discreet.mechanisms.sparse import SparseVector, _crosses
from discreet.privacy import ZCDP, ApproxDP, PureDP
from tests.noise.exact import MP, Law
from tests.statistics import assert_passes, chi_square, judge

Reals = NDArray[np.float64]
Flags = tuple[bool, ...]
RunLaw = dict[Any, float]

# --- laws, computed here: sums over the threshold's noise, in doubles, of terms that are all positive ---


def mass(z: NDArray[Any], rate: float) -> Reals:
    q = math.exp(-rate)
    return np.asarray((1 - q) / (1 + q) * q ** np.abs(z).astype(float))


def reaches(y: NDArray[Any], rate: float) -> Reals:
    """P(Z >= y)."""
    q = math.exp(-rate)
    far = q ** np.where(y > 0, y, 1.0 - y) / (1 + q)
    return np.where(y > 0, far, 1 - far)


def falls_short(y: NDArray[Any], rate: float) -> Reals:
    """P(Z < y)."""
    return reaches(1 - y, rate)


def outcomes(n: int, positives: int) -> Iterator[Flags]:
    """Yield every list of flags that a run over n answers can say."""
    for flags in product((False, True), repeat=n):
        end = n
        if sum(flags) >= positives:
            end = [i for i, flag in enumerate(flags) if flag][positives - 1] + 1
        if end == n or not any(flags[end:]):
            yield flags[:end]


def run_law(
    answers: Sequence[int], threshold_rate: float, answer_rate: float, positives: int, level: int = 0
) -> RunLaw:
    """P(each list of flags)."""
    z = np.arange(-(reach := math.ceil(80 / threshold_rate)), reach + 1)
    law = {}
    for flags in outcomes(len(answers), positives):
        chance = mass(z, threshold_rate)
        for answer, flag in zip(answers, flags, strict=False):
            needs = level + z - answer
            chance = chance * (reaches(needs, answer_rate) if flag else falls_short(needs, answer_rate))
        law[flags] = float(chance.sum())
    return law


def worst_loss(
    law: Callable[[Sequence[int]], RunLaw],
    n: int,
    monotonic: bool,
    starts: Sequence[int] = (-25, 0, 3),
    corners: Sequence[int] = (-1, 0, 1),
) -> float:
    """Return the greatest loss over neighbours, whose answers differ by 1 each, in every direction."""
    ups, downs = [c for c in corners if c >= 0], [c for c in corners if c <= 0]
    greatest = 0.0
    for answers in product(starts, repeat=n):
        before = law(answers)
        for move in (
            [*product(ups, repeat=n), *product(downs, repeat=n)] if monotonic else product(corners, repeat=n)
        ):
            after = law([answer + step for answer, step in zip(answers, move, strict=True)])
            for flags, p in before.items():
                q = after.get(flags, 0.0)
                if p > 1e-290 or q > 1e-290:
                    greatest = max(greatest, abs(math.log(p / q)) if p and q else math.inf)
    return greatest


def law_of(m: SparseVector, answers: Sequence[int]) -> RunLaw:
    return run_law(answers, float(m._threshold_rate), float(m._answer_rate), m.positives)


def long_loss(
    threshold_rate: Fraction,
    answer_rate: Fraction,
    positives: int,
    up: int = 1,
    down: int = 1,
    says: int | None = None,
) -> float:
    """Return the loss of one long stream, which is where it is greatest: many not above, and then some above.

    The first rise by `up` and the others fall by `down`. With `says`, the last noisy answer is told as well.
    """
    a, b = float(threshold_rate), float(answer_rate)
    far = math.ceil(12 / b)
    z = np.arange(-far, (reach := math.ceil(40 / a)) + 1)
    assert reach > far

    def chance(low: int, high: int) -> float:
        p = (
            mass(z, a)
            * falls_short(z - low, b) ** 2000
            * reaches(z - high, b) ** (positives - (says is not None))
        )
        if says is not None:
            p = p * np.where(says >= z, mass(np.array(says - high), b), 0.0)
        return float(p.sum())

    return math.log(chance(0, -far) / chance(up, -far - down))


# --- the promise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("positives", [1, 2, 3])
def test_a_run_is_private(positives: int, monotonic: bool) -> None:
    """It keeps epsilon over all neighbouring streams of three answers, and a long one comes near epsilon."""
    m = SparseVector(2, 1, positives, monotonic)
    assert worst_loss(partial(law_of, m), 3, monotonic) <= 2 * (1 + 1e-9)
    long = long_loss(m._threshold_rate, m._answer_rate, positives, down=0 if monotonic else 1)
    assert 0.95 * 2 < long <= 2 * (1 + 1e-9)


def test_a_grid_pays_for_rounding() -> None:
    """In steps of a third a movement of 1 is 4, as floats round; and a monotonic answer may fall by one."""
    for monotonic, corners in ((False, (-4, 0, 4)), (True, (-1, 0, 4))):
        m = SparseVector(2, 1, 2, monotonic, grid=Fraction(1, 3))
        for sign in (1, -1):
            moves = [sign * corner for corner in corners]
            assert worst_loss(partial(law_of, m), 2, False, (-25, 0), moves) <= 2 * (1 + 1e-9)
        long = long_loss(m._threshold_rate, m._answer_rate, 2, up=4, down=-min(corners))
        assert 0.95 * 2 < long <= 2 * (1 + 1e-9)


def test_monotonic_noise_for_other_answers_is_caught() -> None:
    m = SparseVector(2, 1, 2, monotonic=True)
    assert long_loss(m._threshold_rate, m._answer_rate, 2) > 2.5


# What Lyu, Su and Li (2017) found in print.


def test_no_query_noise_is_caught() -> None:
    """Stoddard et al. (algorithm 5): the threshold alone is noisy, and order is told as it is."""
    loss = worst_loss(lambda answers: run_law(answers, 1.0, 1e3, 1), 2, False, (0, 1))
    assert loss > 100


def test_noise_not_scaled_with_positives_is_caught() -> None:
    """Lee and Clifton (algorithm 4): as much noise for three positives as for one."""
    m, one = SparseVector(2, 1, 3), SparseVector(2)
    assert long_loss(m._threshold_rate, one._answer_rate, 3) > 2.5


def test_unlimited_positives_are_caught() -> None:
    """Chen et al. (algorithm 6): noise for one positive, and no stop."""
    m = SparseVector(2)
    assert long_loss(m._threshold_rate, m._answer_rate, 4) > 5


def test_the_noisy_answer_itself_is_caught() -> None:
    """Roth's notes (algorithm 3): the noisy answer that was compared is said, and bounds the threshold."""
    m = SparseVector(2)
    assert long_loss(m._threshold_rate, m._answer_rate, 1, says=6) > 6


# --- what the code does --------------------------------------------------------------------------------


class Drawn:
    """Noise that was written in advance, and a record of the scales that were asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, values: Sequence[int]) -> None:
        self.values, self.asked = list(values), list[tuple[Fraction, Any]]()
        monkeypatch.setattr("discreet.mechanisms.sparse.discrete_laplace", self)

    def __call__(self, scale: Fraction, size: Any = None, *, source: Any) -> Any:
        self.asked.append((scale, size))
        count = 1 if size is None else math.prod(size)
        drawn, self.values = self.values[:count], self.values[count:]
        assert len(drawn) == count
        return drawn[0] if size is None else np.array(drawn)


@pytest.mark.parametrize("positives", [1, 2])
def test_release_and_run_compare_noisy_answers_with_one_noisy_threshold(
    positives: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For all noises of a few steps: which flags, where it stops, and at which scales the noise was drawn."""
    m, answers, level = SparseVector(1.5, 2, positives), [4, 6, 5], 5
    for noises in product((-1, 0, 2), repeat=4):
        expected = []
        for answer, more in zip(answers, noises[1:], strict=True):
            expected.append(answer + more >= level + noises[0])
            if sum(expected) == positives:
                break
        whole = Drawn(monkeypatch, noises)
        assert m.release(answers, level) == expected
        assert whole.asked == [(1 / m._threshold_rate, None), (1 / m._answer_rate, (3,))]
        single = Drawn(monkeypatch, noises)
        run = m.start(Fraction(9, 2))  # whole answers reach 9/2 where they reach 5
        assert [run.above(answer) for answer in answers[: len(expected)]] == expected
        assert single.asked == [(1 / m._threshold_rate, None)] + [(1 / m._answer_rate, None)] * len(expected)
        assert run.remaining == positives - sum(expected)


def test_the_split_of_epsilon() -> None:
    for c in (1, 2, 50, 10**6):
        for monotonic in (False, True):
            m = SparseVector(0.3, 5, c, monotonic)
            parts = m._threshold_rate * 5, m._answer_rate * c * (5 if monotonic else 10)
            assert sum(parts) == Fraction(3, 10)
            assert parts[1] / parts[0] == pytest.approx((c if monotonic else 2 * c) ** (2 / 3), rel=0.02)
    fine = SparseVector(1, 0.5, 3, grid=0.125)
    assert (fine._threshold_rate + fine._answer_rate * 3 * 2) * 5 == 1
    one_way = SparseVector(1, 0.5, 3, True, grid=0.125)
    assert one_way._threshold_rate * 5 + one_way._answer_rate * 3 * 6 == 1


def test_sparse_vector() -> None:
    """What is released has the law, and the law of a split the other way round is told apart from it."""
    m, answers = SparseVector(1, 1, 2), [3, -1, 0, 4]
    law = law_of(m, answers)
    assert sum(law.values()) == pytest.approx(1)
    seen = Counter(tuple(m.release(answers, 0)) for _ in range(1 << 15))
    assert_passes(chi_square("flags", [seen[flags] for flags in law], list(law.values())))
    wrong = run_law(answers, float(m._answer_rate), float(m._threshold_rate), 2)
    assert judge([chi_square("flags", [seen[flags] for flags in law], list(wrong.values()))])
    runs: Counter[Flags] = Counter()
    for _ in range(1 << 13):
        run, said = m.start(0), []
        for answer in answers:
            if run.remaining:
                said.append(run.above(answer))
        runs[tuple(said)] += 1
    assert_passes(chi_square("flags", [runs[flags] for flags in law], list(law.values())))


def test_release() -> None:
    m = SparseVector(10**6, positives=2)
    assert m.release([1, 9, 9, 1, 9], 5) == [False, True, True]
    assert m.release(np.array([1, 9, 1]), 5.0) == [False, True, False]
    assert m.release((10**30, 5), 10**29) == [True, False]
    fine = SparseVector(10**9, 0.5, 9, grid=0.001)
    assert fine.release([0.3, 0.1, Fraction(1, 4), 2], 0.25) == [True, False, True, True]
    run = fine.start(0.25)
    assert [run.above(answer) for answer in (0.3, Fraction(1, 10), np.float64(0.7))] == [True, False, True]


def test_seeded_flags_say_so() -> None:
    with pytest.warns(NotPrivateWarning):
        source = noise.NotPrivate(seed=1)
    assert isinstance(SparseVector(1).release([1, 2], 9, source=source), noise.NotPrivateArray)
    assert isinstance(SparseVector(1).start(9, source=source).above(3), noise.NotPrivateInt)


# --- runs ------------------------------------------------------------------------------------------------


def test_a_run_stops() -> None:
    run = SparseVector(10**6, positives=2).start(5)
    assert [run.above(9), run.above(1), run.above(9), run.remaining] == [True, False, True, 0]
    for answer in (1, 9, math.nan):
        with pytest.raises(Unsupported, match="has stopped"):
            run.above(answer)


def test_a_bad_answer_costs_nothing() -> None:
    run = SparseVector(10**6).start(5)
    for bad in (1.5, math.nan, "3", True, [1, 2], None):
        with pytest.raises(InvalidInput):
            run.above(bad)
    assert run.remaining == 1
    assert run.above(9)


def test_threads_share_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slowly noise is drawn, no thread says yes beyond what was paid for."""
    run = SparseVector(10**6, positives=3).start(5)
    said: list[bool] = []

    def slowly(*_: Any, **how: Any) -> int:
        time.sleep(0.002)
        return 0

    def ask() -> None:
        try:
            for _ in range(9):
                said.append(run.above(9))
        except Unsupported:
            pass

    monkeypatch.setattr("discreet.mechanisms.sparse.discrete_laplace", slowly)
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == [True] * 3


def test_a_run_is_never_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    run = SparseVector(1).start(31337)
    for refused in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(Unsupported, match="copied"):
            refused(run)
    assert "31" not in repr(run)
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(Unsupported, match="process"):
        run.above(1)


def test_mechanisms_are_values() -> None:
    m = SparseVector(1, 2, positives=3, monotonic=True, grid=0.5)
    assert repr(m) == "SparseVector(epsilon=1, sensitivity=2, positives=3, monotonic=True, grid=0.5)"
    assert pickle.loads(pickle.dumps(m)) == copy.deepcopy(m) == m
    assert m != SparseVector(1, 2, positives=3, monotonic=True)
    assert len({m, copy.copy(m)}) == 1


# --- figures ---------------------------------------------------------------------------------------------


def wrong_chance(m: SparseVector, t: int, answers: Sequence[int]) -> float:
    """P(some answer, threshold 0, is judged wrongly by t or more), summed over what a run can say."""
    chance = 0.0
    for flags, p in law_of(m, answers).items():
        judged = zip(answers, flags, strict=False)
        chance += p * any(answer <= -t if flag else answer >= t for answer, flag in judged)
    return chance


@pytest.mark.parametrize("positives", [1, 2])
def test_tail(positives: int) -> None:
    """No fixed answers are judged wrongly more often, and the worst of them at least half as often."""
    m = SparseVector(4, 1, positives)
    for t in (1, 2, 5, 9):
        tail = m.tail(t, answers=4)
        worst = max(wrong_chance(m, t, answers) for answers in product((-t, 0, t), repeat=4))
        assert worst * (1 - 1e-12) <= tail <= 2 * worst
        assert tail <= m.tail(t, answers=4, bound="union") * (1 + 1e-12)


def test_tail_of_answers_chosen_as_one_goes() -> None:
    """The best of all strategies, by going through them, with the threshold's noise partly found out."""
    m, t, z = SparseVector(3, 1, 9), 3, np.arange(-60, 61)
    rate = float(m._answer_rate)

    def best(law: Reals, left: int) -> float:
        """The greatest P(an error), times P(what was said so far), over answers that are left."""
        if not left:
            return 0.0
        chances = []
        for answer in (-t, -1, 0, 1, t):
            yes, no = reaches(z - answer, rate), falls_short(z - answer, rate)
            if answer <= -t:
                chances.append(float((law * yes).sum()) + best(law * no, left - 1))
            elif answer >= t:
                chances.append(float((law * no).sum()) + best(law * yes, left - 1))
            else:
                chances.append(best(law * yes, left - 1) + best(law * no, left - 1))
        return max(chances)

    fixed = 0.0
    for count in (1, 2, 3, 4, 5):
        adaptive = best(mass(z, float(m._threshold_rate)), count)
        assert adaptive <= m.tail(t, answers=count)
        fixed = max(fixed, m.tail(t, answers=count) / adaptive)
    assert fixed < 2


def test_crosses() -> None:
    """The bound is what its claim says, exactly for few steps and nearly for more."""
    for a, b, m, count in (
        (Fraction(1, 3), Fraction(1, 7), 12, 5),
        (Fraction(1, 200), Fraction(1, 300), 900, 40),
    ):
        q, law = MP.exp(-MP.mpf(a.numerator) / a.denominator), Law.laplace(1 / b)
        exactly = MP.fsum(
            (1 - q) * q**y * (1 - law.at_most(m - y - 1) ** count) for y in range(math.ceil(60 / a))
        )
        bound = float(_crosses(a, b, m, count))
        assert float(exactly) * (1 - 1e-12) <= bound <= float(exactly) * (1 + 1e-12 if m == 12 else 1.07)


def test_the_union_bound() -> None:
    m = SparseVector(2, 1, 3)
    threshold, answer = Law.laplace(1 / m._threshold_rate), Law.laplace(1 / m._answer_rate)
    for t, half, more in ((71, 36, 36), (72, 36, 37), (1, 1, 1)):
        both = 2 * (1 - threshold.at_most(half - 1)) + 20 * 2 * (1 - answer.at_most(more - 1))
        assert m.tail(t, answers=20, bound="union") == pytest.approx(min(1.0, float(both)), rel=1e-12)


def test_what_sums_leave_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    exactly = float(_crosses(Fraction(1, 2), Fraction(1, 3), 9, 4))
    monkeypatch.setattr("discreet.mechanisms.sparse._BEYOND", -4)
    assert float(_crosses(Fraction(1, 2), Fraction(1, 3), 9, 4)) > exactly * (1 + 1e-6)


def test_error_and_tail_agree() -> None:
    for m in (SparseVector(0.5, 1, 3), SparseVector(0.5, 3, 3, monotonic=True)):
        for answers in (1, 1000):
            for bound in ("exact", "union"):
                error = m.error(0.95, answers=answers, bound=bound)
                assert isinstance(error, int)
                assert m.tail(error + 1, answers=answers, bound=bound) <= 0.05
                assert m.tail(error, answers=answers, bound=bound) > 0.05
            assert m.error(answers=answers) < 0.75 * m.error(answers=answers, bound="union")
    fine = SparseVector(1, 0.5, grid=0.01)
    assert fine.tail(Fraction(fine.error(answers=9)) + Fraction(1, 100), answers=9) <= 0.05
    assert fine.error(answers=9) == pytest.approx(SparseVector(1).error(answers=9) / 2, rel=0.1)
    assert SparseVector(1).tail(0, answers=3) == 1
    assert SparseVector(1).tail(10**9, answers=3) < 1e-300


def test_solve() -> None:
    for monotonic in (False, True):
        m = SparseVector.solve(
            error=60, failure=1e-3, answers=500, sensitivity=2, positives=4, monotonic=monotonic
        )
        assert m.tail(60, answers=500) <= 1e-3
        less = SparseVector(m.epsilon * Fraction(999, 1000), 2, 4, monotonic)
        assert less.tail(60, answers=500) > 1e-3
    fine = SparseVector.solve(error=6, failure=0.01, answers=9, sensitivity=0.5)
    assert fine.tail(6, answers=9) <= 0.01
    assert fine.grid == Fraction(1, 2**21)
    with pytest.raises(InvalidInput, match="finer grid"):
        SparseVector.solve(error=0.5, failure=0.01, answers=9, grid=1)


def test_calibrate_and_loss() -> None:
    m = SparseVector.calibrate(epsilon=0.7, positives=3)
    assert (m, m.guarantee(), m.loss().max_divergence) == (SparseVector(0.7, 1, 3), PureDP(0.7), 0.7)
    for promise in (ZCDP(0.1), ApproxDP(0.5, 1e-3)):
        kept = SparseVector.calibrate(promise)
        assert kept.guarantee() <= promise
        assert not PureDP(kept.epsilon * Fraction(10001, 10000)) <= promise
    stated = SparseVector.calibrate(
        epsilon=1, sensitivity=Sensitivity.counts(5, rows=3, neighbours="replace")
    )
    assert stated.loss().neighbours.kind == "replace"
    assert stated._threshold_rate * 3 + stated._answer_rate * 6 == 1  # by the l-infinity norm
    assert SparseVector.calibrate(epsilon=1, sensitivity=0.5).grid == Fraction(1, 2**21)
    for refused in (
        partial(SparseVector, 1, Sensitivity.count(neighbours="replace"), monotonic=True),
        partial(SparseVector(1, monotonic=True).loss, neighbours="replace"),
    ):
        with pytest.raises(Unsupported, match="monotonic"):
            refused()


# --- what a hurried analyst types ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answers",
    [
        [],
        7,
        "12",
        ["1"],
        [True],
        [1.0, 2.0],
        [math.nan],
        [[1, 2]],
        np.zeros((2, 2), int),
        np.array([1, 2], object),
        np.array([1, 2], np.float16),
        (n for n in range(3)),
        iter([1, 2]),
        {1: 2},
        None,
        [1, None],
    ],
    ids=lambda answers: repr(answers).partition(" at 0x")[0],
)
def test_bad_answers_are_refused(answers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Drawn(monkeypatch, [])
    with pytest.raises(InvalidInput):
        SparseVector(1).release(answers, 1)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "0.1", True, None, np.float16(0.5)], ids=repr)
def test_bad_parameters_are_refused(bad: Any) -> None:
    calls = [partial(SparseVector, bad), partial(SparseVector, 1, bad), partial(SparseVector, 1, 1, bad)]
    calls += [partial(SparseVector, 1, 1, positives) for positives in (1.0, 2.5)]  # type: ignore[arg-type]
    if bad is not True:
        calls.append(partial(SparseVector, 1, 1, 1, bad))
    if bad is not None:
        calls.append(partial(SparseVector, 1, grid=bad))
    for call in calls:
        with pytest.raises(InvalidInput):
            call()


@pytest.mark.parametrize("bad", [math.nan, math.inf, "5", True, None], ids=repr)
def test_bad_thresholds_are_refused(bad: Any) -> None:
    for call in (partial(SparseVector(1).release, [1, 2], bad), partial(SparseVector(1).start, bad)):
        with pytest.raises(InvalidInput):
            call()


def test_other_refusals() -> None:
    m = SparseVector(1)
    for call in (
        partial(SparseVector, 1, 0.5),
        partial(m.tail, 1, answers=0),
        partial(m.tail, -1, answers=1),
        partial(m.tail, 1, answers=1, bound="best"),  # type: ignore[arg-type]
        partial(m.error, 1, answers=1),
        partial(SparseVector.solve, error=5, failure=0, answers=1),
        partial(SparseVector.calibrate),
        partial(m.release, [1], 2, source=noise.NotPrivate),  # type: ignore[arg-type]
        partial(m.start, 2, source=3),  # type: ignore[arg-type]
    ):
        with pytest.raises(DiscreetError):
            call()
    with pytest.raises(InvalidInput, match="start"):
        m.release(iter([1, 2]), 1)
    for answers in ([31337.5, math.nan], [[31337]], 31337):
        with pytest.raises(InvalidInput) as caught:
            m.release(answers, 1)
        assert "31337" not in str(caught.value)


def test_more_positives_than_anyone_pays_for_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at most"):
        SparseVector(1, positives=10**400)


@pytest.mark.parametrize(
    "m", [SparseVector(1), SparseVector(0.5, positives=3), SparseVector(1, grid=0.5)], ids=repr
)
def test_expected_error_holds_in_a_sample(m: SparseVector) -> None:
    """The worst misjudgement of answers spread around the threshold; Cantelli's bound at one in a million."""
    offsets = [-60, -30, -12, -4, -1, 1, 4, 12, 30, 60]
    answers = [500 + offset for offset in offsets]
    worst = []
    for _ in range(2000):
        flags = m.release(answers, 500)
        wrong = [abs(o) for o, said in zip(offsets, flags, strict=False) if said != (o >= 0)]
        worst.append(max(wrong, default=0))
    spread = np.std(worst) / math.sqrt(len(worst)) * 6
    assert np.mean(worst) <= m.expected_error(answers=len(answers)) + spread
    assert m.expected_error(answers=100) > m.expected_error(answers=1) > 0
