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
    #: The dataset joins a population, with what its jobs have cost one person so far.
    JOIN = "join"


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


class RequestState(StrEnum):
    """Life of a request for access; `datasets.requests` draws the transitions."""

    OPEN = "open"
    #: The dataset's owner has agreed, and a second curator must.
    PROPOSED = "proposed"
    GRANTED = "granted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"


class Unit(StrEnum):
    """Units of privacy of a dataset with periods."""

    #: Each record lies in one period.
    RECORD = "record"
    #: All rows of a person in one period.
    PERSON_IN_PERIOD = "person-in-period"
    #: All rows of a person in all periods.
    PERSON = "person"

    @property
    def has_accounts_of_periods(self) -> bool:
        """Whether each period has an account; else there is one for all."""
        return self is not Unit.PERSON

    @property
    def in_words(self) -> str:
        """Whom the guarantee protects, as facts and receipts name it."""
        return {"record": "row", "person-in-period": "person in a period", "person": "person"}[self]
