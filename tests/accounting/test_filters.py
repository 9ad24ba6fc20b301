"""A budget that no adaptive analyst overspends, by going through every transcript of random analysts."""

import math
import random
from collections.abc import Callable
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.accounting import EPSILON, RHO, Budget, Cost, Filter, Overspent, Rule, advise
from discreet.errors import DiscreetError, InvalidInput, Unsupported
from discreet.privacy import GDP, ZCDP, ApproxDP, PrivacyLoss, PureDP
from tests.privacy.truths import mp, mpf, real

# --- exact arithmetic ---------------------------------------------------------------------------------


def test_ten_tenths_are_one_and_leave_exactly_nothing() -> None:
    spent = Filter(Budget.of(PureDP(1)))
    for _ in range(10):
        spent = spent.charge(EPSILON.cost(PureDP(0.1)))
    assert spent.remaining == EPSILON.nothing()
    with pytest.raises(Overspent, match="no question of this kind"):
        spent.charge(Cost(EPSILON, F(1, 10**300)))


COSTS = st.fractions(min_value=0, max_value=F(1, 3), max_denominator=10**6)


@given(st.lists(st.tuples(COSTS, COSTS), max_size=30))
def test_a_filter_admits_what_fits_and_nothing_else(costs: list[tuple[F, F]]) -> None:
    """Against sums kept beside it: never over in either figure, and never a refusal of what fits."""
    spent = Filter(Budget.of(ApproxDP(1, F(99, 100))))
    size = delta = F(0)
    for epsilon, chance in costs:
        fits = size + epsilon <= 1 and delta + chance <= F(99, 100)
        assert spent.admits(Cost(EPSILON, epsilon, chance)) == fits
        if fits:
            spent = spent.charge(Cost(EPSILON, epsilon, chance))
            size, delta = size + epsilon, delta + chance
        else:
            with pytest.raises(Overspent, match="left"):
                spent.charge(Cost(EPSILON, epsilon, chance))
    assert (spent.spent.size, spent.spent.delta) == (size, delta)
    assert spent.spent + spent.remaining == spent.budget.total


def test_room_for_says_how_many_fit() -> None:
    spent = Filter(Budget.of(ApproxDP(1, 1e-6)))
    cost = Cost(EPSILON, 0.03, 1e-7)
    assert spent.room_for(cost) == 10
    assert spent.room_for(Cost(EPSILON, 0.03)) == 33
    assert spent.room_for(Cost(EPSILON, 0)) is None
    assert spent.budget.share(0.1) == Cost(EPSILON, 0.1, 1e-7)


# --- every transcript of an adaptive analyst -----------------------------------------------------------

# Questions that tell one bit truly with odds r, or everything with probability d; r <= e**epsilon.
QUESTIONS = [
    (Cost(EPSILON, F(41, 100)), F(3, 2), F(0)),
    (Cost(EPSILON, F(70, 100)), F(2), F(0)),
    (Cost(EPSILON, F(41, 100), F(1, 20)), F(3, 2), F(1, 20)),
    (Cost(EPSILON, 0, F(1, 10)), F(1), F(1, 10)),
]


def answers(odds: F, chance: F) -> list[tuple[F, F]]:
    """Masses under P and Q: given away, truly, falsely, given away the other way."""
    likely, rarely = (1 - chance) * odds / (1 + odds), (1 - chance) / (1 + odds)
    return [(chance, F(0)), (likely, rarely), (rarely, likely), (F(0), chance)]


def transcripts(
    spent: Filter, choose: Callable[[Filter, list[Any]], int | None], path: list[Any], p: F, q: F
) -> list[tuple[F, F]]:
    """Go through every transcript of an analyst, who picks a question in the light of the path, or stops."""
    pick = choose(spent, path)
    if pick is None or not (p or q):
        return [(p, q)]
    cost, odds, chance = QUESTIONS[pick]
    after = spent.charge(cost)
    return [
        end
        for i, (a, b) in enumerate(answers(odds, chance))
        for end in transcripts(after, choose, [*path, (pick, i)], p * a, q * b)
    ]


def analyst(seed: int, admits: Callable[[Filter, Cost], bool]) -> Callable[[Filter, list[Any]], int | None]:
    """An analyst whose choices depend on all that was answered, and who asks whatever is admitted."""

    def choose(spent: Filter, path: list[Any]) -> int | None:
        able = [i for i, (cost, _, _) in enumerate(QUESTIONS) if admits(spent, cost)]
        return random.Random(f"{seed} {path}").choice(able) if able and len(path) < 5 else None

    return choose


