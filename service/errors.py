"""Problems that the service responds with: one class per `type`.

The docstring of a class says what is wrong, and its `next_step` what to do about it. Each has a page in
docs/problems/. Nothing in a problem may depend on rows, except for the curator who
uploads them (`bad-rows`, `bad-format`).
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar


class ServiceError(Exception):
    """An error that the caller receives as an RFC 9457 problem."""

    slug: ClassVar[str]
    status: ClassVar[int]
    title: ClassVar[str]
    #: What to do about it, in sentences that are ready to show; a problem may say it more precisely.
    next_step: ClassVar[str]

    def __init_subclass__(cls, status: int, title: str) -> None:
        """Name the problem's type for the class: `NotSealed` is `not-sealed`."""
        cls.slug = re.sub("(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()
        cls.status, cls.title = status, title

    def __init__(
        self,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
        next_step: str | None = None,
        **fields: Any,
    ):
        super().__init__(detail)
        self.detail = detail
        self.advice = next_step or self.next_step
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
            "next": self.advice,
            **self.fields,
        }


class Unauthorized(ServiceError, status=401, title="No valid key"):
    """The request carries no `Authorization: Bearer <key>`, or a key that is unknown, expired or revoked."""

    next_step = "Check the key, or ask a curator for a new one."


class Forbidden(ServiceError, status=403, title="Not allowed for this role"):
    """The key is valid, but its role may not make this call."""

    next_step = "Use a key of the role that may do this, or ask its holder to do it."


class SignInRefused(ServiceError, status=403, title="Sign-in refused"):
    """The institution's provider was asked, and this person or this sign-in is not let in."""

    next_step = "Sign in again, or ask a curator or operator about your account."


class KindNotGranted(ServiceError, status=403, title="Your grant does not allow this kind of job"):
    """Your grant on this dataset allows other kinds of jobs than the one you asked for; `kinds` lists those
    that it allows."""

    next_step = "Request this kind of job: the dataset's owner decides."


class NotFound(ServiceError, status=404, title="Not found"):
    """It does not exist, or you may not see it; the response is the same on purpose."""

    next_step = "Check the name, or request access."


class InvalidRequest(ServiceError, status=422, title="Invalid request"):
    """The request is malformed. The field `errors` names each wrong place."""

    next_step = "Correct it and try again."


class NotSealed(ServiceError, status=409, title="Dataset is not sealed yet"):
    """The dataset is still a draft, so no job can be planned."""

    next_step = "Wait until its curator has uploaded and sealed its rows."


class CannotSeal(ServiceError, status=409, title="Rows cannot be sealed as they are"):
    """The draft has no rows, other rows than those you name, or rows that look wrong (`doubts`)."""

    next_step = (
        "Read the report on the rows; confirm the doubts if everything is as it should be, or "
        "upload other rows."
    )


class AlreadySealed(ServiceError, status=409, title="Dataset is already sealed"):
    """What is sealed changes only by a correction, which replaces its rows and goes on with its budget."""

    next_step = "Begin a correction to replace the rows, or create another dataset for other data."


class Retired(ServiceError, status=409, title="Dataset is retired"):
    """The dataset was retired: its rows are deleted and only its ledger remains."""

    next_step = "Use another dataset."


class BudgetExhausted(ServiceError, status=409, title="Dataset budget exhausted"):
    """The job costs more than is left of the dataset's budget; `largest` is what a job may cost now."""

    next_step = "Ask for less, wait for a queued job to be cancelled, or request more: the owner decides."


class CapExhausted(ServiceError, status=409, title="Your cap is exhausted"):
    """The job costs more than is left of your cap on this dataset; `largest` is what a job may cost now."""

    next_step = "Ask for less, or request a larger cap: the dataset's owner decides."


class SecondNeeded(ServiceError, status=409, title="A second curator must agree"):
    """One curator alone may not allow this much: above an amount that the operator has set, another curator
    must agree."""

    next_step = "Propose it as a request; nothing changes until another curator agrees."


class AlreadyDecided(ServiceError, status=409, title="Request is decided already"):
    """The request was granted, declined or withdrawn in the meantime, or waits for somebody else."""

    next_step = "Read what became of it; nothing was changed by this call."


