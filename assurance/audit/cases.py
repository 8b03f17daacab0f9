"""What is audited: every algorithm of the registry, on small neighbouring datasets chosen to hurt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from assurance.audit.bounds import STEP_DELTA, Claim
from assurance.audit.probes import WHOLE, Neighbours
from core.data import (
    ArraySource,
    Category,
    DataSource,
    Dense,
    Ids,
    NarrowedSource,
    Number,
    Partition,
    Sparse,
    SparseSource,
    Stored,
    Table,
    TableSource,
    narrowed,
    read_public_rows,
)
from core.jobs import kinds
from core.plan import KRange, Plan, Request
from core.privacy import Budget
from core.questions import registry as questions
from core.questions.base import Question
from service.datasets.periods.selection import PeriodRead, PeriodsRead
from service.ledger.charging import rows_protected
from service.operations.states import Unit

__all__ = ["CASES", "PAIRS", "VARIANTS", "Case", "Pair", "UnitCase", "Variant"]

Rows = npt.NDArray[np.float64]

#: Public order of magnitude of every small dataset.
SIZE = 20
#: Columns of wider rows: few records in so many are found in a sketch; more than second moments are of use
#: for under pure epsilon; enough to learn axes from public rows; enough to choose columns and to take coarse
#: second moments of them.
_WIDTHS = {"sketch": 4, "wide": 14, "public": 66, "widest": 130}
_DECLARED = (
    Number(name="share", low=0, high=1, missing="fill", fill=0.5),
    Category(name="side", levels=("a", "b", "c"), missing="level", weight=2.0),
)


@dataclass(frozen=True)
class Pair:
    """Neighbours in the unit square: what both hold, and the records that only the larger one has."""

    name: str
    why: str
    both: tuple[tuple[float, float], ...]
    extra: tuple[tuple[float, float], ...]

    @property
    def rows_per_person(self) -> int:
        return len(self.extra)


_LEFT, _RIGHT, _MIDDLE, _CORNER = (0.2, 0.2), (0.7, 0.7), (0.5, 0.5), (1.0, 1.0)

PAIRS = {
    pair.name: pair
    for pair in (
        Pair("outlier", "alone in its cell, on the ball's edge, the 16th record", (_LEFT,) * 15, (_CORNER,)),
        Pair(
            "lone member",
            "makes or empties a cluster beside two others",
            (_LEFT,) * 4 + (_RIGHT,) * 3,
            ((0.9, 0.1),),
        ),
        Pair("zero row", "the encoded row is all zeros", (_LEFT,) * 7, (_MIDDLE,)),
        Pair("duplicate", "one more of the same, 7 records become 8", (_CORNER,) * 7, (_CORNER,)),
        Pair("first record", "a record or none at all", (), (_CORNER,)),
        Pair("two rows", "a person who owns two rows, both on the edge", (_LEFT,) * 6, (_CORNER,) * 2),
    )
}


@dataclass(frozen=True)
class Variant:
    """An algorithm with an objective, a guarantee and options that keep a run short."""

    name: str
    algorithm: str
    budget: Budget
    objective: str = "means"
    k: int | KRange = 2
    options: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "dense"
    #: Columns, weights and scaling of a request for a table.
    clustered: Mapping[str, Any] = field(default_factory=dict)
    #: The declared number of records: with as many as there are, the plan for means is one for few records.
    size: int = SIZE

    def request(self, domain: Stored) -> Request | Question:
        if self.algorithm not in questions.names():
            offered = read_public_rows(domain, _public_rows(domain)) if self.kind == "public" else None
            asked = (self.k, self.budget, self.objective, self.algorithm, self.options)
            return Request(*asked, public_rows=offered, **self.clustered)
        centres = _CENTRES_OF_TABLE if self.kind == "table" else _CENTRES
        partitions = (Partition.of(domain, centres),) * questions.get(self.algorithm).clusterings
        return Question(self.algorithm, self.budget, None, partitions, self.options)

    def domain(self, rows_per_person: int) -> Stored:
        match self.kind:
            case "table":
                return Table(declared=_DECLARED, size=self.size, rows_per_person=rows_per_person)
            case "sparse":
                return Sparse(dimension=6, radius=1.0, size=self.size, rows_per_person=rows_per_person)
            case "ids":
                return Ids(count=4, size=self.size, rows_per_person=rows_per_person)
            case "narrowed":
                return narrowed(_wide(rows_per_person), dict.fromkeys(("x0", "x1"), (0, 1)))
        width = _WIDTHS.get(self.kind, 2)
        return Dense.box(0, 1, dimension=width, size=self.size, rows_per_person=rows_per_person)

    def source(self, domain: Stored, points: tuple[tuple[float, float], ...]) -> DataSource:
        rows = np.array(points).reshape(-1, 2)
        if isinstance(domain, Sparse):
            return SparseSource(domain, _as_sparse(rows))
        if isinstance(domain, Ids):
            # Sites 0 to 3 in the order of the square's diagonal; the middle is where nobody else is.
            return ArraySource(domain, np.array([round(3 * (x + y) / 2) for x, y in rows], dtype=np.int64))
        if isinstance(domain, Table):
            return TableSource(domain, _as_table(rows))
        if self.kind == "narrowed":  # what lies on the edge was stored beyond it
            wide = ArraySource(_wide(domain.rows_per_person), np.where(rows == 1.0, 2.0, rows))
            return NarrowedSource(wide, domain)
        return ArraySource(domain, np.tile(rows, domain.dimension // 2))


def _wide(rows_per_person: int) -> Dense:
    """The square and as much around it, in which records are stored that are read in working bounds."""
    return Dense.box(-1, 2, dimension=2, size=SIZE, rows_per_person=rows_per_person)


def _public_rows(domain: Stored) -> Rows:
    """Rows about two places in which most records lie."""
    around = np.random.default_rng(3).normal(scale=0.02, size=(40, domain.dimension))
    return np.repeat([[_LEFT[0]], [_RIGHT[0]]], 20, axis=0) + around


def _as_table(rows: Rows) -> dict[str, Any]:
    """Two levels that people have, one that nobody else has in the corner, and nothing in the middle."""
    level = {_LEFT: "a", _RIGHT: "b", _CORNER: "c", _MIDDLE: None}
    points = [(float(x), float(y)) for x, y in rows]
    return {
        "share": np.array([np.nan if point == _MIDDLE else point[0] for point in points]),
        "side": np.array([level.get(point, "b") for point in points], dtype=object),
    }


def _as_sparse(rows: Rows) -> sp.csr_array:
    """Rows of six columns, few of which are used: which ones, and how much, follows from the square."""
    wide = np.zeros((len(rows), 6))
    for i, (x, y) in enumerate(rows):
        if (x, y) == _CORNER:
            wide[i, 5] = 1.0
        elif (x, y) != _MIDDLE:
            wide[i, [0, 1] if x < 0.5 else [2, 3] if y > 0.5 else [3, 4]] = 0.5
    return sp.csr_array(wide)


@dataclass(frozen=True)
class Case:
    """A variant on a pair."""

    variant: Variant
    pair: Pair

    @property
    def name(self) -> str:
        return f"{self.variant.name}, {self.pair.name}"

    @cached_property
    def domain(self) -> Stored:
        return self.variant.domain(self.pair.rows_per_person)

    @cached_property
    def plan(self) -> Plan:
        return kinds.plan(self.domain, self.variant.request(self.domain))

    @cached_property
    def claims(self) -> dict[str, Claim]:
        """What the plan declares: for one use of each step, and for all of them together."""
        plan, delta = self.plan, self.plan.budget.delta or STEP_DELTA
        steps = zip(plan.steps, plan.losses, strict=True)
        return {step.name: Claim.of([(loss, 1)], delta) for step, (loss, _) in steps} | {
            WHOLE: Claim.of(plan.losses, delta)
        }

    @cached_property
    def neighbours(self) -> Neighbours:
        source, both = self.variant.source, self.pair.both
        return Neighbours(source(self.domain, both), source(self.domain, (*both, *self.pair.extra)))


#: Rows of one person in a period, and the periods that a job reads.
_LIMIT, _PERIODS = 2, tuple(PeriodRead(f"2030-0{month}", 1, SIZE, month) for month in (1, 2, 3))
#: What one contributor has in these periods: a record of one, all rows in one, all rows in all of them.
_CONTRIBUTED = {Unit.RECORD: 1, Unit.PERSON_IN_PERIOD: _LIMIT, Unit.PERSON: _LIMIT * len(_PERIODS)}


@dataclass(frozen=True)
class UnitCase(Case):
    """A variant on neighbours of a unit of privacy, planned as the service plans a job on periods."""

    unit: Unit
    #: Rows that the noise protects, by the rule of the service.
    protected: Callable[[Unit, Sequence[str], int], int] = rows_protected

    @classmethod
    def of(cls, variant: Variant, unit: Unit) -> Self:
        extra = (_CORNER,) * _CONTRIBUTED[unit]
        return cls(variant, Pair(f"unit {unit}", "all that it protects", (_LEFT,) * 15, extra), unit)

    @cached_property
    def domain(self) -> Stored:
        limit = 1 if self.unit is Unit.RECORD else _LIMIT
        rows = self.protected(self.unit, [each.label for each in _PERIODS], limit)
        return PeriodsRead(self.unit, _PERIODS, rows).domain(self.variant.domain(limit))


_SITES = {
    "kind": "coordinates",
    "points": [[0.0, 0.0], [0.2, 0.2], [0.5, 0.5], [1.0, 1.0]],
}
_MATRIX = {"kind": "distances", "matrix": [[abs(i - j) for j in range(4)] for i in range(4)]}
_SELECTION: dict[str, Any] = {"trees": 1, "depth": 2, "swaps": 1, "candidates": 8}
_SCALED = {"scaling": "private"}
_COVER: dict[str, Any] = {"rounds": 2, "growth": 4.0, "span": 4.0}
#: Released centres that questions are about: in the square, and as shares of a table's levels.
_CENTRES = ((0.2, 0.2), (0.8, 0.8))
_CENTRES_OF_TABLE = ((0.2, 1.0, 0.0, 0.0, 0.0), (0.8, 0.0, 0.0, 1.0, 0.0))


def _variants() -> list[Variant]:
    found: list[Variant] = []

    def add(
        algorithm: str,
        budgets: tuple[Budget, ...],
        objective: str = "means",
        label: str = "",
        kind: str = "dense",
        k: int | KRange = 2,
        clustered: Mapping[str, Any] | None = None,
        size: int = SIZE,
        **options: Any,
    ) -> None:
        for budget in budgets:
            guarantee = "pure" if budget.is_pure else "approximate"
            words = [algorithm, *([label] if label else []), guarantee]
            name = " ".join(words)
            found.append(Variant(name, algorithm, budget, objective, k, options, kind, clustered or {}, size))

    few = (Budget.of(4), Budget.of(4, "0.001"))
    many = (Budget.of(8), Budget.of(8, "0.001"))
    add("sulq", few, rounds=2, clip=0.3)
    add("gupta", few, "medians", swaps=2, sites=_SITES)
    add("gupta", few[:1], "medians", "ids", "ids", swaps=2, sites=_MATRIX)
    add("grid", few[:1], cells=3)
    add("jones", few[:1], "medians", rounds=2, growth=8.0, sites=_SITES)
    add("jones", few[1:], "medians", rounds=2, growth=8.0, sites=_SITES, accounting="approximate")
    add("jones", few[:1], "means", "ids", "ids", rounds=2, growth=8.0, sites=_MATRIX)
    add("summit", many, "means", "means")
    add("summit", many[1:], "means", "means exploring", size=2 * SIZE)
    add("summit", many[1:], "means", "sketch", "sketch")
    add("summit", many, "medians", "medians")
    add("summit", many[:1], "means", "wide", "wide")
    add("summit", many, "means", "130 columns", "widest")
    add("summit", many[1:], "means", "public rows", "public")
    add("chaturvedi", many[1:], **_COVER)
    add("balcan", many, rounds=1, **_SELECTION)
    add("balcan-median", many, "medians", rounds=1, **_SELECTION)
    add("balcan-median", many[:1], "medians", "net", rounds=1, recovery="net", **_SELECTION)
    add("balcan-sparse", many, kind="sparse", rounds=1, nonzeros=2, columns=2, **_SELECTION)
    add("jones-euclidean", many[1:], **_COVER)
    add("jones-euclidean", many[1:], "medians", "medians hashing", candidates="hashing", **_COVER)
    add("sulq", few, "means", "table", "table", rounds=2, clip=0.3)
    add("sulq", few, "means", "scaled", "table", clustered=_SCALED, rounds=2)
    add("summit", many[1:], "means", "table", "table", clustered={"weights": {"side": 0.5}})
    add("summit", many[1:], "means", "scaled", "table", clustered=_SCALED)
    add("summit", many, "means", "open k", k=KRange(1, 3))
    add("grid", few[:1], "means", "table", "table", cells=3)
    add("balcan", many[1:], "means", "table", "table", rounds=1, **_SELECTION)
    add("balcan-median", many[1:], "medians", "table", "table", rounds=1, **_SELECTION)
    add("chaturvedi", many[1:], "means", "scaled", "table", clustered=_SCALED, **_COVER)
    add("jones-euclidean", many[1:], "means", "scaled", "table", clustered=_SCALED, **_COVER)
    add("summit", many[1:], "means", "sparse", "sparse")
    add("sulq", few[1:], "means", "sparse", "sparse", rounds=2)
    add("sulq", few[1:], "means", "working bounds", "narrowed", rounds=2, clip=0.3)
    fewer: dict[str, dict[str, Any]] = {"profile": {"bins": 3}, "table": {"bins": 3}}
    fewer["explain"] = {"picks": 1, "bins": 3}
    for question in questions.names():
        add(question, few, **fewer.get(question, {}))
        if question != "summary":
            add(question, few, "means", "of table", "table", **fewer.get(question, {}))
        # Under zCDP this is the default of an approximate budget.
        options = {**fewer.get(question, {}), "noise": "gaussian"}
        add(question, few[1:], "means", "gaussian", "dense" if question == "summary" else "table", **options)
    add("quantiles", few[1:], "means", "working bounds", "narrowed")
    return found


VARIANTS = {variant.name: variant for variant in _variants()}


CASES = {
    case.name: case
    for variant in VARIANTS.values()
    for case in (Case(variant, pair) for pair in PAIRS.values())
} | {
    case.name: case
    for name in ("sulq pure", "sulq approximate", "summit means approximate")
    for case in (UnitCase.of(VARIANTS[name], unit) for unit in Unit)
}
