"""Claims about PrivacyLoss as a whole: names, both directions, what is refused."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import DiscreetError, InvalidInput
from discreet.privacy.loss import FiniteLoss, PrivacyLoss
from discreet.privacy.neighbours import ADD_REMOVE, REPLACE

F = Fraction


def test_each_maker_says_one_sensitivity_apart() -> None:
    assert PrivacyLoss.laplace(scale=10).max_divergence == 0.1
    assert PrivacyLoss.laplace(scale=10, sensitivity=3).max_divergence == 0.3
    assert PrivacyLoss.discrete_laplace(scale=10, sensitivity=3).max_divergence == 0.3
    assert PrivacyLoss.gaussian(sigma=2).rho == 0.125
    assert PrivacyLoss.gaussian(sigma=2, sensitivity=3).rho == 1.125
    assert PrivacyLoss.discrete_gaussian(variance=4).rho == 0.125
    assert PrivacyLoss.discrete_gaussian(variance=4, sensitivity=3).rho == 1.125
    assert PrivacyLoss.pure(0.3).max_divergence == 0.3
    assert PrivacyLoss.approx(0.3, 1e-6).epsilon(1e-6) == 0.3


def test_a_float_means_its_shortest_decimal() -> None:
    assert PrivacyLoss.laplace(scale=0.1) == PrivacyLoss.laplace(scale=F(1, 10))
    assert PrivacyLoss.pure(0.1) == PrivacyLoss.pure(Decimal("0.1")) == PrivacyLoss.pure(np.float32(0.1))
    assert PrivacyLoss.finite([0.1, 0.9], [0.9, 0.1]).max_ratio == 9


def test_plain_figures_are_the_ends_that_promise_less() -> None:
    loss = PrivacyLoss.discrete_gaussian(variance=4)
    assert loss.epsilon(1e-6) == loss.epsilon_bounds(1e-6).upper > loss.epsilon_bounds(1e-6).lower
    assert loss.delta(1) == loss.delta_bounds(1).upper > loss.delta_bounds(1).lower
    assert loss.kl == loss.kl_bounds.upper
    assert loss.renyi(3) == loss.renyi_bounds(3).upper > loss.renyi_bounds(3).lower
    assert loss.tradeoff(0.05) == loss.tradeoff_bounds(0.05).lower < loss.tradeoff_bounds(0.05).upper
    assert loss.advantage == loss.statistical_distance == loss.statistical_distance_bounds.upper
    assert loss.statistical_distance_bounds.upper > loss.statistical_distance_bounds.lower


def test_the_worse_direction_counts() -> None:
    p, q = [F(1, 100), F(99, 100)], [F(1, 2), F(1, 2)]
    loss = PrivacyLoss.finite(p, q)
    other = PrivacyLoss.finite(q, p)
    assert loss.max_ratio == other.max_ratio == 50
    for figure in ("kl_bounds", "rho_bounds", "max_divergence_bounds", "statistical_distance_bounds"):
        assert getattr(loss, figure) == getattr(other, figure)
    assert loss.epsilon_bounds(0.01) == other.epsilon_bounds(0.01)
    assert loss.tradeoff(F(1, 10)) == other.tradeoff(F(1, 10))
    assert loss.kl > 1.5


def test_renyi_at_one_and_at_infinity_are_the_divergences_with_names() -> None:
    loss = PrivacyLoss.randomized_response(truth=F(3, 4))
    assert loss.renyi_bounds(1) == loss.kl_bounds
    assert loss.renyi_bounds(math.inf) == loss.max_divergence_bounds
    assert loss.renyi(F(10**9 + 1, 10**9)) == pytest.approx(loss.kl, rel=1e-8)


def test_rational_figures_of_finite_losses_are_fractions() -> None:
    loss = PrivacyLoss.randomized_response(truth=F(3, 4))
    assert loss.statistical_distance == F(1, 2)
    assert isinstance(loss.statistical_distance, Fraction)
    assert isinstance(loss.advantage, Fraction)
    assert isinstance(loss.tradeoff(0.1), Fraction)
    assert loss.hockey_stick(2) == F(1, 4)
    assert isinstance(loss.group(2), FiniteLoss)


def test_neighbours_are_carried_along() -> None:
    assert PrivacyLoss.laplace(scale=1).neighbours == ADD_REMOVE
    assert PrivacyLoss.laplace(scale=1, neighbours="replace").neighbours == REPLACE
    assert PrivacyLoss.randomized_response(truth=0.75).neighbours == REPLACE
    assert PrivacyLoss.laplace(scale=1, neighbours=REPLACE).group(3).neighbours == REPLACE.at(3)
    assert PrivacyLoss.laplace(scale=1).group(2).group(3) == PrivacyLoss.laplace(scale=1).group(6)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0, -1, "1", True, None, np.float16(1), 1j])
@pytest.mark.parametrize(
    "make",
    [
        lambda x: PrivacyLoss.laplace(scale=x),
        lambda x: PrivacyLoss.laplace(scale=1, sensitivity=x),
        lambda x: PrivacyLoss.gaussian(sigma=x),
        lambda x: PrivacyLoss.discrete_laplace(scale=x),
        lambda x: PrivacyLoss.discrete_laplace(scale=1, sensitivity=x),
        lambda x: PrivacyLoss.discrete_gaussian(variance=x),
        lambda x: PrivacyLoss.laplace(scale=1).group(x),
    ],
)
def test_a_scale_or_sensitivity_that_is_not_a_positive_number_is_refused(
    make: Callable[[object], PrivacyLoss], bad: object
) -> None:
    with pytest.raises(InvalidInput):
        make(bad)


@pytest.mark.parametrize("bad", [math.nan, -1, "1", True, None])
@pytest.mark.parametrize(
    "ask",
    [
        lambda loss, x: loss.epsilon(x),
        lambda loss, x: loss.renyi(x),
        lambda loss, x: loss.tradeoff(x),
        lambda loss, x: loss.within(x),
        lambda loss, x: loss.posterior(x),
        lambda loss, x: loss.posterior(0.5, failure=x),
        lambda loss, x: loss.satisfies(x, 0),
        lambda loss, x: PrivacyLoss.pure(x),
        lambda loss, x: PrivacyLoss.approx(1, x),
        lambda loss, x: PrivacyLoss.randomized_response(truth=x),
        lambda loss, x: PrivacyLoss.randomized_response(truth=0.5, k=x),
    ],
)
def test_figures_are_refused_for_what_is_not_a_number_in_range(
    ask: Callable[[PrivacyLoss, object], object], bad: object
) -> None:
    with pytest.raises(InvalidInput):
        ask(PrivacyLoss.gaussian(sigma=1), bad)


def test_an_integer_shift_is_asked_of_noise_on_the_integers() -> None:
    with pytest.raises(InvalidInput, match="whole number"):
        PrivacyLoss.discrete_laplace(scale=1, sensitivity=1.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"at least 1, not 0\.5"):
        PrivacyLoss.gaussian(sigma=1).renyi(0.5)
    with pytest.raises(DiscreetError):
        PrivacyLoss.laplace(scale=1, neighbours="swap")


def test_scales_are_given_by_name() -> None:
    with pytest.raises(TypeError):
        PrivacyLoss.laplace(1)  # type: ignore[call-arg]
