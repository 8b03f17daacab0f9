"""Paths of rows through halvings of a box, from tables of the bits that each coordinate decides."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from core.arrays import Integers, Labels, Rows
from core.kernels.backend import kernel
from core.kernels.rows import row_blocks
from core.kernels.threads import share_blocks


@dataclass(frozen=True, eq=False)
class PathTables:
    """For each axis that is cut a row of bits: those that a coordinate from -reach to reach decides."""

    axes: Integers
    bits: Labels

    @property
    def reach(self) -> int:
        return int(self.bits.shape[1]) // 2


@kernel
def path_codes(rows: Rows, tables: PathTables) -> Labels:
    """The path of each dense row; coordinates beyond the reach follow the nearest one inside."""
    codes: Labels = np.zeros(rows.shape[0], dtype=tables.bits.dtype)

    def work(parts: Iterator[slice]) -> None:
        for part in parts:
            for axis, bits in zip(tables.axes, tables.bits, strict=True):
                places = rows[part, axis].astype(np.intp)
                places += tables.reach
                np.bitwise_or(codes[part], bits.take(places, mode="clip"), out=codes[part])

    share_blocks(work, row_blocks(len(codes), 32))
    return codes
