"""Life of a dataset: create, raise the budget, retire. `drafts` has what happens before it is sealed."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.data import Dense, Ids, Sparse, Stored, Table, column_from_json
from core.errors import InvalidBudget, InvalidDomain
from core.privacy.budget import EPSILON_UNIT, LARGEST_EPSILON, Budget, to_units
from service import ledger
from service.datasets import access, reading
from service.datasets.columns import TableColumn
from service.datasets.decisions import Decision
from service.datasets.ingest import store
from service.datasets.wire import Bounds, DatasetBody
from service.datasets.withdrawal import decline_requests, withdraw
from service.errors import AlreadySealed, InvalidRequest, NotFound, NotSealed, Retired
from service.ledger import accountants
from service.ledger.charging import WHOLE, AccountKey
from service.ledger.units import NOTHING
from service.operations import audit
from service.operations.states import DatasetState, Unit
from service.operations.tables import Dataset, DatasetChunk, Period, PublicRowSet, WorkingBounds
from service.people.authentication import Caller

#: What to do where a new total needs a second curator.
CREATE_SMALLER = "Begin with at most that, and propose the larger total as a request."


def create(
    session: Session, body: DatasetBody, *, owner: Caller, at: datetime, alone: Budget | None = None
) -> Dataset:
    """Create a dataset without data; core's InvalidRequest when the public facts are inconsistent.

    `alone`: the largest total that one curator may make; None: any.
    """
    domain = domain_of(body)
    budget = Budget.of(body.budget.epsilon, body.budget.delta)
    Decision(owner.name, at, alone).require(budget, "a total", CREATE_SMALLER)
    total = accountants.get(body.accountant, budget).total
    unit = None if body.unit is None else Unit(body.unit)
    require_unit(unit, id_column_of(body, domain), domain.rows_per_person)
    dataset = Dataset(
        name=body.name,
        owner_id=owner.id,
        description=body.description,
        state=DatasetState.DRAFT,
        domain=domain.to_json(),
        id_column=id_column_of(body, domain),
        accountant=body.accountant,
        epsilon_units=budget.epsilon_units,
        delta_units=budget.delta_units,
        planned_release=body.planned_release,
        least_epsilon_units=_least_epsilon(body),
        jobs_per_hour=body.jobs_per_hour,
        created_at=at,
        upload=None,
        from_rows=confirmed_from_rows(body.table) or None,
        reading=reading.stored(body.reading),
        unit=unit,
    )
    try:
        with session.begin_nested():
            session.add(dataset)
    except IntegrityError as error:
        raise InvalidRequest(f"the name {body.name} is taken; choose another", status=409) from error
    own = NOTHING if dataset.has_accounts_of_periods else total
    ledger.open_account(session, dataset.id, own, actor=owner.name, at=at)
    amounts: dict[str, Any] = accountants.declared(budget)
    audit.record(
        session,
        "create-dataset",
        actor=owner.name,
        at=at,
        dataset_id=dataset.id,
        domain=domain.fingerprint,
        accountant=body.accountant,
        confirmed_from_rows=dataset.from_rows or {},
        reading=dataset.reading,
        unit=dataset.unit,
        **amounts,
    )
    return dataset


def require_unit(unit: Unit | None, id_column: str | None, rows_per_person: int) -> None:
    """Raise InvalidDomain unless the id column tells apart whom the unit of privacy protects."""
    if unit is Unit.RECORD and (id_column is not None or rows_per_person != 1):
        raise InvalidDomain(
            "with the unit record there are no people to tell apart: leave the id column out, or choose the "
            "unit person-in-period or person",
            parameter="unit",
        )
    if unit in (Unit.PERSON, Unit.PERSON_IN_PERIOD) and id_column is None:
        raise InvalidDomain(
            f"the unit {unit} needs an id column that tells people apart, in every period by the same ids",
            parameter="unit",
        )


def confirmed_from_rows(table: Sequence[TableColumn] | None) -> dict[str, list[str]]:
    """Return, by column, the facts that came from rows and that their owner confirms to be public."""
    found = {each.name: [str(fact) for fact in each.confirmed_from_rows or ()] for each in table or ()}
    return {name: sorted(set(facts)) for name, facts in found.items() if facts}


def domain_of(body: DatasetBody) -> Stored:
    """Return the domain that public facts describe; InvalidDomain when they are inconsistent."""
    domain = _table(body) if body.table is not None else _domain(body)
    if body.rows_per_person > 1 and id_column_of(body, domain) is None:
        raise InvalidDomain(
            "more than one row per person needs an id column that tells people apart", parameter="id_column"
        )
    if body.id_column is not None and body.id_column in domain.columns:
        raise InvalidDomain(
            "the id column must not be one of the other columns: it is not stored", parameter="id_column"
        )
    return domain


def id_column_of(body: DatasetBody, domain: Stored) -> str | None:
    """Return the column that tells people apart; a table declares it among its columns."""
    return domain.id_column if isinstance(domain, Table) else body.id_column


def _least_epsilon(body: DatasetBody) -> int:
    units = to_units(body.least_epsilon, EPSILON_UNIT, "least_epsilon")
    if not 0 <= units <= LARGEST_EPSILON * EPSILON_UNIT:
        raise InvalidBudget(f"least_epsilon must be from 0 to {LARGEST_EPSILON}", parameter="least_epsilon")
    return units


def _table(body: DatasetBody) -> Table:
    for name in ("columns", "dimension", "bounds", "id_column"):
        if getattr(body, name) is not None:
            raise InvalidDomain(f"leave {name} out: the columns of the table already say it", parameter=name)
    hidden = {"confirmed_from_rows"}
    columns = (column.model_dump(exclude_none=True, exclude=hidden) for column in body.table or ())
    declared = tuple(column_from_json(column) for column in columns)
    return Table(declared=declared, size=body.size, rows_per_person=body.rows_per_person)


def _domain(body: DatasetBody) -> Stored:
    bounds = body.bounds or Bounds()
    given = [name for name in Bounds.model_fields if getattr(bounds, name) is not None]
    if len(given) != 1:
        raise InvalidDomain(
            "give a table, or bounds with exactly one of box, ball, sparse and ids", parameter="bounds"
        )
    shared: dict[str, Any] = {"size": body.size, "rows_per_person": body.rows_per_person}
    if bounds.sparse is not None:
        if body.dimension is None or body.columns is not None:
            raise InvalidDomain("a sparse dataset has a dimension and no column names", parameter="dimension")
        return Sparse(dimension=body.dimension, radius=bounds.sparse.radius, **shared)
    if bounds.ids is not None:
        return Ids(count=bounds.ids.count, **shared)
    named: dict[str, Any] = {"columns": body.columns, "dimension": body.dimension, **shared}
    if bounds.ball is not None:
        return Dense.ball(bounds.ball.radius, bounds.ball.centre, **named)
    assert bounds.box is not None
    return Dense.box(bounds.box.low, bounds.box.high, scaling=body.scaling, **named)


def require_draft(dataset: Dataset, period: Period | None = None) -> None:
    """Raise AlreadySealed or Retired unless the dataset, or this period of it, is still a draft."""
    require_not_retired(dataset)
    if period is not None:
        if period.state != DatasetState.DRAFT:
            raise AlreadySealed(
                f"{period.label} of {dataset.name} is sealed",
                next_step="Correct it, or add another period for other rows.",
            )
        return
    if dataset.state != DatasetState.DRAFT:
        raise AlreadySealed(f"{dataset.name} is sealed: it is not a draft any more")


def require_not_retired(dataset: Dataset) -> None:
    """Raise Retired for a dataset whose rows are deleted, NotFound for a draft that was discarded."""
    if dataset.name.startswith(access.NAMELESS):
        raise NotFound("this draft was discarded", next_step="Create the dataset again.")
    if dataset.state == DatasetState.RETIRED:
        raise Retired(f"{dataset.name} is retired; its rows are deleted for good")


def require_sealed(dataset: Dataset) -> None:
    """Raise NotSealed or Retired unless jobs may run on the dataset."""
    require_not_retired(dataset)
    if dataset.state != DatasetState.SEALED:
        raise NotSealed(f"{dataset.name} is still a draft")


def lock_sealed(session: Session, dataset: Dataset) -> None:
    """Lock a dataset and read it again; NotSealed or Retired unless jobs may run on it."""
    ledger.lock(session, dataset.id)
    session.refresh(dataset)
    require_sealed(dataset)


def supersede(
    session: Session,
    dataset: Dataset,
    current: WorkingBounds | PublicRowSet | None,
    following: WorkingBounds | PublicRowSet | None,
    action: str,
    *,
    actor: str,
    at: datetime,
    **details: Any,
) -> None:
    """End what new jobs were planned with so far, put what follows in its place, and record the action."""
    if current is not None:
        current.ended_at = at
        session.flush()
    if following is not None:
        session.add(following)
    audit.record(session, action, actor=actor, at=at, dataset_id=dataset.id, **details)
    session.flush()
    session.refresh(dataset)


def require_own_total(dataset: Dataset, period: Period | None) -> None:
    """Raise InvalidRequest unless the dataset, or this period of it, has a total of its own."""
    if period is None and dataset.has_accounts_of_periods:
        raise InvalidRequest(
            f"each period of {dataset.name} has a budget of its own", next_step="Raise that of a period."
        )
    if period is not None and not dataset.has_accounts_of_periods:
        raise InvalidRequest(
            f"{dataset.name} has one budget for all its periods", next_step="Raise that of the dataset."
        )


def raise_budget(
    session: Session,
    dataset: Dataset,
    budget: Budget,
    *,
    period: Period | None = None,
    by: Decision,
) -> None:
    """Raise the total of a dataset, or of a period that has one; InvalidRequest when it would be smaller.

    SecondNeeded for a total above what the curator may allow alone.
    """
    require_own_total(dataset, period)
    declared = dataset if period is None else period
    label = WHOLE if period is None else period.label
    total = accountants.get(dataset.accountant, budget).total
    accounts = ledger.lock(session, dataset.id, periods=(label,))
    session.refresh(dataset)
    session.refresh(declared)
    if dataset.state == DatasetState.RETIRED:
        raise Retired(f"{dataset.name} is retired; its budget cannot change any more")
    smaller = budget.epsilon_units < declared.epsilon_units or budget.delta_units < declared.delta_units
    try:
        if smaller:
            key = AccountKey(label)
            raise ledger.Overdrawn(key, total, ledger.balance(accounts.found[key]))
        ledger.raise_total(session, accounts, total, actor=by.actor, at=by.at)
    except ledger.Overdrawn as error:
        raise InvalidRequest(
            "a total can only be raised; give an epsilon and a delta of at least the current ones",
            errors=[{"where": "budget", "problem": "below the current total"}],
        ) from error
    if budget != Budget(declared.epsilon_units, declared.delta_units):
        by.require(budget, "a total")
    declared.epsilon_units, declared.delta_units = budget.epsilon_units, budget.delta_units
    amounts: dict[str, Any] = (
        accountants.declared(budget) | by.details | ({} if period is None else {"period": period.label})
    )
    audit.record(session, "raise-budget", actor=by.actor, at=by.at, dataset_id=dataset.id, **amounts)


def retire(session: Session, dataset: Dataset, *, actor: str, at: datetime) -> int:
    """Delete a dataset's rows for good and withdraw its queued jobs; the ledger stays."""
    store.wait_for_other_uploads(session, dataset.id)  # before the account: as whatever deletes rows does
    ledger.lock(session, dataset.id)
    session.refresh(dataset)
    if dataset.state == DatasetState.RETIRED:
        return 0
    dataset.state, dataset.retired_at = DatasetState.RETIRED, at
    withdrawn = withdraw(session, dataset.id, actor=actor, at=at)
    decline_requests(session, dataset.id, owner_id=dataset.owner_id, at=at)
    session.execute(delete(DatasetChunk).where(DatasetChunk.dataset_id == dataset.id))
    dataset.rows_digest = None
    drafts = (Period.dataset_id == dataset.id, Period.state == DatasetState.DRAFT)
    session.execute(delete(Period).where(*drafts))
    of_dataset = update(Period).where(Period.dataset_id == dataset.id)
    session.execute(of_dataset.values(state=DatasetState.RETIRED, rows_digest=None))
    audit.record(session, "retire", actor=actor, at=at, dataset_id=dataset.id, withdrawn_jobs=withdrawn)
    return withdrawn
