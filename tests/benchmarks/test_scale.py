"""The scale benchmark runs jobs as the service does, in processes of their own, and draws how time grows."""

import csv
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import commands
from benchmarks.growth import Model, Point
from benchmarks.streaming import clustered_rows


def run(folder: Path, *arguments: str) -> None:
    options = ["scale", *arguments, "--results", str(folder)]
    answer = CliRunner().invoke(commands(), options, catch_exceptions=False)
    assert answer.exit_code == 0, answer.output


def table(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_a_job_is_carried_out_by_a_worker_process_that_tells_its_memory(tmp_path: Path) -> None:
    run(tmp_path, "memory", "--rows", "4000", "--small", "2000", "--repeats", "1")
    lines = {line["what"]: float(line["value"]) for line in table(tmp_path / "scale-memory.csv")}
    peaks = [value for what, value in lines.items() if "peak memory" in what]
    assert len(peaks) == 2
    assert all(20 < peak < 1024 for peak in peaks)
    assert {what for what in lines if what.startswith("time per row")} == {
        "time per row, 4000 / 2000, by the clock",
        "time per row, 4000 / 2000, all cores",
    }


def test_growth_keeps_what_was_measured_before_and_draws_all_of_it(tmp_path: Path) -> None:
    run(tmp_path, "growth", "--axes", "d", "--most", "1000000")
    before = table(tmp_path / "scale-growth.csv")
    assert [line["width"] for line in before] == ["10"]
    (tmp_path / "scale-growth.png").unlink()
    run(tmp_path, "growth", "--axes", "", "--most", "1000000")
    assert table(tmp_path / "scale-growth.csv") == before
    assert (tmp_path / "scale-growth.png").read_bytes().startswith(b"\x89PNG")


def test_the_model_is_found_again_in_points_that_follow_it() -> None:
    true = Model(0.5, 1.5, 0.25)
    sizes = [(10**5, 10, 2e9), (10**6, 20, 5e9), (10**5, 1000, 2e11), (10**6, 100, 4e10), (10**7, 5, 3e9)]
    bare = [Point("n", rows, width, 1, work, 0.0, 0.0, 0.0) for rows, width, work in sizes]
    found = Model.fitted([replace(point, cpu_seconds=true.seconds(point)) for point in bare])
    assert asdict(found) == pytest.approx(asdict(true))


def test_rows_are_the_same_each_time_and_inside_the_ball() -> None:
    rows, again = (np.concatenate(list(clustered_rows(3000, 7))) for _ in range(2))
    assert np.array_equal(rows, again)
    assert np.sqrt((rows.astype(np.int64) ** 2).sum(axis=1)).max() <= 32767
