"""How fast the service answers for another k: `python -m benchmarks open_k_answers`.

A service as a user starts it, on SQLite, and one result of 784 columns with every k from 1 to 32. Requests
come one after the other, each for another k than the one before.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.harness.processes import RemotePerson, server
from benchmarks.measuring import RESULTS, print_table, write_csv

__all__ = ["main"]

_FORMATS = ("application/json", "text/csv", "application/x-npy")
_BUDGET = {"epsilon": "10", "delta": "0.001"}


def _finished_job(curator: RemotePerson, columns: int, last: int) -> str:
    """A curator's own job with an open k on some made-up rows."""
    facts: dict[str, Any] = {
        "name": "digits",
        "bounds": {"box": {"low": 0, "high": 1}},
        "dimension": columns,
        "size": 1000,
    }
    facts |= {"budget": _BUDGET, "reading": {"header": False}}
    curator.call("POST", "/v1/datasets", json=facts, expect=201)
    rows = np.random.default_rng(784).uniform(size=(1000, columns)).round(3)
    text = "\n".join(",".join(map(str, row)) for row in rows)
    headers = {"Content-Type": "text/csv"}
    curator.call("PUT", "/v1/datasets/digits/data", content=text, headers=headers, expect=200)
    curator.call("POST", "/v1/datasets/digits/seal", json={"confirm": []}, expect=200)
    asked = {"dataset": "digits", "k": {"from": 1, "to": last}, "epsilon": "1", "delta": "0.00001"}
    job: str = curator.call("POST", "/v1/jobs", json=asked, expect=202).json()["id"]
    finished = curator.wait(job)
    assert finished["state"] == "succeeded", finished
    return job


def main(
    columns: Annotated[int, typer.Option(help="Columns of the rows.")] = 784,
    last: Annotated[int, typer.Option(help="The range of the release is from 1 to this.")] = 32,
    requests: Annotated[int, typer.Option(help="Requests for each format.")] = 100,
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
) -> None:
    """Milliseconds of answers for another k: the median, the 95th percentile and the slowest."""
    lines: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="cairn-answers-") as folder:
        url = f"sqlite:///{folder}/answers.sqlite3"
        with server(url, Path(folder), caller_rate="1e9", log_level="warning") as running:
            curator = running.person(running.bootstrap_key())
            job = _finished_job(curator, columns, last)
            for kind in _FORMATS:
                taken, size = [], 0
                for number in range(requests):
                    path = f"/v1/jobs/{job}/result?k={1 + 7 * number % last}"
                    begun = time.perf_counter()
                    answer = curator.call("GET", path, headers={"Accept": kind}, expect=200)
                    taken.append(1000 * (time.perf_counter() - begun))
                    size = max(size, len(answer.content))
                middle, most = np.quantile(taken, [0.5, 0.95]).round(1)
                lines.append(
                    {"format": kind, "median_ms": middle, "p95_ms": most, "worst_ms": round(max(taken), 1)}
                    | {"largest_bytes": size}
                )
    write_csv(results / "open-k-answers.csv", lines)
    print_table(f"answers for another k, {columns} columns, k up to {last}", lines)
