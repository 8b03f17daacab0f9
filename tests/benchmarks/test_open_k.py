"""The benchmark of one release for every k: scores of their definition, tables as CSV and a picture."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import commands
from benchmarks.measuring import read_csv
from benchmarks.open_k_scores import binned_distance, likeness
from benchmarks.open_k_suggestions import MIXTURES, gap_statistic
from benchmarks.open_k_tables import table_scores


def run(*arguments: str) -> None:
    answer = CliRunner().invoke(commands(), ["open_k", *arguments], catch_exceptions=False)
    assert answer.exit_code == 0, answer.output


def test_losses_of_one_release_and_of_its_peers_are_kept_and_drawn(tmp_path: Path) -> None:
    asked = ("--data", "blobs3", "--last", "4", "--runs", "1", "--results", str(tmp_path))
    run("losses", *asked, "--k", "2", "--k", "3", "--direct", "3")
    run("peers", *asked, "--k", "3")
    run("figure", "--results", str(tmp_path))
    two, three = read_csv(tmp_path / "open-k.csv")
    assert (two["k"], two["direct"]) == ("2", "")
    assert float(three["loss"]) == pytest.approx(1, abs=0.05)
    assert float(three["direct"]) == pytest.approx(1, abs=0.05)
    peers = read_csv(tmp_path / "open-k-peers.csv")
    assert {"auto", "sulq"} <= {row["peer"] for row in peers}
    assert (tmp_path / "open-k.png").stat().st_size > 10_000


def test_a_run_that_is_appended_keeps_those_before_it(tmp_path: Path) -> None:
    for seed in ("5", "6"):
        asked = ("--truth", "3", "--runs", "1", "--last", "4", "--results", str(tmp_path))
        run("suggestions", *asked, "--first", seed, "--append")
    assert [row["seed"] for row in read_csv(tmp_path / "open-k-suggestions.csv")] == ["5", "6"]


def test_the_gap_statistic_finds_clusters_that_lie_apart() -> None:
    assert gap_statistic(MIXTURES["separated"].rows(3, 1).rows, 5, 1) == 3


def test_total_variation_is_that_of_the_shares_of_bins() -> None:
    assert binned_distance(np.arange(100.0), np.arange(100.0)) == 0
    assert binned_distance(np.zeros(10), np.ones(10)) == 1
    assert binned_distance(np.array([0.0, 1.0]), np.array([0.0, 0.0, 0.0, 1.0])) == 0.25


def test_rows_are_like_themselves_and_shorter_tails_are_told() -> None:
    rows = np.random.default_rng(1).normal(size=(4000, 3))
    draw = np.random.default_rng(2)
    assert likeness(rows, rows, draw)["worst projection"] == 0
    assert likeness(rows, rows * 0.5, draw)["tail"] == pytest.approx(0.5, abs=0.01)


def test_a_table_is_scored_in_the_kinds_of_its_columns() -> None:
    found = table_scores("all kinds", 3, seed=1, last=4, epsilon="1")
    assert all(0 <= found[kind] < 0.3 for kind in ("numbers", "categories", "counts", "boolean"))
    assert found["numbers"] <= found["worst column"]
