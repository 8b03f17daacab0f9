"""Principal axes from noisy second moments, separated from axes of noise alone."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from core.arrays import Floats


@dataclass(frozen=True, eq=False)
class Subspace:
    """Orthonormal axes (columns), the variance along each, and what is left over in every column."""

    axes: Floats
    variances: Floats
    #: The axes and further ones, which may carry signal though none stands out from noise by itself.
    candidates: Floats
    #: The variance of every column outside the candidates.
    leftover: Floats
    #: The variance of every column.
    columns: Floats


def symmetric(packed: npt.NDArray[np.int64], width: int) -> Floats:
    """The symmetric matrix whose upper triangle, row by row, is `packed`."""
    matrix = np.zeros((width, width))
    matrix[np.triu_indices(width)] = packed.reshape(-1)
    return matrix + np.triu(matrix, 1).T


def principal_axes(
    packed: npt.NDArray[np.int64], width: int, noise: float, count: float, least: int, most: int
) -> Subspace:
    """Axes whose eigenvalue stands above the edge of the noise's spectrum; at least `least`, at most `most`.

    `noise` is the standard deviation of a diagonal entry, that of the others being sqrt(1/2) of it: such a
    matrix has its spectrum inside +-sqrt(2 * width) * noise. An eigenvalue x of the signal shows up at
    x + edge^2 / (4 x), which is inverted here.
    """
    matrix = symmetric(packed, width)
    most = min(width, most)
    found, vectors = eigh(matrix, subset_by_index=[width - most, width - 1])
    found, vectors = found[::-1], vectors[:, ::-1]
    edge = math.sqrt(2 * width) * noise
    kept = min(max(int((found > edge).sum()), min(width, least)), most)
    seen, found, axes = found, found[:kept], vectors[:, :kept]
    above = (found + np.sqrt(np.maximum(found**2 - edge**2, 0.0))) / 2
    below = np.maximum(found, 0.0) / 2 + edge / 4
    values = np.where(found > edge, above, below)
    leftover = np.diag(matrix) - (vectors**2) @ np.maximum(seen, 0.0)
    columns = np.diag(matrix) / count
    return Subspace(np.ascontiguousarray(axes), values / count, vectors, leftover / count, columns)


def axes_of_points(points: Floats, kept: int, candidates: int) -> Subspace:
    """The first principal axes of points about zero that are known exactly, such as public rows."""
    width = points.shape[1]
    moments = points.T @ points / len(points)
    variances, vectors = eigh(moments, subset_by_index=[width - candidates, width - 1])
    variances, axes = np.maximum(variances[::-1], 0.0), np.ascontiguousarray(vectors[:, ::-1])
    columns = np.diag(moments).copy()
    leftover = columns - (axes**2) @ variances
    return Subspace(np.ascontiguousarray(axes[:, :kept]), variances[:kept], axes, leftover, columns)
