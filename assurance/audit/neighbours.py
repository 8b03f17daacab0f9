"""Generated pairs of neighbours for replays: every algorithm, objective, kind of records and guarantee.

`python -m assurance audit replays --count 5000` replays so many pairs and prints how many there were of each.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from assurance.audit.audits import forget, light
from assurance.audit.probes import Neighbours
from assurance.audit.replays import Report, replay
from core.algorithms import registry
from core.algorithms.papers.base import SiteAlgorithm
from core.algorithms.summit.axes import MOST_AXES
from core.data import (
    ArraySource,
    Boolean,
    Category,
    Column,
    DataSource,
    Date,
    Dense,
    Geometry,
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
from core.errors import InvalidRequest
from core.plan import KRange, Plan, Request
from core.privacy import Budget
from core.questions import registry as questions
from core.questions.base import Question

__all__ = ["KINDS_OF_JOBS", "WIDTHS", "Pair", "pair", "replayed"]

WIDTHS = (1, 2, 3, 5, 12, 40, 128, 200, 300)
#: Cells of a uniform grid grow with the power of the columns.
_MOST_COLUMNS = {"grid": 3, **dict.fromkeys(questions.names(), 40)}

_TREES: dict[str, Any] = {"trees": 1, "depth": 2, "swaps": 2, "candidates": 8}
_COVER: dict[str, Any] = {"rounds": 2, "growth": 4.0, "span": 4.0}
#: Options that keep runs short, one set of them for each run.
_OPTIONS: dict[str, tuple[dict[str, Any], ...]] = {
    "summit": ({},),
    "balcan": ({**_TREES, "rounds": 1}, {**_TREES, "trials": 2, "rounds": 0}),
    "balcan-median": ({**_TREES, "rounds": 1}, {**_TREES, "rounds": 1, "recovery": "net"}),
    "balcan-sparse": ({**_TREES, "rounds": 1, "nonzeros": 2, "columns": 2},),
    "gupta": ({"swaps": 2},),
    "jones": ({"rounds": 2, "growth": 8.0}, {"rounds": 2, "growth": 8.0, "accounting": "approximate"}),
    "jones-euclidean": (_COVER, {**_COVER, "candidates": "hashing"}, {**_COVER, "accounting": "approximate"}),
    "chaturvedi": (_COVER, {**_COVER, "accounting": "approximate"}),
    "sulq": ({"rounds": 2}, {"rounds": 2, "clip": 0.3}),
    "grid": ({"cells": 3},),
    "profile": ({}, {"noise": "gaussian", "bins": 3}),
    "explain": ({"picks": 1}, {"picks": 2, "bins": 3}),
    "table": ({}, {"bins": 100}),
    "quantiles": ({},),
    "summary": ({},),
    "compare": ({},),
}

#: How kinds of records are asked for: tables also with ranges that are measured, some for every k.
_ASKED = {"table": ("table", "scaled table")}
_OPEN_K = ("dense, open k", "table, open k")
#: Records that are stored in wider bounds than those of the plan.
_NARROWED = ("dense, working bounds", "table, working bounds")
#: With public rows, which stand for axes of many columns.
_PUBLIC = "dense, public rows"
#: Declared to be so few that the plan is one for few records; from three columns on, with a Fourier sketch.
_FEW, _FEW_WIDTHS = "dense, few records", (1, 2, 3, 4, 5, 12)


def _kinds(name: str, objective: str) -> list[str]:
    """The kinds of records of an algorithm, and how they are asked for."""
    algorithm = registry.get(name)
    found = [kind for domain in algorithm.domains for kind in _ASKED.get(domain, (domain,))]
    if "dense" in algorithm.domains and not isinstance(algorithm, SiteAlgorithm):
        found.append(_NARROWED[0])  # sites lie in declared bounds
    return [*found, _NARROWED[1], *_OPEN_K] if (name, objective) == ("summit", "means") else found


#: Algorithm, objective, kind of records, guarantee.
KINDS_OF_JOBS = [
    (name, objective, kind, guarantee)
    for name in registry.names()
    for objective in registry.get(name).objectives
    for kind in _kinds(name, objective)
    for guarantee in ("pure", "approximate")
    if registry.get(name).guarantee in (guarantee, "either")
]
KINDS_OF_JOBS += [("summit", "means", kind, "approximate") for kind in (_FEW, _PUBLIC)]
KINDS_OF_JOBS += [
    (name, "", kind, guarantee)
    for name in questions.names()
    for kind in ("dense", "table", *_NARROWED)
    for guarantee in ("pure", "approximate")
]


@dataclass(frozen=True, eq=False)
class Pair:
    """Neighbours with a plan, and which of them is recorded."""

    name: str
    kind: str
    plan: Plan
    neighbours: Neighbours
    larger: bool


def pair(number: int, width: int | None = None) -> Pair:
    """The pair of that number; each kind of job comes round in turn."""
    name, objective, kind, guarantee = KINDS_OF_JOBS[number % len(KINDS_OF_JOBS)]
    draw = np.random.default_rng(number)
    if width is None:
        least = MOST_AXES + 1 if kind == _PUBLIC else 1
        widths = _FEW_WIDTHS if kind == _FEW else WIDTHS
        fitting = [w for w in widths if least <= w <= _MOST_COLUMNS.get(name, 300)]
        width = int(draw.choice(fitting))
    people, k = int(draw.choice([1, 1, 2, 3])), int(draw.integers(1, 5))
    stored = _domain(kind, width, people, draw)
    domain = _narrower(stored) if kind in _NARROWED else stored
    epsilon = str(draw.choice(["0.3", "1", "4", "12"]))
    budget = Budget.of(epsilon, "0" if guarantee == "pure" else "0.00001")
    options = dict(_OPTIONS[name][number // len(KINDS_OF_JOBS) % len(_OPTIONS[name])])
    both, extra = _rows(stored, int(draw.integers(0, 40)), draw), _person(stored, people, draw)
    if name in questions.names():
        plan = questions.plan(domain, _question(name, domain, budget, options, k, draw))
    else:
        request = _clustering(number, domain, budget, options, k, draw)
        if kind == _PUBLIC:
            request = replace(request, public_rows=read_public_rows(domain, _public_rows(both, draw)))
        plan = registry.plan(domain, request)
    sources = [_source(stored, rows) for rows in (both, np.concatenate([both, extra]))]
    if isinstance(domain, Dense | Table) and domain is not stored:
        sources = [NarrowedSource(source, domain) for source in sources]
    found = Neighbours(*sources)
    width = plan.domain.dimension
    title = f"{number}: {name}, {objective}, {kind}, {guarantee}, {width} wide, {people} rows"
    return Pair(title, kind, plan, found, bool(draw.integers(2)))


def _clustering(
    number: int, domain: Stored, budget: Budget, options: dict[str, Any], k: int, draw: np.random.Generator
) -> Request:
    name, objective, kind, guarantee = KINDS_OF_JOBS[number % len(KINDS_OF_JOBS)]
    if guarantee == "pure":
        options.pop("accounting", None)
    if isinstance(registry.get(name), SiteAlgorithm):
        options["sites"] = _sites(domain, draw)
    if name == "balcan-sparse":
        options["columns"] = min(options["columns"], domain.dimension)
    asked = KRange(1, k) if kind in _OPEN_K else k
    scaling = "private" if kind == "scaled table" else "declared"
    return Request(asked, budget, objective, name, options, scaling=scaling)


def _question(
    name: str, domain: Stored, budget: Budget, options: dict[str, Any], k: int, draw: np.random.Generator
) -> Question:
    """A question about all columns (a table: about one) and about released centres anywhere."""
    kind = questions.get(name)
    inside = Geometry.of(domain) if isinstance(domain, Table) else domain
    assert isinstance(inside, Dense | Geometry)
    low, high = (np.full(inside.dimension, sign * 9000.0) for sign in (-1, 1))
    drawn = [inside.decode(draw.uniform(low, high, (k, len(low)))) for _ in range(kind.clusterings)]
    partitions = tuple(Partition.of(domain, centres) for centres in drawn)
    columns = tuple(domain.columns[:1]) if name in ("table", "quantiles") else None
    return Question(name, budget, columns, partitions, options)


def _domain(kind: str, width: int, people: int, draw: np.random.Generator) -> Stored:
    if "table" in kind:
        return Table(declared=_columns(width, draw), size=2000, rows_per_person=people)
    if kind == "ids":
        return Ids(count=7, size=2000, rows_per_person=people)
    if kind == "sparse":
        return Sparse(dimension=max(3, width), radius=1.0, size=2000, rows_per_person=people)
    if kind == _FEW:
        return Dense.box(0, 1, dimension=width, size=100, rows_per_person=people)
    if kind in _NARROWED or draw.integers(2):
        return Dense.box(0, 1, dimension=width, size=2000, rows_per_person=people)
    return Dense.ball(1.0, dimension=width, size=2000, rows_per_person=people)


def _narrower(stored: Stored) -> Dense | Table:
    """The same columns, every other number with half the bounds."""
    if isinstance(stored, Table):
        return narrowed(stored, {"n0": (-0.5, 0.5)})
    return narrowed(stored, dict.fromkeys(stored.columns[::2], (0.25, 0.75)))


def _columns(width: int, draw: np.random.Generator) -> tuple[Column, ...]:
    """Columns of all kinds with so many coordinates together; at least one of them is a number."""
    found: list[Column] = [Number(name="n0", low=-1, high=1)]
    left = width - 1
    while left:
        name, weight = f"c{left}", float(draw.choice([0.5, 1.0, 3.0]))
        match int(draw.integers(4)):
            case 0:
                found.append(
                    Number(name=name, low=0, high=int(draw.choice([1, 9])), whole=True, weight=weight)
                )
            case 1:
                found.append(Date(name=name, low="1970-01-01", high="2030-12-31", weight=weight))
            case 2:
                found.append(Boolean(name=name, weight=weight))
            case _ if left > 1:
                levels = tuple(f"l{i}" for i in range(int(draw.integers(2, min(left, 12) + 1))))
                gaps = "level" if len(levels) > 2 and draw.integers(2) else "refuse"
                named = levels[:-1] if gaps == "level" else levels
                found.append(Category(name=name, levels=named, weight=weight, missing=gaps))
        left = width - sum(column.codes if isinstance(column, Category) else 1 for column in found)
    return tuple(found)


def _rows(domain: Stored, count: int, draw: np.random.Generator) -> Any:
    """Records in a few heaps, some of them on the edge or beyond it."""
    if isinstance(domain, Ids):
        return draw.integers(domain.count, size=count)
    if isinstance(domain, Table):
        heaps = np.array([draw.integers(column.codes, size=3) for column in domain.stored]).T
        return heaps[draw.integers(3, size=count)] if draw.integers(2) else _codes(domain, count, draw)
    heaps = draw.uniform(-1.2, 1.2, size=(3, domain.dimension))
    spread = float(draw.choice([0.0, 0.02, 0.5]))
    rows = heaps[draw.integers(3, size=count)] + draw.normal(size=(count, domain.dimension)) * spread
    if isinstance(domain, Sparse):
        rows = np.where(draw.uniform(size=rows.shape) < 3 / domain.dimension, rows, 0.0)
    return rows


def _public_rows(rows: Any, draw: np.random.Generator) -> Any:
    """Public rows of the same kind as these records, or of another."""
    away = 1.0 - rows if draw.integers(4) == 0 else rows
    some = np.concatenate([away, np.zeros((1, rows.shape[1]))])
    return some[draw.integers(len(some), size=60)] + draw.normal(size=(60, rows.shape[1])) * 0.02


def _codes(table: Table, count: int, draw: np.random.Generator) -> Any:
    """Any codes that the columns have."""
    return np.array([draw.integers(column.codes, size=count) for column in table.stored]).T


def _person(domain: Stored, rows: int, draw: np.random.Generator) -> Any:
    """The records of one person: far out, in the middle, anywhere, along one axis, or nearly so."""
    if isinstance(domain, Ids):
        return draw.integers(domain.count, size=rows)
    if isinstance(domain, Table):
        last = np.array([column.codes - 1 for column in domain.stored])
        ends = {"low": 0 * last, "high": last, "beyond": 0 * last + 65_535}
        where = str(draw.choice(["anywhere", *ends]))
        return _codes(domain, rows, draw) if where == "anywhere" else np.tile(ends[where], (rows, 1))
    found = np.zeros((rows, domain.dimension))
    axis = int(draw.integers(domain.dimension))
    match str(draw.choice(["corner", "middle", "anywhere", "axis", "beyond", "opposite"])):
        case "corner":
            found[:] = 1.0
        case "anywhere":
            found[:] = draw.uniform(-1, 1, size=found.shape)
        case "axis":
            found[:, axis] = 1.0
        case "beyond":
            found[:, axis] = 1e12
        case "opposite":
            found[:, axis] = np.where(np.arange(rows) % 2, 1.0, -1.0)
    return found


def _source(domain: Stored, rows: Any) -> DataSource:
    if isinstance(domain, Table):
        return TableSource.of_codes(domain, rows)
    if isinstance(domain, Sparse):
        return SparseSource(domain, sp.csr_array(rows.reshape(-1, domain.dimension)))
    return ArraySource(domain, rows)


def _sites(domain: Stored, draw: np.random.Generator) -> dict[str, Any]:
    if isinstance(domain, Ids):
        places = draw.uniform(size=(domain.count, 2))
        away = np.linalg.norm(places[:, None] - places, axis=2)
        return {"kind": "distances", "matrix": ((away + away.T) / 2).tolist()}
    assert isinstance(domain, Dense)
    middle = domain.decode(np.zeros((1, domain.dimension)))[0]
    step = domain.unit_lengths() * (5000 / domain.dimension**0.5)
    return {"kind": "coordinates", "points": [(middle + i * step).tolist() for i in range(-4, 5)]}


def replayed(number: int, width: int | None = None) -> tuple[Pair, Report] | None:
    """Replay a pair; None where no plan is possible at its epsilon."""
    try:
        made = pair(number, width)
    except InvalidRequest:
        return None
    with light():
        forget()
        report = replay(made.plan, made.neighbours, made.larger, number)
    return made, report


def main(arguments: list[str]) -> int:
    """Replay generated pairs and print how many of each kind there were."""
    parser = argparse.ArgumentParser(prog="python -m assurance audit replays", description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="pairs of neighbours")
    parser.add_argument("--first", type=int, default=0, help="number of the first pair, of those chosen")
    parser.add_argument("--only", default="", help="kinds of jobs whose names contain this")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long")
    given = parser.parse_args(arguments)
    until = time.monotonic() + 60 * given.minutes
    pairs, seen, shares = Counter[str](), Counter[str](), defaultdict[str, float](float)
    measured = differing = refused = 0
    chosen = [place for place, kind in enumerate(KINDS_OF_JOBS) if given.only in ", ".join(kind)]
    for turn in range(given.first, given.first + given.count):
        if not chosen or time.monotonic() > until:
            break
        number = turn // len(chosen) * len(KINDS_OF_JOBS) + chosen[turn % len(chosen)]
        found = replayed(number)
        if found is None:
            refused += 1
            continue
        made, report = found
        plan = made.plan
        kind = f"{plan.algorithm}, {plan.objective}, {made.kind}"
        pairs[kind] += 1
        seen["several rows per person"] += plan.domain.rows_per_person > 1
        seen["128 and more columns"] += plan.domain.dimension >= 128
        seen["one column"] += plan.domain.dimension == 1
        measured, differing = measured + report.measurements, differing + report.differing
        shares[kind] = max(shares[kind], report.share)
    lines = [f"| {kind} | {count:,} | {shares[kind]:.0%} |" for kind, count in sorted(pairs.items())]
    head = "| algorithm, objective, records | pairs | largest exact loss along a path, of what is charged |"
    sys.stdout.write("\n".join([head, "|---|---|---|", *lines, ""]))
    sys.stdout.write(
        f"{sum(pairs.values()):,} pairs replayed ({refused} had no plan at their epsilon), as declared:\n"
        f"{measured:,} measurements, {differing:,} of them differing; {dict(seen)}\n"
    )
    return 0
