"""How often the intervals of answers hold the exact numbers: `python -m benchmarks intervals`.

Each kind of question is asked many times about generated tables and boxes, and each interval of each answer
is compared with what an exact computation on the same records gives; so are differences between two answers,
and what clusterings and suggested numbers of clusters say. Empty cells are counted apart: noise can leave
their intervals on one side only.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.cluster import KMeans

from benchmarks.measuring import RESULTS, print_table, write_csv
from benchmarks.tables import codes_of
from core import (
    ArraySource,
    Budget,
    Clustering,
    Dense,
    Partition,
    Question,
    QuestionResult,
    Request,
    make_plan,
    run_plan,
)
from core.data import Boolean, Category, Number, Table, TableSource
from core.data.tables.geometry import fair_weights
from core.plan import KRange
from core.postprocessing.consistency import rand_index
from core.questions import registry
from core.questions.view import Grid, bin_names

__all__ = ["Coverage", "Records", "main", "measured"]

#: Budgets of the questions: with and without delta, with much noise and with little.
BUDGETS = (("0.1", "0"), ("1", "0"), ("0.3", "0.000001"))
_RECORDS = 4_000
_GROUPS = 3
_LEVELS = ("a", "b", "c", "d", "e", "f")
#: Clusters of a release that leaves k open, at most.
_LAST = 6
#: Rows of a blob that a suggested number of clusters is compared with.
_BLOB_ROWS = 3_000
#: What a suggestion says that its k gains; per cent are rounded by at most this share.
_GAIN = re.compile(r"% \((\d+)% to (\d+)%\) lower")
_HALF = 0.005
_QUANTILES = [0.1, 0.25, 0.5, 0.75, 0.9]


@dataclass
class Coverage:
    """Intervals that were compared, and those that held, by what they are intervals of."""

    held: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    compared: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, what: str, low: Any, high: Any, exact: Any) -> None:
        """Compare intervals with exact numbers of any shape: those that exist, as means of no records do not.

        A tiny slack is for floating point.
        """
        low, high, exact = (np.asarray(each, dtype=np.float64) for each in (low, high, exact))
        slack = 1e-9 * np.maximum(1.0, np.abs(exact))
        held = (low <= exact + slack) & (exact <= high + slack)
        self.held[what] += int(held.sum())
        self.compared[what] += int((~np.isnan(exact)).sum())

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

    @property
    def kinds(self) -> list[str]:
        """Kinds of answers, in the order in which they came."""
        return list(dict.fromkeys(what.split(":")[0] for what in self.compared))

    def merge(self, other: Coverage) -> None:
        """Add the intervals of another."""
        for what, compared in other.compared.items():
            self.held[what] += other.held[what]
            self.compared[what] += compared

    def share(self, kind: str | None = None) -> float:
        """Share of the intervals of a kind, or of all, that held, empty cells apart."""
        chosen = [
            what for what in self.compared if kind in (None, what.split(":")[0]) and ", empty" not in what
        ]
        return sum(self.held[what] for what in chosen) / sum(self.compared[what] for what in chosen)


@dataclass(frozen=True, eq=False, kw_only=True)
class Records:
    """Values of records by column, and which of so many groups each belongs to."""

    values: Mapping[str, Any]
    group: Any
    groups: int
    #: Columns whose means are geometric.
    logs: Collection[str] = ()

    @property
    def sizes(self) -> Any:
        """Number of records in each group."""
        return np.bincount(self.group, minlength=self.groups)

    def means(self, rows: Any) -> Any:
        """The mean row of each group; not a number where a group has no records."""
        sums = [np.bincount(self.group, weights=column, minlength=self.groups) for column in rows.T]
        with np.errstate(invalid="ignore"):
            return np.stack(sums, axis=1) / self.sizes[:, None]

    def bins(self, column: Mapping[str, Any]) -> Any:
        """The bin of each record in a column of an answer."""
        values = self.values[column["column"]]
        if "levels" in column:
            names = {name: place for place, name in enumerate(column["levels"])}
            texts = np.where(values, "true", "false") if values.dtype == bool else values
            return np.array([names[text] for text in texts])
        edges = numbers(column["edges"])
        return np.clip(np.searchsorted(edges, numbers(values), side="right") - 1, 0, len(edges) - 2)

    def counts(self, column: Mapping[str, Any]) -> Any:
        """Exact counts of a column, a row for each group."""
        width = len(column.get("levels") or column["edges"][1:])
        bins = self.bins(column)
        return np.array(
            [np.bincount(bins[self.group == each], minlength=width) for each in range(self.groups)]
        )

    def compare_profile(self, answer: Mapping[str, Any], coverage: Coverage) -> None:
        """Compare the intervals of a profile of the groups."""
        coverage.counts("profile: sizes", answer, "sizes", self.sizes)
        for column in answer["columns"]:
            exact = self.counts(column)
            coverage.counts("profile: counts", column, "counts", exact)
            coverage.counts("profile: shares", column, "shares", exact / np.maximum(self.sizes, 1)[:, None])
            self._compare_moments(column, coverage)

    def _compare_moments(self, column: Mapping[str, Any], coverage: Coverage) -> None:
        """Compare the rate of each group, or its mean and spread; levels have neither."""
        name = column["column"]
        if not {"rates", "means"} & column.keys():
            return
        values = numbers(self.values[name])
        placed = [
            np.log(each) if name in self.logs else each
            for each in (values[self.group == place] for place in range(self.groups))
        ]
        back = np.exp if name in self.logs else np.asarray
        means, spreads = (back([getattr(each, of)() for each in placed]) for of in ("mean", "std"))
        if "rates" in column:
            coverage.add("profile: rates", column["rates_low"], column["rates_high"], means)
            return
        low, high = (numbers(column[f"means_{end}"]) for end in ("low", "high"))
        coverage.add("profile: means from bins", low, high, means)
        coverage.add("profile: spreads from bins", column["spreads_low"], column["spreads_high"], spreads)


def numbers(values: Any) -> Any:
    """Values of a column as numbers; dates, which answers have as text, as days."""
    found = np.asarray(values)
    if found.dtype.kind in "UM":
        found = found.astype("datetime64[D]")
    return found.astype(np.float64)


@dataclass(frozen=True, eq=False, kw_only=True)
class World(Records):
    """A generated table with its values, and which group each record belongs to."""

    table: Table
    source: TableSource
    partition: Partition
    #: What further tables are drawn with.
    draw: np.random.Generator

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
        return cls(
            values=values,
            group=exact,
            groups=_GROUPS,
            logs={"cost"},
            table=table,
            source=TableSource(table, values),
            partition=partition,
            draw=draw,
        )

    def ask(self, kind: str, budget: tuple[str, str], **asked: Any) -> dict[str, Any]:
        return _ask(self.table, self.source, kind, budget, **asked)


def _ask(stored: Any, source: Any, kind: str, budget: tuple[str, str], **asked: Any) -> dict[str, Any]:
    found = run_plan(make_plan(stored, Question(kind, Budget.of(*budget), **asked)), source)
    assert isinstance(found, QuestionResult)
    values: dict[str, Any] = found.values
    return values


def _profile(world: World, budget: tuple[str, str], coverage: Coverage) -> None:
    world.compare_profile(world.ask("profile", budget, partitions=(world.partition,)), coverage)


def _differences(world: World, budget: tuple[str, str], coverage: Coverage) -> None:
    """Differences of shares between two tables by the same clusters, as they are shown."""
    other = World.drawn(world.draw)
    asked = {"columns": ("age", "ward", "unit", "member"), "options": {"bins": 10}}
    first, second = (
        each.ask("profile", budget, partitions=(world.partition,), **asked) for each in (world, other)
    )
    exact = {}
    for column in first["columns"]:
        shares = [each.counts(column) / np.maximum(each.sizes, 1)[:, None] for each in (world, other)]
        for (group, place), value in np.ndenumerate(shares[1] - shares[0]):
            exact[f"Cluster {group + 1}", column["column"], bin_names(column)[place]] = value
    (shown,) = (
        part
        for part in registry.get("profile").differences(first, second)
        if isinstance(part, Grid) and part.title.startswith("Differences")
    )
    for cluster, name, value, _, _, difference in shown.rows:
        coverage.add("differences: shares", difference.low, difference.high, exact[cluster, name, value])


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


def _clustering(world: World, budget: tuple[str, str], coverage: Coverage) -> None:
    """Sizes, centres and losses of every k of one release, and what it says of the suggested one."""
    request = Request(KRange(1, _LAST), Budget.of(*budget), weights=fair_weights(world.table, None))
    plan = make_plan(world.table, request)
    found = run_plan(plan, world.source).synopsis
    assert found is not None
    rows = plan.domain.rows(codes_of(world.source)).astype(np.float64)
    unit = plan.domain.unit_length**2
    within = _squared(rows, plan.domain.encode_points(found.anchors)).min(axis=1) * unit <= found.reach**2
    losses = {}
    for level in found.levels:
        squared = _squared(rows, plan.domain.encode_points(level.centres))
        own = Records(values={}, group=squared.argmin(axis=1), groups=level.k)
        losses[level.k] = unit * float(squared.min(axis=1)[within].mean() if within.any() else np.nan)
        coverage.add("clustering: losses", level.loss.low, level.loss.high, losses[level.k])
        coverage.add("clustering: sizes", level.size_low, level.size_high, own.sizes)
        means = plan.domain.decode(own.means(rows))
        coverage.add("clustering: centres", level.centre_low, level.centre_high, means)
    if claimed := _GAIN.search(found.reason):
        least, most = (float(each) / 100 for each in claimed.groups())
        gained = _gain(rows, found.suggested, losses)
        coverage.add("suggestion: gain on one cluster", least - _HALF, most + _HALF, gained)


def _gain(rows: Any, k: int, losses: Mapping[int, float]) -> float:
    """How much lower the loss is at k than at one cluster, beyond what a normal blob gains from as many."""
    blob = np.random.default_rng(0).multivariate_normal(np.zeros(rows.shape[1]), np.cov(rows.T), _BLOB_ROWS)
    of_blob = KMeans(k, n_init=3, random_state=0).fit(blob).inertia_ / ((blob - blob.mean(axis=0)) ** 2).sum()
    return 1.0 - float(losses[k] / losses[1] / of_blob)


def _single(world: World, budget: tuple[str, str], coverage: Coverage) -> None:
    """Sizes and centres of a single k, which state the noise of the last round alone.

    The clusters lie apart, so that the records of the last round are about those nearest to the centres.
    """
    request = Request(_GROUPS, Budget.of(*budget), columns=("x", "age", "cost"))
    plan = make_plan(world.table, request)
    found = run_plan(plan, world.source)
    assert isinstance(found, Clustering)
    intervals = found.intervals
    assert intervals is not None
    assert intervals.sizes is not None
    assert intervals.centres is not None
    rows = plan.domain.rows(codes_of(world.source)).astype(np.float64)
    group = _squared(rows, plan.domain.encode_points(found.centres)).argmin(axis=1)
    own = Records(values={}, group=group, groups=_GROUPS)
    coverage.add("single k: sizes", intervals.sizes[0], intervals.sizes[1], own.sizes)
    low, high = intervals.centres
    coverage.add("single k: centres", low, high, plan.domain.decode(own.means(rows)))


def _squared(rows: Any, centres: Any) -> Any:
    """Squared distance of each row to each centre."""
    return np.stack([((rows - centre) ** 2).sum(axis=1) for centre in centres], axis=1)


KINDS: dict[str, Callable[[World, tuple[str, str], Coverage], None]] = {
    "profile": _profile,
    "explain": _explain,
    "table": _table,
    "compare": _compare,
    "quantiles": _quantiles,
    "summary": _summary,
    "differences": _differences,
    "clustering": _clustering,
    "single k": _single,
}


def measured(runs: int) -> Coverage:
    """Coverage over this many runs of each kind, on tables that are drawn for each run."""
    coverage, draw = Coverage(), np.random.default_rng(31)
    for run in range(runs):
        world = World.drawn(draw)
        for compare in KINDS.values():
            compare(world, BUDGETS[run % len(BUDGETS)], coverage)
    return coverage


def main(
    runs: Annotated[int, typer.Option(help="runs of each kind of question", min=1)] = 200,
    results: Annotated[Path, typer.Option(help="folder of the CSV file")] = RESULTS,
) -> None:
    """How often 95% intervals hold the exact numbers, for each kind of answer."""
    coverage = measured(runs)
    write_csv(results / "intervals.csv", list(coverage.rows()))
    print_table("Intervals that held", list(coverage.rows()))
    pooled = [{"kind": kind, "held": round(coverage.share(kind), 4)} for kind in coverage.kinds]
    print_table("Pooled by kind, empty cells apart", pooled)
