"""Fine clusters that only noise has made are left out first, before any that holds records."""

import numpy as np

from core.data import Dense
from core.postprocessing.spread import CountNoise, DistanceHistogram, geometric_edges
from core.postprocessing.synopsis import CellModel, Cells, Cloud
from core.postprocessing.synopsis.partitions import partitions

#: Fine clusters that touch, on a circle, and the distance between two. The last of them holds no records.
FINE, NOISE, STEP = 24, 10.0, 500.0
EDGES = geometric_edges(10_000, 1.2, 31)


def cells() -> Cells:
    law = CountNoise(NOISE, long_tails=False)
    angles = 2 * np.pi * np.arange(FINE) / FINE
    anchors = STEP * FINE / (2 * np.pi) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    sizes = np.full(FINE, 1000.0)
    sizes[-1] = -3.0
    near = (EDGES > 50) & (EDGES < STEP / 2)
    counts = np.maximum(sizes, 0.0)[:, None] * near / near.sum()
    pooled = DistanceHistogram(counts.sum(axis=0), EDGES, law)
    return Cells(
        domain=Dense.box(-1, 1, dimension=2, size=30_000),
        anchors=anchors,
        centres=anchors,
        moves=np.zeros_like(anchors),
        errors=np.full(FINE, 1.0),
        sizes=sizes,
        size_error=NOISE,
        radii=np.full(FINE, 1000.0),
        distances=DistanceHistogram(counts, EDGES, law),
        pooled=pooled,
        middle=np.zeros(2),
        around=pooled,
        axes=np.eye(2),
        variances=np.ones(2),
        columns=np.ones(2),
        tight=1000.0,
    )


def test_as_many_clusters_as_hold_records_are_those_that_do() -> None:
    found = cells()
    for seed in range(5):
        draw = np.random.default_rng(seed)
        cloud = Cloud.of(CellModel.fit(found, draw), 5000, draw)
        centres = partitions(cloud, [FINE - 1], draw)[FINE - 1].centres
        apart = np.linalg.norm(found.anchors[:-1, None, :] - centres[None, :, :], axis=2)
        assert apart.min(axis=1).max() < STEP / 4
