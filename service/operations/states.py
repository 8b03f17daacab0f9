"""States and kinds that rows of the tables are in, as enumerations."""

from enum import StrEnum


class Role(StrEnum):
    """Roles of principals."""

    CURATOR = "curator"
    ANALYST = "analyst"
    #: Reads the ledgers, receipts and facts of all datasets, and the audit log; no results.
    AUDITOR = "auditor"
    #: Manages people and watches the service; sees no datasets and no jobs.
    OPERATOR = "operator"


class DatasetState(StrEnum):
    """Life of a dataset: without data, with its data, and with its data deleted."""

    DRAFT = "draft"
    SEALED = "sealed"
    RETIRED = "retired"


class EntryKind(StrEnum):
    """Kinds of ledger entries."""

    OPEN = "open"
    RAISE = "raise"
    CAP = "cap"
    RESERVE = "reserve"
    CHARGE = "charge"
    VOID = "void"


class JobState(StrEnum):
    """Life of a job; `jobs.queue` draws the transitions."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class EndReason(StrEnum):
    """Reasons why a job ended without a result; empty while it has not."""

    NONE = ""
    CANCELLED = "cancelled"
    WITHDRAWN = "withdrawn"
    CANNOT_RUN = "cannot-run"
    ERROR = "error"
    LOST = "lost"
    ENDED = "ended"
