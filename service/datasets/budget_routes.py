"""Routes of money: budgets, grants, the ledger."""

from __future__ import annotations

import csv
import io
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Response

from core.privacy import Budget
from service import ledger
from service.datasets import access, grants, lifecycle
from service.datasets.routes import DatasetName
from service.datasets.wire import DatasetFacts, GrantFacts, GrantPage, LedgerPage, VerifyReport
from service.http.context import Services
from service.http.json_limits import StrictRoute
from service.http.paging import Limit, cursor_from, cursor_to
from service.http.problems import answers
from service.http.wire import NAME_PATTERN, BudgetBody
from service.ledger import accountants, entries, verification
from service.ledger.units import Cost
from service.operations.clock import rfc3339
from service.operations.tables import Dataset, Grant, LedgerEntry
from service.people import principals
from service.people.authentication import Anyone, Curator

__all__ = ["router"]

router = APIRouter(prefix="/v1/datasets/{name}", tags=["budgets"], route_class=StrictRoute)
AnalystName = Annotated[str, Path(pattern=NAME_PATTERN, description="name of an analyst")]
_CSV_ROWS = 100_000
_COLUMNS = (
    "sequence",
    "kind",
    "at",
    "analyst",
    "job",
    "epsilon",
    "rho",
    "delta",
    "actor",
    "previous",
    "hash",
)


@router.post("/budget", responses=answers("retired"))
def raise_budget(name: DatasetName, body: BudgetBody, caller: Curator, context: Services) -> DatasetFacts:
    """Raise a dataset's total; it can never be lowered."""
    budget = Budget.of(body.epsilon, body.delta)
    with context.database.write() as session:
        dataset, _ = access.find(session, name, caller)
        lifecycle.raise_budget(session, dataset, budget, actor=caller.name, at=context.clock.now())
        session.flush()
        return DatasetFacts.model_validate(access.facts(session, dataset, None))


@router.get("/grants", responses=answers())
def list_grants(
    name: DatasetName, caller: Curator, context: Services, limit: Limit = None, cursor: str | None = None
) -> GrantPage:
    """The analysts who may use a dataset, with their caps; withdrawn grants keep what was spent."""
    size = limit or context.settings.default_page
    with context.database.read() as session:
        dataset, _ = access.find(session, name, caller)
        found = grants.page(session, dataset, after=cursor_from(cursor, str) or "", limit=size + 1)
        items = [
            _grant(dataset, grant, analyst.name, ledger.balance(ledger.find(session, dataset.id, grant.id)))
            for grant, analyst in found[:size]
        ]
    following = cursor_to(found[size - 1][1].name) if len(found) > size else None
    return GrantPage.model_validate({"items": items, "next": following})


@router.put("/grants/{analyst}", responses=answers("retired"))
def put_grant(
    name: DatasetName, analyst: AnalystName, body: BudgetBody, caller: Curator, context: Services
) -> GrantFacts:
    """Grant an analyst a cap, or move it; never below what they have used."""
    cap = Budget.of(body.epsilon, body.delta)
    with context.database.write() as session:
        dataset, _ = access.find(session, name, caller)
        person = principals.find(session, analyst)
        grant = grants.grant(session, dataset, person, cap, actor=caller.name, at=context.clock.now())
        held = ledger.balance(ledger.find(session, dataset.id, grant.id))
        return GrantFacts.model_validate(_grant(dataset, grant, person.name, held))


@router.delete("/grants/{analyst}", status_code=204, responses=answers())
def delete_grant(name: DatasetName, analyst: AnalystName, caller: Curator, context: Services) -> None:
    """Withdraw a grant and the analyst's queued jobs; what they spent stays spent."""
    with context.database.write() as session:
        dataset, _ = access.find(session, name, caller)
        person = principals.find(session, analyst)
        grants.revoke(session, dataset, person, actor=caller.name, at=context.clock.now())


@router.get(
    "/ledger",
    responses={
        **answers(),
        200: {"content": {"text/csv": {"schema": {"type": "string"}, "example": ",".join(_COLUMNS) + "\n"}}},
    },
    response_model=LedgerPage,
)
def get_ledger(
    name: DatasetName,
    caller: Anyone,
    context: Services,
    limit: Limit = None,
    cursor: str | None = None,
    accept: Annotated[str, Header(description="`text/csv` for a table", max_length=500)] = "application/json",
) -> Any:
    """The ledger's entries in order: all of them for the owner, an analyst's own for the analyst."""
    table = "text/csv" in accept
    size = _CSV_ROWS if table else limit or context.settings.default_page
    with context.database.read() as session:
        dataset, grant = access.find(session, name, caller)
        found = entries.page(
            session,
            dataset.id,
            grant_id=grant.id if grant else None,
            after=cursor_from(cursor, int) or 0,
            limit=size + 1,
        )
        analysts = {
            row.id: person.name for row, person in grants.page(session, dataset, after="", limit=None)
        }
    rows = [_entry(dataset, entry, analysts, whole=grant is None) for entry in found[:size]]
    following = cursor_to(found[size - 1].sequence) if len(found) > size else None
    if not table:
        return LedgerPage.model_validate({"items": rows, "next": following})
    more = {"Link": f'<?cursor={following}>; rel="next"'} if following else {}
    return Response(_as_csv(rows), media_type="text/csv", headers=more)


@router.post("/ledger/verify", responses=answers())
def verify_ledger(name: DatasetName, caller: Curator, context: Services) -> VerifyReport:
    """Replay the ledger: the chain of hashes, and every balance."""
    with context.database.read() as session:
        dataset, _ = access.find(session, name, caller)
        found = verification.verify(session, dataset.id)
    return VerifyReport(ok=found.ok, entries=found.entries, head=found.head, faults=found.faults)


def _grant(dataset: Dataset, grant: Grant, analyst: str, held: ledger.Balance) -> dict[str, Any]:
    return {
        "analyst": analyst,
        "cap": accountants.balance_view(dataset.accountant, held, grant.epsilon_units, grant.delta_units),
        "created_at": rfc3339(grant.created_at),
        "revoked_at": rfc3339(grant.revoked_at) if grant.revoked_at else None,
    }


def _entry(dataset: Dataset, entry: LedgerEntry, analysts: dict[int, str], *, whole: bool) -> dict[str, Any]:
    return {
        "sequence": entry.sequence,
        "kind": entry.kind,
        "at": rfc3339(entry.at),
        "analyst": analysts.get(entry.grant_id) if entry.grant_id is not None else None,
        "job": entry.job_id,
        "amount": accountants.amount(
            dataset.accountant, Cost(entry.loss_units, entry.delta_units), dataset.delta_units
        ),
        "actor": entry.actor if whole else None,
        "previous": entry.previous if whole else None,
        "hash": entry.hash if whole else None,
    }


def _as_csv(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({**row, **row["amount"]})
    return text.getvalue()
