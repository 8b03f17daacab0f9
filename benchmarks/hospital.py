"""A hospital's table from its file to findings, by default choices: `python -m benchmarks hospital`.

Each table of stays goes through a service as a new user would take it there: what the preview proposes is
declared and confirmed, rows are uploaded and sealed, one clustering leaves k open, its clusters are profiled,
and the table is summarised, all with the defaults of the console. What the service then says is compared with
the groups that the table was made of, and each interval with the exact number.
"""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.harness.processes import server
from benchmarks.intervals import Coverage, Records, numbers
from benchmarks.measuring import RESULTS, print_table, write_csv
from cairn_client import Client, Dataset, Result
from cairn_client.table_geometry import TableGeometry

__all__ = ["Finding", "Stays", "main", "measured"]

#: The defaults of the console: of a new dataset, of its form for jobs and of that for questions.
_BUDGET, _DELTA = "3", "0.00001"
_RANGE = (1, 32)
_EPSILON = 1
_QUESTION_EPSILON = "0.1"

#: Most stays of a patient.
_MOST_STAYS = 4
#: Share of stays without a body mass index.
_GAPS = 0.05
_REGIONS = ("north", "south", "east", "west")
_WARDS = ("paediatrics", "obstetrics", "surgery", "oncology", "geriatrics", "neurology")
#: Share of the stays of a group that are on its own ward.
_OWN_WARD = 0.85
#: Ends of a loss, and the share of the variance that clusters explain at the other end, if nothing is known.
_UNKNOWN = (("high", 0.0), ("low", 1.0))


@dataclass(frozen=True)
class Group:
    """Typical patients of a ward: means, and the rate of emergencies."""

    ward: str
    age: float
    age_spread: float
    bmi: float
    days: float
    admissions: float
    log_cost: float
    emergency: float


GROUPS = (
    Group("paediatrics", 7, 3.5, 17, 2, 1, 6.3, 0.5),
    Group("obstetrics", 31, 5, 27, 3, 1.5, 7.8, 0.1),
    Group("surgery", 54, 10, 29, 7, 2, 9.2, 0.3),
    Group("oncology", 64, 8, 23, 4, 9, 10.3, 0.05),
    Group("geriatrics", 83, 5, 25, 14, 4, 8.7, 0.75),
)


