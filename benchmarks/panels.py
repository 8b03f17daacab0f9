"""Panels of a figure: what is run for each value on the horizontal axis, and how it is drawn."""

from __future__ import annotations

import csv
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from benchmarks.baselines import loss
from benchmarks.datasets import Dataset
from benchmarks.measuring import RESULTS

__all__ = ["Line", "Panel", "Setting", "draw_panels", "measure_panels"]

Floats = npt.NDArray[np.float64]
KEY = ("panel", "line", "k", "epsilon", "columns", "run")
FIELDS = ("panel", "line", "k", "epsilon", "columns", "delta", "run", "loss_per_row", "seconds")


@dataclass(frozen=True)
class Setting:
    """One point of the horizontal axis."""

    k: int
    epsilon: float
    delta: float
    columns: int


@dataclass(frozen=True)
class Line:
    """A way to cluster: from a dataset, a setting and the number of the run to centres."""

    name: str
    cluster: Callable[[Dataset, Setting, int], Floats]
    #: Settings it is able to run; all of them unless told otherwise.
    serves: Callable[[Setting], bool] = lambda setting: True
    #: One run is enough.
    once: bool = False


@dataclass(frozen=True)
class Panel:
    """One picture: lines over settings, on rows of so many columns, made when they are needed."""

    name: str
    title: str
    axis: str
    data: Callable[[int], Dataset]
    settings: tuple[Setting, ...]
    lines: tuple[Line, ...] = field(default=())
    objective: str = "means"


def _path(figure: str) -> str:
    RESULTS.mkdir(exist_ok=True)
    return str(RESULTS / f"figure-{figure}.csv")


def _read(figure: str) -> list[dict[str, str]]:
    try:
        with open(_path(figure), newline="") as file:
            return list(csv.DictReader(file))
    except FileNotFoundError:
        return []


def measure_panels(figure: str, panels: Sequence[Panel], runs: int, only: Sequence[str]) -> None:
    """Run everything and add it to the figure's CSV file; runs that are in it are not repeated."""
    done = {tuple(row[name] for name in KEY) for row in _read(figure)}
    fresh = not done
    with open(_path(figure), "a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if fresh:
            writer.writeheader()
        for panel in panels:
            if only and panel.name not in only:
                continue
            data_of = cache(panel.data)
            for setting in panel.settings:
                data = data_of(setting.columns)
                for line in panel.lines:
                    for run in range(1 if line.once else runs):
                        place = (str(setting.k), f"{setting.epsilon:g}", str(setting.columns))
                        key = (panel.name, line.name, *place, str(run))
                        if key in done or not line.serves(setting):
                            continue
                        start = time.perf_counter()
                        centres = line.cluster(data, setting, run)
                        taken = time.perf_counter() - start
                        lost = loss(data.rows, centres, panel.objective) / len(data.rows)
                        rest = (f"{setting.delta:g}", str(run), f"{lost:.6g}", f"{taken:.2f}")
                        writer.writerow(dict(zip(FIELDS, (*key[:-1], *rest), strict=True)))
                        file.flush()
                        print(*key, f"loss per row {lost:.5g}, {taken:.1f} s")


def draw_panels(figure: str, panels: Sequence[Panel]) -> None:
    """One PNG for each panel that has results."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    rows = _read(figure)
    for panel in panels:
        losses: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            if row["panel"] == panel.name:
                losses[row["line"]][float(row[panel.axis])].append(float(row["loss_per_row"]))
        if not losses:
            continue
        picture, axes = pyplot.subplots(figsize=(6, 4), dpi=110)
        for line, values in sorted(losses.items()):
            places = sorted(values)
            means = [float(np.mean(values[place])) for place in places]
            spans = [(min(values[place]), max(values[place])) for place in places]
            below = [mean - low for mean, (low, _) in zip(means, spans, strict=True)]
            above = [high - mean for mean, (_, high) in zip(means, spans, strict=True)]
            axes.errorbar(places, means, [below, above], marker="o", capsize=3, label=line)
        if len({float(getattr(s, panel.axis)) for s in panel.settings}) > 1:
            axes.set_xscale("log", base=2)
            axes.set_xticks(sorted({float(getattr(s, panel.axis)) for s in panel.settings}))
            axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        every = [loss for values in losses.values() for found in values.values() for loss in found]
        if max(every) > 10 * min(every):
            axes.set_yscale("log")
        axes.set_xlabel(panel.axis)
        axes.set_ylabel("loss per row")
        axes.set_title(panel.title)
        axes.legend(fontsize=8)
        axes.grid(alpha=0.3, which="both")
        picture.tight_layout()
        picture.savefig(RESULTS / f"figure-{figure}-{panel.name}.png")
        pyplot.close(picture)
