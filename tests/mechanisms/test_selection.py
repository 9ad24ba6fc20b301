"""Selection: exact laws of small cases against the promises, and samplers against the laws."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet import noise
from discreet.errors import DiscreetError, InvalidInput, NotPrivateWarning, Unsupported
from discreet.mechanisms import weighted
from discreet.mechanisms.noisymax import NoisyMax, _apart, _rival_wins
from discreet.mechanisms.scores import steps_apart, steps_each
from discreet.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, TopK
from discreet.mechanisms.sensitivity import Sensitivity
from discreet.mechanisms.weighted import Weights, exp_minus, nearest, weighted_index
from discreet.privacy import ZCDP, ApproxDP, PureDP
from tests.noise.exact import MP, Law, real
from tests.statistics import assert_passes, chi_square, judge

SLACK = 1 + 1e-12

Scores = Sequence[Fraction | int]
Chances = list[Any]


# --- laws, computed here ---------------------------------------------------------------------------------


def exponential_law(scores: Scores, rate: Fraction) -> Chances:
    odds = [MP.exp(real(rate * (score - max(scores)))) for score in scores]
    return [odd / MP.fsum(odds) for odd in odds]


def noisy_exponential_law(scores: Scores, rate: Fraction) -> Chances:
    """P(i has the largest of rate * score + E): an integral, done exactly as a polynomial in u."""
    odds = [MP.exp(real(rate * (score - max(scores)))) for score in scores]
    chances = []
    for i, mine in enumerate(odds):
        coefficients = [MP.mpf(1)]
        for j, odd in enumerate(odds):
            if j != i:
                longer = [*coefficients, MP.mpf(0)]
                coefficients = [c - odd * (longer[n - 1] if n else 0) for n, c in enumerate(longer)]
        chances.append(mine * MP.fsum(c / (n + 1) for n, c in enumerate(coefficients)))
    return chances


def permute_and_flip_law(scores: Scores, rate: Fraction) -> Chances:
    """McKenna and Sheldon's algorithm 1, over all permutations."""
    flip = [MP.exp(real(rate * (score - max(scores)))) for score in scores]
    chances = [MP.mpf(0)] * len(scores)
    for order in permutations(range(len(scores))):
        unflipped = MP.mpf(1)
        for i in order:
            chances[i] += unflipped * flip[i] / math.factorial(len(scores))
            unflipped *= 1 - flip[i]
    return chances


def first_two_law(scores: Scores, rate: Fraction) -> Chances:
    """P(the first two of rate * score + E, in order), by integrating over the second one's level v.

    In w = exp(-v) the integrand is a polynomial on each side of the first one's height, so that Gauss's rule
    is exact.
    """
    height = [float(rate * (score - max(scores))) for score in scores]
    nodes, parts = np.polynomial.legendre.leggauss(len(scores) + 2)
    chances = []
    for first, second in permutations(range(len(scores)), 2):
        rest = [j for j in range(len(scores)) if j not in (first, second)]
        start = max(height[j] for j in (second, *rest))
        ends = [0.0, math.exp(-max(start, height[first]))]
        if height[first] > start:
            ends.append(math.exp(-start))
        total = 0.0
        for low, high in pairwise(ends):
            w = low + (high - low) * (nodes + 1) / 2
            density = np.exp(height[second]) * np.minimum(1, np.exp(height[first]) * w)
            for j in rest:
                density = density * (1 - np.exp(height[j]) * w)
            total += float((density * parts).sum()) * (high - low) / 2
        chances.append(total)
    return chances


def noisy_max_law(scores: Sequence[int], rate: Fraction) -> list[float]:
    """P(i has the largest of score + discrete Laplace, the first of equals), summed in doubles."""
    q = math.exp(-rate)
    reach = max(scores) - min(scores) + math.ceil(60 / rate)
    levels = np.arange(min(scores) - reach, max(scores) + reach + 1)

    def at_most(y: NDArray[Any]) -> NDArray[np.float64]:
        far = q ** np.where(y >= 0, y + 1.0, -1.0 * y) / (1 + q)
        return np.where(y >= 0, 1 - far, far)

    chances = []
    for i, score in enumerate(scores):
        mass = (1 - q) / (1 + q) * q ** np.abs(levels - score).astype(float)
        for j, other in enumerate(scores):
            if j != i:
                mass = mass * at_most(levels - other - (j < i))
        chances.append(float(mass.sum()))
    return chances


def moves(n: int, monotonic: bool) -> Iterator[tuple[int, ...]]:
    """How n scores of sensitivity 1 may move between neighbours, at the corners."""
    if monotonic:
        yield from product((0, 1), repeat=n)
        yield from product((0, -1), repeat=n)
    else:
        yield from product((-1, 0, 1), repeat=n)


def worst_losses(
    law: Callable[[Any], Chances], starts: Sequence[Scores], monotonic: bool, step: int = 1
) -> tuple[float, float]:
    """Return the greatest loss, and the greatest range of losses, over neighbours of these scores."""
    greatest = widest = 0.0
    for scores in starts:
        before = law(scores)
        for move in moves(len(scores), monotonic):
            after = law([score + step * up for score, up in zip(scores, move, strict=True)])
            losses = [float(MP.log(MP.mpf(p) / MP.mpf(q))) for p, q in zip(before, after, strict=True)]
            greatest = max(greatest, *losses, -min(losses))
            widest = max(widest, max(losses) - min(losses))
    return greatest, widest


