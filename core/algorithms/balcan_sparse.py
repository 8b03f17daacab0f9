"""Balcan et al. (2017), section 6.1, for sparse rows: the same selection, then sparse means of clusters."""

from __future__ import annotations

import math

import numpy as np

from core.algorithms.balcan import SELECTION_OPTIONS, refinement_work
from core.algorithms.base import Algorithm, Clustering, Option, read_options
from core.blocks.forecast import forecast_of
from core.blocks.selection import Settings, select_centres, selection_steps, settings_for
from core.blocks.sparse_recovery import affordable_picks, recover_sparse, sparse_steps
from core.data import UNITS, Domain, Sparse
from core.errors import InvalidRequest
from core.plan import Plan, Request
from core.postprocessing.bounds import clip_into
from core.privacy import Split
from core.probe import Probe
from core.views import Assigned, Encoded, TopEntries

TREES, SWAPS = 0.15, 0.15


class BalcanSparse(Algorithm):
    """The paper's extension to sparse data, corrected; the argument is in `balcan_sparse.md`."""

    name = "balcan-sparse"
    summary = "candidates from partition trees in a projection, local swaps, sparse means of each cluster"
    objectives = ("means",)
    guarantee = "either"
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

    def plan(self, domain: Domain, request: Request) -> Plan:
        chosen = read_options(self.options, request.options)
        assert isinstance(domain, Sparse)
        if chosen["largest"] is not None and not 0 < chosen["largest"] <= domain.radius:
            raise InvalidRequest(
                f"option largest must be above zero and at most the radius {domain.radius:g}",
                parameter="options.largest",
            )
        settings = settings_for(domain, request.k, {**chosen, "trials": 1})
        split = Split(request.budget, domain.rows_per_person)
        # Pure noise leaves too little for a second recovery; under a delta it mends many a wrong assignment.
        rounds = chosen["rounds"] or (1 if request.budget.is_pure else 2)
        left = 1.0 - TREES - SWAPS
        picks = chosen["columns"] or affordable_picks(
            split,
            left / rounds,
            domain.size,
            request.k,
            domain.dimension,
            chosen["nonzeros"],
            chosen["accuracy"],
        )
        largest = chosen["largest"] or domain.radius
        steps = (
            *selection_steps(settings, split, TREES, SWAPS),
            *sparse_steps(split, left, min(picks, domain.dimension), rounds),
        )
        return Plan(
            algorithm=self.name,
            objective=request.objective,
            k=request.k,
            domain=domain,
            budget=request.budget,
            steps=steps,
            parameters={
                **settings.to_json(),
                "rounds": rounds,
                "nonzeros": chosen["nonzeros"],
                "largest_units": max(1, min(UNITS, math.ceil(largest / domain.radius * UNITS))),
            },
            forecast=forecast_of(steps, domain, request.k, positions=False),
            work=refinement_work(settings, domain, request.k, 0),
        )

    def run(self, plan: Plan, probe: Probe) -> Clustering:
        rows = Encoded.of(plan.domain)
        kept = TopEntries(rows, plan.parameters["nonzeros"], plan.parameters["largest_units"])
        selected = select_centres(probe, Settings.from_json(plan.parameters), 0)
        centres, sizes = recover_sparse(probe, selected, kept)
        for _ in range(plan.parameters["rounds"] - 1):
            inside = np.rint(clip_into(plan.domain, centres)).astype(np.int64)
            centres, sizes = recover_sparse(probe, Assigned(rows, inside), kept)
        return Clustering(plan.domain.decode(centres), sizes, plan, dict(probe.draws))
