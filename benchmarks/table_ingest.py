"""Uploads of tables beside uploads of numbers: `python -m benchmarks table_ingest`.

The same number of rows goes over HTTP to a real server on a real PostgreSQL, in turns: eight numbers inside a
box, and a table of four numbers, three categories and a date. Both ratios, of time and of processor time, are
medians over pairs that shared a moment of the machine; memory is what the API process grows by at most.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import psutil
import pyarrow as pa
import typer
from pyarrow import csv

from benchmarks.harness.postgres import Server
from benchmarks.harness.processes import server
from benchmarks.ingest import Curator
from benchmarks.measuring import RESULTS, print_table, write_csv

__all__ = ["main"]

_NUMBERS = [f"n{place}" for place in range(8)]
_LEVELS = [[f"level{i}" for i in range(count)] for count in (2, 12, 200)]
_COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "kind": "number", "low": 0, "high": 120, "whole": True},
    {"name": "cost", "kind": "number", "low": 1, "high": 1_000_000, "log": True},
    {"name": "bmi", "kind": "number", "low": 10, "high": 80, "missing": "fill", "fill": 25},
    {"name": "hours", "kind": "number", "low": 0, "high": 24},
    *({"name": f"c{i}", "kind": "category", "levels": levels} for i, levels in enumerate(_LEVELS)),
    {"name": "visited", "kind": "date", "low": "2020-01-01", "high": "2029-12-31"},
]
_BAR = 3.0
#: Processor time is counted in ticks of this many seconds.
_TICK = 0.01
_MEBIBYTE = 1 << 20


@dataclass
class Watched:
    """What an upload took: seconds by the clock and of processors, and the growth of the API process."""

    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    growth: float = 0.0

    @contextmanager
    def turn(self, process: psutil.Process) -> Iterator[None]:
        """Watch one upload."""
        before, used, start = process.memory_info().rss, _used(process), time.perf_counter()
        ended = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(process, before, ended))
        watcher.start()
        try:
            yield
        finally:
            self.seconds.append(time.perf_counter() - start)
            self.processor.append(_used(process) - used)
            ended.set()
            watcher.join()

    def _watch(self, process: psutil.Process, before: int, ended: threading.Event) -> None:
        while not ended.wait(0.02):
            self.growth = max(self.growth, (process.memory_info().rss - before) / _MEBIBYTE)


def _used(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _write(folder: Path, rows: int) -> tuple[Path, Path]:
    """A file of numbers and one of a table, as CSV."""
    draw = np.random.default_rng(18)
    numbers = {name: draw.uniform(-1, 1, rows).round(7) for name in _NUMBERS}
    days = np.datetime64("2020-01-01") + draw.integers(0, 3650, rows)
    bmi = pa.array(draw.normal(27, 4, rows).round(1), mask=draw.random(rows) < 0.05)
    table = {
        "age": draw.integers(0, 120, rows),
        "cost": np.exp(draw.normal(7, 1.5, rows)).round(2),
        "bmi": bmi,
        "hours": draw.uniform(0, 24, rows).round(3),
        **{
            f"c{i}": np.array(levels)[draw.integers(0, len(levels), rows)] for i, levels in enumerate(_LEVELS)
        },
        "visited": days.astype(str),
    }
    paths = folder / "numbers.csv", folder / "table.csv"
    for path, columns in zip(paths, (numbers, table), strict=True):
        csv.write_csv(pa.table(columns), path, csv.WriteOptions(quoting_style="none"))
    return paths


def main(
    rows: Annotated[int, typer.Option(help="Rows of both files.")] = 1_000_000,
    repeats: Annotated[int, typer.Option(help="Pairs of uploads.")] = 3,
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
) -> None:
    """Measure uploads of a table against uploads of eight numbers; prints a table and keeps it as CSV."""
    declared: dict[str, dict[str, Any]] = {
        "eight numbers": {"columns": _NUMBERS, "bounds": {"box": {"low": -1, "high": 1}}},
        "four numbers, three categories, a date": {"table": _COLUMNS},
    }
    watched = {name: Watched() for name in declared}
    postgres = Server(durable=True)
    try:
        with tempfile.TemporaryDirectory(prefix="cairn-ingest-") as folder:
            paths = dict(zip(declared, _write(Path(folder), rows), strict=True))
            command = ("serve", "--workers", "0")
            url = postgres.url(postgres.create())
            with server(url, Path(folder), command=command, log_level="warning") as running:
                curator, process = Curator(running), psutil.Process(running.process.pid)
                for _ in range(repeats):
                    for name, facts in declared.items():
                        made = curator.create(rows, **facts)
                        with watched[name].turn(process):
                            curator.upload(made, paths[name], rows)
            lines = [
                {
                    "rows": rows,
                    "columns": name,
                    "megabytes": round(paths[name].stat().st_size / 1e6, 1),
                    "seconds": round(median(found.seconds), 2),
                    "processor_seconds": round(median(found.processor), 2),
                    "growth_mebibytes": round(found.growth),
                }
                for name, found in watched.items()
            ]
    finally:
        postgres.close()
    numbers, table = watched.values()
    for line, found in zip(lines, (numbers, table), strict=True):
        for key in ("seconds", "processor"):
            pairs = zip(getattr(found, key), getattr(numbers, key), strict=True)
            line[f"ratio_of_{key}"] = round(median(a / max(b, _TICK) for a, b in pairs), 2)
        line["bar"] = f"at most {_BAR}"
    write_csv(results / "table_ingest.csv", lines)
    print_table("uploads of tables: HTTP to sealed dataset, PostgreSQL", lines)
