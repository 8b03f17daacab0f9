"""Randomly shifted partition trees: the centres of crowded cubes, as candidates for centres of clusters.

A cube is split into its 2^p halves in every direction; a child stays active if its noisy count exceeds a
limit, whether it is empty or not. Everything that leaves a level is which children those are.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from core.arrays import Integers
from core.data import UNITS
from core.postprocessing.bounds import inside_ball
from core.privacy import Gaussian, Pure
from core.probe import Probe
from core.statistics import CubeCounts
from core.views import Cubes, RowView

#: How many empty children of a cube turn active on average: few enough for trees to stay small.
_FALSE_CHILDREN = 0.05


def active_limit(loss: Gaussian | Pure, dimension: int) -> int:
    """The count that noise alone exceeds in `_FALSE_CHILDREN` of the 2^p children of a cube on average."""
    log_tail = math.log(_FALSE_CHILDREN) - dimension * math.log(2)
    if isinstance(loss, Gaussian):
        return math.ceil(-float(ndtri(math.exp(log_tail))) / loss.mu)
    return math.ceil(-(log_tail + math.log(2)) / loss.epsilon)


def grow_partition(
    probe: Probe, step: str, rows: RowView, depth: int, draw: np.random.Generator, most: int
) -> Integers:
    """The centres of all active cubes of one tree under a random shift; at most `depth` measurements.

    A level with more than `most` cubes is thinned at random, without looking at data.
    """
    width = rows.width
    shift = np.trunc(draw.uniform(-UNITS, UNITS, size=width)).astype(np.int64)
    cubes = Cubes(rows, shift)
    corners = (shift - (1 << 16))[None, :]
    side = 1 << Cubes.DEPTH
    found = [corners + side // 2]
    for _ in range(depth):
        children = probe.measure(step, CubeCounts(cubes))
        if len(children) > most:
            children = np.sort(draw.choice(children, most, replace=False))
        if len(children) == 0:
            break
        side //= 2
        bits = (children[:, None] >> np.arange(width)) & 1
        corners = corners[children >> width] + bits * side
        found.append(corners + side // 2)
        if cubes.level + 1 == Cubes.DEPTH:
            break
        cubes = Cubes(rows, shift, cubes, children)
    return np.concatenate(found)


def candidate_points(centres: Integers, least: int, most: int, draw: np.random.Generator) -> Integers:
    """The centres clipped into the ball, between `least` and `most` of them.

    Too many are thinned at random; what is missing is filled with random points of the ball.
    """
    points = np.unique(inside_ball(centres), axis=0)
    if len(points) > most:
        points = points[np.sort(draw.choice(len(points), most, replace=False))]
    missing = max(0, least - len(points))
    width = centres.shape[1]
    filling = draw.normal(size=(missing, width))
    lengths = UNITS * draw.uniform(size=(missing, 1)) ** (1 / width)
    filling *= lengths / np.maximum(np.linalg.norm(filling, axis=1, keepdims=True), 1e-12)
    return np.concatenate([points, inside_ball(np.trunc(filling).astype(np.int64))])
