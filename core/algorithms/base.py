"""The base of all algorithms: plans made from public numbers, and runs that see rows through a probe."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from core.algorithms.options import Option, read_options
from core.arrays import Floats
from core.blocks.base import Block, Clusters
from core.blocks.noise import Noise, forecast_of, noise_of
from core.data import Dense, Domain, Ids, Sites, choose_sites
from core.errors import PlanViolation
from core.plan import Plan, Request, Step, Work
from core.probe import Probe


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


class Algorithm(ABC):
    """An entry of the registry: its parameters, its blocks, and the line between them."""

    name: str
    summary: str
    #: Which of "means" and "medians" it serves.
    objectives: tuple[str, ...]
    #: "pure", "approximate" (needs a delta above zero) or "either".
    guarantee: str
    #: Kinds of domain it reads: "dense", "sparse", "ids".
    domains: tuple[str, ...]
    options: tuple[Option, ...]

    @abstractmethod
    def parameters(self, domain: Domain, request: Request, options: Mapping[str, Any]) -> dict[str, Any]:
        """The public numbers (JSON) that a run needs beside the request; refuses what could not run."""

    @abstractmethod
    def blocks(self, plan: Plan) -> tuple[Block, ...]:
        """The blocks in the order of their steps; of a plan whose steps may not be listed yet."""

    @abstractmethod
    def work(self, plan: Plan) -> Work:
        """The expected work of a run."""

    @abstractmethod
    def cluster(self, plan: Plan, probe: Probe) -> Clusters:
        """Run the blocks; k centres for any data."""

    def example_options(self, domain: Domain) -> dict[str, Any]:
        """Options for a small example on this domain; for those that cannot do without any."""
        return {}

    def forecast(self, plan: Plan, steps: Sequence[Step]) -> dict[str, float]:
        """The noise to expect, from public numbers alone."""
        return forecast_of(steps, plan.domain, plan.k, self.blocks(plan)[-1].clip)

    def decode(self, plan: Plan, centres: Floats) -> Floats:
        """Centres in the data's units."""
        return plan.domain.decode(centres)

    def plan(self, domain: Domain, request: Request) -> Plan:
        """Make a plan: a pure function of public numbers."""
        options = read_options(self.options, request.options)
        if "sites" in options:
            options["sites"] = choose_sites(domain, options["sites"], request.k)
        draft = Plan(
            self.name,
            request.objective,
            request.k,
            domain,
            request.budget,
            steps=(),
            parameters=self.parameters(domain, request, options),
            sites=options.get("sites"),
        )
        steps = tuple(step for block in self.blocks(draft) for step in block.steps())
        return replace(draft, steps=steps, forecast=self.forecast(draft, steps), work=self.work(draft))

    def run(self, plan: Plan, probe: Probe) -> Clustering:
        """Carry a plan out."""
        found = self.cluster(plan, probe)
        noise = noise_of(plan, found, self.blocks(plan)[-1].clip)
        centres = self.decode(plan, found.centres)
        return Clustering(centres, found.sizes, plan, dict(probe.draws), found.details, noise)


class SiteAlgorithm(Algorithm):
    """An algorithm that chooses k of some public sites; its centres are numbers of sites until decoded."""

    guarantee = "either"
    domains = ("dense", "ids")
    SITES = Option("sites", dict, None, "public sites: coordinates with a metric, or a matrix of distances")

    def example_options(self, domain: Domain) -> dict[str, Any]:
        if isinstance(domain, Ids):
            places = np.arange(domain.count, dtype=float)
            return {"sites": {"kind": "distances", "matrix": np.abs(places[:, None] - places).tolist()}}
        assert isinstance(domain, Dense)
        middle, step = domain.decode(np.zeros((1, domain.dimension)))[0], domain.unit_lengths() * 1000
        return {
            "sites": {"kind": "coordinates", "points": [(middle + i * step).tolist() for i in range(-4, 5)]}
        }

    def sites(self, plan: Plan) -> Sites:
        """The sites themselves, for a run."""
        if not isinstance(plan.sites, Sites):
            raise PlanViolation("this plan was read without its sites and cannot be run")
        return plan.sites

    def count(self, plan: Plan) -> int:
        """How many sites there are."""
        assert plan.sites is not None  # `plan` puts them in
        return len(plan.sites)

    def forecast(self, plan: Plan, steps: Sequence[Step]) -> dict[str, float]:
        """Nothing: sites are chosen, and how good the choice is depends on the records."""
        return {}

    def decode(self, plan: Plan, centres: Floats) -> Floats:
        return self.sites(plan).centres(centres.astype(np.int64))
