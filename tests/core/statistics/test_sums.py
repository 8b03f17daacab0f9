"""Sums are exact on rows that can be checked by hand, and one record moves them by no more than declared."""

import numpy as np
import pytest
import scipy.sparse as sp

from core.kernels.clipping import WEIGHT_ONE
from core.statistics.sums import (
    AbsoluteSums,
    EntrySums,
    GroupResidualSums,
    GroupSums,
    LiftedSums,
    PickedSums,
    ResidualSums,
    SecondMoments,
)
from core.views import Assigned, Encoded, TopEntries
from tests.support.rows import DENSE, TEXT_ROWS, chunk_of, chunk_of_texts, cut, texts


def test_residual_sums_are_taken_about_the_centre_and_clipped_to_its_radius() -> None:
    assigned = Assigned(Encoded.of(DENSE), np.array([[100, 0, 0]]))
    chunk = chunk_of(np.array([[103, 4, 0], [100, 0, 10]]))
    sums = ResidualSums(assigned, np.array([5])).of(chunk)
    assert (sums / WEIGHT_ONE).tolist() == [[3.0, 4.0, 5.0]]


def test_absolute_sums_are_of_residuals_about_the_centre_and_clipped() -> None:
    chunk = chunk_of(np.array([[97, 4, 0], [100, 0, -10]]))
    sums = AbsoluteSums(Encoded.of(DENSE), np.array([100, 0, 0]), 5).of(chunk)
    assert sums.tolist() == [[3, 4, 5]]


def test_absolute_sums_that_are_clipped_before_they_are_centred_would_break_their_declaration() -> None:
    """The wrong version: a row inside the radius may lie twice as far from a centre that is inside it too."""
    row, centre = np.array([[-90, 10, 0]]), np.array([90, -10, 0])
    declared = AbsoluteSums(Encoded.of(DENSE), centre, 100)
    right = declared.of(chunk_of(row)) / declared.sensitivity.scales
    assert np.sqrt((right**2).sum()) <= 1
    wrong = np.abs(row - centre) / declared.sensitivity.scales
    assert np.sqrt((wrong**2).sum()) > 1


def test_lifted_sums_add_the_heights_of_records_above_their_residuals() -> None:
    assigned = Assigned(Encoded.of(DENSE), np.array([[100, 0, 0]]))
    chunk = chunk_of(np.array([[103, 0, 0], [100, 0, 0], [100, 0, 10]]))
    sums = LiftedSums(assigned, np.array([5])).of(chunk)
    assert (sums / WEIGHT_ONE).tolist() == [[3.0, 0.0, 5.0, 4.0 + 5.0 + 0.0]]


def test_a_whole_count_beside_residuals_would_break_the_declaration() -> None:
    """The wrong version: a record that counts for one whatever its residual is up to sqrt(2) radii long."""
    assigned = Assigned(Encoded.of(DENSE), np.array([[0, 0, 0]]))
    lifted = LiftedSums(assigned, np.array([500]))
    for distance in (0, 1, 300, 499, 500, 501, 9000):
        chunk = chunk_of(np.array([[0, distance, 0]]))
        vector = (lifted.of(chunk) / lifted.sensitivity.scales)[0]
        assert np.linalg.norm(vector) <= 1
        counted = np.append(vector[:-1], 1.0)
        assert np.linalg.norm(counted) > 1 or distance == 0


def test_second_moments_are_the_packed_upper_triangle() -> None:
    chunk = chunk_of(np.array([[1, 2, 3], [4, 5, 6]]))
    moments = SecondMoments(Encoded.of(DENSE), np.zeros(3, dtype=np.int64), 100).of(chunk)
    assert moments.tolist() == [[17, 22, 27, 29, 36, 45]]


def test_second_moments_of_coarse_rows_count_the_nearest_steps() -> None:
    chunk = chunk_of(np.array([[7, -7, 9], [-9, 15, 16]]))
    moments = SecondMoments(Encoded.of(DENSE), np.zeros(3, dtype=np.int64), 100, shift=3).of(chunk)
    assert moments.tolist() == [[2, -3, -1, 5, 3, 1 + 4]]


def test_coarse_rows_that_are_not_clipped_again_would_break_their_declaration() -> None:
    """The wrong version: this row is inside its radius, but not any more once it is rounded."""
    row = np.array([[106, 74, 58]])
    declared = SecondMoments(Encoded.of(DENSE), np.zeros(3, dtype=np.int64), 143, shift=4)
    right = declared.of(chunk_of(row)) / declared.sensitivity.scales
    assert np.sqrt((right**2).sum()) <= 1
    steps = np.rint(row[0] / 16)
    rounded = np.outer(steps, steps)[np.triu_indices(3)] / declared.sensitivity.scales
    assert np.sqrt((rounded**2).sum()) > 1


