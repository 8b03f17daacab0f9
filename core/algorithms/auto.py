"""The choice of `auto`: a pure function of public numbers, with its reason in words."""

from core.data import Domain
from core.errors import UnknownAlgorithm
from core.plan import Request


def choose(domain: Domain, request: Request) -> tuple[str, str]:
    """Name of the algorithm for this request, and the reason."""
    pure = request.budget.is_pure
    guarantee = "pure epsilon" if pure else "epsilon and delta"
    match domain.kind:
        case "dense":
            return (
                "summit",
                f"dense rows, k-{request.objective} under {guarantee}: the house algorithm loses least",
            )
        case "sparse" if pure and request.objective == "means":
            return (
                "balcan-sparse",
                "sparse rows, k-means under pure epsilon: noise in few chosen columns hurts less than in all",
            )
        case "sparse":
            return (
                "summit",
                f"sparse rows, k-{request.objective} under {guarantee}: clusters are found in a projection",
            )
    raise UnknownAlgorithm(
        "rows that name sites need the sites: ask for gupta or jones, with the sites as an option",
        parameter="algorithm",
    )
