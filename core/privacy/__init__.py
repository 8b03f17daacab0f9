"""Budgets, losses and the arithmetic between them: compose, convert, split."""

from core.privacy.budget import DELTA_UNIT, EPSILON_UNIT, RHO_UNIT, Budget, default_delta, units_text
from core.privacy.composition import rho_to_epsilon, zcdp_rho

__all__ = [
    "DELTA_UNIT",
    "EPSILON_UNIT",
    "RHO_UNIT",
    "Budget",
    "default_delta",
    "rho_to_epsilon",
    "units_text",
    "zcdp_rho",
]
