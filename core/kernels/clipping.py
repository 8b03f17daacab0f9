"""Exact clipping of integer rows: to a radius, or to a few entries of bounded size."""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.arrays import Floats, Integers, Labels, Rows
from core.kernels.rows import UNITS

#: Clipping multiplies a row by an integer weight of at most WEIGHT_ONE and divides by WEIGHT_ONE.
WEIGHT_BITS = 15
WEIGHT_ONE = 1 << WEIGHT_BITS


def clip_weights(squared: Labels, radius: Integers | int) -> Integers:
    """The largest weights w <= WEIGHT_ONE with w * norm <= WEIGHT_ONE * radius, norm = sqrt(squared).

    For squared norms below 2^63 and radii up to 2^16: a weight above zero is at most about limit / norm, so
    w^2 * squared is at most about 2^30 * radius^2 <= 2^62. Rows of a domain have norms below 2^17, and the
    matrix of a projection keeps those of projected rows below 2^31 (`core.views.rows.LARGEST_MATRIX`). From
    2^53 on, doubles round squared norms by less than 2^-50 of them: w * norm then exceeds the limit by as
    little, and the integer norm of the truncated row is still at most the radius.

    Rows inside the radius take the same steps as those outside: run time must not tell how many there are.
    """
    norms = squared.astype(np.int64, copy=False)
    limits = np.asarray(radius, dtype=np.int64) << WEIGHT_BITS
    quotients = limits / np.sqrt(np.maximum(norms, 1).astype(np.float64))
    weights = np.minimum(quotients, WEIGHT_ONE).astype(np.int64)
    allowed = limits * limits
    weights -= weights * weights * norms > allowed
    # The double is within one unit of the real quotient, so one step down always suffices.
    assert not np.any(weights * weights * norms > allowed)
    return weights


def lifted_heights(squared: Labels, radius: Integers | int) -> Integers:
    """The largest integers h >= 0 with squared + h^2 <= radius^2; zero where squared is beyond radius^2.

    The root of an integer below 2^53 is within one unit of the real one, so one step down suffices.
    """
    room = np.maximum(np.asarray(radius, dtype=np.int64) ** 2 - squared.astype(np.int64, copy=False), 0)
    heights = np.sqrt(room.astype(np.float64)).astype(np.int64)
    heights -= heights * heights > room
    assert not np.any(heights * heights > room)
    return heights


def clipped_block(
    block: npt.NDArray[np.floating[Any]], squared: Integers, radius: int
) -> npt.NDArray[np.floating[Any]]:
    """The block with integer rows longer than the radius scaled down to it, truncated towards zero, in place.

    Truncation lowers every absolute value, so the norm stays at most weight * norm / WEIGHT_ONE <= radius.
    Products are exact for entries below 2^38 in doubles and 2^9 in singles; WEIGHT_ONE is a power of two.
    """
    weights = clip_weights(squared, radius) * (1.0 / WEIGHT_ONE)
    block *= weights.astype(block.dtype)[:, None]
    np.trunc(block, out=block)
    return block


def into_ball(points: Floats, radius: float = UNITS) -> Floats:
    """Released points moved into the ball about the origin, along their own direction."""
    norms = np.linalg.norm(points, axis=-1, keepdims=True)
    inside: Floats = points * (radius / np.maximum(norms, radius))
    return inside


def top_entries(rows: Rows, entries: int, largest: int) -> sp.csr_array:
    """CSR rows cut to their largest magnitudes (ties to the left), each clipped to `largest`."""
    matrix = sp.csr_array(rows)
    matrix.sort_indices()
    counts = np.diff(matrix.indptr)
    owner = np.repeat(np.arange(matrix.shape[0]), counts)
    magnitude = np.abs(matrix.data.astype(np.int64))
    order = np.argsort((owner << 16) - magnitude, kind="stable")  # magnitudes are below 2^16
    rank = np.arange(len(order)) - np.repeat(matrix.indptr[:-1], counts)
    kept = np.sort(order[rank < entries])
    pointers = np.concatenate([[0], np.cumsum(np.minimum(counts, entries))])
    data = np.clip(matrix.data[kept], -largest, largest)
    return sp.csr_array((data, matrix.indices[kept], pointers), shape=matrix.shape)


def onto_simplex(points: Floats, totals: Floats) -> Floats:
    """The nearest points whose coordinates are at least zero and add up to each point's own total."""
    ordered = -np.sort(-points, axis=1)
    surplus = (np.cumsum(ordered, axis=1) - totals[:, None]) / np.arange(1, points.shape[1] + 1)
    kept = np.maximum((ordered > surplus).sum(axis=1), 1)
    nearest: Floats = np.maximum(points - surplus[np.arange(len(points)), kept - 1][:, None], 0.0)
    return nearest
