"""The types of the service's responses, as frozen dataclasses.

Amounts are exact decimals; times are datetimes with a time zone. Fields that a newer service adds are
ignored, and fields that an older one does not send take their default, so that client and service need not be
upgraded together.
"""

from cairn_client.wire.amounts import Account, Amount, Number, amount_text
from cairn_client.wire.datasets import (
    ColumnReport,
    CorrectionFacts,
    DatasetFacts,
    Doubt,
    DoubtReport,
    GrantFacts,
    LedgerRow,
    PeriodFacts,
    PreviewFacts,
    PublicRowSetFacts,
    Retirement,
    SiteKind,
    SiteSetFacts,
    UploadReport,
    VerifyReport,
    WorkingBoundsFacts,
    WorkingColumn,
)
from cairn_client.wire.jobs import (
    AlgorithmFacts,
    DifferencesFacts,
    FindingsFacts,
    JobFacts,
    JobProgress,
    KindFacts,
    NoiseFacts,
    PlanFacts,
    ResultFacts,
)
from cairn_client.wire.people import (
    AuditEntry,
    KeyFacts,
    NewKey,
    NewPrincipal,
    PrincipalFacts,
    SessionFacts,
    WhoAmI,
)
from cairn_client.wire.requests import AccessRequestFacts, Others, PlanSummary, Standing, WantedFacts

__all__ = [
    "AccessRequestFacts",
    "Account",
    "AlgorithmFacts",
    "Amount",
    "AuditEntry",
    "ColumnReport",
    "CorrectionFacts",
    "DatasetFacts",
    "DifferencesFacts",
    "Doubt",
    "DoubtReport",
    "FindingsFacts",
    "GrantFacts",
    "JobFacts",
    "JobProgress",
    "KeyFacts",
    "KindFacts",
    "LedgerRow",
    "NewKey",
    "NewPrincipal",
    "NoiseFacts",
    "Number",
    "Others",
    "PeriodFacts",
    "PlanFacts",
    "PlanSummary",
    "PreviewFacts",
    "PrincipalFacts",
    "PublicRowSetFacts",
    "ResultFacts",
    "Retirement",
    "SessionFacts",
    "SiteKind",
    "SiteSetFacts",
    "Standing",
    "UploadReport",
    "VerifyReport",
    "WantedFacts",
    "WhoAmI",
    "WorkingBoundsFacts",
    "WorkingColumn",
    "amount_text",
]
