"""One release for every k on made-up tables: suggested k, intervals of sizes, and made-up records."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import SURVEY_WHOLE, survey
from benchmarks.open_k_scores import binned_distance
from benchmarks.tables import codes_of, in_units, labels_of, made_table
from core import Budget, Request, make_plan, run_plan
from core.data import Geometry, Number, Table, TableSource
from core.plan import KRange

__all__ = ["SURVEY", "TABLES", "table_scores"]

#: The dataset of that name with its column of six values declared whole, instead of a made-up table.
SURVEY = "survey"
#: Numbers, categories of six levels and whole counts of a table; each has a boolean, too.
TABLES = {"numbers": (5, 0, 0), "categories": (0, 6, 0), "both": (3, 3, 0), "all kinds": (2, 2, 2)}


def table_scores(kind: str, truth: int, seed: int, last: int, epsilon: str) -> dict[str, Any]:
    """Scores of one release on a table of `truth` clusters; those of sizes are at the true k."""
    if kind == SURVEY:
        table, values = _survey()
    else:
        numbers, categories, counts = TABLES[kind]
        table, values, _ = made_table(np.random.default_rng(seed), numbers, categories, truth, counts)
    source, geometry = TableSource(table, values), Geometry.of(table)
    plan = make_plan(table, Request(KRange(1, last), Budget.of(epsilon, "0.000001")))
    found = run_plan(plan, source).synopsis
    assert found is not None
    level, made_up = found.at(truth), found.sample(len(found.rows))
    labels = labels_of(geometry, codes_of(source), in_units(geometry, level.centres))
    sizes = np.bincount(labels, minlength=truth)
    apart = {name: _distance(column, made_up[name]) for name, column in values.items()}
    kinds = {"numbers": "n", "categories": "c", "counts": "w", "boolean": "f"}
    by_kind = {name: [apart[each] for each in apart if each[0] == first] for name, first in kinds.items()}
    return {
        "table": kind,
        "truth": truth,
        "seed": seed,
        "suggested": found.suggested,
        "sizes covered": float(np.mean((level.size_low <= sizes) & (sizes <= level.size_high))),
        **{name: float(np.mean(each)) if each else "" for name, each in by_kind.items()},
        "worst column": max(apart.values()),
    }


def _survey() -> tuple[Table, dict[str, npt.NDArray[Any]]]:
    """The rows of `survey`, as a curator who knows of the six values declares them."""
    rows = survey().rows
    values = {f"n{i}": rows[:, i] for i in range(rows.shape[1]) if i != SURVEY_WHOLE}
    values["w"] = np.rint(5 * rows[:, SURVEY_WHOLE])
    declared = (Number(name=name, low=0, high=5 if name == "w" else 1, whole=name == "w") for name in values)
    return Table(declared=tuple(declared), size=len(rows)), values


def _distance(values: npt.NDArray[Any], made_up: npt.NDArray[Any]) -> float:
    """Total variation: in bins of numbers, over levels of others."""
    if values.dtype.kind in "fiu":
        return binned_distance(values.astype(np.float64), made_up.astype(np.float64))
    levels, codes = np.unique(np.concatenate([values.astype(str), made_up.astype(str)]), return_inverse=True)
    split = codes[: len(values)], codes[len(values) :]
    here, there = (np.bincount(part, minlength=len(levels)) / len(part) for part in split)
    return float(np.abs(here - there).sum() / 2)
