"""What is promised: neighbours, guarantees, the privacy loss, and what it means for a person."""

from discreet.privacy.database import Database, Histogram
from discreet.privacy.distributions import Distribution
from discreet.privacy.explain import Explanation, explain, least_useful_epsilon
from discreet.privacy.guarantees import GDP, ZCDP, ApproxDP, Caution, Guarantee, PureDP
from discreet.privacy.loss import FiniteLoss, PrivacyLoss
from discreet.privacy.neighbours import ADD_REMOVE, REPLACE, Neighbours
from discreet.privacy.posterior import Posterior, epsilon_for_shift, posterior_after, shift_bound
from discreet.privacy.reals import Bounds
from discreet.privacy.released import Released
from discreet.privacy.verification import Verification, verify

__all__ = [
    "ADD_REMOVE",
    "GDP",
    "REPLACE",
    "ZCDP",
    "ApproxDP",
    "Bounds",
    "Caution",
    "Database",
    "Distribution",
    "Explanation",
    "FiniteLoss",
    "Guarantee",
    "Histogram",
    "Neighbours",
    "Posterior",
    "PrivacyLoss",
    "PureDP",
    "Released",
    "Verification",
    "epsilon_for_shift",
    "explain",
    "least_useful_epsilon",
    "posterior_after",
    "shift_bound",
    "verify",
]
