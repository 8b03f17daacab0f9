"""Weights of columns in mixed tables: `python -m benchmarks mixed_tables`.

Tables of numbers, categories, booleans and dates with known groups are clustered with fair weights, with a
weight of one for every column, and without privacy on columns that are scaled to the same variance. Figures
are adjusted Rand indices against the known groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks.measuring import print_table
from benchmarks.tables import codes_of, labels_of
from core import Budget, Request, make_plan, run_plan
from core.data import Boolean, Category, Date, Geometry, Number, Table, TableSource

__all__ = ["HELD_OUT", "TABLES", "Mixed", "main"]

_REGIONS = ("north", "south", "east", "west")
_WARDS = ("cardiology", "oncology", "paediatrics", "surgery", "geriatrics", "other")


@dataclass(frozen=True, eq=False)
class Mixed:
    """A table with its values, and the group of each record."""

    columns: tuple[Any, ...]
    values: Mapping[str, Any]
    group: Any

    @property
    def k(self) -> int:
        return int(self.group.max()) + 1

    def scaled(self) -> Any:
        """Numbers, and a coordinate for each level, such that the variance of each column is one."""
        parts = []
        for column in self.columns:
            values = np.asarray(self.values[column.name])
            if isinstance(column, Category):
                part = np.eye(len(column.levels))[[column.levels.index(each) for each in values]]
            else:
                # Dates in days, and the logarithms of numbers where ratios matter.
                part = values.astype("datetime64[D]").astype(float) if values.dtype.kind == "M" else values
                part = np.asarray(part, dtype=float)[:, None]
                part = np.log(part) if getattr(column, "log", False) else part
            parts.append((part - part.mean(axis=0)) / np.sqrt(max(part.var(axis=0).sum(), 1e-12)))
        return np.concatenate(parts, axis=1)


def _level(draw: np.random.Generator, group: Any, levels: tuple[str, ...], own: float) -> Any:
    """A level of its own for each group in this share of its records, any level elsewhere."""
    anything = draw.integers(0, len(levels), len(group))
    return np.array(levels)[np.where(draw.random(len(group)) < own, group % len(levels), anything)]


def _dates(draw: np.random.Generator, rows: int) -> Any:
    return np.datetime64("2024-01-01") + draw.integers(0, 366, rows).astype("timedelta64[D]")


_SEX = Category(name="sex", levels=("female", "male"))
_REGION = Category(name="region", levels=_REGIONS)
_SMOKER = Boolean(name="smoker")
_ADMITTED = Date(name="admitted", low="2024-01-01", high="2024-12-31")
_AGE = Number(name="age", low=0, high=120, whole=True)


def _beside(draw: np.random.Generator, rows: int) -> dict[str, Any]:
    """Columns that say nothing of the groups."""
    return {
        "sex": np.array(_SEX.levels)[draw.integers(0, 2, rows)],
        "region": np.array(_REGIONS)[draw.integers(0, 4, rows)],
        "smoker": draw.random(rows) < 0.25,
        "admitted": _dates(draw, rows),
    }


def _stays(draw: np.random.Generator, rows: int) -> Mixed:
    """Three groups in four numbers; sex, region, smoking and the date say nothing."""
    group = draw.choice(3, rows, p=[0.5, 0.3, 0.2])
    values = {
        "age": np.clip(draw.normal(np.array([30, 60, 82])[group], 8), 0, 120).round(),
        "bmi": np.clip(draw.normal(np.array([23, 31, 25])[group], 2.5), 10, 60),
        "cost": np.clip(np.exp(draw.normal(np.array([6, 9, 8])[group], 0.6)), 10, 1e6),
        "visits": np.clip(draw.poisson(np.array([1, 6, 12])[group]), 0, 40),
        **_beside(draw, rows),
    }
    numbers = (
        _AGE,
        Number(name="bmi", low=10, high=60),
        Number(name="cost", low=10, high=1_000_000, log=True),
        Number(name="visits", low=0, high=40, whole=True),
    )
    return Mixed((*numbers, _SEX, _REGION, _SMOKER, _ADMITTED), values, group)


def _wards(draw: np.random.Generator, rows: int) -> Mixed:
    """Four groups in a ward, an age and a length of stay together."""
    group = draw.integers(0, 4, rows)
    values = {
        "age": np.clip(draw.normal(np.array([8, 45, 65, 83])[group], 7), 0, 120).round(),
        "stay": np.clip(draw.gamma(2.0, np.array([1, 2, 3, 6])[group]), 0, 60),
        "ward": _level(draw, group, _WARDS, 0.8),
        **_beside(draw, rows),
    }
    ward = Category(name="ward", levels=_WARDS)
    return Mixed((_AGE, Number(name="stay", low=0, high=60), ward, _SEX, _SMOKER), values, group)


def _surveys(draw: np.random.Generator, rows: int) -> Mixed:
    """Three groups in six questions of five answers each; two numbers say nothing."""
    group = draw.integers(0, 3, rows)
    answers = ("never", "seldom", "sometimes", "often", "always")
    questions = tuple(Category(name=f"q{place}", levels=answers) for place in range(6))
    values = {each.name: _level(draw, group + place, answers, 0.7) for place, each in enumerate(questions)}
    values |= {
        "age": np.clip(draw.normal(45, 15, rows), 0, 120).round(),
        "income": np.clip(np.exp(draw.normal(10, 0.5, rows)), 1e3, 1e6),
    }
    income = Number(name="income", low=1_000, high=1_000_000, log=True)
    return Mixed((*questions, _AGE, income), values, group)


def _symptoms(draw: np.random.Generator, rows: int) -> Mixed:
    """Three groups in eight symptoms and two laboratory values."""
    group = draw.choice(3, rows, p=[0.6, 0.25, 0.15])
    rates = np.array([[0.1] * 8, [0.8] * 4 + [0.1] * 4, [0.1] * 4 + [0.8] * 4])[group]
    values = {f"s{place}": draw.random(rows) < rates[:, place] for place in range(8)}
    values |= {
        "crp": np.clip(np.exp(draw.normal(np.array([1, 4, 2.5])[group], 0.7)), 0.1, 1_000),
        "temperature": np.clip(draw.normal(np.array([36.8, 38.9, 37.5])[group], 0.4), 34, 43),
        "sex": np.array(_SEX.levels)[draw.integers(0, 2, rows)],
    }
    numbers = (
        Number(name="crp", low=0.1, high=1_000, log=True),
        Number(name="temperature", low=34, high=43),
    )
    return Mixed((*(Boolean(name=f"s{place}") for place in range(8)), *numbers, _SEX), values, group)


def _customers(draw: np.random.Generator, rows: int) -> Mixed:
    """Four groups in three numbers within loose bounds, a channel that half follows them, and a region."""
    group = draw.integers(0, 4, rows)
    channels = ("web", "shop", "phone", "agent")
    values = {
        "orders": np.clip(draw.poisson(np.array([3, 20, 8, 45])[group]), 0, 200),
        "basket": np.clip(draw.normal(np.array([20, 35, 90, 60])[group], 9), 0, 300),
        "years": np.clip(draw.normal(np.array([2, 8, 14, 5])[group], 1.5), 0, 40),
        "channel": _level(draw, group, channels, 0.5),
        **_beside(draw, rows),
    }
    numbers = (
        Number(name="orders", low=0, high=200, whole=True),
        Number(name="basket", low=0, high=300),
        Number(name="years", low=0, high=40),
    )
    channel = Category(name="channel", levels=channels)
    return Mixed((*numbers, channel, _REGION, _SEX), values, group)


def _accounts(draw: np.random.Generator, rows: int) -> Mixed:
    """Four groups in skewed balances, a date of opening and two products; a postcode area says nothing."""
    group = draw.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    areas = tuple(f"area {place}" for place in range(12))
    opened = np.array([2003, 2010, 2017, 2022])[group] + draw.normal(0, 1.5, rows)
    days = np.clip((opened - 2000) * 365.25, 0, 365 * 25).astype(int)
    values = {
        "balance": np.clip(np.exp(draw.normal(np.array([6, 9, 7, 11])[group], 0.8)), 1, 1e7),
        "transfers": np.clip(draw.poisson(np.array([4, 15, 40, 8])[group]), 0, 150),
        "opened": np.datetime64("2000-01-01") + days.astype("timedelta64[D]"),
        "card": _level(draw, group, ("none", "debit", "credit", "gold"), 0.75),
        "online": draw.random(rows) < np.array([0.2, 0.5, 0.95, 0.6])[group],
        "area": np.array(areas)[draw.integers(0, 12, rows)],
    }
    columns = (
        Number(name="balance", low=1, high=10_000_000, log=True),
        Number(name="transfers", low=0, high=150, whole=True),
        Date(name="opened", low="2000-01-01", high="2024-12-31"),
        Category(name="card", levels=("none", "debit", "credit", "gold")),
        Boolean(name="online"),
        Category(name="area", levels=areas),
    )
    return Mixed(columns, values, group)


def _sensors(draw: np.random.Generator, rows: int) -> Mixed:
    """Five groups in six numbers, two in tight bounds and two in loose ones; three flags say nothing."""
    group = draw.integers(0, 5, rows)
    middles = draw.uniform(0.15, 0.85, (6, 5))
    widths = (1.0, 1.0, 2.0, 2.0, 5.0, 5.0)  # of the bounds, over the range of the values
    values: dict[str, Any] = {
        f"n{place}": np.clip(middles[place][group] + draw.normal(0, 0.07, rows), 0, 1)
        for place in range(len(widths))
    }
    values |= {f"f{place}": draw.random(rows) < 0.4 for place in range(3)}
    numbers = (Number(name=f"n{place}", low=0, high=width) for place, width in enumerate(widths))
    return Mixed((*numbers, *(Boolean(name=f"f{place}") for place in range(3))), values, group)


def _households(draw: np.random.Generator, rows: int) -> Mixed:
    """Three groups in two categories, a count and an income; four categories of many levels say nothing."""
    group = draw.choice(3, rows, p=[0.5, 0.35, 0.15])
    tenures, kinds = ("owner", "tenant", "social", "other"), ("single", "couple", "family", "shared", "other")
    others = {f"c{place}": tuple(f"l{level}" for level in range(8 + place)) for place in range(4)}
    values = {
        "tenure": _level(draw, group, tenures, 0.85),
        "kind": _level(draw, group + 1, kinds, 0.8),
        "members": np.clip(draw.poisson(np.array([0.5, 1.5, 3.5])[group]) + 1, 1, 12),
        "income": np.clip(np.exp(draw.normal(np.array([9.8, 10.6, 10.1])[group], 0.35)), 1e3, 1e6),
        **{name: np.array(levels)[draw.integers(0, len(levels), rows)] for name, levels in others.items()},
    }
    columns = (
        Category(name="tenure", levels=tenures),
        Category(name="kind", levels=kinds),
        Number(name="members", low=1, high=12, whole=True),
        Number(name="income", low=1_000, high=1_000_000, log=True),
        *(Category(name=name, levels=levels) for name, levels in others.items()),
    )
    return Mixed(columns, values, group)


#: Generated tables on which nothing was chosen, by their names.
HELD_OUT: dict[str, Callable[[np.random.Generator, int], Mixed]] = {
    "accounts": _accounts,
    "sensors": _sensors,
    "households": _households,
}
#: Generated tables on which the typical difference of numbers was chosen, by their names.
TABLES: dict[str, Callable[[np.random.Generator, int], Mixed]] = {
    "stays": _stays,
    "wards": _wards,
    "surveys": _surveys,
    "symptoms": _symptoms,
    "customers": _customers,
}


def _index(made: Mixed, weights: Mapping[str, float], epsilon: str) -> float:
    """Agreement of a clustering with the known groups."""
    table = Table(declared=made.columns, size=len(made.group))
    source = TableSource(table, made.values)
    budget = Budget.of(epsilon, "0.000001")
    found = run_plan(make_plan(table, Request(made.k, budget, weights=weights)), source)
    geometry = Geometry.of(table, None, weights)
    labels = labels_of(geometry, codes_of(source), geometry.encode_points(found.centres))
    return float(adjusted_rand_score(made.group, labels))


def _without_privacy(made: Mixed) -> float:
    labels = KMeans(made.k, n_init=5, random_state=0).fit_predict(made.scaled())
    return float(adjusted_rand_score(made.group, labels))


def main(
    runs: Annotated[int, typer.Option(help="tables of each kind", min=1)] = 9,
    rows: Annotated[int, typer.Option(help="records of a table", min=100)] = 20_000,
    epsilon: Annotated[str, typer.Option(help="epsilon of each clustering")] = "1",
) -> None:
    """Fair weights against a weight of one, and against k-means without privacy on scaled columns."""
    draw, lines = np.random.default_rng(37), []
    for name, make in {**TABLES, **HELD_OUT}.items():
        scores = []
        for _ in range(runs):
            made = make(draw, rows)
            fair = {column.name: column.fair_weight() for column in made.columns}
            one = dict.fromkeys(fair, 1.0)
            found = (_index(made, fair, epsilon), _index(made, one, epsilon), _without_privacy(made))
            scores.append(found)
        medians = np.median(scores, axis=0).round(3)
        figures = dict(zip(("fair", "one", "without privacy"), medians, strict=True))
        lines.append({"table": name, "held out": "yes" if name in HELD_OUT else "", **figures})
    print_table("Median adjusted Rand index against the known groups", lines)
