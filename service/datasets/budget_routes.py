"""Routes of budgets, grants and the ledger."""

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Header, Path, Query
from fastapi.responses import StreamingResponse
from sqlalchemy import ColumnElement, and_, false, or_
from sqlalchemy.orm import Session

from core.privacy import Budget
from service.datasets import access, grants, integrity, lifecycle, view
from service.datasets.decisions import Decision
from service.datasets.routes import DatasetName
from service.datasets.wire import DatasetFacts, GrantBody, GrantFacts, GrantPage, LedgerPage, VerifyReport
from service.http.context import Context, Services
from service.http.json_limits import StrictRoute
from service.http.paging import Paging, Since, Until
from service.http.problems import answers
from service.http.route_limits import RouteLimits, limited
from service.http.wire import NAME_PATTERN, BudgetBody
from service.ledger import accountants, checkpoints, entries
from service.ledger.units import Cost
from service.operations.clock import rfc3339
from service.operations.csv_cells import escaped
from service.operations.settings import KIB
from service.operations.states import EntryKind
from service.operations.tables import Dataset, Grant, LedgerEntry, Principal
from service.people import principals
from service.people.access_events import recorded
from service.people.authentication import Curator, Overseer, Reader

router = APIRouter(prefix="/v1/datasets/{name}", tags=["budgets"], route_class=StrictRoute)
AnalystName = Annotated[str, Path(pattern=NAME_PATTERN, description="name of an analyst")]
#: Entries in memory while a ledger is written as a table.
_CSV_PAGE = 1000
#: Characters of that table that are sent at a time.
_CSV_PIECE = 64 << 10
_COLUMNS = (
    "sequence",
    "kind",
    "at",
    "analyst",
    "job",
    "periods",
    "epsilon",
    "rho",
    "delta",
    "actor",
    "previous",
    "hash",
    "purpose",
    "permit",
    "person_epsilon",
    "person_rho",
    "person_delta",
)


@dataclass(frozen=True)
class LedgerFilter:
    """Which entries of a ledger to list; what is left out does not matter."""

    kind: Annotated[EntryKind | None, Query(description="only entries of this kind")] = None
    analyst: Annotated[str | None, Query(pattern=NAME_PATTERN, description="only entries of this person")] = (
        None
    )
    since: Since = None
    until: Until = None

    def conditions(
        self, right: access.Right, analysts: Mapping[int | None, str]
    ) -> Iterator[ColumnElement[bool]]:
        """Yield what the filters demand, and that an analyst sees only entries of their own grant."""
        if right.grant_id is not None:
            yield LedgerEntry.grant_id == right.grant_id
        if self.analyst is not None:
            grants_of = [number for number, name in analysts.items() if number and name == self.analyst]
            own = and_(LedgerEntry.grant_id.is_(None), LedgerEntry.job_id.is_not(None))
            yield or_(
                LedgerEntry.grant_id.in_(grants_of), own if analysts.get(None) == self.analyst else false()
            )
        if self.kind is not None:
            yield LedgerEntry.kind == self.kind
        if self.since is not None:
            yield LedgerEntry.at >= self.since
        if self.until is not None:
            yield LedgerEntry.at < self.until


@router.post("/budget", responses=answers("retired", "second-needed"))
def raise_budget(name: DatasetName, body: BudgetBody, caller: Curator, context: Services) -> DatasetFacts:
    """Raise a dataset's total; it can never be lowered."""
    budget = Budget.of(body.epsilon, body.delta)
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        lifecycle.raise_budget(session, dataset, budget, by=Decision.of(caller, context))
        session.flush()
        return DatasetFacts.model_validate(view.facts(session, access.Right(caller, dataset)))


@router.get("/grants", responses=answers())
def list_grants(name: DatasetName, caller: Overseer, context: Services, paging: Paging) -> GrantPage:
    """List the analysts who may use a dataset, with their caps; revoked grants keep what was spent."""
    with context.database.read() as session:
        dataset = access.find(session, name, caller).dataset
        found = grants.page(session, dataset, after=paging.after(str) or "", limit=paging.fetch)
        shown, following = paging.cut(found, lambda each: each[1].name)
        items = [_grant(session, dataset, grant, analyst.name) for grant, analyst in shown]
    return GrantPage.model_validate({"items": items, "next": following})


@router.put("/grants/{analyst}", responses=answers("retired", "second-needed"))
def put_grant(
    name: DatasetName, analyst: AnalystName, body: GrantBody, caller: Curator, context: Services
) -> GrantFacts:
    """Grant an analyst a cap and kinds of jobs, or change them; a cap never below what they have used."""
    cap = Budget.of(body.epsilon, body.delta)
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        person = principals.find(session, analyst)
        grant = grants.grant(
            session, dataset, person, cap, terms=body.terms(), by=Decision.of(caller, context)
        )
        return GrantFacts.model_validate(_grant(session, dataset, grant, person.name))


@router.delete("/grants/{analyst}", status_code=204, responses=answers())
def delete_grant(name: DatasetName, analyst: AnalystName, caller: Curator, context: Services) -> None:
    """Revoke a grant and withdraw the analyst's queued jobs; what they spent stays spent."""
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        person = principals.find(session, analyst)
        grants.revoke(session, dataset, person, actor=caller.name, at=context.clock.now())


