"""Quotes: what a job would be charged, bound to who asked for which plan.

A quote is a digest and nothing is stored for it: it reserves nothing and does not expire, but it stops
matching as soon as the same request would be planned or priced differently.
"""

from __future__ import annotations

import hashlib
import json

from core.plan import Plan
from service.errors import QuoteMismatch
from service.jobs.wire import JobBody, PlanBody
from service.ledger import accountants
from service.ledger.units import NOTHING, Cost
from service.operations.tables import Dataset, Grant

__all__ = ["cost_of", "quote_of", "require_quoted"]


def cost_of(dataset: Dataset, body: PlanBody, plan: Plan) -> Cost:
    """Return what a request is charged: the cost of its plan, and nothing for a rehearsal."""
    return NOTHING if body.rehearsal else accountants.of(dataset).cost(plan)


def quote_of(dataset: Dataset, grant: Grant | None, body: PlanBody, plan: Plan) -> str:
    """Return the digest of the caller (by grant, or as the owner), the request, its plan and its cost."""
    cost = cost_of(dataset, body, plan)
    bound = {
        "analyst": grant.principal_id if grant else dataset.owner_id,
        "dataset": dataset.id,
        "grant": grant.id if grant else None,
        "request": body.asked(),
        "plan": plan.digest,
        "cost": [dataset.accountant, cost.loss, cost.delta],
    }
    return hashlib.sha256(json.dumps(bound, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def require_quoted(dataset: Dataset, grant: Grant | None, body: JobBody, plan: Plan) -> None:
    """Raise QuoteMismatch when a request carries a quote of anything but what it would be charged for now."""
    if body.quote is None or body.quote == quote_of(dataset, grant, body, plan):
        return
    cost = accountants.of(dataset).amount(cost_of(dataset, body, plan))
    raise QuoteMismatch(
        "the quote is for another request, or the price has changed; plan again and send the new quote",
        cost=cost,
    )
