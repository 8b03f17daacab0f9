"""The speed benchmark measures every ratio that is promised, on arrays of any size."""

import csv
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from benchmarks.__main__ import commands
from benchmarks.measuring import usage


def test_the_command_measures_every_ratio(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "digits.npz", pixels=np.random.default_rng(0).integers(256, size=(300, 784)).astype("u1")
    )
    sizes = ["--rows", "2000", "--pictures", "500", "--repeats", "1", "--mnist", str(tmp_path / "digits.npz")]
    answer = CliRunner().invoke(
        commands(), ["speed", *sizes, "--results", str(tmp_path)], catch_exceptions=False
    )
    assert answer.exit_code == 0, answer.output
    with (tmp_path / "speed.csv").open() as file:
        lines = list(csv.DictReader(file))
    text = " ".join(line["what"] for line in lines)
    for promised in ("noise", "two GEMMs", "SYRK", "encode", "mnist", "KMeans", "peak memory", "1000 rows"):
        assert promised in text
    assert all(float(line["clock"]) >= 0 for line in lines)


def test_memory_is_what_was_added_to_what_was_held() -> None:
    with usage() as taken:
        held = np.ones(20 * 2**20)  # beyond what the allocator may keep from before
    assert 150 < taken.extra_mib < 200
    assert held.nbytes == 160 * 2**20
