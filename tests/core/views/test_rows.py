"""Views of rows keep the entries and the norms they declare."""

import numpy as np
import scipy.sparse as sp

from core.views import TopEntries
from tests.support.rows import TEXT_ROWS, chunk_of_texts, cut, texts


def test_rows_are_cut_to_their_largest_entries_and_each_is_clipped() -> None:
    rows = texts(25, 2)
    rows.data[:6] = rows.data[0]  # ties
    found = TopEntries(TEXT_ROWS, 3, 4000).rows(chunk_of_texts(rows))
    assert isinstance(found, sp.csr_array)
    expected = np.stack([cut(row, 3, 4000) for row in rows.toarray().astype(np.int64)])
    assert np.array_equal(found.toarray(), expected)
