"""Losses from noisy histograms of distances: which records they are of, and what is said of the others."""

import numpy as np
import numpy.typing as npt
import pytest

from core.algorithms import registry
from core.algorithms.summit import open_k
from core.data import ArraySource, Dense
from core.plan import KRange, Request
from core.postprocessing.spread import CountNoise, DistanceHistogram, geometric_edges
from core.postprocessing.synopsis.losses import MeanSquare
from core.privacy import Budget

EDGES = geometric_edges(20_000, 1.1, 60)


def histogram(far: float, noise: float = 0.01) -> DistanceHistogram:
    """10,000 records at distances around 1,000, and some in the last bin, which has no end."""
    counts = np.zeros(len(EDGES))
    counts[(EDGES > 700) & (EDGES < 1400)] = 10_000 / ((EDGES > 700) & (EDGES < 1400)).sum()
    counts[-1] = far
    return DistanceHistogram(counts, EDGES, CountNoise(noise, long_tails=False))


def test_records_in_the_bin_without_an_end_are_counted_but_not_measured() -> None:
    """Taken as lying at the last edge, they would add 30 times the loss of all others."""
    light, heavy = (MeanSquare.of(histogram(far), 10_000) for far in (0.0, 1000.0))
    assert heavy.value == pytest.approx(light.value, rel=1e-6)
    assert heavy.heavy_tailed
    assert not light.heavy_tailed
    assert heavy.reach <= EDGES[-2]
    assert heavy.beyond == pytest.approx(1000, abs=1)
    assert light.beyond < 1


def test_distances_are_added_up_only_as_far_as_noise_allows() -> None:
    """Records stand out in the last bin, but so far out noise would decide the loss of those before it."""
    found = MeanSquare.of(histogram(2000.0, noise=30.0), 12_000)
    assert found.heavy_tailed
    assert found.reach < EDGES[-10]
    assert found.error <= 0.08 * found.value
    assert found.beyond > 2000


def test_under_heavy_tails_losses_are_those_of_the_records_within_reach() -> None:
    """At an epsilon that leaves no noise to speak of: what remains are the margins for the model."""
    draw = np.random.default_rng(9)
    middles = np.array([[0.5, 0.0], [-0.5, 0.0], [0.0, 0.6]])
    rows = middles[np.arange(6000) % 3] + 0.03 * draw.standard_t(1.5, size=(6000, 2))
    rows = np.clip(rows, -1, 1)
    domain = Dense.box(-1, 1, dimension=2, scaling="none", size=6000)
    plan = registry.plan(domain, Request(KRange(1, 6), Budget.of(40, "0.000001")))
    synopsis = registry.run(plan, ArraySource(domain, rows)).synopsis
    assert synopsis is not None
    assert synopsis.heavy_tailed
    assert synopsis.warning is not None
    assert f"within {synopsis.reach:.3g} of a fine cluster" in synopsis.warning
    away = np.linalg.norm(rows[:, None] - synopsis.anchors, axis=2).min(axis=1)
    within = rows[away <= synopsis.reach]
    assert len(rows) - len(within) <= synopsis.beyond
    for level in synopsis.levels:
        true = ((within[:, None] - level.centres) ** 2).sum(axis=2).min(axis=1).mean()
        assert level.loss.low <= true <= level.loss.high


def test_what_made_up_rows_gain_by_cutting_clusters_is_not_all_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Six clusters in 24 fine ones: in between, borders are drawn by made-up rows.

    Over the estimates at 6 and 24 clusters, where none are cut, those in between are 0.98 of the truth, with
    a standard deviation of 0.003 in the mean of three runs; they were 0.95 with a gain that is believed more.
    """
    monkeypatch.setattr(open_k, "FINE_PER_CLUSTER", 1.0)
    draw = np.random.default_rng(3)
    middles = draw.uniform(-0.7, 0.7, size=(6, 8))
    rows = np.clip(middles[np.arange(6000) % 6] + draw.normal(scale=0.08, size=(6000, 8)), -1, 1)
    domain = Dense.box(-1, 1, dimension=8, scaling="none", size=6000)
    plan = registry.plan(domain, Request(KRange(1, 24), Budget.of(20, "0.000001")))
    between = []
    for _ in range(3):
        synopsis = registry.run(plan, ArraySource(domain, rows)).synopsis
        assert synopsis is not None
        assert len(synopsis.anchors) == 24
        found = {k: synopsis.at(k) for k in (6, 16, 24)}
        true = {k: _loss(rows, level.centres) for k, level in found.items()}
        six, some, fine = (found[k].loss.value / true[k] for k in found)
        between.append(2 * some / (six + fine))
    assert np.mean(between) > 0.964


def _loss(rows: npt.NDArray[np.float64], centres: npt.NDArray[np.float64]) -> float:
    return float(((rows[:, None] - centres) ** 2).sum(axis=2).min(axis=1).mean())


@pytest.mark.parametrize("epsilon", ["0.1", "0.5"])
def test_losses_are_stated_however_noisy_distances_are(epsilon: str) -> None:
    """A job is charged before this is computed: no released value may make it fail."""
    domain = Dense.box(-1, 1, dimension=2, size=400)
    rows = np.random.default_rng(1).uniform(-1, 1, size=(400, 2))
    plan = registry.plan(domain, Request(KRange(1, 12), Budget.of(epsilon, "0.000001")))
    for _ in range(8):
        synopsis = registry.run(plan, ArraySource(domain, rows)).synopsis
        assert synopsis is not None
        assert synopsis.reach > 0
        assert all(level.loss.low <= level.loss.value <= level.loss.high for level in synopsis.levels)
