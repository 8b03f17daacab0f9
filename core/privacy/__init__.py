"""Budgets, losses and the arithmetic between them: compose, convert, split."""

from core.privacy.budget import (
    DELTA_UNIT,
    EPSILON_UNIT,
    RHO_UNIT,
    Budget,
    default_delta,
    to_units,
    units_text,
    units_up,
)
from core.privacy.composition import (
    Composition,
    compose,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    rho_to_delta,
    rho_to_epsilon,
    zcdp_rho,
)
from core.privacy.losses import ZCDP, Approximate, Gaussian, Loss, Pure
from core.privacy.sensitivity import Norm, Sensitivity
from core.privacy.shares import Shares

__all__ = [
    "DELTA_UNIT",
    "EPSILON_UNIT",
    "RHO_UNIT",
    "ZCDP",
    "Approximate",
    "Budget",
    "Composition",
    "Gaussian",
    "Loss",
    "Norm",
    "Pure",
    "Sensitivity",
    "Shares",
    "compose",
    "default_delta",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "rho_to_delta",
    "rho_to_epsilon",
    "to_units",
    "units_text",
    "units_up",
    "zcdp_rho",
]
