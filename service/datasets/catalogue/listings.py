"""Listings: the public facts of a sealed dataset that its owner shows to people without a grant.

A group of facts can be chosen if it follows from what the owner declared: none says how many rows there are,
what was spent, or what is left.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.data import Dense, Table
from service.datasets import lifecycle, view
from service.datasets.access import domain_of
from service.errors import NotFound
from service.operations import audit
from service.operations.clock import rfc3339
from service.operations.states import DatasetState
from service.operations.tables import Dataset, Period, Principal
from service.people.authentication import Caller

#: Most columns that are shown one by one.
_MOST_COLUMNS = 200
#: Facts that may have been changed after a look at rows, and the group that they belong to; all others
#: belong to the columns, and how a file is read is in no group.
_GROUPS_OF_FACTS = {"size": "size", "rows_per_person": "privacy", "id_column": "privacy", "reading": ""}
_COLUMNS = "columns"


@dataclass(frozen=True)
class Group:
    """Facts that are shown together, or not at all: their title, and the lines that state them."""

    title: str
    lines: Callable[[Session, Dataset], list[str]]


@dataclass(frozen=True)
class ShownGroup:
    """A group of facts of one dataset, in words."""

    group: str
    title: str
    lines: list[str]


def _description(_session: Session, dataset: Dataset) -> list[str]:
    return [dataset.description] if dataset.description else []


def _owner(session: Session, dataset: Dataset) -> list[str]:
    return [session.get_one(Principal, dataset.owner_id).name]


def _columns(_session: Session, dataset: Dataset) -> list[str]:
    domain = domain_of(dataset)
    if isinstance(domain, Table):
        lines = [f"{each.name}: {each.words}" for each in domain.declared]
    elif isinstance(domain, Dense) and domain.low is not None and domain.high is not None:
        bounds = zip(domain.columns, domain.low, domain.high, strict=True)
        lines = [f"{name}: number from {low:.7g} to {high:.7g}" for name, low, high in bounds]
    elif isinstance(domain, Dense):
        lines = [*domain.columns, f"each row within {domain.radius:.7g} of a public centre"]
    elif "ids" in (bounds_of := view.other_bounds(domain)):
        lines = [f"one of {bounds_of['ids']['count']:,} public sites"]
    else:
        radius = bounds_of["sparse"]["radius"]
        lines = [f"{domain.dimension:,} columns, few of them filled; each row within {radius:.7g} of 0"]
    more = [f"and {len(lines) - _MOST_COLUMNS:,} more"] if len(lines) > _MOST_COLUMNS else []
    named = "; ".join(f"{name} ({', '.join(facts)})" for name, facts in (dataset.from_rows or {}).items())
    marked = [f"taken from the rows, and confirmed to be public: {named}"] if named else []
    return [*lines[:_MOST_COLUMNS], *more, *marked]


def _size(_session: Session, dataset: Dataset) -> list[str]:
    return [f"about {domain_of(dataset).size:,}, as declared without counting them"]


def _privacy(_session: Session, dataset: Dataset) -> list[str]:
    unit, most = view.privacy_unit(dataset), domain_of(dataset).rows_per_person
    of_several = f", with at most {most} rows" if most > 1 else ""
    return [f"a {unit}{of_several}"]


def _periods(session: Session, dataset: Dataset) -> list[str]:
    sealed = (Period.dataset_id == dataset.id, Period.state == DatasetState.SEALED)
    return sorted(set(session.scalars(select(Period.label).where(*sealed))))


#: The groups that an owner can choose from, by name, in the order in which they are shown.
GROUPS = {
    "description": Group("Description", _description),
    "owner": Group("Curator", _owner),
    _COLUMNS: Group("Columns and their bounds", _columns),
    "size": Group("Number of records", _size),
    "privacy": Group("What the guarantee protects", _privacy),
    "periods": Group("Periods", _periods),
}


def groups(session: Session, dataset: Dataset, chosen: Sequence[str]) -> list[ShownGroup]:
    """Return the chosen groups of a dataset that state something, in words."""
    found = [
        ShownGroup(name, group.title, group.lines(session, dataset))
        for name, group in GROUPS.items()
        if name in chosen
    ]
    for shown in found:
        revised = [
            fact for fact in view.revised(dataset) if _GROUPS_OF_FACTS.get(fact, _COLUMNS) == shown.group
        ]
        if revised:
            shown.lines.append(f"changed after a look at the rows: {', '.join(revised)}")
    return [shown for shown in found if shown.lines]


def listed(session: Session, name: str, caller: Caller) -> Dataset | None:
    """Return a dataset if it is listed for the caller, whether or not they have a grant."""
    query = select(Dataset).where(Dataset.name == name, *_LISTED)
    return session.scalars(query).one_or_none() if caller.reaches(name) else None


def find(session: Session, name: str, caller: Caller) -> Dataset:
    """Return a dataset that is listed for the caller; NotFound if it is not."""
    dataset = listed(session, name, caller)
    if dataset is None:
        raise NotFound(f"the catalogue has no dataset named {name}")
    return dataset


def page(session: Session, caller: Caller, *, after: str, limit: int) -> list[Dataset]:
    """Return the datasets that are listed for the caller, by name."""
    query = select(Dataset).where(Dataset.name > after, *_LISTED)
    if caller.datasets is not None:
        query = query.where(Dataset.name.in_(caller.datasets))
    return list(session.scalars(query.order_by(Dataset.name).limit(limit)))


_LISTED = (Dataset.listing.is_not(None), Dataset.state == DatasetState.SEALED)


def put(
    session: Session, dataset: Dataset, title: str, chosen: Sequence[str], *, actor: str, at: datetime
) -> None:
    """List a sealed dataset with these groups of facts, or change what is shown of it."""
    lifecycle.lock_sealed(session, dataset)
    shows = [name for name in GROUPS if name in chosen]
    since = dataset.listing["since"] if dataset.listing else rfc3339(at)
    dataset.listing = {"title": title, "shows": shows, "since": since}
    audit.record(session, "list-dataset", actor=actor, at=at, dataset_id=dataset.id, title=title, shows=shows)


def remove(session: Session, dataset: Dataset, *, actor: str, at: datetime) -> None:
    """Take a dataset out of the catalogue; grants and requests stay."""
    lifecycle.lock_sealed(session, dataset)
    if dataset.listing is not None:
        dataset.listing = None
        audit.record(session, "unlist-dataset", actor=actor, at=at, dataset_id=dataset.id)
