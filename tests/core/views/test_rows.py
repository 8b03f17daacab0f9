"""Views of rows keep the entries and the norms they declare."""

import numpy as np
import pytest
import scipy.sparse as sp

from core.views import ChosenColumns, Encoded, Projected, TopEntries
from tests.support.rows import DENSE, TEXT_ROWS, chunk_of, chunk_of_texts, cut, texts


def test_rows_are_cut_to_their_largest_entries_and_each_is_clipped() -> None:
    rows = texts(25, 2)
    rows.data[:6] = rows.data[0]  # ties
    found = TopEntries(TEXT_ROWS, 3, 4000).rows(chunk_of_texts(rows))
    assert isinstance(found, sp.csr_array)
    expected = np.stack([cut(row, 3, 4000) for row in rows.toarray().astype(np.int64)])
    assert np.array_equal(found.toarray(), expected)


def test_chosen_columns_keep_their_order_and_their_values() -> None:
    chunk = chunk_of(np.array([[1, 2, 3], [4, 5, 6]]))
    chosen = ChosenColumns(Encoded.of(DENSE), np.array([0, 2]))
    assert np.asarray(chosen.rows(chunk)).tolist() == [[1, 3], [4, 6]]


@pytest.mark.parametrize("chosen", [[], [3], [1, 1], [2, 0], [-1, 0]])
def test_columns_that_are_not_there_or_not_in_order_cannot_be_chosen(chosen: list[int]) -> None:
    with pytest.raises(ValueError, match="columns"):
        ChosenColumns(Encoded.of(DENSE), np.array(chosen, dtype=np.int64))


def test_a_projection_of_the_largest_size_clips_and_a_larger_one_is_refused() -> None:
    """A larger matrix could take squared norms beyond 2^63, where clipping would let rows through."""
    row = np.zeros((1, DENSE.dimension), dtype=np.int16)
    row[0, 0] = 32767
    centre = np.zeros(DENSE.dimension, dtype=np.int64)
    centre[0] = -(1 << 16)
    matrix = np.zeros((DENSE.dimension, 2), dtype=np.int64)
    matrix[0, 0] = 1 << 29
    view = Projected(Encoded.of(DENSE), matrix, 1000, centre)
    clipped = np.asarray(view.rows(chunk_of(row)), dtype=np.int64)
    assert (clipped**2).sum() <= 1000**2
    matrix[0, 1] = 1 << 15
    with pytest.raises(ValueError, match="too large"):
        Projected(Encoded.of(DENSE), matrix, 1000, centre)