def excess(ends: list[tuple[F, F]], budget: ApproxDP) -> F:
    """Return how far H(epsilon) is above delta, with e**epsilon rounded down a little."""
    ratio = F(math.exp(budget.epsilon)) * (1 - F(1, 10**12))
    return sum((max(p - ratio * q, F(0)) for p, q in ends), F(0)) - budget.delta


@pytest.mark.parametrize("seed", range(12))
def test_no_adaptive_analyst_gets_more_than_the_budget_by_epsilon(seed: int) -> None:
    promise = ApproxDP(F(12, 10), F(1, 8))
    ends = transcripts(Filter(Budget.of(promise)), analyst(seed, Filter.admits), [], F(1), F(1))
    assert sum(p for p, _ in ends) == sum(q for _, q in ends) == 1
    assert excess(ends, promise) <= F(1, 10**9)
    assert excess([(q, p) for p, q in ends], promise) <= F(1, 10**9)


class Lax(Filter):
    """Planted: admits a charge while anything is left, and so lets the last one through in full."""

    def charge(self, cost: Cost) -> Filter:
        grown = object.__new__(Lax)
        object.__setattr__(grown, "budget", self.budget)
        object.__setattr__(grown, "spent", self.spent + cost)
        return grown


def test_a_filter_that_refuses_too_late_is_caught() -> None:
    promise = ApproxDP(F(12, 10), F(1, 8))

    def admits(spent: Filter, cost: Cost) -> bool:
        return spent.spent.size < promise.epsilon and spent.spent.delta < promise.delta

    worst = max(
        excess(transcripts(Lax(Budget.of(promise)), analyst(seed, admits), [], F(1), F(1)), promise)
        for seed in range(12)
    )
    assert worst > F(1, 100)


@pytest.mark.parametrize("alpha", [F(3, 2), F(2), F(6)])
def test_rhos_chosen_in_the_light_of_answers_add_up(alpha: F) -> None:
    """Gaussian noise twice, the second as wide as what is left allows, and in two parts or not at all."""
    rho, first = F(1, 2), F(1, 5)

    def masses(variance: F, shift: int) -> dict[int, mpf]:
        weights = {x: mp.exp(-real(F((x - shift) ** 2) / (2 * variance))) for x in range(-14, 16)}
        total = mp.fsum(weights.values())
        return {x: weight / total for x, weight in weights.items()}

    def moment(left: F, seen: int) -> mpf:
        """E_Q (P/Q)**alpha of all that follows, given what was seen."""
        parts = [left] if seen > 1 else [left / 3, 2 * left / 3] if seen > -1 else []
        total = mpf(1)
        for part in parts:
            p, q = masses(1 / (2 * part), 1), masses(1 / (2 * part), 0)
            total *= mp.fsum(p[x] ** real(alpha) * q[x] ** real(1 - alpha) for x in p)
        return total

    p, q = masses(1 / (2 * first), 1), masses(1 / (2 * first), 0)
    both = mp.fsum(p[x] ** real(alpha) * q[x] ** real(1 - alpha) * moment(rho - first, x) for x in p)
    bound = mp.exp(real(alpha * (alpha - 1) * rho))
    assert bound * mpf(9) / 10 < both <= bound * (1 + mpf(10) ** -6)
    late = mp.fsum(p[x] ** real(alpha) * q[x] ** real(1 - alpha) * moment(rho, x) for x in p)
    assert late > bound, "planted: what the first one cost is forgotten"


# --- budgets and rules ---------------------------------------------------------------------------------


@pytest.mark.parametrize("total", [ApproxDP(1, 1e-6), ApproxDP(0.1, 1e-9), ApproxDP(8, 1e-5)], ids=repr)
@pytest.mark.parametrize("set_aside", [None, 1e-12, 5e-10])
def test_a_total_by_rho_is_read_as_the_promise(total: ApproxDP, set_aside: float | None) -> None:
    budget = Budget.of(total, rule="rho", set_aside=set_aside)
    assert budget.set_aside + budget.total.delta == total.delta
    assert ZCDP(budget.total.size) <= ApproxDP(total.epsilon, budget.set_aside)
    assert not ZCDP(budget.total.size * F(1001, 1000)) <= ApproxDP(total.epsilon, budget.set_aside)


