"""Claims about exact verification: what it finds is there, nothing is worse, and broken copies are caught.

The oracles are the definitions themselves: every event, every prior on a grid, every ordered list of rows.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import InvalidInput
from discreet.numbers import exact
from discreet.privacy import divergences, verification
from discreet.privacy.database import Database, databases
from discreet.privacy.distributions import Distribution
from discreet.privacy.neighbours import ADD_REMOVE, REPLACE, Neighbours
from discreet.privacy.verification import Verification, verify
from tests.privacy.laws import (
    Law,
    Mechanism,
    hockey_stick_over_every_event,
    least_square_of,
    random_mechanism,
)

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
LEVELS = [Fraction(0), Fraction(1, 20), Fraction(1, 4), HALF]

# --- mechanisms, good and bad ----------------------------------------------------------------------


def random_row(database: Database[Any]) -> Law:
    return Distribution.uniform(database)


def random_row_now_and_then(database: Database[Any]) -> Law:
    """A random row with probability 1/10, nothing otherwise."""
    return Distribution({True: TENTH, False: 1 - TENTH}).then(
        lambda lucky: random_row(database) if lucky else Distribution.certain("nothing")
    )


def exact_count(database: Database[Any]) -> Law:
    return Distribution.certain(database.count("yes"))


def count_within_one(database: Database[Any]) -> Law:
    """A count with noise that never exceeds 1."""
    return Distribution.uniform([-1, 0, 1]).map(lambda noise: database.count("yes") + noise)


def two_coins(database: Database[Any]) -> Law:
    """One person's answer: heads, the truth; tails, a second coin."""
    (truth,) = database
    return Distribution.uniform(["truth", "coin"]).then(
        lambda side: Distribution.certain(truth) if side == "truth" else Distribution.uniform(["yes", "no"])
    )


def direct_answer(truth: Fraction, k: int) -> Mechanism:
    """k-ary randomised response: the true answer with probability `truth`, any other equally often."""

    def respond(database: Database[int]) -> Law:
        (answer,) = database
        return Distribution({o: truth if o == answer else (1 - truth) / (k - 1) for o in range(k)})

    return respond


def geometric(alpha: Fraction, n: int) -> Mechanism:
    """A count with two-sided geometric noise, clamped to 0..n: all the mass beyond an end is on it."""

    def noisy(database: Database[str]) -> Law:
        count = database.count("yes")
        inner = (1 - alpha) / (1 + alpha)
        chances = {o: inner * alpha ** abs(o - count) for o in range(1, n)}
        return Distribution(chances | {0: alpha**count / (1 + alpha), n: alpha ** (n - count) / (1 + alpha)})

    return noisy


def present_or_not(database: Database[Any]) -> Law:
    """A coin when nobody is there, heads when somebody is: adding a person is not the worse direction."""
    return Distribution.certain("heads") if len(database) else Distribution.uniform(["heads", "tails"])


# --- the classical bad ideas, and good ones --------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_releasing_a_random_row_is_0_one_nth_private_and_nothing_better(n: int) -> None:
    found = verify(random_row, "abc", n, "replace")
    for ratio in (1, Fraction(3, 2), 2, 10, 10**6):
        assert found.delta_at_ratio(ratio) == Fraction(1, n)
    for epsilon in (0, 0.1, 1, 10, 700):
        lower, upper = (exact(bound, "delta") for bound in found.delta_bounds(epsilon))
        assert lower <= Fraction(1, n) <= upper
        assert found.satisfies(epsilon=epsilon, delta=Fraction(1, n))
        assert not found.satisfies(epsilon=epsilon, delta=Fraction(1, n) - Fraction(1, 10**30))
    assert found.ratio(Fraction(1, n)) == 1
    assert found.ratio() is None
    assert found.epsilon() == math.inf


