"""Su et al. (2016): one noisy uniform grid of counts, and weighted k-means on its cells; for few columns."""

from __future__ import annotations

import math

import numpy as np

from core.algorithms.base import Algorithm, Clustering, Option, read_options
from core.arrays import Integers
from core.data import UNITS, Dense, Domain
from core.errors import WorkLimitExceeded
from core.mechanisms import LaplaceNoise
from core.plan import Plan, Request, Step, Work
from core.postprocessing.bounds import clip_into, spread_centres
from core.postprocessing.kmeans import nearest_points, weighted_kmeans
from core.privacy import MARGIN
from core.probe import Probe
from core.statistics import GridCounts
from core.views import Encoded, GridCells

#: Cells that are counted and clustered at most.
MOST_CELLS = 1 << 20
#: Su et al.: cells should hold so many records that noise of scale 1/epsilon does not drown them.
_RECORDS_PER_NOISE = 10.0


class Grid(Algorithm):
    """One histogram, then post-processing; the argument is in `grid.md`."""

    name = "grid"
    summary = "one noisy uniform grid of counts and weighted k-means on its cells, for few columns"
    objectives = ("means",)
    guarantee = "pure"
    domains = ("dense",)
    options = (Option("cells", int, None, "cells along each column", least=1, most=1 << 15),)

    def plan(self, domain: Domain, request: Request) -> Plan:
        assert isinstance(domain, Dense)
        chosen = read_options(self.options, request.options)
        cells = chosen["cells"] or _cells_per_column(domain, request.budget.epsilon)
        if domain.dimension * math.log(cells) > math.log(MOST_CELLS):
            raise WorkLimitExceeded(
                f"a grid of {cells} cells along each of {domain.dimension} columns is too large to count: "
                f"at most {MOST_CELLS} cells in all; use fewer columns, fewer cells or another algorithm",
                parameter="options.cells",
            )
        total = cells**domain.dimension
        epsilon = request.budget.epsilon * (1 - MARGIN) / domain.rows_per_person
        return Plan(
            algorithm=self.name,
            objective=request.objective,
            k=request.k,
            domain=domain,
            budget=request.budget,
            steps=(
                Step("cells", LaplaceNoise(epsilon), GridCounts.kind, 1, "how many records lie in each cell"),
            ),
            parameters={"cells": cells},
            # A cluster of the average share adds up the noise of its share of all cells.
            forecast={
                "cluster_share": 1 / request.k,
                "size_noise": math.sqrt(2 * max(total / request.k, 1.0)) / epsilon,
                "cell_width": float((_box(domain)[1] * domain.unit_lengths()).max()) / cells,
            },
            work=Work(
                20.0 * domain.size * domain.dimension + 3000.0 * total * request.k, 200.0 * total + 1e7
            ),
        )

    def run(self, plan: Plan, probe: Probe) -> Clustering:
        domain, cells = plan.domain, plan.parameters["cells"]
        assert isinstance(domain, Dense)
        low, widths = _box(domain)
        counts = probe.measure("cells", GridCounts(GridCells(Encoded.of(domain), low, widths, cells)))
        places = np.stack(
            np.unravel_index(np.arange(len(counts)), (cells,) * domain.dimension, order="F"), axis=1
        )
        points = clip_into(domain, low + (places + 0.5) * (widths / cells))
        draw = probe.draw("clustering")
        weights = np.maximum(counts, 0).astype(np.float64)
        heavy = weights > 0
        found = weighted_kmeans(points[heavy], weights[heavy], plan.k, draw) if heavy.any() else points[:0]
        if len(found) < plan.k:
            found = np.concatenate([found, spread_centres(domain, plan.k - len(found), draw)])
        owners = nearest_points(points, found)
        sizes = np.maximum(np.bincount(owners, counts, minlength=plan.k), 0.0)
        return Clustering(domain.decode(found), sizes, plan, dict(probe.draws))


def _cells_per_column(domain: Domain, epsilon: float) -> int:
    """Su et al.'s rule of thumb: (N * epsilon / 10)^(2 / (2 + d)) cells along each column."""
    mass: float = max(domain.size * epsilon / _RECORDS_PER_NOISE, 1.0)
    return max(2, round(math.exp(2 * math.log(mass) / (2 + domain.dimension))))


def _box(domain: Dense) -> tuple[Integers, Integers]:
    """The bounds in whole encoded units; a ball is covered by the cube around it."""
    if domain.bounds_units is None:
        return np.full(domain.dimension, -UNITS), np.full(domain.dimension, 2 * UNITS + 1)
    low, high = (np.rint(bound).astype(np.int64) for bound in domain.bounds_units)
    return low, np.maximum(high - low + 1, 1)