STARTS: list[Scores] = [[0, 0, 0], [0, 1, 3], [0, -30, -30], [5, -25, -25, 4], [Fraction(1, 2), 0, -1]]
WHOLE_STARTS: list[Sequence[int]] = [[0, 0, 0], [0, 1, 3], [0, -90, -90], [5, -55, -75, 4], [-70, -70, 0]]


# --- weighted_index --------------------------------------------------------------------------------------


class Script:
    """A source whose words are written in advance."""

    def __init__(self, words: Sequence[int]) -> None:
        self._words = list(words)

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.array([self._words.pop(0) for _ in range(count)], np.uint64)

    def bytes(self, count: int) -> bytes:
        assert count == 8
        return self._words.pop(0).to_bytes(8, "little")

    def label(self, values: Any) -> Any:
        return values

    def left(self) -> int:
        return len(self._words)


GAPS: dict[str, tuple[list[Fraction], list[int] | None]] = {
    "plain": ([Fraction(n, 7) for n in (3, 0, 20, 1, 0)], None),
    "one": ([Fraction(5, 3)], None),
    "long": ([Fraction(10**30, 10**29 + 1), Fraction(9), Fraction(2000)], [3, 2**80, 2**2980]),
    "weighty": ([Fraction(n, 3) for n in range(9)], [0, 3, 0, 10**20, 7, 0, 10**25, 1, 0]),
    "far": ([Fraction(10**12), Fraction(10**12 + 300), Fraction(10**12 + 2, 1)], None),
    "edge": ([Fraction(0), Fraction(256), Fraction(2559, 10), Fraction(1)], [1, 2**369, 2**369, 1]),
}


def cuts(gaps: list[Fraction], times: list[int] | None) -> Chances:
    with MP.workdps(2000):
        weights = [
            (1 if times is None else times[i]) * MP.exp(-real(gap - min(gaps))) for i, gap in enumerate(gaps)
        ]
        total = MP.fsum(weights)
        return [MP.fsum(weights[: i + 1]) / total for i in range(len(gaps))]


@pytest.mark.parametrize("case", GAPS.values(), ids=GAPS)
def test_weighted_index(case: tuple[list[Fraction], list[int] | None]) -> None:
    """A point is followed to its piece: on either side of a cut, by 2**-128 where that is near enough."""
    gaps, times = case
    with MP.workdps(2000):
        ends = cuts(gaps, times)
        points = [
            end + side * MP.mpf(2) ** -b for end in ends for side in (-1, 1) for b in (5, 30, 64, 70, 120)
        ]
        for point in [*points, MP.mpf(0), 1 - MP.mpf(2) ** -100]:
            if 0 <= point < 1:
                right = next(i for i, end in enumerate(ends) if point < end)
                words = [int(MP.floor(point * MP.mpf(2) ** (64 * n))) % 2**64 for n in range(1, 50)]
                assert weighted_index(gaps, times, source=Script(words)) == right


def test_no_more_bits_than_needed() -> None:
    """A point 2**-60 from the nearest cut is settled by its first word."""
    gaps, times = GAPS["plain"]
    for end in cuts(gaps, times)[:-1]:
        for side in (-16, 16):
            weighted_index(gaps, times, source=Script([int(end * 2**64) + side]))
    # Nor does a gap that nobody has make all others small.
    assert (
        weighted_index([Fraction(0), Fraction(10**6), Fraction(10**6)], [0, 1, 1], source=Script([1 << 62]))
        == 1
    )