@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_random_row_now_and_then_passes_a_distance_test_and_fails_every_epsilon(n: int) -> None:
    found = verify(random_row_now_and_then, "ab", n, "replace")
    assert found.statistical_distance == Fraction(1, 10 * n)
    assert found.ratio() is None
    assert not any(found.satisfies(epsilon=epsilon) for epsilon in (0.1, 1, 10, 10**6))
    worst = found.worst_ratio()
    (leaked,) = worst.event
    assert worst.database.count(leaked)
    assert not worst.neighbour.count(leaked)
    assert found.posterior_shift == 1
    assert found.kl == math.inf
    assert found.simulation_epsilon == math.inf


def test_an_exact_count_has_delta_one_whatever_the_epsilon() -> None:
    found = verify(exact_count, ["yes", "no"], 3)
    assert found.delta_at_ratio(10**9) == found.statistical_distance == 1
    assert found.ratio(Fraction(999, 1000)) is None
    assert found.satisfies(epsilon=0, delta=1) is True  # says nothing, and is true


def test_an_outcome_possible_here_and_impossible_next_door_leaves_no_epsilon() -> None:
    found = verify(count_within_one, ["yes", "no"], 3)
    assert found.ratio() is None
    assert found.delta_at_ratio(10**9) == Fraction(1, 3)
    worst = found.worst_ratio()
    (outcome,) = worst.event
    assert found.laws[worst.database][outcome] > 0 == found.laws[worst.neighbour][outcome]


def test_two_coins_are_ln_3_exactly() -> None:
    found = verify(two_coins, ["yes", "no"], 1, "replace")
    assert found.ratio() == 3
    with mpmath.workdps(60):
        ln3 = Fraction(str(mpmath.log(3)))  # 60 digits, then a whisker either way
    assert found.satisfies(epsilon=ln3 + Fraction(1, 10**58))
    assert not found.satisfies(epsilon=ln3 - Fraction(1, 10**58))
    assert found.epsilon_bounds().lower < ln3 < found.epsilon_bounds().upper
    assert found.statistical_distance == HALF
    assert found.delta_at_ratio(2) == Fraction(1, 4)
    assert found.ratio(Fraction(1, 4)) == 2
    assert found.simulation_square == 4
    assert found.kl == pytest.approx(math.log(3) / 2, rel=1e-14)
    assert found.posterior_shift == pytest.approx(math.tanh(math.log(3) / 4), rel=1e-14)
    assert found.worst_prior.lower <= 1 / (1 + math.sqrt(3)) <= found.worst_prior.upper


@pytest.mark.parametrize(("truth", "k"), [(HALF, 4), (Fraction(2, 3), 3), (Fraction(9, 10), 2)])
def test_direct_answers_among_k(truth: Fraction, k: int) -> None:
    found = verify(direct_answer(truth, k), range(k), 1, "replace")
    ratio = truth * (k - 1) / (1 - truth)
    assert found.ratio() == ratio
    assert found.statistical_distance == truth - (1 - truth) / (k - 1)
    most, least = k * truth, k * (1 - truth) / (k - 1)
    assert found.simulation_square == max(most**2, 1 / least**2, ratio)


@pytest.mark.parametrize("alpha", [HALF, Fraction(1, 3), Fraction(9, 10)])
def test_a_clamped_geometric_count_is_exactly_as_private_as_the_unclamped(alpha: Fraction) -> None:
    found = verify(geometric(alpha, 3), ["yes", "no"], 3)
    assert found.ratio() == 1 / alpha
    for ratio in (1, (1 + 1 / alpha) / 2, 1 / alpha, 2 / alpha):
        assert found.delta_at_ratio(ratio) == max(0, (1 - ratio * alpha) / (1 + alpha))
    assert found.satisfies(epsilon=0, delta=(1 - alpha) / (1 + alpha))


def test_what_does_not_depend_on_data_costs_nothing() -> None:
    found = verify(lambda database: Distribution.uniform("xy"), ["a", "b"], 3)
    assert found.ratio() == found.simulation_square == 1
    assert found.statistical_distance == found.kl == found.posterior_shift == found.epsilon() == 0
    assert found.satisfies(epsilon=0)
    assert found.worst_ratio().event == ()


