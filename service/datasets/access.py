"""Access to datasets: who may use one, and what they may know about it."""

from dataclasses import asdict
from typing import Any

from sqlalchemy import bindparam, false, select
from sqlalchemy.orm import Session

from core.data import Domain, Ids, Sparse, Stored, Table, domain_from_json
from core.privacy.budget import EPSILON_UNIT, units_text
from service import ledger
from service.datasets import reading
from service.datasets.doubts import doubts
from service.errors import NotFound
from service.ledger import accountants
from service.operations import metrics
from service.operations.states import DatasetState
from service.operations.tables import Dataset, Grant, Principal, allowed_kinds
from service.people.authentication import Caller

#: First character of what stands in place of the name that a discarded draft gave up; no name begins with it.
NAMELESS = "~"

#: More rows than the declared size times this make jobs overrun their planned times.
_ROOM = 1.25
# Built once: every submission, and the last every claim, needs them.
_GRANTED = (
    select(Dataset, Grant)
    .join(Grant, Grant.dataset_id == Dataset.id)
    .where(Grant.principal_id == bindparam("caller"), Grant.revoked_at.is_(None))
)
_OWNED = select(Dataset, Grant).outerjoin(Grant, false()).where(Dataset.owner_id == bindparam("caller"))
_GRANTED_BY_NAME, _OWNED_BY_NAME = (
    query.where(Dataset.name == bindparam("name")).execution_options(populate_existing=True)
    for query in (_GRANTED, _OWNED)
)
_STATE = (
    select(Dataset.state, Grant.revoked_at, Principal.disabled_at, Grant.kinds)
    .join(Grant, Grant.dataset_id == Dataset.id)
    .join(Principal, Principal.id == Grant.principal_id)
    .where(Grant.id == bindparam("grant"))
)
_OWNERS_STATE = (
    select(Dataset.state, Principal.disabled_at)
    .join(Principal, Principal.id == Dataset.owner_id)
    .where(Dataset.id == bindparam("dataset"))
)


def find(session: Session, name: str, caller: Caller) -> tuple[Dataset, Grant | None]:
    """Return a dataset that the caller may use, with an analyst's grant, or raise NotFound."""
    query = _OWNED_BY_NAME if caller.is_curator else _GRANTED_BY_NAME
    found = session.execute(query, {"caller": caller.id, "name": name}).one_or_none()
    if found is None:
        raise NotFound(f"there is no dataset named {name}, or you have no grant for it")
    dataset, grant = found
    return dataset, grant


def is_open(session: Session, dataset_id: int, grant_id: int | None, kind: str) -> bool:
    """Return True when the dataset is sealed, and neither the right to such a job nor its holder withdrawn.

    Without a grant, the right is that of the dataset's owner. The caller holds the account's lock.
    """
    if grant_id is None:
        state, disabled_at = session.connection().execute(_OWNERS_STATE, {"dataset": dataset_id}).one()
        return state == DatasetState.SEALED and disabled_at is None
    state, revoked_at, disabled_at, kinds = session.connection().execute(_STATE, {"grant": grant_id}).one()
    allowed = kind in allowed_kinds(kinds)
    return state == DatasetState.SEALED and revoked_at is None and disabled_at is None and allowed


def page(session: Session, caller: Caller, *, after: str, limit: int) -> list[tuple[Dataset, Grant | None]]:
    """Return datasets that the caller may use, by name."""
    visible = _OWNED if caller.is_curator else _GRANTED
    named = ~Dataset.name.startswith(NAMELESS)
    query = visible.where(Dataset.name > after, named).order_by(Dataset.name).limit(limit)
    return [(dataset, grant) for dataset, grant in session.execute(query, {"caller": caller.id})]


def domain_of(dataset: Dataset) -> Stored:
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
        "columns": list(domain.columns) if domain.kind in ("dense", "table") else None,
        "dimension": domain.dimension,
        "bounds": described.get("bounds") or other_bounds(domain),
        "table": _declared(dataset, described["columns"]) if isinstance(domain, Table) else None,
        "table_in_words": [each.words for each in domain.declared] if isinstance(domain, Table) else None,
        "reading": dataset.reading or reading.INFERRED,
        "working_bounds": _working(dataset),
        "public_rows": _public_rows(dataset),
        "scaling": described.get("scaling"),
        "size": domain.size,
        "rows_per_person": domain.rows_per_person,
        "id_column": dataset.id_column,
        "privacy_unit": privacy_unit(dataset),
        "accountant": dataset.accountant,
        "release_ticks": dataset.release_ticks,
        "least_epsilon": units_text(dataset.least_epsilon_units, EPSILON_UNIT),
        "jobs_per_hour": dataset.jobs_per_hour,
        "overruns": metrics.overruns(session, dataset.id) if grant is None else None,
        "size_warning": _size_warning(dataset, domain) if grant is None else None,
        "owner": session.get_one(Principal, dataset.owner_id).name,
        "created_at": dataset.created_at,
        "revised": revised(dataset),
        "warnings": warnings(dataset, domain),
        "budget": balance_view(session, dataset),
        "cap": balance_view(session, dataset, grant) if grant else None,
        "kinds": grant.allowed_kinds if grant else None,
        "upload": report_on(dataset) if grant is None else None,
    }


