"""The comparison with other private k-means: rows as published, one line for each run, tables in pages."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import choosing, diffprivlib, pe_means, peers
from benchmarks.__main__ import commands
from benchmarks.document import rewrite_table
from benchmarks.measuring import Lines, read_csv
from benchmarks.peers import CELLS, METHODS, stated
from tests.markdown import ROOT

SMALL = "groups-1000x2-k4"


def run(*arguments: str) -> str:
    answer = CliRunner().invoke(commands(), list(arguments), catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return answer.output


@pytest.fixture
def without_diffprivlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffprivlib, "installed", lambda: False)


# --- side by side -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", [cell for cell in CELLS if cell.size <= 10_000], ids=lambda cell: cell.label)
def test_rows_lie_inside_the_bounds_that_all_methods_are_given(cell: peers.Cell) -> None:
    rows = cell.make(cell, np.random.default_rng(0))
    assert rows.shape == (cell.size, cell.columns)
    assert rows.min() >= 0
    assert rows.max() <= 1


@pytest.mark.usefixtures("without_diffprivlib")
def test_every_run_is_a_line_and_a_picture_is_drawn(tmp_path: Path) -> None:
    printed = run("peers", "--runs", "2", "--only", SMALL, "--results", str(tmp_path))
    assert "`pip install diffprivlib`" in printed
    lines = read_csv(tmp_path / "peers.csv")
    methods = {method.name for method in METHODS} - {"diffprivlib"}
    assert {line["method"] for line in lines} == methods
    assert len(lines) == 2 * len(peers.EPSILONS) * len(methods)
    assert all(float(line["ratio"]) > 0.9 for line in lines)
    assert (tmp_path / "peers.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("without_diffprivlib")
def test_measuring_one_method_again_keeps_the_runs_of_the_others(tmp_path: Path) -> None:
    other = {"cell": SMALL, "epsilon": "1", "method": "diffprivlib", "seed": 0, "ratio": "7.5", "cpu": "1"}
    stale = {**other, "method": "Cairn", "ratio": "99"}
    Lines(tmp_path / "peers.csv", ("cell", "epsilon", "method", "seed")).add([other, stale])
    run("peers", "--runs", "1", "--only", SMALL, "--method", "Cairn", "--results", str(tmp_path))
    lines = read_csv(tmp_path / "peers.csv")
    assert [line["ratio"] for line in lines if line["method"] == "diffprivlib"] == ["7.5"]
    assert "99" not in {line["ratio"] for line in lines if line["method"] == "Cairn"}


def test_a_missing_diffprivlib_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install diffprivlib"):
        diffprivlib.centres(np.zeros((3, 1)), 0, 1, 1, 1.0)


def test_what_diffprivlib_spends_follows_from_its_split_unpacked_the_wrong_way_round() -> None:
    assert diffprivlib.spent(1) == pytest.approx(1)
    assert diffprivlib.spent(128) == pytest.approx(2.9002119, rel=1e-6)


def test_figures_have_the_digits_that_their_size_leaves_of_use() -> None:
    assert stated([1.001, 1.003]) == "1.002 ± 0.001"
    assert stated([2.0, 3.0]) == "2.50 ± 0.50"
    assert stated([120.0]) == "120"
    assert stated([]) == "-"


# --- PE-means -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["blobs_4_4", "blobs_4_16", "blobs_4_64"])
def test_blobs_are_the_rows_of_the_published_table(name: str) -> None:
    published = pe_means.published()[name]
    found = pe_means.non_private(pe_means.rebuilt(name), int(published["k"]))
    assert found == pytest.approx(float(published["non_private"]), abs=6e-5)


@pytest.mark.parametrize("name", [name for name in pe_means.published() if pe_means.can_be_made(name)])
def test_rebuilt_rows_have_the_published_shape_and_fill_the_unit_ball(name: str) -> None:
    published, rows = pe_means.published()[name], pe_means.rebuilt(name)
    assert rows.shape == (int(published["rows"]), int(published["columns"]))
    assert np.linalg.norm(rows, axis=1).max() == pytest.approx(1)


def test_the_area_under_a_constant_loss_is_the_loss_times_the_range_of_epsilon() -> None:
    assert pe_means.area([2.0] * 5) == pytest.approx(2 * 3.75)


def test_the_table_of_pe_means_states_published_figures_beside_measured_ones(tmp_path: Path) -> None:
    run("pe_means", "--runs", "2", "--only", "iris", "--results", str(tmp_path))
    (line,) = pe_means.summarise(read_csv(tmp_path / "pe-means.csv"))
    assert line["data"] == "iris"
    assert line["best other, published"] == "2.975 (fastlloyd)"
    assert "±" in str(line["Cairn"])
    assert line["diffprivlib, here"] == "-"


# --- the table for choosing epsilon and k -------------------------------------------------------------------


def test_figures_for_choosing_are_written_into_their_page(tmp_path: Path) -> None:
    for name in ("choosing-4", "choosing-32"):
        assert (ROOT / "docs" / "choosing.md").read_text().count(f"<!-- table {name} -->") == 1
    page = tmp_path / "page.md"
    page.write_text("Before.\n\n<!-- table choosing-4 -->\n\nold\n\n<!-- end of table -->\n\nAfter.\n")
    run("choosing", "--runs", "1", "--size", "1000", "--results", str(tmp_path), "--page", str(page))
    assert len(read_csv(tmp_path / "choosing.csv")) == len(choosing.CLUSTERS) * len(choosing.EPSILONS)
    text = page.read_text()
    assert re.search(r"\| 1,000 \| 3 \| \d+\.\d\d \(\d+\.\d\d\) \|", text)
    assert "old" not in text
    assert text.startswith("Before.\n")
    assert text.endswith("\nAfter.\n")


def test_a_table_is_written_into_its_own_place_alone(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    places = "<!-- table one -->\n\n<!-- end of table -->\n\n<!-- table two -->\n\n<!-- end of table -->\n"
    page.write_text(places)
    rewrite_table(page, "one", [{"a": 1, "b": 2}])
    assert page.read_text() == places.replace("\n\n", "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n", 1)


def test_a_page_without_a_place_for_the_table_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Nothing here.\n")
    with pytest.raises(ValueError, match="0 places for the table 'peers'"):
        rewrite_table(page, "peers", [{"a": 1}])