def test_doubles_agree_with_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decided in doubles is what integers decide, however near a cut."""
    gaps = [Fraction(n * n, 60) for n in range(40)]
    times = [1 + n**5 % 11 for n in range(40)]
    weights = Weights(np.array([nearest(gap) for gap in gaps]), lambda i: gaps[i], times)
    words: list[int] = []
    for cut in cuts(gaps, times)[:-1]:
        at = int(cut * 2**64)
        words += [at + side * 2**k for k in range(2, 62, 3) for side in (-1, 1)]
    words = [word for word in words if 0 <= word < 2**64 - 1]
    drawn = weights.fill(len(words), Script(words))
    settled = [weights.settle(word, 64, noise.SYSTEM) for word in words]
    assert drawn.tolist() == settled
    asked = []

    def settle(self: Weights, *rest: Any) -> int:
        asked.append(rest)
        return 0

    monkeypatch.setattr(Weights, "settle", settle)
    weights.fill(len(words), Script(words))
    assert 0 < len(asked) < len(words) / 2


def test_exp_minus() -> None:
    gaps = np.concatenate([np.linspace(0, 255.999, 3000), np.arange(256.0), [0.0, 1 - 2**-53, 5e-324]])
    for gap, power in zip(gaps.tolist(), exp_minus(gaps).tolist(), strict=True):
        exactly = MP.exp(-MP.mpf(gap))
        assert abs(MP.mpf(power) - exactly) < exactly * MP.mpf(2) ** -47
    assert exp_minus(np.array([256.0, 1e300, math.inf])).tolist() == [0, 0, 0]


def test_weighted_index_by_the_thousand() -> None:
    gaps, times = GAPS["plain"][0], [5, 1, 10**3, 0, 2]
    weights = Weights(np.array([nearest(gap) for gap in gaps]), lambda i: gaps[i], times)
    cut = [float(c) for c in cuts(gaps, times)]
    counts = np.bincount(weights.fill(1 << 18, noise.SYSTEM), minlength=5)
    assert_passes(chi_square("indices", counts, np.diff([0.0, *cut])))


@pytest.mark.parametrize(
    ("gaps", "times"),
    [
        ([], None),
        ([Fraction(-1)], None),
        ([Fraction(1)], [0]),
        ([Fraction(1)], [-1]),
        ([Fraction(1)], [1, 1]),
    ],
)
def test_weights_that_make_no_law_are_refused(gaps: list[Fraction], times: list[int] | None) -> None:
    with pytest.raises(InvalidInput):
        weighted_index(gaps, times)


# --- the exponential mechanism ---------------------------------------------------------------------------


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(4)])
def test_exponential_mechanism_is_private(epsilon: Fraction, monotonic: bool) -> None:
    m = ExponentialMechanism(epsilon, 1, monotonic)
    loss, spread = worst_losses(lambda scores: exponential_law(scores, m._rate), STARTS, monotonic)
    assert 0.95 * epsilon < loss <= epsilon * SLACK
    assert 0.95 * epsilon < spread <= epsilon * SLACK
    if monotonic:  # and where it is not true of the scores, the promise is broken
        assert worst_losses(lambda s: exponential_law(s, m._rate), STARTS, False)[0] > 1.5 * epsilon


def test_concentrated() -> None:
    """Every Renyi divergence is at most alpha epsilon**2 / 8, and nearly that for small epsilon."""
    ratios = []
    for epsilon in (Fraction(1, 4), Fraction(3)):
        m = ExponentialMechanism(epsilon, monotonic=True)
        assert m.concentrated() == ZCDP(epsilon**2 / 8)
        for scores in ([0, 0], [0, 1], [3, 0], [0, 0, 0, 2]):
            p = exponential_law(scores, m._rate)
            for move in moves(len(scores), True):
                q = exponential_law([s + up for s, up in zip(scores, move, strict=True)], m._rate)
                for alpha in (1.01, 2, 7, 50):
                    moment = MP.fsum(a**alpha * b ** (1 - alpha) for a, b in zip(p, q, strict=True))
                    ratio = MP.log(moment) / (alpha - 1) / (alpha * real(m.concentrated().rho))
                    ratios.append(float(ratio))
    assert 0.95 < max(ratios) <= SLACK


@pytest.mark.parametrize("kind", ["ints", "floats", "fractions", "wide", "huge"])
def test_exponential_mechanism(kind: str) -> None:
    scores: dict[str, Any] = {
        "ints": np.array([3, 0, -2, 3, 1]),
        "floats": [0.1, 1.5, -2.25, 3.0, 2.999],
        "fractions": [Fraction(1, 3), Fraction(-7, 5), 1.25, 2],
        "wide": [10**25, 10**25 - 3, 10**25 + 1],
        "huge": [1e308, -1e308, 1e308],
    }
    m = ExponentialMechanism(1.5, 2)
    chances = exponential_law([Fraction(score) for score in np.array(scores[kind], object)], Fraction(3, 8))
    counts = np.bincount(m._choices(scores[kind], 1 << 18, noise.SYSTEM), minlength=len(chances))
    assert_passes(chi_square("choices", counts, [float(chance) for chance in chances]))
    wrong = exponential_law([Fraction(score) for score in np.array(scores[kind], object)], Fraction(3, 4))
    assert judge([chi_square("without the 2", counts, [float(c) for c in wrong])]) or kind == "huge"


def test_rates_that_no_double_holds() -> None:
    tiny = ExponentialMechanism(Fraction(1, 10**320))
    counts = np.bincount(tiny._choices([1e308, -1e308, 0], 1 << 14, noise.SYSTEM), minlength=3)
    assert_passes(chi_square("even", counts, [1 / 3] * 3))
    vast = ExponentialMechanism(1, Fraction(10**308))
    law = exponential_law([Fraction(1e308), Fraction(-1e308), Fraction(0)], vast._rate)
    counts = np.bincount(vast._choices([1e308, -1e308, 0.0], 1 << 14, noise.SYSTEM), minlength=3)
    assert_passes(chi_square("vast", counts, [float(chance) for chance in law]))


def test_release_is_one_choice() -> None:
    for m in (ExponentialMechanism(50), PermuteAndFlip(50), NoisyMax(50)):
        chosen = m.release([1, 9, 3])
        assert (chosen, type(chosen)) == (1, int)
    assert TopK(2, 90).release(np.array([1, 9, 5])).tolist() == [1, 2]
    with pytest.warns(NotPrivateWarning):
        seeded = noise.NotPrivate(seed=3)
    for m in (ExponentialMechanism(50), PermuteAndFlip(50), NoisyMax(50)):
        assert isinstance(m.release([1, 9, 3], source=seeded), noise.NotPrivateInt)
    assert isinstance(TopK(1, 50).release([1, 9, 3], source=seeded), noise.NotPrivateArray)


def test_floats_count_at_their_binary_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """At an epsilon this large the distance from 0.3 to 0.1 + 0.2 decides: 2**-54, and not 4e-17."""
    m, scores = ExponentialMechanism(2**54), [0.3, 0.1 + 0.2]
    for given in (scores, [Fraction(0.3), 0.1 + 0.2], np.array(scores)):
        counts = np.bincount(m._choices(given, 1 << 16, noise.SYSTEM), minlength=2)
        first = 1 / (1 + math.exp(0.5))
        assert_passes(chi_square("choices", counts, [first, 1 - first]))
    ranked: list[Any] = []

    def ranking(values: Any, unit: Fraction, *_: Any) -> Any:
        ranked.append([value * unit for value in values])
        return np.zeros(1, int)

    monkeypatch.setattr("discreet.mechanisms.selection.exact_ranking", ranking)
    for given in (scores, np.array(scores), [0.3, 0.1 + 0.2]):
        PermuteAndFlip(2).release(given)
        TopK(1, 2).release(given)
    assert ranked == [[Fraction(0.3), Fraction(0.1 + 0.2)]] * 6


# --- permute and flip ------------------------------------------------------------------------------------

SPREADS: list[Scores] = [
    [0, 0, 0, 0],
    [3, 0, 1, 2],
    [0, -1, -1, -1, -9],
    [Fraction(1, 3), 0, Fraction(-5, 7)],
]


@pytest.mark.parametrize("scores", SPREADS)
def test_permute_and_flip_is_noisy_max_with_exponential_noise(scores: Scores) -> None:
    for rate in (Fraction(1, 5), Fraction(2)):
        both = zip(permute_and_flip_law(scores, rate), noisy_exponential_law(scores, rate), strict=True)
        assert all(abs(one - other) < MP.mpf(10) ** -80 for one, other in both)


def test_permute_and_flip_is_never_worse() -> None:
    rng = np.random.default_rng(7)
    for _ in range(60):
        scores = [Fraction(int(n), 8) for n in rng.integers(-60, 60, rng.integers(2, 7))]
        behind = [max(scores) - score for score in scores]
        laws = noisy_exponential_law(scores, Fraction(1)), exponential_law(scores, Fraction(1))
        errors = [MP.fsum(p * real(gap) for p, gap in zip(law, behind, strict=True)) for law in laws]
        assert errors[0] <= errors[1]
        m = PermuteAndFlip(2)
        assert errors[1] <= ExponentialMechanism(2).expected_error(candidates=len(scores)) * SLACK
        for t in sorted(set(behind)):
            chances = [MP.fsum(p for p, gap in zip(law, behind, strict=True) if gap >= t) for law in laws]
            assert chances[0] <= chances[1] * SLACK
            assert chances[0] <= m.tail(t, candidates=len(scores)) * SLACK
            assert chances[1] <= ExponentialMechanism(2).tail(t, candidates=len(scores)) * SLACK


@pytest.mark.parametrize("monotonic", [False, True])
def test_permute_and_flip_is_private(monotonic: bool) -> None:
    m = PermuteAndFlip(Fraction(3, 2), 1, monotonic)
    loss, _ = worst_losses(lambda scores: noisy_exponential_law(scores, m._rate), STARTS, monotonic)
    assert 0.95 * 1.5 < loss <= 1.5 * SLACK
    if monotonic:
        assert worst_losses(lambda s: noisy_exponential_law(s, m._rate), STARTS, False)[0] > 2


def test_permute_and_flip() -> None:
    """What is released has the law, and the exponential mechanism's is told apart from it."""
    m, scores = PermuteAndFlip(2, Fraction(1, 2)), [0.5, 0.25, 0.0, -1.0]
    counts = np.bincount([m.release(scores) for _ in range(1 << 14)], minlength=4)
    rate, exactly = Fraction(2), [Fraction(score) for score in scores]
    assert m._rate == rate
    assert_passes(chi_square("chosen", counts, [float(c) for c in noisy_exponential_law(exactly, rate)]))
    assert judge([chi_square("not", counts, [float(c) for c in exponential_law(exactly, rate)])])


