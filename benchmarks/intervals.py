"""How often the intervals of answers hold the exact numbers: `python -m benchmarks intervals`.

Each kind of question is asked many times about generated tables and boxes, and each interval of each answer
is compared with what an exact computation on the same records gives. Empty cells are counted apart: noise
can leave their intervals on one side only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.measuring import print_table
from core import ArraySource, Budget, Dense, Partition, Question, QuestionResult, make_plan, run_plan
from core.data import Boolean, Category, Number, Table, TableSource
from core.postprocessing.consistency import rand_index

__all__ = ["Coverage", "main", "measured"]

#: Budgets of the questions: with and without delta, with much noise and with little.
BUDGETS = (("0.1", "0"), ("1", "0"), ("0.3", "0.000001"))
_RECORDS = 4_000
_GROUPS = 3
_LEVELS = ("a", "b", "c", "d", "e", "f")
_QUANTILES = [0.1, 0.25, 0.5, 0.75, 0.9]


@dataclass
class Coverage:
    """Intervals that were compared, and those that held, by what they are intervals of."""

    held: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    compared: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, what: str, low: Any, high: Any, exact: Any) -> None:
        """Compare intervals with exact numbers, both of any shape; a tiny slack is for floating point."""
        low, high, exact = (np.asarray(each, dtype=np.float64) for each in (low, high, exact))
        slack = 1e-9 * np.maximum(1.0, np.abs(exact))
        held = (low <= exact + slack) & (exact <= high + slack)
        self.held[what] += int(held.sum())
        self.compared[what] += held.size

    def counts(self, what: str, answer: Mapping[str, Any], name: str, exact: Any) -> None:
        """Compare numbers under a name, those that are exactly zero apart."""
        low, high = (np.asarray(answer[f"{name}_{end}"], dtype=np.float64) for end in ("low", "high"))
        exact = np.asarray(exact, dtype=np.float64)
        for words, chosen in (("", exact > 0), (", empty", exact == 0)):
            if chosen.any():
                self.add(what + words, low[chosen], high[chosen], exact[chosen])

    def rows(self) -> Iterator[dict[str, object]]:
        for what, compared in self.compared.items():
            yield {"what": what, "held": round(self.held[what] / compared, 4), "intervals": compared}

    def share(self, kind: str) -> float:
        """Share of the intervals of a kind that held, empty cells apart."""
        chosen = [what for what in self.compared if what.split(":")[0] == kind and ", empty" not in what]
        return sum(self.held[what] for what in chosen) / sum(self.compared[what] for what in chosen)


@dataclass(frozen=True, eq=False)
class World:
    """A generated table with its values, and which group each record belongs to."""

    table: Table
    source: TableSource
    values: dict[str, Any]
    group: Any
    partition: Partition

    @classmethod
    def drawn(cls, draw: np.random.Generator) -> World:
        shares = draw.dirichlet(np.full(_GROUPS, 3.0))
        group = draw.choice(_GROUPS, _RECORDS, p=shares)
        values: dict[str, Any] = {
            "x": 15.0 + 30 * group + draw.normal(0, 2, _RECORDS),
            "age": np.clip(np.rint(draw.normal(30 + 15 * group, 9)), 0, 109),
            "cost": np.exp(draw.normal(6 + group, 1)).clip(1, 1e5),
            "member": draw.random(_RECORDS) < 0.1 + 0.3 * group,
        }
        for name, peaked in (("ward", 0.4), ("unit", 2.0)):
            tables = draw.dirichlet(np.full(len(_LEVELS), peaked), _GROUPS)
            code = (draw.random((_RECORDS, 1)) > np.cumsum(tables, axis=1)[group][:, :-1]).sum(axis=1)
            values[name] = np.array(_LEVELS)[code]
        table = Table(
            declared=(
                Number(name="x", low=0, high=90),
                Number(name="age", low=0, high=109, whole=True),
                Number(name="cost", low=1, high=100_000, log=True),
                Boolean(name="member"),
                Category(name="ward", levels=_LEVELS),
                Category(name="unit", levels=_LEVELS),
            ),
            size=_RECORDS,
        )
        clustered = {"columns": ["x"], "weights": {"x": 1.0}, "scaling": "declared"}
        partition = Partition.of(table, [[15.0], [45.0], [75.0]], clustered)
        exact = np.searchsorted([30.0, 60.0], values["x"])
        return cls(table, TableSource(table, values), values, exact, partition)

    def ask(self, kind: str, budget: tuple[str, str], **asked: Any) -> dict[str, Any]:
        return _ask(self.table, self.source, kind, budget, **asked)

    def bins(self, column: Mapping[str, Any]) -> Any:
        """The bin of each record in a column of an answer."""
        values = self.values[column["column"]]
        if "levels" in column:
            names = {name: place for place, name in enumerate(column["levels"])}
            texts = np.where(values, "true", "false") if values.dtype == bool else values
            return np.array([names[text] for text in texts])
        edges = np.array(column["edges"], dtype=np.float64)
        return np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)

    def counts(self, column: Mapping[str, Any]) -> Any:
        """Exact counts of a column, a row for each group."""
        width = len(column.get("levels") or column["edges"][1:])
        return np.array(
            [np.bincount(self.bins(column)[self.group == place], minlength=width) for place in range(_GROUPS)]
        )


def _ask(stored: Any, source: Any, kind: str, budget: tuple[str, str], **asked: Any) -> dict[str, Any]:
    found = run_plan(make_plan(stored, Question(kind, Budget.of(*budget), **asked)), source)
    assert isinstance(found, QuestionResult)
    values: dict[str, Any] = found.values
    return values


def _profile(world: World, budget: tuple[str, str], coverage: Coverage) -> None:
    answer = world.ask("profile", budget, partitions=(world.partition,))
    sizes = np.bincount(world.group, minlength=_GROUPS)
    coverage.counts("profile: sizes", answer, "sizes", sizes)
    for column in answer["columns"]:
        exact = world.counts(column)
        coverage.counts("profile: counts", column, "counts", exact)
        coverage.counts("profile: shares", column, "shares", exact / np.maximum(sizes, 1)[:, None])
        values = [world.values[column["column"]][world.group == place] for place in range(_GROUPS)]
        log = column["column"] == "cost"
        if "rates" in column:
            coverage.add(
                "profile: rates", column["rates_low"], column["rates_high"], [each.mean() for each in values]
            )
        elif "means" in column:
            placed = [np.log(each) if log else each for each in values]
            means, spreads = ([getattr(each, name)() for each in placed] for name in ("mean", "std"))
            if log:
                means, spreads = np.exp(means).tolist(), np.exp(spreads).tolist()
            coverage.add("profile: means from bins", column["means_low"], column["means_high"], means)
            coverage.add("profile: spreads from bins", column["spreads_low"], column["spreads_high"], spreads)


def _explain(world: World, budget: tuple[str, str], coverage: Coverage) -> None:
    answer = world.ask("explain", budget, partitions=(world.partition,), options={"picks": 2})
    for place, cluster in enumerate(answer["clusters"]):
        size = int((world.group == place).sum())
        coverage.add("explain: sizes", cluster["size_low"], cluster["size_high"], size)
        for column in cluster["columns"]:
            exact = world.counts(column)
            here, overall = exact[place] / max(size, 1), exact.sum(axis=0) / _RECORDS
            coverage.counts("explain: counts", column, "counts", exact[place])
            coverage.counts("explain: shares", column, "shares", here)
            coverage.counts("explain: shares of all", column, "overall", overall)
            distance = np.abs(here - overall).sum() / 2
            coverage.add("explain: distances", column["distance_low"], column["distance_high"], distance)


def _table(world: World, budget: tuple[str, str], coverage: Coverage) -> None:
    answer = world.ask("table", budget, columns=("ward", "unit"))
    exact = np.zeros((len(_LEVELS), len(_LEVELS)))
    np.add.at(exact, tuple(world.bins(column) for column in answer["columns"]), 1)
    coverage.counts("table: counts", answer, "counts", exact)
    for axis, column in enumerate(answer["columns"]):
        coverage.counts("table: sums", column, "counts", exact.sum(axis=1 - axis))
    coverage.add("table: total", answer["total_low"], answer["total_high"], _RECORDS)


def _compare(world: World, budget: tuple[str, str], coverage: Coverage) -> None:
    clustered = {"columns": ["x"], "weights": {"x": 1.0}, "scaling": "declared"}
    other = Partition.of(world.table, [[12.0], [30.0], [70.0], [85.0]], clustered)
    second = np.searchsorted([21.0, 50.0, 77.5], world.values["x"])
    answer = world.ask("compare", budget, partitions=(world.partition, other))
    exact = np.zeros((_GROUPS, 4))
    np.add.at(exact, (world.group, second), 1)
    coverage.counts("compare: counts", answer, "counts", exact)
    for axis in range(2):
        coverage.add(
            "compare: sizes", answer["sizes_low"][axis], answer["sizes_high"][axis], exact.sum(axis=1 - axis)
        )
    coverage.add("compare: agreement", answer["agreement_low"], answer["agreement_high"], rand_index(exact))


def _quantiles(world: World, budget: tuple[str, str], coverage: Coverage) -> None:
    answer = world.ask("quantiles", budget, columns=("x", "age", "cost"), options={"levels": _QUANTILES})
    for column in answer["columns"]:
        exact = np.quantile(world.values[column["column"]], _QUANTILES, method="inverted_cdf")
        coverage.add("quantiles: values", column["values_low"], column["values_high"], exact)
        coverage.add("quantiles: number of records", column["count_low"], column["count_high"], _RECORDS)


def _summary(world: World, budget: tuple[str, str], coverage: Coverage) -> None:
    mixing = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.3], [0.0, 0.0, 1.0]])
    numbers = np.stack(
        [world.values["x"] / 9, np.log(world.values["cost"]), world.values["age"] / 11], axis=1
    )
    rows = np.clip((numbers - numbers.mean(axis=0)) @ mixing, -8, 8)
    domain = Dense.box([-8.0] * 3, [8.0] * 3, ["a", "b", "c"], size=_RECORDS)
    answer = _ask(domain, ArraySource(domain, rows), "summary", budget)
    coverage.add("summary: number of records", answer["count_low"], answer["count_high"], _RECORDS)
    low, high = ([column[f"value_{end}"] for column in answer["columns"]] for end in ("low", "high"))
    coverage.add("summary: means", low, high, rows.mean(axis=0))
    coverage.add("summary: spreads", answer["spreads_low"], answer["spreads_high"], rows.std(axis=0))
    apart = ~np.eye(3, dtype=bool)
    least, most = (np.array(answer[f"correlations_{end}"])[apart] for end in ("low", "high"))
    coverage.add("summary: correlations", least, most, np.corrcoef(rows.T)[apart])
    variances = np.sort(np.linalg.eigvalsh(np.cov(rows.T, bias=True)))[::-1]
    low, high = ([axis[f"share_{end}"] for axis in answer["axes"]] for end in ("low", "high"))
    coverage.add("summary: shares of axes", low, high, variances / variances.sum())


KINDS: dict[str, Callable[[World, tuple[str, str], Coverage], None]] = {
    "profile": _profile,
    "explain": _explain,
    "table": _table,
    "compare": _compare,
    "quantiles": _quantiles,
    "summary": _summary,
}


def measured(runs: int) -> Coverage:
    """Coverage over this many runs of each kind, on tables that are drawn for each run."""
    coverage, draw = Coverage(), np.random.default_rng(31)
    for run in range(runs):
        world = World.drawn(draw)
        for compare in KINDS.values():
            compare(world, BUDGETS[run % len(BUDGETS)], coverage)
    return coverage


def main(runs: Annotated[int, typer.Option(help="runs of each kind of question", min=1)] = 200) -> None:
    """How often 95% intervals hold the exact numbers, for each kind of answer."""
    coverage = measured(runs)
    print_table("Intervals that held", list(coverage.rows()))
    pooled = [{"kind": kind, "held": round(coverage.share(kind), 4)} for kind in KINDS]
    print_table("Pooled by kind, empty cells apart", pooled)