def assigned() -> Assigned:
    return Assigned(TEXT_ROWS, texts(4, 1).toarray().astype(np.int64))


def labels(rows: sp.csr_array) -> np.ndarray:
    gaps = rows.toarray().astype(np.int64)[:, None, :] - assigned().centres
    return np.asarray((gaps**2).sum(axis=2).argmin(axis=1))


@pytest.mark.parametrize("kind", ["group", "entry", "picked"])
def test_sums_are_those_of_the_records_of_each_group(kind: str) -> None:
    rows, view, kept = texts(40, 3), assigned(), TopEntries(TEXT_ROWS, 4, 5000)
    picks = np.array([[0, 5, 7], [1, 2, 3], [9, 8, 7], [20, 21, 29]])
    plain = rows.toarray().astype(np.int64)
    added = plain if kind == "group" else np.stack([cut(row, 4, 5000) for row in plain])
    expected = np.zeros((4, 30), dtype=np.int64)
    np.add.at(expected, labels(rows), added)
    statistic = {
        "group": GroupSums(view, TEXT_ROWS),
        "entry": EntrySums(view, kept),
        "picked": PickedSums(view, kept, picks),
    }[kind]
    if kind == "picked":
        expected = np.take_along_axis(expected, picks, axis=1)
    assert np.array_equal(statistic.of(chunk_of_texts(rows)), expected)


def test_a_record_changes_few_entries_of_one_row_by_at_most_the_scale() -> None:
    view, kept = assigned(), TopEntries(TEXT_ROWS, 4, 3000)
    picks = np.array([[j, j + 1, j + 2] for j in range(4)])
    for statistic in (EntrySums(view, kept), PickedSums(view, kept, picks)):
        declared = statistic.sensitivity
        for seed in range(30):
            change = statistic.of(chunk_of_texts(texts(1, seed))) / declared.scales
            assert np.count_nonzero(np.any(change != 0, axis=1)) <= 1
            assert np.count_nonzero(change) <= (declared.touched or 0)
            assert np.abs(change).max() <= declared.linf
            assert np.abs(change).sum() <= declared.l1
            assert np.sqrt((change**2).sum()) <= declared.l2 + 1e-12


def test_a_column_cannot_be_picked_twice_for_the_same_centre() -> None:
    with pytest.raises(ValueError, match="picked once"):
        PickedSums(assigned(), TopEntries(TEXT_ROWS, 4, 3000), np.array([[1, 1], [0, 1], [0, 1], [0, 1]]))


def about_a_centre(radius: int) -> GroupResidualSums:
    return GroupResidualSums(assigned(), Assigned(TEXT_ROWS, texts(1, 9).toarray().astype(np.int64)), radius)


def test_residuals_of_a_group_are_about_the_common_centre_and_clipped() -> None:
    rows, statistic = texts(40, 3), about_a_centre(20_000)
    gaps = (rows.toarray().astype(np.int64) - statistic.rows.centres).astype(np.float64)
    norms = np.linalg.norm(gaps, axis=1, keepdims=True)
    assert (norms > 20_000).any()
    assert (norms < 20_000).any()
    expected = np.zeros((4, 30))
    np.add.at(expected, labels(rows), gaps * np.minimum(1.0, 20_000 / norms))
    # Weights are rounded down to 2^-15: each record's share errs by less than its residual times that.
    assert np.abs(statistic.of(chunk_of_texts(rows)) / 2**15 - expected).max() < norms.sum() * 2**-15


def test_a_record_moves_the_residuals_of_one_group_by_at_most_the_radius() -> None:
    for radius in (1, 700, 20_000, 65_534):
        statistic = about_a_centre(radius)
        for seed in range(20):
            change = statistic.of(chunk_of_texts(texts(1, seed))) / statistic.sensitivity.scales
            assert np.count_nonzero(np.any(change != 0, axis=1)) <= 1
            assert (change**2).sum() <= 1 + 1e-12
            assert np.abs(change).sum() <= statistic.sensitivity.l1


def test_residuals_of_groups_refuse_two_centres_and_a_radius_beyond_the_domain() -> None:
    with pytest.raises(ValueError, match="one centre"):
        GroupResidualSums(assigned(), assigned(), 100)
    with pytest.raises(ValueError, match="radius"):
        about_a_centre(65_535)
