"""Johnson and Lindenstrauss: a random projection to few dimensions, drawn without looking at rows."""

import math

import numpy as np

from core.data import UNITS
from core.kernels.clipping import WEIGHT_ONE
from core.views import Projected, RowView

_KEPT = 0.999  # The projected length of a row exceeds the clipping radius with the remaining probability.


def dimension_for(size: int) -> int:
    """ln(N)/2, as the paper's experiments have it, from the public size."""
    return max(1, math.floor(math.log(size) / 2))


def random_projection(rows: RowView, dimension: int, draw: np.random.Generator) -> Projected:
    """Rows times a Gaussian matrix over sqrt(dimension), rescaled and clipped to the domain's radius.

    A projection may lengthen rows, hardly ever beyond R * sqrt(chi2.ppf(0.999, p) / p), which is scaled back
    to the radius R, where arithmetic is exact. Rows that have no more columns than that stay as they are.
    """
    if dimension >= rows.width:
        return Projected(rows, np.eye(rows.width, dtype=np.int64) * WEIGHT_ONE, UNITS)
    from scipy.stats import chi2  # slow to import; plans do without

    scale = math.sqrt(dimension / float(chi2.ppf(_KEPT, dimension))) / math.sqrt(dimension)
    matrix = np.rint(draw.normal(size=(rows.width, dimension)) * (scale * WEIGHT_ONE)).astype(np.int64)
    return Projected(rows, matrix, UNITS)
