"""The optimal choice has the probabilities claimed, these keep the promise, and planted errors are caught."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from discreet.errors import Unsupported
from discreet.mechanisms.noisy_keys import LaplaceKeys
from discreet.mechanisms.optimal_keys import OptimalKeys
from discreet.noise import SYSTEM
from discreet.privacy import ADD_REMOVE, ApproxDP
from tests.mechanisms.key_laws import MP, TINY, Law, counts_for, hockey_stick, real, shown_findings, together
from tests.statistics import assert_passes, binomial, judge

# Small deltas, large ones, epsilons at which pi turns at once, and the only tie: delta = 1/2.
CASES = [
    (Fraction(1), Fraction(1, 10**6)),
    (Fraction(1, 10), Fraction(1, 100)),
    (Fraction(3), Fraction(1, 20)),
    (Fraction(1, 1000), Fraction(1, 10)),
    (Fraction(1, 2), Fraction(1, 2)),
    (Fraction(2), Fraction(9, 10)),
    (Fraction(30), Fraction(1, 10**9)),
]


def recurrence(epsilon: Fraction, delta: Fraction, most: int) -> list[Any]:
    """pi(0), pi(1), ... by the definition, in 60 digits."""
    e, d = MP.exp(real(epsilon)), real(delta)
    pi = [MP.mpf(0)]
    while len(pi) <= most:
        pi.append(min(e * pi[-1] + d, 1 - (1 - pi[-1] - d) / e, MP.mpf(1)))
    return pi


def coin(chance: Any) -> Law:
    return {True: chance, False: 1 - chance}


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_keep_probability(epsilon: Fraction, delta: Fraction) -> None:
    """The closed form is the recurrence, for every n until it is 1, and from there on."""
    m = OptimalKeys(epsilon, delta)
    last = min(m._sure + 3, 3000)
    for n, chance in enumerate(recurrence(epsilon, delta, last)):
        low, high = m.keep_probability(n)
        assert low <= chance + TINY
        assert high >= chance - TINY
        assert high - low <= 1e-15
    assert m.keep_probability(m._sure) == (1, 1)
    assert m.keep_probability(m._sure - 1).lower < 1
    assert m.keep_probability(10**30) == (1, 1)


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_optimal_keys_keep_the_promise_and_no_larger_probability_does(
    epsilon: Fraction, delta: Fraction
) -> None:
    """Between n and n + 1 the hockey-stick is at most delta, and delta itself whatever pi(n) < 1 allows."""
    pi = recurrence(epsilon, delta, min(OptimalKeys(epsilon, delta)._sure + 1, 1000))
    d = real(delta)
    for lower, upper in pairwise(pi):
        there = hockey_stick(coin(upper), coin(lower), epsilon)
        back = hockey_stick(coin(lower), coin(upper), epsilon)
        assert max(there, back) <= d + TINY
        assert upper == 1 or max(there, back) >= d - TINY
        more = upper + MP.mpf(10) ** -30
        assert (
            upper == 1
            or max(
                hockey_stick(coin(more), coin(lower), epsilon), hockey_stick(coin(lower), coin(more), epsilon)
            )
            > d
        )


@pytest.mark.parametrize("keys", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), CASES[:4])
def test_guarantee(epsilon: Fraction, delta: Fraction, keys: int) -> None:
    """All counts up to 4 for a unit's keys, all of them moved: exactly (epsilon, delta), in both directions.

    Delta is attained, up to what dividing it among keys rounds off, by keys that are a unit's own.
    """
    m = OptimalKeys(epsilon, delta, keys)
    assert m.guarantee() == ApproxDP(epsilon, delta)
    assert m.loss().satisfies(epsilon, delta)
    pi = recurrence(m.key_epsilon, m.key_delta, 5)
    for n, chance in enumerate(pi[:3]):
        assert m.keep_probability(n).lower <= chance + TINY
    worst = MP.mpf(0)
    for counts in product(range(5), repeat=keys):
        without, within = (together(coin(pi[c + more]) for c in counts) for more in (0, 1))
        worst = max(worst, hockey_stick(within, without, epsilon), hockey_stick(without, within, epsilon))
    assert real(delta) * (1 - MP.mpf(10) ** -14) <= worst <= real(delta) + TINY
    # Delta itself for each key would be too much, and so would epsilon.
    if keys > 1:
        own = together(coin(real(delta)) for _ in range(keys))
        assert hockey_stick(own, {(False,) * keys: MP.mpf(1)}, epsilon) > real(delta) * MP.mpf("1.5")


def test_replacing_a_unit_moves_twice_as_many_keys() -> None:
    m = OptimalKeys(1, Fraction(1, 20), 2)
    promise = m.guarantee(neighbours="replace")
    assert promise.epsilon == 2
    assert float(promise.delta) == pytest.approx(1 - (1 - 1 / 20) ** 2, rel=1e-12)
    assert promise.delta >= 1 - (1 - m.key_delta) ** 4
    pi = recurrence(m.key_epsilon, m.key_delta, 3)
    for counts in product(range(3), repeat=4):
        moved = [(0, 0, 1, 1), (1, 1, 0, 0)]
        one, other = (together(coin(pi[c + x]) for c, x in zip(counts, by, strict=True)) for by in moved)
        assert hockey_stick(one, other, promise.epsilon) <= real(promise.delta)
    with pytest.raises(Unsupported, match="group"):
        m.loss(neighbours=ADD_REMOVE.at(2))


def test_no_noise_shows_more() -> None:
    for epsilon, delta in CASES[:3]:
        best, noisy = OptimalKeys(epsilon, delta), LaplaceKeys.calibrate(epsilon=epsilon, delta=delta)
        for n in range(best._sure + 2):
            assert best.keep_probability(n).upper >= noisy.keep_probability(n).lower
        assert best.shown_from(0.95) <= noisy.shown_from(0.95)


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_release(epsilon: Fraction, delta: Fraction) -> None:
    m = OptimalKeys(epsilon, delta)
    levels = min(m._sure + 2, 40)
    counts, keys = counts_for(levels)
    chances = [float(chance) for chance in recurrence(epsilon, delta, levels)]
    assert_passes(*shown_findings(m.release(counts, keys=keys), levels, chances))
    few = {int(key): int(counts[key]) for key in keys[:4096]}
    shown = m.release(few)
    assert shown == sorted(shown)
    assert all(few[key] > 0 for key in shown)


WRONG: dict[str, Callable[[Fraction, Fraction], OptimalKeys]] = {
    "delta not divided among 3 keys": lambda e, d: OptimalKeys(e / 3, d),
    "epsilon not divided among 3 keys": lambda e, d: OptimalKeys(e, OptimalKeys(1, d, 3).key_delta),
    "e**eps forgotten": lambda e, d: OptimalKeys(Fraction(1, 10**9), OptimalKeys(1, d, 3).key_delta),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_planted_errors_are_caught(wrong: str) -> None:
    epsilon, delta = Fraction(3), Fraction(1, 20)
    right = OptimalKeys(epsilon, delta, 3)
    levels = right._sure + 1
    counts, keys = counts_for(levels)
    chances = [float(c) for c in recurrence(right.key_epsilon, right.key_delta, levels)]
    assert_passes(*shown_findings(right.release(counts, keys=keys), levels, chances))
    shown = WRONG[wrong](epsilon, delta).release(counts, keys=keys)
    assert judge(shown_findings(shown, levels, chances))


class Tied:
    """Gives words that tie with a threshold, and after them true randomness."""

    def __init__(self, word: int) -> None:
        self.word = word

    def words(self, count: int) -> Any:
        return np.full(count, self.word, np.uint64)

    def bytes(self, count: int) -> bytes:
        return SYSTEM.bytes(count)

    def label(self, values: Any) -> Any:
        return values


@pytest.mark.parametrize("n", [1, 9, 14, 15, 20])
def test_ties_are_settled_exactly(n: int) -> None:
    """Given the first 64 bits of a threshold, the rest decide with the threshold's other bits."""
    m = OptimalKeys(1, 1e-6)
    scaled = recurrence(Fraction(1), Fraction(1, 10**6), n)[n] * 2**64
    word = int(MP.floor(scaled))
    counts, keys = np.full(1 << 12, n), np.arange(1 << 12)
    shown = m.release(counts, keys=keys, source=Tied(word))
    assert_passes(binomial("ties", len(shown), 1 << 12, float(scaled - word)))
    assert len(m.release(counts, keys=keys, source=Tied(word - 1))) == 1 << 12
    assert len(m.release(counts, keys=keys, source=Tied(word + 1))) == 0


