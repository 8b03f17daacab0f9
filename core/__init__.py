"""Differentially private clustering as a library.

    from core import PrivateKMeans

    model = PrivateKMeans(n_clusters=10, epsilon=1.0, bounds=(0, 1)).fit(X)

`plan` and `run` do the same in two steps: `plan(domain, request)` lists every measurement and its noise
before a row is read; `run(plan, source)` carries it out. Names are imported when they are first used, because
scikit-learn is slow to load.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "core.algorithms.base": ("Clustering",),
    "core.algorithms.registry": ("plan", "run"),
    "core.data": ("ArraySource", "Dense", "Ids", "Sparse", "SparseSource"),
    "core.errors": (
        "CoreError",
        "EpsilonTooSmall",
        "InvalidBudget",
        "InvalidData",
        "InvalidDomain",
        "InvalidRequest",
        "PlanViolation",
        "UnknownAlgorithm",
        "WorkLimitExceeded",
    ),
    "core.estimators": ("Guarantee", "PrivateKMeans", "PrivateKMedians"),
    "core.plan": ("Plan", "Request"),
    "core.privacy": ("Budget",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'core' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)
