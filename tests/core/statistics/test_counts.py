"""Counts mean what they say on rows that can be checked by hand."""

import numpy as np

from core.arrays import Integers
from core.data import Chunk
from core.statistics.counts import NormHistogram, PooledHistogram
from core.views import Assigned, Encoded
from tests.support.rows import DENSE, chunk_of


def test_a_norm_on_an_edge_belongs_to_the_bin_below() -> None:
    assigned = Assigned(Encoded.of(DENSE), np.zeros((1, 3), dtype=np.int64))
    chunk = chunk_of(np.array([[5, 0, 0], [6, 0, 0], [500, 0, 0], [0, 0, 0]]))
    assert NormHistogram(assigned, np.array([0, 5, 10])).of(chunk).tolist() == [[1, 1, 2]]


class _CountedForEveryCentre(PooledHistogram):
    """A plausible mistake: distances to all centres are pooled, and declared as if to one."""

    def of(self, chunk: Chunk) -> Integers:
        alone = (Assigned(self.view.base, centre[None, :]) for centre in self.view.centres)
        counted: Integers = np.sum([PooledHistogram(one, self.edges).of(chunk) for one in alone], axis=0)
        return counted


def test_a_record_counts_once_in_a_pooled_histogram_however_many_centres_are_near() -> None:
    chunk = chunk_of(np.array([[0, 0, 0]]))
    assigned, edges = Assigned(Encoded.of(DENSE), np.array([[3, 4, 0], [0, 0, 1]])), np.array([2, 10])
    built, twin = PooledHistogram(assigned, edges), _CountedForEveryCentre(assigned, edges)
    assert built.of(chunk).tolist() == [1, 0]
    assert built.of(chunk).sum() <= built.sensitivity.l1
    assert twin.of(chunk).sum() > twin.sensitivity.l1