def test_costs_by_either_rule() -> None:
    assert EPSILON.cost(PureDP(0.3)) == Cost(EPSILON, 0.3)
    assert EPSILON.cost(ApproxDP(0.3, 1e-7)) == Cost("epsilon", 0.3, 1e-7)
    gaussian = EPSILON.cost(GDP(0.1), delta=1e-7)
    assert GDP(0.1) <= ApproxDP(gaussian.size, gaussian.delta)
    assert RHO.cost(ZCDP(0.3)) == Cost("rho", 0.3)
    assert RHO.cost(GDP(1)) == Cost(RHO, F(1, 2))
    pure = RHO.cost(PureDP(1)).size
    assert PureDP(1) <= ZCDP(pure)
    assert abs(float(pure) - math.tanh(0.5)) < 1e-15
    assert RHO.cost(ApproxDP(1, 1e-7)) == Cost(RHO, pure, 1e-7)
    laplace = RHO.cost_of(PrivacyLoss.laplace(scale=1)).size
    assert F(math.exp(-1)) * (1 - F(1, 10**15)) <= laplace < pure
    assert EPSILON.cost_of(PrivacyLoss.gaussian(sigma=10), delta=1e-7).delta == F(1, 10**7)


def test_advice() -> None:
    few = advise(PureDP(1), PrivacyLoss.laplace(scale=10))
    assert (few.by_epsilon, few.by_rho, few.rule) == (10, None, EPSILON)
    many = advise(ApproxDP(1, 1e-6), PrivacyLoss.discrete_laplace(scale=100))
    assert many.by_epsilon == 100
    assert many.by_rho is not None
    assert many.by_rho > 400
    assert many.rule == RHO
    assert "by rho" in str(many)
    gaussian = advise(ApproxDP(1, 1e-6), PrivacyLoss.gaussian(sigma=50))
    assert gaussian.by_epsilon is None


BAD: dict[str, Callable[[], object]] = {
    "mixed rules": lambda: Cost(RHO, 1) + Cost(EPSILON, 1),
    "compared across rules": lambda: Cost(RHO, 1) <= Cost(EPSILON, 1),
    "a number for a cost": lambda: Filter(Budget.of(PureDP(1))).admits(0.1),  # type: ignore[arg-type]
    "negative": lambda: Cost(EPSILON, -1),
    "nan": lambda: Cost(EPSILON, math.nan),
    "infinite": lambda: Cost(EPSILON, math.inf),
    "text": lambda: Cost(EPSILON, "0.1"),  # type: ignore[arg-type]
    "float16": lambda: Cost(EPSILON, np.float16(0.1)),
    "unknown rule": lambda: Rule("renyi"),
    "a concentrated promise in epsilons": lambda: EPSILON.cost(ZCDP(1)),
    "a delta that is not needed": lambda: EPSILON.cost(PureDP(1), delta=1e-6),
    "no promise": lambda: RHO.cost(0.5),  # type: ignore[arg-type]
    "a Gaussian budget": lambda: Budget.of(GDP(1)),
    "an empty budget": lambda: Budget.of(PureDP(0)),
    "rho without a delta": lambda: Budget.of(PureDP(1), rule="rho"),
    "epsilons of a rho": lambda: Budget.of(ZCDP(1), rule="epsilon"),
    "nothing set aside": lambda: Budget.of(ApproxDP(1, 1e-6), rule="rho", set_aside=0),
    "too much set aside": lambda: Budget.of(ApproxDP(1, 1e-6), rule="rho", set_aside=1e-5),
    "set aside by epsilon": lambda: Budget.of(ApproxDP(1, 1e-6), set_aside=1e-7),
    "less than nothing": lambda: Cost(EPSILON, 1) - Cost(EPSILON, 2),
    "more than there was": lambda: Filter(Budget.of(PureDP(1)), Cost(EPSILON, 2)),
    "a loss of any size": lambda: EPSILON.cost_of(PrivacyLoss.gaussian(sigma=1)),
    "a loss with no rho": lambda: RHO.cost_of(PrivacyLoss.approx(1, 1e-6)),
    "a share above one": lambda: Budget.of(PureDP(1)).share(2),
    "a guarantee for a budget": lambda: Filter(PureDP(1)),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("ask", BAD.values(), ids=BAD)
def test_bad_input(ask: Callable[[], object]) -> None:
    with pytest.raises(DiscreetError) as refused:
        ask()
    assert len(str(refused.value)) > 20


def test_an_overspent_filter_is_an_error_of_the_family_and_changes_nothing() -> None:
    spent = Filter(Budget.of(PureDP(1))).charge(Cost(EPSILON, 0.5))
    with pytest.raises(Overspent, match=r"at 0\.25 of its cost"):
        spent.charge(Cost(EPSILON, 2))
    assert spent.spent == Cost(EPSILON, 0.5)
    assert not issubclass(Overspent, (InvalidInput, Unsupported))
