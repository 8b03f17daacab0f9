"""Figures keep every run in a CSV file, repeat none, and draw what they have."""

import csv
from pathlib import Path

import numpy as np
import pytest

from benchmarks import panels as module
from benchmarks.comparators import k_variates, sample_aggregate
from benchmarks.datasets import Dataset
from benchmarks.figures_balcan import panels, private
from benchmarks.panels import Line, Panel, Setting, draw_panels, measure_panels
from core.data import Dense

DOMAIN = Dense.box(0, 1, dimension=2, size=500)


def square(_columns: int = 2) -> Dataset:
    return Dataset("square", np.random.default_rng(1).uniform(size=(500, 2)), DOMAIN, (2,))


def tiny(calls: list[int]) -> Panel:
    def middle(data: Dataset, setting: Setting, run: int) -> np.ndarray:
        calls.append(run)
        return np.full((setting.k, 2), 0.5)

    lines = (Line("middle", middle), private("sulq", "sulq", {"rounds": 1}))
    settings = (Setting(1, 1.0, 1e-6, 2), Setting(2, 1.0, 1e-6, 2))
    return Panel("tiny", "a square", "k", square, settings, lines)


def test_runs_are_kept_and_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    calls: list[int] = []
    measure_panels("test", [tiny(calls)], 1, [])
    measure_panels("test", [tiny(calls)], 2, ["tiny"])
    assert sorted(calls) == [0, 0, 1, 1]
    with (tmp_path / "figure-test.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    assert {float(row["loss_per_row"]) > 0 for row in rows} == {True}
    draw_panels("test", [tiny(calls)])
    assert (tmp_path / "figure-test-tiny.png").read_bytes().startswith(b"\x89PNG")


def test_the_figure_has_the_panels_of_the_paper() -> None:
    found = {panel.name: panel for panel in panels(None)}
    assert set(found) == {"small", "synthetic", "mnist", "epsilon", "dimension"}
    assert [setting.k for setting in found["mnist"].settings] == [2, 4, 8, 16, 32, 64]
    assert {setting.k for setting in found["epsilon"].settings} == {10}
    assert [setting.columns for setting in found["dimension"].settings] == [8, 32, 128, 512, 2048]


@pytest.mark.parametrize("k", [1, 3])
def test_comparators_give_k_centres_inside_the_bounds(k: int) -> None:
    rows, draw = square().rows, np.random.default_rng(2)
    for centres in (
        sample_aggregate(rows, DOMAIN, k, 1.0, 1e-6, draw),
        k_variates(rows, DOMAIN, k, 1.0, draw),
    ):
        assert centres.shape == (k, 2)
        assert centres.min() >= 0
        assert centres.max() <= 1
