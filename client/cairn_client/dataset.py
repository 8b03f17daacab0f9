"""A dataset as its users hold it: plan, cluster and, for its curator, upload, grant, raise, read, retire."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
import numpy.typing as npt

from cairn_client.job import Job
from cairn_client.progress import Show
from cairn_client.result import Result
from cairn_client.transport import Transport, quoted
from cairn_client.uploading import Sent, body_of
from cairn_client.wire import (
    DatasetFacts,
    GrantFacts,
    JobFacts,
    LedgerRow,
    Number,
    PlanFacts,
    Retirement,
    SiteKind,
    SiteSetFacts,
    UploadReport,
    VerifyReport,
    amount_text,
)

__all__ = ["Dataset"]

_UPLOAD_SECONDS = 3600.0


class Request(TypedDict, total=False):
    """What a job may say beside k, epsilon and delta."""

    objective: str
    algorithm: str
    options: Mapping[str, Any] | None
    sites: str | None
    rehearsal: bool
    idempotency_key: str | None


class Dataset:
    """A dataset by its name; nothing is asked of the service until something is needed."""

    def __init__(self, transport: Transport, name: str, facts: DatasetFacts | None = None):
        self._transport = transport
        self._facts = facts
        self.name = name

    def __repr__(self) -> str:
        state = f": {self._facts.state}, {self._facts.dimension} columns" if self._facts else ""
        return f"<Dataset {self.name}{state}>"

    @property
    def facts(self) -> DatasetFacts:
        """Public facts and budget, as last seen; `refresh` looks again."""
        return self._facts if self._facts is not None else self.refresh()

    def refresh(self) -> DatasetFacts:
        """Look at the dataset again."""
        self._facts = self._transport.get(DatasetFacts, self._path())
        return self._facts

    # --- for analysts ---------------------------------------------------------------------------------------

    def plan(
        self,
        k: int,
        epsilon: Number,
        delta: Number | None = None,
        *,
        objective: str = "means",
        algorithm: str = "auto",
        options: Mapping[str, Any] | None = None,
        sites: str | None = None,
    ) -> PlanFacts:
        """What a job would measure and cost, what would remain, how well it should do; free."""
        body = self._request(k, epsilon, delta, objective, algorithm, options, sites)
        answer = self._transport.call("POST", "/v1/plans", body=body, repeatable=True)
        return self._transport.read(PlanFacts, answer)

    def submit(
        self,
        k: int,
        epsilon: Number,
        delta: Number | None = None,
        *,
        objective: str = "means",
        algorithm: str = "auto",
        options: Mapping[str, Any] | None = None,
        sites: str | None = None,
        rehearsal: bool = False,
        idempotency_key: str | None = None,
    ) -> Job:
        """Submit a job and return it at once; its cost is reserved now and charged when a worker takes it.

        The request carries an idempotency key, so that repeating it after a broken connection never pays
        twice. Give one of your own to make a whole script safe to run again.
        """
        body = self._request(k, epsilon, delta, objective, algorithm, options, sites)
        if rehearsal:
            body["rehearsal"] = True
        headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        answer = self._transport.call("POST", "/v1/jobs", body=body, headers=headers, repeatable=True)
        return Job(self._transport, self._transport.read(JobFacts, answer))

    @overload
    def cluster(
        self,
        k: int,
        epsilon: Number,
        delta: Number | None = None,
        *,
        wait: Literal[False],
        **request: Unpack[Request],
    ) -> Job: ...
    @overload
    def cluster(
        self,
        k: int,
        epsilon: Number,
        delta: Number | None = None,
        *,
        wait: Literal[True] = True,
        timeout: float | None = None,
        progress: bool | Show | None = None,
        **request: Unpack[Request],
    ) -> Result: ...
    def cluster(
        self,
        k: int,
        epsilon: Number,
        delta: Number | None = None,
        *,
        wait: bool = True,
        timeout: float | None = None,
        progress: bool | Show | None = None,
        **request: Unpack[Request],
    ) -> Result | Job:
        """Submit a job, wait for it with a progress bar, and return its result; takes what `submit` takes.

        `wait=False` returns the job at once: `job.wait()` and `job.result()` do the rest later.
        """
        job = self.submit(k, epsilon, delta, **request)
        return job.result(timeout, progress) if wait else job

    def jobs(self, limit: int | None = None) -> list[Job]:
        """Your jobs on this dataset (for its curator: everybody's), newest first."""
        found = self._transport.pages(JobFacts, "/v1/jobs", {"dataset": self.name}, limit)
        return [Job(self._transport, facts) for facts in found]

    def ledger(self, limit: int | None = None) -> list[LedgerRow]:
        """The ledger's entries in order: all for the curator, an analyst's own for the analyst."""
        return list(self._transport.pages(LedgerRow, self._path("/ledger"), limit=limit))

    def sites(self) -> list[SiteSetFacts]:
        """The sets of public sites that jobs may choose from."""
        return list(self._transport.pages(SiteSetFacts, self._path("/sites")))

    # --- for the curator ------------------------------------------------------------------------------------

    def upload(
        self,
        data: Any,
        *,
        kind: str | None = None,
        on_bad_row: Literal["refuse", "drop"] = "refuse",
        progress: Sent | None = None,
    ) -> UploadReport:
        """Upload the rows, once: a path, an open binary file, bytes or a numpy array.

        A file is streamed, never held in memory. Its SHA-256 is announced, so that what arrives damaged is
        refused and an upload whose answer was lost is safely repeated. `progress` is called with the bytes
        sent and the bytes in all.
        """
        with body_of(data, kind, progress) as body:
            answer = self._transport.call(
                "PUT",
                self._path("/data"),
                content=body.send,
                query={"on_bad_row": on_bad_row, "sha256": body.sha256},
                headers={"Content-Type": body.kind, "Content-Length": str(body.size)},
                read_seconds=_UPLOAD_SECONDS,
            )
        self._facts = None
        return self._transport.read(UploadReport, answer)

    def grant(self, analyst: str, epsilon: Number, delta: Number = 0) -> GrantFacts:
        """Let an analyst spend up to a cap, or move the cap; never below what they have used."""
        body = {"epsilon": amount_text(epsilon), "delta": amount_text(delta)}
        answer = self._transport.call("PUT", self._path(f"/grants/{quoted(analyst)}"), body=body)
        return self._transport.read(GrantFacts, answer)

    def revoke(self, analyst: str) -> None:
        """Withdraw a grant and the analyst's queued jobs; what they spent stays spent."""
        self._transport.call("DELETE", self._path(f"/grants/{quoted(analyst)}"), repeatable=False)

    def grants(self) -> list[GrantFacts]:
        """Who may use the dataset, and how far; withdrawn grants keep what was spent."""
        return list(self._transport.pages(GrantFacts, self._path("/grants")))

    def raise_budget(self, epsilon: Number, delta: Number = 0) -> DatasetFacts:
        """Set a higher total; it can never be lowered."""
        body = {"epsilon": amount_text(epsilon), "delta": amount_text(delta)}
        answer = self._transport.call("POST", self._path("/budget"), body=body, repeatable=True)
        self._facts = self._transport.read(DatasetFacts, answer)
        return self._facts

    def verify_ledger(self) -> VerifyReport:
        """Have the service replay the ledger: the chain of hashes, and every balance."""
        answer = self._transport.call("POST", self._path("/ledger/verify"), repeatable=True)
        return self._transport.read(VerifyReport, answer)

    def put_sites(
        self, name: str, sites: npt.ArrayLike | str | Path, kind: SiteKind = "coordinates"
    ) -> SiteSetFacts:
        """Store public sites, one row for each: an array, or the path of a CSV (no header) or NPY file.

        `coordinates` are in the dataset's columns; `great-circle` takes latitudes and longitudes in degrees
        and measures along the earth's surface; `distances` is a square matrix, for rows that name sites.
        """
        file = sites if isinstance(sites, str | Path) else np.asarray(sites, dtype=np.float64)
        with body_of(file, None, None) as body:
            answer = self._transport.call(
                "PUT",
                self._path(f"/sites/{quoted(name)}"),
                content=body.send,
                query={"kind": kind},
                headers={"Content-Type": body.kind, "Content-Length": str(body.size)},
            )
        return self._transport.read(SiteSetFacts, answer)

    def retire(self) -> Retirement:
        """Delete the rows for good and keep the ledger; queued jobs are withdrawn and not charged."""
        answer = self._transport.call("POST", self._path("/retire"), repeatable=False)
        self._facts = None
        return self._transport.read(Retirement, answer)

    # --- inside ---------------------------------------------------------------------------------------------

    def _path(self, rest: str = "") -> str:
        return f"/v1/datasets/{quoted(self.name)}{rest}"

    def _request(
        self,
        k: int,
        epsilon: Number,
        delta: Number | None,
        objective: str,
        algorithm: str,
        options: Mapping[str, Any] | None,
        sites: str | None,
    ) -> dict[str, Any]:
        body = {
            "dataset": self.name,
            "k": k,
            "epsilon": amount_text(epsilon),
            "delta": None if delta is None else amount_text(delta),
            "objective": objective,
            "algorithm": algorithm,
            "options": dict(options or {}),
            "sites": sites,
        }
        return {name: value for name, value in body.items() if value is not None}
