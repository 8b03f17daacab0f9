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
from core.postprocessing.kmeans import agglomerated, lloyd, merges, nearest_points, weighted_kmeans
from core.postprocessing.synopsis.corrections import corrected
from core.postprocessing.synopsis.made_up import CellModel

#: More columns than this are rotated to the few directions in which fine clusters differ.
_MANY_COLUMNS = 64
LLOYD_ROUNDS = 20
#: Rounds where more than half as many clusters are asked for as were measured: most of them are fine clusters
#: as they were released, and further rounds would follow the model rather than the records.
_FEW_ROUNDS = 3


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
        if width > _MANY_COLUMNS:
            weighted = (centres - middle) * np.sqrt(model.sizes + 1e-9)[:, None]
            _, lengths, directions = np.linalg.svd(weighted, full_matrices=False)
            basis = directions[lengths > 1e-9 * lengths[0]][:_MANY_COLUMNS].T
        return cls(model, rows[order], encoded, owners[order], middle, basis)

    @cached_property
    def flat(self) -> Floats:
        """The rows along the basis."""
        along: Floats = (self.rows - self.middle) @ self.basis
        return along

    @cached_property
    def beside(self) -> float:
        """Mean squared distance of rows to the space of the basis: the same for all centres in it."""
        whole = ((self.rows - self.middle) ** 2).sum(axis=1) - (self.flat**2).sum(axis=1)
        return max(float(whole.mean()), 0.0)

    @cached_property
    def points(self) -> Floats:
        """Fine centres along the basis."""
        along: Floats = (self.model.cells.centres - self.middle) @ self.basis
        return along

    def lifted(self, centres: Floats) -> Floats:
        """Centres along the basis in all columns, inside the bounds."""
        return clip_into(self.model.cells.domain, self.middle + centres @ self.basis.T)


@dataclass(frozen=True, eq=False)
class Partition:
    """One number of clusters: centres, and how made-up rows and fine clusters divide between them."""

    centres: Floats
    #: For each made-up row its nearest centre.
    labels: npt.NDArray[np.int64]
    #: [i, j] is the share of fine cluster j that goes to cluster i.
    parts: Floats

    @classmethod
    def of(cls, cloud: Cloud, centres: Floats) -> Self:
        labels = nearest_points(cloud.rows, centres)
        parts = np.zeros((len(centres), len(cloud.model.sizes)))
        np.add.at(parts, (labels, cloud.owners), 1.0)
        drawn = parts.sum(axis=0)
        whole = nearest_points(cloud.model.cells.centres, centres)
        parts[:, drawn == 0] = np.equal.outer(np.arange(len(centres)), whole[drawn == 0])
        return cls(centres, labels, parts / np.maximum(drawn, 1.0))


def partitions(cloud: Cloud, ks: Iterable[int], draw: np.random.Generator) -> dict[int, Partition]:
    """For each k the best partition found; as many as there are fine clusters are those themselves."""
    found = {}
    fine = len(cloud.points)
    alive = cloud.model.sizes > 0
    points, weights = cloud.points[alive], cloud.model.sizes[alive]
    for k in ks:
        if k == fine:
            found[k] = Partition.of(cloud, cloud.model.cells.centres)
            continue
        if k < len(points):
            starts = [agglomerated(points, weights, k), weighted_kmeans(points, weights, k, draw)]
        elif k < fine:  # those without records, which only noise has made, are left out first
            starts = [cloud.points[np.argsort(-cloud.model.sizes, kind="stable")[:k]]]
        else:  # more than were measured: only the shape of the cells tells them apart
            starts = [weighted_kmeans(cloud.flat, np.ones(len(cloud.flat)), k, draw, restarts=1)]
        rounds = _FEW_ROUNDS if fine < 2 * k < 2 * fine else LLOYD_ROUNDS
        fits = [lloyd(cloud.flat, start, rounds) for start in starts if len(start) == k]
        best = min(fits, key=lambda fit: fit[1])[0] if fits else _padded(starts[0], k)
        found[k] = Partition.of(cloud, cloud.lifted(best))
    return found


def _padded(centres: Floats, k: int) -> Floats:
    """k centres, of rows that have fewer distinct values: the first ones again."""
    return centres[np.arange(k) % len(centres)]


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
