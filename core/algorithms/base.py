"""The base of all algorithms: plans made from public numbers, and runs that see rows through a probe."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from core.arrays import Floats
from core.blocks.base import Block, Clusters
from core.blocks.noise import Noise, NoiseIntervals, forecast_of, noise_of
from core.blocks.scaling import ColumnRanges
from core.data import Domain, Geometry, choose_sites
from core.data.tables.profiles import describe, describe_intervals, ranges_of
from core.errors import InvalidRequest
from core.options import Option, read_options
from core.plan import SCALING_SHARE, KRange, Plan, Request, Step, Work, clustering_budget
from core.postprocessing.coarsening import MOST_MERGED, Coarsening
from core.postprocessing.kmeans import single_threaded
from core.postprocessing.synopsis import Synopsis, summarise
from core.probe import Probe, Release


@dataclass(frozen=True, eq=False)
class Clustering:
    """The release of a run: centres in the data's units, noisy sizes where they were released, the plan."""

    centres: Floats
    sizes: Floats | None
    plan: Plan
    #: Seeds of the data-independent randomness that was used, by name.
    draws: Mapping[str, str] = field(default_factory=dict)
    #: Further released numbers worth showing (JSON), such as a clipping radius or a number of axes.
    details: Mapping[str, Any] = field(default_factory=dict)
    #: The size of the noise in sizes and centres.
    noise: Noise = field(default_factory=Noise)
    #: How far noise alone may have moved sizes and centres; None where k was left open.
    intervals: NoiseIntervals | None = None
    #: Every released value, in order.
    releases: Sequence[Release] = ()
    #: The answers for every k, where k was left open; centres and sizes are then those of the suggested one.
    synopsis: Synopsis | None = None
    #: Of a table: each centre column by column, in the curator's words (`core.data.tables.profiles`).
    profiles: list[list[dict[str, Any]]] | None = None
    #: How the clusters of a single k are merged into fewer; None where that makes no sense.
    coarsening: Coarsening | None = None


class Algorithm(ABC):
    """An entry of the registry: its parameters, its blocks, and the line between them."""

    name: str
    summary: str
    #: "house" for the project's own, "literature" for published ones.
    origin: str = "house"
    #: Which of "means" and "medians" it serves.
    objectives: tuple[str, ...] = ("means",)
    #: "pure", "approximate" (needs a delta above zero) or "either".
    guarantee: str = "either"
    #: Kinds of domain it reads: "dense", "sparse", "ids", "table".
    domains: tuple[str, ...] = ("dense", "sparse", "table")
    options: tuple[Option, ...] = ()
    #: Whether one release can answer for every k in a range; `require_open_k` says where.
    leaves_k_open: bool = False

    @abstractmethod
    def parameters(self, domain: Domain, request: Request, options: Mapping[str, Any]) -> dict[str, Any]:
        """The public numbers (JSON) that a run needs; refuses requests that could not run."""

    @abstractmethod
    def blocks(self, plan: Plan) -> tuple[Block, ...]:
        """The blocks in the order of their steps; of a plan whose steps may not be listed yet."""

    @abstractmethod
    def work(self, plan: Plan) -> Work:
        """The expected work of a run."""

    @abstractmethod
    def cluster(self, plan: Plan, probe: Probe) -> Clusters:
        """Run the blocks; k centres for any data."""

    def forecast(self, plan: Plan, steps: Sequence[Step]) -> dict[str, float]:
        """The noise to expect, from public numbers alone."""
        return forecast_of(steps, plan.domain, plan.k, self.blocks(plan)[-1].clip)

    def require_open_k(self, domain: Domain, request: Request) -> None:
        """Refuse a range of k where one release cannot answer for every k in it."""
        raise InvalidRequest(
            f"{self.name} answers for one k only: ask for a single k, or use summit for a range",
            parameter="k",
        )

    def learns_from_public_rows(self, domain: Domain, request: Request) -> bool:
        """Whether a run makes use of the public rows of a request."""
        return False

    def clusters(self, domain: Domain, request: Request) -> int:
        """The number of clusters that a run measures."""
        return request.clusters

    def decode(self, plan: Plan, centres: Floats) -> Floats:
        """Centres in the data's units."""
        return plan.domain.decode(centres)

    def plan(self, domain: Domain, request: Request) -> Plan:
        """Make a plan: a pure function of public numbers."""
        options = read_options(self.name, self.options, request.options)
        if "sites" in options:
            options["sites"] = choose_sites(domain, options["sites"], request.clusters)
        part = replace(request, budget=clustering_budget(domain, request.budget))
        draft = Plan(
            self.name,
            request.objective,
            self.clusters(domain, request),
            domain,
            request.budget,
            steps=(),
            parameters=self.parameters(domain, part, options),
            sites=options.get("sites"),
            k_range=request.k if isinstance(request.k, KRange) else None,
            public_rows=request.public_rows if self.learns_from_public_rows(domain, part) else None,
        )
        steps = tuple(step for block in self.blocks(draft) for step in block.steps())
        forecast = self.forecast(draft, steps)
        if isinstance(domain, Geometry) and domain.scaling == "private":
            steps = (*ColumnRanges.of(draft, steps).steps(), *steps)
            forecast["scaling_share"] = SCALING_SHARE
        planned = replace(draft, steps=steps, forecast=forecast)
        return replace(planned, work=self.work(planned))

    def run(self, plan: Plan, probe: Probe) -> Clustering:
        """Carry a plan out."""
        if isinstance(plan.domain, Geometry) and plan.domain.scaling == "private":
            probe.rescale(ColumnRanges.of(plan, plan.steps[1:]).run(probe))  # it is the first step
        scaled = probe.plan
        found = self.cluster(scaled, probe)
        synopsis = None
        if plan.k_range is not None:
            assert found.cells is not None  # what leaves k open releases them
            with single_threaded():  # two threads spin next to other programs; sums depend on their order
                synopsis = summarise(found.cells, plan.k_range, probe.draw("synopsis"))
        draws, releases = dict(probe.draws), tuple(probe.transcript)
        details, profiles = found.details, None
        if isinstance(scaled.domain, Geometry) and scaled.domain.ranges is not None:
            details = {**details, "ranges": ranges_of(scaled.domain)}
        if synopsis is not None:
            level = synopsis.at(synopsis.suggested)
            if isinstance(scaled.domain, Geometry):
                profiles = describe_intervals(
                    scaled.domain, level.centres, level.centre_low, level.centre_high
                )
            parts = (level.centres, level.sizes, plan, draws, details)
            return Clustering(*parts, releases=releases, synopsis=synopsis, profiles=profiles)
        noise = noise_of(scaled, found, self.blocks(scaled)[-1].clip)
        centres = self.decode(scaled, found.centres)
        intervals = NoiseIntervals.of(scaled.domain, centres, found.sizes, noise)
        if isinstance(scaled.domain, Geometry):
            profiles = describe(scaled.domain, centres, noise.deviations, plan.objective, intervals.centres)
        return Clustering(
            centres,
            found.sizes,
            plan,
            draws,
            details,
            noise,
            intervals,
            releases,
            profiles=profiles,
            coarsening=self._coarsening(plan, found, noise),
        )

    @staticmethod
    def _coarsening(plan: Plan, found: Clusters, noise: Noise) -> Coarsening | None:
        """How to merge the clusters of a release, where means of centres are valid and sizes are known."""
        if plan.objective != "means" or plan.sites is not None or not 2 <= plan.k <= MOST_MERGED:
            return None
        if found.sizes is None or noise.size is None:
            return None
        return Coarsening.of(found.centres.astype(np.float64), found.sizes, noise.size)
