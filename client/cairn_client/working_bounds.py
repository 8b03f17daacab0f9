"""Working bounds of a dataset: narrower than the declared ones, typed by its curator or released by a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cairn_client.findings import Findings
from cairn_client.job import Job
from cairn_client.transport import Transport
from cairn_client.wire import DatasetFacts

#: Low and high, or the findings (or the job, or its id) that released them.
Bounds = tuple[Any, Any] | Findings | Job | str


class WorkingBounds:
    """Calls that set and remove the working bounds of a dataset."""

    _transport: Transport
    _facts: DatasetFacts | None

    def refresh(self) -> DatasetFacts:
        """Fetch the facts again."""
        raise NotImplementedError

    def _path(self, rest: str = "") -> str:
        raise NotImplementedError

    def set_working_bounds(self, bounds: Mapping[str, Bounds]) -> DatasetFacts:
        """Give columns narrower bounds, to which rows are clipped by jobs that are planned from now on.

        `bounds` has for each column a low and a high value, or the findings of `quantiles` (its lowest and
        highest values are taken) or of `summary` (three spreads around the mean). Columns that are not named
        keep the working bounds that they have. Nothing is uploaded again, and earlier jobs keep theirs.
        """
        present = self.refresh().working_bounds
        kept = {each.column: each.as_sent() for each in (present.columns if present else ())}
        named = {column: _sent(column, given) for column, given in bounds.items()}
        body = {"columns": list({**kept, **named}.values())}
        path = self._path("/working-bounds")
        self._facts = self._transport.request(DatasetFacts, "PUT", path, body=body, repeatable=True)
        return self._facts

    def remove_working_bounds(self) -> None:
        """Use the declared bounds again, for jobs that are planned from now on."""
        self._facts = None
        self._transport.call("DELETE", self._path("/working-bounds"), repeatable=True)


def _sent(column: str, given: Bounds) -> dict[str, Any]:
    if isinstance(given, tuple):
        low, high = given
        return {"column": column, "low": low, "high": high}
    job = given.facts.job if isinstance(given, Findings) else given.id if isinstance(given, Job) else given
    return {"column": column, "job": job}
