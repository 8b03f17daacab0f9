"""Arguments for kernels, drawn where their arithmetic could go wrong, to compare one body with another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.data import UNITS
from core.kernels.accumulate import clipped_sums, column_sums, second_moments, weighted_sums
from core.kernels.clipping import WEIGHT_ONE
from core.kernels.counting import bin_counts, value_counts
from core.kernels.geometry import nearest, project
from core.kernels.paths import path_codes
from core.views import Encoded
from core.views.cells import PathCodes, path_tables

#: Around the widths of vectors, of pairs of columns, and of what is read at once.
WIDTHS = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 20, 31, 32, 33, 36, 63, 64, 65, 100, 127)
#: Around the number of centres that are compared at once.
CLUSTERS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 64, 65, 130)
#: Around the number of rows that a body takes at once.
ROWS = (0, 1, 2, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65, 200, 257, 515)
#: Lengths of rows: of zeros and ones, of most, and at the end of their domain.
LENGTHS = (0.6, 300.0, 9000.0, 60_000.0)


@dataclass(frozen=True, eq=False)
class KernelCase:
    """A call of a kernel."""

    kernel: Callable[..., Any]
    arguments: tuple[Any, ...]

    @property
    def name(self) -> str:
        return self.kernel.__name__

    def compute(self) -> list[np.ndarray]:
        found = self.kernel(*self.arguments)
        return list(found) if isinstance(found, tuple) else [found]


def made_rows(draw: np.random.Generator, count: int, width: int) -> np.ndarray:
    """Integer rows in the ball: spread, close together, at both ends of an axis, or with the same length."""
    length = draw.choice(LENGTHS)
    if draw.random() < 0.2:
        rows = np.zeros((count, width))
        rows[np.arange(count), draw.integers(width, size=count)] = draw.choice([-UNITS, UNITS], size=count)
        return rows.astype(np.int16)
    rows = np.trunc(draw.normal(size=(count, width)) * length / width**0.5)
    norms = np.sqrt((rows**2).sum(axis=1))
    inside: np.ndarray = np.trunc(rows * np.minimum(1, UNITS / np.maximum(norms, 1))[:, None]).astype(
        np.int16
    )
    return inside


def _centres(draw: np.random.Generator, count: int, width: int) -> np.ndarray:
    """Centres in the ball, some of them equal: a tie for every row."""
    centres = made_rows(draw, count, width).astype(np.int64)
    if count > 2 and draw.random() < 0.5:
        centres[count // 2] = centres[0]
    return centres


def _centres_outside(draw: np.random.Generator, count: int, width: int) -> np.ndarray:
    """Centres in the ball and beyond it, the nearest of which may be any of them."""
    centres = _centres(draw, count, width)
    farther = draw.uniform(1, 59_000 / UNITS, size=(count, 1)) * (draw.random((count, 1)) < 0.5)
    farther[0] = 1
    moved: np.ndarray = np.clip(np.trunc(centres * farther), 1 - (1 << 15), (1 << 15) - 1).astype(np.int64)
    return moved


def _assigned(draw: np.random.Generator, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    centres = _centres_outside(draw, int(draw.choice(CLUSTERS)), rows.shape[1])
    return (*nearest(rows, centres, UNITS), centres)


def _nearest(draw: np.random.Generator, rows: np.ndarray) -> KernelCase:
    return KernelCase(
        nearest, (rows, _centres_outside(draw, int(draw.choice(CLUSTERS)), rows.shape[1]), UNITS)
    )


def _clipped_sums(draw: np.random.Generator, rows: np.ndarray) -> KernelCase:
    labels, squared, centres = _assigned(draw, rows)
    radii = draw.integers(1, draw.choice([2, 5000, 2 * UNITS]) + 1, size=len(centres))
    return KernelCase(clipped_sums, (rows, labels, squared, radii, centres))


def _weighted_sums(draw: np.random.Generator, rows: np.ndarray) -> KernelCase:
    groups = int(draw.choice(CLUSTERS))
    labels = draw.integers(groups, size=len(rows)).astype(np.int16)
    weights = draw.integers(WEIGHT_ONE + 1, size=len(rows))
    return KernelCase(weighted_sums, (rows, labels, weights, groups))


def _column_sums(draw: np.random.Generator, rows: np.ndarray) -> KernelCase:
    return KernelCase(column_sums, (rows,))


def _second_moments(draw: np.random.Generator, rows: np.ndarray) -> KernelCase:
    centre, radius = _centres(draw, 1, rows.shape[1])[0], int(draw.choice([1, 5, 9000, UNITS, 2 * UNITS]))
    return KernelCase(second_moments, (rows, centre, radius))


def _project(draw: np.random.Generator, rows: np.ndarray) -> KernelCase:
    width, columns = rows.shape[1], int(draw.choice((1, 2, 3, 4, 7, 8, 9, 16, 20, 24, 33)))
    matrix = draw.normal(size=(width, columns))
    matrix *= draw.choice([0.01, 1.0, 40.0]) * WEIGHT_ONE / np.linalg.norm(matrix)
    centre = None if draw.random() < 0.3 else _centres(draw, 1, width)[0]
    radius = int(draw.choice([1, 5, 1000, UNITS]))
    return KernelCase(project, (rows, np.rint(matrix).astype(np.int64), centre, radius, UNITS))


def _bin_counts(draw: np.random.Generator, rows: np.ndarray) -> KernelCase:
    labels, squared, centres = _assigned(draw, rows)
    bins = int(draw.choice((1, 2, 15, 16, 17, 31, 65, 130)))
    limits = np.unique(draw.integers(0, (2 * UNITS) ** 2 + 5, size=bins))
    if len(squared):
        limits[0] = squared[0]  # a value at the end of its bin
    return KernelCase(bin_counts, (labels, squared, np.sort(limits), len(centres)))


def _value_counts(draw: np.random.Generator, rows: np.ndarray) -> KernelCase:
    bits, shift = int(draw.integers(1, 13)), int(draw.integers(0, 6))
    values = draw.integers(1 << (bits + shift), size=len(rows)).astype(np.int32)
    listed = np.unique(draw.integers(1 << bits, size=draw.integers(1, 40)))
    return KernelCase(value_counts, (values, shift, listed, bits))


def _path_codes(draw: np.random.Generator, rows: np.ndarray) -> KernelCase:
    width = min(rows.shape[1], 3)
    axes = tuple(draw.integers(width, size=draw.integers(1, 12)).tolist())
    view = PathCodes.even(Encoded("", width), np.full(width, -(1 << 15)), np.full(width, 1 << 16), axes)
    narrow = np.ascontiguousarray(rows[:, :width])
    return KernelCase(path_codes, (narrow, path_tables(view.edges, axes, int(draw.choice([500, UNITS])))))


_KINDS = (
    _nearest,
    _clipped_sums,
    _weighted_sums,
    _column_sums,
    _second_moments,
    _project,
    _bin_counts,
    _value_counts,
    _path_codes,
)


def kernel_cases(seed: int, rounds: int) -> Iterator[KernelCase]:
    """Cases that compiled bodies accept: one for each kernel in each round, and each width in turn."""
    draw = np.random.default_rng(seed)
    for place in range(rounds):
        for kind in _KINDS:
            count, width = int(draw.choice(ROWS)), WIDTHS[place % len(WIDTHS)]
            yield kind(draw, made_rows(draw, count, width))