def test_privacy_of_a_group_is_that_of_its_distance() -> None:
    for relation in (ADD_REMOVE, REPLACE):
        found = verify(geometric(HALF, 3), ["yes", "no"], 3, relation.at(2))
        assert found.ratio() == 4
        assert found.neighbours.distance == 2


# --- the definition as an oracle: every ordered list of rows ---------------------------------------


def sequences_that_differ_in_one_person(
    universe: Iterable[Any], n: int, kind: str
) -> Iterator[tuple[Any, Any]]:
    """Neighbours without bags or histograms: lists in every order, one place changed or struck out."""
    rows = tuple(universe)
    for one in (tuple(one) for size in range(n + 1) for one in product(rows, repeat=size)):
        for place in range(len(one)):
            if kind == "add-remove":
                shorter = one[:place] + one[place + 1 :]
                yield one, shorter
                yield shorter, one
            elif len(one) == n:
                yield from ((one, (*one[:place], row, *one[place + 1 :])) for row in rows)


SMALL: list[tuple[Mechanism, int, str]] = [
    (present_or_not, 1, "add-remove"),
    *((random_mechanism(seed, least=seed % 2), 2, "add-remove") for seed in range(8)),
    *((random_mechanism(seed, least=seed % 2), 3, "replace") for seed in range(8)),
]


def claim_every_pair_is_looked_at_in_both_directions() -> None:
    for mechanism, n, kind in SMALL:
        found = verify(mechanism, "ab", n, kind)
        laws = [
            (mechanism(Database(one)), mechanism(Database(other)))
            for one, other in sequences_that_differ_in_one_person("ab", n, kind)
        ]
        for ratio in (Fraction(1), Fraction(4, 3), Fraction(5, 2)):
            assert found.delta_at_ratio(ratio) == max(
                hockey_stick_over_every_event(p, q, ratio) for p, q in laws
            )
        ratios = [p[o] / q[o] if q[o] else math.inf for p, q in laws for o in p.support]
        assert found.ratio() == (None if math.inf in ratios else max(ratios))
        kls = [sum(p[o] * math.log(p[o] / q[o]) if q[o] else math.inf for o in p.support) for p, q in laws]
        assert found.kl == pytest.approx(max(kls), rel=1e-12)


def claim_every_person_is_left_out_and_absence_is_one_of_the_choices() -> None:
    for mechanism, n, kind in SMALL:
        found = verify(mechanism, "ab", n, kind)
        groups: dict[Any, dict[Any, Law]] = {}
        for one, other in sequences_that_differ_in_one_person("ab", n, kind):
            if kind == "add-remove" and len(other) < len(one):
                group = groups.setdefault(Database(other), {None: mechanism(Database(other))})
                group[one] = mechanism(Database(one))
            elif kind == "replace":
                for place in range(n):
                    rest = one[:place] + one[place + 1 :]
                    groups.setdefault(Database(rest), {})[one] = mechanism(Database(one))
        squares = [divergences.simulation_square(group.values()) for group in groups.values()]
        assert found.simulation_square == (None if None in squares else max(s for s in squares if s))


CLAIMS = [claim for name, claim in list(globals().items()) if name.startswith("claim_")]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_verification(claim: Callable[[], None]) -> None:
    claim()


# --- broken copies, each of which some claim must catch --------------------------------------------

_pairs = Verification.pairs


def _only_additions(self: Verification) -> Iterator[Any]:
    return ((one, other) for one, other in _pairs(self) if len(one) <= len(other) and one.rows <= other.rows)


def _only_removals(self: Verification) -> Iterator[Any]:
    return ((one, other) for one, other in _pairs(self) if len(one) >= len(other) and one.rows >= other.rows)


def _nobody_is_the_first(self: Verification) -> Iterator[Any]:
    return ((one, other) for one, other in _pairs(self) if len(one))


