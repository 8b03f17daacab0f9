"""Routes of periods: add, list, upload, seal, raise the budget, discard."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from core.privacy import Budget
from service import ledger
from service.datasets import access, drafts, lifecycle, view
from service.datasets.access import Right
from service.datasets.decisions import Decision
from service.datasets.periods import stored
from service.datasets.periods.wire import PeriodBody, PeriodFacts, PeriodPage
from service.datasets.routes import FILE, UPLOAD, AnnouncedDigest, DatasetName, Draft, OnBadRow, take_rows
from service.datasets.wire import SealBody, UploadReport
from service.http.context import Context, Services
from service.http.json_limits import StrictRoute
from service.http.paging import Paging
from service.http.problems import answers
from service.http.route_limits import limited
from service.http.wire import NAME_PATTERN, BudgetBody
from service.ledger import accountants
from service.ledger.charging import AccountKey
from service.operations.states import Role
from service.operations.tables import Period
from service.people.access_events import recorded
from service.people.authentication import Caller, Curator, Reader

router = APIRouter(prefix="/v1/datasets/{name}/periods", tags=["datasets"], route_class=StrictRoute)
Label = Annotated[str, Path(pattern=NAME_PATTERN, description="label of a period")]


@router.post("", status_code=201, responses=answers("retired", "second-needed"))
def add_period(name: DatasetName, body: PeriodBody, caller: Curator, context: Services) -> PeriodFacts:
    """Add a period to a dataset; then upload its rows and seal it."""
    with context.database.write() as session:
        right = access.find(session, name, caller)
        period = drafts.add_period(session, right.dataset, body, by=Decision.of(caller, context))
        return _facts(session, right, period)


@router.get("", responses=answers(), openapi_extra=recorded("read-report", only=Role.CURATOR))
def list_periods(name: DatasetName, caller: Reader, context: Services, paging: Paging) -> PeriodPage:
    """List the periods of a dataset by their labels, with what is left; drafts to their owner alone."""
    with context.database.read() as session:
        right = access.find(session, name, caller)
        found = stored.page(session, right, after=paging.after(str) or "", limit=paging.fetch)
        shown, following = paging.cut(found, lambda period: period.label)
        balances = ledger.balances(session, right.dataset.id, right.grant_id)
        corrections = stored.corrections(session, right.dataset.id)
        items = [_described(right, each, balances, corrections.get(each.label)) for each in shown]
    return PeriodPage.model_validate({"items": items, "next": following})


@router.get("/{label}", responses=answers(), openapi_extra=recorded("read-report", only=Role.CURATOR))
def get_period(name: DatasetName, label: Label, caller: Reader, context: Services) -> PeriodFacts:
    """Get a period's public facts and what is left of it."""
    with context.database.read() as session:
        right = access.find(session, name, caller)
        return _facts(session, right, stored.find(session, right, label))


@router.put(
    "/{label}/data",
    responses=answers("already-sealed", "retired", "bad-format", "bad-rows", "digest-mismatch", "too-large"),
    openapi_extra=FILE,
)
@limited(UPLOAD)
async def upload_period(
    request: Request,
    name: DatasetName,
    label: Label,
    caller: Curator,
    context: Services,
    announced: AnnouncedDigest,
    on_bad_row: OnBadRow = "refuse",
) -> UploadReport:
    """Upload the rows of a period that is a draft, in place of those it has, and get a report on them."""
    draft = await run_in_threadpool(_find_draft, context, name, label, caller, announced)
    return await take_rows(request, context, caller, draft, drop_bad=on_bad_row == "drop")


