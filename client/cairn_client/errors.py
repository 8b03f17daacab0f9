"""All exceptions of this package, as one tree; each message says what to do next::

    CairnError
    +-- NotSignedIn            no address or key was given, and none is stored
    +-- Unreachable            cannot connect, or the connection was lost for too long
    +-- NotCairn               the address is not that of a Cairn service
    +-- WaitTimeout            the job did not end within the time allowed
    +-- JobCancelled           the job was cancelled, so there is no result
    +-- MissingLibrary         pandas or matplotlib is needed and not installed
    +-- Problem                the service refused; one class per problem `type`
        +-- Unauthorized  Forbidden  NotFound  InvalidRequest
        +-- NotSealed  AlreadySealed  Retired
        +-- BudgetExhausted  CapExhausted      carry requested, spent, reserved, remaining
        +-- DeltaNotOffered  EpsilonTooSmall  IdempotencyMismatch
        +-- BadFormat  BadRows  DigestMismatch  TooLarge
        +-- UnknownAlgorithm  WorkLimit
        +-- TooManyQueued  RateLimited
        +-- JobFailed  NotCancellable  Unavailable

Catch `CairnError` for all of them, or `Problem` for every refusal by the service.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from cairn_client.wire import Amount, read

__all__ = [
    "PROBLEMS",
    "AlreadySealed",
    "BadFormat",
    "BadRows",
    "BudgetExhausted",
    "CairnError",
    "CapExhausted",
    "DeltaNotOffered",
    "DigestMismatch",
    "EpsilonTooSmall",
    "Forbidden",
    "IdempotencyMismatch",
    "InvalidRequest",
    "JobCancelled",
    "JobFailed",
    "MissingLibrary",
    "NotCairn",
    "NotCancellable",
    "NotFound",
    "NotSealed",
    "NotSignedIn",
    "Problem",
    "RateLimited",
    "Retired",
    "TooLarge",
    "TooManyQueued",
    "Unauthorized",
    "Unavailable",
    "UnknownAlgorithm",
    "Unreachable",
    "WaitTimeout",
    "WorkLimit",
    "problem_from",
]


class CairnError(Exception):
    """Base class of all exceptions of this package."""


class NotSignedIn(CairnError):
    """No address or key was given, and none is stored."""


class Unreachable(CairnError, ConnectionError):
    """The service cannot be reached, or the connection was lost and not restored in time."""


class NotCairn(CairnError):
    """The address is not that of a Cairn service."""


class WaitTimeout(CairnError, TimeoutError):
    """The job is still running; ask again later."""


class JobCancelled(CairnError):
    """The job was cancelled before it started; nothing was charged."""


class MissingLibrary(CairnError, ImportError):
    """An optional library is needed and not installed."""


class Problem(CairnError):
    """A refusal by the service: `detail` is its explanation, `advice` what to do, `fields` the numbers."""

    slug: ClassVar[str] = ""
    advice: ClassVar[str] = ""

    def __init__(
        self,
        detail: str,
        *,
        status: int = 0,
        title: str = "",
        retry_after: float | None = None,
        fields: Mapping[str, Any] | None = None,
    ):
        self.detail = detail
        self.status = status
        self.title = title
        #: Seconds to wait before the next try, where the service says so.
        self.retry_after = retry_after
        self.fields = dict(fields or {})
        super().__init__(detail)

    def __str__(self) -> str:
        """One sentence: what is wrong and what to do about it."""
        detail = self.detail.rstrip(". ")
        return f"{detail}: {self.advice}" if self.advice else detail


class Unauthorized(Problem):
    """The key is missing, unknown, expired or revoked."""

    slug = "unauthorized"


class Forbidden(Problem):
    """The key's role does not permit this call."""

    slug = "forbidden"


class NotFound(Problem):
    """It does not exist, or you may not see it; the service does not tell which."""

    slug = "not-found"


class InvalidRequest(Problem):
    """The request is invalid; `errors` names each wrong field."""

    slug = "invalid-request"

    @property
    def errors(self) -> list[dict[str, str]]:
        """The wrong fields: `where` and `problem` of each."""
        return list(self.fields.get("errors", []))


class NotSealed(Problem):
    """The dataset has no rows yet."""

    slug = "not-sealed"


class AlreadySealed(Problem):
    """The dataset already has its rows and can no longer change."""

    slug = "already-sealed"


