"""Points inside the public bounds: clipped into them, or spread over them without looking at rows."""

import math

import numpy as np

from core.arrays import Floats, Integers
from core.data import UNITS, Dense, Domain, Geometry, Ids
from core.kernels.clipping import clipped_block, into_ball

_CANDIDATES_PER_CENTRE = 20


def spread_centres(domain: Domain, k: int, draw: np.random.Generator) -> Floats:
    """k points well inside the bounds and far from each other: the centres of disjoint balls.

    Each point is the farthest from those before among random ones. All are then moved towards the middle
    until balls of half their least distance just fit inside the bounds, but at most half of the way.
    """
    candidates = _inside(domain, max(50, _CANDIDATES_PER_CENTRE * k), draw)
    chosen = [candidates[0]]
    distance = ((candidates - chosen[0]) ** 2).sum(axis=1)
    gap = np.inf
    for _ in range(k - 1):
        farthest = int(distance.argmax())
        gap = float(np.sqrt(distance[farthest]))
        chosen.append(candidates[farthest])
        np.minimum(distance, ((candidates - chosen[-1]) ** 2).sum(axis=1), out=distance)
    inner = _inner_radius(domain)
    shrink = 0.5 if k == 1 else max(0.5, 2 * inner / (gap + 2 * inner))
    return np.array(chosen) * shrink


def _inner_radius(domain: Domain) -> float:
    """Radius of the largest ball inside the bounds."""
    if isinstance(domain, Geometry):
        return domain.inner
    bounds = domain.bounds_units if isinstance(domain, Dense) else None
    return float(UNITS if bounds is None else bounds[1].min())


def _inside(domain: Domain, count: int, draw: np.random.Generator) -> Floats:
    """Random points, uniform in the box or in the ball."""
    if isinstance(domain, Geometry):
        return domain.scatter(count, draw)
    if isinstance(domain, Dense) and domain.bounds_units is not None:
        low, high = domain.bounds_units
        return draw.uniform(low, high, size=(count, domain.dimension))
    points = draw.normal(size=(count, domain.dimension))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points * (UNITS * draw.uniform(size=(count, 1)) ** (1 / domain.dimension))


def clip_into(domain: Domain, points: Floats) -> Floats:
    """Points in encoded units moved to where means of records can lie."""
    if isinstance(domain, Geometry):
        return domain.clip(points)
    if isinstance(domain, Dense) and domain.bounds_units is not None:
        points = np.clip(points, *domain.bounds_units)
    return into_ball(points)


def unit_length(domain: Domain) -> float:
    """Length of one encoded unit in the geometry of a run: half-widths of columns where they are scaled."""
    if isinstance(domain, Geometry):
        return domain.unit_length
    if isinstance(domain, Dense) and domain.scaling == "unit":
        return math.sqrt(domain.dimension) / UNITS
    if isinstance(domain, Ids):
        raise ValueError("numbers of sites have no unit of length")
    return float(domain.unit_lengths()[0])


def inside_ball(points: Integers) -> Integers:
    """Integer points scaled down and truncated until their exact norm is at most UNITS."""
    block = points.astype(np.float64)
    squared = (points * points).sum(axis=1)
    # Clipping is exact below norms of 2^17; the corners of the root may lie farther out.
    far = squared >= 1 << 33
    block[far] = np.trunc(block[far] * (UNITS / np.sqrt(squared[far].astype(np.float64)))[:, None])
    squared = (block * block).sum(axis=1).astype(np.int64)
    return clipped_block(block, squared, UNITS).astype(np.int64)
