"""Paths of rows through a fixed sequence of halvings of a box."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from core.arrays import Integers, Labels
from core.data import Chunk
from core.kernels.rows import row_blocks
from core.kernels.threads import share_blocks
from core.views.base import DerivedView, RowView


@dataclass(frozen=True, eq=False)
class PathCodes(DerivedView):
    """The path of each row through a fixed sequence of halvings of a box, as one integer.

    `axes[i]` is the axis that the i-th halving cuts; a row outside the box follows the nearest side.
    The code's most significant bit is the first halving: a prefix names a cell of the tree. Axis j spans
    [low[j], low[j] + width[j]); widths are multiples of 2^(halvings of that axis), so cuts are integers.
    """

    base: RowView
    low: Integers
    widths: Integers
    axes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.axes) > 62:
            raise ValueError("a path has at most 62 halvings")
        for axis, width in enumerate(self.widths):
            if width < 1 or int(width) % (1 << self.axes.count(axis)):
                raise ValueError("the width of an axis must be a multiple of its number of cells")

    def codes(self, chunk: Chunk) -> Labels:
        return self.cached(chunk, lambda: self._paths(np.asarray(self.base.rows(chunk))))

    def _paths(self, rows: npt.NDArray[Any]) -> Labels:
        """Each axis adds its own bits, looked up by the coordinate, whose range is known."""
        reach = self.base.radius
        tables = _path_tables(tuple(self.low.tolist()), tuple(self.widths.tolist()), self.axes, reach)
        codes: Labels = np.zeros(len(rows), dtype=_path_type(self.axes))

        def work(parts: Iterator[slice]) -> None:
            for part in parts:
                for axis, table in tables:
                    places = rows[part, axis].astype(np.intp)
                    places += reach
                    np.bitwise_or(codes[part], table.take(places, mode="clip"), out=codes[part])

        share_blocks(work, row_blocks(len(rows), 32))
        return codes


def _path_type(axes: tuple[int, ...]) -> type[np.int32] | type[np.int64]:
    return np.int32 if len(axes) < 32 else np.int64


@lru_cache(maxsize=4)
def _path_tables(
    low: tuple[int, ...], widths: tuple[int, ...], axes: tuple[int, ...], reach: int
) -> tuple[tuple[int, Labels], ...]:
    """For each axis the bits of a path that a coordinate from -reach to reach decides."""
    coordinates = np.arange(-reach, reach + 1, dtype=np.int64)
    tables: list[tuple[int, Labels]] = []
    for axis in sorted(set(axes)):
        places = [len(axes) - 1 - place for place, cut in enumerate(axes) if cut == axis]
        cells = np.arange(1 << len(places), dtype=np.int64)
        bits = np.zeros(len(cells), dtype=np.int64)
        for rank, place in enumerate(places):
            bits |= ((cells >> (len(places) - 1 - rank)) & 1) << place
        inside = np.clip(coordinates - low[axis], 0, widths[axis] - 1)
        tables.append((axis, bits[inside // (widths[axis] >> len(places))].astype(_path_type(axes))))
    return tuple(tables)
