"""Seeds of the house algorithm where k is open: k-means on made-up rows of the explored clusters."""

import numpy as np

from core.algorithms.summit.overview import Overview
from core.arrays import Floats
from core.blocks.rounds import Round
from core.data import Dense
from core.postprocessing.seeds import merged
from core.postprocessing.synopsis import CellModel, Cells, Cloud
from core.postprocessing.synopsis.lloyd import LloydRows

SETTLE_ROWS = 6000  # Made-up rows of the explored clusters.
SETTLE_FITS = 3  # Rounds in which the model of the clusters is fitted.
SETTLE_ROUNDS = 10  # Rounds of Lloyd's algorithm on made-up rows: more follow the model, not the records.
SETTLE_REACH = 0.5  # A centre that would move farther than this share of the way to the next one stays.


def settled_seeds(
    overview: Overview, last: Round, centres: Floats, weights: Floats, k: int, draw: np.random.Generator
) -> Floats:
    """At most k centres that stand for all explored ones with weight, in the projected view.

    Merged centres are means of whole explored clusters. Lloyd's algorithm on made-up rows divides those that
    lie between two of them: free, where a round on records would have to be paid for.
    """
    start = merged(centres, weights, k, draw)
    if len(centres) <= k:
        return start
    model = CellModel.fit(_explored_cells(overview, last, centres), draw, SETTLE_FITS)
    cloud = Cloud.of(model, SETTLE_ROWS, draw)
    rows, along = LloydRows(cloud.flat), (start - cloud.middle) @ cloud.basis
    settled = cloud.lifted(rows.settled(along, SETTLE_ROUNDS))
    apart = np.linalg.norm(start[:, None, :] - start[None, :, :], axis=2)
    np.fill_diagonal(apart, np.inf)
    stays = np.linalg.norm(settled - start, axis=1) > SETTLE_REACH * apart.min(axis=1)
    return np.where(stays[:, None], start, settled)


def settling_operations(axes: float, k: int) -> float:
    """Operations of `settled_seeds`, for plans: fitting and drawing rows, then Lloyd's algorithm on them."""
    rows = float(SETTLE_ROWS)
    return 6e7 + rows * axes * (400.0 + 5.0 * k)


def _explored_cells(overview: Overview, last: Round, centres: Floats) -> Cells:
    """What the last exploring round has released of its clusters, in the projected view."""
    width, variances = overview.view.width, overview.deviations**2
    together = last.distances.together()
    return Cells(
        domain=Dense.ball(1.0, dimension=width, size=1),  # the view is a ball
        anchors=last.centres.astype(np.float64),
        centres=centres,
        moves=last.moves,
        errors=last.errors,
        sizes=last.sizes,
        size_error=last.size_error,
        radii=last.radii.astype(np.float64),
        distances=last.distances,
        pooled=together,
        middle=np.zeros(width),
        around=together,  # no distance in the view is beyond its bins
        axes=np.eye(width),
        variances=variances,
        columns=variances,
        tight=overview.extent.tight * overview.zoom,
    )