@router.get(
    "/ledger",
    responses={
        **answers(),
        200: {"content": {"text/csv": {"schema": {"type": "string"}, "example": ",".join(_COLUMNS) + "\n"}}},
    },
    response_model=LedgerPage,
    openapi_extra=recorded("read-ledger"),
)
@limited(RouteLimits(sent_per_request=16 * KIB))  # a table takes long to write
def get_ledger(
    name: DatasetName,
    caller: Reader,
    context: Services,
    paging: Paging,
    wanted: Annotated[LedgerFilter, Depends()],
    accept: Annotated[str, Header(description="`text/csv` for a table", max_length=500)] = "application/json",
) -> Any:
    """List the ledger's entries in order: an analyst's own to the analyst, all of them to others."""
    with context.database.read() as session:
        right = access.find(session, name, caller)
        dataset = right.dataset
        granted = grants.page(session, dataset, after="", limit=None)
        analysts: dict[int | None, str] = {row.id: person.name for row, person in granted}
        terms: dict[int | None, Grant] = {row.id: row for row, _ in granted}
        owner = session.get_one(Principal, dataset.owner_id).name
    whole = right.grant is None
    if whole:
        analysts[None] = owner  # whose own jobs have no grant

    conditions = list(wanted.conditions(right, analysts))

    def page(after: int, limit: int) -> list[LedgerEntry]:
        with context.database.read() as session:
            return entries.page(session, dataset.id, *conditions, after=after, limit=limit)

    after = paging.after(int) or 0
    if "text/csv" in accept:
        described = (_entry(dataset, each, analysts, terms, whole=whole) for each in _all_after(after, page))
        return StreamingResponse(_pieces(_as_csv(described), context), media_type="text/csv")
    shown, following = paging.cut(page(after, paging.fetch), lambda entry: entry.sequence)
    rows = [_entry(dataset, entry, analysts, terms, whole=whole) for entry in shown]
    return LedgerPage.model_validate({"items": rows, "next": following})


async def _pieces(text: Iterator[str], context: Context) -> AsyncIterator[str]:
    while (piece := await to_thread.run_sync(next, text, None, limiter=context.downloads)) is not None:
        yield piece


def _all_after(after: int, page: Callable[[int, int], list[LedgerEntry]]) -> Iterator[LedgerEntry]:
    """Return all entries in order, a page at a time in memory: entries are only ever added."""
    while found := page(after, _CSV_PAGE):
        yield from found
        after = found[-1].sequence


@router.post("/ledger/verify", responses=answers())
def verify_ledger(
    name: DatasetName,
    caller: Overseer,
    context: Services,
    whole: Annotated[
        bool, Query(description="read every entry, not only those after the checkpoint")
    ] = False,
) -> VerifyReport:
    """Verify the ledger: the chain of hashes, every balance, and the charge of every job and result.

    What was verified before is taken from a checkpoint that the service signed.
    """
    keys = context.signing_keys
    with context.database.read() as session:
        dataset = access.find(session, name, caller).dataset
        found, state = checkpoints.verify_ledger(session, dataset.id, keys, whole=whole)
        found.faults += integrity.faults(session, dataset.id, keys)
        if dataset.population is not None:
            found.faults += integrity.population_faults(session, dataset.population)
    if found.ok and found.entries > found.since:
        with context.database.write() as session:
            checkpoints.sign(session, dataset.id, keys, state, at=context.clock.now())
    return VerifyReport(
        ok=found.ok, entries=found.entries, since=found.since, head=found.head, faults=found.faults
    )


def _grant(session: Session, dataset: Dataset, grant: Grant, analyst: str) -> dict[str, Any]:
    return {
        "analyst": analyst,
        "cap": view.balance_view(session, dataset, grant),
        "kinds": grant.allowed_kinds,
        "created_at": grant.created_at,
        "revoked_at": grant.revoked_at,
        **view.terms(grant),
    }


def _entry(
    dataset: Dataset,
    entry: LedgerEntry,
    analysts: dict[int | None, str],
    terms: dict[int | None, Grant],
    *,
    whole: bool,
) -> dict[str, Any]:
    grant = terms.get(entry.grant_id)
    return {
        "sequence": entry.sequence,
        "kind": entry.kind,
        "at": entry.at,
        "analyst": analysts.get(entry.grant_id) if entry.grant_id or entry.job_id else None,
        "job": entry.job_id,
        "periods": entry.periods,
        "amount": accountants.of(dataset).amount(Cost(entry.loss_units, entry.delta_units)),
        "of_person": _of_person(dataset, entry),
        "purpose": grant.purpose if grant else None,
        "permit": grant.permit if grant else None,
        "actor": entry.actor if whole else None,
        "previous": entry.previous if whole else None,
        "hash": entry.hash if whole else None,
    }


def _of_person(dataset: Dataset, entry: LedgerEntry) -> accountants.Amount | None:
    cost = entries.of_person(entry)
    return (
        None
        if cost is None or dataset.population is None
        else accountants.of(dataset.population).amount(cost)
    )


def _as_csv(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Return the lines of a table, some thousand characters at a time."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in rows:
        periods = " ".join(row["periods"] or ())
        of_person = {f"person_{name}": text for name, text in (row["of_person"] or {}).items()}
        cells = {**row, **row["amount"], **of_person, "periods": periods, "at": rfc3339(row["at"])}
        writer.writerow(escaped(cells.get(name) for name in _COLUMNS))
        if text.tell() > _CSV_PIECE:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    yield text.getvalue()
