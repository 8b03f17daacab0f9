"""What a job paid for: the digests that enter its reservation and its charge."""

import json
from collections.abc import Mapping
from typing import Any

from service.operations import canonical
from service.operations.tables import Dataset, Job

#: Columns of a job that never change, other than request and plan, which have digests of their own.
_FACTS = ("principal_id", "algorithm", "operations", "planned_ms", "request_digest", "idempotency_key")

#: What a charge says beyond its reservation: the audit log has the job's failure, if it fails. Charges of
#: earlier versions do not say so.
AT_CHARGE = {"failure": "audited"}


def _read(periods: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what stays as it was planned: versions may change until the job is claimed.

    Nothing in a dataset without periods, where all of it follows from the plan.
    """
    if periods is None or periods.get("unit", "") is None:
        return {}
    lasting = {name: value for name, value in periods.items() if name != "read"}
    return {"periods": {**lasting, "labels": [each["label"] for each in periods["read"]]}}


def paid_for(job: Job, dataset: Dataset) -> dict[str, Any]:
    """Return what a job's entries are bound to: the plan, the request and the accountant that priced it."""
    return {
        **_read(job.periods),
        "accountant": dataset.accountant,
        "job": canonical.digest({name: getattr(job, name) for name in _FACTS}),
        "plan": job.plan_digest,
        "request": canonical.digest(job.request),
    }


def same(reserved: str | None, charged: str | None) -> bool:
    """Return True if a charge is for what was reserved, by the payloads of the two entries."""
    paid_for, paid = _read_payload(reserved), _read_payload(charged)
    return paid_for == {name: value for name, value in paid.items() if name not in AT_CHARGE}


def failure_is_audited(charged: str | None) -> bool:
    """Return True if the audit log has the failure of a job with this charge, should it have failed."""
    return AT_CHARGE.items() <= _read_payload(charged).items()


def _read_payload(payload: str | None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(payload or "{}")
    return found
