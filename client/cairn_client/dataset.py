"""Operations on one dataset, those of analysts first, then those of its curator."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

import numpy as np
import numpy.typing as npt

from cairn_client.access import AccessRequests
from cairn_client.errors import Problem
from cairn_client.job import Job
from cairn_client.listing import Listing
from cairn_client.periods import PeriodChoice, Periods, periods_as_sent
from cairn_client.progress import Show
from cairn_client.public_rows import PublicRows
from cairn_client.questions import Questions
from cairn_client.result import Result
from cairn_client.tables import array_of, is_frame
from cairn_client.transport import Transport, quoted
from cairn_client.uploading import Body, Sent, body_of, file_options
from cairn_client.wire import (
    Amount,
    DatasetFacts,
    GrantFacts,
    JobFacts,
    LedgerRow,
    Number,
    PeriodFacts,
    PlanFacts,
    Retirement,
    SiteKind,
    SiteSetFacts,
    UploadReport,
    VerifyReport,
    amount_text,
)
from cairn_client.working_bounds import WorkingBounds

T = TypeVar("T")
#: A number of clusters, or the first and the last of a range that leaves it open.
Clusters = int | tuple[int, int]
#: The quote of no plan: only a job that has been submitted before is answered under it.
_NO_QUOTE = "0" * 64


class JobRequest(TypedDict, total=False):
    """Arguments of a job besides k, epsilon and delta."""

    #: "means" (the default) or "medians".
    objective: str
    #: A name from `client.algorithms()`; by default "auto", which chooses one.
    algorithm: str
    #: Options of the algorithm.
    options: Mapping[str, Any] | None
    #: Name of a set of public sites, for algorithms that choose centres among them.
    sites: str | None
    #: Of a table: the columns to cluster on, by default all that are there for it.
    columns: Sequence[str] | None
    #: Of a table: how much columns count in distances, by name; "fair" weighs them by their kinds.
    weights: Mapping[str, float] | Literal["fair"] | None
    #: Of a table: "private" spends 5% of epsilon on the ranges that columns really fill.
    scaling: str | None
    #: False does without the dataset's public rows, if it has any.
    public_rows: bool
    #: Of a dataset with periods: labels, or a tuple of the first and the last of a range; by default all.
    periods: PeriodChoice | None
    #: Run on synthetic rows instead of the data, for free.
    rehearsal: bool
    #: Rehearse on the made-up rows of an earlier job: the id of one that left k open. Free, too.
    rehearse_on: str | None
    #: The `quote` of a plan of the same request: the job is refused if anything else would be charged. By
    #: default that of a plan made just before.
    quote: str | None
    #: By default a new one for each call.
    idempotency_key: str | None


class WaitingRequest(JobRequest, total=False):
    """Arguments of a job whose result is waited for."""

    wait: Literal[True]
    timeout: float | None
    progress: bool | Show | None


class Terms(TypedDict, total=False):
    """What a grant is for, and until when; what is left out keeps its present value."""

    purpose: str
    permit: str
    ends_at: datetime | None
    keeps_results: bool


class Dataset(Questions, WorkingBounds, PublicRows, Periods, Listing, AccessRequests):
    """A dataset of the service, by its name."""

    def __init__(self, transport: Transport, name: str, facts: DatasetFacts | None = None):
        self._transport = transport
        self._facts = facts
        self.name = name

    def __repr__(self) -> str:
        state = f": {self._facts.state}, {self._facts.dimension} columns" if self._facts else ""
        return f"<Dataset {self.name}{state}>"

    @property
    def facts(self) -> DatasetFacts:
        """Public facts and budget, as last fetched; `refresh` fetches them again."""
        return self._facts if self._facts is not None else self.refresh()

    def refresh(self) -> DatasetFacts:
        """Fetch the facts again."""
        self._facts = self._transport.request(DatasetFacts, "GET", self._path())
        return self._facts

    # --- for analysts ---------------------------------------------------------------------------------------

    def plan(
        self, k: Clusters, epsilon: Number, delta: Number | None = None, **request: Unpack[JobRequest]
    ) -> PlanFacts:
        """Plan a job for free: its measurements and cost, what it would leave, a forecast of its accuracy.

        Pass its `quote` to `submit` or `cluster` to be charged this and nothing else.
        """
        request["rehearsal"], request["rehearse_on"], request["quote"] = False, None, None
        body, _ = _job(self.name, k, epsilon, delta, **request)
        return self._plan(body)

    def submit(
        self, k: Clusters, epsilon: Number, delta: Number | None = None, **request: Unpack[JobRequest]
    ) -> Job:
        """Submit a job and return it without waiting.

        The cost is reserved now and charged when a worker starts the job. Without a `quote` the job is
        planned first, for free, and carries the quote of that plan: it is charged what was planned, or
        refused. Every request carries an idempotency key, so that a retry after a lost connection is never
        charged twice. Pass your own key to make a script safe to run again.
        """
        body, headers = _job(self.name, k, epsilon, delta, **request)
        if "quote" not in body:
            body["quote"] = self._quote(body, own_key=request.get("idempotency_key") is not None)
        made = self._transport.request(
            JobFacts, "POST", "/v1/jobs", body=body, headers=headers, repeatable=True
        )
        return Job(self._transport, made)

    @overload
    def cluster(
        self,
        k: Clusters,
        epsilon: Number,
        delta: Number | None = None,
        *,
        wait: Literal[False],
        **request: Unpack[JobRequest],
    ) -> Job: ...
    @overload
    def cluster(
        self, k: Clusters, epsilon: Number, delta: Number | None = None, **request: Unpack[WaitingRequest]
    ) -> Result: ...
    def cluster(
        self, k: Clusters, epsilon: Number, delta: Number | None = None, *, wait: bool = True, **request: Any
    ) -> Result | Job:
        """Submit a job, wait for it with a progress bar, and return its result.

        Takes the arguments of `submit`, and `timeout` and `progress` of `job.result`. With `wait=False` it
        returns the job immediately; call `job.result()` later.
        """
        timeout, progress = request.pop("timeout", None), request.pop("progress", None)
        job = self.submit(k, epsilon, delta, **request)
        return job.result(timeout, progress) if wait else job

    def jobs(self, limit: int | None = None) -> list[Job]:
        """Your jobs on this dataset (for its curator: everybody's), newest first."""
        found = self._transport.pages(JobFacts, "/v1/jobs", {"dataset": self.name}, limit)
        return [Job(self._transport, facts) for facts in found]

    def ledger(self, limit: int | None = None) -> list[LedgerRow]:
        """The ledger's entries in order: all of them for the curator, their own for an analyst."""
        return list(self._transport.pages(LedgerRow, self._path("/ledger"), limit=limit))

    def sites(self) -> list[SiteSetFacts]:
        """The sets of public sites of this dataset."""
        return self._transport.entries(SiteSetFacts, self._path("/sites"))

    # --- for the curator ------------------------------------------------------------------------------------

    def upload(
        self,
        data: Any,
        *,
        kind: str | None = None,
        on_bad_row: Literal["refuse", "drop"] = "refuse",
        progress: Sent | None = None,
        seal: bool = False,
        confirm: Collection[str] = (),
        period: str | None = None,
    ) -> UploadReport:
        """Upload the rows of a draft: a path, an open binary file, bytes, an array or a pandas DataFrame.

        In a dataset with periods, `period` is the label of one; it is added if there is none.

        Delimited text may come in several files with the same first line: give a list of their paths.

        The report says what was found in them. They replace rows that were uploaded before, and count once
        `seal` has been called; `seal=True` does that at once, and raises CannotSeal if the rows look wrong.

        A file is streamed, not read into memory. Its SHA-256 is sent along, so that a damaged upload is
        refused and an interrupted one can safely be repeated. A DataFrame is sent without its index, as Arrow
        if pyarrow is installed and else as CSV: booleans as 0 and 1, whole numbers as whole numbers, missing
        values of any dtype as gaps. What becomes of a cell never depends on other rows. `progress` is called
        with the bytes sent so far and the bytes in total.
        """
        reading = self.refresh().reading if is_frame(data) else None
        place = "" if period is None else f"/periods/{quoted(self._period_or_new(period).label)}"
        with body_of(data, kind, progress, reading) as body:
            query = {"on_bad_row": on_bad_row, "sha256": body.sha256}
            report = self._put(UploadReport, f"{place}/data", body, query)
        self._facts = None
        if seal:
            self.seal(confirm, sha256=report.sha256, period=period)
        return report

    def seal(
        self, confirm: Collection[str] = (), *, sha256: str | None = None, period: str | None = None
    ) -> DatasetFacts:
        """Seal the dataset, or a period of it, with the rows that were uploaded. Jobs can then run on them.

        `confirm` names the doubts of the report that you have looked into. `sha256` is that of the report.
        """
        if sha256 is None:
            upload = self._draft_of(self.refresh() if period is None else self.period(period))
            sha256 = upload.sha256 if upload else None
        body = {"confirm": list(confirm), "sha256": sha256}
        given = {name: value for name, value in body.items() if value is not None}
        if period is not None:
            place = self._path(f"/periods/{quoted(period)}/seal")
            self._transport.request(PeriodFacts, "POST", place, body=given, repeatable=True)
            return self.refresh()
        self._facts = self._transport.request(
            DatasetFacts, "POST", self._path("/seal"), body=given, repeatable=True
        )
        return self._facts

    @staticmethod
    def _draft_of(found: DatasetFacts | PeriodFacts) -> UploadReport | None:
        """Return the report on the rows of a dataset or a period, or on those of its correction."""
        return found.correction.upload if found.correction else found.upload

    def edit(self, **changes: Any) -> DatasetFacts:
        """Change public facts of a draft: arguments of `create_dataset`, except budget and accountant.

        Uploaded rows are thrown away unless only the size changes. A fact that is changed after a look at
        rows is marked as such for everybody.
        """
        self._facts = self._transport.request(
            DatasetFacts, "PATCH", self._path(), body=changes, repeatable=True
        )
        return self._facts

    def correct(self) -> DatasetFacts:
        """Begin a correction of a sealed dataset; then `upload` the corrected rows and `seal` them.

        The rows that are there are deleted when the corrected ones are sealed. The budget goes on.
        """
        self._facts = self._transport.request(
            DatasetFacts, "POST", self._path("/correction"), repeatable=True
        )
        return self._facts

    def throw_away_rows(self) -> None:
        """Delete the uploaded rows of a draft, or a correction that was begun, and the report on them."""
        self._facts = None
        self._transport.call("DELETE", self._path("/data"), repeatable=False)

    def discard(self) -> None:
        """Delete a draft with its rows. Its name can be used again."""
        self._facts = None
        self._transport.call("DELETE", self._path(), repeatable=False)

    def grant(
        self,
        analyst: str,
        epsilon: Number | None = None,
        delta: Number | None = None,
        kinds: Sequence[str] | None = None,
        **terms: Unpack[Terms],
    ) -> GrantFacts:
        """Set the most that an analyst may spend, never below what they have used, and on which jobs.

        What is None keeps its present value. A new grant needs an epsilon, its delta is 0 and it allows
        clusterings alone unless more is given. `kinds` are "cluster" and the names of `client.kinds()`.
        `terms`: purpose, permit, ends_at (a datetime with a time zone; None: no end) and keeps_results.
        """
        present = next((each.cap.declared for each in self.grants() if each.analyst == analyst), None)
        body: dict[str, Any] = dict(_amounts(epsilon, delta, present))
        if kinds is not None:
            body["kinds"] = list(kinds)
        body |= {
            name: value.isoformat() if isinstance(value, datetime) else value for name, value in terms.items()
        }
        return self._transport.request(GrantFacts, "PUT", self._path(f"/grants/{quoted(analyst)}"), body=body)

    def revoke(self, analyst: str) -> None:
        """Withdraw a grant and cancel the analyst's queued jobs; what they spent stays spent."""
        self._transport.call("DELETE", self._path(f"/grants/{quoted(analyst)}"), repeatable=False)

    def grants(self) -> list[GrantFacts]:
        """The grants, with caps and what was spent; withdrawn ones are included."""
        return list(self._transport.pages(GrantFacts, self._path("/grants")))

    def raise_budget(
        self, epsilon: Number | None = None, delta: Number | None = None, *, period: str | None = None
    ) -> DatasetFacts:
        """Set a higher total, which can never be lowered again; an amount that is None stays as it is.

        Where each period has a budget, `period` is the label of one.
        """
        if period is not None:
            budget = self.period(period).budget
            place = self._path(f"/periods/{quoted(period)}/budget")
            body = _amounts(epsilon, delta, budget.declared if budget else None)
            self._transport.request(PeriodFacts, "POST", place, body=body, repeatable=True)
            return self.refresh()
        body = _amounts(epsilon, delta, self.refresh().budget.declared)
        self._facts = self._transport.request(
            DatasetFacts, "POST", self._path("/budget"), body=body, repeatable=True
        )
        return self._facts

    def verify_ledger(self, *, whole: bool = False) -> VerifyReport:
        """Have the service check the ledger: hashes, balances, and the charge of every job.

        From its last signed checkpoint on, or with `whole` from the first entry.
        """
        query = {"whole": "true"} if whole else None
        return self._transport.request(
            VerifyReport, "POST", self._path("/ledger/verify"), query=query, repeatable=True
        )

    def put_sites(
        self, name: str, sites: npt.ArrayLike | str | Path | Any, kind: SiteKind = "coordinates"
    ) -> SiteSetFacts:
        """Store public sites, one per row: an array, a DataFrame, or a path of a CSV (no header) or NPY file.

        `coordinates` are values of the dataset's columns. `great-circle` means latitudes and longitudes in
        degrees, with distances along the earth's surface. `distances` is a square matrix, for datasets whose
        rows name sites.
        """
        if is_frame(sites) and kind != "distances" and self.facts.columns:
            sites = array_of(sites, self.facts.columns)
        data = sites if isinstance(sites, str | Path) else np.asarray(sites, dtype=np.float64)
        with body_of(data, None, None) as body:
            return self._put(SiteSetFacts, f"/sites/{quoted(name)}", body, {"kind": kind})

    def hand_over(self, curator: str) -> None:
        """Make another curator the owner, with the grants and the ledger; you lose access."""
        self._facts = None
        self._transport.call("POST", self._path("/owner"), body={"curator": curator}, repeatable=False)

    def retire(self) -> Retirement:
        """Delete the rows permanently. The ledger is kept; queued jobs are cancelled without charge."""
        self._facts = None
        return self._transport.request(Retirement, "POST", self._path("/retire"), repeatable=False)

    # --- inside ---------------------------------------------------------------------------------------------

    def _path(self, rest: str = "") -> str:
        return f"/v1/datasets/{quoted(self.name)}{rest}"

    def _plan(self, body: Mapping[str, Any]) -> PlanFacts:
        return self._transport.request(PlanFacts, "POST", "/v1/plans", body=body, repeatable=True)

    def _quote(self, body: Mapping[str, Any], *, own_key: bool) -> str:
        """The quote of a request. A refusal to plan must not hide a job that was submitted with this key."""
        try:
            return self._plan(body).quote
        except Problem:
            if not own_key:
                raise
            return _NO_QUOTE

    def _put(self, kind: type[T], rest: str, body: Body, query: Mapping[str, str]) -> T:
        return self._transport.request(kind, "PUT", self._path(rest), query=query, **file_options(body))


def _job(
    dataset: str,
    k: Clusters,
    epsilon: Number,
    delta: Number | None,
    objective: str = "means",
    algorithm: str = "auto",
    options: Mapping[str, Any] | None = None,
    sites: str | None = None,
    columns: Sequence[str] | None = None,
    weights: Mapping[str, float] | Literal["fair"] | None = None,
    scaling: str | None = None,
    public_rows: bool = True,
    periods: PeriodChoice | None = None,
    rehearsal: bool = False,
    rehearse_on: str | None = None,
    quote: str | None = None,
    idempotency_key: str | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """The body and the headers that submit a job."""
    body = {
        "dataset": dataset,
        "k": {"from": k[0], "to": k[1]} if isinstance(k, tuple) else k,
        "epsilon": amount_text(epsilon),
        "delta": None if delta is None else amount_text(delta),
        "objective": objective,
        "algorithm": algorithm,
        "options": dict(options or {}),
        "sites": sites,
        "columns": None if columns is None else list(columns),
        "weights": weights if isinstance(weights, str) else dict(weights) if weights else None,
        "scaling": scaling,
        "public_rows": None if public_rows else False,
        "periods": periods_as_sent(periods),
        "rehearsal": rehearsal or rehearse_on is not None or None,
        "rehearse_on": rehearse_on,
        "quote": quote,
    }
    headers = {"Idempotency-Key": idempotency_key or str(uuid.uuid4())}
    return {name: value for name, value in body.items() if value is not None}, headers


def _amounts(epsilon: Number | None, delta: Number | None, present: Amount | None) -> dict[str, str]:
    """The body that sets a budget or a cap; what is None keeps its present value."""
    if present is not None:
        epsilon = present.epsilon if epsilon is None else epsilon
        delta = present.delta if delta is None else delta
    if epsilon is None:
        raise ValueError("a new grant needs an epsilon: name the most that the analyst may spend")
    return {"epsilon": amount_text(epsilon), "delta": amount_text(0 if delta is None else delta)}
