"""Problems the service can answer with: one class per `type`, its docstring is the explanation.

    ServiceError
    +-- Unauthorized  Forbidden  NotFound  InvalidRequest
    +-- NotSealed  AlreadySealed  Retired
    +-- BudgetExhausted  CapExhausted  DeltaNotOffered  EpsilonTooSmall
    +-- IdempotencyMismatch
    +-- BadFormat  BadRows  DigestMismatch  TooLarge
    +-- UnknownAlgorithm  WorkLimit
    +-- TooManyQueued  RateLimited
    +-- JobFailed  NotCancellable  Unavailable

Each has a page in docs/problems/. Nothing in a problem may depend on rows, except for the curator who
uploads them (`bad-rows`, `bad-format`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

__all__ = [
    "PROBLEMS",
    "AlreadySealed",
    "BadFormat",
    "BadRows",
    "BudgetExhausted",
    "CapExhausted",
    "DeltaNotOffered",
    "DigestMismatch",
    "EpsilonTooSmall",
    "Forbidden",
    "IdempotencyMismatch",
    "InvalidRequest",
    "JobFailed",
    "NotCancellable",
    "NotFound",
    "NotSealed",
    "RateLimited",
    "Retired",
    "ServiceError",
    "TooLarge",
    "TooManyQueued",
    "Unauthorized",
    "Unavailable",
    "UnknownAlgorithm",
    "WorkLimit",
]


class ServiceError(Exception):
    """Something the caller is told as an RFC 9457 problem."""

    slug: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]

    def __init__(
        self,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
        **fields: Any,
    ):
        super().__init__(detail)
        self.detail = detail
        self.headers = dict(headers or {})
        self.fields = fields
        self.answer_status = status or self.status

    def body(self) -> dict[str, Any]:
        """The problem document."""
        return {
            "type": f"/problems/{self.slug}",
            "title": self.title,
            "status": self.answer_status,
            "detail": self.detail,
            **self.fields,
        }


class Unauthorized(ServiceError):
    """The request carries no valid key. Send `Authorization: Bearer <key>` with a key that has neither
    expired nor been revoked.
    """

    slug, status, title = "unauthorized", 401, "No valid key"


class Forbidden(ServiceError):
    """The key is valid, but its role may not make this call. Ask a curator to make it, or use a key of the
    right role.
    """

    slug, status, title = "forbidden", 403, "Not allowed for this role"


class NotFound(ServiceError):
    """There is no such thing, or it is not yours to see; the two look the same on purpose. Check the name,
    or ask the curator for a grant.
    """

    slug, status, title = "not-found", 404, "Not found"


class InvalidRequest(ServiceError):
    """The request is malformed. The field `errors` names each wrong place; correct it and send the request
    again.
    """

    slug, status, title = "invalid-request", 422, "Invalid request"


class NotSealed(ServiceError):
    """The dataset has no data yet. The curator must upload them once before jobs can be planned or run."""

    slug, status, title = "not-sealed", 409, "Dataset has no data yet"


class AlreadySealed(ServiceError):
    """The dataset has its data already and never changes again. Create another dataset for other data."""

    slug, status, title = "already-sealed", 409, "Dataset already has its data"


class Retired(ServiceError):
    """The dataset was retired: its rows are deleted and only its ledger remains. Use another dataset."""

    slug, status, title = "retired", 409, "Dataset is retired"


class BudgetExhausted(ServiceError):
    """The dataset's remaining budget does not cover what was asked. Ask for at most what remains, wait for
    a queued job to be cancelled, or ask the curator to raise the budget.
    """

    slug, status, title = "budget-exhausted", 409, "Dataset budget exhausted"


class CapExhausted(ServiceError):
    """Your own cap on this dataset does not cover what was asked. Ask for at most what remains, or ask the
    curator to raise your cap.
    """

    slug, status, title = "cap-exhausted", 409, "Your cap is exhausted"


class DeltaNotOffered(ServiceError):
    """The dataset (or your cap) offers no delta, so only pure differential privacy is possible. Send
    `delta` 0 and an algorithm with a pure guarantee.
    """

    slug, status, title = "delta-not-offered", 422, "No delta on offer"


class EpsilonTooSmall(ServiceError):
    """The algorithm cannot do anything useful, or cannot be calibrated, at so small an epsilon. Ask for a
    larger one.
    """

    slug, status, title = "epsilon-too-small", 422, "Epsilon too small"


class IdempotencyMismatch(ServiceError):
    """This Idempotency-Key was used before with another body. Use a new key for a new request."""

    slug, status, title = "idempotency-mismatch", 422, "Idempotency-Key used for something else"


class BadFormat(ServiceError):
    """The upload is not what its Content-Type says, or lacks a column. Nothing was stored; correct the file
    and upload again.
    """

    slug, status, title = "bad-format", 422, "Upload cannot be read"


class BadRows(ServiceError):
    """Some rows hold missing, non-numeric or non-finite values. Nothing was stored. Correct the lines
    named, or upload with `on_bad_row=drop`.
    """

    slug, status, title = "bad-rows", 422, "Upload has bad rows"


class DigestMismatch(ServiceError):
    """The bytes that arrived do not have the SHA-256 that was announced. Nothing was stored; upload again."""

    slug, status, title = "digest-mismatch", 422, "Upload arrived damaged"


class TooLarge(ServiceError):
    """The body is larger than this service takes. Send less, or ask the operator to raise the limit."""

    slug, status, title = "too-large", 413, "Body too large"


class UnknownAlgorithm(ServiceError):
    """There is no algorithm of this name. `GET /v1/algorithms` lists those there are; `auto` picks one."""

    slug, status, title = "unknown-algorithm", 422, "Unknown algorithm"


class WorkLimit(ServiceError):
    """The plan would run too long or need too much memory; this is decided from public numbers alone. Use a
    smaller k, other options or another algorithm.
    """

    slug, status, title = "work-limit", 422, "Plan needs too much work"


class TooManyQueued(ServiceError):
    """You have as many unfinished jobs as one analyst may have. Wait for one to end, or cancel one."""

    slug, status, title = "too-many-queued", 429, "Too many unfinished jobs"


class RateLimited(ServiceError):
    """Too many requests of this kind in the last minute. Wait as long as `Retry-After` says."""

    slug, status, title = "rate-limited", 429, "Too many requests"


class JobFailed(ServiceError):
    """The job ended without a result. Its charge stands, because it may have read data. Submit another job,
    or ask the curator to look into the worker's log.
    """

    slug, status, title = "job-failed", 409, "Job has no result"


class NotCancellable(ServiceError):
    """Only a queued job can be cancelled; this one was claimed by a worker, or has ended."""

    slug, status, title = "not-cancellable", 409, "Job cannot be cancelled"


class Unavailable(ServiceError):
    """The service cannot answer just now (its database is away or busy, or it is being upgraded). Try again
    after `Retry-After` seconds; a job is never submitted twice when you repeat its Idempotency-Key.
    """

    slug, status, title = "unavailable", 503, "Temporarily unavailable"


PROBLEMS: dict[str, type[ServiceError]] = {
    problem.slug: problem for problem in sorted(ServiceError.__subclasses__(), key=lambda each: each.slug)
}