# --- top k -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("monotonic", [False, True])
def test_top_k_is_private(monotonic: bool) -> None:
    """Ordered pairs out of three: in closed form, over neighbours, and nearly tight."""
    m = TopK(2, Fraction(3, 2), 1, monotonic)
    starts: list[Scores] = [[0, 0, 0], [0, -25, -20], [0, 1, 3], [4, 0, 0], [-9, -20, 0, -10]]
    loss, _ = worst_losses(lambda scores: first_two_law(scores, m._rate), starts, monotonic)
    assert 0.95 * 1.5 < loss <= 1.5 * (1 + 1e-9)
    if not monotonic:  # noise for one choice alone is too little for two
        assert worst_losses(lambda s: first_two_law(s, 2 * m._rate), starts[:2], False)[0] > 2


def test_top_k() -> None:
    m, scores = TopK(2, 4), [1, 0, 0, 3]
    law = [float(chance) for chance in first_two_law(scores, Fraction(1))]
    seen = Counter(tuple(m.release(scores).tolist()) for _ in range(1 << 14))
    assert_passes(chi_square("pairs", [seen[pair] for pair in permutations(range(4), 2)], law))
    assert sorted(TopK(4, 1).release(scores).tolist()) == [0, 1, 2, 3]
    assert TopK(1, 1)._rate == PermuteAndFlip(1)._rate


