"""Sets of sites: public places that facility-location jobs choose among.

Three kinds are kept: `coordinates` in the dataset's columns, `great-circle` for latitudes and longitudes, and
`distances`, a matrix for datasets whose rows name sites.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import select
from sqlalchemy.orm import Session

from core.data import read_sites
from core.errors import InvalidRequest as InvalidSites
from service.datasets.access import domain_of
from service.errors import BadFormat, InvalidRequest, NotFound, Retired
from service.operations import audit
from service.operations.tables import Dataset, SiteSet

__all__ = ["as_option", "find", "put", "sets_of"]


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
    if dataset.state == "retired":
        raise Retired(f"{dataset.name} is retired; it takes no site sets")
    try:
        # What a job would refuse is refused here, while the person who can correct it is looking.
        read_sites(domain_of(dataset), _in_words_of_core(kind, values), k=1)
    except InvalidSites as refusal:
        raise BadFormat(str(refusal)) from refusal
    payload = np.ascontiguousarray(values, dtype="<f8").tobytes()
    digest = hashlib.sha256(payload).hexdigest()
    found = _named(session, dataset, name)
    if found is not None:
        if (found.digest, found.kind, found.width) != (digest, kind, values.shape[1]):
            raise InvalidRequest(f"the name {name} is taken by other sites; choose another", status=409)
        return found
    made = SiteSet(
        dataset_id=dataset.id,
        name=name,
        kind=kind,
        count=values.shape[0],
        width=values.shape[1],
        digest=digest,
        payload=payload,
        created_at=at,
    )
    session.add(made)
    audit.record(session, "put-sites", actor=actor, at=at, dataset_id=dataset.id, sites=name, kind=kind)
    session.flush()
    return made


def sets_of(session: Session, dataset: Dataset) -> list[SiteSet]:
    """The site sets of a dataset by name."""
    query = select(SiteSet).where(SiteSet.dataset_id == dataset.id).order_by(SiteSet.name)
    return list(session.scalars(query))


def find(session: Session, dataset: Dataset, name: str) -> SiteSet:
    """The site set of that name, or NotFound."""
    found = _named(session, dataset, name)
    if found is None:
        there = ", ".join(each.name for each in sets_of(session, dataset)) or "none"
        raise NotFound(f"{dataset.name} has no site set named {name}; those it has: {there}")
    return found


def as_option(found: SiteSet) -> dict[str, Any]:
    """A stored set in the form in which algorithms take their option `sites`."""
    values = np.frombuffer(found.payload, dtype="<f8").reshape(found.count, found.width)
    return _in_words_of_core(found.kind, values.tolist())


def _named(session: Session, dataset: Dataset, name: str) -> SiteSet | None:
    query = select(SiteSet).where(SiteSet.dataset_id == dataset.id, SiteSet.name == name)
    return session.scalars(query).one_or_none()


def _in_words_of_core(kind: str, values: Any) -> dict[str, Any]:
    if kind == "distances":
        return {"kind": "distances", "matrix": values}
    metric = "great-circle" if kind == "great-circle" else "euclidean"
    return {"kind": "coordinates", "metric": metric, "points": values}
