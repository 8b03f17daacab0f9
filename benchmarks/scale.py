"""What happens beyond memory and beyond one process: `python -m benchmarks scale`.

Jobs run as the service runs them: a dataset in a database, a worker process that claims, charges, streams
chunks and stores the result. Both sides of a ratio are measured in one run on one machine.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer

from benchmarks.growth import AXES, Model, Point, draw_growth, measure_point
from benchmarks.harness.postgres import Server
from benchmarks.measuring import RESULTS, print_table, read_csv, write_csv
from benchmarks.streaming import JobUsage, Library

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Jobs beyond memory and on a cluster; growth with n, d and k.")

Results = Annotated[Path, typer.Option(help="Folder of the CSV files and pictures.")]
Address = Annotated[str, typer.Option(help="A PostgreSQL address; default: an SQLite file.")]


def _row(what: str, value: float, unit: str, bar: str = "") -> dict[str, object]:
    return {"what": what, "value": f"{value:.4g}", "unit": unit, "bar": bar}


def _keep(name: str, rows: list[dict[str, object]], results: Path) -> None:
    write_csv(results / f"{name}.csv", rows)
    print_table(name, rows)


@app.command()
def memory(
    rows: Annotated[int, typer.Option(help="Rows of the large dataset.")] = 10_000_000,
    small: Annotated[int, typer.Option(help="Rows of the small one.")] = 1_000_000,
    repeats: Annotated[int, typer.Option(help="Jobs on each dataset; the fastest counts.")] = 2,
    database: Address = "",
    results: Results = RESULTS,
) -> None:
    """A job on more rows than a worker may hold, against one on fewer: time per row and peak memory."""
    taken: dict[int, list[JobUsage]] = {}
    with tempfile.TemporaryDirectory(prefix="cairn-scale-") as folder:
        library = Library(Path(folder), database)
        for count in (small, rows):
            name = library.add(count, 20)
            taken[count] = [library.run(name, 16, cache=f"cache{count}") for _ in range(repeats)]
        library.close()
    lines = []
    for count, runs in taken.items():
        what = f"summit, {count} x 20, k = 16"
        lines += [
            _row(f"{what}: first job, from the database", runs[0].seconds, "seconds"),
            _row(f"{what}: fastest job", min(run.seconds for run in runs), "seconds"),
            _row(f"{what}: fastest job, all cores", min(run.cpu_seconds for run in runs), "seconds"),
            _row(
                f"{what}: peak memory of the worker", max(run.peak_mib for run in runs), "MiB", "below 1024"
            ),
        ]

    def per_row(count: int, clock: bool) -> float:
        return min(run.seconds if clock else run.cpu_seconds for run in taken[count]) / count

    for clock, how in ((True, "by the clock"), (False, "all cores")):
        ratio = per_row(rows, clock) / per_row(small, clock)
        lines.append(_row(f"time per row, {rows} / {small}, {how}", ratio, "ratio", "at most 1.2"))
    _keep("scale-memory", lines, results)


@app.command()
def cluster(
    rows: Annotated[int, typer.Option(help="Rows of the dataset.")] = 30_000_000,
    width: Annotated[int, typer.Option(help="Columns of the dataset.")] = 10,
    workers: Annotated[int, typer.Option(help="Worker processes of the cluster.")] = 2,
    repeats: Annotated[int, typer.Option(help="Jobs on each side, after one that fills caches.")] = 2,
    own_postgres: Annotated[
        bool, typer.Option(help="Start a PostgreSQL for it, unless there is one.")
    ] = True,
    database: Address = "",
    results: Results = RESULTS,
) -> None:
    """The same job inline, with as many threads, and on a Dask cluster of this machine, alternating."""
    sides: dict[str, list[JobUsage]] = {"inline": [], "cluster": []}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cairn-scale-")))
        if own_postgres and not database:
            server = Server()
            stack.callback(server.close)
            database = server.url(server.create())
        library = Library(folder, database)
        stack.callback(library.close)
        name = library.add(rows, width)
        processes = stack.enter_context(_local_cluster(library, workers))
        for _ in range(repeats + 1):
            sides["inline"].append(library.run(name, 16, cache="inline"))
            before = _cluster_seconds(processes)
            usage = library.run(name, 16, cache="driver", cluster=processes.scheduler_address)
            spent = usage.cpu_seconds + _cluster_seconds(processes) - before
            sides["cluster"].append(replace(usage, cpu_seconds=spent))
    what = f"summit, {rows} x {width}, k = 16"
    lines = []
    for side, runs in sides.items():
        lines.append(_row(f"{what}, {side}: first job", runs[0].seconds, "seconds"))
        lines.append(_row(f"{what}, {side}: first job, all processes", runs[0].cpu_seconds, "cpu seconds"))
        lines.append(_row(f"{what}, {side}: fastest job", min(r.seconds for r in runs[1:]), "seconds"))
        least = min(r.cpu_seconds for r in runs[1:])
        lines.append(_row(f"{what}, {side}: fastest job, all processes", least, "cpu seconds"))
    for how, bar in (("seconds", "at most 1.0"), ("cpu_seconds", "at most 1.15")):
        cluster_least, inline_least = (
            min(getattr(run, how) for run in sides[side][1:]) for side in ("cluster", "inline")
        )
        words = f"{what}: {workers} processes of Dask / inline, {how.replace('_', ' ')}"
        lines.append(_row(words, cluster_least / inline_least, "ratio", bar))
    _keep("scale-cluster", lines, results)


@contextmanager
def _local_cluster(library: Library, workers: int) -> Iterator[Any]:
    """Dask processes that know the library, and steal no tasks from each other."""
    distributed, dask = import_module("distributed"), import_module("dask")
    environment = library.environment("cluster")
    environment |= {"OPENBLAS_NUM_THREADS": "1", "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, env=environment
        ) as processes,
    ):
        yield processes


def _cluster_seconds(processes: Any) -> float:
    """Processor time of the cluster's workers and of its scheduler, which is in this process."""
    times = [psutil.Process(nanny.pid).cpu_times() for nanny in processes.workers.values()]
    return sum(each.user + each.system for each in times) + time.process_time()


@app.command()
def growth(
    axes: Annotated[str, typer.Option(help="Which of n, d and k to measure anew.")] = "ndk",
    most: Annotated[int, typer.Option(help="Leave out jobs on more numbers (rows x columns).")] = 10**9,
    repeats: Annotated[int, typer.Option(help="Runs of each job, of which the fastest counts.")] = 1,
    results: Results = RESULTS,
) -> None:
    """Time against rows, columns and clusters, with the model's line; keeps what is not measured anew."""
    path = results / "scale-growth.csv"
    known = [Point.from_csv(cells) for cells in read_csv(path)] if path.exists() else []
    points = [point for point in known if point.axis not in axes]
    for axis, settings in AXES.items():
        if axis not in axes:
            continue
        for count, width, k in settings:
            if count * width <= most:
                points.append(measure_point(axis, count, width, k, repeats))
    model = Model.fitted(points)
    table: list[dict[str, object]] = []
    for point in points:
        cells = {name: f"{v:.4g}" if isinstance(v, float) else v for name, v in asdict(point).items()}
        table.append({**cells, "modelled": f"{model.seconds(point):.4g}"})
    write_csv(path, table)
    print_table(f"growth: {model}", table)
    draw_growth(points, results / "scale-growth.png")
