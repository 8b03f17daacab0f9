"""What plans forecast, and what happens: `python -m benchmarks forecasts`, for docs/accuracy.md.

A plan says how many records a group needs to be found, and how noisy sizes and centres will be. Here k - 1
equal groups lie apart, and a smaller one has a multiple of the forecast number of records. Rows are fresh
in every run, which is a line of a CSV file; a table of means is printed from it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from benchmarks.measuring import RESULTS, print_table, read_csv, write_csv
from core.algorithms import registry
from core.algorithms.base import Clustering
from core.data import ArraySource, Dense
from core.plan import Plan, Request
from core.privacy import Budget, default_delta

__all__ = ["main"]

Floats = npt.NDArray[np.float64]

#: Records of the smaller group, in multiples of what the plan says is found.
FACTORS = (0.25, 0.5, 1.0, 2.0)
#: Standard deviation of a group in each column, whose bounds are 0 and 1.
SPREAD = 0.04


@dataclass(frozen=True)
class Setting:
    """Public numbers of a job."""

    size: int
    columns: int
    k: int
    epsilon: str

    @property
    def label(self) -> str:
        return f"{self.size}x{self.columns}-k{self.k}-e{self.epsilon}"

    @property
    def domain(self) -> Dense:
        return Dense.box(0.0, 1.0, dimension=self.columns, size=self.size)

    def plan(self) -> Plan:
        budget = Budget.at_most(self.epsilon, default_delta(self.size))
        return registry.plan(self.domain, Request(self.k, budget))


SETTINGS = (
    Setting(1_000, 4, 3, "0.3"),
    Setting(1_000, 4, 10, "1"),
    Setting(1_000, 4, 30, "1"),
    Setting(1_000, 4, 30, "3"),
    Setting(1_000, 8, 10, "1"),
    Setting(10_000, 4, 10, "0.1"),
    Setting(10_000, 32, 10, "0.1"),
    Setting(10_000, 32, 30, "0.3"),
    Setting(20_000, 16, 64, "0.25"),
    Setting(1_000, 2, 5, "1"),
    Setting(10_000, 4, 30, "1"),
    Setting(10_000, 8, 10, "1"),
)


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows in groups, of which the first is the smaller one."""

    rows: Floats
    owners: npt.NDArray[np.int64]
    middles: Floats

    def found(self, centres: Floats) -> npt.NDArray[np.int64]:
        """The centre of each group, or -1: the nearest, if nearer than half the way to the next group."""
        apart = np.linalg.norm(self.middles[:, None] - self.middles[None], axis=2)
        np.fill_diagonal(apart, np.inf)
        distances = np.linalg.norm(self.middles[:, None] - centres[None], axis=2)
        return np.where(distances.min(axis=1) < apart.min(axis=1) / 2, distances.argmin(axis=1), -1)


def groups(setting: Setting, lone: int, draw: np.random.Generator) -> Groups:
    middles = draw.uniform(0.15, 0.85, size=(setting.k, setting.columns))
    owners = draw.integers(1, setting.k, size=setting.size)
    owners[:lone] = 0
    rows = middles[owners] + draw.normal(scale=SPREAD, size=(setting.size, setting.columns))
    return Groups(np.clip(rows, 0.0, 1.0), owners, middles)


def compared(plan: Plan, made: Groups, result: Clustering) -> dict[str, object]:
    """Whether the smaller group was found, how many of the others, and how often the forecast noise held.

    Clients state twice the forecast noise: so many coordinates and sizes of the groups that were found
    should be within it of the exact mean and number of their records.
    """
    assert result.sizes is not None
    radii, found = np.array(result.details["clipping_radii"]), made.found(result.centres)
    places, sizes = [], []
    for group, centre in enumerate(found[1:], start=1):
        if centre >= 0:
            own = made.rows[made.owners == group]
            noise = plan.forecast["noise_per_radius"] * radii[centre]
            places.append(np.mean(np.abs(result.centres[centre] - own.mean(axis=0)) < 2 * noise))
            sizes.append(abs(result.sizes[centre] - len(own)) < 2 * plan.forecast["size_noise"])
    return {
        "found": int(found[0] >= 0),
        "others": f"{np.mean(found[1:] >= 0):.3f}",
        "places": f"{np.mean(places):.3f}" if places else "",
        "sizes": f"{np.mean(sizes):.3f}" if sizes else "",
    }


def measured(setting: Setting, factor: float, seed: int) -> dict[str, object] | None:
    """One run; nothing where the smaller group would have most of the records."""
    plan = setting.plan()
    lone = round(factor * plan.forecast["smallest_cluster"])
    if 2 * lone > setting.size:
        return None
    made = groups(setting, lone, np.random.default_rng(seed))
    result = registry.run(plan, ArraySource(setting.domain, made.rows))
    return {"setting": setting.label, "factor": factor, "seed": seed, **compared(plan, made, result)}


def summarise(runs: list[dict[str, str]]) -> list[dict[str, object]]:
    """A line for each setting that has runs."""
    by_setting: dict[str, list[dict[str, str]]] = defaultdict(list)
    for run in runs:
        by_setting[run["setting"]].append(run)
    lines: list[dict[str, object]] = []
    for setting in SETTINGS:
        own = by_setting[setting.label]
        if not own:
            continue
        plan = setting.plan()
        line: dict[str, object] = {
            "rows": f"{setting.size:,} x {setting.columns}",
            "k": setting.k,
            "epsilon": setting.epsilon,
            "plan": _kind_of(plan),
            "average": round(setting.size / setting.k),
            "smallest": round(plan.forecast["smallest_cluster"]),
        }
        for factor in FACTORS:
            hits = [int(run["found"]) for run in own if float(run["factor"]) == factor]
            line[f"x {factor:g}"] = f"{sum(hits)} of {len(hits)}" if hits else ""
        for name in ("others", "places", "sizes"):
            line[name] = f"{np.mean([float(run[name]) for run in own if run[name]]):.2f}"
        lines.append(line)
    return lines


def _kind_of(plan: Plan) -> str:
    if "frequencies" in plan.parameters:
        return "sketch"
    return "tree" if "few_records" in plan.parameters else "exploring"


def main(
    runs: Annotated[int, typer.Option(help="Runs of each setting and size of the smaller group.")] = 20,
    first: Annotated[int, typer.Option(help="Seed of the first dataset.")] = 1000,
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
    reprint: Annotated[bool, typer.Option(help="Only print what the CSV file holds.")] = False,
) -> None:
    """Print how often groups of a forecast size are found, and how often the forecast noise holds."""
    path = results / "forecasts.csv"
    if not reprint:
        rows: list[dict[str, Any]] = []
        for seed in range(first, first + runs):
            for setting in SETTINGS:
                for factor in FACTORS:
                    if (row := measured(setting, factor, seed)) is not None:
                        rows.append(row)
            write_csv(path, rows)  # a long campaign that is stopped keeps what it has
    print_table("what plans forecast, and what happens", summarise(read_csv(path)))
