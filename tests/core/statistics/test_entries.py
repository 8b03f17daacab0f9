"""Sums over groups are exact, and one record touches few entries of one row by little."""

import numpy as np
import pytest
import scipy.sparse as sp

from core.data import Chunk, Sparse
from core.statistics import EntrySums, GroupResidualSums, GroupSums, PickedSums
from core.views import Assigned, Encoded, TopEntries

TEXT = Sparse(dimension=30, radius=2.0, size=100)

ROWS = Encoded.of(TEXT)


def encoded(count: int, seed: int) -> sp.csr_array:
    draw = np.random.default_rng(seed)
    matrix = sp.random_array((count, 30), density=0.3, rng=draw, format="csr")
    matrix.data -= 0.5
    return TEXT.encode(matrix)


def chunk_of(rows: sp.csr_array) -> Chunk:
    return Chunk(rows, 0, (rows.data.tobytes(), rows.indices.tobytes()))


def assigned() -> Assigned:
    return Assigned(ROWS, encoded(4, 1).toarray().astype(np.int64))


def labels(rows: sp.csr_array) -> np.ndarray:
    gaps = rows.toarray().astype(np.int64)[:, None, :] - assigned().centres
    return (gaps**2).sum(axis=2).argmin(axis=1)


def cut(row: np.ndarray, entries: int, largest: int) -> np.ndarray:
    """The same by sorting: largest magnitudes first, ties to the left."""
    kept = sorted(range(len(row)), key=lambda j: (-abs(int(row[j])), j))[:entries]
    return np.array([np.clip(row[j], -largest, largest) if j in kept else 0 for j in range(len(row))])


@pytest.mark.parametrize("kind", ["group", "entry", "picked"])
def test_sums_are_those_of_the_records_of_each_group(kind: str) -> None:
    rows, view, kept = encoded(40, 3), assigned(), TopEntries(ROWS, 4, 5000)
    picks = np.array([[0, 5, 7], [1, 2, 3], [9, 8, 7], [20, 21, 29]])
    plain = rows.toarray().astype(np.int64)
    added = plain if kind == "group" else np.stack([cut(row, 4, 5000) for row in plain])
    expected = np.zeros((4, 30), dtype=np.int64)
    np.add.at(expected, labels(rows), added)
    statistic = {
        "group": GroupSums(view, ROWS),
        "entry": EntrySums(view, kept),
        "picked": PickedSums(view, kept, picks),
    }[kind]
    if kind == "picked":
        expected = np.take_along_axis(expected, picks, axis=1)
    assert np.array_equal(statistic.of(chunk_of(rows)), expected)


def test_a_record_changes_few_entries_of_one_row_by_at_most_the_scale() -> None:
    view, kept = assigned(), TopEntries(ROWS, 4, 3000)
    picks = np.array([[j, j + 1, j + 2] for j in range(4)])
    for statistic in (EntrySums(view, kept), PickedSums(view, kept, picks)):
        declared = statistic.sensitivity
        for seed in range(30):
            change = statistic.of(chunk_of(encoded(1, seed))) / declared.scales
            assert np.count_nonzero(np.any(change != 0, axis=1)) <= 1
            assert np.count_nonzero(change) <= (declared.touched or 0)
            assert np.abs(change).max() <= declared.linf
            assert np.abs(change).sum() <= declared.l1
            assert np.sqrt((change**2).sum()) <= declared.l2 + 1e-12


def test_a_column_cannot_be_picked_twice_for_the_same_centre() -> None:
    with pytest.raises(ValueError, match="picked once"):
        PickedSums(assigned(), TopEntries(ROWS, 4, 3000), np.array([[1, 1], [0, 1], [0, 1], [0, 1]]))


def about_a_centre(radius: int) -> GroupResidualSums:
    return GroupResidualSums(assigned(), Assigned(ROWS, encoded(1, 9).toarray().astype(np.int64)), radius)


def test_residuals_of_a_group_are_about_the_common_centre_and_clipped() -> None:
    rows, statistic = encoded(40, 3), about_a_centre(20_000)
    gaps = (rows.toarray().astype(np.int64) - statistic.rows.centres).astype(np.float64)
    norms = np.linalg.norm(gaps, axis=1, keepdims=True)
    assert (norms > 20_000).any()
    assert (norms < 20_000).any()
    expected = np.zeros((4, 30))
    np.add.at(expected, labels(rows), gaps * np.minimum(1.0, 20_000 / norms))
    # Weights are rounded down to 2^-15: each record's share errs by less than its residual times that.
    assert np.abs(statistic.of(chunk_of(rows)) / 2**15 - expected).max() < norms.sum() * 2**-15


def test_a_record_moves_the_residuals_of_one_group_by_at_most_the_radius() -> None:
    for radius in (1, 700, 20_000, 65_534):
        statistic = about_a_centre(radius)
        for seed in range(20):
            change = statistic.of(chunk_of(encoded(1, seed))) / statistic.sensitivity.scales
            assert np.count_nonzero(np.any(change != 0, axis=1)) <= 1
            assert (change**2).sum() <= 1 + 1e-12
            assert np.abs(change).sum() <= statistic.sensitivity.l1


def test_residuals_of_groups_refuse_two_centres_and_a_radius_beyond_the_domain() -> None:
    with pytest.raises(ValueError, match="one centre"):
        GroupResidualSums(assigned(), assigned(), 100)
    with pytest.raises(ValueError, match="radius"):
        about_a_centre(65_535)
