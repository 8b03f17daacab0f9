"""The accuracy benchmark: fixed data inside public bounds, sound baselines, a table, CSV and a picture."""

import csv
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import commands
from benchmarks.accuracy import delta_for, summarise
from benchmarks.baselines import Baselines, k_means, k_medians, loss
from benchmarks.datasets import DATASETS, MNIST_DEFAULT, load
from tests.markdown import ROOT

#: Half a gigabyte of rows and more, made by the same few lines as the others: too much for a test.
LARGE = {"columns", "million", "millions"}
SYNTHETIC = sorted(set(DATASETS) - {"mnist"} - LARGE)


def run(*arguments: str) -> str:
    answer = CliRunner().invoke(commands(), ["accuracy", *arguments], catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return answer.output


# --- data ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_dataset_is_the_same_each_time_and_lies_inside_its_bounds(name: str) -> None:
    data, again = load(name), load(name)
    assert np.array_equal(data.rows, again.rows)
    assert data.rows.shape == (data.domain.size, data.domain.dimension)
    if data.domain.radius is not None:
        assert np.linalg.norm(data.rows, axis=1).max() <= data.domain.radius * (1 + 1e-12)
    else:
        assert data.rows.min() >= min(data.domain.low or ())
        assert data.rows.max() <= max(data.domain.high or ())
    assert data.domain.warnings == ()
    assert data.clusters


def test_mnist_is_looked_for_beside_the_repository() -> None:
    assert MNIST_DEFAULT.relative_to(ROOT.parent).parts == ("shared", "data", "mnist-train.npz")
    with pytest.raises(FileNotFoundError, match=r"--mnist.*CAIRN_MNIST"):
        load("mnist", mnist_path=Path("no-such.npz"))


def test_mnist_is_read_from_a_given_path(tmp_path: Path) -> None:
    pixels = np.arange(20 * 784, dtype=np.int64).reshape(20, 784) % 256
    np.savez(tmp_path / "digits.npz", pixels=pixels.astype(np.uint8))
    data = load("mnist", mnist_path=tmp_path / "digits.npz")
    assert np.array_equal(data.rows, pixels / 255)
    assert data.domain.size == 20


def test_a_file_needs_bounds(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.npy")
    np.save(path, np.arange(12.0).reshape(6, 2))
    with pytest.raises(ValueError, match="--bounds"):
        load(path)
    assert load(path, (0, 10)).rows.max() == 10


def test_an_unknown_dataset_is_refused_with_the_names_of_the_others() -> None:
    with pytest.raises(ValueError, match=r"no dataset 'mist': choose one of mnist, mixture"):
        load("mist")


# --- baselines ----------------------------------------------------------------------------------------------


def test_medians_are_not_drawn_away_by_an_outlier() -> None:
    rows = np.concatenate([np.random.default_rng(0).normal(size=(60, 2)), [[1e4, 1e4]]])
    assert np.abs(k_medians(rows, 1)).max() < 1 < np.abs(k_means(rows, 1)).max()
    assert loss(rows, k_medians(rows, 1), "medians") < loss(rows, k_means(rows, 1), "medians")


def test_losses_are_those_of_their_definition() -> None:
    rows, centres = np.array([[0.0, 0.0], [3.0, 4.0], [10.0, 0.0]]), np.array([[0.0, 0.0], [10.0, 1.0]])
    assert loss(rows, centres, "means") == pytest.approx(0 + 25 + 1)
    assert loss(rows, centres, "medians") == pytest.approx(0 + 5 + 1)


def test_a_baseline_is_computed_once_and_then_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(0).normal(size=(200, 2))
    first = Baselines(tmp_path / "b.csv").loss("some", rows, 3, "means")
    monkeypatch.setattr("benchmarks.baselines._SOLVERS", {})
    assert Baselines(tmp_path / "b.csv").loss("some", rows, 3, "means") == first
    with pytest.raises(KeyError):
        Baselines(tmp_path / "b.csv").loss("some", rows + 1, 3, "means")


# --- the command --------------------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_keeps_every_run_and_a_picture(tmp_path: Path) -> None:
    options = ["--data", "small", "--k", "2", "--k", "3", "--epsilon", "1", "--epsilon", "8", "--runs", "2"]
    printed = run(*options, "--algorithm", "sulq", "--results", str(tmp_path))
    assert "worst" in printed
    with (tmp_path / "accuracy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 2
    assert {row["epsilon"] for row in rows} == {"1", "8"}
    for row in rows:
        assert float(row["ratio"]) == pytest.approx(float(row["loss"]) / float(row["baseline"]), rel=1e-4)
        assert float(row["seconds"]) > 0
    assert (tmp_path / "accuracy.png").read_bytes().startswith(b"\x89PNG")
    assert "small" in run("--replot", "--results", str(tmp_path))


def test_the_command_reads_a_file_and_scores_medians(tmp_path: Path) -> None:
    np.save(tmp_path / "points.npy", np.random.default_rng(0).uniform(size=(500, 2)))
    file = str(tmp_path / "points.npy")
    options = ["--data", file, "--bounds", "0", "1", "--objective", "medians", "--k", "2", "--runs", "1"]
    run(*options, "--delta", "0.000001", "--results", str(tmp_path), "--name", "points")
    with (tmp_path / "points.csv").open() as kept:
        (row,) = csv.DictReader(kept)
    assert (row["dataset"], row["objective"], row["delta"]) == ("points", "medians", "0.000001")


def test_delta_follows_a_rule_of_the_public_size_or_is_a_number() -> None:
    assert delta_for("N^-1.5", 10_000) == pytest.approx(1e-6)
    assert delta_for("0", 10_000) == 0


def test_a_line_sums_up_mean_spread_and_worst() -> None:
    cell = dict.fromkeys(("dataset", "n", "d", "objective", "k", "algorithm", "epsilon", "delta"), "1")
    runs = [
        {**cell, "ratio": ratio, "seconds": 1, "cpu_seconds": 2, "extra_mib": 5}
        for ratio in ("1.0", "1.2", "1.1", "1.1")
    ]
    (line,) = summarise(runs)
    assert (line["mean"], line["worst"], line["runs"]) == ("1.1000", "1.2000", 4)
    assert line["± 2 s.e."] == "0.0816"
    assert line["upper"] == "1.1816"


def test_runs_are_added_to_those_a_file_holds(tmp_path: Path) -> None:
    for arguments in ([], ["--append", "--size-factor", "10"]):
        run("--data", "small", "--runs", "1", "--results", str(tmp_path), *arguments)
    with (tmp_path / "accuracy.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["dataset"] for row in rows] == ["small", "small, N x 10"]
    # The public size is wrong, the rows and what they are compared with are the same.
    assert rows[0]["baseline"] == rows[1]["baseline"]
