"""Sets of sites: public places that facility-location jobs choose among; coordinates or distances."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import select
from sqlalchemy.orm import Session

from service import audit
from service.datasets import domain_of
from service.errors import BadFormat, InvalidRequest, Retired
from service.tables import Dataset, SiteSet

__all__ = ["put", "sets_of"]

_MOST_SITES = 10_000


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
    _check(dataset, kind, values)
    payload = np.ascontiguousarray(values, dtype="<f8").tobytes()
    digest = hashlib.sha256(payload).hexdigest()
    found = session.scalars(
        select(SiteSet).where(SiteSet.dataset_id == dataset.id, SiteSet.name == name)
    ).one_or_none()
    if found is not None:
        if (found.digest, found.kind) != (digest, kind):
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


def _check(dataset: Dataset, kind: str, values: npt.NDArray[np.float64]) -> None:
    domain = domain_of(dataset)
    if not 1 <= values.shape[0] <= _MOST_SITES:
        raise BadFormat(f"a site set has between 1 and {_MOST_SITES} sites")
    if not np.isfinite(values).all():
        raise BadFormat("sites must be finite numbers")
    if kind == "coordinates" and (domain.kind != "dense" or values.shape[1] != domain.dimension):
        raise BadFormat(f"coordinates need a dense dataset and one column for each of its {domain.dimension}")
    if kind == "distances":
        count: Any = getattr(domain, "count", None)
        if values.shape[0] != values.shape[1] or (count is not None and values.shape[0] != count):
            raise BadFormat("distances must be a square matrix with one row for each site of the dataset")
        if (values < 0).any() or np.diagonal(values).any() or (values != values.T).any():
            raise BadFormat("distances must be symmetric, not negative, and zero from a site to itself")
