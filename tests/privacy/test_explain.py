"""Claims about the explanation: its figures are right, on the safe side, and nothing is left out."""

import json
import math
import re
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidInput, Unsupported
from discreet.privacy.explain import Explanation, explain, least_useful_epsilon
from discreet.privacy.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from discreet.privacy.neighbours import Neighbours
from discreet.privacy.posterior import posterior_after
from tests.privacy.truths import TINY, mp, mpf, real

F = Fraction
GUARANTEES: list[Guarantee] = [
    PureDP(0),
    PureDP(1e-9),
    PureDP(1),
    PureDP(1000),
    PureDP(1e6),
    PureDP(1e300),
    ApproxDP(0, 0.5),
    ApproxDP(1, 1e-6),
    ApproxDP(1, 1e-300),
    ApproxDP(3, 0.3),
    ApproxDP(1000, 0.9),
    ZCDP(0),
    ZCDP(0.5),
    ZCDP(1e6),
    GDP(0),
    GDP(1),
    GDP(100),
]


_NEXT_TO_NOTHING = "next to nothing could be learned about anything"
_WHAT_DELTA_LETS = "only what delta lets through could be learned"
_ALMOST_NOTHING = "This epsilon is below that: the results say almost nothing about the data."
_MAY_LET_A_LOT = "This epsilon is below that, but this delta may let a lot through."


def words(text: str) -> str:
    return " ".join(text.split())


def numbers_in(text: str) -> list[Fraction]:
    return [F(x.rstrip(".")) for x in re.findall(r"\d[\d.]*(?:e[+-]?\d+)?", text)]


# --- the figures ----------------------------------------------------------------------------------


@given(st.fractions(min_value=F(1, 1000), max_value=2000, max_denominator=1000))
def test_the_factor_is_never_nearer_to_one_than_the_truth(epsilon: Fraction) -> None:
    more, less = numbers_in(explain(epsilon).summary)
    with mp.workdps(40):
        truth = mp.exp(real(epsilon))
        assert truth <= real(more) <= truth * mp.mpf("1.0101")
        assert (1 / truth) * (1 - mp.mpf("0.0101")) <= real(less) <= 1 / truth


def test_an_epsilon_of_zero_moves_nothing_at_all() -> None:
    said = explain(0)
    assert "exactly as likely" in words(said.summary)
    assert "10% sure before: between 10% and 10% after" in words(str(said))
    assert "right at most 50% of the time" in words(str(said))
    assert "name at most 5% of those" in words(str(said))
    assert "by more than 0 percentage points" in words(str(said))


@pytest.mark.parametrize("epsilon", [F(1, 100), F(1), F(5)])
def test_the_figures_of_a_pure_promise_are_the_closed_forms(epsilon: Fraction) -> None:
    said = explain(epsilon)
    e = mp.exp(real(epsilon))
    assert real(said.best_guess) == pytest.approx(e / (1 + e), rel=1e-14)
    assert said.best_guess >= F(int(mp.floor(e / (1 + e) * 10**60)), 10**60)
    assert float(said.caught) == pytest.approx(float(1 - max(1 - e / 20, mp.mpf(19) / 20 / e)), rel=1e-12)
    assert said.shift == pytest.approx(math.tanh(epsilon / 4))
    assert [b for _, b in said.posteriors] == [posterior_after(epsilon, p) for p in said.priors]
    assert said.failure == 0


def test_printed_percentages_are_on_the_safe_side() -> None:
    said = explain(ApproxDP(1, 1e-6))
    text = words(str(said))
    for prior, bounds in said.posteriors:
        shown = re.search(
            rf"(?<![\d.]){float(100 * prior):g}% sure before: between ([\d.]+)% and ([\d.]+)% after", text
        )
        assert shown is not None
        low, high = F(shown[1]) / 100, F(shown[2]) / 100
        assert bounds.low * F(99, 100) <= low <= bounds.low
        assert bounds.high <= high <= bounds.high * F(101, 100)
    guess = re.search(r"right at most ([\d.]+)% of the time", text)
    assert guess is not None
    assert said.best_guess <= F(guess[1]) / 100 <= said.best_guess + F(1, 1000)
    caught = re.search(r"name at most ([\d.]+)% of those", text)
    assert caught is not None
    assert said.caught <= F(caught[1]) / 100 <= said.caught + F(1, 1000)


