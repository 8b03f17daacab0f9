"""Which algorithm `auto` stands for: a pure function of public numbers, with its reason in words."""

from __future__ import annotations

from core.domain import Domain
from core.errors import UnknownAlgorithm
from core.plan import Request

__all__ = ["choose"]


def choose(domain: Domain, request: Request) -> tuple[str, str]:
    """The name of the algorithm for this request, and why."""
    match domain.kind:
        case "dense":
            return "summit", _why_summit(request)
        case "sparse" if request.objective == "means":
            return "sulq", "sparse rows: rounds of noisy averages need no dense copy of them"
    raise UnknownAlgorithm(
        f"auto has no algorithm for {request.objective} on {domain.kind} data: name one",
        parameter="algorithm",
    )


def _why_summit(request: Request) -> str:
    guarantee = "pure epsilon" if request.budget.is_pure else "epsilon and delta"
    return f"dense rows, k-{request.objective} under {guarantee}: the house algorithm loses least"
