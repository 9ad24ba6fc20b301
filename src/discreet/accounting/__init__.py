"""How costs add up. So far: the privacy filters that a ledger enforces."""

from discreet.accounting.filters import Advice, Budget, Filter, Overspent, advise
from discreet.accounting.rules import EPSILON, RHO, Cost, Rule

__all__ = ["EPSILON", "RHO", "Advice", "Budget", "Cost", "Filter", "Overspent", "Rule", "advise"]