def _working(dataset: Dataset) -> dict[str, Any] | None:
    """Return the bounds in which new jobs are planned, if they are narrower than the declared ones."""
    found = dataset.working
    if found is None:
        return None
    return {"columns": found.columns, "digest": found.digest, "set_at": found.set_at}


def _public_rows(dataset: Dataset) -> dict[str, Any] | None:
    """Return the public rows that new jobs may learn from."""
    found = dataset.public_rows
    return None if found is None else {"rows": found.count, "digest": found.digest, "set_at": found.set_at}


def _declared(dataset: Dataset, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the columns of a table as declared, with what of them came from rows."""
    confirmed = dataset.from_rows or {}
    return [{**column, "confirmed_from_rows": confirmed.get(column["name"])} for column in columns]


def report_on(dataset: Dataset) -> dict[str, Any] | None:
    """Return the report on a dataset's rows, and what sealing a draft's would have to confirm."""
    if dataset.upload is None or dataset.state != DatasetState.DRAFT:
        return dataset.upload
    found = doubts(dataset.upload, domain_of(dataset).size)
    return {**dataset.upload, "doubts": [asdict(doubt) for doubt in found]}


def balance_view(session: Session, dataset: Dataset, grant: Grant | None = None) -> dict[str, dict[str, str]]:
    """Describe the balance of a dataset or, with a grant, of its cap."""
    account = ledger.find(session, dataset.id, grant.id if grant else None)
    declared = grant or dataset
    return accountants.balance_view(
        dataset.accountant, ledger.balance(account), declared.epsilon_units, declared.delta_units
    )


def revised(dataset: Dataset) -> list[str]:
    """Return the public facts that were changed after their owner had looked at rows."""
    return dataset.revised or []


def privacy_unit(dataset: Dataset) -> str:
    """Return the unit of privacy: a person where an id column limits their rows, else a single row."""
    return "person" if dataset.id_column else "row"


def warnings(dataset: Dataset, domain: Domain | Stored) -> list[str]:
    """Return warnings that follow from the public facts alone."""
    found = list(domain.warnings)
    if dataset.id_column is None:
        found.append(
            "the guarantee is for each row: a person with several rows is protected less, unless the dataset "
            "is made with an id column"
        )
    if dataset.working is not None and domain.fingerprint == dataset.working.digest:
        narrower = (f"{each['column']} ({each['origin']})" for each in dataset.working.columns)
        found.append(f"rows are clipped to working bounds of {', '.join(narrower)}")
    if dataset.from_rows:
        named = "; ".join(f"{name} ({', '.join(facts)})" for name, facts in dataset.from_rows.items())
        found.append(f"taken from the rows, and confirmed by the curator to be public: {named}")
    if dataset.state != DatasetState.DRAFT or dataset.reading is not None:
        found += reading.warnings(dataset.reading)
    if changed := revised(dataset):
        found.append(
            f"changed after a look at the rows: {', '.join(changed)}; these facts may reveal something "
            "about the rows that is not charged to any budget"
        )
    return found


def _size_warning(dataset: Dataset, domain: Stored) -> str | None:
    """Return a warning about a declared size that is too small, for the owner alone: it tells of the rows."""
    if dataset.upload is None or dataset.upload["rows"] <= _ROOM * domain.size:
        return None
    return (
        f"there are {dataset.upload['rows']:,} rows, but jobs are planned for the declared size of "
        f"{domain.size:,}: they take longer than planned, and analysts can see how long"
    )


def other_bounds(domain: Stored) -> dict[str, Any]:
    """Describe the bounds of a domain that has no box and no ball."""
    if isinstance(domain, Table):
        return {}
    if isinstance(domain, Sparse):
        return {"sparse": {"radius": domain.radius}}
    assert isinstance(domain, Ids)
    return {"ids": {"count": domain.count}}
