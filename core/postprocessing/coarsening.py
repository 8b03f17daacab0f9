"""Fewer clusters than were released: which of them to merge for each smaller k, from centres and sizes."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from core.arrays import Floats, Integers
from core.postprocessing.kmeans import merges, nearest_points

#: The most clusters that are merged: the owners of each smaller k fit a byte, and a few kilobytes.
MOST_MERGED = 64
_LLOYD_ROUNDS = 10


@dataclass(frozen=True, eq=False)
class Coarsening:
    """For every smaller k the clusters that the released ones are merged into; no draw is needed for it."""

    #: Row i is of i + 1 clusters: the one into which each released cluster goes.
    owners: npt.NDArray[np.uint8]
    #: How much each released cluster counts for the mean of those it is merged with.
    weights: Floats

    @classmethod
    def of(cls, centres: Floats, sizes: Floats, size_error: float) -> Self:
        """Ward's merges of released clusters, each settled by Lloyd's algorithm on their centres.

        A size that noise hides counts as large as the noise: it may be negative.
        """
        weights = np.maximum(sizes, max(size_error, 1.0)).astype(np.float64)
        points = centres - np.average(centres, axis=0, weights=weights)
        if points.shape[1] > len(points):  # distances are the same in the space that the centres span
            points = np.linalg.qr(points.T).R.T
        owner = np.arange(len(points))
        owners = np.zeros((len(points) - 1, len(points)), dtype=np.uint8)
        for one, other, _ in merges(points, weights):
            owner[owner == other] = one
            groups = np.unique(owner, return_inverse=True)[1]
            k = int(groups.max()) + 1
            owners[k - 1] = _settled(points, weights, groups, k)
        return cls(owners, weights)

    def members(self, k: int) -> npt.NDArray[np.bool_]:
        """[i, j] is true where cluster i of k is made of the released cluster j."""
        found: npt.NDArray[np.bool_] = np.equal.outer(np.arange(k), self.owners[k - 1])
        return found

    def shares(self, k: int) -> Floats:
        """[i, j] is the share of the released cluster j in the mean of cluster i of k."""
        taken = self.members(k) * self.weights
        shares: Floats = taken / taken.sum(axis=1, keepdims=True)
        return shares


def _settled(points: Floats, weights: Floats, groups: Integers, k: int) -> Integers:
    """Groups after Lloyd's algorithm; as they were, from the round on that would leave one of them empty."""
    for _ in range(_LLOYD_ROUNDS):
        members = np.equal.outer(np.arange(k), groups) * weights
        means = members @ points / members.sum(axis=1, keepdims=True)
        nearest = nearest_points(points, means)
        if np.array_equal(nearest, groups) or len(np.unique(nearest)) < k:
            break
        groups = nearest
    return groups
