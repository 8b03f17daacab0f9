"""What each special rule of `summit` buys: `python -m benchmarks ablation`, for docs/accuracy-log.md.

A rule is switched off by patching a constant or a function, and runs on the same rows with and without it are
compared. Rows are fresh for every seed, but for stored datasets. Every run is a line of a CSV file.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import typer

from benchmarks.datasets import SURVEY_WHOLE, gaussians, mostly_zero
from benchmarks.measuring import RESULTS, print_table, read_csv, write_csv
from benchmarks.modest import Cell, Floats, Made, groups, in_box, lognormal, overlap, quotient, stored
from benchmarks.modest_shapes import SHAPES, levels, students, uniform, zipf
from core.algorithms import registry
from core.algorithms.summit import (
    along_axes,
    corrections,
    exploring,
    few_records,
    open_k,
    overview,
    settled,
    signal,
    sketch,
)
from core.data import ArraySource
from core.plan import KRange, Request
from core.postprocessing import shrinkage

__all__ = ["main"]

NEVER = 1 << 40


def far_out(cell: Cell, draw: np.random.Generator) -> Made:
    """Tight groups, and 2% of the rows anywhere."""
    centres = draw.uniform(0.4, 0.6, size=(cell.k, cell.columns))
    rows = centres[draw.integers(cell.k, size=cell.size)]
    rows = rows + draw.normal(scale=0.01, size=rows.shape)
    rows[: cell.size // 50] = draw.uniform(size=(cell.size // 50, cell.columns))
    return in_box(cell, rows, None)


def wide(cell: Cell, draw: np.random.Generator) -> Made:
    """Groups that differ in 20 columns of many."""
    centres = np.full((cell.k, cell.columns), 0.5)
    centres[:, :20] = draw.uniform(0.2, 0.8, size=(cell.k, 20))
    rows = centres[draw.integers(cell.k, size=cell.size)]
    spread = np.where(np.arange(cell.columns) < cell.columns // 2, 0.05, 0.005)
    return in_box(cell, rows + draw.normal(size=rows.shape) * spread, None)


def sparse_centres(cell: Cell, draw: np.random.Generator) -> Made:
    """Groups whose centres differ from the middle in eight columns each."""
    centres = 0.5 + mostly_zero(draw, cell.k, cell.columns, 8, 0.3)
    return in_box(cell, gaussians(draw, cell.size, centres, 0.05), None)


def survey(cell: Cell, draw: np.random.Generator) -> Made:
    """Rows like those of `datasets.survey`: 12 groups that overlap, a skewed column and one of six values."""
    centres = draw.uniform(0.2, 0.8, size=(12, cell.columns))
    rows = gaussians(draw, cell.size, centres, 0.09, draw.dirichlet(np.full(12, 4.0)))
    rows[:, 1] = rows[:, 1] ** 3
    rows[:, SURVEY_WHOLE] = np.round(5 * rows[:, SURVEY_WHOLE]) / 5
    return in_box(cell, rows, None)


class OpenCell(Cell):
    """A cell whose request leaves k open from 2 on; the loss is that of the answer for the largest k."""

    def centres(self, made: Made) -> Floats:
        request = Request(KRange(2, self.k), self.request.budget)
        found = registry.run(registry.plan(made.domain, request), ArraySource(made.domain, made.rows))
        assert found.synopsis is not None
        return found.synopsis.at(self.k).centres


@dataclass(frozen=True)
class Rule:
    """A special rule: how to do without it, and cells in whose plans it matters."""

    patches: tuple[tuple[Any, str, Any], ...]
    cells: tuple[Cell, ...]

    @contextmanager
    def off(self) -> Iterator[None]:
        with ExitStack() as stack:
            for module, name, value in self.patches:
                entered: AbstractContextManager[object] = patch.object(module, name, value)
                stack.enter_context(entered)
            yield


def _every_round_alone(moves: Any) -> Callable[[Any], Floats]:
    return lambda outcome: moves.of(outcome.moves, outcome.errors)


_FEW = (
    Cell("groups", 1_000, 4, 10, "1", groups),
    Cell("groups", 3_000, 8, 30, "0.95", groups),
    Cell("overlap", 1_000, 8, 10, "1", overlap),
    Cell("students", 3_000, 8, 30, "0.95", students),
    Cell("digits", 2_000, 20, 10, "0.6", SHAPES["digits"]),
)
_TREE = (Cell("groups", 1_000, 2, 10, "1", groups), Cell("levels", 1_000, 2, 10, "1", levels))
_NARROW = (
    Cell("groups", 10_000, 4, 10, "0.3", groups),
    Cell("overlap", 10_000, 8, 10, "0.3", overlap),
    Cell("zipf", 20_000, 6, 15, "0.2", zipf),
    Cell("lognormal", 10_000, 3, 8, "0.3", lognormal),
    Cell("uniform", 10_000, 4, 10, "0.3", uniform),
    Cell("cancer", 10_000, 8, 8, "0.3", SHAPES["cancer"]),
)
_PLANE = (Cell("groups", 50_000, 2, 30, "1", groups), Cell("uniform", 20_000, 2, 20, "1", uniform))
_FAR = (
    Cell("far", 10_000, 2, 6, "2", far_out),
    Cell("tails", 50_000, 3, 8, "1", stored, delta="N^-1.5"),
    Cell("students", 10_000, 4, 8, "1", students),
)
_WIDE = (
    Cell("wide", 10_000, 200, 8, "1", wide),
    Cell("wide", 5_000, 300, 8, "1", wide),
    Cell("sparse-centres", 5_000, 300, 8, "1", sparse_centres),
    Cell("digits", 10_000, 60, 10, "1", SHAPES["digits"]),
)
_SKETCH = (
    Cell("sparse-centres", 3_000, 3_000, 4, "2", sparse_centres),
    Cell("wide", 3_000, 3_000, 4, "2", wide),
)
_ALONG = (
    Cell("wide", 3_000, 300, 30, "1", wide),
    Cell("wide", 2_000, 784, 20, "1", wide),
    Cell("sparse-centres", 3_000, 300, 30, "1", sparse_centres),
)
_BLIND = (
    Cell("wide-pure", 5_000, 300, 8, "1", wide, delta="0"),
    Cell("wide-pure", 10_000, 200, 8, "2", wide, delta="0"),
)
_OPEN = (
    OpenCell("uniform-open", 30_000, 4, 16, "2", uniform),
    OpenCell("overlap-open", 30_000, 8, 16, "2", overlap),
    OpenCell("levels-open", 30_000, 6, 16, "2", levels),
    OpenCell("survey-open", 10_000, 6, 32, "1", survey),
)

_MNIST = (
    Cell("mnist", 60_000, 784, 64, "1", stored, delta="N^-1.5"),
    Cell("mnist", 60_000, 784, 10, "0.1", stored, delta="N^-1.5"),
)
_MNIST_ALONG = Cell("mnist", 60_000, 784, 64, "0.1", stored, delta="N^-1.5")

#: Rules that only plans for many columns have.
_VARYING = (*_WIDE[:3], *_MNIST)
RULES: dict[str, Rule] = {
    "records far out are seen": Rule(((overview, "SPARE_ENERGY", 0.0),), _FAR),
    "own scales of clusters": Rule(((overview, "FAR_OUT", math.inf),), _FAR),
    "budget of the radius by signal": Rule(((overview, "MOST_RADIUS", overview.LEAST_RADIUS),), _FEW),
    "more seeds in few columns": Rule(((exploring, "SEED_COORDINATES", 0),), (*_NARROW, *_PLANE)),
    "less for moments of few columns": Rule(((exploring, "MOMENTS_COLUMNS", 1),), _NARROW),
    "a deeper tree for many records": Rule(((exploring, "MOST_DEPTH", 1),), (*_NARROW, *_PLANE)),
    "a third round": Rule(((signal, "PLENTY", math.inf),), _NARROW),
    "later rounds get more": Rule(((exploring, "REFINE_GROWTH", 1.0),), _NARROW),
    "clear moves are kept whole": Rule(
        ((shrinkage, "_SURPRISE_NOISES", math.inf),), (*_NARROW, *_WIDE, *_SKETCH, *_MNIST)
    ),
    "thresholds in large groups": Rule(
        ((shrinkage, "_ENOUGH_COORDINATES", NEVER),), (*_WIDE, *_SKETCH, *_MNIST)
    ),
    "columns that vary": Rule(((exploring, "VARYING_FROM", NEVER),), _VARYING),
    "rounds are combined": Rule(((exploring, "CombinedRounds", _every_round_alone),), _VARYING),
    "less exploring in many columns": Rule(((exploring, "WIDE_EXPLORE", exploring.EXPLORE),), _VARYING),
    "rounds along axes": Rule(((along_axes, "COLUMNS_TO_SQUARE", math.inf),), (*_ALONG, _MNIST_ALONG)),
    "more for moments along axes": Rule(
        ((along_axes.AlongAxes, "most_moments", exploring.MOST_MOMENTS),), (*_ALONG, _MNIST_ALONG)
    ),
    "more refining after random axes": Rule(((sketch, "MOST_BLIND_REFINE", 1.0),), _BLIND),
    "a plan for few records": Rule(((few_records, "MOST_PER_CENTRE", 0.0),), (*_FEW, *_TREE)),
    "a sketch for few records": Rule(((few_records, "SKETCH_COLUMNS", NEVER),), _FEW),
    "more centres in the first round": Rule(((few_records, "OVERSEED", 1.0),), (*_FEW, *_TREE)),
    "declared size is weighed in": Rule(((few_records, "SIZE_DOUBT", 1e6),), (*_FEW, *_TREE)),
    "clipping bias by round": Rule(((corrections, "CLIPPING_BIAS", (0.35,) * 3),), (*_FEW, *_TREE)),
    "less for moments of few records": Rule(((few_records, "MOMENTS_SIGNAL", 1e-9),), (*_FEW, *_TREE)),
    "long moves": Rule(((open_k, "LONG_EXPLORE", 1.0), (open_k, "LONG_REFINE", 1.0)), _OPEN),
    "seeds settle on made-up rows": Rule(((settled, "SETTLE_REACH", -1.0),), _OPEN),
}


def measured(cell: Cell, seed: int, rules: dict[str, Rule]) -> Iterator[dict[str, object]]:
    """The losses on the same rows with all rules, and without each."""
    made = cell.make(cell, np.random.default_rng(seed))
    whole = made.loss_of(cell.centres(made))
    for name, rule in rules.items():
        with rule.off():
            without = made.loss_of(cell.centres(made))
        yield {
            "rule": name,
            "cell": cell.label,
            "seed": seed,
            "with": f"{whole:.6f}",
            "without": f"{without:.6f}",
        }


def summarise(rows: list[dict[str, str]]) -> list[dict[str, object]]:
    """A line for each rule and cell: the loss with it, and how much more it is without."""
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        pairs[row["rule"], row["cell"]].append((float(row["without"]), float(row["with"])))
    lines: list[dict[str, object]] = []
    for (rule, cell), found in sorted(pairs.items()):
        line: dict[str, object] = {"rule": rule, "cell": cell, "pairs": len(found)}
        line["loss"] = f"{np.mean([whole for _, whole in found]):.3f}"
        if len(found) > 1:
            more, error = quotient(found)
            line["without it, %"] = f"{100 * (more - 1):+.1f} ± {100 * error:.1f}"
        lines.append(line)
    return lines


def main(
    runs: Annotated[int, typer.Option(help="Datasets of each cell.")] = 8,
    first: Annotated[int, typer.Option(help="Seed of the first dataset.")] = 0,
    only: Annotated[str, typer.Option(help="Only rules such as `*axes*`.")] = "*",
    where: Annotated[str, typer.Option(help="Only cells such as `mnist-*`.")] = "*",
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
    append: Annotated[bool, typer.Option(help="Keep the runs that the CSV file holds already.")] = False,
) -> None:
    """Print how much more is lost without each special rule of summit, on the same rows."""
    path = results / "ablation.csv"
    rows: list[dict[str, Any]] = list(read_csv(path)) if append and path.exists() else []
    chosen = {name: rule for name, rule in RULES.items() if fnmatch(name, only)}
    every = dict.fromkeys(cell for rule in chosen.values() for cell in rule.cells)
    cells = [cell for cell in every if fnmatch(cell.label, where)]
    for seed in range(first, first + runs):
        for cell in cells:
            asked = {name: rule for name, rule in chosen.items() if cell in rule.cells}
            rows += measured(cell, seed, asked)
            write_csv(path, rows)  # a campaign that is stopped keeps what it has
    print_table("what each rule buys", summarise(read_csv(path)))
