"""Made-up rows: drawn inside released cells so that they agree with everything that was released of them."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.postprocessing.bounds import clip_into
from core.postprocessing.kmeans import nearest_points
from core.postprocessing.spread import trimmed_shares
from core.postprocessing.synopsis.cells import Cells

_FIT_ROUNDS = 6  # Rounds of drawing and correcting.
_FIT_ROWS = 6400  # Rows in each of these rounds, at most.
_FIT_VALUES = 1 << 21  # Values in the rows of a round, at most.
_TRIES = 6  # Directions that are tried before a row is pulled towards its anchor.
_PULLS = 4  # How often it is pulled, at most.
_PULL = 0.75  # Each pull leaves this share of the distance.
_STEP = 2.5  # Variances are corrected by at most this factor a round.
_MOST_LEAN = 2.0  # How far directions lean, at most.
_LEAN_STEP = 0.8  # How fast a round corrects it.
_FEW_ROWS = 10.0  # Within-cell means of fewer made-up rows than this are believed by half.


@dataclass(frozen=True, eq=False)
class CellModel:
    """A model of the records of each cell: sizes, distances to the anchor, and directions from it."""

    cells: Cells
    sizes: Floats
    #: For each cell the shares of the bins of distances.
    shares: Floats
    #: Variances within cells along the axes and by column; only their proportions matter.
    along: Floats
    across: Floats
    #: For each cell what is added to directions, so that its made-up rows have the released mean.
    lean: Floats

    @classmethod
    def fit(cls, cells: Cells, draw: np.random.Generator, rounds: int = _FIT_ROUNDS) -> Self:
        """Variances and leans with which made-up rows have the released moments and means."""
        along = np.maximum(cells.variances, 0.0)
        across = np.maximum(cells.columns - cells.axes**2 @ along, 0.0)
        whole = max(float(along.sum() + across.sum()), 1e-12)
        wanted = np.concatenate([along, across]) / whole
        count = min(100 * len(cells.anchors), _FIT_ROWS, _FIT_VALUES // cells.anchors.shape[1])
        model = cls(
            cells,
            cells.believed_sizes(),
            cells.believed_distances(draw),
            along / whole + 1e-9,
            across / whole + 1e-9,
            np.zeros_like(cells.anchors),
        )
        for _ in range(rounds):
            model = model._corrected(wanted, max(count, 1), draw)
        return model

    def _corrected(self, wanted: Floats, count: int, draw: np.random.Generator) -> Self:
        """The model after one round: draw rows, compare, correct."""
        cells = self.cells
        rows, owners = self.draw(count, draw, tries=2)
        about = rows - cells.middle
        about *= np.minimum(1.0, cells.tight / np.maximum(np.linalg.norm(about, axis=1), 1e-9))[:, None]
        inner = ((about @ cells.axes) ** 2).mean(axis=0)
        outer = np.maximum((about**2).mean(axis=0) - cells.axes**2 @ inner, 0.0)
        found = np.concatenate([inner, outer])
        if found.sum() <= 0:
            return self
        factor = np.clip(wanted * found.sum() / np.maximum(found, 1e-9 * found.sum()), 1 / _STEP, _STEP)
        variances = np.concatenate([self.along, self.across]) * np.where(wanted > 0, factor, 1 / _STEP)
        variances /= variances.sum()
        counts = np.bincount(owners, minlength=len(cells.anchors))
        means = means_by_cell(rows, counts, cells.anchors) - cells.anchors
        lengths = np.sqrt(np.maximum(self.shares @ cells.distances.lengths**2, 1.0))
        gap = (cells.centres - cells.anchors - means) / lengths[:, None]
        lean = self.lean + _LEAN_STEP * (counts / (counts + _FEW_ROWS))[:, None] * gap
        lean *= np.minimum(1.0, _MOST_LEAN / np.maximum(np.linalg.norm(lean, axis=1), 1e-9))[:, None]
        axes = len(self.along)
        return replace(self, along=variances[:axes], across=variances[axes:], lean=lean)

    def draw(
        self, count: int, draw: np.random.Generator, tries: int = _TRIES
    ) -> tuple[Floats, npt.NDArray[np.int64]]:
        """Rows in encoded units, sorted by the cell that each was drawn for, and those cells."""
        owners = self._owners(count, draw)
        distances = self._distances(owners, draw)
        rows = self._placed(owners, distances, draw)
        anchors = self.cells.anchors
        astray = self._astray(rows, owners)
        for _ in range(tries):
            if len(astray) == 0:
                break
            rows[astray] = self._placed(owners[astray], distances[astray], draw)
            astray = astray[self._astray(rows[astray], owners[astray])]
        for _ in range(_PULLS):
            home = anchors[owners[astray]]
            rows[astray] = home + _PULL * (rows[astray] - home)
            astray = astray[self._astray(rows[astray], owners[astray])]
        return rows, owners

    def _astray(self, rows: Floats, owners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Those of the rows that are nearer to another anchor than to their own."""
        nearest = nearest_points(rows.astype(np.float32), self.cells.anchors.astype(np.float32))
        return np.flatnonzero(nearest != owners)

    def _owners(self, count: int, draw: np.random.Generator) -> npt.NDArray[np.int64]:
        """A cell for each row: every cell gets its share, rounded at random."""
        ideal = self.sizes / self.sizes.sum() * count
        counts = np.floor(ideal).astype(np.int64)
        rest = ideal - counts
        missing = count - int(counts.sum())
        if missing > 0:
            chances = rest / rest.sum() if rest.sum() > 0 else np.full(len(rest), 1 / len(rest))
            np.add.at(counts, draw.choice(len(counts), missing, p=chances), 1)
        return np.repeat(np.arange(len(counts)), counts)

    def _distances(self, owners: npt.NDArray[np.int64], draw: np.random.Generator) -> Floats:
        """A distance from the anchor for each row."""
        edges = self.cells.distances.edges.astype(np.float64)
        reached = self.shares.cumsum(axis=1)
        reached /= np.maximum(reached[:, -1:], 1e-12)
        bins = (draw.uniform(size=len(owners))[:, None] > reached[owners]).sum(axis=1)
        bins = np.minimum(bins, len(edges) - 1)
        low = np.concatenate([[0.0], edges[:-1]])
        distances: Floats = low[bins] + (edges - low)[bins] * draw.uniform(size=len(owners))
        beyond = np.flatnonzero(bins == len(edges) - 1)
        if len(beyond):
            distances[beyond] = np.maximum(distances[beyond], self._far(len(beyond), edges[-1], draw))
        return distances

    def _far(self, count: int, least: float, draw: np.random.Generator) -> Floats:
        """Distances beyond the last edge, as those of all records to their middle."""
        around = self.cells.around
        edges = around.edges.astype(np.float64)
        shares = trimmed_shares(around.counts, around.noise) * (edges > least)
        shares[int(np.argmax(edges >= least))] += 1e-9
        bins = draw.choice(len(shares), count, p=shares / shares.sum())
        low = np.concatenate([[0.0], edges[:-1]])
        far: Floats = low[bins] + (edges - low)[bins] * draw.uniform(size=count)
        return far

    def _placed(self, owners: npt.NDArray[np.int64], distances: Floats, draw: np.random.Generator) -> Floats:
        """Rows at these distances; what the bounds cut off is made up for in other columns."""
        anchors = self.cells.anchors[owners]
        whole = self.along.sum() + self.across.sum()
        axes = (self.cells.axes * np.sqrt(self.along / whole)).astype(np.float32)
        across = np.sqrt(self.across / whole).astype(np.float32)
        ways = draw.standard_normal(size=(len(owners), len(self.along)), dtype=np.float32) @ axes.T
        ways += draw.standard_normal(size=ways.shape, dtype=np.float32) * across
        ways += self.lean.astype(np.float32)[owners]
        lengths = np.maximum(np.sqrt(np.einsum("ij,ij->i", ways, ways)), 1e-12)
        rows = clip_into(self.cells.domain, anchors + (distances / lengths)[:, None] * ways)
        for _ in range(2):
            away = rows - anchors
            lengths = np.sqrt(np.einsum("ij,ij->i", away, away))
            short = np.flatnonzero(lengths < 0.98 * distances)
            if len(short) == 0:
                break
            factor = np.minimum(distances[short] / np.maximum(lengths[short], 1e-9), 3.0)
            rows[short] = clip_into(self.cells.domain, anchors[short] + away[short] * factor[:, None])
        return rows


def means_by_cell(rows: Floats, counts: npt.NDArray[np.int64], otherwise: Floats) -> Floats:
    """Means of rows that are sorted by cell, given the number of each; other means for cells without rows."""
    means, alive = otherwise.copy(), np.flatnonzero(counts)
    firsts = counts.cumsum() - counts
    means[alive] = np.add.reduceat(rows, firsts[alive], axis=0) / counts[alive][:, None]
    return means
