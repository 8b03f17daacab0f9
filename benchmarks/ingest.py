"""How fast an upload becomes a sealed dataset, as ratios measured in one run: `python -m benchmarks ingest`.

A file goes over HTTP to a real server on a real PostgreSQL. Beside it, on the same cores: CSV as fast as
pyarrow parses the file and does nothing else; Parquet and NPY as fast as COPY takes the file's own bytes
into the same PostgreSQL. Both sides alternate; the ratio is the median of those of each pair, which shared a
moment of the machine.
"""

from __future__ import annotations

import http.client
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any
from urllib.parse import urlsplit

import numpy as np
import psycopg
import pyarrow as pa
import typer
from pyarrow import csv, parquet

from benchmarks.bars import draw_ratios
from benchmarks.harness.postgres import Server
from benchmarks.harness.processes import RunningService, server
from benchmarks.measuring import RESULTS, print_table, write_csv

__all__ = ["main"]

_PIECE = 8 << 20
_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet", "npy": "application/x-npy"}
_BARS = {"csv": 0.4, "parquet": 0.5, "npy": 0.5}


@dataclass(frozen=True)
class Files:
    """The same numbers in every format."""

    folder: Path
    rows: int
    columns: int

    def path(self, kind: str) -> Path:
        return self.folder / f"rows.{kind}"

    def write(self) -> None:
        values = np.random.default_rng(11).uniform(-1, 1, (self.rows, self.columns)).round(7)
        table = pa.table({f"c{place}": values[:, place] for place in range(self.columns)})
        csv.write_csv(table, self.path("csv"), csv.WriteOptions(quoting_style="none"))
        parquet.write_table(table, self.path("parquet"))
        np.save(self.path("npy"), values)


class Curator:
    """A curator with one connection, who sends files as they lie on the disk."""

    def __init__(self, running: RunningService):
        self._address = urlsplit(running.address)
        self._key = running.bootstrap_key()
        self._made = 0

    def create(self, size: int, **declared: Any) -> str:
        """An empty dataset of a new name."""
        self._made += 1
        name = f"rows-{self._made}"
        facts = {"name": name, "size": size, "budget": {"epsilon": "1"}, **declared}
        self._call("POST", "/v1/datasets", json.dumps(facts).encode(), "application/json", 201)
        return name

    def upload(self, name: str, path: Path, rows: int) -> None:
        """Send a file; when this returns, the dataset is sealed."""
        with path.open("rb") as body:
            report = self._call("PUT", f"/v1/datasets/{name}/data", body, _TYPES[path.suffix[1:]], 200)
        assert report["rows"] == rows, report
        self._call("POST", f"/v1/datasets/{name}/seal", b"{}", "application/json", 200)

    def _call(self, verb: str, path: str, body: Any, kind: str, expected: int) -> dict[str, Any]:
        length = len(body) if isinstance(body, bytes) else Path(body.name).stat().st_size
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": kind,
            "Content-Length": str(length),
        }
        connection = http.client.HTTPConnection(
            self._address.hostname or "", self._address.port, timeout=600, blocksize=1 << 20
        )
        try:
            connection.request(verb, path, body=body, headers=headers)
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == expected, text[:500]
            decoded: dict[str, Any] = json.loads(text)
            return decoded
        finally:
            connection.close()


def parse(path: Path) -> None:
    """What pyarrow alone needs for the file, with all cores."""
    csv.read_csv(path)


def copy(dsn: str, path: Path) -> None:
    """The file's bytes in a table, in pieces as large as a chunk, committed."""
    with psycopg.connect(dsn) as connection:
        connection.execute("DROP TABLE IF EXISTS copied")
        connection.execute("CREATE TABLE copied (number integer PRIMARY KEY, payload bytea NOT NULL)")
        # Uncompressed, as the service stores chunks: it is the faster way.
        connection.execute("ALTER TABLE copied ALTER COLUMN payload SET STORAGE EXTERNAL")
        statement = "COPY copied (number, payload) FROM STDIN (FORMAT BINARY)"
        with path.open("rb") as file, connection.cursor().copy(statement) as rows:
            rows.set_types(["int4", "bytea"])
            number = 0
            while piece := file.read(_PIECE):
                rows.write_row((number, piece))
                number += 1


def clock(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(curator: Curator, dsn: str, files: Files, kind: str, repeats: int) -> dict[str, object]:
    """One format: seconds of both sides, and their ratio."""
    path = files.path(kind)
    bare: Callable[[], None] = (lambda: parse(path)) if kind == "csv" else (lambda: copy(dsn, path))
    ours, theirs = [], []
    for _ in range(repeats):
        theirs.append(clock(bare))
        names = [f"c{place}" for place in range(files.columns)]
        name = curator.create(files.rows, columns=names, bounds={"box": {"low": -1, "high": 1}})
        ours.append(clock(lambda: curator.upload(name, path, files.rows)))  # noqa: B023 called at once
    megabytes = path.stat().st_size / 1e6
    return {
        "format": kind,
        "rows": files.rows,
        "columns": files.columns,
        "megabytes": round(megabytes, 1),
        "beside": "pyarrow.csv.read_csv" if kind == "csv" else "COPY of the file's bytes",
        "seconds": round(median(ours), 3),
        "seconds_beside": round(median(theirs), 3),
        "megabytes_per_second": round(megabytes / median(ours), 1),
        "ratio": round(median(b / a for a, b in zip(ours, theirs, strict=True)), 3),
        "ratio_of_fastest": round(min(theirs) / min(ours), 3),
        "bar": f"at least {_BARS[kind]}",
    }


def main(
    rows: Annotated[int, typer.Option(help="Rows of the file.")] = 1_000_000,
    columns: Annotated[int, typer.Option(help="Columns of the file.")] = 20,
    repeats: Annotated[int, typer.Option(help="Pairs of an upload and what runs beside it.")] = 5,
    formats: Annotated[
        str, typer.Option(help="Formats to measure, separated by commas.")
    ] = "csv,parquet,npy",
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
) -> None:
    """Measure uploads against a bare parse and against COPY; prints a table and keeps it as CSV."""
    postgres = Server(durable=True)
    try:
        with tempfile.TemporaryDirectory(prefix="cairn-ingest-") as folder:
            files = Files(Path(folder), rows, columns)
            files.write()
            database = postgres.create()
            command = ("serve", "--workers", "0")
            with server(
                postgres.url(database), Path(folder), command=command, log_level="warning"
            ) as running:
                curator = Curator(running)
                table = [
                    measure(curator, postgres.dsn(database), files, kind, repeats)
                    for kind in formats.split(",")
                ]
    finally:
        postgres.close()
    write_csv(results / "ingest.csv", table)
    draw_ratios(
        results / "ingest.png",
        f"uploads of {rows:,} x {columns}, HTTP to sealed dataset",
        [
            (
                f"{line['format']}, beside {line['beside']}",
                float(str(line["ratio"])),
                _BARS[str(line["format"])],
            )
            for line in table
        ],
    )
    print_table("ingest: HTTP to sealed dataset, PostgreSQL", table)
