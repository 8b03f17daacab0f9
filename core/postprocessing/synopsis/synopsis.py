"""The synopsis of a run that left k open: centres, sizes, losses and intervals for every k in its range."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.data import Domain, Geometry
from core.data.tables.profiles import records
from core.postprocessing.bounds import unit_length
from core.postprocessing.synopsis.cells import Cells
from core.postprocessing.synopsis.losses import Losses, LossEstimate, estimate_losses
from core.postprocessing.synopsis.made_up import CellModel
from core.postprocessing.synopsis.partitions import (
    MANY_COLUMNS,
    Cloud,
    CloudPartition,
    Tree,
    partitions,
    rounds_for,
)
from core.postprocessing.synopsis.suggestion import suggest
from core.postprocessing.synopsis.uncertainty import bars

_MOST_ROWS = 10_000  # Made-up rows that are kept, at most.
_MOST_VALUES = 1 << 23  # Values in made-up rows that are kept, at most.


@dataclass(frozen=True, eq=False)
class Level:
    """The answer for one number of clusters, in the data's units; lengths are in the geometry of the run.

    Intervals are nominally of 95%, and speak of the records nearest to each centre: how many there are, and
    where their mean lies. Where k-means without privacy would put a centre is not stated.
    """

    centres: Floats
    centre_low: Floats
    centre_high: Floats
    sizes: Floats
    size_low: Floats
    size_high: Floats
    #: Root mean squared distance of a cluster's made-up rows to its centre, and distance to the next centre.
    spreads: Floats
    apart: Floats
    #: False where noise alone could have made the cluster.
    real: npt.NDArray[np.bool_]
    #: Mean squared distance of records to their nearest centre; of those within `Synopsis.reach`.
    loss: LossEstimate
    #: Share of the variance of all records that the clusters explain.
    explained: float

    @property
    def k(self) -> int:
        return len(self.centres)


@dataclass(frozen=True, eq=False)
class Synopsis:
    """Everything that follows from one release with an open k."""

    levels: tuple[Level, ...]
    suggested: int
    #: Why this number of clusters is suggested.
    reason: str
    #: The fine clusters merged pair by pair; losses in the geometry of the run.
    tree: Tree
    #: Losses are of records within this distance of a fine cluster: those beyond are too few to be seen.
    reach: float
    #: About how many records lie beyond `reach`, at most.
    beyond: float
    #: Whether records beyond `reach` may matter: losses and their intervals are then of the others.
    heavy_tailed: bool
    #: Points in the data's units from which `reach` is measured, one for each fine cluster.
    anchors: Floats
    #: Made-up rows: encoded, or of a table a code for each chosen column.
    rows: npt.NDArray[np.int16 | np.uint16]
    domain: Domain

    @property
    def warning(self) -> str | None:
        """What the losses leave out, in words; None where they are of all records."""
        if not self.heavy_tailed:
            return None
        return (
            f"Some records lie far from all others. Losses, and shares of the variance, are of the records "
            f"within {self.reach:.3g} of a fine cluster; up to about {float(f'{self.beyond:.2g}'):,.0f} may "
            "lie beyond, and may matter more than all others"
        )

    def at(self, k: int) -> Level:
        """The answer for k clusters."""
        for level in self.levels:
            if level.k == k:
                return level
        first, last = self.levels[0].k, self.levels[-1].k
        raise ValueError(f"this release answers for k from {first} to {last}")

    def sample(self, count: int) -> npt.NDArray[Any]:
        """The first made-up rows, in the data's units: the same ones each time; see `decoded_rows`."""
        if not 0 <= count <= len(self.rows):
            raise ValueError(f"this release holds {len(self.rows)} made-up rows")
        return decoded_rows(self.domain, self.rows[:count])


