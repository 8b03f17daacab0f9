"""Results of questions, as the service released them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

from cairn_client.conversion import read, to_json
from cairn_client.notebook import table_html
from cairn_client.result import RECEIPT, optional
from cairn_client.wire import Amount, FindingsFacts

#: The apostrophe before a text that a spreadsheet program might take for a formula.
_ESCAPED = r"^'(?='*[=+\-@\t\r])"


class Findings:
    """The answer to a question. All of it is differentially private: keep it, share it, plot it freely."""

    def __init__(
        self, facts: FindingsFacts, receipt: dict[str, Any] | None, csv: Callable[[], str] | None = None
    ):
        #: The answer as the service sent it.
        self.facts = facts
        self._receipt = receipt
        self._csv = csv

    @classmethod
    def load(cls, path: str | Path) -> Findings:
        """Read findings from a `.json` file that `save` or `cairn ask -o` wrote."""
        data = json.loads(Path(path).read_text())
        return cls(read(FindingsFacts, data), data.get(RECEIPT))

    def save(self, path: str | Path) -> None:
        """Write the findings: everything to `.json`, for `load`; a line for each number to `.csv`."""
        path = Path(path)
        kind = path.suffix.lower()
        if kind == ".csv":
            path.write_text(self.csv())
        elif kind == ".json":
            path.write_text(json.dumps({**self.to_json(), RECEIPT: self._receipt}, indent=2) + "\n")
        else:
            raise ValueError(f"{path} should end in .csv or .json")

    def __repr__(self) -> str:
        free = ", rehearsal" if self.facts.rehearsal else ""
        return f"<Findings {self.facts.kind} of {self.facts.dataset}, {self.guarantee}{free}>"

    def _repr_html_(self) -> str:
        """The answer in a notebook: its sentences, then its tables and histograms."""
        return "".join([*(f"<p>{escape(each)}</p>" for each in self.sentences), *self._tables()])

    def _tables(self) -> Iterator[str]:
        for part in self.facts.view:
            if part["type"] == "table":
                rows = [
                    [each["text"] if isinstance(each, dict) else each for each in row] for row in part["rows"]
                ]
                yield table_html(part["title"], [each["name"] for each in part["headings"]], rows)
            elif part["type"] == "bars":
                named = ["", *(each["name"] for each in part["series"])]
                bars = zip(part["bins"], *(each["bars"] for each in part["series"]), strict=True)
                rows = [[bin_name, *(bar["share"]["text"] for bar in found)] for bin_name, *found in bars]
                yield table_html(part["title"], named, rows)

    def arrow(self) -> Any:
        """A pyarrow Table with a row for each released number; polars reads findings themselves."""
        return optional("pyarrow", "an Arrow table").Table.from_pandas(self.frame(), preserve_index=False)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Let libraries that speak Arrow, such as polars, read the numbers: `polars.DataFrame(findings)`."""
        return self.arrow().__arrow_c_stream__(requested_schema)

    def __getitem__(self, name: str) -> Any:
        """A part of the answer by its name, such as `columns`, `counts` or `sizes`."""
        return self.facts.findings[name]

    @property
    def sentences(self) -> list[str]:
        """What the answer says in words, its noise first."""
        return [part["text"] for part in self.facts.view if part["type"] == "sentence"]

    @property
    def guarantee(self) -> Amount:
        """The epsilon and delta of the guarantee."""
        return read(Amount, {name: self.facts.privacy[name] for name in ("epsilon", "delta")})

    @property
    def receipt(self) -> dict[str, Any]:
        """The receipt: the plan and the charge, step by step."""
        if self._receipt is None:
            raise ValueError("this file has no receipt: ask again with client.job(id).findings()")
        return self._receipt

    def csv(self) -> str:
        """One line for each released number, as the service writes it."""
        if self._csv is None:
            raise ValueError("these were read from a file: fetch them again with client.job(id).findings()")
        return self._csv()

    def frame(self) -> Any:
        """A pandas DataFrame with a row for each released number; clusters are numbered from 1."""
        pandas = optional("pandas", "a DataFrame")
        frame = pandas.read_csv(io.StringIO(self.csv()), keep_default_na=False)
        frame.columns = frame.columns.str.replace(_ESCAPED, "", regex=True)
        return frame.replace(_ESCAPED, "", regex=True)

    def to_json(self) -> dict[str, Any]:
        """The answer as the service sent it."""
        found: dict[str, Any] = to_json(self.facts)
        return found
