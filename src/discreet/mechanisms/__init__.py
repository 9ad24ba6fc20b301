"""Noise with a known loss and a known error: each mechanism's release, loss, calibration and utility."""

from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace
from discreet.mechanisms.sensitivity import Sensitivity

__all__ = ["Gaussian", "Laplace", "Sensitivity"]