class PopulationExhausted(ServiceError, status=409, title="Budget of the population exhausted"):
    """The job costs one person more than is left of the total of all datasets that speak of these people."""

    next_step = "Ask for less, or for fewer periods, or ask the curator to raise the population's total."


class CannotJoin(ServiceError, status=409, title="Dataset cannot join the population"):
    """The dataset is in a population already, does not tell people apart, or its jobs have cost too much."""

    next_step = "A dataset of other people needs a population of its own."


class DeltaNotOffered(ServiceError, status=422, title="No delta on offer"):
    """The dataset (or your cap) offers no delta, so only pure differential privacy is possible."""

    next_step = "Set delta to 0 and choose an algorithm with a pure guarantee."


class EpsilonTooSmall(ServiceError, status=422, title="Epsilon too small"):
    """The algorithm cannot do anything useful, or cannot be calibrated, at so small an epsilon, or the
    dataset's curator asks for more."""

    next_step = "Ask for a larger epsilon."


class IdempotencyMismatch(ServiceError, status=422, title="Idempotency-Key used for something else"):
    """This Idempotency-Key was used with another body."""

    next_step = "Use a new key for a new request."


class QuoteMismatch(ServiceError, status=409, title="Quote does not match"):
    """The quote was given for something else: another request, another caller, or a plan or price that has
    changed since."""

    next_step = "Nothing was reserved. Plan again, check the cost, and submit with the new quote."


class BadFormat(ServiceError, status=422, title="Upload cannot be read"):
    """The upload is not what its Content-Type says, or lacks a column."""

    next_step = "Nothing was stored. Correct the file and upload it again."


class BadRows(ServiceError, status=422, title="Upload has bad rows"):
    """Some rows hold missing, non-numeric or non-finite values, or have the wrong number of fields."""

    next_step = "Nothing was stored. Correct the rows, or upload again and leave bad rows out."


class DigestMismatch(ServiceError, status=422, title="Upload arrived damaged"):
    """The bytes that arrived do not have the SHA-256 that was announced."""

    next_step = "Nothing was stored. Upload again."


class TooLarge(ServiceError, status=413, title="Body too large"):
    """The body is larger than this service takes."""

    next_step = "Send less, or ask the operator to raise the limit."


class UnknownAlgorithm(ServiceError, status=422, title="Algorithm not available"):
    """No algorithm has this name, or the one that you name does not support this objective or this kind of
    data."""

    next_step = "Choose one that the service lists for it, or auto."


class WorkLimit(ServiceError, status=422, title="Plan needs too much work"):
    """The plan would run too long or need too much memory; this is decided from public numbers alone."""

    next_step = "Ask for fewer clusters, or use cheaper options or another algorithm."


class TooManyQueued(ServiceError, status=429, title="Too many unfinished jobs"):
    """You have as many unfinished jobs as one analyst may have."""

    next_step = "Wait for one to end, or cancel one."


class RateLimited(ServiceError, status=429, title="Too many requests"):
    """More requests or bytes than one caller's share, too many rehearsals in a minute, or more jobs on a
    dataset in an hour than its curator allows."""

    next_step = "Wait as long as `Retry-After` says, then try again."


class JobFailed(ServiceError, status=409, title="Job has no result"):
    """The job ended without a result. Its charge remains, because it may have read data."""

    next_step = "Submit another job, or ask the curator to look into the worker's log."


class NotCancellable(ServiceError, status=409, title="Job cannot be cancelled"):
    """Only a queued job can be cancelled; this one was claimed by a worker, or has ended."""

    next_step = "Wait for its result."


class Unavailable(ServiceError, status=503, title="Temporarily unavailable"):
    """The service cannot answer now: its database is away or busy, or it is being upgraded. A job is never
    submitted twice when its Idempotency-Key is repeated."""

    next_step = "Try again in a moment."


PROBLEMS: dict[str, type[ServiceError]] = {
    problem.slug: problem for problem in sorted(ServiceError.__subclasses__(), key=lambda each: each.slug)
}
