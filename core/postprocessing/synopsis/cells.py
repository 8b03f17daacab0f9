"""Fine clusters as they were released, and what is believed of them once noise is taken into account."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.data import Domain
from core.postprocessing.bounds import clip_into
from core.postprocessing.kmeans import nearest_points
from core.postprocessing.spread import DistanceHistogram, trimmed_shares

_LIKENESS = 3.0  # The share of a bin varies between cells as if each had been seen this many times before.
_SURPRISE_CHANCE = 0.006  # A bin that noise alone would fill with less than this chance is taken as real.
_ROUNDS = 12  # Rounds of scaling cells and bins to their totals; a dozen agree to a fraction of a percent.
_DIRECTIONS = 48  # Directions that are tried to see how far a cell reaches.
_FEW_DIRECTIONS = 12  # Directions that are tried where there are many columns.
_MANY_COLUMNS = 64  # From this many columns on there are many.
#: A row at the lower end of a bin that the bounds pull in by more than this share does not fit the cell.
_PULLED_IN = 0.75


@dataclass(frozen=True, eq=False)
class Cells:
    """The released facts about fine clusters and about all records together, in encoded units.

    A cell holds the records that are nearest to its anchor. Sizes, moves and distances were measured about
    the same anchors, so they speak of the same records.
    """

    domain: Domain
    anchors: Floats
    #: Anchors after their moves, which were shrunk first, and clipped into the bounds.
    centres: Floats
    #: From the anchor to the mean of the cell, as measured: noisy, and clipped to the radius.
    moves: Floats
    #: Standard deviation of the noise in each coordinate of a move.
    errors: Floats
    #: As measured: may be negative.
    sizes: Floats
    size_error: float
    #: Residuals about the anchor were clipped to these lengths.
    radii: Floats
    #: Distances to the anchor: of each cell, and of all cells together.
    distances: DistanceHistogram
    pooled: DistanceHistogram
    #: The middle of all records, and distances to it.
    middle: Floats
    around: DistanceHistogram
    #: Principal axes of records pulled in to within `tight` of the middle; variances along them, by column.
    axes: Floats
    variances: Floats
    columns: Floats
    tight: float

    @property
    def total(self) -> float:
        """About how many records there are."""
        return max(float(self.sizes.sum()), 1.0)

    def believed_sizes(self) -> Floats:
        """Sizes, of which those that noise may have made are shrunk; they keep their sum."""
        seen = np.maximum(self.sizes, 0.0)
        shrunk = seen**3 / np.maximum(seen**2 + self.size_error**2, 1e-9)
        if shrunk.sum() <= 0:
            return np.full(len(seen), self.total / len(seen))
        kept: Floats = shrunk * (self.total / shrunk.sum())
        return kept

    def believed_distances(self, draw: np.random.Generator) -> Floats:
        """For each cell the shares of the bins of `distances`.

        Bins that the cell cannot hold are empty; the others are shrunk towards all cells together, and scaled
        until cells and bins add up to what was measured of each.
        """
        found, sizes = self.distances, np.maximum(self.sizes, max(2 * self.size_error, 1.0))
        possible = self._possible_bins(draw)
        pooled = rebinned(trimmed_shares(self.pooled.counts, self.pooled.noise), self.pooled, found) + 1e-12
        expected = possible * pooled
        expected *= sizes[:, None] / expected.sum(axis=1, keepdims=True)
        surprise = np.where(possible, found.counts, 0.0) - expected
        certain = 1 - found.noise.beyond(_SURPRISE_CHANCE) ** 2 / np.maximum(surprise**2, 1e-12)
        variance = sizes[:, None] ** 2 * pooled / (1 + _LIKENESS)
        trust = np.maximum(variance / (variance + found.noise.deviation**2), certain)
        believed = np.where(possible, np.maximum(expected + surprise * trust, 0.0), 0.0) + 1e-9 * pooled
        weights = np.maximum(self.sizes, 1e-3)
        for _ in range(_ROUNDS):
            believed *= pooled * weights.sum() / np.maximum(believed.sum(axis=0), 1e-9)
            believed *= (weights / np.maximum(believed.sum(axis=1), 1e-9))[:, None]
        shares: Floats = believed / np.maximum(believed.sum(axis=1, keepdims=True), 1e-12)
        return shares

    def _possible_bins(self, draw: np.random.Generator) -> npt.NDArray[np.bool_]:
        """True for bins at whose distance rows were found inside both the cell and the bounds.

        Cells and bounds are convex: what has room at some distance has room at all shorter ones. So the last
        bin of each cell is found by halving.
        """
        edges, ways = self.distances.edges, self._ways(draw)
        low = np.concatenate([[edges[0] / 2], edges[:-1]]).astype(np.float64)
        last, beyond = np.zeros(len(self.anchors), dtype=np.int64), np.full(len(self.anchors), len(low))
        while (beyond - last > 1).any():
            middle = (last + beyond) // 2
            fits = self._have_room(low[middle], ways)
            last, beyond = np.where(fits, middle, last), np.where(fits, beyond, middle)
        possible: npt.NDArray[np.bool_] = np.arange(len(low)) <= last[:, None]
        return possible

    def _ways(self, draw: np.random.Generator) -> Floats:
        """Directions in which a cell may reach far: random ones, those of the axes and of the columns."""
        width = self.anchors.shape[1]
        tries = _DIRECTIONS if width <= _MANY_COLUMNS else _FEW_DIRECTIONS
        spread = np.maximum(self.variances, 0.0)
        everywhere = 0.02 * spread.sum() / width if spread.any() else 1.0
        ways = draw.normal(size=(tries, len(spread))) * np.sqrt(spread) @ self.axes.T
        ways += draw.normal(size=(tries, width)) * np.sqrt(everywhere)
        some = self.axes[:, :16].T
        ways = np.concatenate([ways, some, -some])
        if width <= _MANY_COLUMNS:
            ways = np.concatenate([ways, np.eye(width), -np.eye(width)])
        directions: Floats = ways / np.maximum(np.linalg.norm(ways, axis=1, keepdims=True), 1e-12)
        return directions

    def _have_room(self, distances: Floats, ways: Floats) -> npt.NDArray[np.bool_]:
        """For each cell whether some row at about its distance lies inside both the cell and the bounds."""
        owners = np.repeat(np.arange(len(self.anchors)), len(ways))
        away = (distances[:, None, None] * ways).reshape(len(owners), -1)
        rows = clip_into(self.domain, self.anchors[owners] + away)
        reached = np.linalg.norm(rows - self.anchors[owners], axis=1) >= _PULLED_IN * distances[owners]
        nearest = nearest_points(rows.astype(np.float32), self.anchors.astype(np.float32))
        inside = reached & (nearest == owners)
        fits: npt.NDArray[np.bool_] = inside.reshape(-1, len(ways)).any(axis=1)
        return fits


def rebinned(shares: Floats, old: DistanceHistogram, new: DistanceHistogram) -> Floats:
    """Shares of other bins, if records are spread evenly within a bin; the last takes all that is beyond."""
    reached = np.interp(new.edges, np.concatenate([[0], old.edges]), np.concatenate([[0.0], shares.cumsum()]))
    found: Floats = np.diff(reached, prepend=0.0)
    found[-1] += shares.sum() - reached[-1]
    return found
