"""How the time of a job grows with rows, columns and clusters, beside the plan's own count of operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from benchmarks.measuring import usage
from benchmarks.streaming import clustered_rows
from core.algorithms import registry
from core.data import UNITS, ArraySource, Dense
from core.plan import Request
from core.privacy import Budget
from core.views import clear_cache

__all__ = ["AXES", "Model", "Point", "draw_growth", "measure_point"]

Floats = npt.NDArray[np.float64]

#: What varies along an axis while the rest stays: rows, columns, clusters.
AXES: dict[str, tuple[tuple[int, int, int], ...]] = {
    "n": tuple((rows, 20, 16) for rows in (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)),
    "d": tuple((100_000, width, 16) for width in (10, 30, 100, 300, 1000)),
    "k": tuple((200_000, 20, k) for k in (2, 8, 32, 128, 256)),
}


@dataclass(frozen=True)
class Point:
    """One measured job, by the clock and added up over cores, which is steadier on a busy machine."""

    axis: str
    rows: int
    width: int
    k: int
    operations: float
    seconds: float
    cpu_seconds: float
    extra_mib: float

    @classmethod
    def from_csv(cls, cells: dict[str, str]) -> Point:
        rows, width, k = (int(cells[name]) for name in ("rows", "width", "k"))
        numbers = (float(cells[name]) for name in ("operations", "seconds", "cpu_seconds", "extra_mib"))
        return cls(cells["axis"], rows, width, k, *numbers)


def measure_point(axis: str, rows: int, width: int, k: int, repeats: int = 1) -> Point:
    """The fastest of some runs of `summit` on rows that are encoded already."""
    domain = Dense.ball(float(UNITS), dimension=width, size=rows)
    source = ArraySource(domain, np.concatenate(list(clustered_rows(rows, width))))
    plan = registry.plan(domain, Request(k, Budget.of("1", "0.000000001"), algorithm="summit"))
    runs = []
    for _ in range(repeats):
        clear_cache()
        with usage() as taken:
            registry.run(plan, source)
        runs.append(taken)
    clear_cache()
    return Point(
        axis,
        rows,
        width,
        k,
        plan.work.operations,
        min(run.seconds for run in runs),
        min(run.cpu_seconds for run in runs),
        max(run.extra_mib for run in runs),
    )


@dataclass(frozen=True)
class Model:
    """A job's seconds: to start, per million rows, per billion operations that its plan announces."""

    start: float
    rows: float
    operations: float

    @classmethod
    def fitted(cls, points: Sequence[Point]) -> Model:
        """Fitted so that relative errors are small."""
        seconds = np.array([point.cpu_seconds for point in points])
        features = np.array([_features(point) for point in points])
        return cls(*map(float, nnls(features / seconds[:, None], np.ones(len(points)))[0]))

    def seconds(self, point: Point) -> float:
        return float(np.dot(_features(point), (self.start, self.rows, self.operations)))

    def __str__(self) -> str:
        return (
            f"{self.start:.2g} s + {self.rows:.2g} s per million rows + {self.operations:.2g} s per billion "
            "operations"
        )


def _features(point: Point) -> tuple[float, float, float]:
    return 1.0, point.rows / 1e6, point.operations / 1e9


def draw_growth(points: Sequence[Point], path: Path) -> None:
    """One panel for each axis: what was measured, and the model's line."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    model = Model.fitted(points)
    labels = {
        "n": "rows (20 columns, k = 16)",
        "d": "columns (100,000 rows, k = 16)",
        "k": "k (200,000 x 20)",
    }
    figure, panels = plt.subplots(1, 3, figsize=(12, 3.6), constrained_layout=True)
    for panel, axis in zip(panels, AXES, strict=True):
        own = sorted((p for p in points if p.axis == axis), key=lambda p: (p.rows, p.width, p.k))
        if not own:
            continue
        across = [{"n": p.rows, "d": p.width, "k": p.k}[axis] for p in own]
        panel.loglog(across, [p.cpu_seconds for p in own], "o", label="measured")
        panel.loglog(across, [model.seconds(p) for p in own], "-", label="model")
        panel.set_xlabel(labels[axis])
        panel.set_ylabel("CPU seconds")
        panel.grid(alpha=0.3)
        panel.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