def test_top_k_tail() -> None:
    """The chance at the worst scores, from the law of all ordered pairs; and no other scores are worse."""
    m = TopK(2, 4)
    for n in (3, 4):
        for t in (Fraction(1, 2), Fraction(2), Fraction(5)):
            for others in ([-t] * (n - 2), [-t - 1] * (n - 2), [-t] * (n - 3) + [-t / 2]):
                scores = [Fraction(0), Fraction(0), *others]
                bad = {i for i in range(2, n) if scores[i] <= -t}
                pairs = list(permutations(range(n), 2))
                missed = sum(
                    p
                    for p, pair in zip(first_two_law(scores, Fraction(1)), pairs, strict=True)
                    if bad & {*pair}
                )
                tail = m.tail(t, candidates=n)
                assert missed <= tail * (1 + 1e-9)
                if others == [-t] * (n - 2):
                    assert float(missed) == pytest.approx(tail, rel=1e-9)
    assert TopK(3, 1).tail(7, candidates=3) == 0


# --- noisy max -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("grid", [None, Fraction(1, 3)])
def test_noisy_max_is_private(grid: Fraction | None, monotonic: bool) -> None:
    """Ties included, and with real scores rounded to a grid and off by half a step."""
    m = NoisyMax(Fraction(3, 2), 1, monotonic, grid=grid)

    def law(scores: Sequence[int]) -> list[float]:
        return noisy_max_law(scores, m._step_rate)

    if grid is None:
        loss, _ = worst_losses(law, WHOLE_STARTS, monotonic)
        assert 0.95 * 1.5 < loss <= 1.5 * (1 + 1e-9)
    else:
        most, one_way = 4, (-1 if monotonic else -4)
        for scores in WHOLE_STARTS:
            before = law(scores)
            for move in product((one_way, 0, most), repeat=len(scores)):
                after = law([s + up for s, up in zip(scores, move, strict=True)])
                assert all(
                    abs(math.log(p / q)) < 1.5 * (1 + 1e-9) for p, q in zip(before, after, strict=True)
                )


def test_noisy_max_with_half_the_noise_is_caught() -> None:
    m = NoisyMax(Fraction(3, 2), 1, monotonic=True)
    assert worst_losses(lambda s: noisy_max_law(s, m._step_rate), WHOLE_STARTS, False)[0] > 2


@pytest.mark.parametrize("grid", [Fraction(1, 3), Fraction(2, 7), Fraction(5)])
@pytest.mark.parametrize("far", [Fraction(1), Fraction(1, 2), Fraction(9, 4)])
def test_steps_each_and_apart(grid: Fraction, far: Fraction) -> None:
    """Over scores on a fine lattice: what rounding makes of a movement, and of two."""

    def rounded(x: Fraction) -> int:
        return math.floor(x / grid + Fraction(1, 2))

    fine = [Fraction(n, 42) for n in range(-200, 201, 3)]
    slop = grid * Fraction(99, 100)
    most = max(rounded(x + far + grid) - rounded(x) for x in fine)
    assert most <= steps_each(far, grid)
    up = max(rounded(x + far + slop) - rounded(x) for x in fine)
    down = max(rounded(x + slop) - rounded(x) for x in fine)
    assert up + down <= steps_apart(far, grid, True)
    assert steps_apart(far, grid, False) == 2 * steps_each(far, grid)


def test_steps_of_integers() -> None:
    assert [steps_each(Fraction(n, 2), None) for n in (2, 3, 9)] == [1, 1, 4]
    assert [steps_apart(Fraction(3), None, monotonic) for monotonic in (False, True)] == [6, 3]
    assert steps_each(Sensitivity.counts(7, rows=3), None) == 3