def test_beliefs_under_a_delta_hold_but_for_ten_times_it() -> None:
    said = explain(ApproxDP(1, 1e-6))
    assert said.failure == F(1, 10**5)
    assert "But for a chance of 0.00001, over the noise and their guesses, that they come nearer" in words(
        str(said)
    )
    assert said.moved == pytest.approx(1 + math.log(10 / 9), rel=1e-5)
    assert "percentage points. This holds whatever comes out." in words(str(explain(1)))
    assert explain(ApproxDP(1, 0.4)).failure == F(1, 2)
    least = 1 + math.log(5)  # what the search comes near to, from above
    assert least <= explain(ApproxDP(1, 0.4)).moved <= least * 1.0001


def test_the_loss_moved_is_the_guarantee_s_own_where_it_has_one() -> None:
    """A GDP promise allows less than the (epsilon, delta) that it is read as; a ZCDP promise has no pair."""
    gauss, concentrated = explain(GDP(1)), explain(ZCDP(0.5))
    assert gauss.failure == concentrated.failure == F(1, 10**5)
    assert gauss.moved == GDP(1).loss().within(F(1, 10**5)) < gauss.promise.loss().within(F(1, 10**5))
    assert concentrated.moved == concentrated.promise.loss().within(F(1, 10**5))


def test_an_epsilon_near_the_largest_float_is_still_explained() -> None:
    """The search for a loss then starts at infinity."""
    said = explain(ApproxDP(1e308, F(1, 100)), n=10)
    assert 1e308 <= said.moved < 1.0001e308
    assert "says nothing" in words(str(said))


def test_priors_are_shown_as_given() -> None:
    text = words(str(explain(1, priors=[F(1, 3), 0.123456, F(1, 10**4), 0.99999, 0, 1])))
    for shown in ("100/3%", "12.3456%", "0.01%", "99.999%"):
        assert re.search(rf"(?<![\d./]){shown} sure before", text), shown
    assert "0% sure before: between 0% and 0% after" in text
    assert "100% sure before: between 100% and 100% after" in text


def test_a_promise_that_lets_anything_happen_says_so() -> None:
    said = explain(ApproxDP(1, 0.6))
    assert said.moved == math.inf
    assert all(bounds == (0.0, 1.0) for _, bounds in said.posteriors)
    assert "by more than 100 percentage points" in words(str(said))


def test_the_factor_between_two_persons_is_squared_and_its_delta_grows() -> None:
    text = words(explain(ApproxDP(1, 1e-6)).sections()["What is learned beyond what the others teach"])
    assert "within a factor of 2.72, and 1e-6, of those with you" in text
    assert "a factor of 7.39, and 3.72e-6" in text  # delta (1 + e**epsilon)
    assert "a factor of 7.39." in words(explain(1).sections()["What is learned beyond what the others teach"])
    assert "says nothing" in words(str(explain(ApproxDP(1, 0.4))))


@pytest.mark.parametrize(
    ("promise", "said"),
    [
        (ApproxDP(1, F(1, 4)), "a factor of 7.39, and 0.93."),
        (ApproxDP(1, F(3, 10)), "With this delta the other way round says nothing."),
        (ApproxDP(0, F(49, 100)), "a factor of 1, and 0.98."),
        (ApproxDP(0, F(1, 2)), "With this delta the other way round says nothing."),
        (ApproxDP(1e300, F(1, 10**6)), "With this delta the other way round says nothing."),
        (PureDP(1e300), "a factor of e**2e+300."),
        (PureDP(0), "are within a factor of 1 of those with you."),
    ],
    ids=repr,
)
def test_the_other_way_round_says_nothing_once_its_delta_reaches_one(promise: Guarantee, said: str) -> None:
    text = words(explain(promise).sections()["What is learned beyond what the others teach"])
    assert said in text
    assert ("says nothing" in text) != ("simulator that never saw your data" in text)


