"""Views of a dataset: its public facts, budgets and warnings, as its owner and analysts see them."""

from dataclasses import asdict
from typing import Any

from sqlalchemy.orm import Session

from core.data import Domain, Ids, Sparse, Stored, Table
from core.privacy.budget import EPSILON_UNIT, units_text
from service import ledger
from service.datasets import reading
from service.datasets.access import Right, domain_of
from service.datasets.doubts import doubts
from service.datasets.periods import accounts, stored
from service.ledger import accountants
from service.operations import metrics
from service.operations.states import DatasetState
from service.operations.tables import Dataset, Grant, Period, Principal

#: More rows than the declared size times this make jobs overrun their planned times.
_ROOM = 1.25


def facts(session: Session, right: Right) -> dict[str, Any]:
    """Describe a dataset: public facts and budgets, and the upload's report for the owner alone."""
    dataset, grant = right.dataset, right.grant
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
        "unit": dataset.unit,
        **_versions(session, right),
        "lost_in_all": accounts.lost_in_all(session, dataset),
        "population": _population(session, dataset),
        "accountant": dataset.accountant,
        "planned_release": dataset.planned_release,
        "release_ticks": dataset.planned_release,
        "least_epsilon": units_text(dataset.least_epsilon_units, EPSILON_UNIT),
        "jobs_per_hour": dataset.jobs_per_hour,
        "overruns": metrics.overruns(session, dataset.id) if right.is_owner else None,
        "size_warning": _size_warning(dataset, domain) if right.is_owner else None,
        "owner": session.get_one(Principal, dataset.owner_id).name,
        "created_at": dataset.created_at,
        "revised": revised(dataset),
        "warnings": warnings(dataset, domain),
        "budget": balance_view(session, dataset),
        "cap": balance_view(session, dataset, grant) if grant else None,
        "kinds": grant.allowed_kinds if grant else None,
        "grant": terms(grant) if grant else None,
        "upload": report_on(dataset) if right.is_owner else None,
    }


def _versions(session: Session, right: Right) -> dict[str, Any]:
    """Return which version the rows are of, since when, and to the owner the draft of the next one."""
    if right.dataset.unit is not None:
        return {"version": None, "corrected_at": None, "correction": None}
    present, draft = stored.of_whole(session, right.dataset)
    return {
        "version": present.version if present else 1,
        "corrected_at": present and present.sealed_at,
        "correction": correction(right, draft),
    }


def correction(right: Right, draft: Period | None) -> dict[str, Any] | None:
    """Describe the draft of a correction, to the owner alone."""
    if draft is None or not right.is_owner:
        return None
    return {"version": draft.version, "upload": report_on(right.dataset, draft)}


def _population(session: Session, dataset: Dataset) -> dict[str, Any] | None:
    """Describe the population by what is left: when jobs on its other datasets are claimed does not show."""
    found = dataset.population
    if found is None:
        return None
    accountant, balance = accountants.of(found), ledger.of_population(session, found.id)
    return {
        "name": found.name,
        "accountant": found.accountant,
        "declared": accountants.declared(accountant.declared),
        "total": accountant.amount(balance.total),
        "remaining": accountant.amount(balance.remaining),
        "one_row_per_person": dataset.one_row_per_person,
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


def report_on(dataset: Dataset, period: Period | None = None) -> dict[str, Any] | None:
    """Return the report on rows of a dataset or a period, and what sealing a draft would have to confirm."""
    rows = dataset if period is None else period
    if rows.upload is None or rows.state != DatasetState.DRAFT:
        return rows.upload
    found = doubts(rows.upload, domain_of(dataset).size if period is None else period.size)
    return {**rows.upload, "doubts": [asdict(doubt) for doubt in found]}


def terms(grant: Grant) -> dict[str, Any]:
    """Describe what a grant is for, by which permit, and until when."""
    return {
        "purpose": grant.purpose,
        "permit": grant.permit,
        "ends_at": grant.ends_at,
        "keeps_results": grant.keeps_results,
    }


def balance_view(session: Session, dataset: Dataset, grant: Grant | None = None) -> dict[str, dict[str, str]]:
    """Describe the balance of a dataset or, with a grant, of its cap; of periods, the one with least left."""
    accountant = accountants.of(dataset, grant)
    balance = accounts.tightest(session, dataset, grant)
    return {"declared": accountants.declared(accountant.declared), **accountant.amounts(balance)}


def revised(dataset: Dataset) -> list[str]:
    """Return the public facts that were changed after their owner had looked at rows."""
    return dataset.revised or []


def privacy_unit(dataset: Dataset) -> str:
    """Return the unit of privacy: a person where an id column limits their rows, else a single row."""
    if dataset.unit is not None:
        return dataset.unit.in_words
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
    """Return a warning about a declared size that is too small, for the owner alone: it reveals rows."""
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
