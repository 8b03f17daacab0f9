"""The registry of algorithms: look one up by name, plan a request, run a plan."""

from concurrent.futures import Executor
from dataclasses import replace

from core.algorithms.auto import choose
from core.algorithms.base import Algorithm, Clustering
from core.algorithms.papers.balcan import Balcan
from core.algorithms.papers.balcan_median import BalcanMedian
from core.algorithms.papers.balcan_sparse import BalcanSparse
from core.algorithms.papers.chaturvedi import Chaturvedi
from core.algorithms.papers.grid import Grid
from core.algorithms.papers.gupta import Gupta
from core.algorithms.papers.jones import Jones
from core.algorithms.papers.jones_euclidean import JonesEuclidean
from core.algorithms.papers.sulq import Sulq
from core.algorithms.summit import Summit
from core.data import DataSource, Domain, Geometry, Stored, Table
from core.errors import InvalidRequest, UnknownAlgorithm
from core.plan import KRange, Plan, Request
from core.probe import Listener, Probe

_KINDS = (Summit, Balcan, BalcanMedian, BalcanSparse, Gupta, Jones, JonesEuclidean, Chaturvedi, Sulq, Grid)
_ALGORITHMS: dict[str, Algorithm] = {kind.name: kind() for kind in _KINDS}


def names() -> tuple[str, ...]:
    """Every name but "auto"."""
    return tuple(_ALGORITHMS)


def get(name: str) -> Algorithm:
    if name not in _ALGORITHMS:
        raise UnknownAlgorithm(
            f"there is no algorithm {name!r}; choose one of auto, {', '.join(_ALGORITHMS)}",
            parameter="algorithm",
        )
    return _ALGORITHMS[name]


def plan(stored: Stored, request: Request) -> Plan:
    """The plan of the request's algorithm, after the checks that are the same for all of them."""
    domain = _domain(stored, request)
    if request.algorithm == "auto":
        name, reason = choose(domain, request)
        return replace(plan(stored, replace(request, algorithm=name)), reason=reason)
    algorithm = get(request.algorithm)
    if request.objective not in algorithm.objectives:
        raise UnknownAlgorithm(
            f"{algorithm.name} finds {' and '.join(algorithm.objectives)}, not {request.objective}: "
            f"set the objective to {algorithm.objectives[0]}",
            parameter="objective",
        )
    if domain.kind not in algorithm.domains:
        raise UnknownAlgorithm(
            f"{algorithm.name} works on {' and '.join(algorithm.domains)} data, not on {domain.kind}",
            parameter="algorithm",
        )
    if algorithm.guarantee == "approximate" and request.budget.is_pure:
        raise InvalidRequest(f"{algorithm.name} needs a delta above zero", parameter="delta")
    if isinstance(request.k, KRange):
        algorithm.require_open_k(domain, request)
    return algorithm.plan(domain, request)


def _domain(stored: Stored, request: Request) -> Domain:
    """Return the domain that the request clusters in: of a table, the chosen columns."""
    if isinstance(stored, Table):
        return Geometry.of(stored, request.columns, request.weights, request.scaling)
    asked = {
        "columns": request.columns is not None,
        "weights": bool(request.weights),
        "scaling": request.scaling != "declared",
    }
    for name in asked:
        if asked[name]:
            raise InvalidRequest(f"{name} can be chosen on tables only", parameter=name)
    return stored


def run(
    plan: Plan, source: DataSource, executor: Executor | None = None, listener: Listener | None = None
) -> Clustering:
    """Carry a plan out on a source of rows."""
    return get(plan.algorithm).run(plan, Probe(plan, source, executor, listener))