@pytest.mark.parametrize(("epsilon", "delta"), [(F(1), F(1, 10)), (F(1, 10), F(1, 100)), (F(0), F(1, 5))])
def test_the_simulation_figures_hold_and_no_less_would(epsilon: Fraction, delta: Fraction) -> None:
    """Chances of one set with someone, in a simulation, and with someone else, each as far on as allowed."""
    with mp.workdps(120):
        ratio = mp.exp(real(epsilon))
        chances = [mpf(1) / 1000]
        for _ in range(2):
            chances.append(ratio * chances[-1] + real(delta))
        assert chances[1] + chances[2] <= 1
        for p, q in [*pairwise(chances), *pairwise(chances[::-1])]:
            assert p - ratio * q <= real(delta) + TINY
            assert (1 - p) - ratio * (1 - q) <= real(delta) + TINY
        text = words(
            explain(ApproxDP(epsilon, delta)).sections()["What is learned beyond what the others teach"]
        )
        factor, added = (real(x) for x in numbers_in(text)[-2:])
        reached = chances[2] - ratio**2 * chances[0]
        assert reached <= added <= reached * mpf("1.0101")
        assert chances[2] <= factor * chances[0] + added


def test_four_together_have_the_group_s_figures() -> None:
    assert "epsilon of 4." in words(str(explain(1)))
    assert "epsilon of 4 and a delta of 0.0000312." in words(str(explain(ApproxDP(1, 1e-6))))
    unknown = "To four of you together nothing is known to be promised: their"
    assert f"{unknown} delta would reach 1." in words(str(explain(ApproxDP(1, 0.1))))
    assert f"{unknown} epsilon is too large to say." in words(str(explain(ZCDP(1e308))))
    four = GDP(4).to(ApproxDP, delta=F(1, 10**6)).epsilon
    assert f"epsilon of {math.ceil(four * 10) / 10:g} and a delta of 1e-6" in words(str(explain(GDP(1))))


# --- what is said ---------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=repr)
def test_every_kind_and_size_is_explained_under_all_headings(guarantee: Guarantee) -> None:
    said = explain(guarantee, n=10_000)
    sections = said.sections()
    assert list(sections)[:7] == [
        "In one sentence",
        "What someone could come to believe about you",
        "How well anyone could tell that you took part",
        "What is learned beyond what the others teach",
        "You and others together",
        "What it does not promise",
        "What it leaves to be learned",
    ]
    text = str(said)
    assert text.startswith(repr(guarantee))
    assert all(title in text and body in text for title, body in sections.items())
    assert not re.search(r"\b(nan|inf|None|Fraction|Decimal)\b", text)
    assert all(len(line) <= 110 or "e+300" in line for line in text.splitlines()[1:])


def test_what_it_does_not_promise_is_always_said() -> None:
    for guarantee in GUARANTEES:
        text = words(str(explain(guarantee)))
        assert "smoking causes cancer harms a smoker who never took part" in text
        assert "spread over many rows and a row is the unit, it is the row that is protected" in text
        assert "their losses add up, and belong in one budget" in text
    assert "No prior at all moves" in words(str(explain(1)))
    assert "epsilon would be at most 0.201" in words(str(explain(1)))


def test_without_n_nothing_is_said_about_n() -> None:
    said = explain(ApproxDP(1, 0.01))
    assert "What it leaves to be learned" not in said.sections()
    assert said.cautions == ()
    assert said.to_dict()["n"] is None


def test_with_n_the_least_useful_epsilon_is_named() -> None:
    text = words(explain(1, n=10_000).sections()["What it leaves to be learned"])
    assert "epsilon = 1/(10n) = 0.00001" in text
    assert "the data of all 10,000 would change no chance by more than a factor of 1.11" in text
    assert "This epsilon is 100000 times that" in text


