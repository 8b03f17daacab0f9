"""Last corrections of made-up rows: means of cells as released, and columns that lie on their bounds."""

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from core.arrays import Floats
from core.data import Dense, Geometry
from core.postprocessing.bounds import clip_into
from core.postprocessing.synopsis.cells import Cells
from core.postprocessing.synopsis.made_up import CellModel, means_by_cell

#: Rounds in which rows are moved towards the mean of their cell: bounds stop some of them each time.
_SHIFTS = 6
#: From this many columns on bounds draw rows together, whatever their direction, and rows are spread again.
#: In fewer, the borders of their cells do, and rows should not cross these.
_MANY_COLUMNS = 64
_MOST_STRETCH = 1.3  # Rows are spread by at most this factor a round.
#: A value is put on a bound if it is closer to it than noise in its mean, and than this share of the range.
_UNTOLD = 0.02
_QUARTILE = 0.6745  # The distance between the median and a quartile of a normal law, in standard deviations.


def corrected(model: CellModel, rows: Floats, owners: npt.NDArray[np.int64]) -> Floats:
    """Rows, sorted by cell, with the released mean of each and the spread of all, as far as bounds allow."""
    cells = model.cells
    counts = np.bincount(owners, minlength=len(cells.centres))
    if isinstance(cells.domain, Geometry):
        rows = numbers_beside_levels(cells.domain, rows, counts)
    squared = model.shares @ cells.distances.lengths**2
    for _ in range(_SHIFTS):
        means = means_by_cell(rows, counts, cells.centres)
        stretch = 1.0
        if rows.shape[1] >= _MANY_COLUMNS and isinstance(cells.domain, Dense):
            apart = max(float(((rows - cells.anchors[owners]) ** 2).sum()), 1e-9)
            stretch = float(np.clip(np.sqrt(counts @ squared / apart), 1.0, _MOST_STRETCH))
        rows = clip_into(cells.domain, cells.centres[owners] + stretch * (rows - means[owners]))
    return _on_bounds(cells, rows, owners)


def numbers_beside_levels(domain: Geometry, rows: Floats, counts: npt.NDArray[np.int64]) -> Floats:
    """Rows whose numbers follow a normal law within each cell, as wide as its middle half, in the same order.

    Most rows that lie far from an anchor do so because of their levels. Numbers that were made up to reach as
    far lie at their bounds; the others are spread as they should be.
    """
    numbers = [
        place
        for axis, part in domain.parts
        if not axis.column.is_discrete
        for place in range(part.start, part.stop)
    ]
    if not numbers or not any(axis.column.has_levels for axis in domain.axes):
        return rows
    rows, end = rows.copy(), 0
    for count in counts:
        start, end = end, end + int(count)
        inside = rows[start:end, numbers]
        if count:
            low, middle, high = np.quantile(inside, [0.25, 0.5, 0.75], axis=0)
            scores = ndtri((inside.argsort(axis=0).argsort(axis=0) + 0.5) / count)
            sides = np.where(scores < 0, middle - low, high - middle)
            rows[start:end, numbers] = middle + sides / _QUARTILE * scores
    return domain.clip(rows)


def _on_bounds(cells: Cells, rows: Floats, owners: npt.NDArray[np.int64]) -> Floats:
    """Rows of a box: values that noise may have moved from a bound lie on it, as many equal ones often do."""
    domain = cells.domain
    if not isinstance(domain, Dense) or domain.bounds_units is None:
        return rows
    low, high = domain.bounds_units
    near = np.minimum(cells.errors[owners][:, None], _UNTOLD * (high - low))
    on_low: Floats = np.where(rows - low < near, low, rows)
    return np.where(high - on_low < near, high, on_low)
