"""The pinned cases: every algorithm and question with every domain, guarantee and option it offers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from tests.contracts.library import (
    ArraySource,
    Budget,
    Dense,
    Ids,
    Partition,
    Question,
    Request,
    Sparse,
    SparseSource,
    Table,
    TableSource,
    column_from_json,
    make_plan,
    questions,
    registry,
)

__all__ = [
    "ASKED",
    "BUDGETS",
    "DOMAINS",
    "OPTIONS",
    "Case",
    "QuestionCase",
    "cases",
    "question_cases",
    "rows_for",
]

BUDGETS = {"pure": Budget.of(2), "approximate": Budget.of(2, "0.00001")}

_COLUMNS = ["a", "b", "c"]
_BOX: dict[str, Any] = {"low": [0, -5, 10], "high": [1, 5, 30], "columns": _COLUMNS}
_BALL: dict[str, Any] = {"radius": 4.0, "centre": [1.0, 0.0, -2.0], "columns": _COLUMNS}

DOMAINS = {
    "box": Dense.box(**_BOX, size=1000),
    "box, 4 rows per person": Dense.box(**_BOX, size=1000, rows_per_person=4),
    "box, unscaled": Dense.box(**_BOX, size=1000, scaling="none"),
    "ball": Dense.ball(**_BALL, size=1000),
    "ball, 4 rows per person": Dense.ball(**_BALL, size=1000, rows_per_person=4),
    "line": Dense.box(0, 1, ["a"], size=1000),
    "globe": Dense.box([-60, -180], [75, 180], ["latitude", "longitude"], size=1000),
    "wide box": Dense.box(-1, 1, dimension=200, size=100_000),
    "sparse": Sparse(dimension=40, radius=3.0, size=1000),
    "sparse, 4 rows per person": Sparse(dimension=40, radius=3.0, size=1000, rows_per_person=4),
    "wide sparse": Sparse(dimension=3000, radius=1.0, size=100_000),
    "ids": Ids(count=12, size=1000),
    "ids, 4 rows per person": Ids(count=12, size=1000, rows_per_person=4),
}

if Table is not None:
    _DECLARED = (
        {"kind": "number", "name": "age", "low": 0, "high": 100, "whole": True, "weight": 2.0},
        {"kind": "category", "name": "ward", "levels": ["a", "b"], "missing": "level"},
        {"kind": "boolean", "name": "smoker", "missing": "fill", "fill": False},
        {"kind": "number", "name": "cost", "low": 0, "high": 9999, "log": True, "offset": 1, "role": "keep"},
    )
    _TABLE: dict[str, Any] = {"declared": tuple(map(column_from_json, _DECLARED)), "size": 1000}
    DOMAINS["table"] = Table(**_TABLE)
    DOMAINS["table, 4 rows per person"] = Table(**_TABLE, rows_per_person=4)

_POINTS = [[0.0, -5.0, 10.0], [0.25, 0.0, 12.0], [0.5, 2.5, 20.0], [0.5, -2.5, 28.0], [1.0, 5.0, 30.0]]
_CITIES = [[52.0, 13.0], [-33.0, 151.0], [40.5, -74.0], [0.0, 0.0], [35.0, 139.0], [-54.0, -68.0]]

#: A set of public sites for each domain that sites are possible in.
SITES: dict[str, dict[str, Any]] = {
    "box": {"kind": "coordinates", "metric": "euclidean", "points": _POINTS},
    "ball": {"kind": "coordinates", "points": [[1.0 + i / 2, (i % 3) - 1.0, -2.0] for i in range(5)]},
    "line": {"kind": "coordinates", "points": [[i / 8] for i in range(9)]},
    "globe": {"kind": "coordinates", "metric": "great-circle", "points": _CITIES},
    "ids": {"kind": "distances", "matrix": [[float(abs(i - j)) for j in range(12)] for i in range(12)]},
}

_TREES: list[dict[str, Any]] = [
    {"constants": "printed", "trees": 2, "candidates": 40, "swaps": 3},
    {"dimension": 2},
    {"trees": 3, "depth": 4, "threshold": 5},
    {"candidates": 50, "swaps": 0},
    {"swaps": 7},
]
_COVER: list[dict[str, Any]] = [
    {"dimension": 2, "rounds": 2},
    {"growth": 4.0, "span": 8.0},
    {"accounting": "approximate"},
]

#: Options beside the defaults, by algorithm; every option, and every word it may be, is in one of them.
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "summit": [],
    "balcan": [*_TREES, {"trials": 2}, {"rounds": 0}, {"rounds": 2, "clipping": "domain"}],
    "balcan-median": [*_TREES, {"trials": 2}, {"rounds": 0}, {"rounds": 2, "recovery": "net"}],
    "balcan-sparse": [
        *_TREES,
        {"nonzeros": 5, "accuracy": 1.0},
        {"largest": 0.5, "columns": 3, "rounds": 3},
    ],
    "gupta": [{"swaps": 0}, {"swaps": 5}],
    "jones": [
        {"power": 3, "rounds": 2},
        {"growth": 4.0},
        {"accounting": "approximate"},
        {"accounting": "jones"},
    ],
    "jones-euclidean": [*_COVER, {"candidates": "hashing"}, {"accounting": "jones"}],
    "chaturvedi": [
        *_COVER,
        {"lloyd": 0},
        {"lloyd": 3, "averages": "paper"},
        {"accounting": "chaturvedi"},
    ],
    "sulq": [{"rounds": 2}, {"clip": 0.3}],
    "grid": [{"cells": 3}],
}


@dataclass(frozen=True)
class Case:
    """One request for a plan."""

    algorithm: str
    objective: str
    domain: str
    budget: str
    k: int = 3
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Columns, weights and scaling of a request for a table.
    clustered: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        options = ", ".join(f"{name} {value}" for name, value in self.options.items())
        clustered = ", ".join(f"{name} {value}" for name, value in self.clustered.items())
        words = (self.algorithm, self.objective, self.domain, self.budget, f"k {self.k}", options, clustered)
        return "; ".join(word for word in words if word)

    def plan(self) -> Any:
        options = dict(self.options)
        if _needs_sites(self.algorithm):
            options["sites"] = SITES[self.domain.split(",")[0]]
        budget = BUDGETS[self.budget]
        request = Request(self.k, budget, self.objective, self.algorithm, options, **self.clustered)
        return make_plan(DOMAINS[self.domain], request)


#: Centres that questions are about, by domain: of a table, the coordinates of its columns to cluster on.
_CENTRES = {
    "box": [[0.25, -2.5, 15.0], [0.5, 0.0, 20.0], [0.75, 2.5, 25.0]],
    "ball": [[0.0, 0.0, -2.0], [1.0, 1.0, -1.0], [2.0, -1.0, -3.0]],
    "table": [[10.0, 1.0, 0.0, 0.0, 0.0], [50.0, 0.0, 1.0, 0.0, 0.5], [90.0, 0.0, 0.0, 1.0, 1.0]],
}
#: Options of each kind of question: those of every case, then further ones.
ASKED: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "profile": ({}, [{"bins": 4}, {"noise": "gaussian"}, {"noise": "laplace"}]),
    "explain": ({"picks": 1}, [{"picks": 2, "bins": 4}, {"noise": "gaussian"}, {"noise": "laplace"}]),
    "table": ({}, [{"bins": 4}, {"noise": "gaussian"}, {"noise": "laplace"}]),
    "quantiles": ({}, [{"levels": [0.1, 0.9]}, {"noise": "gaussian"}, {"noise": "laplace"}]),
    "summary": ({}, [{"noise": "gaussian"}, {"noise": "laplace"}]),
    "compare": ({}, [{"noise": "gaussian"}, {"noise": "laplace"}]),
}


@dataclass(frozen=True)
class QuestionCase:
    """One question."""

    algorithm: str
    domain: str
    budget: str
    options: Mapping[str, Any] = field(default_factory=dict)
    objective: str = "question"
    #: Number of clusters that it is about.
    k: int = 3

    @property
    def name(self) -> str:
        options = ", ".join(f"{name} {value}" for name, value in self.options.items())
        words = (self.algorithm, self.objective, self.domain, self.budget, options)
        return "; ".join(word for word in words if word)

    def plan(self) -> Any:
        domain, of = DOMAINS[self.domain], self.domain.split(",")[0]
        columns = {"box": ("a", "b"), "ball": ("a", "b"), "table": ("age", "smoker")}[of]
        asked = questions.get(self.algorithm)
        partitions = (Partition.of(domain, _CENTRES[of]),) * asked.clusterings
        named = columns if self.algorithm == "table" else None
        options = {**ASKED[self.algorithm][0], **self.options}
        return make_plan(domain, Question(self.algorithm, BUDGETS[self.budget], named, partitions, options))


def question_cases() -> Iterator[QuestionCase]:
    """All questions, in a fixed order; none where a tree has no questions yet."""
    domains = ("box", "box, 4 rows per person", "ball", "table", "table, 4 rows per person")
    for kind, (_, several) in ASKED.items() if questions is not None else ():
        for budget in BUDGETS:
            yield from (QuestionCase(kind, domain, budget) for domain in domains)
        for options in several:
            budget = "pure" if options.get("noise") == "laplace" else "approximate"
            yield from (QuestionCase(kind, domain, budget, options) for domain in ("box", "table"))


def _needs_sites(algorithm: str) -> bool:
    return algorithm != "auto" and any(o.name == "sites" for o in registry.get(algorithm).options)


def _domains(algorithm: Any) -> list[str]:
    """Domains of the kinds that an algorithm reads."""
    names = [name for name, domain in DOMAINS.items() if domain.kind in algorithm.domains]
    if _needs_sites(algorithm.name):
        names = [name for name in names if name.split(",")[0] in SITES and name != "box, unscaled"]
    # A grid's cells grow with the power of the columns.
    return [name for name in names if algorithm.name != "grid" or name != "wide box"]


def _budgets(algorithm: Any, options: Mapping[str, Any]) -> tuple[str, ...]:
    if algorithm.guarantee == "either" and options.get("accounting", "pure") != "pure":
        return ("approximate",)
    guarantees = {"pure": ("pure",), "approximate": ("approximate",), "either": ("pure", "approximate")}
    return guarantees[algorithm.guarantee]


def cases() -> Iterator[Case | QuestionCase]:
    """All of them, in a fixed order."""
    yield from _clusterings()
    yield from question_cases()


def _clusterings() -> Iterator[Case]:
    for name in registry.names():
        algorithm = registry.get(name)
        domains = _domains(algorithm)
        for objective in algorithm.objectives:
            for budget in _budgets(algorithm, {}):
                yield from (Case(name, objective, domain, budget) for domain in domains)
                yield from (Case(name, objective, domains[0], budget, k) for k in (1, 5))
            for options in OPTIONS[name]:
                for budget in _budgets(algorithm, options):
                    yield Case(name, objective, domains[0], budget, options=options)
    yield Case("summit", "means", "box", "approximate", 30)  # few records
    if Table is not None:
        yield from _table_cases()
    for objective in ("means", "medians"):
        for budget in BUDGETS:
            yield from (Case("auto", objective, domain, budget) for domain in ("box", "ball", "sparse"))


def _table_cases() -> Iterator[Case]:
    """Requests that choose columns, weights and private scaling."""
    for name in ("summit", "sulq", "balcan"):
        for budget in BUDGETS:
            chosen = {"columns": ("age", "smoker"), "weights": {"smoker": 0.5}}
            yield Case(name, "means", "table", budget, clustered=chosen)
            yield Case(name, "means", "table", budget, clustered={"scaling": "private"})
            yield Case(name, "means", "table, 4 rows per person", budget, clustered={"scaling": "private"})


def rows_for(domain: Any, count: int) -> Any:
    """Made-up rows in three groups, by whole numbers alone."""
    i = np.arange(count)
    if isinstance(domain, Ids):
        return ArraySource(domain, (i * i + i // 3) % domain.count)
    if isinstance(domain, Sparse):
        columns = np.stack([i % 3 * 7, i % 3 * 7 + 1, 21 + i % 11])
        entries = np.stack([1 + i % 2, 1 + i % 3 // 2, i % 5 * 0 + 1]) / 4 * min(domain.radius, 1.0)
        rows = np.broadcast_to(i, columns.shape)
        shape = (count, domain.dimension)
        return SparseSource(domain, sp.coo_array((entries.ravel(), (rows.ravel(), columns.ravel())), shape))
    if Table is not None and isinstance(domain, Table):
        values = {
            "age": i % 3 * 30 + i % 7,
            "ward": np.array(["a", "b", ""])[(i * i + i // 5) % 3],
            "smoker": np.array(["yes", "no", ""])[i % 5 % 3],
            "cost": np.where(i % 4 == 0, np.nan, i % 90),
        }
        return TableSource(domain, values)
    steps = (i[:, None] % 3 * 24 + (i[:, None] * (np.arange(domain.dimension) + 5)) % 7) / 64
    if domain.low is None:
        return ArraySource(domain, np.array(domain.centre) + (steps - 0.5) * domain.radius)
    low, high = np.array(domain.low), np.array(domain.high)
    return ArraySource(domain, low + steps * (high - low))