@pytest.mark.parametrize(
    ("promise", "change", "left", "verdict"),
    [
        (PureDP(1e-6), "1.11", _NEXT_TO_NOTHING, _ALMOST_NOTHING),
        (PureDP(F(1, 10**5)), "1.11", _NEXT_TO_NOTHING, "This epsilon is 1 times that."),
        (ApproxDP(1e-6, 1e-9), "1.11, and 0.0000111", _NEXT_TO_NOTHING, _ALMOST_NOTHING),
        (ApproxDP(1e-6, 1e-6), "1.11, and 0.0111", _NEXT_TO_NOTHING, _ALMOST_NOTHING),
        (ApproxDP(1e-6, 1.01e-6), "1.11, and 0.0112", _WHAT_DELTA_LETS, _MAY_LET_A_LOT),
        (ApproxDP(1e-6, 1e-3), "1.11, and 1", _WHAT_DELTA_LETS, _MAY_LET_A_LOT),
        (ApproxDP(0.1, 1e-3), "1.11, and 1", _WHAT_DELTA_LETS, "This epsilon is 10000 times that."),
    ],
    ids=repr,
)
def test_below_the_least_useful_epsilon_only_delta_lets_anything_be_learned(
    promise: Guarantee, change: str, left: str, verdict: str
) -> None:
    said = explain(promise, n=10_000)
    text = words(said.sections()["What it leaves to be learned"])
    assert text.endswith(
        f"leaving out the data of all 10,000 would change no chance by more than a factor of {change}, "
        f"so that {left}. {verdict}"
    )
    assert bool(said.cautions) == (left == _WHAT_DELTA_LETS) == ("Take care" in said.sections())


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 10**6), st.fractions(min_value=0, max_value=1), st.integers(1, 10**6))
def test_below_the_least_useful_epsilon_all_together_are_promised_what_is_said(
    n: int, share: Fraction, rarity: int
) -> None:
    promise = ApproxDP(share / (10 * n), F(1, 2 * n * rarity))
    text = words(explain(promise, n=n).sections()["What it leaves to be learned"])
    factor, added = numbers_in(text.split("by more than")[1])[:2]
    together = promise.group(n)
    assert mp.exp(real(together.epsilon)) <= real(factor)
    assert together.delta <= added <= 2 * n * promise.delta


def test_a_delta_too_large_for_n_is_cautioned_about() -> None:
    assert "not far below 1/n" in words(explain(ApproxDP(1, 1e-3), n=1000).sections()["Take care"])
    assert "Take care" not in explain(ApproxDP(1, 1e-9), n=1000).sections()
    assert "Take care" not in explain(1, n=1000).sections()


def test_a_guarantee_without_a_delta_is_read_at_one_that_suits_n() -> None:
    assert explain(ZCDP(0.5)).promise == ZCDP(0.5).to(ApproxDP, delta=F(1, 10**6))
    assert explain(GDP(1), n=10**9).promise.delta == F(1, 10**11)
    assert explain(GDP(1), n=10**9).cautions == ()
    assert explain(ZCDP(0.5), delta=1e-3).promise.delta == F(1, 1000)
    assert "read as ApproxDP(" in str(explain(ZCDP(0.5)))
    assert explain(ZCDP(0)).promise == explain(GDP(0)).promise == ApproxDP(0, 0)


def test_a_number_is_read_as_an_epsilon() -> None:
    assert explain(1).guarantee == PureDP(1)
    assert explain(0.1, delta=1e-6).guarantee == ApproxDP(0.1, 1e-6)
    assert explain(PureDP(1), delta=0.1).promise == PureDP(1).to(ApproxDP, delta=0.1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: explain("1"),  # type: ignore[arg-type]
        lambda: explain(True),
        lambda: explain(math.nan),
        lambda: explain(-1),
        lambda: explain(1, delta=1),
        lambda: explain(1, n=0),
        lambda: explain(1, n=1.5),  # type: ignore[arg-type]
        lambda: explain(1, priors=[]),
        lambda: explain(1, priors=[1.5]),
        lambda: explain(1, priors=["1"]),  # type: ignore[list-item]
    ],
)
def test_what_cannot_be_read_is_refused(ask: object) -> None:
    with pytest.raises(InvalidInput):
        ask()  # type: ignore[operator]


