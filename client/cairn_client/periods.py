"""Periods of a dataset: rows that arrive one label after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cairn_client.errors import NotFound
from cairn_client.transport import Transport, quoted
from cairn_client.wire import DatasetFacts, Number, PeriodFacts, amount_text

#: Labels of periods, or the first and the last label of a range, of which either may be None.
PeriodChoice = Sequence[str] | tuple[str | None, str | None] | Mapping[str, str]


class Periods:
    """Calls about the periods of a dataset."""

    name: str
    _transport: Transport
    _facts: DatasetFacts | None

    def _path(self, rest: str = "") -> str:
        raise NotImplementedError

    def periods(self) -> list[PeriodFacts]:
        """The periods by their labels, with what is left of each; drafts for the owner alone."""
        return list(self._transport.pages(PeriodFacts, self._path("/periods")))

    def period(self, label: str) -> PeriodFacts:
        """One period by its label."""
        return self._transport.request(PeriodFacts, "GET", self._path(f"/periods/{quoted(label)}"))

    def add_period(
        self,
        label: str,
        *,
        size: int | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
    ) -> PeriodFacts:
        """Add a period without rows; then `upload` and `seal` with its label.

        Size and budget are those of the dataset unless you name others.
        """
        body: dict[str, Any] = {"label": label}
        if size is not None:
            body["size"] = size
        if epsilon is not None:
            body["budget"] = {"epsilon": amount_text(epsilon), "delta": amount_text(delta or 0)}
        return self._transport.request(
            PeriodFacts, "POST", self._path("/periods"), body=body, repeatable=False
        )

    def correct_period(self, label: str) -> PeriodFacts:
        """Begin a correction of a sealed period; then `upload` the corrected rows and `seal` them.

        The rows that are there are deleted when the corrected ones are sealed.
        """
        place = self._path(f"/periods/{quoted(label)}/correction")
        return self._transport.request(PeriodFacts, "POST", place, repeatable=True)

    def discard_period(self, label: str) -> None:
        """Delete the draft of a period, or of its correction, with its rows."""
        self._transport.call("DELETE", self._path(f"/periods/{quoted(label)}"), repeatable=False)

    def _period_or_new(self, label: str) -> PeriodFacts:
        """Return a period; add it if there is none."""
        try:
            return self.period(label)
        except NotFound:
            return self.add_period(label)


def periods_as_sent(periods: PeriodChoice | None) -> Any:
    """The periods of a request: a tuple of two is a range, anything else a list of labels."""
    if periods is None or isinstance(periods, Mapping):
        return periods
    if isinstance(periods, tuple) and len(periods) == 2:
        ends = zip(("from", "to"), periods, strict=True)
        return {name: label for name, label in ends if label is not None}
    return list(periods)
