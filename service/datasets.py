"""What a dataset is to the service: create, find, seal, raise the budget, retire, and what may be said
about them to whom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.data import Dense, Domain, Ids, Sparse, domain_from_json
from core.errors import InvalidDomain
from core.privacy import Budget
from service import accounting, audit, faults, ledger, queue
from service.auth import Caller
from service.clock import rfc3339
from service.errors import AlreadySealed, InvalidRequest, NotFound, NotSealed, Retired
from service.schemas.data import Bounds, DatasetBody
from service.tables import Dataset, DatasetChunk, Grant, Principal
from service.uploads import storing
from service.uploads.chunks import StoredChunk

__all__ = [
    "create",
    "domain_of",
    "facts",
    "find",
    "page",
    "raise_budget",
    "require_draft",
    "require_sealed",
    "retire",
    "seal",
]

_PRIVATE_CAP = "the cap of this grant"


def create(session: Session, body: DatasetBody, *, owner: Caller, at: datetime) -> Dataset:
    """A new dataset without data; core's InvalidRequest tells what is wrong with the public facts."""
    domain = _domain(body)
    budget = Budget.of(body.budget.epsilon, body.budget.delta)
    total = accounting.total_of(body.accountant, budget.epsilon_units, budget.delta_units)
    if body.rows_per_person > 1 and body.id_column is None:
        raise InvalidDomain(
            "rows_per_person above 1 needs an id_column that tells people apart", parameter="id_column"
        )
    if body.id_column is not None and body.id_column in domain.columns:
        raise InvalidDomain(
            "the id_column must not be one of the columns: it is dropped", parameter="id_column"
        )
    dataset = Dataset(
        name=body.name,
        owner_id=owner.id,
        description=body.description,
        state="draft",
        domain=domain.to_json(),
        id_column=body.id_column,
        accountant=body.accountant,
        epsilon_units=budget.epsilon_units,
        delta_units=budget.delta_units,
        release_ticks=body.release_ticks,
        created_at=at,
        upload=None,
    )
    try:
        with session.begin_nested():
            session.add(dataset)
    except IntegrityError as error:
        raise InvalidRequest(f"the name {body.name} is taken; choose another", status=409) from error
    ledger.open_account(session, dataset.id, total, actor=owner.name, at=at)
    audit.record(
        session,
        "create-dataset",
        actor=owner.name,
        at=at,
        dataset_id=dataset.id,
        domain=domain.fingerprint,
        epsilon=budget.epsilon_text,
        delta=budget.delta_text,
        accountant=body.accountant,
    )
    return dataset


def _domain(body: DatasetBody) -> Domain:
    bounds: Bounds = body.bounds
    given = [name for name in Bounds.model_fields if getattr(bounds, name) is not None]
    if len(given) != 1:
        raise InvalidDomain("give exactly one of box, ball, sparse and ids", parameter="bounds")
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


def find(session: Session, name: str, caller: Caller) -> tuple[Dataset, Grant | None]:
    """A dataset the caller may see, with their grant if they are an analyst; else NotFound."""
    dataset = session.scalars(select(Dataset).where(Dataset.name == name)).one_or_none()
    if dataset is not None and caller.is_curator and dataset.owner_id == caller.id:
        return dataset, None
    if dataset is not None and not caller.is_curator:
        grant = session.scalars(
            select(Grant).where(
                Grant.dataset_id == dataset.id, Grant.principal_id == caller.id, Grant.revoked_at.is_(None)
            )
        ).one_or_none()
        if grant is not None:
            return dataset, grant
    raise NotFound(f"there is no dataset named {name}, or you have no grant for it")


def page(session: Session, caller: Caller, *, after: str, limit: int) -> list[tuple[Dataset, Grant | None]]:
    """Datasets the caller may see, by name."""
    query = select(Dataset, Grant).where(Dataset.name > after).order_by(Dataset.name).limit(limit)
    if caller.is_curator:
        query = query.outerjoin(Grant, Grant.id.is_(None)).where(Dataset.owner_id == caller.id)
    else:
        query = query.join(Grant, Grant.dataset_id == Dataset.id).where(
            Grant.principal_id == caller.id, Grant.revoked_at.is_(None)
        )
    return [(dataset, grant) for dataset, grant in session.execute(query)]


def domain_of(dataset: Dataset) -> Domain:
    """The public domain of a dataset."""
    return domain_from_json(dataset.domain)


def require_draft(dataset: Dataset) -> None:
    """Raise unless the dataset still waits for its data."""
    if dataset.state == "retired":
        raise Retired(f"{dataset.name} is retired; its rows are deleted for good")
    if dataset.state != "draft":
        raise AlreadySealed(f"{dataset.name} has its data and never changes again; create another dataset")


def require_sealed(dataset: Dataset) -> None:
    """Raise unless jobs may run on the dataset."""
    if dataset.state == "retired":
        raise Retired(f"{dataset.name} is retired; its rows are deleted for good")
    if dataset.state != "sealed":
        raise NotSealed(f"{dataset.name} has no data yet; its curator must upload them first")