def test_what_does_not_follow_is_refused() -> None:
    with pytest.raises(Unsupported):
        explain(ApproxDP(1, 0.1), delta=0.01)
    with pytest.raises(Unsupported):
        explain(ZCDP(1), delta=0)


# --- for programs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=repr)
def test_the_dictionary_is_plain_json_and_reads_back(guarantee: Guarantee) -> None:
    said = explain(guarantee, n=1000)
    found = json.loads(json.dumps(said.to_dict(), allow_nan=False))
    assert found["guarantee"] == repr(guarantee)
    assert F(found["epsilon"]) >= said.promise.epsilon * (1 - F(1, 10**15))
    assert len(found["posteriors"]) == 4
    assert found["text"] == said.sections()
    assert 0.5 <= found["best_guess_from_even_odds"] <= 1
    assert 0.05 <= found["true_positive_rate_at_5_percent_false"] <= 1


@settings(max_examples=60, deadline=None)
@given(st.fractions(min_value=0, max_value=50), st.sampled_from([F(0), F(1, 10**9), F(1, 100), F(1, 2)]))
def test_a_weaker_promise_never_sounds_stronger(epsilon: Fraction, delta: Fraction) -> None:
    def figures(said: Explanation) -> list[float]:
        return [float(said.best_guess), float(said.caught), said.shift, *(b.high for _, b in said.posteriors)]

    strong, weak = (explain(ApproxDP(e, delta)) for e in (epsilon, epsilon + F(1, 10)))
    assert all(a <= b + 1e-9 for a, b in zip(figures(strong), figures(weak), strict=True))


# --- what is compared with what, and base rates -----------------------------------------------------


def test_under_replace_nothing_is_said_about_taking_part() -> None:
    text = words(str(explain(ApproxDP(1, 1e-6), n=1000, neighbours="replace")))
    for phrase in (
        "without them",
        "without you:",
        "took part in the table",
        "did not take part",
        "leaving out",
    ):
        assert phrase not in text
    assert "with anybody else's in their place" in text


def test_being_named_is_put_beside_the_base_rate() -> None:
    """Of one in a thousand, caught at most y of the time and one in twenty of the others: y/(y + 49.95)."""
    for promise in (PureDP(1), ApproxDP(2, 1e-6), GDP(0.5), ZCDP(0.05)):
        explanation = explain(promise)
        text = words(explanation.sections()["How well anyone could tell that you took part"])
        said = F(re.search(r"right for at most ([\d.]+)%", text)[1]) / 100  # type: ignore[index]
        exactly = explanation.caught / (explanation.caught + F(999, 20))
        assert exactly <= said <= exactly * F(101, 100)


def test_a_promise_that_can_give_the_few_away_is_not_played_down() -> None:
    for promise in (PureDP(50), GDP(4), ApproxDP(1, 0.5)):
        assert "proves little" not in words(str(explain(promise)))
    assert "exactly as likely" in explain(0).summary


def test_a_concentrated_promise_is_read_at_more_than_one_epsilon() -> None:
    explanation = explain(ZCDP(0.5), n=10**6)
    assert 0.73 < explanation.best_guess < 0.75
    assert explanation.caught < 0.4
    # Gaussian noise keeps that promise, and an attacker on it does as well as this.
    gaussian = GDP(1).loss()
    assert explanation.best_guess >= (1 + F(gaussian.advantage)) / 2
    assert explanation.missed(F(1, 20)) <= F(gaussian.tradeoff(F(1, 20)))


def test_least_useful_epsilon() -> None:
    assert least_useful_epsilon(1000) == F(1, 10_000)
    assert explain(1, n=1000).to_dict()["least_useful_epsilon"] == 0.0001
    for n in (0, 1.5, "3"):
        with pytest.raises(InvalidInput):
            least_useful_epsilon(n)  # type: ignore[arg-type]


def test_priors_are_a_list_and_the_relation_is_one_step() -> None:
    nothing: list[float] = []
    for wrong in (0.5, "0.5", nothing):
        with pytest.raises(InvalidInput, match="priors"):
            explain(1, priors=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="group"):
        explain(1, neighbours=Neighbours("add-remove", 2))
