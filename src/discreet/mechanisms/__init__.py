"""Noise with a known loss and a known error: each mechanism's release, loss, calibration and utility."""

from discreet.mechanisms.estimates import Estimate
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.noisy_keys import GaussianKeys, LaplaceKeys
from discreet.mechanisms.noisymax import NoisyMax
from discreet.mechanisms.optimal_keys import OptimalKeys
from discreet.mechanisms.quantiles import Quantiles
from discreet.mechanisms.response import RandomizedResponse
from discreet.mechanisms.selection import ExponentialMechanism, PermuteAndFlip, TopK
from discreet.mechanisms.sensitivity import Sensitivity
from discreet.mechanisms.sparse import SparseRun, SparseVector
from discreet.mechanisms.stream import CounterRun, TreeCounter

__all__ = [
    "CounterRun",
    "Estimate",
    "ExponentialMechanism",
    "Gaussian",
    "GaussianKeys",
    "Laplace",
    "LaplaceKeys",
    "NoisyMax",
    "OptimalKeys",
    "PermuteAndFlip",
    "Quantiles",
    "RandomizedResponse",
    "Sensitivity",
    "SparseRun",
    "SparseVector",
    "TopK",
    "TreeCounter",
]
