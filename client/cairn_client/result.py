"""What a job released: centres and noisy sizes as numpy arrays, tables, labels for one's own rows, plots."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from cairn_client.errors import MissingLibrary
from cairn_client.wire import ResultFacts, to_json

__all__ = ["Result", "optional"]

Floats = npt.NDArray[np.float64]
_BLOCK = 1 << 20


def optional(name: str, purpose: str) -> Any:
    """A library that is used where it is installed."""
    try:
        return import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        raise MissingLibrary(f"{purpose} needs {library}: install it with `pip install {library}`") from error


class Result:
    """Everything in it is differentially private already: it may be kept, shared and drawn at will."""

    def __init__(self, facts: ResultFacts, fetch_receipt: Callable[[], dict[str, Any]]):
        #: The result as it came over the wire.
        self.facts = facts
        #: One row per centre, in the data's own units.
        self.centres: Floats = np.array(facts.centres, dtype=np.float64)
        #: About how many records each centre stands for, with noise; None where none were released.
        self.sizes: Floats | None = None if facts.sizes is None else np.array(facts.sizes, dtype=np.float64)
        self._fetch_receipt = fetch_receipt
        self._receipt: dict[str, Any] | None = None

    def __repr__(self) -> str:
        k, width = self.centres.shape
        free = ", rehearsal" if self.facts.rehearsal else ""
        price = f"epsilon {self.facts.privacy.get('epsilon')}, delta {self.facts.privacy.get('delta')}"
        return f"<Result {k} centres in {width} columns of {self.facts.dataset}, {price}{free}>"

    def _repr_html_(self) -> str | None:
        try:
            return str(self.frame()._repr_html_())
        except MissingLibrary:
            return None

    @property
    def columns(self) -> list[str]:
        """The names of the columns; `x0`, `x1`, ... where the dataset has none."""
        return self.facts.columns or [f"x{i}" for i in range(self.centres.shape[1])]

    @property
    def receipt(self) -> dict[str, Any]:
        """What was planned and charged, step by step."""
        if self._receipt is None:
            self._receipt = self._fetch_receipt()
        return self._receipt

    def frame(self) -> Any:
        """A pandas DataFrame: a row per centre, the columns by name, and `size` where sizes were released."""
        pandas = optional("pandas", "a DataFrame")
        frame = pandas.DataFrame(self.centres, columns=self.columns)
        frame.index.name = "cluster"
        if self.sizes is not None:
            frame["cluster_size" if "size" in self.columns else "size"] = self.sizes
        return frame

    def save(self, path: str | Path) -> None:
        """Write the result to a file: `.csv` and `.npy` hold the centres, `.json` everything."""
        path = Path(path)
        kind = path.suffix.lower()
        if kind == ".csv":
            with path.open("w", newline="") as file:
                self._write_csv(file)
        elif kind == ".npy":
            np.save(path, self.centres, allow_pickle=False)
        elif kind == ".json":
            path.write_text(json.dumps(self.to_json(), indent=2) + "\n")
        else:
            raise ValueError(f"{path} should end in .csv, .json or .npy")

    def _write_csv(self, file: TextIO) -> None:
        """A header with the names of the columns, then a line per centre; the size comes last."""
        writer = csv.writer(file, lineterminator="\n")
        sizes = self.sizes
        writer.writerow([*self.columns, *([] if sizes is None else ["size"])])
        for number, centre in enumerate(self.centres.tolist()):
            writer.writerow([*map(repr, centre), *([] if sizes is None else [repr(float(sizes[number]))])])

    def to_json(self) -> dict[str, Any]:
        """The result as the service sent it."""
        found: dict[str, Any] = to_json(self.facts)
        return found

    def predict(self, rows: Any) -> npt.NDArray[np.int64]:
        """The number of the nearest centre for each of your own rows.

        Rows are treated as the service treated the dataset's: clipped to its bounds and, with `scaling`
        `unit`, measured in widths of the columns; along great circles where the sites were given so. A
        DataFrame may have further columns. Nothing is sent.
        """
        table = self._as_table(rows)
        domain = self.receipt["domain"]
        measured = _measure(self.receipt)
        centres = measured(self.centres)
        labels = np.empty(len(table), dtype=np.int64)
        step = max(1, _BLOCK // max(1, *self.centres.shape))
        lengths = np.einsum("ij,ij->i", centres, centres)
        for start in range(0, len(table), step):
            block = measured(_clipped(table[start : start + step], domain))
            labels[start : start + step] = np.argmin(lengths - 2.0 * (block @ centres.T), axis=1)
        return labels

    def plot(self) -> Any:
        """A matplotlib Figure of the centres and sizes, with error bars from the receipt."""
        from cairn_client.plotting import draw

        return draw(self)

    def _as_table(self, rows: Any) -> Floats:
        if hasattr(rows, "columns") and hasattr(rows, "loc"):  # a DataFrame: by name, in the result's order
            missing = [name for name in self.columns if name not in rows.columns]
            if missing:
                raise ValueError(f"the rows lack the columns {', '.join(missing)}")
            rows = rows[self.columns].to_numpy()
        elif hasattr(rows, "toarray"):
            rows = rows.toarray()
        table = np.asarray(rows, dtype=np.float64)
        if table.ndim != 2 or table.shape[1] != self.centres.shape[1]:
            raise ValueError(f"rows must be a table with the columns {', '.join(self.columns[:10])}")
        if not np.isfinite(table).all():
            raise ValueError("rows hold missing or infinite values: remove or fill them first")
        return table


def _bounds(domain: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if domain["kind"] == "sparse":
        return "ball", {"radius": domain["radius"], "centre": 0.0}
    if domain["kind"] != "dense":
        raise ValueError("rows of this dataset are names of sites, which have no nearest centre here")
    ((shape, numbers),) = domain["bounds"].items()
    return shape, numbers


def _measure(receipt: Mapping[str, Any]) -> Callable[[Floats], Floats]:
    """Places rows where straight distances order them as the service's own distances do."""
    domain = receipt["domain"]
    if receipt.get("parameters", {}).get("sites", {}).get("metric") == "great-circle":
        return _on_the_sphere
    shape, numbers = _bounds(domain)
    if shape == "box" and domain["scaling"] == "unit":
        widths = np.asarray(numbers["high"], dtype=np.float64) - np.asarray(numbers["low"])
        return lambda rows: rows / widths
    return lambda rows: rows


def _on_the_sphere(rows: Floats) -> Floats:
    """Latitudes and longitudes in degrees as points of the unit sphere: longer arcs have longer chords."""
    latitude, longitude = np.radians(rows).T
    across = np.cos(latitude)
    return np.stack([across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude)], axis=1)


def _clipped(rows: Floats, domain: Mapping[str, Any]) -> Floats:
    shape, numbers = _bounds(domain)
    if shape == "box":
        return np.clip(rows, numbers["low"], numbers["high"])
    centre = np.asarray(numbers["centre"], dtype=np.float64)
    away = rows - centre
    radius = float(numbers["radius"])
    inside: Floats = centre + away * (radius / np.maximum(np.linalg.norm(away, axis=1), radius))[:, None]
    return inside