def decoded_rows(domain: Domain, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Made-up rows in the data's units; of a table an array with a field for each chosen column."""
    return records(domain, rows) if isinstance(domain, Geometry) else domain.decode(rows)


def made_up_rows(width: int) -> int:
    """Number of made-up rows of this many columns."""
    return min(_MOST_ROWS, _MOST_VALUES // width)


def synopsis_operations(domain: Domain, fine: int, ks: Sequence[int], noise: float) -> float:
    """Operations of `summarise`, for plans: rows are drawn and told their cells, then settle for each k.

    `noise` is that in the size of a fine cluster, over its mean size. The more of it, the more rows lie
    outside the cell that they were drawn for, and are drawn again.
    """
    width, rows = float(domain.dimension), float(made_up_rows(domain.dimension))
    drawn = width * ((2200.0 if isinstance(domain, Geometry) else 700.0) + 0.9 * width)
    drawn *= 1 + min(1.0, 1.5 * noise)
    visits = float(sum(k * rounds_for(k, fine) for k in ks))
    settled = 700.0 * len(ks) + visits * (2.8 + 0.15 * min(width, MANY_COLUMNS))
    return 6e7 + rows * (drawn + settled)


def summarise(cells: Cells, ks: Iterable[int], draw: np.random.Generator) -> Synopsis:
    """Derive everything from released values and from `draw`, whose seed is recorded with the release."""
    ks = list(ks)
    cloud = Cloud.of(CellModel.fit(cells, draw), made_up_rows(cells.anchors.shape[1]), draw)
    found = partitions(cloud, sorted({1, *ks}), draw)
    losses = estimate_losses(cloud, found)
    suggestion = suggest(cloud, {k: losses.of[k] for k in ks}, draw)
    unit = unit_length(cells.domain)
    tree = Tree.of(cloud)
    return Synopsis(
        tuple(_levels(cloud, [found[k] for k in ks], losses)),
        suggestion.k,
        suggestion.reason,
        Tree(tree.joined, tree.added * unit**2),
        losses.fine.reach * unit,
        losses.fine.beyond,
        losses.fine.heavy_tailed,
        cells.domain.decode(cells.anchors),
        cloud.encoded,
        cells.domain,
    )


def _levels(cloud: Cloud, found: Sequence[CloudPartition], losses: Losses) -> Iterator[Level]:
    """A level for each partition; centres of all of them are decoded at once."""
    domain, every = cloud.model.cells.domain, [bars(cloud, each, losses.fine) for each in found]
    decode_end = domain.decode_alone if isinstance(domain, Geometry) else domain.decode
    unit, ends = unit_length(domain), np.cumsum([len(each.centres) for each in found])[:-1]
    centres = np.split(domain.decode(np.concatenate([each.centres for each in found])), ends)
    low = np.split(decode_end(np.concatenate([each.centre_low for each in every])), ends)
    high = np.split(decode_end(np.concatenate([each.centre_high for each in every])), ends)
    whole = max(losses.of[1].value, 1e-9)
    for place, (partition, bar) in enumerate(zip(found, every, strict=True)):
        loss = losses.of[len(partition.centres)]
        yield Level(
            centres[place],
            low[place],
            high[place],
            bar.sizes,
            bar.size_low,
            bar.size_high,
            _spreads(partition) * unit,
            _apart(partition.centres) * unit,
            bar.real,
            LossEstimate(loss.value * unit**2, loss.low * unit**2, loss.high * unit**2),
            1 - loss.value / whole,
        )


def _spreads(partition: CloudPartition) -> Floats:
    """Root mean squared distance of the made-up rows of each cluster to its centre."""
    k = len(partition.centres)
    squared = np.bincount(partition.labels, partition.squared, minlength=k)
    return np.sqrt(squared / np.maximum(np.bincount(partition.labels, minlength=k), 1))


def _apart(centres: Floats) -> Floats:
    """Distance of each centre to the next one; zero where it is the only one."""
    if len(centres) == 1:
        return np.zeros(1)
    apart = np.linalg.norm(centres[:, None, :] - centres[None, :, :], axis=2)
    np.fill_diagonal(apart, np.inf)
    nearest: Floats = apart.min(axis=1)
    return nearest
