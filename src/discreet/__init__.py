"""Ask a table about people without telling on any of them.

discreet answers questions about a table that holds people's data with exact noise, an error bar and a record
of what it cost. The names below are the whole public face; each loads the room it lives in on first use, so
that ``import discreet`` itself is nearly free.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what type checkers and editors see; a test holds it equal to the table below
    from discreet import mechanisms as mechanisms
    from discreet import noise as noise
    from discreet import privacy as privacy
    from discreet.errors import DiscreetError as DiscreetError
    from discreet.errors import InvalidInput as InvalidInput
    from discreet.errors import Unsupported as Unsupported
    from discreet.mechanisms import ExponentialMechanism as ExponentialMechanism
    from discreet.mechanisms import Gaussian as Gaussian
    from discreet.mechanisms import GaussianKeys as GaussianKeys
    from discreet.mechanisms import Laplace as Laplace
    from discreet.mechanisms import LaplaceKeys as LaplaceKeys
    from discreet.mechanisms import NoisyMax as NoisyMax
    from discreet.mechanisms import OptimalKeys as OptimalKeys
    from discreet.mechanisms import PermuteAndFlip as PermuteAndFlip
    from discreet.mechanisms import Quantiles as Quantiles
    from discreet.mechanisms import RandomizedResponse as RandomizedResponse
    from discreet.mechanisms import Sensitivity as Sensitivity
    from discreet.mechanisms import SparseVector as SparseVector
    from discreet.mechanisms import TopK as TopK
    from discreet.mechanisms import TreeCounter as TreeCounter
    from discreet.privacy import ADD_REMOVE as ADD_REMOVE
    from discreet.privacy import GDP as GDP
    from discreet.privacy import REPLACE as REPLACE
    from discreet.privacy import ZCDP as ZCDP
    from discreet.privacy import ApproxDP as ApproxDP
    from discreet.privacy import Database as Database
    from discreet.privacy import Histogram as Histogram
    from discreet.privacy import Neighbours as Neighbours
    from discreet.privacy import PrivacyLoss as PrivacyLoss
    from discreet.privacy import PureDP as PureDP
    from discreet.privacy import explain as explain
    from discreet.privacy import verify as verify

__version__ = "0.1.0"

_ROOMS = ("mechanisms", "noise", "privacy")
_NAMES = {
    "discreet.errors": ("DiscreetError", "InvalidInput", "Unsupported"),
    "discreet.mechanisms": (
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
        "SparseVector",
        "TopK",
        "TreeCounter",
    ),
    "discreet.privacy": (
        "ADD_REMOVE",
        "REPLACE",
        "ApproxDP",
        "Database",
        "GDP",
        "Histogram",
        "Neighbours",
        "PrivacyLoss",
        "PureDP",
        "ZCDP",
        "explain",
        "verify",
    ),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *_ROOMS, *_HOME]  # noqa: PLE0604 (all of them are strings)


if not TYPE_CHECKING:  # a type checker that saw this would let every misspelt name pass

    def __getattr__(name: str) -> object:
        if name in _ROOMS:
            return import_module(f"discreet.{name}")
        if name in _HOME:
            value = getattr(import_module(_HOME[name]), name)
            globals()[name] = value  # from now on Python finds it without asking here
            return value
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
