"""Su et al. (2016): one noisy uniform grid of counts, and weighted k-means on its cells; for few columns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.algorithms.papers.base import PaperAlgorithm
from core.arrays import Floats, Integers
from core.blocks.base import Block, Clusters
from core.blocks.work import PASS, VALUE
from core.data import UNITS, Dense, Domain, Geometry
from core.errors import WorkLimitExceeded
from core.mechanisms.noise import LaplaceNoise
from core.options import Option
from core.plan import Plan, Request, Step, Work
from core.postprocessing.bounds import clip_into, spread_centres
from core.postprocessing.kmeans import kmeans_of_cells, nearest_points, operations_of_cells
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import GridCounts
from core.views import Encoded, GridCells

MOST_CELLS = 1 << 17  # Largest number of cells that are counted and clustered, in about a second.
_RECORDS_PER_NOISE = 10.0  # Records for each unit of noise, of scale 1/epsilon, in the rule of Su et al.
#: Records that a cell holds on average at least, in units of noise: beyond three columns the rule alone makes
#: more cells than records, so that noise dominates.
_LEAST_PER_CELL = 3.0
_QUICK_CELLS = 1 << 12  # Up to this many cells a grid is quick, however few records there are.
_PLACE = 150.0  # Operations for each coordinate of a cell's middle.
_OWNER = 8.0  # Operations to find the centre that is nearest to it.


@dataclass(frozen=True)
class GridHistogram(Block):
    """Noisy counts of the cells of a uniform grid over the bounds."""

    domain: Domain
    shares: Shares
    cells: int

    @property
    def total(self) -> int:
        return int(self.cells**self.domain.dimension)

    def steps(self) -> tuple[Step, ...]:
        noise = LaplaceNoise(self.shares.pure(1.0).epsilon)
        return (self.step("cells", noise, GridCounts, 1, "how many records lie in each cell"),)

    def run(self, probe: Probe) -> tuple[Floats, Integers]:
        """The middles of all cells, and their noisy counts."""
        assert isinstance(self.domain, Dense | Geometry)
        low, widths = _box(self.domain)
        view = GridCells(Encoded.of(self.domain), low, widths, self.cells)
        counts = self.measure(probe, "cells", GridCounts(view))
        shape = (self.cells,) * self.domain.dimension
        places = np.stack(np.unravel_index(np.arange(len(counts)), shape, order="F"), axis=1)
        return clip_into(self.domain, low + (places + 0.5) * (widths / self.cells)), counts


class Grid(PaperAlgorithm):
    """One histogram, then post-processing; the argument is in `grid.md`."""

    name = "grid"
    summary = "one noisy uniform grid of counts and weighted k-means on its cells, for few columns"
    guarantee = "pure"
    domains = ("dense", "table")
    options = (Option("cells", int, None, "cells along each column", least=1, most=1 << 15),)

    def parameters(self, domain: Domain, request: Request, options: Mapping[str, Any]) -> dict[str, Any]:
        cells = options["cells"] or _cells_per_column(domain, request.budget.epsilon)
        if domain.dimension * math.log(cells) > math.log(MOST_CELLS):
            raise WorkLimitExceeded(
                f"a grid of {cells} cells along each of {domain.dimension} columns is too large to count: "
                f"at most {MOST_CELLS} cells in all; use fewer columns, fewer cells or another algorithm",
                parameter="options.cells",
            )
        return {"cells": cells}

    def blocks(self, plan: Plan) -> tuple[GridHistogram]:
        return (GridHistogram(plan.domain, plan.shares(), plan.parameters["cells"]),)

    def forecast(self, plan: Plan, steps: Sequence[Step]) -> dict[str, float]:
        (grid,), (step,) = self.blocks(plan), steps
        assert isinstance(plan.domain, Dense | Geometry)
        assert isinstance(step.mechanism, LaplaceNoise)
        return {
            "cluster_share": 1 / plan.k,
            # A cluster of the average share adds up the noise of its share of all cells.
            "size_noise": math.sqrt(max(grid.total / plan.k, 1.0)) * step.mechanism.deviation(),
            "cell_width": float((_box(plan.domain)[1] * plan.domain.unit_lengths()).max()) / grid.cells,
        }

    def work(self, plan: Plan) -> Work:
        (grid,), domain = self.blocks(plan), plan.domain
        counted = PASS * domain.size * domain.dimension
        counted += grid.total * (VALUE + _PLACE * domain.dimension + _OWNER * plan.k)
        # Noise leaves some of the empty cells above zero; records lie in as many others as there are of them.
        above = math.exp(-plan.budget.epsilon / domain.rows_per_person / 2) / 2
        heavy = above * grid.total + (1 - above) * min(float(domain.size), float(grid.total))
        solved = operations_of_cells(heavy, float(domain.dimension), float(plan.k))
        return Work(counted + solved, 200.0 * grid.total + 1e7)

    def cluster(self, plan: Plan, probe: Probe) -> Clusters:
        (grid,) = self.blocks(plan)
        points, counts = grid.run(probe)
        draw = probe.draw("clustering")
        weights = np.maximum(counts, 0).astype(np.float64)
        heavy = weights > 0
        found = kmeans_of_cells(points[heavy], weights[heavy], plan.k, draw) if heavy.any() else points[:0]
        if len(found) < plan.k:
            found = np.concatenate([found, spread_centres(plan.domain, plan.k - len(found), draw)])
        owners = nearest_points(points, found)
        return Clusters(found, np.maximum(np.bincount(owners, counts, minlength=plan.k), 0.0))


def _cells_per_column(domain: Domain, epsilon: float) -> int:
    """Su et al.'s rule of thumb, (N * epsilon / 10)^(2 / (2 + d)) along each column, if records allow it."""
    power, width = domain.size * epsilon, domain.dimension
    rule = math.pow(max(power / _RECORDS_PER_NOISE, 1.0), 2 / (2 + width))
    filled = math.pow(max(power / _LEAST_PER_CELL, 1.0), 1 / width)
    most = math.floor(math.pow(MOST_CELLS, 1 / width) + 1e-9)
    cells = max(2, min(round(min(rule, filled)), most))
    if width * math.log(cells) > math.log(max(power, _QUICK_CELLS)):
        raise WorkLimitExceeded(
            f"even two cells along each of {width} columns are too many for about {domain.size} records at "
            f"epsilon {epsilon:g}: noise would outweigh the records; use fewer columns or another algorithm",
            parameter="algorithm",
        )
    return cells


def _box(domain: Dense | Geometry) -> tuple[Integers, Integers]:
    """The bounds in whole encoded units; a ball is covered by the cube around it."""
    if domain.bounds_units is None:
        return np.full(domain.dimension, -UNITS), np.full(domain.dimension, 2 * UNITS + 1)
    low, high = (np.rint(bound).astype(np.int64) for bound in domain.bounds_units)
    return low, np.maximum(high - low + 1, 1)