def test_noisy_max_picks_the_first_of_the_largest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is drawn once for each, at the scale of the proof, and added to the rounded scores."""
    scales = []

    def scripted(values: list[int]) -> None:
        def draw(scale: Any, shape: Any, source: Any) -> Any:
            scales.append((scale, shape))
            return np.array(values)

        monkeypatch.setattr("discreet.mechanisms.noisymax.discrete_laplace", draw)

    scripted([0, 1, 0, 3])
    assert NoisyMax(0.5, 3).release([4, 3, 4, 1]) == 0
    scripted([0, 0, 1, 0])
    assert NoisyMax(2, 3, monotonic=True).release([4, 5, 4, 1]) == 1
    scripted([0, 0, 0])
    assert NoisyMax(1, 1, grid=0.5).release([0.74, 0.76, 0.75]) == 1
    assert scales == [(12, (4,)), (Fraction(3, 2), (4,)), (6, (3,))]


def test_noisy_max() -> None:
    m, scores = NoisyMax(1.5), [3, 4, 0, 3]
    counts = np.bincount([m.release(scores) for _ in range(1 << 15)], minlength=4)
    assert_passes(chi_square("chosen", counts, noisy_max_law(scores, Fraction(3, 4))))
    last = noisy_max_law(scores[::-1], Fraction(3, 4))[::-1]
    assert judge([chi_square("the last of equals", counts, last)])


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(3), Fraction(1, 90)])
def test_rival_wins(rate: Fraction) -> None:
    """The bound is the chance for worst scores, exactly for noise of few steps and nearly for more."""
    for rivals in (1, 2, 5):
        for gap in (0, 1, 4, 9, 200):
            chance = 1 - noisy_max_law([-gap] * rivals + [0], rate)[-1]
            bound = float(_rival_wins(rate, gap, rivals))
            if chance > 1e-9:
                assert (
                    chance * (1 - 1e-6) <= bound <= chance * (1 + 1e-6 if rate > Fraction(1, 32) else 16 / 15)
                )


def test_what_sums_leave_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    exactly = float(_rival_wins(Fraction(1, 2), 3, 4))
    for name in ("_BELOW", "_ABOVE"):
        with monkeypatch.context() as patched:
            patched.setattr(f"discreet.mechanisms.noisymax.{name}", 1)
            assert float(_rival_wins(Fraction(1, 2), 3, 4)) > exactly * (1 + 1e-6)


def test_noisy_max_tail() -> None:
    """Whole scores 1.5 behind are 2 behind; on a grid of a half, scores 1.2 apart may be 2 steps apart."""
    m = NoisyMax(2)
    assert m.tail(1.5, candidates=4) == m.tail(2, candidates=4) < m.tail(1, candidates=4)
    missed = 1 - noisy_max_law([-2, -2, -2, 0], Fraction(1))[-1]
    assert m.tail(2, candidates=4) == pytest.approx(missed)
    fine = NoisyMax(2, 1, grid=0.5)
    assert math.floor(1.24 / 0.5 + 0.5) - math.floor(0.04 / 0.5 + 0.5) == 2
    missed = 1 - noisy_max_law([0, 0, 0, 2], fine._step_rate)[-1]
    assert fine.tail(1.2, candidates=4) == pytest.approx(missed)


def test_rivals_far_behind() -> None:
    law = Law.laplace(2)
    for m in (0, 1, 5, 40):
        exactly = MP.fsum(law.chance(z) * (1 - law.at_most(z + m - 1)) for z in range(-400, 401))
        assert float(_apart(Fraction(1, 2), m)) == pytest.approx(float(exactly), rel=1e-12)
    near, far = (float(_rival_wins(Fraction(1), m, 5)) for m in (200, 201))
    assert 0.3 < far / near < 0.4


# --- figures ---------------------------------------------------------------------------------------------

ONES: list[Any] = [ExponentialMechanism, PermuteAndFlip]


@pytest.mark.parametrize("kind", ONES)
@pytest.mark.parametrize("monotonic", [False, True])
def test_tail(kind: Any, monotonic: bool) -> None:
    """It is the chance at the worst scores: all others behind by exactly t."""
    law = exponential_law if kind is ExponentialMechanism else noisy_exponential_law
    m = kind(Fraction(3, 2), Fraction(1, 2), monotonic)
    assert m._rate == (3 if monotonic else Fraction(3, 2))
    for k in (2, 3, 6):
        for t in (Fraction(1, 10), Fraction(1), Fraction(7)):
            missed = 1 - law([Fraction(0), *[-t] * (k - 1)], m._rate)[0]
            assert missed <= m.tail(t, candidates=k) <= missed * (1 + 1e-9)
    assert m.tail(3, candidates=1) == 0
    assert m.tail(0, candidates=5) == 1


def test_exponential_mechanism_expected_error() -> None:
    """No distance of the others gives more, and one gives as much."""
    m = ExponentialMechanism(2)
    for k in (2, 5, 100):
        errors = [t * (k - 1) / (k - 1 + math.exp(t)) for t in np.linspace(0, 10, 4001)]
        assert max(errors) == pytest.approx(m.expected_error(candidates=k), rel=1e-5)
    assert m.expected_error(candidates=1) == 0


@pytest.mark.parametrize("kind", [*ONES, NoisyMax])
def test_error_and_tail_agree(kind: Any) -> None:
    m = kind(0.7)
    for k in (2, 30, 10**6):
        for confidence in (Fraction(1, 2), Fraction(19, 20), 1 - Fraction(1, 10**9)):
            error = m.error(confidence, candidates=k)
            further = 1 if kind is NoisyMax else Fraction(1, 10**6)
            assert m.tail(Fraction(error) + further, candidates=k) <= 1 - confidence
            if error:
                nearer = error if kind is NoisyMax else error * 0.999
                assert m.tail(nearer, candidates=k) > 1 - confidence
    fine = NoisyMax(1, 0.5, grid=0.001)
    assert fine.tail(Fraction(fine.error(0.95, candidates=9)) + Fraction(1, 1000), candidates=9) <= 0.05
    assert PermuteAndFlip(1).error(0.3, candidates=2) == 0
    assert TopK(3, 1).tail(TopK(3, 1).error(0.9, candidates=20), candidates=20) <= 0.1 + 1e-9


def test_solve() -> None:
    kinds: list[tuple[Any, dict[str, int]]] = [(kind, {}) for kind in (*ONES, NoisyMax)]
    for kind, more in [*kinds, (TopK, {"k": 3})]:
        for monotonic in (False, True):
            m = kind.solve(error=10, failure=1e-3, candidates=50, sensitivity=2, monotonic=monotonic, **more)
            assert m.tail(10, candidates=50) <= 1e-3
            less = kind(epsilon=m.epsilon * Fraction(9999, 10000), sensitivity=2, monotonic=monotonic, **more)
            assert less.tail(10, candidates=50) > 1e-3
    fine = NoisyMax.solve(error=1.5, failure=0.01, candidates=9, sensitivity=0.5)
    assert fine.grid == Fraction(1, 2**21)
    assert fine.tail(1.5, candidates=9) <= 0.01
    with pytest.raises(InvalidInput, match="at random"):
        PermuteAndFlip.solve(error=1, failure=0.9, candidates=2)


def test_calibrate() -> None:
    assert ExponentialMechanism.calibrate(epsilon=0.3).guarantee() == PureDP(0.3)
    assert ExponentialMechanism.calibrate(rho=0.5).epsilon == 2
    for kind in (*ONES, NoisyMax):
        for promise in (ZCDP(0.1), ApproxDP(0.5, 1e-3)):
            m = kind.calibrate(promise, sensitivity=3)
            more = kind(m.epsilon * Fraction(10001, 10000), 3)
            kept = m.guarantee() <= promise or (kind is ExponentialMechanism and m.concentrated() <= promise)
            assert kept
            assert not more.guarantee() <= promise
    assert TopK.calibrate(3, epsilon=1) == TopK(3, 1)
    assert TopK.calibrate(3, mu=1).guarantee() <= TopK.calibrate(3, mu=1).guarantee()
    assert NoisyMax.calibrate(epsilon=1, sensitivity=0.5, grid=0.25).grid == Fraction(1, 4)


def test_loss() -> None:
    for m in (ExponentialMechanism(0.7), PermuteAndFlip(0.7), NoisyMax(0.7), TopK(2, 0.7)):
        assert m.loss().max_divergence == 0.7
        assert m.loss(neighbours="replace").neighbours.kind == "replace"
        assert m.guarantee() == PureDP(0.7)
    stated = ExponentialMechanism(1, Sensitivity.histogram(9, neighbours="replace"))
    assert stated.loss().neighbours.kind == "replace"
    assert stated._rate == Fraction(1, 2)  # by the l-infinity norm, which is 1
    with pytest.raises(InvalidInput, match="relation"):
        stated.loss(neighbours="add-remove")


def test_monotonic_scores_need_add_remove() -> None:
    with pytest.raises(Unsupported, match="monotonic"):
        PermuteAndFlip(1, Sensitivity.count(neighbours="replace"), monotonic=True)
    with pytest.raises(Unsupported, match="monotonic"):
        NoisyMax(1, Sensitivity.count().group(2), monotonic=True)
    with pytest.raises(Unsupported, match="monotonic"):
        TopK(2, 1, monotonic=True).loss(neighbours="replace")
    assert PermuteAndFlip(1, Sensitivity.count(), monotonic=True).loss().max_divergence == 1


def test_values() -> None:
    assert repr(TopK(3, 0.5, monotonic=True)) == "TopK(epsilon=0.5, k=3, sensitivity=1, monotonic=True)"
    assert ExponentialMechanism(1) == ExponentialMechanism(1.0)
    assert len({m(1) for m in (*ONES, NoisyMax)}) == 3
    assert TopK(1, 1) != TopK(2, 1)
    assert NoisyMax(1, grid=1) != NoisyMax(1)
    assert len({NoisyMax(1), NoisyMax(1)}) == 1


# --- what a hurried analyst types ------------------------------------------------------------------------

MECHANISMS: list[Any] = [
    ExponentialMechanism(1),
    PermuteAndFlip(1),
    NoisyMax(1),
    TopK(1, 1),
    NoisyMax(1, grid=1),
]
BAD_SCORES: list[Any] = [
    [],
    np.array([]),
    3,
    "12",
    b"12",
    ["1", "2"],
    [True, False],
    np.array([True]),
    [1.0, math.nan],
    [math.inf, 1.0],
    [[1, 2], [3, 4]],
    np.zeros((2, 2)),
    np.array([1, 2], object),
    np.array([1, 2], np.float16),
    [1, None],
    {1: 2},
    {1, 2},
    (n for n in range(3)),
    None,
    [1 + 2j],
    np.ma.masked_array([1, 2], [True, False]),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("scores", BAD_SCORES, ids=lambda scores: repr(scores).partition(" at 0x")[0])
def test_bad_scores_are_refused(mechanism: Any, scores: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any) -> Any:
        raise AssertionError("something was drawn")

    monkeypatch.setattr(type(noise.SYSTEM), "bytes", forbidden)
    monkeypatch.setattr(type(noise.SYSTEM), "words", forbidden)
    with pytest.raises(InvalidInput):
        mechanism.release(scores)


BAD_FIGURES: list[Any] = [0, -1, math.nan, math.inf, "0.1", True, None, np.float16(0.5)]


@pytest.mark.parametrize("kind", [*ONES, NoisyMax, lambda *args: TopK(2, *args)])
@pytest.mark.parametrize("bad", BAD_FIGURES, ids=repr)
def test_bad_parameters_are_refused(kind: Any, bad: Any) -> None:
    for arguments in ((bad,), (1, bad)):
        with pytest.raises(InvalidInput):
            kind(*arguments)
    if bad is not True:
        with pytest.raises(InvalidInput):
            kind(1, 1, bad)


def test_other_refusals() -> None:
    with pytest.raises(InvalidInput, match="grid="):
        NoisyMax(1, 0.5)
    with pytest.raises(InvalidInput, match="grid="):
        NoisyMax(1, Sensitivity.sum(0, 5))
    with pytest.raises(InvalidInput, match="grid="):
        NoisyMax(1).release([1.0, 2.0])
    with pytest.raises(InvalidInput):
        NoisyMax(1, grid=0)
    for k in (0, 1.5, True, "2"):
        with pytest.raises(InvalidInput):
            TopK(k, 1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        TopK(3, 1).release([1, 2])
    with pytest.raises(InvalidInput, match="candidates"):
        TopK(3, 1).tail(1, candidates=2)
    for m in MECHANISMS:
        of: dict[str, Any] = {"k": 1} if isinstance(m, TopK) else {}
        calls = [
            partial(m.tail, 1, candidates=0),
            partial(m.tail, -1, candidates=2),
            partial(m.error, 1, candidates=2),
            partial(m.error, 0.5, candidates=2.0),
            partial(m.release, [1, 2], source=noise.NotPrivate),
            partial(m.solve, error=0, failure=0.1, candidates=3, **of),
            partial(m.solve, error=1, failure=1, candidates=3, **of),
        ]
        for call in calls:
            with pytest.raises(DiscreetError):
                call()
    with pytest.raises(InvalidInput, match="promise"):
        ExponentialMechanism.calibrate()
    with pytest.raises(InvalidInput, match="promise"):
        PermuteAndFlip.calibrate(epsilon=1, rho=1)


def test_messages_tell_no_score() -> None:
    for m in MECHANISMS:
        for scores in ([31337.5, math.nan], [[31337, 31337]], 31337):
            with pytest.raises(InvalidInput) as caught:
                m.release(scores)
            assert "31337" not in str(caught.value)


def test_the_table_is_made_once() -> None:
    weighted._table.cache_clear()
    weighted_index([Fraction(1)])
    weighted_index([Fraction(1)])
    assert weighted._table.cache_info().misses == 1


# --- expected errors of the rest ---------------------------------------------------------------------


@pytest.mark.parametrize("candidates", [1, 2, 5, 40])
def test_expected_errors_of_top_k_and_noisy_max_hold_in_a_sample(candidates: int) -> None:
    """Hoeffding's bound at one in a million; half of what is claimed would be too little for even scores."""
    draws, k = 3000, min(2, candidates)
    assert TopK(k, 1).expected_error(candidates=k) == 0
    for gap in (0, 2, 6):
        scores = [gap] * k + [0] * (candidates - k)
        top, noisy = TopK(k, 1), NoisyMax(1)
        chosen = np.array([top.release(scores).max() >= k for _ in range(draws)])
        won = np.array([noisy.release(scores) >= k for _ in range(draws)])
        room = gap * math.sqrt(math.log(1e6) / (2 * draws))
        assert gap * chosen.mean() <= top.expected_error(candidates=candidates) + room
        assert gap * won.mean() <= noisy.expected_error(candidates=candidates) + room


