"""The first measurements: how many records there are, their middle, and how far they reach from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from core.algorithms.summit.signal import Signal
from core.arrays import Floats, Integers
from core.blocks.base import Block, Clusters
from core.blocks.noise import widest_unit
from core.blocks.work import lloyd_rounds
from core.data import UNITS, Domain
from core.kernels.clipping import WEIGHT_ONE, into_ball
from core.mechanisms.noise import additive_noise, vector_noise
from core.plan import Step, Work
from core.postprocessing.bounds import clip_into
from core.postprocessing.spread import DistanceHistogram, geometric_edges, trimmed_shares
from core.postprocessing.subspace import Subspace
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import Count, NormHistogram
from core.statistics.sums import Sums
from core.views import LARGEST_MATRIX, Assigned, Encoded, Projected

CENTRE = 0.03  # Share of the budget for number and middle: their errors matter in second order only.
CENTRE_SUM = 0.9  # Part of `CENTRE` that goes to the sum of all records; the rest goes to their number.
RADIUS_SIGNAL = 0.01  # Share of the records to which the histogram of distances brings the noise of a bin.
LEAST_RADIUS = 0.02  # Least share of the budget for that histogram.
MOST_RADIUS = 0.06  # Most share of the budget for that histogram.
RADIUS_BINS = 56  # Bins of that histogram: with the factor they reach down to 0.1% of the bounds.
RADIUS_FACTOR = 1.15  # Each bin of that histogram ends this many times as far out as the one before.
DATA_LEVEL = 0.99  # Rows are clipped to the radius that holds this share of the records.
SHAPE_LEVEL = 0.2  # Second moments are clipped to the radius of this share: noise falls with its square.
#: Share of the squared distances that clipping may take: records far out are few, but dear. That is looked at
#: only where the noise of a bin is below this share of the records.
SPARE_ENERGY = 0.003
FAR_OUT = 2.3  # Clusters have their own scales where `DATA_LEVEL` reaches this many median distances.
ROUND_BINS = 31  # Bins of the histograms of distances to the centres of a round.
ROUND_FACTOR = 1.2  # Each of those bins ends this many times as far out as the one before.


def radius_share(signal: Signal) -> float:
    """The share of the budget for the histogram of distances."""
    return min(max((RADIUS_SIGNAL * signal.size * signal.strength) ** -2, LEAST_RADIUS), MOST_RADIUS)


def round_edges(reach: int = UNITS) -> Integers:
    """Bins of distances between records within this reach: two of them are at most a diameter apart."""
    return geometric_edges(min(2 * reach, 2 * UNITS), ROUND_FACTOR, ROUND_BINS)


@dataclass(frozen=True, eq=False)
class Extent:
    """Released facts about all records: their number, their middle and the distances to it."""

    size: float
    centre: Integers
    #: About the squared distance of the centre to the records' mean.
    centre_error: float
    distances: DistanceHistogram
    #: Distances to the centre, in units: shares of bins, of which bin b ends at `distances.edges[b]`.
    shares: Floats

    @cached_property
    def radius(self) -> int:
        """Rows are clipped to this distance: further than `inner` where some lie far out."""
        edges, middles = self.distances.edges, self._middles
        noticed = self.distances.noise.deviation < SPARE_ENERGY * self.size  # noise must not pass for records
        beyond = np.maximum(middles[None, :] - edges[:, None], 0.0) ** 2 @ self.shares
        spare = (SPARE_ENERGY if noticed else 1.0) * (self.shares @ middles**2)
        enough = (self.shares.cumsum() >= DATA_LEVEL) & (beyond <= spare)
        return int(edges[np.argmax(enough)]) if enough.any() else int(edges[-1])

    @property
    def inner(self) -> int:
        """Most records lie within this distance of the centre."""
        return self._quantile(DATA_LEVEL)

    @property
    def tight(self) -> int:
        """Second moments are of records clipped to within this distance of the centre."""
        return self._quantile(SHAPE_LEVEL)

    @property
    def far_out(self) -> bool:
        """Whether some records lie so far out that their clusters may be far wider than others."""
        return self.inner > FAR_OUT * self._quantile(0.5)

    def energy(self, limit: int) -> float:
        """The mean squared distance of records clipped to this limit."""
        return max(float(self.shares @ np.minimum(self._middles, limit) ** 2), 1e-9)

    def _quantile(self, level: float) -> int:
        return int(self.distances.edges[np.argmax(self.shares.cumsum() >= level)])

    @property
    def _middles(self) -> Floats:
        edges = self.distances.edges
        return np.concatenate([[edges[0] / 2], (edges[1:] + edges[:-1]) / 2])


@dataclass(frozen=True)
class RecordExtent(Block):
    """Number and sum of all records, and a histogram of their distances to the mean."""

    domain: Domain
    shares: Shares
    radius_share: float

    def steps(self) -> tuple[Step, ...]:
        noise, centre_sum = self.shares.noise, CENTRE * CENTRE_SUM
        size, radius = additive_noise(noise(CENTRE - centre_sum)), additive_noise(noise(self.radius_share))
        return (
            self.step("size", size, Count, 1, "how many records"),
            self.step("centre", vector_noise(noise(centre_sum)), Sums, 1, "the middle of all records"),
            self.step("radius", radius, NormHistogram, 1, "how far records reach"),
        )

    def run(self, probe: Probe) -> Extent:
        rows, size = Encoded.of(self.domain), max(self.size(probe), 1.0)
        mean = self.measure(probe, "centre", Sums(rows))[0] / size
        noise = rows.width * (UNITS * self.deviation(probe.plan, "centre", rows.width) / size) ** 2
        # Towards the middle of the bounds where noise dominates.
        kept = max(0.0, 1.0 - noise / max(float(mean @ mean), 1e-30))
        centre: Integers = np.rint(clip_into(self.domain, (mean * kept)[None, :])[0]).astype(np.int64)
        edges = geometric_edges(2 * UNITS, RADIUS_FACTOR, RADIUS_BINS)
        distances = NormHistogram(Assigned(rows, centre[None, :]), edges)
        counts = self.measure(probe, "radius", distances)[0].astype(np.float64)
        found = DistanceHistogram(counts, edges, self.count_noise(probe.plan, "radius"))
        return Extent(size, centre, noise * kept, found, trimmed_shares(counts, found.noise))

    def size(self, probe: Probe) -> float:
        """The noisy number of records."""
        return float(self.measure(probe, "size", Count(self.domain.fingerprint))[0])

    def work(self) -> Work:
        return Work(lloyd_rounds(self.domain, 1, 1), 0.0)


@dataclass(frozen=True, eq=False)
class Overview:
    """Records seen along their principal axes: released facts, from which all later views follow."""

    extent: Extent
    subspace: Subspace
    view: Projected
    #: Units of the projected view for each encoded unit.
    zoom: float

    @classmethod
    def of(cls, domain: Domain, extent: Extent, subspace: Subspace) -> Overview:
        matrix, zoom = magnified(subspace.axes, UNITS / extent.radius)
        return cls(extent, subspace, Projected(Encoded.of(domain), matrix, UNITS, extent.centre), zoom)

    @property
    def size(self) -> float:
        return self.extent.size

    @property
    def deviations(self) -> Floats:
        """Standard deviations along the axes of the projected view, in its units."""
        return np.sqrt(np.maximum(self.subspace.variances, 0.0)) * self.zoom

    @property
    def outer(self) -> float:
        """How far the tree reaches, in units of the projected view; zero where no records lie far out."""
        return self.extent.radius * self.zoom if self.extent.radius > self.extent.inner else 0.0

    @property
    def edges(self) -> Integers:
        """Bins of distances between records in all columns."""
        return round_edges(self.extent.radius)

    def projected(self, rows: Floats) -> Floats:
        """Public rows, in encoded units, as points of the projected view."""
        return into_ball((rows - self.extent.centre) @ self.subspace.axes * self.zoom)

    def in_all_columns(self, points: Floats) -> Floats:
        """Points of the projected view, in encoded units."""
        moved: Floats = self.extent.centre + (points / self.zoom) @ self.subspace.axes.T
        return moved

    def detailed(self, domain: Domain, found: Clusters) -> Clusters:
        """Clusters with released numbers worth showing next to them."""
        assert found.radii is not None
        details = {
            "axes": int(self.subspace.axes.shape[1]),
            # In units of the widest column: multiplied by the forecast, the noise in each centre.
            "clipping_radii": (found.radii * widest_unit(domain)).tolist(),
        }
        return replace(found, details=details)


def magnified(axes: Floats, zoom: float) -> tuple[Integers, float]:
    """Axes as an integer matrix, magnified as asked for or as far as its products stay exact."""
    zoom = min(zoom, LARGEST_MATRIX / (2 * WEIGHT_ONE * float(np.linalg.norm(axes))))  # half: it is rounded
    return np.rint(axes * (WEIGHT_ONE * zoom)).astype(np.int64), zoom
