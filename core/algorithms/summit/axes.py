"""The axes along which clusters are looked for: measured, drawn at random, or the columns themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from core.algorithms.summit.overview import Extent, magnified
from core.arrays import Floats, Integers
from core.blocks.base import Block
from core.blocks.work import PASS, PRODUCT, RECORD, numbers, projection
from core.data import UNITS, Domain
from core.mechanisms.noise import additive_noise, vector_noise
from core.plan import Step, Work
from core.postprocessing.subspace import Subspace, principal_axes, varying_columns
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.sums import AbsoluteSums, SecondMoments
from core.views import ChosenColumns, Encoded, Projected, RowView

LEAST_AXES = 6  # Axes that are kept at least, whether or not they stand out from noise.
MOST_AXES = 64  # Axes that are kept at most.
COARSE_FROM = 128  # Columns from which on rows are rounded before second moments: half the time.
MOMENT_BITS = 7  # Bits of a rounded entry, up to the clipping radius: beyond 8, products need doubles.
MOMENT_OPERATIONS = 250.0  # Operations to add noise to one of many second moments.
COLUMNS_LEVEL = 0.99  # Share of all deviations that stand out from noise which the varying columns hold.
SKETCH_ROOM = 1.25  # Room in the ball that a random projection is clipped to: it may lengthen rows.


@dataclass(frozen=True)
class Axes(Block):
    """The columns themselves: nothing is measured."""

    domain: Domain

    @property
    def count(self) -> int:
        """The number of axes to expect, at most."""
        return min(self.domain.dimension, MOST_AXES)

    def steps(self) -> tuple[Step, ...]:
        return ()

    def run(self, probe: Probe, extent: Extent) -> Subspace:
        return _unmeasured(np.eye(self.domain.dimension), extent)

    def work(self) -> Work:
        return Work(projection(self.domain, self.count), 0.0)


@dataclass(frozen=True)
class RandomAxes(Axes):
    """Axes drawn without looking at records."""

    columns: int

    @property
    def count(self) -> int:
        return self.columns

    def run(self, probe: Probe, extent: Extent) -> Subspace:
        return _unmeasured(_random_projection(probe, self.domain.dimension, self.columns), extent)

    def work(self) -> Work:
        drawn = 24.0 * self.columns * self.domain.dimension
        return Work(projection(self.domain, self.columns + self.count), drawn)


@dataclass(frozen=True)
class PrincipalAxes(Axes):
    """Principal axes from noisy second moments of all columns."""

    shares: Shares
    fraction: float

    def steps(self) -> tuple[Step, ...]:
        noise = additive_noise(self.shares.noise(self.fraction))
        return (self.step("moments", noise, SecondMoments, 1, "the directions in which records vary"),)

    def run(self, probe: Probe, extent: Extent) -> Subspace:
        rows = Encoded.of(self.domain)
        return _unclipped(self.measured(probe, rows, extent.centre, extent.tight, extent.size), extent)

    def measured(self, probe: Probe, view: RowView, middle: Integers, radius: int, size: float) -> Subspace:
        """Axes of a view from rows clipped to a radius about its middle."""
        shift = max(0, radius.bit_length() - MOMENT_BITS) if view.width >= COARSE_FROM else 0
        moments = SecondMoments(view, middle, radius, shift)
        packed = self.measure(probe, "moments", moments) << (2 * shift)
        noise = float(moments.steps << shift) ** 2 * self.deviation(probe.plan, "moments")
        if probe.plan.budget.is_pure:
            noise *= view.width  # Laplace noise pays for the l1 norm of a whole matrix
        return principal_axes(packed, view.width, noise, size, LEAST_AXES, MOST_AXES)

    def work(self) -> Work:
        return super().work() + self.moments_work(self.domain.dimension)

    def moments_work(self, width: float) -> Work:
        """The work of second moments of this many columns."""
        operations = self.domain.size * (RECORD / 2 + 2 * PASS * width + PRODUCT * width * width / 2)
        operations += 2 * PRODUCT * width**3 + MOMENT_OPERATIONS * width * width / 2
        return Work(operations, 40.0 * width * width)


@dataclass(frozen=True)
class VaryingColumnAxes(PrincipalAxes):
    """Principal axes of those columns only that vary: noise grows with the number of columns."""

    columns_share: float

    def steps(self) -> tuple[Step, ...]:
        noise = vector_noise(self.shares.noise(self.columns_share))
        return (self.step("columns", noise, AbsoluteSums, 1, "which columns vary"), *super().steps())

    def run(self, probe: Probe, extent: Extent) -> Subspace:
        rows = Encoded.of(self.domain)
        sums = AbsoluteSums(rows, extent.centre, extent.tight)
        deviations = np.maximum(self.measure(probe, "columns", sums)[0] / extent.size, 0.0)
        noise = extent.tight * self.deviation(probe.plan, "columns", rows.width) / extent.size
        chosen = varying_columns(deviations, noise, COLUMNS_LEVEL, MOST_AXES)
        view = ChosenColumns(rows, chosen)
        found = self.measured(probe, view, extent.centre[chosen], extent.tight, extent.size)
        return _unclipped(found.widened(chosen, deviations**2), extent)

    def work(self) -> Work:
        return super().work() + Work(PASS * self.domain.size * numbers(self.domain), 0.0)


@dataclass(frozen=True)
class SketchedAxes(PrincipalAxes):
    """Principal axes of a random projection, where second moments of all columns would be too many."""

    columns: int

    @property
    def count(self) -> int:
        return min(self.columns, MOST_AXES)

    def run(self, probe: Probe, extent: Extent) -> Subspace:
        sketch = _random_projection(probe, self.domain.dimension, self.columns)
        matrix, zoom = magnified(sketch, UNITS / (SKETCH_ROOM * extent.inner))
        view = Projected(Encoded.of(self.domain), matrix, UNITS, extent.centre)
        radius = min(max(round(extent.tight * zoom), 1), 2 * UNITS)
        found = self.measured(probe, view, np.zeros(self.columns, np.int64), radius, extent.size)
        found = _unclipped(found, extent, zoom)
        return replace(found, axes=sketch @ found.axes)

    def work(self) -> Work:
        drawn = 24.0 * self.columns * self.domain.dimension
        return self.moments_work(self.columns) + Work(
            projection(self.domain, self.columns + self.count), drawn
        )


def _random_projection(probe: Probe, width: int, columns: int) -> Floats:
    """A random projection that keeps lengths on average."""
    return probe.draw("sketch").normal(size=(width, columns)) / math.sqrt(columns)


def _unmeasured(axes: Floats, extent: Extent) -> Subspace:
    """Axes of which nothing is known but that records vary as much along each."""
    variances = np.full(axes.shape[1], extent.energy(extent.inner) / axes.shape[1])
    return Subspace(axes, variances, axes, np.zeros(len(axes)), (axes**2) @ variances)


def _unclipped(found: Subspace, extent: Extent, zoom: float = 1.0) -> Subspace:
    """Variances of records that are not clipped, in encoded units."""
    factor = max(1.0, extent.energy(extent.inner) / extent.energy(extent.tight)) / zoom**2
    return replace(found, variances=found.variances * factor, columns=found.columns * factor)
