"""Everything that can go wrong, as one tree of exceptions; each message says what to do next::

    CairnError
    +-- NotSignedIn            no address or key was given, and none is stored
    +-- Unreachable            nothing answers at the address, or the connection broke for too long
    +-- NotCairn               something answers, but it is no Cairn service
    +-- WaitTimeout            the job went on longer than the caller wanted to wait
    +-- JobCancelled           the job was cancelled or withdrawn, so there is no result
    +-- MissingLibrary         pandas or matplotlib is needed for this and not installed
    +-- Problem                the service refused; one class per problem `type`
        +-- Unauthorized  Forbidden  NotFound  InvalidRequest
        +-- NotSealed  AlreadySealed  Retired
        +-- BudgetExhausted  CapExhausted      carry requested, spent, reserved, remaining
        +-- DeltaNotOffered  EpsilonTooSmall  IdempotencyMismatch
        +-- BadFormat  BadRows  DigestMismatch  TooLarge
        +-- UnknownAlgorithm  WorkLimit
        +-- TooManyQueued  RateLimited
        +-- JobFailed  NotCancellable  Unavailable

Catch `CairnError` for all of them, or `Problem` for whatever the service refused.
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
    """Anything this package raises on purpose."""


class NotSignedIn(CairnError):
    """No address or key was given, and none is stored."""


class Unreachable(CairnError, ConnectionError):
    """Nothing answers at the address, or the connection broke and did not come back in time."""


class NotCairn(CairnError):
    """Something answers at the address, but not as a Cairn service does."""


class WaitTimeout(CairnError, TimeoutError):
    """The job goes on; ask again later."""


class JobCancelled(CairnError):
    """The job was cancelled or withdrawn before a worker took it; nothing was charged."""


class MissingLibrary(CairnError, ImportError):
    """An optional library is needed for this and not installed."""


class Problem(CairnError):
    """The service refused. `detail` says why in its words, `advice` what to do, `fields` has the numbers."""

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
        #: Seconds after which the service suggests to ask again, where it does.
        self.retry_after = retry_after
        self.fields = dict(fields or {})
        super().__init__(detail)

    def __str__(self) -> str:
        """One sentence: what is wrong and, where the service did not say it, what to do."""
        said = self.detail.rstrip(". ")
        return f"{said}: {self.advice}" if self.advice else said


class Unauthorized(Problem):
    """The key is missing, unknown, expired or revoked."""

    slug = "unauthorized"


class Forbidden(Problem):
    """The key's role may not make this call."""

    slug = "forbidden"


class NotFound(Problem):
    """There is no such thing, or it is not yours to see; the two look the same on purpose."""

    slug = "not-found"


class InvalidRequest(Problem):
    """The request is malformed; `errors` names each wrong place."""

    slug = "invalid-request"

    @property
    def errors(self) -> list[dict[str, str]]:
        """Where the request is wrong and how: `where` and `problem` of each place."""
        return list(self.fields.get("errors", []))


class NotSealed(Problem):
    """The dataset has no data yet."""

    slug = "not-sealed"


class AlreadySealed(Problem):
    """The dataset has its data already and never changes again."""

    slug = "already-sealed"


class Retired(Problem):
    """The dataset was retired; only its ledger remains."""

    slug = "retired"
    advice = "use another dataset"


class BudgetExhausted(Problem):
    """What was asked for does not fit: into the dataset's budget or, as CapExhausted, into your own cap."""

    slug = "budget-exhausted"
    advice = "ask for at most what is left, or ask the curator to raise the budget"

    @property
    def requested(self) -> Amount:
        """What was asked for."""
        return read(Amount, self.fields["requested"])

    @property
    def remaining(self) -> Amount:
        """What is left."""
        return read(Amount, self.fields["remaining"])

    @property
    def spent(self) -> Amount:
        """What finished and running jobs were charged."""
        return read(Amount, self.fields["spent"])

    @property
    def reserved(self) -> Amount:
        """What queued jobs have set aside."""
        return read(Amount, self.fields["reserved"])


class CapExhausted(BudgetExhausted):
    """Your own cap on the dataset does not cover what was asked, though the dataset's budget may."""

    slug = "cap-exhausted"
    advice = "ask for at most what is left, or ask the curator to raise your cap"


class DeltaNotOffered(Problem):
    """The dataset, or your cap, offers pure differential privacy only."""

    slug = "delta-not-offered"


class EpsilonTooSmall(Problem):
    """The algorithm can do nothing useful at so small an epsilon."""

    slug = "epsilon-too-small"


class IdempotencyMismatch(Problem):
    """An idempotency key was used again with another request."""

    slug = "idempotency-mismatch"


class BadFormat(Problem):
    """The upload cannot be read as what it claims to be; nothing was stored."""

    slug = "bad-format"
    advice = "nothing was stored, so correct the file and upload it again"


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
            "correct them, or leave them out with on_bad_row drop"
        )


class DigestMismatch(Problem):
    """The upload arrived damaged; nothing was stored."""

    slug = "digest-mismatch"
    advice = "nothing was stored, so upload it again"


class TooLarge(Problem):
    """The body is larger than the service takes."""

    slug = "too-large"
    advice = "send less, or ask the operator to raise the limit"


class UnknownAlgorithm(Problem):
    """There is no algorithm of this name."""

    slug = "unknown-algorithm"


class WorkLimit(Problem):
    """The plan would run too long or need too much memory."""

    slug = "work-limit"


class TooManyQueued(Problem):
    """You have as many unfinished jobs as one analyst may have."""

    slug = "too-many-queued"


class RateLimited(Problem):
    """Too many requests of this kind in the last minute; see `retry_after`."""

    slug = "rate-limited"


class JobFailed(Problem):
    """The job ended without a result; its charge stands, because it may have read data."""

    slug = "job-failed"
    advice = "submit another job, or ask the curator to look into the worker's log"


class NotCancellable(Problem):
    """Only a queued job can be cancelled."""

    slug = "not-cancellable"


class Unavailable(Problem):
    """The service cannot answer just now."""

    slug = "unavailable"
    advice = "try again in a little while"


def _leaves(kind: type[Problem]) -> list[type[Problem]]:
    found = [kind] if kind.slug else []
    return found + [leaf for below in kind.__subclasses__() for leaf in _leaves(below)]


#: The class of each problem type.
PROBLEMS: dict[str, type[Problem]] = {kind.slug: kind for kind in _leaves(Problem)}


def problem_from(status: int, body: Mapping[str, Any], retry_after: float | None) -> Problem:
    """The exception of an `application/problem+json` document; a type of a newer service is a `Problem`."""
    slug = str(body.get("type", "")).rpartition("/")[2]
    known = {"type", "title", "status", "detail"}
    return PROBLEMS.get(slug, Problem)(
        str(body.get("detail") or body.get("title") or f"the service answered {status}"),
        status=status,
        title=str(body.get("title", "")),
        retry_after=retry_after,
        fields={name: value for name, value in body.items() if name not in known},
    )
