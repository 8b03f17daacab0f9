"""Bins of single columns, with edges that follow from public bounds."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from core.arrays import Labels
from core.data import MISSING_CODE, Chunk
from core.kernels.counting import Lookup
from core.views.base import View


@dataclass(frozen=True)
class Binning:
    """Bins of the column at `place`: bin b holds stored values from edges[b] up to edges[b + 1].

    Values outside lie in the nearest bin. With `missing`, one more bin, the last, holds missing values.
    """

    place: int
    edges: tuple[int, ...]
    missing: bool = False

    def __post_init__(self) -> None:
        if len(self.edges) < 2 or not (np.diff(self.edges) > 0).all():
            raise ValueError("edges are increasing integers, and at least two")

    @property
    def bins(self) -> int:
        return len(self.edges) - 1 + self.missing


@dataclass(frozen=True, eq=False)
class Bins(View):
    """The bin of each record in each of some columns; a column may be there with several binnings."""

    domain: str
    binnings: tuple[Binning, ...]
    #: Whether stored values are signed (dense rows) or codes (tables).
    signed: bool

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of bins of each binning."""
        return tuple(binning.bins for binning in self.binnings)

    @property
    def lookups(self) -> list[Lookup]:
        """For each binning its column's place and the bin of each value that 16 bits can hold."""
        return [(binning.place, _table(binning, self.signed)) for binning in self.binnings]

    def stored(self, chunk: Chunk) -> Labels:
        """The stored values."""
        assert isinstance(chunk.rows, np.ndarray)
        return chunk.rows


@lru_cache(maxsize=256)  # of 128 KiB each
def _table(binning: Binning, signed: bool) -> Labels:
    values = np.arange(1 << 16, dtype=np.uint16)
    numbers = values.view(np.int16) if signed else values
    inner = np.array(binning.edges[1:-1], dtype=np.int64)
    found: Labels = np.searchsorted(inner, numbers.astype(np.int64), side="right").astype(np.uint16)
    if binning.missing:
        found[MISSING_CODE] = binning.bins - 1
    return found
