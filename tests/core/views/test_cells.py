"""Every record lies in exactly one cell, whatever the shift, and cells of a level split those above."""

import numpy as np
import pytest

from core.data import UNITS, Chunk, Dense
from core.statistics.counts import CubeCounts, GridCounts, PrefixCounts
from core.views import Cubes, Encoded, GridCells, PathCodes
from tests.support.rows import DENSE, chunk_of

SPACE = Dense.ball(1.0, dimension=3, size=100)
ROWS = Encoded.of(SPACE)


def chunk() -> Chunk:
    rows = SPACE.encode(np.random.default_rng(6).normal(size=(200, 3)))
    edges = np.array([[UNITS, 0, 0], [-UNITS, 0, 0], [0, 0, 0]], dtype=np.int16)
    return Chunk(np.concatenate([rows, edges]), 0, "cubes")


@pytest.mark.parametrize("shift", [[0, 0, 0], [UNITS, UNITS, UNITS], [-UNITS, 5, UNITS]])
def test_the_root_holds_every_record_whatever_the_shift(shift: list[int]) -> None:
    counts = CubeCounts(Cubes(ROWS, np.array(shift))).of(chunk())
    assert counts.family == 8
    assert counts.counts.sum() == 203


def test_children_of_active_cubes_count_their_records_and_no_others() -> None:
    part, shift = chunk(), np.array([100, -7, 3])
    root = Cubes(ROWS, shift)
    first = CubeCounts(root).of(part)
    active = first.cells[first.counts > 20]
    below = CubeCounts(Cubes(ROWS, shift, root, active)).of(part)
    assert below.family == 8 * len(active)
    for place, cell in enumerate(active):
        inside = below.counts[below.cells >> 3 == place].sum()
        assert inside == first.counts[first.cells == cell][0]


def test_the_smallest_cubes_hold_one_point_of_the_integer_grid() -> None:
    line = Dense.ball(1.0, dimension=1, size=10)
    rows = np.array([[4], [5], [5], [-9]], dtype=np.int16)
    level = Cubes(Encoded.of(line), np.array([0]))
    part = Chunk(rows, 0, "line")
    for _ in range(Cubes.DEPTH - 1):
        level = Cubes(Encoded.of(line), np.array([0]), level, CubeCounts(level).of(part).cells)
    assert sorted(CubeCounts(level).of(part).counts.tolist()) == [1, 1, 2]


def test_a_grid_counts_every_record_once_and_keeps_empty_cells() -> None:
    view = GridCells(ROWS, np.full(3, -UNITS), np.full(3, 2 * UNITS + 1), 4)
    counts = GridCounts(view).of(chunk())
    assert counts.shape == (64,)
    assert counts.sum() == 203
    assert (counts == 0).any()
    corner = GridCounts(view).of(Chunk(np.array([[UNITS, -UNITS, -UNITS]], dtype=np.int16), 0, "corner"))
    assert corner.argmax() == 3


def test_paths_name_the_cells_of_a_halving_tree() -> None:
    codes = PathCodes.even(Encoded.of(DENSE), np.array([-8, -8, -8]), np.array([16, 16, 16]), (0, 1, 0))
    chunk = chunk_of(np.array([[-8, -8, 0], [7, 7, 0], [0, -1, 0], [999, -999, 0], [3, 0, 0]]))
    assert codes.codes(chunk).tolist() == [0b000, 0b111, 0b100, 0b101, 0b110]
    assert PrefixCounts(codes, 1, np.array([0b00, 0b10, 0b11])).of(chunk).tolist() == [1, 2, 2]


@pytest.mark.parametrize("halvings", [9, 33])
def test_a_path_goes_through_the_halves_that_hold_the_row(halvings: int) -> None:
    axes = tuple(place % 3 for place in range(halvings))
    low, widths = np.array([-20_000, -5, 0]), np.array([3 << 14, 1 << 14, 1 << 14])
    rows = np.random.default_rng(9).integers(-32_767, 32_768, size=(200, 4)).astype(np.int16)
    expected = []
    for row in rows.astype(np.int64):
        box = [[int(low[a]), int(low[a] + widths[a])] for a in range(3)]
        code = 0
        for axis in axes:
            middle = sum(box[axis]) // 2
            upper = min(max(int(row[axis]), int(low[axis])), int(low[axis] + widths[axis]) - 1) >= middle
            box[axis][0 if upper else 1] = middle
            code = 2 * code + upper
        expected.append(code)
    chunk = Chunk(rows, 0, ("paths", halvings))
    wide = Encoded.of(Dense.ball(1.0, dimension=4, size=1000))
    assert PathCodes.even(wide, low, widths, axes).codes(chunk).tolist() == expected


def test_cells_of_unequal_width_hold_the_rows_between_their_edges() -> None:
    codes = PathCodes(Encoded.of(DENSE), ((-100, -10, 0, 10, 100),), (0, 0))
    chunk = chunk_of(np.array([[-999, 0, 0], [-10, 0, 0], [-1, 0, 0], [9, 0, 0], [10, 0, 0], [999, 0, 0]]))
    assert codes.codes(chunk).tolist() == [0, 1, 1, 2, 3, 3]
    assert codes.middles(np.array([0, 1]), 1)[:, 0].tolist() == [-50, 50]
    low, high = codes.corners(np.arange(4), 2)
    assert low[:, 0].tolist() == [-np.inf, -10, 0, 10]
    assert high[:, 0].tolist() == [-10, 0, 10, np.inf]


@pytest.mark.parametrize("edges", [(0, 5), (0, 5, 4), (0, 1, 2, 3)])
def test_edges_that_do_not_bound_the_cells_of_an_axis_are_refused(edges: tuple[int, ...]) -> None:
    with pytest.raises(ValueError):
        PathCodes(Encoded.of(DENSE), (edges,), (0,))
