"""What a job paid for: the digests that enter its reservation and its charge."""

from typing import Any

from service.operations import canonical
from service.operations.tables import Dataset, Job

#: Columns of a job that never change, other than request and plan, which have digests of their own.
_FACTS = ("principal_id", "algorithm", "operations", "planned_ms", "request_digest", "idempotency_key")


def paid_for(job: Job, dataset: Dataset) -> dict[str, Any]:
    """Return what a job's entries are bound to: the plan, the request and the accountant that priced it."""
    return {
        "accountant": dataset.accountant,
        "job": canonical.digest({name: getattr(job, name) for name in _FACTS}),
        "plan": job.plan_digest,
        "request": canonical.digest(job.request),
    }
