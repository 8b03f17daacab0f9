"""Narrower bounds of stored rows: each record, on its own, is clipped to them and coded again."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from core.columns.line import Ranged, ranged
from core.columns.number import Number
from core.data.dense import Dense
from core.data.domain import Stored, clip_encoded
from core.data.source import Chunk, ChunkLoader, DataSource
from core.data.tables.table import Table
from core.errors import InvalidDomain
from core.kernels.cache import CACHE
from core.kernels.rows import UNITS

#: Lowest and highest value of a column, as a curator writes them.
Bounds = tuple[Any, Any]


def narrowed(stored: Stored, bounds: Mapping[str, Bounds]) -> Dense | Table:
    """The domain with other bounds of some columns; InvalidDomain unless they lie inside the present ones."""
    known = {column.name: column for column in bounded_columns(stored)}
    unknown = [name for name in bounds if name not in known]
    if unknown:
        raise InvalidDomain(
            f"{', '.join(unknown)}: only numbers, dates and times have bounds; these columns do: "
            f"{', '.join(known)}",
            parameter="columns",
        )
    made = {name: known[name].narrowed(*pair) for name, pair in bounds.items()}
    if isinstance(stored, Table):
        return replace(stored, declared=tuple(made.get(each.name, each) for each in stored.declared))
    assert isinstance(stored, Dense)
    columns: list[Any] = [made.get(name, known[name]) for name in stored.columns]
    return replace(stored, low=tuple(each.low for each in columns), high=tuple(each.high for each in columns))


def bounded_columns(stored: Stored) -> Sequence[Ranged]:
    """The stored columns that have a lower and an upper bound of their own."""
    if isinstance(stored, Table):
        return ranged(stored.stored)
    if not isinstance(stored, Dense) or stored.low is None or stored.high is None:
        raise InvalidDomain("only tables, and columns of numbers in a box, can be given narrower bounds")
    ends = zip(stored.columns, stored.low, stored.high, strict=True)
    return [Number(name=name, low=low, high=high) for name, low, high in ends]


class NarrowedSource:
    """Rows of a source as rows of a domain with narrower bounds: derived when they are read, never stored."""

    def __init__(self, source: DataSource, domain: Dense | Table) -> None:
        stored = source.domain
        if not isinstance(stored, Dense | Table) or stored.columns != domain.columns:
            raise InvalidDomain("the narrower bounds are of other columns than the rows")
        self.domain = domain
        self._loaders = [_NarrowedChunk(each, stored, domain) for each in source.loaders()]

    def loaders(self) -> Sequence[ChunkLoader]:
        return self._loaders


@dataclass(frozen=True)
class _NarrowedChunk:
    """Loads a chunk and codes it again, in whatever process it is called."""

    loader: ChunkLoader
    stored: Dense | Table
    domain: Dense | Table

    @property
    def key(self) -> Hashable:
        """The same bytes stored in other bounds are other records."""
        return (self.loader.key, self.stored.fingerprint, self.domain.fingerprint)

    def __call__(self) -> Chunk:
        chunk = self.loader()
        rows = chunk.rows
        assert isinstance(rows, np.ndarray)
        derived = CACHE.get(
            self.domain.fingerprint, self.key, lambda: recoded(rows, self.stored, self.domain)
        )
        return Chunk(derived, chunk.first, self.key)


def recoded(rows: npt.NDArray[Any], stored: Dense | Table, domain: Dense | Table) -> npt.NDArray[Any]:
    """Stored rows as rows of a domain with narrower bounds; the argument is in `narrowing.md`."""
    found = np.empty_like(rows)
    for place, table in enumerate(_tables(stored, domain)):
        values = rows[:, place]
        found[:, place] = values if table is None else table[values.view(np.uint16)]
    # Rounding may leave a row of numbers outside the ball that noise is calibrated to.
    return clip_encoded(found) if isinstance(domain, Dense) else found


@lru_cache(maxsize=1)  # of 128 KiB for each column; a worker runs one job at a time
def _tables(stored: Dense | Table, domain: Dense | Table) -> list[npt.NDArray[Any] | None]:
    """For each column the new value of each that 16 bits can hold; None where nothing changes."""
    if isinstance(stored, Dense):
        assert isinstance(domain, Dense)
        return [_of_numbers(stored, domain, place) for place in range(stored.dimension)]
    assert isinstance(domain, Table)
    pairs = zip(ranged(stored.stored), ranged(domain.stored), strict=True)
    recoded = {old.name: old.recoded(new) for old, new in pairs if old != new}
    return [recoded.get(name) for name in stored.columns]


def _of_numbers(stored: Dense, domain: Dense, place: int) -> npt.NDArray[np.int16] | None:
    (before, middle), (after, new_middle) = (_scale(each, place) for each in (stored, domain))
    if (before, middle) == (after, new_middle):
        return None
    assert domain.low is not None
    assert domain.high is not None
    units = np.arange(1 << 16, dtype=np.uint16).view(np.int16)
    values = np.clip(units * before + middle, domain.low[place], domain.high[place])
    # Half the width of a column is at most UNITS of its units, so these fit into 16 bits.
    found: npt.NDArray[np.int16] = np.trunc(np.clip((values - new_middle) / after, -UNITS, UNITS)).astype(
        np.int16
    )
    return found


def _scale(domain: Dense, place: int) -> tuple[float, float]:
    """Data units per encoded unit of a column, and its middle."""
    middle = domain.decode(np.zeros((1, domain.dimension)))[0]
    return float(domain.unit_lengths()[place]), float(middle[place])
