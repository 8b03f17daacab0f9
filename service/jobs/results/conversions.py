"""Conversions of what is stored of a job into the file that a caller asks for.

A conversion is a value, so that a process of its own can make it when what is stored is long.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, Protocol, Self

import numpy as np
from pydantic_core import from_json, to_json
from sqlalchemy import select
from sqlalchemy.orm import Session

from service.datasets.access import domain_of
from service.errors import InvalidRequest
from service.jobs.results import answers, csv_files, findings, stored
from service.operations.database import Database
from service.operations.tables import Dataset, Job

#: Most values of made-up rows that are sent as text.
_MOST_TEXT_VALUES = 200_000
#: Most values of made-up rows that are sent as NPY.
_MOST_BINARY_VALUES = 2_000_000


class Format(StrEnum):
    """Formats of results and made-up rows, by their media types."""

    JSON = "application/json"
    CSV = "text/csv"
    NPY = "application/x-npy"

    @classmethod
    def accepted(cls, accept: str) -> Self:
        """Return the format that an `Accept` header asks for; JSON, if it names none of them."""
        return next((each for each in (cls.NPY, cls.CSV) if each in accept), cls.JSON)


class Conversion(Protocol):
    """A file to be made of what is stored of a job."""

    @property
    def format(self) -> Format: ...

    def stored_bytes(self, session: Session) -> int:
        """Return the length of what is read for it."""

    def content(self, session: Session) -> bytes:
        """Make the file, or raise what is wrong with the request."""


@dataclass(frozen=True)
class ResultFile:
    """The result of a job, as it was stored or for another k."""

    job_id: str
    format: Format
    k: int | None = None

    def stored_bytes(self, session: Session) -> int:
        other = 0 if self.k is None else answers.stored_bytes(session, self.job_id, self.k)
        return stored.length(session, self.job_id) + other

    def content(self, session: Session) -> bytes:
        body = from_json(stored.text(session, self.job_id))
        if "kind" in body:
            return self._answer(session, body)
        if self.k is not None:
            body = self._of_k(session, body, self.k)
        if self.format is Format.NPY:
            return _npy(np.array(body["centres"], dtype=np.float64))
        return csv_files.result_csv(body).encode() if self.format is Format.CSV else to_json(body)

    def _of_k(self, session: Session, body: Mapping[str, Any], k: int) -> Mapping[str, Any]:
        """Return a result with the centres, sizes and intervals of another k."""
        if "range" not in body and k == len(body["centres"]):
            return body
        receipt = stored.receipt(session, self.job_id)
        return {**body, **answers.of_other_k(session, self.job_id, k, body, receipt)}

    def _answer(self, session: Session, body: dict[str, Any]) -> bytes:
        """Return the answer to a question."""
        if self.k is not None or self.format is Format.NPY:
            raise InvalidRequest(f"the result of a {body['kind']} has no centres: ask for it as JSON or CSV")
        if self.format is Format.CSV:
            return findings.as_csv(body).encode()
        of_job = select(Dataset).join(Job, Job.dataset_id == Dataset.id).where(Job.id == self.job_id)
        return to_json(findings.shown(body, domain_of(session.scalars(of_job).one())))


@dataclass(frozen=True)
class DifferencesFile:
    """Two answers about the same clusters side by side."""

    first: str
    second: str
    format: Format = Format.JSON

    def stored_bytes(self, session: Session) -> int:
        return stored.length(session, self.first) + stored.length(session, self.second)

    def content(self, session: Session) -> bytes:
        bodies = (from_json(stored.text(session, job)) for job in (self.first, self.second))
        return to_json(findings.side_by_side(*bodies))


@dataclass(frozen=True)
class SampleFile:
    """The first made-up rows of a job that left k open."""

    job_id: str
    format: Format
    rows: int
    coordinates: bool = False

    def stored_bytes(self, session: Session) -> int:
        return answers.stored_bytes(session, self.job_id, answers.ROWS)

    def content(self, session: Session) -> bytes:
        receipt = stored.receipt(session, self.job_id)
        made_up = answers.made_up_rows(session, self.job_id, receipt)
        if made_up is None:
            raise InvalidRequest("this job has no made-up rows: only jobs that leave k open have some")
        rows = made_up.coordinates(self.rows) if self.coordinates else made_up.first(self.rows)
        columns = list(rows.dtype.names or made_up.domain.columns)
        self._require_few(len(rows) * len(columns))
        if self.format is Format.NPY:
            return _npy(rows)
        listed = csv_files.plain_rows(rows)
        if self.format is Format.CSV:
            return csv_files.rows_csv(columns, listed).encode()
        return to_json({"columns": columns, "rows": listed, "made_up": True})

    def _require_few(self, values: int) -> None:
        binary = self.format is Format.NPY
        most = _MOST_BINARY_VALUES if binary else _MOST_TEXT_VALUES
        if values > most:
            other = "" if binary else f", or for {Format.NPY}"
            raise InvalidRequest(f"at most {most} values are sent this way: ask for fewer rows{other}")


def convert(address: str, conversion: Conversion) -> bytes:
    """Make a file in a process that has only the address of the database."""
    with _database(address).read() as session:
        return conversion.content(session)


@lru_cache(maxsize=1)
def _database(address: str) -> Database:
    return Database(address, pool=1)


def _npy(array: Any) -> bytes:
    file = io.BytesIO()
    version = (3, 0) if array.dtype.names else None  # only that one has names in any alphabet
    np.lib.format.write_array(file, array, version=version, allow_pickle=False)
    return file.getvalue()
