"""Great-circle distances in exact integers: points on a sphere, and arcs between them."""

import math

import numpy as np

from core.arrays import Floats, Integers
from core.kernels.rows import UNITS

#: Points on the sphere are integers of this length: their squared chords stay below 2^52.
_SPHERE = 1 << 24


def unit_vectors(cos_lat: Integers, sin_lat: Integers, cos_lon: Integers, sin_lon: Integers) -> Integers:
    """Points on the sphere; products of two integers of 24 bits, divided exactly and floored."""
    return np.stack([(cos_lat * cos_lon) // _SPHERE, (cos_lat * sin_lon) // _SPHERE, sin_lat], axis=-1)


def angle_tables(degrees: Floats) -> Integers:
    """Cosines and sines of latitudes, then of longitudes (the two columns), as integers of 24 bits."""
    angles = np.radians(degrees)
    values = np.stack([function(angles[:, j]) for j in range(2) for function in (np.cos, np.sin)])
    tables: Integers = np.rint(values * _SPHERE).astype(np.int64)
    return tables


def _edges() -> Integers:
    """The least squared chord that is at least j steps of arc away, for j = 0..UNITS."""
    angles = np.arange(UNITS + 1) * (math.pi / UNITS)
    return np.ceil((2.0 * _SPHERE * np.sin(angles / 2)) ** 2).astype(np.int64)


ARC_EDGES = _edges()


def arc_steps(chords: Integers) -> Integers:
    """Arcs in steps of pi/UNITS, rounded down: a guess in doubles, settled by integer comparisons."""
    half = np.sqrt(np.minimum(chords / (4.0 * _SPHERE * _SPHERE), 1.0))
    steps = np.clip((np.arcsin(half) * (2 * UNITS / math.pi)).astype(np.int64), 0, UNITS)
    steps -= (steps > 0) & (ARC_EDGES[steps] > chords)
    steps += (steps < UNITS) & (ARC_EDGES[np.minimum(steps + 1, UNITS)] <= chords)
    return steps
