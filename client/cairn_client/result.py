"""Results of jobs: centres and noisy sizes as arrays, tables, files and plots; labels for other rows."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from cairn_client.conversion import read, to_json
from cairn_client.csv_cells import escaped
from cairn_client.errors import MissingLibrary
from cairn_client.formatting import rounded_to_noise
from cairn_client.geometry import clipped, placement
from cairn_client.table_geometry import TableGeometry
from cairn_client.tables import array_of
from cairn_client.wire import Amount, Number, ResultFacts

if TYPE_CHECKING:
    from cairn_client.findings import Findings

Floats = npt.NDArray[np.float64]
_BLOCK = 1 << 20
RECEIPT = "receipt_document"  # in a saved file; "receipt" is the service's link to it


def optional(name: str, purpose: str) -> Any:
    """Import an optional library, or say how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        library = name.partition(".")[0]
        raise MissingLibrary(f"{purpose} needs {library}: install it with `pip install {library}`") from error


def _rounded(table: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """A table whose numbers are rounded to their noise, where it has the ends of their intervals."""
    found = dict(table)
    for name in table:
        named = (name, f"{name}_low", f"{name}_high")
        if all(each in table and not isinstance(table[each][0], str) for each in named):
            rows = map(rounded_to_noise, *(table[each] for each in named))
            found |= {each: list(values) for each, values in zip(named, zip(*rows, strict=True), strict=True)}
    return found


class Answers(Protocol):
    """The job of a result, asked for other numbers of clusters and for made-up rows."""

    def result(self, k: int) -> ResultFacts: ...

    def sample(self, count: int) -> npt.NDArray[Any]: ...

    def ask(self, kind: str, epsilon: Number, **request: Any) -> Findings: ...


class Result:
    """Centres and noisy sizes. All of it is differentially private: keep it, share it, plot it freely.

    Arrays are indexed from 0 as usual in Python; tables, files and plots number the clusters from 1.
    """

    def __init__(self, facts: ResultFacts, receipt: dict[str, Any] | None, answers: Answers | None = None):
        #: The result as the service sent it.
        self.facts = facts
        #: One row per centre, in the data's own units.
        self.centres: Floats = np.array(facts.centres, dtype=np.float64)
        #: About how many records each cluster has, with noise; None where no sizes were released.
        self.sizes: Floats | None = None if facts.sizes is None else np.array(facts.sizes, dtype=np.float64)
        self._receipt = receipt
        self._answers = answers

    def at(self, k: int) -> Result:
        """The result for another number of clusters; costs nothing.

        A job that left k open answers for every k of its range. Of a job of a single k the clusters of a
        smaller one are those of this result, merged by their centres and sizes.
        """
        if k == len(self.centres):
            return self
        return Result(self._service().result(k), self._receipt, self._answers)

    def sample(self, count: int = 1000) -> npt.NDArray[Any]:
        """Made-up rows that agree with the release, of a job that left k open; none of them is a record.

        They are the same ones each time, in the data's own units; there are at most 10,000. Of a table they
        have a field for each column, of its kind: `pandas.DataFrame(result.sample())` has them as columns.
        """
        if self.facts.range is None:
            raise ValueError("this job asked for a single k: submit one with a range, such as k=(1, 32)")
        return self._service().sample(count)

    def profile(self, columns: Sequence[str] | None = None, *, epsilon: Number, **request: Any) -> Findings:
        """Profile each cluster: its size and a histogram of each column, those kept for questions included.

        A new job, which costs this epsilon. Takes the further arguments of `dataset.ask`.
        """
        return self._ask("profile", epsilon, columns=columns, **request)

    def explain(self, picks: int = 3, *, epsilon: Number, **request: Any) -> Findings:
        """The columns that set each cluster apart most, chosen privately, with histograms; a new job."""
        options = {"picks": picks, **(request.pop("options", None) or {})}
        return self._ask("explain", epsilon, options=options, **request)

    def compare(self, other: Result, *, epsilon: Number, **request: Any) -> Findings:
        """Count the records in each cluster of this result and each of another; a new job."""
        return self._ask("compare", epsilon, others=(other,), **request)

    def _ask(self, kind: str, epsilon: Number, others: Sequence[Result] = (), **request: Any) -> Findings:
        answers = self._service()
        named = [{"job": each.facts.job, "k": len(each.centres)} for each in (self, *others)]
        return answers.ask(kind, epsilon, clusterings=named, **request)

    def _service(self) -> Answers:
        if self._answers is None:
            raise ValueError("this result was read from a file: fetch it again with client.job(id).result()")
        return self._answers

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """Read a result from a `.json` file that `save`, `cairn result -o` or the console wrote."""
        path = Path(path)
        if path.suffix.lower() != ".json":
            raise ValueError(f"{path} is not a .json file; .csv and .npy files hold the centres alone")
        data = json.loads(path.read_text())
        return cls(read(ResultFacts, data), data.get(RECEIPT))

    def save(self, path: str | Path) -> None:
        """Write the result: everything to `.json`, for `load`; a table to `.csv`; the centres to `.npy`."""
        path = Path(path)
        kind = path.suffix.lower()
        if kind == ".csv":
            with path.open("w", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                table = _rounded(self._table())
                writer.writerow(["cluster", *escaped(table)])
                for number, row in enumerate(zip(*table.values(), strict=True), 1):
                    cells = (each if isinstance(each, str) else repr(each) for each in row)
                    writer.writerow([number, *escaped(cells)])
        elif kind == ".npy":
            np.save(path, self.centres, allow_pickle=False)
        elif kind == ".json":
            path.write_text(json.dumps({**self.to_json(), RECEIPT: self._receipt}, indent=2) + "\n")
        else:
            raise ValueError(f"{path} should end in .csv, .json or .npy")

    def __repr__(self) -> str:
        k, width = self.centres.shape
        free = ", rehearsal" if self.facts.rehearsal else ""
        return f"<Result {k} centres in {width} columns of {self.facts.dataset}, {self.guarantee}{free}>"

    def _repr_html_(self) -> str | None:
        try:
            return str(self.frame()._repr_html_())
        except MissingLibrary:
            return None

    @property
    def guarantee(self) -> Amount:
        """The epsilon and delta of the result's guarantee."""
        return read(Amount, {name: self.facts.privacy[name] for name in ("epsilon", "delta")})

    @property
    def columns(self) -> list[str]:
        """The names of the columns; `x0`, `x1`, ... where the dataset has none."""
        return self.facts.columns or [f"x{i}" for i in range(self.centres.shape[1])]

    @property
    def profiles(self) -> list[list[dict[str, Any]]]:
        """Of a table: each centre column by column, in the columns' own kinds, with its noise."""
        if self.facts.profiles is None:
            raise ValueError("only results of tables have profiles: read result.centres")
        return self.facts.profiles

    @property
    def receipt(self) -> dict[str, Any]:
        """The receipt: the plan and the charge, step by step."""
        if self._receipt is None:
            raise ValueError("this file has no receipt: fetch the result again, and save it with result.save")
        return self._receipt

    @property
    def size_error(self) -> float | None:
        """The standard deviation of the noise in each size; None where the result does not state it."""
        return None if self.facts.noise is None else self.facts.noise.size

    def frame(self) -> Any:
        """A pandas DataFrame with a row per centre, numbered from 1.

        It has the columns by name (of a table in their own kinds, a category as a share for each level) and,
        where they are known, the noisy `size`, the standard deviation of its noise, `size_noise`, and 95%
        intervals: `size_low`, `size_high`, and the same for each column. Those of a job of a single k are of
        the noise alone, and approximate for columns.
        """
        pandas = optional("pandas", "a DataFrame")
        numbers = pandas.RangeIndex(1, len(self.centres) + 1, name="cluster")
        return pandas.DataFrame(self._table(), index=numbers)

    def arrow(self) -> Any:
        """A pyarrow Table with a row per centre, as `frame`, with `cluster` as its first column."""
        table = {"cluster": list(range(1, len(self.centres) + 1)), **self._table()}
        return optional("pyarrow", "an Arrow table").table(table)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Let libraries that speak Arrow, such as polars, read the table: `polars.DataFrame(result)`."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def _table(self) -> dict[str, list[Any]]:
        rows = self.centres.tolist() if self.facts.profiles is None else self._values()
        table = {name: [row[place] for row in rows] for place, name in enumerate(self.columns)}
        derived = self._derived()
        prefix = "cluster_" if derived.keys() & table.keys() else ""
        return table | {prefix + name: values for name, values in derived.items()}

    @property
    def intervals(self) -> dict[str, Any]:
        """95% intervals as far as they are known: `size_low`, `size_high`, `centre_low` and `centre_high`.

        Of a job that left k open they are of the records nearest to each centre. Of a single k they are of
        the noise alone, and those of centres are approximate.
        """
        known = self.facts.level or self.facts.intervals or {}
        names = ("size_low", "size_high", "centre_low", "centre_high")
        return {name: known[name] for name in names if name in known}

    def _derived(self) -> dict[str, list[Any]]:
        """Columns about the clusters: sizes with their noise, and intervals as far as they are known."""
        found: dict[str, list[Any]] = {}
        if self.sizes is not None:
            found["size"] = self.sizes.tolist()
            if self.size_error is not None:
                found["size_noise"] = [self.size_error] * len(self.sizes)
        known = self.intervals
        found |= {end: known[end] for end in ("size_low", "size_high") if end in known}
        if "centre_low" in known:
            tabled = self.facts.profiles is not None
            ends = {e: self._values(f"_{e}") if tabled else known[f"centre_{e}"] for e in ("low", "high")}
            for place, name in enumerate(self.columns):
                found |= {f"{name}_{end}": [row[place] for row in rows] for end, rows in ends.items()}
        return found

    def _values(self, end: str = "") -> list[list[Any]]:
        """A value for each of `columns` of a table, or an end of its interval: a number, a share, a date."""
        return [
            [
                value
                for entry in profile
                for value in entry.get(f"shares{end}", {"": entry.get(f"value{end}")}).values()
            ]
            for profile in self.profiles
        ]

    def to_json(self) -> dict[str, Any]:
        """The result as the service sent it."""
        found: dict[str, Any] = to_json(self.facts)
        return found

    def predict(self, rows: Any) -> npt.NDArray[np.int64]:
        """The index in `centres` of the centre nearest to each of your own rows.

        Rows are treated as the service treats the dataset's: clipped to its bounds and, with `scaling`
        `unit`, measured in widths of the columns, or along great circles where the sites were given so. A
        DataFrame may have further columns. Rows of a table have values of the columns' own kinds, and are
        measured with the job's weights. Nothing is sent to the service.
        """
        domain = self.receipt["domain"]
        if domain["kind"] == "table":
            geometry = TableGeometry.of(self.receipt, self.facts.details)
            return self._nearest(geometry.coordinates(rows), geometry.place)
        table = clipped(array_of(rows, self.columns), domain)
        return self._nearest(table, placement(self.receipt))

    def _nearest(self, table: Floats, place: Callable[[Floats], Floats]) -> npt.NDArray[np.int64]:
        centres = place(self.centres)
        labels = np.empty(len(table), dtype=np.int64)
        step = max(1, _BLOCK // max(1, *self.centres.shape))
        lengths = np.einsum("ij,ij->i", centres, centres)
        for start in range(0, len(table), step):
            block = place(table[start : start + step])
            labels[start : start + step] = np.argmin(lengths - 2.0 * (block @ centres.T), axis=1)
        return labels

    def plot(self) -> Any:
        """A matplotlib Figure of the centres and sizes, with error bars."""
        from cairn_client.plotting import draw

        return draw(self)