def test_keep_bounds_enclose_at_every_precision() -> None:
    for epsilon, delta in CASES:
        m = OptimalKeys(epsilon, delta)
        for n in {1, 2, m.threshold, m.threshold + 1, m._sure - 1} - {m._sure}:
            if 0 < n < min(m._sure, 2000):
                chance = recurrence(epsilon, delta, n)[n]
                for bits in (1, 8, 64, 128):
                    low, high = m._keep_bounds(n, bits)
                    assert 0 <= low < high <= 2**bits
                    assert low - TINY * 2**bits <= chance * 2**bits <= high + TINY * 2**bits
                assert high - low <= 2


def test_a_threshold_that_no_table_reaches_hides_all() -> None:
    m = OptimalKeys(Fraction(1, 10**30), Fraction(1, 10**40))
    assert m.threshold > 10**25
    assert m.release({"a": 5, "b": 2**61}) == []


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)], ids=str)
@pytest.mark.parametrize("reach", [1, 2, 7, 20])
def test_it_is_truncated_geometric_noise_and_a_threshold(epsilon: Fraction, reach: int) -> None:
    """Noise on -reach, ..., reach, P(x) proportional to exp(-epsilon |x|), shown above a threshold, reach.

    At the delta with which that shows a key of one unit, the probability of its greatest value.
    """
    q = MP.exp(-real(epsilon))
    weights = {x: q ** abs(x) for x in range(-reach, reach + 1)}
    total = MP.fsum(weights.values())
    delta = Fraction(MP.nstr(weights[reach] / total, 40))
    m = OptimalKeys(epsilon, delta)
    for n in range(2 * reach + 3):
        shown = MP.fsum(weight for x, weight in weights.items() if n + x > reach) / total
        low, high = m.keep_probability(n)
        assert low - 1e-15 <= shown <= high + 1e-15