def _only_rows_that_everyone_shares(self: Verification) -> Iterator[Any]:
    return ((one, other) for one, other in _pairs(self) if len(one.counts) <= 1)


def _nobody_is_ever_absent(self: Verification) -> Iterator[Any]:
    for rest in databases(self.universe, self.n - 1, self.neighbours):
        yield rest, [self.laws[rest.add(row)] for row in self.universe]


def _no_database_of_full_size(self: Verification) -> Iterator[Any]:
    for rest in databases(self.universe, max(self.n - 2, 0), ADD_REMOVE):
        yield rest, [law for other, law in self.laws.items() if rest.distance(other) <= 1]


_LOOKED_AT = claim_every_pair_is_looked_at_in_both_directions
_LEFT_OUT = claim_every_person_is_left_out_and_absence_is_one_of_the_choices

MUTANTS: list[tuple[object, str, object, Callable[[], None]]] = [
    (Verification, "pairs", _only_additions, _LOOKED_AT),
    (Verification, "pairs", _only_removals, _LOOKED_AT),
    (Verification, "pairs", _nobody_is_the_first, _LOOKED_AT),
    (Verification, "pairs", _only_rows_that_everyone_shares, _LOOKED_AT),
    (verification, "kl_bounds", lambda p, q: divergences.kl_bounds(p, p), _LOOKED_AT),
    (Verification, "_left_out", _nobody_is_ever_absent, _LEFT_OUT),
    (Verification, "_left_out", _no_database_of_full_size, _LEFT_OUT),
]


@pytest.mark.parametrize(("where", "name", "mutant", "claim"), MUTANTS)
def test_a_broken_copy_is_caught(
    monkeypatch: pytest.MonkeyPatch, where: object, name: str, mutant: object, claim: Callable[[], None]
) -> None:
    monkeypatch.setattr(where, name, mutant)
    with pytest.raises(AssertionError):
        claim()


# --- post-processing -------------------------------------------------------------------------------------


def test_mapping_a_whole_mechanism_keeps_its_guarantee() -> None:
    mechanism = geometric(HALF, 3)
    found = verify(mechanism, ["yes", "no"], 3)
    mapped = verify(lambda database: mechanism(database).map(lambda o: o % 2), ["yes", "no"], 3)
    assert mapped.satisfies(epsilon=found.epsilon())
    assert mapped.statistical_distance < found.statistical_distance == Fraction(1, 3)


# --- simulation and the definition -----------------------------------------------------------------


@given(st.integers(0, 10**9), st.sampled_from([ADD_REMOVE, REPLACE, ADD_REMOVE.at(2), REPLACE.at(2)]))
def test_simulation_is_between_half_the_epsilon_and_the_epsilon(seed: int, relation: Neighbours) -> None:
    found = verify(random_mechanism(seed, least=1), "ab", 2, relation)
    ratio, square = found.ratio(), found.simulation_square
    assert ratio is not None
    assert square is not None
    assert square <= ratio**2, "an epsilon-private mechanism is simulated within epsilon"
    assert ratio <= square, "a mechanism simulated within epsilon is 2 epsilon-private"


@given(st.integers(0, 10**9), st.sampled_from([ADD_REMOVE, REPLACE]))
def test_running_the_mechanism_without_the_person_simulates_it(seed: int, relation: Neighbours) -> None:
    mechanism = random_mechanism(seed, least=1)
    found = verify(mechanism, "ab", 2, relation)
    ratio = found.ratio()
    assert ratio is not None
    for rest in databases("ab", 1, relation):
        absent = relation == ADD_REMOVE
        simulator = mechanism(rest if absent else rest.add("a"))  # or with a default row in their place
        laws = [mechanism(rest.add(row)) for row in "ab"] + [mechanism(rest)] * absent
        assert least_square_of(laws, simulator) <= ratio**2


