"""Plots of a result with matplotlib, from the released numbers and the receipt alone."""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cairn_client.geometry import bounds_of, placement
from cairn_client.result import optional
from cairn_client.table_geometry import TableGeometry

if TYPE_CHECKING:
    from cairn_client.result import Result

Floats = npt.NDArray[np.float64]
_AREA = 900.0
_LABELLED = 12
_HEAVY = 0.25


def map_of(result: Result) -> tuple[Floats, tuple[str, str]]:
    """Two coordinates for every centre, and their names.

    Up to two columns are taken as they are. More are projected onto the plane in which the centres differ
    most, measured as the service measures distances, so that no column counts more for its unit.
    """
    centres, columns = result.centres, result.columns
    if centres.shape[1] == 1:
        return np.column_stack([centres[:, 0], np.zeros(len(centres))]), (columns[0], "")
    if centres.shape[1] == 2:
        return centres, (columns[0], columns[1])
    table = _table(result)
    placed = placement(result.receipt)(centres) if table is None else table.place(centres)
    from_middle = placed - placed.mean(axis=0)
    _, _, directions = np.linalg.svd(from_middle, full_matrices=False)
    axes = np.zeros((2, centres.shape[1]))
    axes[: len(directions)] = directions[:2]
    # Either sign is right; the one in which the heaviest column grows is easier to read.
    heaviest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    axes = np.where(heaviest < 0, -axes, axes)
    return from_middle @ axes.T, (_axis_name(axes[0], columns), _axis_name(axes[1], columns))


def _table(result: Result) -> TableGeometry | None:
    """The geometry of a result of a table."""
    is_table = result.receipt["domain"]["kind"] == "table"
    return TableGeometry.of(result.receipt, result.facts.details) if is_table else None


def _axis_name(direction: Floats, columns: list[str]) -> str:
    """The one or two columns that weigh most in a direction."""
    heavy = [place for place in np.argsort(-np.abs(direction))[:2] if abs(direction[place]) > _HEAVY]
    if not heavy:
        return "a mixture of many columns"
    first, *second = heavy
    more = "".join(f" {'−' if direction[place] < 0 else '+'} {columns[place]}" for place in second)
    return f"mostly {columns[first]}{more}"


def draw(result: Result) -> Any:
    """A Figure: where the centres lie, what each is like, about how many records each cluster has."""
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
        _draw_sizes(next(axes), sizes, _size_errors(result, sizes))
    kind = "rehearsal" if result.facts.rehearsal else result.guarantee
    figure.suptitle(
        f"{result.facts.dataset}: {len(result.centres)} centres by {result.facts.algorithm}, {kind}"
    )
    return figure


@cache
def _shown_in_notebooks(figure: Any) -> Any:
    """A Figure that notebooks display. So they do pyplot's, but pyplot would keep every figure in memory."""

    def png(drawn: Any) -> bytes:
        file = io.BytesIO()
        drawn.savefig(file, format="png")
        return file.getvalue()

    return type("Figure", (figure,), {"_repr_png_": png})


def _draw_map(axes: Any, result: Result) -> None:
    points, names = map_of(result)
    weights = np.ones(len(points)) if result.sizes is None else np.maximum(result.sizes, 0.0)
    areas = _AREA * weights / max(float(weights.max()), 1e-9)
    axes.scatter(points[:, 0], points[:, 1], s=np.maximum(areas, 12.0), alpha=0.6)
    if len(points) <= 4 * _LABELLED:
        for number, point in enumerate(points, 1):
            axes.annotate(str(number), point, ha="center", va="center", fontsize=8)
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    if result.centres.shape[1] <= 2 and (table := _table(result)) is not None:
        for side, words in zip((axes.xaxis, axes.yaxis), table.words, strict=False):
            side.set_major_formatter(lambda number, _, words=words: words(number))
    axes.margins(0.2)
    axes.set_title("centres" if result.sizes is None else "centres, area by size")


def _draw_profiles(axes: Any, result: Result) -> None:
    low, high = _edges(result)
    shares = (result.centres - low) / np.maximum(high - low, 1e-12)
    k = len(shares)
    axes.imshow(
        shares,
        aspect="auto",
        cmap="viridis",
        vmin=0.0,
        vmax=1.0,
        extent=(-0.5, shares.shape[1] - 0.5, k + 0.5, 0.5),
    )
    axes.set_title("profiles, from the lowest bound to the highest")
    axes.set_ylabel("cluster")
    axes.yaxis.get_major_locator().set_params(integer=True)
    if len(result.columns) <= _LABELLED:
        axes.set_xticks(range(len(result.columns)), result.columns, rotation=45, ha="right")
    else:
        axes.set_xlabel("column")


def _edges(result: Result) -> tuple[Floats, Floats]:
    """The lowest and the highest value of each column by the bounds; of sparse rows, among the centres."""
    domain = result.receipt["domain"]
    if (table := _table(result)) is not None:
        return table.edges()
    if domain["kind"] != "dense":
        return result.centres.min(axis=0), result.centres.max(axis=0)
    shape, numbers = bounds_of(domain)
    if shape == "box":
        return np.asarray(numbers["low"], dtype=np.float64), np.asarray(numbers["high"], dtype=np.float64)
    centre, radius = np.asarray(numbers["centre"], dtype=np.float64), float(numbers["radius"])
    return centre - radius, centre + radius


def _size_errors(result: Result, sizes: Floats) -> Floats | None:
    """How far the 95% interval of each size reaches below and above it, as far as the result states it."""
    if "size_low" in (known := result.intervals):
        low, high = np.asarray(known["size_low"]), np.asarray(known["size_high"])
        ends: Floats = np.maximum([sizes - low, high - sizes], 0.0)
        return ends
    return None if result.size_error is None else np.full((2, len(sizes)), 2.0 * result.size_error)


def _draw_sizes(axes: Any, sizes: Floats, errors: Floats | None) -> None:
    axes.bar(range(1, len(sizes) + 1), sizes, yerr=errors, capsize=3)
    axes.set_xlabel("cluster")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_title("noisy sizes" if errors is None else "noisy sizes, with 95% error bars")
