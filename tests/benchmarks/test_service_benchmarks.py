"""The benchmarks of uploads and submissions run on a real service, and keep what they measured."""

import csv
from pathlib import Path

from typer.testing import CliRunner

from benchmarks.__main__ import commands


def run(results: Path, name: str, *options: str) -> list[dict[str, str]]:
    answer = CliRunner().invoke(
        commands(), [name, *options, "--repeats", "1", "--results", str(results)], catch_exceptions=False
    )
    assert answer.exit_code == 0, answer.output
    with (results / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def test_uploads_are_measured_beside_parse_and_copy(tmp_path: Path) -> None:
    lines = run(tmp_path, "ingest", "--rows", "2000", "--columns", "3")
    assert (tmp_path / "ingest.png").stat().st_size > 1000
    assert [line["format"] for line in lines] == ["csv", "parquet", "npy"]
    assert all(float(line["ratio"]) > 0 for line in lines)


def test_submissions_are_measured_beside_bare_inserts(tmp_path: Path) -> None:
    lines = run(tmp_path, "throughput", "--clients", "3", "--seconds", "0.3", "--processes", "1")
    assert (tmp_path / "throughput.png").stat().st_size > 1000
    assert [line["what"].split(",")[0] for line in lines] == ["bare INSERT and COMMIT", "submit", "submit"]
    assert all(int(line["requests"]) >= 3 for line in lines)


def test_uploads_of_tables_are_measured_beside_numbers(tmp_path: Path) -> None:
    lines = run(tmp_path, "table_ingest", "--rows", "2000")
    assert [line["columns"].split()[0] for line in lines] == ["eight", "four"]
    assert float(lines[1]["ratio_of_processor"]) > 0


def test_readings_are_measured_with_and_without_their_record(tmp_path: Path) -> None:
    options = ("reads", "--readings", "60", "--turns", "2", "--results", str(tmp_path))
    answer = CliRunner().invoke(commands(), options, catch_exceptions=False)
    assert "60 readings have 60 events, and the chain of the audit log holds." in answer.output
    with (tmp_path / "reads.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["readings"] for line in lines] == ["60", "60"]
