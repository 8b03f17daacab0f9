"""Sets of public sites, which facility-location jobs choose among.

Three kinds are stored: `coordinates` in the dataset's columns, `great-circle` for latitudes and longitudes,
and `distances`, a matrix for datasets whose rows name sites. Plans need only the facts of a set;
workers load it.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic_core import to_json
from sqlalchemy import select
from sqlalchemy.orm import Session

from core.data import SiteFacts, Sites, read_sites
from core.errors import InvalidRequest as InvalidSites
from service.datasets.access import domain_of
from service.errors import BadFormat, InvalidRequest, NotFound, Retired
from service.operations import audit
from service.operations.states import DatasetState
from service.operations.tables import Dataset, SiteSet

#: Largest text of sites that are sent with a request; larger sets are stored by the curator.
MOST_INLINE_BYTES = 256 << 10
_METRICS = {"coordinates": "euclidean", "great-circle": "great-circle", "distances": "matrix"}
_KINDS = {metric: kind for kind, metric in _METRICS.items()}


def put(
    session: Session,
    dataset: Dataset,
    name: str,
    kind: str,
    values: npt.NDArray[np.float64],
    *,
    actor: str,
    at: datetime,
) -> SiteSet:
    """Store a site set; the same again is a repetition, another of the same name is refused."""
    if dataset.state == DatasetState.RETIRED:
        raise Retired(f"{dataset.name} is retired; it takes no site sets")
    try:
        # What a job would refuse is refused here, while the person who can correct it is looking.
        sites = read_sites(domain_of(dataset), _as_option(kind, values))
    except InvalidSites as refusal:
        raise BadFormat(str(refusal)) from refusal
    found = _named(session, dataset, name)
    if found is not None:
        if (found.digest, found.kind, found.width) != (sites.digest, kind, values.shape[1]):
            raise InvalidRequest(f"the name {name} is taken by other sites; choose another", status=409)
        return found
    audit.record(session, "put-sites", actor=actor, at=at, dataset_id=dataset.id, sites=name, kind=kind)
    return _store(session, dataset, name, sites, at)


def store_unnamed(session: Session, dataset: Dataset, sites: Sites, *, at: datetime) -> None:
    """Store sites that were sent with a job, once; the caller holds the lock of the dataset's account."""
    if _by_digest(session, dataset.id, sites.metric, sites.digest) is None:
        _store(session, dataset, None, sites, at)


def _store(session: Session, dataset: Dataset, name: str | None, sites: Sites, at: datetime) -> SiteSet:
    made = SiteSet(
        dataset_id=dataset.id,
        name=name,
        kind=_KINDS[sites.metric],
        count=sites.numbers.shape[0],
        width=sites.numbers.shape[1],
        digest=sites.digest,
        reach=sites.reach(domain_of(dataset)),
        payload=np.ascontiguousarray(sites.numbers, dtype="<f8").tobytes(),
        created_at=at,
    )
    session.add(made)
    session.flush()
    return made


def sets_of(session: Session, dataset: Dataset) -> list[SiteSet]:
    """Return the named site sets of a dataset, by name."""
    query = select(SiteSet).where(SiteSet.dataset_id == dataset.id, SiteSet.name.is_not(None))
    return list(session.scalars(query.order_by(SiteSet.name)))


def find(session: Session, dataset: Dataset, name: str) -> SiteSet:
    """Return the site set of that name, or raise NotFound."""
    found = _named(session, dataset, name)
    if found is None:
        there = ", ".join(str(each.name) for each in sets_of(session, dataset)) or "none"
        raise NotFound(f"{dataset.name} has no site set named {name}; those it has: {there}")
    return found


def facts_of(dataset: Dataset, found: SiteSet) -> SiteFacts:
    """Return what a plan needs to know of a stored set."""
    if found.reach is None:
        return _sites(found).facts(domain_of(dataset))
    return SiteFacts(_METRICS[found.kind], found.count, found.digest, found.reach)


def load(session: Session, dataset_id: int, facts: Mapping[str, Any]) -> Sites:
    """Load the sites that a plan names, for a run."""
    found = _by_digest(session, dataset_id, facts["metric"], facts["digest"])
    if found is None:
        raise LookupError("the sites that this plan names are not stored")
    return _sites(found)


def require_short(sites: Any) -> None:
    """Refuse sites in a request that are too many to be sent with it."""
    if len(to_json(sites)) > MOST_INLINE_BYTES:
        raise InvalidRequest(
            f"sites in a request may take at most {MOST_INLINE_BYTES >> 10} KiB; ask the curator to store "
            "them as a site set of the dataset, and name that"
        )


def _sites(found: SiteSet) -> Sites:
    numbers = np.frombuffer(found.payload, dtype="<f8").reshape(found.count, found.width)
    return Sites(_METRICS[found.kind], numbers.astype(np.float64))


def _by_digest(session: Session, dataset_id: int, metric: str, digest: str) -> SiteSet | None:
    query = select(SiteSet).where(
        SiteSet.dataset_id == dataset_id, SiteSet.digest == digest, SiteSet.kind == _KINDS[metric]
    )
    return session.scalars(query.limit(1)).one_or_none()


def _named(session: Session, dataset: Dataset, name: str) -> SiteSet | None:
    query = select(SiteSet).where(SiteSet.dataset_id == dataset.id, SiteSet.name == name)
    return session.scalars(query).one_or_none()


def _as_option(kind: str, values: Any) -> dict[str, Any]:
    """Sites in the form in which algorithms take their option `sites`."""
    if kind == "distances":
        return {"kind": "distances", "matrix": values}
    return {"kind": "coordinates", "metric": _METRICS[kind], "points": values}
