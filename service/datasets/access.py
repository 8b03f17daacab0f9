"""Access to datasets: who may use one, and what they may know about it."""

from typing import Any

from sqlalchemy import Select, bindparam, false, select
from sqlalchemy.orm import Session

from core.data import Domain, Ids, Sparse, domain_from_json
from service import ledger
from service.errors import NotFound
from service.ledger import accountants
from service.operations.states import DatasetState
from service.operations.tables import Dataset, Grant, Principal
from service.people.authentication import Caller

# Built once: every submission and every claim needs it.
_STATE = (
    select(Dataset.state, Grant.revoked_at, Principal.disabled_at)
    .join(Grant, Grant.dataset_id == Dataset.id)
    .join(Principal, Principal.id == Grant.principal_id)
    .where(Grant.id == bindparam("grant"))
)


def find(session: Session, name: str, caller: Caller) -> tuple[Dataset, Grant | None]:
    """Return a dataset that the caller may use, with an analyst's grant, or raise NotFound."""
    query = _visible(caller).where(Dataset.name == name).execution_options(populate_existing=True)
    found = session.execute(query).one_or_none()
    if found is None:
        raise NotFound(f"there is no dataset named {name}, or you have no grant for it")
    dataset, grant = found
    return dataset, grant


def find_granted(session: Session, name: str, analyst: Caller) -> tuple[Dataset, Grant]:
    """Return a dataset granted to an analyst, with the grant, or raise NotFound."""
    dataset, grant = find(session, name, analyst)
    assert grant is not None, "only analysts have grants"
    return dataset, grant


def is_open(session: Session, grant_id: int) -> bool:
    """Return True when the dataset is sealed and neither the grant nor its analyst was withdrawn.

    The caller holds the account's lock.
    """
    state, revoked_at, disabled_at = session.connection().execute(_STATE, {"grant": grant_id}).one()
    return state == DatasetState.SEALED and revoked_at is None and disabled_at is None


def page(session: Session, caller: Caller, *, after: str, limit: int) -> list[tuple[Dataset, Grant | None]]:
    """Return datasets that the caller may use, by name."""
    query = _visible(caller).where(Dataset.name > after).order_by(Dataset.name).limit(limit)
    return [(dataset, grant) for dataset, grant in session.execute(query)]


def _visible(caller: Caller) -> Select[Dataset, Grant]:
    """Select what a caller may use: a curator their own datasets, an analyst the datasets granted to them."""
    if caller.is_curator:
        return select(Dataset, Grant).outerjoin(Grant, false()).where(Dataset.owner_id == caller.id)
    standing = (Grant.principal_id == caller.id) & Grant.revoked_at.is_(None)
    return select(Dataset, Grant).join(Grant, Grant.dataset_id == Dataset.id).where(standing)


def domain_of(dataset: Dataset) -> Domain:
    """Return the public domain of a dataset."""
    return domain_from_json(dataset.domain)


def facts(session: Session, dataset: Dataset, grant: Grant | None) -> dict[str, Any]:
    """Describe a dataset: public facts and budgets, and the upload's report for the owner alone."""
    domain = domain_of(dataset)
    described = domain.to_json()
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
        "owner": session.get_one(Principal, dataset.owner_id).name,
        "created_at": dataset.created_at,
        "warnings": warnings(dataset, domain),
        "budget": balance_view(session, dataset),
        "cap": balance_view(session, dataset, grant) if grant else None,
        "upload": dataset.upload if grant is None else None,
    }


def balance_view(session: Session, dataset: Dataset, grant: Grant | None = None) -> dict[str, dict[str, str]]:
    """Describe the balance of a dataset or, with a grant, of its cap."""
    account = ledger.find(session, dataset.id, grant.id if grant else None)
    declared = grant or dataset
    return accountants.balance_view(
        dataset.accountant, ledger.balance(account), declared.epsilon_units, declared.delta_units
    )


def privacy_unit(dataset: Dataset) -> str:
    """Return the unit of privacy: a person where an id column limits their rows, else a single row."""
    return "person" if dataset.id_column else "row"


def warnings(dataset: Dataset, domain: Domain) -> list[str]:
    """Return warnings that follow from the public facts alone."""
    found = list(domain.warnings)
    if dataset.id_column is None:
        found.append(
            "the guarantee is for each row: a person with several rows is protected less, unless the dataset "
            "is made with an id column"
        )
    return found


def _other_bounds(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, Sparse):
        return {"sparse": {"radius": domain.radius}}
    assert isinstance(domain, Ids)
    return {"ids": {"count": domain.count}}
