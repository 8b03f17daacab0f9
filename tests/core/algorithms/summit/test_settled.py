"""Seeds settle on made-up rows of explored clusters, and stay where these would lead them astray."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from core.algorithms.summit import settled
from core.algorithms.summit.settled import settled_seeds
from core.blocks.rounds import Round
from core.postprocessing.kmeans import nearest_points
from core.postprocessing.seeds import merged
from core.postprocessing.spread import CountNoise, DistanceHistogram, geometric_edges

#: Records spread evenly along a line, in explored clusters of equal widths.
WIDTH, LENGTH, EXPLORED = 2, 24_000.0, 6


def records() -> np.ndarray:
    draw = np.random.default_rng(3)
    return np.stack([draw.uniform(-LENGTH / 2, LENGTH / 2, 6000), draw.normal(size=6000) * 300], axis=1)


def explored() -> tuple[Any, Round]:
    """The overview, and an exploring round of these records with next to no noise."""
    rows = records()
    ends = np.linspace(-LENGTH / 2, LENGTH / 2, EXPLORED + 1)
    centres = np.stack([(ends[1:] + ends[:-1]) / 2, np.zeros(EXPLORED)], axis=1).astype(np.int64)
    edges, ones = geometric_edges(65534, 1.2, 31), np.ones(EXPLORED)
    owner = nearest_points(rows, centres.astype(np.float64))
    apart = np.linalg.norm(rows - centres[owner], axis=1)
    counts = np.zeros((EXPLORED, len(edges)))
    np.add.at(counts, (owner, np.searchsorted(edges, apart)), 1.0)
    sizes = counts.sum(axis=1)
    moves = np.stack([rows[owner == j].mean(axis=0) for j in range(EXPLORED)]) - centres
    histogram = DistanceHistogram(counts, edges, CountNoise(0.5, False))
    radii = np.full(EXPLORED, 4000)
    last = Round(
        centres, moves.astype(np.float64), 1.0 * ones, sizes, 1.0, radii, 4000 * ones, ones, histogram
    )
    overview = SimpleNamespace(
        extent=SimpleNamespace(tight=9000),
        view=SimpleNamespace(width=WIDTH),
        deviations=rows.std(axis=0),
        zoom=1.0,
    )
    return cast(Any, overview), last


def loss(centres: np.ndarray) -> float:
    rows = records()
    return float(((rows - centres[nearest_points(rows, centres)]) ** 2).sum())


def test_seeds_divide_explored_clusters_that_lie_between_them() -> None:
    overview, last = explored()
    centres = last.centres + last.moves
    found = settled_seeds(overview, last, centres, last.sizes, 4, np.random.default_rng(1))
    whole = merged(centres, last.sizes, 4, np.random.default_rng(1))
    even = np.stack([LENGTH * (np.arange(4) / 4 - 3 / 8), np.zeros(4)], axis=1)
    assert loss(whole) > 1.1 * loss(even)  # two pairs beside two single ones
    assert loss(found) < 1.03 * loss(even)


def test_seeds_that_would_move_far_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    overview, last = explored()
    centres = last.centres + last.moves
    monkeypatch.setattr(settled, "SETTLE_REACH", 0.0)
    found = settled_seeds(overview, last, centres, last.sizes, 4, np.random.default_rng(1))
    assert np.array_equal(found, merged(centres, last.sizes, 4, np.random.default_rng(1)))


def test_no_more_explored_clusters_than_asked_for_stay_as_they_are() -> None:
    overview, last = explored()
    centres = last.centres + last.moves
    found = settled_seeds(overview, last, centres, last.sizes, EXPLORED, np.random.default_rng(1))
    assert np.array_equal(found, centres)


def test_histograms_of_clusters_add_up_with_their_noise() -> None:
    _, last = explored()
    together = last.distances.together()
    assert together.counts.sum() == last.sizes.sum()
    assert together.noise.deviation == pytest.approx(0.5 * EXPLORED**0.5)
