"""Every number of clusters from one release: fine clusters merged, and borders settled on made-up rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.data import Geometry
from core.postprocessing.bounds import clip_into
from core.postprocessing.kmeans import kmeans_for_each, merges, nearest_points
from core.postprocessing.synopsis.corrections import corrected
from core.postprocessing.synopsis.lloyd import LloydRows
from core.postprocessing.synopsis.made_up import CellModel

MANY_COLUMNS = 64  # More columns than this are rotated to the few directions in which fine clusters differ.
LLOYD_ROUNDS = 20
#: Rounds where more than half as many clusters are asked for as were measured: most of them are fine clusters
#: as they were released, and further rounds would follow the model rather than the records.
_FEW_ROUNDS = 3
_MODEL_ROUNDS = 8  # Rounds for more clusters than were measured, of which only the model knows.


@dataclass(frozen=True, eq=False)
class Cloud:
    """Made-up rows, in all columns and in the directions in which fine clusters differ."""

    model: CellModel
    rows: Floats
    #: The rows as integers: encoded, or of a table a code for each chosen column.
    encoded: npt.NDArray[np.int16 | np.uint16]
    owners: npt.NDArray[np.int64]
    middle: Floats
    #: Orthonormal directions (columns): all of them, or those that fine centres span.
    basis: Floats

    @classmethod
    def of(cls, model: CellModel, count: int, draw: np.random.Generator) -> Self:
        rows, owners = model.draw(count, draw)
        centres, width = model.cells.centres, rows.shape[1]
        # What chance left between the mean of a cell's rows and the released one would blur every merge.
        rows = corrected(model, rows, owners)
        domain = model.cells.domain
        order = draw.permutation(count)  # so that the first of them are a sample too
        if isinstance(domain, Geometry):  # a record has one level of a category, not shares of several
            encoded = domain.codes(rows[order], draw)
            rows[order] = domain.coordinates(encoded)
        else:
            encoded = np.rint(rows[order]).astype(np.int16)
        middle = np.average(centres, axis=0, weights=model.sizes + 1e-9)
        basis = np.eye(width)
        if width > MANY_COLUMNS:
            weighted = (centres - middle) * np.sqrt(model.sizes + 1e-9)[:, None]
            _, lengths, directions = np.linalg.svd(weighted, full_matrices=False)
            basis = directions[lengths > 1e-9 * lengths[0]][:MANY_COLUMNS].T
        return cls(model, rows[order], encoded, owners[order], middle, basis)

    @cached_property
    def flat(self) -> Floats:
        """The rows along the basis."""
        along: Floats = (self.rows - self.middle) @ self.basis
        return along

    @cached_property
    def unspanned(self) -> Floats:
        """Squared distance of each row to the space of the basis: the same for all centres in it."""
        about = self.rows - self.middle
        whole = np.einsum("ij,ij->i", about, about) - np.einsum("ij,ij->i", self.flat, self.flat)
        unspanned: Floats = np.maximum(whole, 0.0)
        return unspanned

    @cached_property
    def lloyd(self) -> LloydRows:
        """The rows along the basis, for Lloyd's algorithm."""
        return LloydRows(self.flat)

    @cached_property
    def points(self) -> Floats:
        """Fine centres along the basis."""
        along: Floats = (self.model.cells.centres - self.middle) @ self.basis
        return along

    def lifted(self, centres: Floats) -> Floats:
        """Centres along the basis in all columns, inside the bounds."""
        return clip_into(self.model.cells.domain, self.middle + centres @ self.basis.T)


@dataclass(frozen=True, eq=False)
class CloudPartition:
    """One number of clusters: centres, and how made-up rows and fine clusters divide between them."""

    centres: Floats
    #: For each made-up row its nearest centre, and the squared distance to it.
    labels: npt.NDArray[np.int64]
    squared: Floats
    #: [i, j] is the share of fine cluster j that goes to cluster i.
    parts: Floats

    @classmethod
    def of(cls, cloud: Cloud, centres: Floats) -> Self:
        labels, squared = cloud.lloyd.nearest((centres - cloud.middle) @ cloud.basis)
        shape = len(centres), len(cloud.model.sizes)
        parts = np.bincount(labels * shape[1] + cloud.owners, minlength=shape[0] * shape[1]).reshape(shape)
        drawn = parts.sum(axis=0)
        whole = nearest_points(cloud.model.cells.centres, centres)
        parts[:, drawn == 0] = np.equal.outer(np.arange(len(centres)), whole[drawn == 0])
        return cls(centres, labels, squared + cloud.unspanned, parts / np.maximum(drawn, 1.0))


def rounds_for(k: int, fine: int) -> int:
    """Rounds of Lloyd's algorithm at most, for k clusters of this many fine ones."""
    if k == fine:
        return 0
    if k > fine:
        return _MODEL_ROUNDS
    return _FEW_ROUNDS if 2 * k > fine else LLOYD_ROUNDS


def partitions(cloud: Cloud, ks: Iterable[int], draw: np.random.Generator) -> dict[int, CloudPartition]:
    """For each k the best partition found; as many as there are fine clusters are those themselves."""
    ks, fine = list(ks), len(cloud.points)
    alive = cloud.model.sizes > 0
    points, weights = cloud.points[alive], cloud.model.sizes[alive]
    merged = kmeans_for_each(points, weights, (k for k in ks if k < len(points)), draw)
    by_size = cloud.points[np.argsort(-cloud.model.sizes, kind="stable")]
    more = cloud.lloyd.spread(by_size, max(ks), draw)
    found = {}
    for k in ks:
        if k == fine:
            found[k] = CloudPartition.of(cloud, cloud.model.cells.centres)
            continue
        # Fine clusters without records, which only noise has made, are left out first. If there are more than
        # were measured, only the shape of the cells tells them apart.
        start = merged.get(k, more[:k])
        found[k] = CloudPartition.of(cloud, cloud.lifted(cloud.lloyd.settled(start, rounds_for(k, fine))))
    return found


@dataclass(frozen=True, eq=False)
class Tree:
    """Fine clusters merged pair by pair until one is left, in the manner of `scipy.cluster.hierarchy`.

    Merge i joins two nodes and makes node m + i of them; nodes below m are the fine clusters.
    """

    joined: npt.NDArray[np.int64]
    #: The loss per record that each merge adds, in encoded units.
    added: Floats

    @classmethod
    def of(cls, cloud: Cloud) -> Self:
        weights = np.maximum(cloud.model.sizes, 1e-9)
        node = list(range(len(weights)))
        joined, added = [], []
        for one, other, loss in merges(cloud.points, weights):
            joined.append((node[one], node[other]))
            added.append(loss / weights.sum())
            node[one] = len(weights) + len(joined) - 1
        return cls(np.array(joined, dtype=np.int64).reshape(-1, 2), np.array(added))