def test_both_ends_of_that_range_are_reached() -> None:
    rarely = {
        "x": 0.04,
        "y": 0.01,
    }  # an outcome for each answer, four times likelier under it, or else "pass"

    def hints(database: Database[str]) -> Law:
        return Distribution({o: rarely["x" if o in database else "y"] for o in "xy"} | {"pass": 0.95})

    half = verify(hints, "xy", 1, "replace")
    assert half.ratio() == half.simulation_square == 4

    def hides_one(database: Database[int]) -> Law:  # absent: one of k; present as x: x three times rarer
        if not len(database):
            return Distribution.uniform(range(4))
        (x,) = database
        return Distribution({o: Fraction(1, 12) if o == x else Fraction(11, 36) for o in range(4)})

    whole = verify(hides_one, range(4), 1, "add-remove")
    assert whole.ratio() == 3
    assert whole.simulation_square == 9


def test_without_absence_among_the_choices_simulation_would_say_nothing_about_presence() -> None:
    found = verify(lambda database: Distribution.certain(len(database)), "ab", 2)
    assert found.simulation_square is None
    assert (
        verify(lambda database: Distribution.certain(len(database)), "ab", 2, "replace").simulation_square
        == 1
    )


# --- witnesses -------------------------------------------------------------------------------------


@given(
    st.integers(0, 10**9),
    st.integers(0, 1),
    st.sampled_from(LEVELS),
    st.sampled_from(["add-remove", "replace"]),
)
def test_every_worst_case_attains_the_number_it_comes_with(
    seed: int, least: int, delta: Fraction, kind: str
) -> None:
    found = verify(random_mechanism(seed, least=least), "ab", 2, kind)
    worst = found.worst_ratio(delta)
    p, q = found.laws[worst.database], found.laws[worst.neighbour]
    assert worst.database.distance(worst.neighbour, kind) == 1
    if worst.value is None:
        assert q.probability(worst.event) == 0
        assert p.probability(worst.event) > delta
    elif worst.value > 1:
        assert p.probability(worst.event) == worst.value * q.probability(worst.event) + delta
    apart = found.worst_delta(Fraction(3, 2))
    p, q = found.laws[apart.database], found.laws[apart.neighbour]
    assert p.probability(apart.event) - Fraction(3, 2) * q.probability(apart.event) == apart.value
    furthest = found.worst_kl
    assert (
        divergences.kl_bounds(found.laws[furthest.database], found.laws[furthest.neighbour]) == furthest.value
    )


def test_the_worst_prior_moves_as_far_as_is_said() -> None:
    found = verify(geometric(Fraction(1, 3), 3), ["yes", "no"], 3)
    worst, prior = found.worst_ratio(), Fraction(found.worst_prior.upper)
    p, q = found.laws[worst.database], found.laws[worst.neighbour]
    after = divergences.posterior(p, q, worst.event[0], prior)
    assert float(after - prior) == pytest.approx(found.posterior_shift, rel=1e-12)


def test_a_report_names_every_number_and_its_pair_and_rounds_up() -> None:
    found = verify(two_coins, ["yes", "no"], 1, "replace")
    assert str(found).splitlines() == [
        "all 2 databases of 1 row over ('yes', 'no'), by Neighbours('replace')",
        "  epsilon               1.0987    Database(['yes']) against Database(['no']), on 'yes'",
        "  statistical distance  0.5       Database(['yes']) against Database(['no']), on 'yes'",
        "  KL divergence         0.54931   Database(['yes']) against Database(['no'])",
        "  posterior shift       0.26795   Database(['yes']) against Database(['no']), on 'yes'",
        "  simulation epsilon    0.69315   given only Database([])",
    ]
    nothing = str(verify(lambda database: Distribution.certain("x"), "ab", 2))
    assert "infinite" not in nothing
    assert "-0" not in nothing
    assert str(verify(exact_count, ["yes", "no"], 2)).count("infinite") == 3
    quarter = str(verify(lambda database: {len(database): Fraction(1, 4), "x": 0.75}, "ab", 1))
    assert "  statistical distance  0.25      " in quarter
    ninth = str(verify(lambda database: {len(database): Fraction(10, 99), "x": Fraction(89, 99)}, "ab", 1))
    assert "  statistical distance  10/99     " in ninth


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.1, "0.1"), (0.0, "0"), (1.0, "1"), (700.0, "700"), (0.123451, "0.12346"), (1e-30, "1e-30")],
)
def test_a_number_in_a_report_is_rounded_up_only_where_it_must_be(number: float, text: str) -> None:
    assert verification._rounded_up(number) == text


