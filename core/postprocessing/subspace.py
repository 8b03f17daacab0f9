"""Columns that vary, and principal axes from noisy second moments, separated from axes of noise alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from core.arrays import Floats, Integers
from core.postprocessing.kmeans import single_threaded


@dataclass(frozen=True, eq=False)
class Subspace:
    """Orthonormal axes (columns), the variance along each, and what is left over in every column."""

    axes: Floats
    variances: Floats
    #: The axes and further ones, which may carry signal though none of them exceeds the noise by itself.
    candidates: Floats
    #: The variance of every column outside the candidates.
    leftover: Floats
    #: The variance of every column.
    columns: Floats
    #: How many of the first axes stand out from noise.
    clear: int = 0

    def widened(self, chosen: Integers, variances: Floats) -> Subspace:
        """The same axes among more columns, of which these were chosen; the others have these variances.

        Nothing is left over in the others: they rank behind all that were chosen.
        """
        leftover, columns = np.full(len(variances), -np.inf), variances.copy()
        leftover[chosen], columns[chosen] = self.leftover, self.columns
        return replace(
            self,
            axes=_among(self.axes, chosen, len(variances)),
            candidates=_among(self.candidates, chosen, len(variances)),
            leftover=leftover,
            columns=columns,
        )


def _among(axes: Floats, chosen: Integers, width: int) -> Floats:
    """Axes of the chosen columns as axes of all columns."""
    wide = np.zeros((width, axes.shape[1]))
    wide[chosen] = axes
    return wide


def varying_columns(deviations: Floats, noise: float, level: float, least: int) -> Integers:
    """The columns that vary most, in their order: with this share of all deviations, and at least `least`.

    `noise` is the standard deviation of the noise in a deviation. It is taken off every one of them, so that
    many columns that hardly vary do not add up to much.
    """
    certain = np.maximum(deviations - noise, 0.0)
    order = np.argsort(-certain, kind="stable")
    reached = certain[order].cumsum()
    kept = len(order) if reached[-1] == 0 else int(np.searchsorted(reached, level * reached[-1])) + 1
    return np.sort(order[: max(kept, least)]).astype(np.int64)


def symmetric(packed: npt.NDArray[np.int64], width: int) -> Floats:
    """The symmetric matrix whose upper triangle, row by row, is `packed`."""
    matrix = np.zeros((width, width))
    matrix[np.triu_indices(width)] = packed.reshape(-1)
    return matrix + np.triu(matrix, 1).T


def _last_of(matrix: Floats, count: int) -> tuple[Floats, Floats]:
    """The largest eigenvalues, in rising order, and their vectors.

    One thread: two take as long on so few numbers, and far longer next to other programs.
    """
    width = len(matrix)
    with single_threaded():
        found: tuple[Floats, Floats] = eigh(matrix, subset_by_index=[width - count, width - 1])
    return found


def principal_axes(
    packed: npt.NDArray[np.int64], width: int, noise: float, count: float, least: int, most: int
) -> Subspace:
    """Axes whose eigenvalue is above the edge of the noise's spectrum; at least `least`, at most `most`.

    `noise` is the standard deviation of a diagonal entry, that of the others being sqrt(1/2) of it: such a
    matrix has its spectrum inside +-sqrt(2 * width) * noise. An eigenvalue x of the signal shows up at
    x + edge^2 / (4 x), which is inverted here.
    """
    matrix = symmetric(packed, width)
    most = min(width, most)
    found, vectors = _last_of(matrix, most)
    found, vectors = found[::-1], vectors[:, ::-1]
    edge = math.sqrt(2 * width) * noise
    clear = int((found > edge).sum())
    kept = min(max(clear, min(width, least)), most)
    seen, found, axes = found, found[:kept], vectors[:, :kept]
    above = (found + np.sqrt(np.maximum(found**2 - edge**2, 0.0))) / 2
    below = np.maximum(found, 0.0) / 2 + edge / 4
    values = np.where(found > edge, above, below)
    leftover = np.diag(matrix) - (vectors**2) @ np.maximum(seen, 0.0)
    columns = np.diag(matrix) / count
    return Subspace(np.ascontiguousarray(axes), values / count, vectors, leftover / count, columns, clear)


def axes_of_points(points: Floats, kept: int, candidates: int) -> Subspace:
    """The first principal axes of points about zero that are known exactly, such as public rows."""
    moments = points.T @ points / len(points)
    variances, vectors = _last_of(moments, candidates)
    variances, axes = np.maximum(variances[::-1], 0.0), np.ascontiguousarray(vectors[:, ::-1])
    columns = np.diag(moments).copy()
    leftover = columns - (axes**2) @ variances
    return Subspace(np.ascontiguousarray(axes[:, :kept]), variances[:kept], axes, leftover, columns, kept)
