"""Balcan et al. (2017), section 6.1, for sparse rows: the same selection, then sparse means of clusters."""

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from core.algorithms.papers.balcan import SELECTION_OPTIONS, selection_work
from core.algorithms.papers.base import PaperAlgorithm
from core.algorithms.papers.stages.recovery import SparseMeans, affordable_picks
from core.algorithms.papers.stages.selection import Selection, settings_for
from core.blocks.base import Clusters
from core.blocks.work import numbers
from core.data import UNITS, Domain, Sparse
from core.errors import InvalidRequest
from core.options import Option
from core.plan import Plan, Request, Work
from core.postprocessing.bounds import clip_into
from core.privacy.shares import Shares
from core.probe import Probe
from core.views import Assigned, Encoded, TopEntries

TREES = 0.15  # Share of the budget (of epsilon, or of rho) of the partition trees.
SWAPS = 0.15  # Share of local swaps.
LEFT = 1.0 - TREES - SWAPS  # Share of the recovery of centres.


class BalcanSparse(PaperAlgorithm):
    """The paper's extension to sparse data, corrected; the argument is in `balcan_sparse.md`."""

    name = "balcan-sparse"
    summary = "candidates from partition trees in a projection, local swaps, sparse means of each cluster"
    domains = ("sparse",)
    options = (
        *(option for option in SELECTION_OPTIONS if option.name != "trials"),
        Option(
            "nonzeros", int, 50, "non-zero entries of a row that are kept, the largest", least=1, most=10**6
        ),
        Option("largest", float, None, "entries are clipped to this (in the data's units)", least=0),
        Option(
            "accuracy", float, 0.5, "2 * nonzeros / accuracy columns are kept at most", least=0.01, most=1
        ),
        Option("columns", int, None, "how many columns of each centre are not zero", least=1, most=10**6),
        Option("rounds", int, None, "recoveries, each of the clusters of the one before", least=1, most=20),
    )

    def parameters(self, domain: Domain, request: Request, options: Mapping[str, Any]) -> dict[str, Any]:
        assert isinstance(domain, Sparse)
        largest = options["largest"]
        if largest is not None and not 0 < largest <= domain.radius:
            raise InvalidRequest(
                f"option largest must be above zero and at most the radius {domain.radius:g}",
                parameter="options.largest",
            )
        settings = settings_for(domain, request, {**options, "trials": 1})
        # Under pure noise a second recovery costs more than it gains; with a delta it corrects assignments.
        rounds = options["rounds"] or (1 if request.budget.is_pure else 2)
        shares = Shares(request.budget, domain.rows_per_person, with_choices=True)
        width, nonzeros = domain.dimension, options["nonzeros"]
        part = (largest or domain.radius) / domain.radius
        picks = options["columns"] or affordable_picks(
            shares, LEFT / rounds, domain.size, request.clusters, width, nonzeros, options["accuracy"]
        )
        return {
            **asdict(settings),
            "rounds": rounds,
            "nonzeros": nonzeros,
            "largest_units": max(1, min(UNITS, math.ceil(part * UNITS))),
            "columns": min(picks, width),
        }

    def plan(self, domain: Domain, request: Request) -> Plan:
        made = super().plan(domain, request)
        # The number of columns is part of the step that picks them.
        published = {name: value for name, value in made.parameters.items() if name != "columns"}
        return replace(made, parameters=published)

    def blocks(self, plan: Plan) -> tuple[Selection, SparseMeans]:
        shares, given = plan.shares(with_choices=True), plan.parameters
        means = SparseMeans(shares, LEFT, given.get("columns", 1), given["rounds"])
        return Selection.of(plan, shares, TREES, SWAPS), means

    def work(self, plan: Plan) -> Work:
        found = selection_work(self.blocks(plan)[0], 0)
        # The largest entries of every row are kept, once to choose columns and once to average them.
        kept = plan.parameters["rounds"] * plan.domain.size * numbers(plan.domain) * 300.0
        return replace(found, operations=found.operations + kept)

    def cluster(self, plan: Plan, probe: Probe) -> Clusters:
        selection, means = self.blocks(plan)
        rows = Encoded.of(plan.domain)
        kept = TopEntries(rows, plan.parameters["nonzeros"], plan.parameters["largest_units"])
        found = means.run(probe, selection.run(probe), kept)
        for _ in range(means.rounds - 1):
            inside = np.rint(clip_into(plan.domain, found.centres)).astype(np.int64)
            found = means.run(probe, Assigned(rows, inside), kept)
        return found