# --- refusals --------------------------------------------------------------------------------------


def test_a_plain_mapping_is_a_distribution() -> None:
    assert verify(lambda database: {len(database) > 5: 1.0}, "ab", 2).ratio() == 1


def test_a_mechanism_that_draws_its_own_randomness_is_refused() -> None:
    source = random.Random(1)
    with pytest.raises(InvalidInput, match="two distributions"):
        verify(lambda database: {source.randrange(2): 1}, "ab", 4)


def test_a_failure_of_the_mechanism_is_an_outcome_that_must_be_named() -> None:
    with pytest.raises(InvalidInput, match=r"fails on Database\(\[\]\).*outcome too") as refusal:
        verify(random_row, "ab", 2, "add-remove")  # there is no row to choose from an empty database
    assert isinstance(refusal.value.__cause__, InvalidInput)


def test_look_alikes_on_two_databases_are_refused_before_they_hide_a_leak() -> None:
    def signed_zero(database: Database[str]) -> Law:
        return Distribution.certain(-0.0 if database.count("a") else 0.0)

    with pytest.raises(InvalidInput, match="a reader can tell them apart"):
        verify(signed_zero, "ab", 1)
    assert verify(lambda database: signed_zero(database).map(str), "ab", 1).ratio() is None


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: verify(lambda database: 3, "ab", 2), r"not one outcome \(3\)"),  # type: ignore[arg-type, return-value]
        (lambda: verify(lambda database: {"a": 0.9}, "ab", 2), r"exactly 1, not 0\.9"),
        (lambda: verify(exact_count, "ab", 0), "n must be at least 1"),
        (lambda: verify(exact_count, "", 1), "at least one row"),
        (lambda: verify(exact_count, "a", 1, "replace"), "nothing to exchange it for"),
        (lambda: verify(exact_count, "ab", 1, "both"), "'add-remove' or 'replace'"),
        (lambda: verify(exact_count, range(10), 12), "646,646 databases with up to 20 neighbours each"),
        (lambda: verify(exact_count, "ab", 2, limit=1), "6 databases"),
        (lambda: verify(exact_count, "ab", 1).delta_at_ratio(0.5), "at least 1, not 0.5"),
        (lambda: verify(exact_count, "ab", 1).delta(-1), "epsilon must not be negative"),
        (lambda: verify(exact_count, "ab", 1).ratio(1.5), "delta must be a probability"),
        (lambda: verify(exact_count, "ab", 1).satisfies(epsilon=float("nan")), "epsilon must be finite"),
        (lambda: verify(exact_count, "ab", 1).satisfies(epsilon=-1), "epsilon must not be negative"),
    ],
)
def test_what_cannot_be_verified_is_refused_in_words(act: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        act()


@pytest.mark.parametrize("relation", [ADD_REMOVE.at(20), ADD_REMOVE.at(10**9), REPLACE.at(10**8)])
def test_a_distance_beyond_the_database_is_no_longer_to_go(relation: Neighbours) -> None:
    """It compares every two databases; it used to walk through larger ones, or count up to the distance."""
    found = verify(lambda rows: {len([r for r in rows if r == "a"]): 1}, "abcde", 3, relation)
    assert found.epsilon() == math.inf
    assert len(list(found.pairs())) == len(found.laws) * (len(found.laws) - 1)


def test_numbers_too_long_to_write_are_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match=r"about 10\*\*"):
        verify(lambda rows: {0: 1}, range(5000), 10**6)