class Retired(Problem):
    """The dataset was retired; only its ledger remains."""

    slug = "retired"
    advice = "use another dataset"


class BudgetExhausted(Problem):
    """The job costs more than is left of the dataset's budget or (CapExhausted) of your cap."""

    slug = "budget-exhausted"
    advice = "ask for at most what is left, or ask the curator to raise the budget"

    @property
    def requested(self) -> Amount:
        """The amount that was asked for."""
        return read(Amount, self.fields["requested"])

    @property
    def remaining(self) -> Amount:
        """The amount that is left."""
        return read(Amount, self.fields["remaining"])

    @property
    def spent(self) -> Amount:
        """The amount charged so far."""
        return read(Amount, self.fields["spent"])

    @property
    def reserved(self) -> Amount:
        """The amount reserved by queued jobs."""
        return read(Amount, self.fields["reserved"])


class CapExhausted(BudgetExhausted):
    """The job costs more than is left of your cap on the dataset."""

    slug = "cap-exhausted"
    advice = "ask for at most what is left, or ask the curator to raise your cap"


class DeltaNotOffered(Problem):
    """The dataset, or your cap on it, allows pure differential privacy only."""

    slug = "delta-not-offered"


class EpsilonTooSmall(Problem):
    """The epsilon is too small for the algorithm."""

    slug = "epsilon-too-small"


class IdempotencyMismatch(Problem):
    """An idempotency key was used before, with a different request."""

    slug = "idempotency-mismatch"


class BadFormat(Problem):
    """The upload is not in the format that it claims; nothing was stored."""

    slug = "bad-format"
    advice = "nothing was stored; correct the file and upload it again"


class BadRows(Problem):
    """Some rows hold missing, non-numeric or non-finite values; nothing was stored."""

    slug = "bad-rows"

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The first bad rows: `line` and `reason` of each."""
        return list(self.fields.get("bad_row_lines", []))

    def __str__(self) -> str:
        shown = "; ".join(f"line {each.get('line')}: {each.get('reason')}" for each in self.lines[:3])
        count = self.fields.get("bad_rows", "some")
        return (
            f"nothing was stored, because {count} rows cannot be used ({shown or self.detail}): "
            "correct them, or skip them with on_bad_row='drop'"
        )


class DigestMismatch(Problem):
    """The upload was damaged on the way; nothing was stored."""

    slug = "digest-mismatch"
    advice = "nothing was stored; upload it again"


class TooLarge(Problem):
    """The request is larger than the service accepts."""

    slug = "too-large"
    advice = "send less, or ask the operator to raise the limit"


class UnknownAlgorithm(Problem):
    """There is no algorithm of this name."""

    slug = "unknown-algorithm"


class WorkLimit(Problem):
    """The plan would run too long or need too much memory."""

    slug = "work-limit"


class TooManyQueued(Problem):
    """You have reached the limit of unfinished jobs per analyst."""

    slug = "too-many-queued"


class RateLimited(Problem):
    """Too many requests of this kind in the last minute; see `retry_after`."""

    slug = "rate-limited"


class JobFailed(Problem):
    """The job failed. Its charge stands, because it may have read data."""

    slug = "job-failed"
    advice = "submit another job, or ask the curator to check the worker's log"


class NotCancellable(Problem):
    """Only a queued job can be cancelled."""

    slug = "not-cancellable"


class Unavailable(Problem):
    """The service is temporarily unavailable."""

    slug = "unavailable"
    advice = "try again later"


def _leaves(kind: type[Problem]) -> list[type[Problem]]:
    found = [kind] if kind.slug else []
    return found + [leaf for below in kind.__subclasses__() for leaf in _leaves(below)]


#: The class of each problem type.
PROBLEMS: dict[str, type[Problem]] = {kind.slug: kind for kind in _leaves(Problem)}


def problem_from(status: int, body: Mapping[str, Any], retry_after: float | None) -> Problem:
    """The exception for an `application/problem+json` document; an unknown type becomes a `Problem`."""
    slug = str(body.get("type", "")).rpartition("/")[2]
    known = {"type", "title", "status", "detail"}
    return PROBLEMS.get(slug, Problem)(
        str(body.get("detail") or body.get("title") or f"the service answered {status}"),
        status=status,
        title=str(body.get("title", "")),
        retry_after=retry_after,
        fields={name: value for name, value in body.items() if name not in known},
    )
