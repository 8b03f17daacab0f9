"""The choice of `auto`: a pure function of public numbers, with its reason in words."""

from core.data import Domain
from core.errors import UnknownAlgorithm
from core.plan import Request


def choose(domain: Domain, request: Request) -> tuple[str, str]:
    """Name of the algorithm for this request, and the reason."""
    pure = request.budget.is_pure
    guarantee = "pure epsilon" if pure else "epsilon and delta"
    asked = f"{domain.kind} rows, k-{request.objective} under {guarantee}"
    if domain.kind in ("dense", "table"):
        return "summit", f"{asked}: the house algorithm loses least"
    if domain.kind == "sparse" and pure and request.objective == "means":
        return "balcan-sparse", f"{asked}: noise in few chosen columns hurts less than in all"
    if domain.kind == "sparse":
        return "summit", f"{asked}: clusters are found in a projection"
    raise UnknownAlgorithm(
        "rows that name sites need the sites: ask for gupta or jones, with the sites as an option",
        parameter="algorithm",
    )
