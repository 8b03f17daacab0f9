"""Questions about a dataset and about clusters: planned, submitted and waited for like a clustering."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from cairn_client.job import Job
from cairn_client.periods import PeriodChoice, periods_as_sent
from cairn_client.transport import Transport
from cairn_client.wire import JobFacts, Number, PlanFacts, amount_text

if TYPE_CHECKING:
    from cairn_client.findings import Findings


class QuestionRequest(TypedDict, total=False):
    """Arguments of a question besides its kind and epsilon."""

    delta: Number | None
    #: The columns that it is about, those kept for questions included; by default all.
    columns: Sequence[str] | None
    #: The clusterings that it is about, as `{"job": id}` or `{"job": id, "k": k}`.
    clusterings: Sequence[Mapping[str, Any]] | None
    #: Options of the kind; `client.kinds()` lists them.
    options: Mapping[str, Any] | None
    #: Of a dataset with periods: labels, or a tuple of the first and the last of a range; by default all.
    periods: PeriodChoice | None
    #: Run on synthetic rows instead of the data, for free.
    rehearsal: bool
    #: Rehearse on the made-up rows of an earlier job: the id of one that left k open. Free, too.
    rehearse_on: str | None
    #: The `quote` of a plan of the same question; by default that of a plan made just before.
    quote: str | None
    #: By default a new one for each call.
    idempotency_key: str | None


class Questions:
    """Questions about a dataset."""

    name: str
    _transport: Transport

    def plan_question(self, kind: str, epsilon: Number, **request: Unpack[QuestionRequest]) -> PlanFacts:
        """Plan a question for free: its measurements and cost, what it would leave, the noise of a count."""
        return plan(self._transport, body_of(self.name, kind, epsilon, **request))

    def ask(self, kind: str, epsilon: Number, **request: Unpack[QuestionRequest]) -> Job:
        """Submit a question and return its job without waiting; `job.findings()` waits for the answer.

        `kind` is a name from `client.kinds()`. Costs, quotes and idempotency keys are those of `submit`.
        """
        return ask(self._transport, self.name, kind, epsilon, **request)

    def table(self, columns: Sequence[str], epsilon: Number, **request: Any) -> Findings:
        """Counts over the cells of up to three columns."""
        return self.ask("table", epsilon, columns=columns, **request).findings()

    def quantiles(
        self,
        columns: Sequence[str] | None = None,
        levels: Sequence[float] = (0.25, 0.5, 0.75),
        *,
        epsilon: Number,
        **request: Any,
    ) -> Findings:
        """Quantiles of numbers, dates and times at these levels."""
        options = {"levels": list(levels), **(request.pop("options", None) or {})}
        return self.ask("quantiles", epsilon, columns=columns, options=options, **request).findings()

    def summary(self, epsilon: Number, **request: Any) -> Findings:
        """Number of records, means, spreads and correlations of all columns, principal axes."""
        return self.ask("summary", epsilon, **request).findings()


def body_of(
    dataset: str,
    kind: str,
    epsilon: Number,
    delta: Number | None = None,
    columns: Sequence[str] | None = None,
    clusterings: Sequence[Mapping[str, Any]] | None = None,
    options: Mapping[str, Any] | None = None,
    periods: PeriodChoice | None = None,
    rehearsal: bool = False,
    rehearse_on: str | None = None,
    quote: str | None = None,
    idempotency_key: str | None = None,
) -> dict[str, Any]:
    """The body that plans or submits a question."""
    body = {
        "dataset": dataset,
        "kind": kind,
        "epsilon": amount_text(epsilon),
        "delta": None if delta is None else amount_text(delta),
        "columns": None if columns is None else list(columns),
        "clusterings": [dict(each) for each in clusterings] if clusterings else None,
        "options": dict(options or {}),
        "periods": periods_as_sent(periods),
        "rehearsal": rehearsal or rehearse_on is not None or None,
        "rehearse_on": rehearse_on,
        "quote": quote,
    }
    return {name: value for name, value in body.items() if value is not None}


def plan(transport: Transport, body: Mapping[str, Any]) -> PlanFacts:
    """Plan a question."""
    asked = {name: value for name, value in body.items() if name != "quote"}
    return transport.request(PlanFacts, "POST", "/v1/plans", body=asked, repeatable=True)


def ask(
    transport: Transport, dataset: str, kind: str, epsilon: Number, **request: Unpack[QuestionRequest]
) -> Job:
    """Submit a question under the quote of a plan."""
    body = body_of(dataset, kind, epsilon, **request)
    if "quote" not in body:
        body["quote"] = plan(transport, body).quote
    headers = {"Idempotency-Key": request.get("idempotency_key") or str(uuid.uuid4())}
    made = transport.request(JobFacts, "POST", "/v1/jobs", body=body, headers=headers, repeatable=True)
    return Job(transport, made)
