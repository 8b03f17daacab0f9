"""Plots of a result with matplotlib, from centres, sizes and receipt alone: there are no rows to draw."""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cairn_client.receipt import size_error
from cairn_client.result import optional

if TYPE_CHECKING:
    from cairn_client.result import Result

__all__ = ["draw", "map_of"]

Floats = npt.NDArray[np.float64]
_AREA = 900.0
_LABELLED = 12


def map_of(centres: Floats, columns: list[str]) -> tuple[Floats, tuple[str, str]]:
    """Two coordinates for every centre, and what they are: columns, or the centres' own main directions."""
    if centres.shape[1] == 1:
        return np.column_stack([centres[:, 0], np.zeros(len(centres))]), (columns[0], "")
    if centres.shape[1] == 2:
        return centres, (columns[0], columns[1])
    middle = centres - centres.mean(axis=0)
    _, _, directions = np.linalg.svd(middle, full_matrices=False)
    flat = np.zeros((len(centres), 2))
    flat[:, : min(2, len(directions))] = middle @ directions[:2].T
    return flat, ("first main direction of the centres", "second")


def draw(result: Result) -> Any:
    """A Figure: where the centres lie, what each is like, how many records each stands for."""
    kind_of_figure = _shown_in_notebooks(optional("matplotlib.figure", "a plot").Figure)
    sizes = result.sizes
    wide = result.centres.shape[1] > 2
    panels = 1 + int(wide) + int(sizes is not None)
    figure = kind_of_figure(figsize=(4.6 * panels, 4.2), layout="constrained")
    axes = iter(figure.subplots(1, panels, squeeze=False)[0])
    _draw_map(next(axes), result)
    if wide:
        _draw_profiles(next(axes), result)
    if sizes is not None:
        _draw_sizes(next(axes), sizes, size_error(result.receipt))
    price = f"epsilon {result.facts.privacy.get('epsilon')}, delta {result.facts.privacy.get('delta')}"
    kind = "rehearsal on synthetic rows" if result.facts.rehearsal else price
    figure.suptitle(
        f"{result.facts.dataset}: {len(result.centres)} centres by {result.facts.algorithm}, {kind}"
    )
    return figure


@cache
def _shown_in_notebooks(figure: Any) -> Any:
    """A Figure that notebooks draw: those of pyplot they know, but pyplot would keep every figure alive."""

    def png(drawn: Any) -> bytes:
        file = io.BytesIO()
        drawn.savefig(file, format="png")
        return file.getvalue()

    return type("Figure", (figure,), {"_repr_png_": png})


def _draw_map(axes: Any, result: Result) -> None:
    points, names = map_of(result.centres, result.columns)
    weights = np.ones(len(points)) if result.sizes is None else np.maximum(result.sizes, 0.0)
    areas = _AREA * weights / max(float(weights.max()), 1e-9)
    axes.scatter(points[:, 0], points[:, 1], s=np.maximum(areas, 12.0), alpha=0.6)
    if len(points) <= 4 * _LABELLED:
        for number, point in enumerate(points):
            axes.annotate(str(number), point, ha="center", va="center", fontsize=8)
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    axes.margins(0.2)
    axes.set_title("centres" if result.sizes is None else "centres, area by size")


def _draw_profiles(axes: Any, result: Result) -> None:
    spread = np.maximum(np.ptp(result.centres, axis=0), 1e-12)
    scaled = (result.centres - result.centres.min(axis=0)) / spread
    axes.imshow(scaled, aspect="auto", cmap="viridis", vmin=0.0, vmax=1.0)
    axes.set_title("profiles, from the lowest centre to the highest")
    axes.set_ylabel("cluster")
    if len(result.columns) <= _LABELLED:
        axes.set_xticks(range(len(result.columns)), result.columns, rotation=45, ha="right")
    else:
        axes.set_xlabel("column")


def _draw_sizes(axes: Any, sizes: Floats, error: float | None) -> None:
    bars = None if error is None else np.full(len(sizes), 2.0 * error)
    axes.bar(range(len(sizes)), sizes, yerr=bars, capsize=3)
    axes.set_xlabel("cluster")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_title("noisy sizes" if error is None else "noisy sizes, ± 2 deviations of the noise")
