"""Whole runs over thousands of rows: between them they use each regime of `summit`, and each kind of view.

The tiny transcripts have 24 rows: one block for any kernel, and less than some compiled bodies take at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from core.data import Partition
from core.kernels.cache import clear_cache
from core.plan import KRange, Request
from core.privacy import Budget
from core.questions.base import Question
from tests.contracts.library import (
    ArraySource,
    Dense,
    Sparse,
    SparseSource,
    Table,
    TableSource,
    column_from_json,
    drawing_bytes_from,
    make_plan,
    run,
)
from tests.support.bits import RepeatableBytes

APPROXIMATE, PURE = Budget.of(1, "0.000001"), Budget.of(2)


@dataclass(frozen=True)
class LargeRun:
    """A request, and how many rows of how many columns it is carried out on."""

    name: str
    rows: int
    columns: int
    k: int | KRange
    objective: str = "means"
    algorithm: str = "auto"
    kind: str = "dense"
    budget: Budget = APPROXIMATE
    #: The order of magnitude that the domain declares, if it is not the number of rows.
    declared: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def domain(self) -> Any:
        size = self.declared or self.rows
        if self.kind == "sparse":
            return Sparse(dimension=self.columns, radius=4.0, size=size)
        if self.kind == "table":
            age = {"kind": "number", "name": "age", "low": 0, "high": 100, "whole": True}
            ward = {"kind": "category", "name": "ward", "levels": ["a", "b"], "missing": "level"}
            return Table(declared=tuple(map(column_from_json, (age, ward))), size=size)
        return Dense.box(-15, 15, dimension=self.columns, size=size)

    def plan(self) -> Any:
        if self.kind == "question":
            centres = np.linspace(-9, 9, 4 * self.columns).reshape(4, -1)
            partition = Partition.of(self.domain, centres)
            return make_plan(self.domain, Question(self.algorithm, self.budget, None, (partition,), {}))
        request = Request(self.k, self.budget, self.objective, self.algorithm, dict(self.options))
        return make_plan(self.domain, request)

    def source(self, chunk_rows: int | None) -> Any:
        """Rows in some groups, the same in every call."""
        draw = np.random.default_rng(int(hashlib.sha256(self.name.encode()).hexdigest()[:8], 16))
        if self.kind == "table":
            wards = np.array(["a", "b", ""])[draw.integers(3, size=self.rows)]
            return TableSource(self.domain, {"age": draw.integers(101, size=self.rows), "ward": wards})
        centres = draw.uniform(-10, 10, (7, self.columns))
        if self.kind == "sparse":
            made = sp.random_array((self.rows, self.columns), density=0.05, rng=draw, format="csr")
            return SparseSource(self.domain, made, chunk_rows=chunk_rows)
        rows = centres[draw.integers(7, size=self.rows)] + draw.normal(size=(self.rows, self.columns))
        return ArraySource(self.domain, rows, chunk_rows=chunk_rows)


LARGE_RUNS = (
    LargeRun("exploring", 20_000, 9, 8),
    LargeRun("many clusters", 9000, 20, 70, declared=2_000_000),
    LargeRun("few records", 1000, 4, 10),
    LargeRun("many columns", 6000, 200, 3),
    LargeRun("along axes", 1000, 200, 30),
    LargeRun("medians", 20_000, 7, 6, "medians"),
    LargeRun("open k", 20_000, 5, KRange(1, 8)),
    LargeRun("pure", 20_000, 3, 5, budget=PURE),
    LargeRun("one column", 20_000, 1, 4),
    LargeRun("sparse", 4000, 300, 4, kind="sparse"),
    LargeRun("table", 9000, 2, 4, kind="table"),
    LargeRun("Lloyd", 20_000, 4, 5, algorithm="sulq"),
    LargeRun("partition trees", 4000, 3, 4, algorithm="balcan"),
    LargeRun("hashing", 1500, 3, 3, algorithm="jones-euclidean", options={"candidates": "hashing"}),
    LargeRun("explained", 9000, 4, 4, algorithm="explain", kind="question"),
)


def released_by(large: LargeRun, chunk_rows: int | None) -> list[tuple[str, Any]]:
    """What a run releases under fixed bits, step by step, with nothing left from earlier runs."""
    clear_cache()
    with drawing_bytes_from(RepeatableBytes(11)):
        released = run(large.plan(), large.source(chunk_rows))[1]
    clear_cache()
    return released
