"""All exceptions of this package, as one tree; each message says what to do next::

    CairnError
    +-- NotSignedIn            no address or key was given, and none is stored
    +-- Unreachable            cannot connect, or the connection was lost for too long
    +-- NotCairn               the address is not that of a Cairn service
    +-- WaitTimeout            the job did not end within the time allowed
    +-- JobCancelled           the job was cancelled, so there is no result
    +-- DamagedTranscript      a transcript is not the one that its receipt names
    +-- MissingLibrary         pandas, matplotlib or cryptography is needed and not installed
    +-- InvalidReceipt         the receipt was changed, or no known key signed it
    +-- Problem                the service refused; one class per problem `type`
        +-- Unauthorized  Forbidden  KindNotGranted  NotFound  InvalidRequest
        +-- NotSealed  AlreadySealed  Retired
        +-- BudgetExhausted  CapExhausted      carry requested, spent, reserved, remaining, largest
        +-- SecondNeeded  AlreadyDecided
        +-- PopulationExhausted               carries requested, remaining
        +-- CannotJoin
        +-- DeltaNotOffered  EpsilonTooSmall  IdempotencyMismatch  QuoteMismatch
        +-- BadFormat  BadRows  DigestMismatch  TooLarge
        +-- UnknownAlgorithm  WorkLimit
        +-- TooManyQueued  RateLimited
        +-- JobFailed  NotCancellable  Unavailable

Catch `CairnError` for all of them, or `Problem` for every refusal by the service.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from cairn_client.conversion import read
from cairn_client.describing import Proposal
from cairn_client.wire import Amount

#: The class of each problem type.
PROBLEMS: dict[str, type[Problem]] = {}


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


class DamagedTranscript(CairnError):
    """The transcript does not have the digest that the receipt names."""


class MissingLibrary(CairnError, ImportError):
    """An optional library is needed and not installed."""


class InvalidReceipt(CairnError, ValueError):
    """The receipt was changed, is not signed, or lacks what is asked of it."""


class Problem(CairnError):
    """A refusal by the service: `detail` is its explanation, `advice` what to do, `fields` the numbers."""

    slug: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        """Name the problem's type for the class: `NotSealed` is `not-sealed`."""
        cls.slug = re.sub("(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()
        PROBLEMS[cls.slug] = cls

    def __init__(
        self,
        detail: str,
        *,
        status: int = 0,
        title: str = "",
        advice: str = "",
        retry_after: float | None = None,
        fields: Mapping[str, Any] | None = None,
    ):
        self.detail = detail
        self.status = status
        self.title = title
        #: What to do about it, in sentences.
        self.advice = advice
        #: Seconds to wait before the next try, where the service says so.
        self.retry_after = retry_after
        self.fields = dict(fields or {})
        super().__init__(detail)

    def __str__(self) -> str:
        """What is wrong and what to do about it."""
        detail = self.detail.rstrip(". ")
        end = "" if detail.endswith("?") else "."
        return f"{detail}{end} {self.advice}".rstrip(". ")


class Unauthorized(Problem):
    """The key is missing, unknown, expired or revoked."""


class Forbidden(Problem):
    """The key's role does not permit this call."""


class SignInRefused(Problem):
    """The institution's provider was asked, and this person or this sign-in is not let in."""


class KindNotGranted(Problem):
    """Your grant does not allow this kind of job; request it."""


class NotFound(Problem):
    """It does not exist, or you may not see it; the service does not tell which."""


class InvalidRequest(Problem):
    """The request is invalid; `errors` names each wrong field."""

    @property
    def errors(self) -> list[dict[str, str]]:
        """The wrong fields: `where` and `problem` of each."""
        return list(self.fields.get("errors", []))


class NotSealed(Problem):
    """The dataset has no sealed rows yet."""


class CannotSeal(Problem):
    """A draft has no rows, other rows than named, or rows that look wrong; `doubts` says what to confirm."""

    @property
    def doubts(self) -> list[dict[str, str]]:
        """The doubts that were not confirmed: `confirm` and `detail` of each."""
        return list(self.fields.get("doubts", []))


class AlreadySealed(Problem):
    """The dataset is sealed and can no longer change."""


class Retired(Problem):
    """The dataset was retired; only its ledger remains."""


class _StatedAmount:
    """An amount among the fields of a problem."""

    def __set_name__(self, _owner: type[Problem], name: str) -> None:
        self._name = name

    def __get__(self, problem: Problem, _owner: type[Problem]) -> Amount:
        return read(Amount, problem.fields[self._name])


class BudgetExhausted(Problem):
    """The job costs more than is left of the dataset's budget or (CapExhausted) of your cap."""

    #: The amount that was asked for.
    requested = _StatedAmount()
    #: The amount that is left of the limit that is named.
    remaining = _StatedAmount()
    #: The most that a job may cost now, within the dataset's budget and your cap.
    largest = _StatedAmount()
    #: The amount charged so far.
    spent = _StatedAmount()
    #: The amount reserved by queued jobs.
    reserved = _StatedAmount()


class CapExhausted(BudgetExhausted):
    """The job costs more than is left of your cap on the dataset."""


class SecondNeeded(Problem):
    """One curator alone may not allow this much; propose it, and another curator must agree."""


class AlreadyDecided(Problem):
    """The request for access was granted, declined or withdrawn already, or waits for somebody else."""


class PopulationExhausted(Problem):
    """The job costs one person more than is left of the population that the dataset is in."""

    #: What the job costs one person, in the population's currency.
    requested = _StatedAmount()
    #: The amount that is left of the population.
    remaining = _StatedAmount()


class CannotJoin(Problem):
    """The dataset is in a population already, does not tell people apart, or its jobs have cost too much."""


class DeltaNotOffered(Problem):
    """The dataset, or your cap on it, allows pure differential privacy only."""


class EpsilonTooSmall(Problem):
    """The epsilon is too small for the algorithm."""


class IdempotencyMismatch(Problem):
    """An idempotency key was used before, with a different request."""


class QuoteMismatch(Problem):
    """The quote is not for what the job would be charged now; nothing was reserved."""


class _ProposedReading:
    """How a file seems to be written, among the fields of a problem."""

    def __get__(self, problem: Problem, _owner: type[Problem]) -> Proposal | None:
        found = problem.fields.get("reading")
        return None if found is None else Proposal.read(found)


class BadFormat(Problem):
    """The upload is not in the format that it claims; nothing was stored."""

    #: How the file seems to be written, if its dataset declares something else; otherwise None.
    reading = _ProposedReading()


class BadRows(Problem):
    """Some rows hold missing, non-numeric or non-finite values; nothing was stored."""

    #: How the file seems to be written, if its dataset declares something else; otherwise None.
    reading = _ProposedReading()

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The first bad rows: `line` and `reason` of each."""
        return list(self.fields.get("bad_row_lines", []))


class DigestMismatch(Problem):
    """The upload was damaged on the way; nothing was stored."""


class TooLarge(Problem):
    """The request is larger than the service accepts."""


class UnknownAlgorithm(Problem):
    """No algorithm has this name, or it does not support the objective or the kind of data."""


class WorkLimit(Problem):
    """The plan would run too long or need too much memory."""


class TooManyQueued(Problem):
    """You have reached the limit of unfinished jobs per analyst."""


class RateLimited(Problem):
    """Too many requests of this kind in the last minute; see `retry_after`."""


class JobFailed(Problem):
    """The job failed. It remains charged, because it may have read data."""


class NotCancellable(Problem):
    """Only a queued job can be cancelled."""


class Unavailable(Problem):
    """The service is temporarily unavailable."""


def problem_from(status: int, body: Mapping[str, Any], retry_after: float | None) -> Problem:
    """The exception for an `application/problem+json` document; an unknown type becomes a `Problem`."""
    slug = str(body.get("type", "")).rpartition("/")[2]
    known = {"type", "title", "status", "detail", "next"}
    return PROBLEMS.get(slug, Problem)(
        str(body.get("detail") or body.get("title") or f"the service answered {status}"),
        status=status,
        title=str(body.get("title", "")),
        advice=str(body.get("next", "")),
        retry_after=retry_after,
        fields={name: value for name, value in body.items() if name not in known},
    )
