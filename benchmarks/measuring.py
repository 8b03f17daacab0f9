"""Time and memory of a piece of work, and tables and CSV files of what was measured."""

from __future__ import annotations

import csv
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

__all__ = ["Lines", "Usage", "print_table", "read_csv", "side_by_side", "usage", "write_csv"]

RESULTS = Path(__file__).parent / "results"
_STATUS = Path("/proc/self/status")


@dataclass
class Usage:
    """What a piece of work took: seconds by the clock and of all cores, and MiB beyond what was held before.

    Memory is anonymous memory: pages of mapped files can be dropped at any time and are not counted.
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    extra_mib: float = float("nan")


def _anonymous_mib() -> float:
    """Private memory of this process; not a number where the system does not tell."""
    if not _STATUS.exists():
        return float("nan")
    for line in _STATUS.read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return float("nan")


@contextmanager
def usage() -> Iterator[Usage]:
    """Measures the block; memory is looked at every few milliseconds."""
    measured = Usage()
    held = _anonymous_mib()
    highest = [held]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            highest[0] = max(highest[0], _anonymous_mib())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    start, cpu = time.perf_counter(), time.process_time()
    try:
        yield measured
    finally:
        measured.seconds = time.perf_counter() - start
        measured.cpu_seconds = time.process_time() - cpu
        done.set()
        watcher.join()
        measured.extra_mib = max(highest[0], _anonymous_mib()) - held


def side_by_side(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int
) -> tuple[Usage, Usage]:
    """The fastest of alternating runs of each: what else the machine does hits both alike."""
    runs: tuple[list[Usage], list[Usage]] = ([], [])
    for _ in range(repeats):
        for work, kept in zip((ours, theirs), runs, strict=True):
            with usage() as measured:
                work()
            kept.append(measured)
    best = [
        Usage(
            min(run.seconds for run in kept),
            min(run.cpu_seconds for run in kept),
            max(run.extra_mib for run in kept),
        )
        for kept in runs
    ]
    return best[0], best[1]


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")  # whoever reads or stops meanwhile finds a whole file
    with unfinished.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    unfinished.replace(path)


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class Lines:
    """The runs of a campaign, one line of a CSV file each; a run replaces the line of the same key."""

    def __init__(self, path: Path, key: Sequence[str]) -> None:
        self._path, self._key = path, key
        kept = read_csv(path) if path.exists() else []
        self._lines = {tuple(line[name] for name in key): line for line in kept}

    @property
    def rows(self) -> list[dict[str, str]]:
        """All lines, as they are in the file."""
        return list(self._lines.values())

    def add(self, lines: Iterable[Mapping[str, object]]) -> None:
        """Keep each line as soon as it is there: a campaign that is stopped keeps what it has."""
        for line in lines:
            written = {name: str(value) for name, value in line.items()}
            self._lines[tuple(written[name] for name in self._key)] = written
            write_csv(self._path, self.rows)


def print_table(title: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Rows of equal keys as a table; numbers to the right."""
    table = Table(title=title)
    for name in rows[0]:
        table.add_column(name, justify="left" if isinstance(rows[0][name], str) else "right")
    for row in rows:
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row.values()))
    Console(width=140).print(table)
