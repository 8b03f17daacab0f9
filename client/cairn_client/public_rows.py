"""Public rows of a dataset, which jobs may learn from."""

from __future__ import annotations

from typing import Any

from cairn_client.tables import is_frame
from cairn_client.transport import Transport
from cairn_client.uploading import body_of, file_options
from cairn_client.wire import DatasetFacts


class PublicRows:
    """Calls that attach and detach the public rows of a dataset."""

    _transport: Transport
    _facts: DatasetFacts | None

    def refresh(self) -> DatasetFacts:
        raise NotImplementedError

    def _path(self, rest: str = "") -> str:
        raise NotImplementedError

    def set_public_rows(self, data: Any, *, kind: str | None = None) -> DatasetFacts:
        """Attach rows of the same kind as the dataset's, for jobs that are planned from now on to learn from.

        `data` is what `upload` takes. By this call you confirm that the rows are public, and of none of the
        people in the dataset: the guarantee does not cover them. They replace those attached before; earlier
        jobs keep theirs.
        """
        reading = self.refresh().reading if is_frame(data) else None
        with body_of(data, kind, None, reading) as body:
            self._facts = self._transport.request(
                DatasetFacts,
                "PUT",
                self._path("/public-rows"),
                query={"public": "true"},
                **file_options(body),
            )
        return self._facts

    def remove_public_rows(self) -> None:
        """Detach the public rows: jobs that are planned from now on do without."""
        self._facts = None
        self._transport.call("DELETE", self._path("/public-rows"), repeatable=True)