def test_expected_error_is_never_below_the_area_under_the_exact_tail() -> None:
    """E(gap) for the worst scores of each size of gap is less than the area under the worst tails."""
    for candidates in (2, 10, 200):
        for mechanism, least in ((TopK(1, 1), 1), (TopK(2, 1), 2), (NoisyMax(1), 1)):
            if candidates > least:
                gaps = np.linspace(0.5, 80, 100)
                worst = max(t * mechanism.tail(float(t), candidates=candidates) for t in gaps)
                assert mechanism.expected_error(candidates=candidates) >= worst


@pytest.mark.parametrize(
    ("k", "candidates", "t", "chance"),
    [(100, 1000, 2400, 0.0055), (1000, 10**4, 20_000, 0.335), (1000, 10**4, 30_000, 0.002746592)],
)
def test_the_tail_of_a_long_top_k(k: int, candidates: int, t: int, chance: float) -> None:
    assert TopK(k, 1).tail(t, candidates=candidates) == pytest.approx(chance, rel=0.02)


def test_the_error_of_a_long_top_k_ends_and_agrees_with_its_tail() -> None:
    for k, candidates, confidence in ((100, 1000, 0.999), (1000, 10_000, 0.9999), (50_000, 100_000, 0.95)):
        m = TopK(k, 1)
        e = m.error(confidence, candidates=candidates)
        assert m.tail(e * (1 + 1e-9), candidates=candidates) <= 1 - confidence + 1e-9
        assert m.tail(e * (1 - 1e-6), candidates=candidates) > 1 - confidence


def test_scores_of_any_length_are_ranked() -> None:
    for m in (PermuteAndFlip(1), TopK(1, 1), ExponentialMechanism(1)):
        assert int(np.ravel(m.release([Decimal("1e4500"), Decimal(1)]))[0]) == 0
        assert int(np.ravel(m.release([Fraction(1, 3**9000) + 500, 0]))[0]) == 0
    rows = np.random.default_rng().normal(size=1000) * 1e-300
    assert len(TopK(5, 1).release(rows)) == 5


def test_a_single_candidate_and_too_fine_an_error_are_refused_with_a_reason() -> None:
    for failure, candidates in ((0.1, 1), (0.95, 10)):
        with pytest.raises(InvalidInput, match="at random"):
            NoisyMax.solve(error=5, failure=failure, candidates=candidates)
    with pytest.raises(InvalidInput, match="finer grid"):
        NoisyMax.solve(error=0.001, failure=0.1, candidates=3, grid=0.01)
    assert math.copysign(1, ExponentialMechanism(1).expected_error(candidates=1)) == 1