def seal(
    session: Session,
    dataset_id: int,
    chunks: Iterable[StoredChunk],
    report: Callable[[], dict[str, Any]],
    *,
    actor: str,
    at: datetime,
) -> dict[str, Any]:
    """Store an upload's chunks and close the dataset to change, in the caller's one transaction.

    Chunks may still be in the making; `report` is asked for after the last one. Uploads to one dataset
    wait for each other; everybody else waits for the moment of sealing alone. Returns the report.
    """
    storing.wait_for_other_uploads(session, dataset_id)
    require_draft(session.get_one(Dataset, dataset_id, populate_existing=True))
    storing.store(session, dataset_id, chunks)
    said = report()
    ledger.lock(session, dataset_id)
    dataset = session.get_one(Dataset, dataset_id, populate_existing=True)
    require_draft(dataset)
    dataset.state, dataset.sealed_at, dataset.upload = "sealed", at, said
    audit.record(session, "upload", actor=actor, at=at, dataset_id=dataset_id, format=said["format"])
    session.flush()
    faults.reach("upload.sealed")
    return said


def raise_budget(session: Session, dataset: Dataset, budget: Budget, *, actor: str, at: datetime) -> None:
    """Raise a dataset's total; InvalidRequest when it would become smaller."""
    total = accounting.total_of(dataset.accountant, budget.epsilon_units, budget.delta_units)
    accounts = ledger.lock(session, dataset.id)
    session.refresh(dataset)
    if dataset.state == "retired":
        raise Retired(f"{dataset.name} is retired; its budget cannot change any more")
    smaller = budget.epsilon_units < dataset.epsilon_units or budget.delta_units < dataset.delta_units
    try:
        if smaller:
            raise ledger.Overdrawn("dataset", total, ledger.balance(accounts.dataset))
        ledger.raise_total(session, accounts, total, actor=actor, at=at)
    except ledger.Overdrawn as error:
        raise InvalidRequest(
            "a total can only be raised; give an epsilon and a delta of at least the present ones",
            errors=[{"where": "budget", "problem": "below the present total"}],
        ) from error
    dataset.epsilon_units, dataset.delta_units = budget.epsilon_units, budget.delta_units
    audit.record(
        session,
        "raise-budget",
        actor=actor,
        at=at,
        dataset_id=dataset.id,
        epsilon=budget.epsilon_text,
        delta=budget.delta_text,
    )


def retire(session: Session, dataset: Dataset, *, actor: str, at: datetime) -> int:
    """Delete a dataset's rows for good and withdraw its queued jobs; the ledger stays."""
    ledger.lock(session, dataset.id)
    session.refresh(dataset)
    if dataset.state == "retired":
        return 0
    dataset.state, dataset.retired_at = "retired", at
    withdrawn = queue.withdraw(session, dataset.id, actor=actor, now=at)
    session.execute(delete(DatasetChunk).where(DatasetChunk.dataset_id == dataset.id))
    audit.record(session, "retire", actor=actor, at=at, dataset_id=dataset.id, withdrawn_jobs=withdrawn)
    return withdrawn


def facts(session: Session, dataset: Dataset, grant: Grant | None) -> dict[str, Any]:
    """What the caller may know: public facts and budgets; the upload's report for the owner alone."""
    domain = domain_of(dataset)
    described = domain.to_json()
    owner = session.get_one(Principal, dataset.owner_id)
    total = ledger.balance(ledger.find(session, dataset.id))
    cap = None
    if grant is not None:
        held = ledger.balance(ledger.find(session, dataset.id, grant.id))
        cap = accounting.balance_view(dataset.accountant, held, grant.epsilon_units, grant.delta_units)
    return {
        "name": dataset.name,
        "description": dataset.description,
        "state": dataset.state,
        "kind": domain.kind,
        "columns": described.get("columns"),
        "dimension": domain.dimension,
        "bounds": described.get("bounds") or _other_bounds(domain),
        "scaling": described.get("scaling"),
        "size": domain.size,
        "rows_per_person": domain.rows_per_person,
        "id_column": dataset.id_column,
        "privacy_unit": privacy_unit(dataset),
        "accountant": dataset.accountant,
        "release_ticks": dataset.release_ticks,
        "owner": owner.name,
        "created_at": rfc3339(dataset.created_at),
        "warnings": warnings(dataset, domain),
        "budget": accounting.balance_view(
            dataset.accountant, total, dataset.epsilon_units, dataset.delta_units
        ),
        "cap": cap,
        "upload": dataset.upload if grant is None else None,
    }


def privacy_unit(dataset: Dataset) -> str:
    """Whom the guarantee protects: a person where an id column limited their rows, else a single row."""
    return "person" if dataset.id_column else "row"


def warnings(dataset: Dataset, domain: Domain) -> list[str]:
    """What the public facts alone give reason to say."""
    said = list(domain.warnings)
    if dataset.id_column is None:
        said.append(
            "the guarantee is for each row: a person with several rows is protected less, unless the dataset "
            "is made with an id column"
        )
    return said


def _other_bounds(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, Sparse):
        return {"sparse": {"radius": domain.radius}}
    assert isinstance(domain, Ids)
    return {"ids": {"count": domain.count}}
