"""The first measurements of the house algorithm: number, mean, extent and principal axes of all records."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.algorithms import summit_tuning as tuning
from core.algorithms.summit_public import PublicCheck
from core.algorithms.summit_tuning import Schedule
from core.arrays import Floats, Integers
from core.blocks.base import Block
from core.blocks.noise import widest_unit
from core.data import UNITS, Domain
from core.kernels.clipping import WEIGHT_ONE, into_ball
from core.mechanisms.noise import additive_noise, vector_noise
from core.plan import Step
from core.postprocessing.bounds import clip_into
from core.postprocessing.precision import Known
from core.postprocessing.spread import DistanceHistogram, geometric_edges, trimmed_shares
from core.postprocessing.subspace import Subspace, principal_axes, varying_columns
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import Count, NormHistogram
from core.statistics.sums import AbsoluteSums, ResidualSums, SecondMoments, Sums
from core.views import LARGEST_MATRIX, Assigned, ChosenColumns, Encoded, Projected, RowView


@dataclass(frozen=True, eq=False)
class Overview:
    """Released facts about all records: their number, mean, extent and principal axes."""

    centre: Integers
    size: float
    radius: int
    #: Most records lie within this distance of the centre: less than the radius where some lie far out.
    inner: int
    #: Second moments are of records clipped to within this distance of the centre.
    tight: int
    #: Whether some records lie so far out that their clusters may be far wider than others.
    far_out: bool
    distances: DistanceHistogram
    subspace: Subspace
    view: Projected
    #: Units of the projected view per encoded unit.
    zoom: float
    #: Public rows, if centre and subspace are theirs; second moments were not measured then.
    public: Floats | None = None

    @property
    def deviations(self) -> Floats:
        """Standard deviations along the axes of the projected view, in its units."""
        return np.sqrt(np.maximum(self.subspace.variances, 0.0)) * self.zoom

    def projected(self, rows: Floats) -> Floats:
        """Public rows, in encoded units, as points of the projected view."""
        return into_ball((rows - self.centre) @ self.subspace.axes * self.zoom)

    def in_all_columns(self, points: Floats) -> Floats:
        """Points of the projected view, in encoded units."""
        moved: Floats = self.centre + (points / self.zoom) @ self.subspace.axes.T
        return moved

    @property
    def outer(self) -> float:
        """How far the tree reaches, in units of the projected view; zero where no records lie far out."""
        return self.radius * self.zoom if self.radius > self.inner else 0.0

    @property
    def edges(self) -> Integers:
        """Bins of distances between records: two of them are at most a diameter apart."""
        return geometric_edges(min(2 * self.radius, 2 * UNITS), tuning.ROUND_FACTOR, tuning.ROUND_BINS)


def overview_details(domain: Domain, overview: Overview, radii: Floats) -> dict[str, Any]:
    """Released numbers worth showing beside centres whose records were clipped to these radii."""
    return {
        "axes": int(overview.subspace.axes.shape[1]),
        # In units of the widest column: multiplied by the forecast, the noise in each centre.
        "clipping_radii": (radii * widest_unit(domain)).tolist(),
    }


@dataclass(frozen=True, eq=False)
class _Spread:
    """The distances of all records to the centre: shares of bins, of which bin b ends at edges[b]."""

    edges: Integers
    shares: Floats

    def quantile(self, level: float) -> int:
        return int(self.edges[np.argmax(self.shares.cumsum() >= level)])

    def reach(self, level: float, spare: float) -> int:
        """The radius that holds this share of the records and, clipped to it, all but `spare` of the energy.

        The second is more only where tails are heavy, or few records lie far out.
        """
        middles = self._middles
        beyond = np.maximum(middles[None, :] - self.edges[:, None], 0.0) ** 2 @ self.shares
        enough = (self.shares.cumsum() >= level) & (beyond <= spare * (self.shares @ middles**2))
        return int(self.edges[np.argmax(enough)]) if enough.any() else int(self.edges[-1])

    @property
    def _middles(self) -> Floats:
        return np.concatenate([[self.edges[0] / 2], (self.edges[1:] + self.edges[:-1]) / 2])

    def energy(self, limit: int) -> float:
        """The mean squared distance of records clipped to this limit."""
        return max(float(self.shares @ np.minimum(self._middles, limit) ** 2), 1e-9)


def magnified(axes: Floats, zoom: float) -> tuple[Integers, float]:
    """Axes as an integer matrix, magnified as asked for or as far as its products stay exact."""
    zoom = min(zoom, LARGEST_MATRIX / (2 * WEIGHT_ONE * float(np.linalg.norm(axes))))  # half: it is rounded
    return np.rint(axes * (WEIGHT_ONE * zoom)).astype(np.int64), zoom


@dataclass(frozen=True)
class OverviewSteps(Block):
    """Number, sum and distances of all records, and their second moments where the schedule has them."""

    domain: Domain
    shares: Shares
    schedule: Schedule
    #: Only where public rows may take the place of second moments.
    check: PublicCheck | None = None

    def steps(self) -> tuple[Step, ...]:
        noise, centre_sum = self.shares.noise, tuning.CENTRE * tuning.CENTRE_SUM
        size = additive_noise(noise(tuning.CENTRE - centre_sum))
        radius = additive_noise(noise(self.schedule.radius_share))
        steps: tuple[Step, ...] = (
            self.step("size", size, Count, 1, "how many records"),
            self.step("centre", vector_noise(noise(centre_sum)), Sums, 1, "the middle of all records"),
            self.step("radius", radius, NormHistogram, 1, "how far records reach"),
        )
        if not self.schedule.moments:
            return steps
        if self.schedule.columns_share:
            columns = vector_noise(noise(self.schedule.columns_share))
            steps = (*steps, self.step("columns", columns, AbsoluteSums, 1, "which columns vary"))
        moments = additive_noise(noise(self.schedule.subspace_share))
        purpose = "the directions in which records vary"
        directions = self.step("moments", moments, SecondMoments, 1, purpose)
        if self.check is None:
            return (*steps, directions)
        # Where public rows tell the directions, it is spent on the last sums instead.
        return (*steps, *self.check.steps(), replace(directions, alternative=ResidualSums.kind))

    def run(self, probe: Probe) -> Overview:
        rows = Encoded.of(self.domain)
        size = self._size(probe)
        centre, centre_error = self._centre(probe, rows, size)
        edges = geometric_edges(2 * UNITS, tuning.RADIUS_FACTOR, tuning.RADIUS_BINS)
        distances = NormHistogram(Assigned(rows, centre[None, :]), edges)
        histogram = self.measure(probe, "radius", distances)[0].astype(np.float64)
        found = DistanceHistogram(histogram, edges, self.count_noise(probe.plan, "radius"))
        spread = _Spread(edges, trimmed_shares(histogram, found.noise))
        # Noise must not pass for records far out.
        tells = found.noise.deviation < tuning.SPARE_ENERGY * size
        radius = spread.reach(tuning.DATA_LEVEL, tuning.SPARE_ENERGY if tells else 1.0)
        tight, inner = spread.quantile(tuning.SHAPE_LEVEL), spread.quantile(tuning.DATA_LEVEL)
        far_out = inner > tuning.FAR_OUT * spread.quantile(0.5)
        public = None
        if self.check is not None:
            public = self.check.run(probe, size, found, centre_error)
        if public is None:
            subspace = self._subspace(probe, rows, centre, size, spread)
        else:
            centre, subspace = public.centre, public.subspace
        matrix, zoom = magnified(subspace.axes, UNITS / radius)
        view = Projected(rows, matrix, UNITS, centre)
        public_rows = None if public is None else public.rows
        return Overview(centre, size, radius, inner, tight, far_out, found, subspace, view, zoom, public_rows)

    def _size(self, probe: Probe) -> float:
        """The noisy number of records; where they are few, weighed against the declared one."""
        counted = self.measure(probe, "size", Count(self.domain.fingerprint)).astype(np.float64)
        if self.schedule.few_records:
            declared = Known(np.array([self.domain.size], dtype=np.float64), tuning.SIZE_DOUBT)
            counted, _ = declared.updated(counted, self.deviation(probe.plan, "size"))
        return max(float(counted[0]), 1.0)

    def _centre(self, probe: Probe, rows: RowView, size: float) -> tuple[Integers, float]:
        """The mean of all records, shrunk towards the middle of the bounds where noise dominates it.

        With it, about the squared distance to the true mean.
        """
        mean = self.measure(probe, "centre", Sums(rows))[0] / size
        noise = rows.width * (UNITS * self.deviation(probe.plan, "centre", rows.width) / size) ** 2
        kept = max(0.0, 1.0 - noise / max(float(mean @ mean), 1e-30))
        rounded: Integers = np.rint(clip_into(self.domain, (mean * kept)[None, :])[0]).astype(np.int64)
        return rounded, noise * kept

    def _subspace(
        self, probe: Probe, rows: RowView, centre: Integers, size: float, spread: _Spread
    ) -> Subspace:
        """Axes in all columns, orthonormal or (through a sketch) nearly so."""
        tight, radius = spread.quantile(tuning.SHAPE_LEVEL), spread.quantile(tuning.DATA_LEVEL)
        sketch = self._sketch(probe, rows.width)
        if not self.schedule.moments:
            axes = np.eye(rows.width) if sketch is None else sketch
            variances = np.full(axes.shape[1], spread.energy(radius) / axes.shape[1])
            return Subspace(axes, variances, axes, np.zeros(rows.width), (axes**2) @ variances)
        view, middle, zoom = rows, centre, 1.0
        if self.schedule.columns_share:
            chosen, deviations = self._varying_columns(probe, rows, centre, size, tight)
            view, middle = ChosenColumns(rows, chosen), centre[chosen]
        if sketch is not None:
            matrix, zoom = magnified(sketch, UNITS / (tuning.SKETCH_ROOM * radius))
            view, middle = Projected(rows, matrix, UNITS, centre), np.zeros(sketch.shape[1], np.int64)
        clip = min(max(round(tight * zoom), 1), 2 * UNITS)
        shift = max(0, clip.bit_length() - tuning.MOMENT_BITS) if view.width >= tuning.COARSE_FROM else 0
        moments = SecondMoments(view, middle, clip, shift)
        packed = self.measure(probe, "moments", moments) << (2 * shift)
        noise = float(moments.steps << shift) ** 2 * self.deviation(probe.plan, "moments")
        if probe.plan.budget.is_pure:
            noise *= view.width  # Laplace noise pays for the l1 norm of a whole matrix
        found = principal_axes(packed, view.width, noise, size, tuning.LEAST_AXES, tuning.MOST_AXES)
        if self.schedule.columns_share:
            found = found.widened(chosen, deviations**2)
        unclipped = max(1.0, spread.energy(radius) / spread.energy(tight)) / zoom**2
        found = replace(found, variances=found.variances * unclipped, columns=found.columns * unclipped)
        return found if sketch is None else replace(found, axes=sketch @ found.axes)

    def _varying_columns(
        self, probe: Probe, rows: RowView, centre: Integers, size: float, clip: int
    ) -> tuple[Integers, Floats]:
        """The columns to take second moments of, and the mean absolute deviation of every column."""
        summed = self.measure(probe, "columns", AbsoluteSums(rows, centre, clip))[0]
        deviations = np.maximum(summed / size, 0.0)
        noise = clip * self.deviation(probe.plan, "columns", rows.width) / size
        return varying_columns(deviations, noise, tuning.COLUMNS_LEVEL, tuning.MOST_AXES), deviations

    def _sketch(self, probe: Probe, width: int) -> Floats | None:
        """A random projection that keeps lengths on average; None where the schedule has none."""
        columns = self.schedule.sketch
        if columns == 0:
            return None
        drawn = probe.draw("sketch").normal(size=(width, columns))
        return drawn / math.sqrt(columns)
