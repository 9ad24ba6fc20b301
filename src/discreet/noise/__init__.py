"""Exact randomness: where it comes from, and integer noise with exactly the law that is named."""

from discreet.noise.coins import bernoulli, bernoulli_exp, uniform
from discreet.noise.laws import discrete_gaussian, discrete_laplace, geometric
from discreet.noise.ranking import exponential_ranking
from discreet.noise.source import (
    SYSTEM,
    NotPrivate,
    NotPrivateArray,
    NotPrivateFloat,
    NotPrivateInt,
    Source,
)

__all__ = [
    "SYSTEM",
    "NotPrivate",
    "NotPrivateArray",
    "NotPrivateFloat",
    "NotPrivateInt",
    "Source",
    "bernoulli",
    "bernoulli_exp",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_ranking",
    "geometric",
    "uniform",
]