@router.post("/{label}/seal", responses=answers("already-sealed", "retired", "cannot-seal"))
def seal_period(
    name: DatasetName, label: Label, body: SealBody, caller: Curator, context: Services
) -> PeriodFacts:
    """Seal a period with the rows it has; no other period changes, and jobs can read it.

    Doubts about the rows must be confirmed, as in a dataset without periods.
    """
    with context.database.write() as session:
        right = access.find(session, name, caller)
        period = stored.find_draft(session, right, label)
        now = context.clock.now()
        confirmed, sha256 = body.confirm, body.sha256
        drafts.seal(
            session, right.dataset, period, confirmed=confirmed, sha256=sha256, actor=caller.name, at=now
        )
        return _facts(session, right, period)


@router.post("/{label}/budget", responses=answers("retired", "second-needed"))
def raise_budget_of_period(
    name: DatasetName, label: Label, body: BudgetBody, caller: Curator, context: Services
) -> PeriodFacts:
    """Raise the total of a sealed period that has a budget of its own; it can never be lowered."""
    budget = Budget.of(body.epsilon, body.delta)
    with context.database.write() as session:
        right = access.find(session, name, caller)
        period = stored.find_sealed(session, right, label)
        lifecycle.raise_budget(session, right.dataset, budget, period=period, by=Decision.of(caller, context))
        return _facts(session, right, period)


@router.post("/{label}/correction", status_code=201, responses=answers("not-sealed", "retired"))
def correct_period(name: DatasetName, label: Label, caller: Curator, context: Services) -> PeriodFacts:
    """Begin a correction of a sealed period; then upload the corrected rows and seal them.

    Sealing them deletes the rows that are there. What was charged to the period stays charged. A correction
    that was begun before goes on.
    """
    with context.database.write() as session:
        right = access.find(session, name, caller)
        stored.find(session, right, label)
        drafts.correct(session, right.dataset, label, actor=caller.name, at=context.clock.now())
        return _facts(session, right, stored.find(session, right, label))


@router.delete("/{label}", status_code=204, responses=answers("already-sealed", "retired"))
def discard_period(name: DatasetName, label: Label, caller: Curator, context: Services) -> None:
    """Delete the draft of a period with its rows; its label can be used again."""
    with context.database.write() as session:
        right = access.find(session, name, caller)
        period = stored.find_draft(session, right, label)
        drafts.discard_period(session, right.dataset, period, actor=caller.name, at=context.clock.now())


def _find_draft(context: Context, name: str, label: str, caller: Caller, announced: str | None) -> Draft:
    with context.database.read() as session:
        right = access.find(session, name, caller)
        return Draft.of(right.dataset, stored.find_draft(session, right, label), announced)


def _facts(session: Session, right: Right, period: Period) -> PeriodFacts:
    balances = ledger.balances(session, right.dataset.id, right.grant_id)
    correction = stored.corrections(session, right.dataset.id).get(period.label)
    correction = None if correction is period else correction
    return PeriodFacts.model_validate(_described(right, period, balances, correction))


def _described(
    right: Right,
    period: Period,
    balances: dict[AccountKey, ledger.Balance],
    correction: Period | None,
) -> dict[str, Any]:
    """Describe a period: balances to everyone, reports on its rows and its correction to the owner alone."""
    dataset, grant = right.dataset, right.grant
    declared = Budget(period.epsilon_units, period.delta_units)
    accountant = accountants.get(dataset.accountant, declared)
    cap = accountants.of(dataset, grant)
    own, granted = (balances.get(AccountKey(period.label, each)) for each in (None, right.grant_id))
    return {
        "label": period.label,
        "version": period.version,
        "state": period.state,
        "size": period.size,
        "created_at": period.created_at,
        "sealed_at": period.sealed_at,
        "budget": own and _balance(accountant, own),
        "cap": _balance(cap, granted) if grant and granted else None,
        "upload": view.report_on(dataset, period) if right.is_owner else None,
        "correction": view.correction(right, correction),
    }


def _balance(accountant: accountants.Accountant, balance: ledger.Balance) -> dict[str, Any]:
    return {"declared": accountants.declared(accountant.declared), **accountant.amounts(balance)}
