"""Losses of swaps and of sets are exact, and one record moves them as far as declared and no farther."""

import math

import numpy as np
import pytest

from core.data import UNITS, Chunk, Dense, Ids, read_sites
from core.statistics.scores import NetLosses, SetLosses, SwapLosses
from core.views import Assigned, CandidateDistances, Distances, Encoded, SiteDistances

PLANE = Dense.ball(1.0, dimension=2, size=100)
NAMED = Ids(count=5, size=100)


def inside(count: int, draw: np.random.Generator) -> np.ndarray:
    angle, length = draw.uniform(0, 2 * math.pi, count), draw.uniform(0, 1, count)
    return PLANE.encode(np.stack([length * np.cos(angle), length * np.sin(angle)], axis=1))


def chunk_of(rows: np.ndarray) -> Chunk:
    return Chunk(rows, 0, rows.tobytes())


def planar(objective: str, draw: np.random.Generator) -> tuple[Distances, np.ndarray, np.ndarray]:
    """Candidates, rows and what each row pays for each candidate, by plain integers."""
    candidates, rows = inside(6, draw).astype(np.int64), inside(40, draw)
    gaps = rows.astype(np.int64)[:, None, :] - candidates[None, :, :]
    squared = (gaps**2).sum(axis=2)
    paid = (
        squared if objective == "means" else np.array([[math.isqrt(int(v)) for v in row] for row in squared])
    )
    return CandidateDistances(Encoded.of(PLANE), candidates, objective), rows, paid


def loss(paid: np.ndarray, members: list[int]) -> int:
    return int(paid[:, members].min(axis=1).sum())


@pytest.mark.parametrize("objective", ["means", "medians"])
@pytest.mark.parametrize("current", [[0, 1, 2], [4], [3, 3]])
def test_every_swap_has_the_loss_of_the_set_it_makes(objective: str, current: list[int]) -> None:
    source, rows, paid = planar(objective, np.random.default_rng(1))
    scores = SwapLosses(source, np.array(current)).of(chunk_of(rows))
    assert scores.shape == (len(current), 6)
    for leaves in range(len(current)):
        for comes in range(6):
            after = [*current[:leaves], comes, *current[leaves + 1 :]]
            assert -scores[leaves, comes] == loss(paid, after)


def test_every_set_has_its_own_loss() -> None:
    source, rows, paid = planar("means", np.random.default_rng(2))
    sets = np.array([[0, 1], [2, 5], [3, 3]])
    assert (-SetLosses(source, sets).of(chunk_of(rows))).tolist() == [
        loss(paid, row) for row in sets.tolist()
    ]


def test_swaps_among_named_sites_count_records_by_their_site() -> None:
    matrix = np.abs(np.arange(5)[:, None] - np.arange(5)[None, :]).astype(float)
    sites = read_sites(NAMED, {"kind": "distances", "matrix": matrix.tolist()})
    source = SiteDistances.of(NAMED, sites)
    rows = np.array([0, 0, 4, 3, 3, 3, 1], dtype=np.int32)
    paid = source.sites[rows]
    scores = SwapLosses(source, np.array([0, 2])).of(chunk_of(rows))
    assert [[-int(v) for v in row] for row in scores] == [
        [loss(paid, [comes, 2]) for comes in range(5)],
        [loss(paid, [0, comes]) for comes in range(5)],
    ]


@pytest.mark.parametrize("objective", ["means", "medians"])
def test_a_record_lowers_every_score_by_at_most_the_declared_reach(objective: str) -> None:
    draw = np.random.default_rng(3)
    source, rows, _ = planar(objective, draw)
    far = np.array([[UNITS, 0], [-UNITS, 0], [0, UNITS], [0, -UNITS]], dtype=np.int16)
    candidates = np.concatenate([far.astype(np.int64), inside(3, draw).astype(np.int64)])
    source = CandidateDistances(Encoded.of(PLANE), candidates, objective)
    largest = 0
    for statistic in (SwapLosses(source, np.array([0, 4])), SetLosses(source, np.array([[1, 1], [2, 5]]))):
        declared = statistic.sensitivity
        assert declared.monotone
        before = statistic.of(chunk_of(rows))
        for record in np.concatenate([far, inside(20, draw)]):
            change = statistic.of(chunk_of(np.concatenate([rows, record[None]]))) - before
            assert change.max() <= 0
            assert -change.min() <= declared.linf
            largest = max(largest, int(-change.min()))
    assert largest > 0.99 * source.reach  # the bound is no larger than it need be


def test_candidates_outside_the_ball_are_refused() -> None:
    with pytest.raises(ValueError, match="clip them first"):
        CandidateDistances(Encoded.of(PLANE), np.array([[UNITS, UNITS]]), "means")


def test_a_record_pays_for_the_net_of_its_own_centre_alone() -> None:
    draw = np.random.default_rng(4)
    centres, rows = inside(3, draw).astype(np.int64), inside(30, draw)
    nets = np.stack([inside(5, draw).astype(np.int64) for _ in range(3)])
    statistic = NetLosses(Assigned(Encoded.of(PLANE), centres), nets)
    labels = ((rows.astype(np.int64)[:, None, :] - centres) ** 2).sum(axis=2).argmin(axis=1)
    expected = np.zeros((3, 5), dtype=np.int64)
    for row, label in zip(rows.astype(np.int64), labels, strict=True):
        expected[label] -= [math.isqrt(int(((row - point) ** 2).sum())) for point in nets[label]]
    assert np.array_equal(statistic.of(chunk_of(rows)), expected)
    assert statistic.sensitivity.linf == 2 * UNITS
    assert statistic.sensitivity.one_block
