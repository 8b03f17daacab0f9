"""The house algorithm: the regime that suits the public numbers of a request carries it out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from core.algorithms.base import Algorithm
from core.algorithms.summit.along_axes import AlongAxes
from core.algorithms.summit.base import Regime
from core.algorithms.summit.exploring import Exploring
from core.algorithms.summit.few_records import FewRecords
from core.algorithms.summit.open_k import MOST_OPEN_COLUMNS, MOST_OPEN_VALUES, OpenK, fine_clusters
from core.algorithms.summit.public_rows import WithPublicRows
from core.algorithms.summit.pure import PureEpsilon
from core.algorithms.summit.signal import Signal
from core.algorithms.summit.sketch import Sketch
from core.blocks.base import Block, Clusters
from core.data import Domain
from core.errors import InvalidRequest
from core.plan import KRange, Plan, Request, Step, Work
from core.probe import Probe

#: A request gets the first regime that suits it; a plan is of the first whose mark it stores.
REGIMES: tuple[type[Regime], ...] = (
    OpenK,
    Sketch,
    PureEpsilon,
    WithPublicRows,
    FewRecords,
    AlongAxes,
    Exploring,
)


def regime_for(domain: Domain, request: Request) -> Regime:
    """Choose and tune a regime by public numbers."""
    signal = Signal.of(domain, request)
    signal.require_enough()
    return next(kind for kind in REGIMES if kind.suits(signal)).tuned(signal)


def regime_of(plan: Plan) -> Regime:
    """The regime of a plan, from what it stores."""
    marked = (kind for kind in REGIMES if plan.parameters.get(kind.mark))
    return next(marked, PureEpsilon if plan.budget.is_pure else Exploring).from_json(plan.parameters)


class Summit(Algorithm):
    """The default; its privacy argument is in `summit.md`."""

    name = "summit"
    summary = "subspace, adaptive tree and clipped rounds: nearly as good as without privacy"
    objectives = ("means", "medians")
    leaves_k_open = True

    def parameters(self, domain: Domain, request: Request, options: Mapping[str, Any]) -> dict[str, Any]:
        return regime_for(domain, request).to_json()

    def require_open_k(self, domain: Domain, request: Request) -> None:
        if request.objective != "means":
            raise InvalidRequest("a range of k is for means: ask for a single k of medians", parameter="k")
        if domain.kind not in ("dense", "table") or domain.dimension > MOST_OPEN_COLUMNS:
            raise InvalidRequest(
                f"a range of k is for dense rows of at most {MOST_OPEN_COLUMNS} columns, levels of "
                "categories counted one by one: ask for a single k",
                parameter="k",
            )
        if isinstance(request.k, KRange) and domain.dimension * sum(request.k) > MOST_OPEN_VALUES:
            raise InvalidRequest(
                "the centres for every k of this range would have too many values: ask for a shorter range, "
                "or for a single k",
                parameter="k",
            )

    def clusters(self, domain: Domain, request: Request) -> int:
        signal = Signal.of(domain, request)
        return fine_clusters(signal) if signal.open_k else signal.k

    def learns_from_public_rows(self, domain: Domain, request: Request) -> bool:
        return isinstance(regime_for(domain, request), WithPublicRows)

    def blocks(self, plan: Plan) -> tuple[Block, ...]:
        return regime_of(plan).blocks(plan)

    def forecast(self, plan: Plan, steps: Sequence[Step]) -> dict[str, float]:
        """For medians, `noise_per_radius` is at most this fraction of the mean distance to the centre.

        `smallest_cluster`: about how many records a group far from all others needs to be found.
        """
        smallest = regime_of(plan).smallest_cluster(replace(plan, steps=tuple(steps)))
        return {**super().forecast(plan, steps), "smallest_cluster": smallest}

    def work(self, plan: Plan) -> Work:
        return regime_of(plan).work(plan)

    def cluster(self, plan: Plan, probe: Probe) -> Clusters:
        return regime_of(plan).run(plan, probe)