@dataclass(frozen=True, eq=False)
class Stays:
    """Stays of patients in a hospital: values by column, and the group of each."""

    values: dict[str, Any]
    group: Any

    @classmethod
    def drawn(cls, draw: np.random.Generator, rows: int) -> Stays:
        """Three to five groups of unequal sizes; each patient belongs to one."""
        chosen = draw.choice(len(GROUPS), draw.integers(3, len(GROUPS) + 1), replace=False)
        share = draw.dirichlet(np.full(len(chosen), 6.0))
        stays = np.minimum(1 + draw.poisson(0.7, rows), _MOST_STAYS)
        patient = np.repeat(np.arange(rows), stays)[:rows]
        group = draw.choice(len(chosen), rows, p=share)[patient]
        of = {
            name: np.array([getattr(GROUPS[each], name) for each in chosen])[group]
            for name in vars(GROUPS[0])
        }
        own = np.where(draw.random(rows) < _OWN_WARD, of["ward"], np.array(_WARDS)[draw.integers(0, 6, rows)])
        values = {
            "patient_id": np.char.add("P", (10_000 + patient).astype(str)),
            "age": np.clip(draw.normal(of["age"], of["age_spread"]), 0, 105).round(),
            "sex": np.where((own == "obstetrics") | (draw.random(rows) < 0.5), "female", "male"),
            "region": np.array(_REGIONS)[draw.integers(0, 4, rows)],
            "ward": own,
            "admissions": draw.poisson(of["admissions"]),
            "cost": np.exp(draw.normal(of["log_cost"], 0.5)).clip(50, 500_000).round(2),
            "days": draw.poisson(of["days"]),
            "bmi": draw.normal(of["bmi"], 2.5).clip(10, 60).round(1),
            "admitted": np.datetime64("2025-01-01") + draw.integers(0, 365, rows).astype("timedelta64[D]"),
            "smoker": draw.random(rows) < 0.25,
            "emergency": draw.random(rows) < of["emergency"],
        }
        values["bmi"][draw.random(rows) < _GAPS] = np.nan
        mixed = draw.permutation(rows)
        return cls({name: each[mixed] for name, each in values.items()}, group[mixed])

    @property
    def groups(self) -> int:
        return int(self.group.max()) + 1

    def write(self, path: Path) -> None:
        """Write the stays as people export them."""
        texts = [
            ["" if text == "nan" else text for text in each.astype(str)] for each in self.values.values()
        ]
        yes = {"True": "yes", "False": "no"}
        with path.open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(self.values)
            lines.writerows([yes.get(cell, cell) for cell in line] for line in zip(*texts, strict=True))

    def stored(self, columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The values that rows keep: without those with a gap, and clipped to the declared bounds."""
        whole = ~np.isnan(self.values["bmi"])
        found = {}
        for column in columns:
            values = self.values[column["name"]][whole]
            if column["kind"] == "number":
                values = np.clip(values, column["low"], column["high"])
            found[column["name"]] = values
        return found


@dataclass(frozen=True)
class Finding:
    """What a table's clustering says in sentences, and whether that is so."""

    groups: int
    suggested: int
    #: Whether the suggestion, or what it says fits as well, is the number of groups.
    k_holds: bool
    #: Whether the explained share of the variance lies in its interval.
    explained_holds: bool
    reason: str

    @property
    def holds(self) -> bool:
        return self.k_holds and self.explained_holds


def measured(
    client: Client, tables: int, rows: int, folder: Path, draw: np.random.Generator
) -> Iterator[tuple[Finding, Coverage]]:
    """Take fresh tables through a service, and compare what it says of each with the truth."""
    for number in range(tables):
        stays = Stays.drawn(draw, rows)
        dataset = _declared(client, f"hospital-{number}-{draw.integers(1 << 30)}", stays, rows, folder)
        coverage = Coverage()
        result = dataset.cluster(_RANGE, _EPSILON, progress=False)
        columns = [each for each in dataset.facts.table or [] if each["role"] == "cluster"]
        values = stays.stored(columns)
        own = Records(
            values=values,
            group=result.predict(values),
            groups=len(result.centres),
            logs={each["name"] for each in columns if each.get("log")},
        )
        geometry = TableGeometry.of(result.receipt, result.facts.details)
        rows_of = geometry.coordinates(values)
        explained = _compare_clusters(result, geometry, own, rows_of, coverage)
        own.compare_profile(result.profile(epsilon=_QUESTION_EPSILON).facts.findings, coverage)
        summary = dataset.summary(_QUESTION_EPSILON).facts.findings
        _compare_summary(summary, own, rows_of, coverage)
        yield _finding(stays, result, explained), coverage


def _declared(client: Client, name: str, stays: Stays, rows: int, folder: Path) -> Dataset:
    """A sealed dataset, declared as the preview proposes."""
    path = folder / f"{name}.csv"
    stays.write(path)
    found = client.describe(path)
    dataset = client.create_dataset(
        name,
        table=[column.confirmed().facts for column in found.columns],
        reading=found.reading.confirmed().facts,
        size=rows,
        rows_per_person=_MOST_STAYS if found.facts.repeated_id else 1,
        epsilon=_BUDGET,
        delta=_DELTA,
    )
    report = dataset.upload(path)
    dataset.seal([doubt.confirm for doubt in report.doubts])
    return dataset


def _compare_clusters(
    result: Result, geometry: TableGeometry, own: Records, rows: Any, coverage: Coverage
) -> float:
    """Compare sizes and centres with the nearest records; returns the share of the variance explained."""
    level = result.facts.level
    assert level is not None
    coverage.add("clusters: sizes", level["size_low"], level["size_high"], own.sizes)
    coverage.add("clusters: centres", level["centre_low"], level["centre_high"], own.means(rows))
    placed, centres = geometry.place(rows), geometry.place(result.centres)
    lost = ((placed - centres[own.group]) ** 2).sum()
    return 1.0 - float(lost / ((placed - placed.mean(axis=0)) ** 2).sum())


def _compare_summary(answer: Mapping[str, Any], own: Records, rows: Any, coverage: Coverage) -> None:
    """Compare the number of records, means, spreads and correlations of all columns."""
    coverage.add("summary: number of records", answer["count_low"], answer["count_high"], len(rows))
    for column in answer["columns"]:
        values = own.values[column["column"]]
        if "shares" in column:
            exact = [np.mean(values == level) for level in column["shares"]]
            low, high = (list(column[f"shares_{end}"].values()) for end in ("low", "high"))
            coverage.add("summary: shares of levels", low, high, exact)
            continue
        is_log = column["column"] in own.logs
        mean = np.exp(np.log(values).mean()) if is_log else numbers(values).mean()
        low, high = (numbers([column[f"value_{end}"]])[0] for end in ("low", "high"))
        coverage.add("summary: means", low, high, mean)
    coverage.add("summary: spreads", answer["spreads_low"], answer["spreads_high"], rows.std(axis=0))
    apart = ~np.eye(rows.shape[1], dtype=bool)
    least, most = (np.array(answer[f"correlations_{end}"])[apart] for end in ("low", "high"))
    coverage.add("summary: correlations", least, most, np.corrcoef(rows.T)[apart])


def _finding(stays: Stays, result: Result, explained: float) -> Finding:
    """What the page of a result says above all: the suggested k, why, and how much it explains."""
    known, level = result.facts.range, result.facts.level
    assert known is not None
    assert level is not None
    others = re.search(r"more than one k fits: ([\d and]+) as well", known["reason"])
    named = {known["suggested"], *(map(int, re.findall(r"\d+", others[1])) if others else ())}
    # The loss of one cluster; where it is not known, nothing is said of what the clusters explain.
    whole = level["loss"]["value"] / max(1 - level["explained"], 1e-12)
    least, most = (1 - level["loss"][end] / whole if whole > 0 else bound for end, bound in _UNKNOWN)
    return Finding(
        groups=stays.groups,
        suggested=known["suggested"],
        k_holds=stays.groups in named,
        explained_holds=least <= explained <= most,
        reason=known["reason"],
    )


def main(
    tables: Annotated[int, typer.Option(help="fresh tables", min=1)] = 10,
    rows: Annotated[int, typer.Option(help="stays in a table", min=100)] = 20_000,
    first: Annotated[int, typer.Option(help="seed of the tables; noise has none")] = 0,
    results: Annotated[Path, typer.Option(help="folder of the CSV file")] = RESULTS,
) -> None:
    """Whether sentences are true and intervals hold, from a hospital's file on by default choices."""
    total, lines = Coverage(), []
    with tempfile.TemporaryDirectory(prefix="cairn-hospital-") as name:
        folder = Path(name)
        with server(f"sqlite:///{folder}/hospital.sqlite3", folder, log_level="warning") as running:
            client = Client(running.address, running.bootstrap_key())
            for finding, coverage in measured(client, tables, rows, folder, np.random.default_rng(first)):
                lines.append(
                    {**asdict(finding), "holds": finding.holds, "intervals held": round(coverage.share(), 4)}
                )
                total.merge(coverage)
                print(finding.reason)
    write_csv(results / "hospital.csv", lines)
    print_table("Sentences about each table", [{**line, "reason": ""} for line in lines])
    print_table("Intervals that held", list(total.rows()))
