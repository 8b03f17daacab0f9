"""Differentially private clustering as a library.

    from core import PrivateKMeans

    model = PrivateKMeans(n_clusters=10, epsilon=1.0, bounds=(0, 1)).fit(X)

`make_plan` and `run_plan` do the same in two steps: `make_plan(domain, request)` lists every measurement and
its noise before a row is read; `run_plan(plan, source)` carries it out. Names are imported when they are
first used, because scikit-learn is slow to load.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "core.algorithms.base": ("Clustering",),
    "core.data": ("ArraySource", "Dense", "Ids", "Partition", "Sparse", "SparseSource"),
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
    "core.plan": ("KRange", "Plan", "Request"),
    "core.questions.base": ("QuestionResult", "Question"),
    "core.privacy": ("Budget",),
}
_HOME_OF = {name: (module, name) for module, names in _HOMES.items() for name in names} | {
    # `core.plan` is a module, so the two functions have longer names here.
    "make_plan": ("core.jobs.kinds", "plan"),
    "run_plan": ("core.jobs.kinds", "run"),
}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'core' has no attribute {name!r}")
    module, attribute = _HOME_OF[name]
    return getattr(import_module(module), attribute)
