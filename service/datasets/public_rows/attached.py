"""Public rows attached to a dataset by its curator; jobs planned from now on may learn from them.

Plans name rows by digest, so none are deleted: earlier jobs keep theirs.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from core.data import PublicRowFacts, PublicRows
from service.datasets import lifecycle
from service.operations.tables import Dataset, PublicRowSet


def facts_of(dataset: Dataset) -> PublicRowFacts | None:
    """Return what a plan needs to know of the rows that are attached now; None: there are none."""
    found = dataset.public_rows
    return None if found is None else PublicRowFacts(found.count, found.digest)


def load(session: Session, dataset_id: int, facts: Mapping[str, Any]) -> PublicRows:
    """Load the rows, present or past, that a plan names, for a run."""
    query = select(PublicRowSet).where(
        PublicRowSet.dataset_id == dataset_id, PublicRowSet.digest == facts["digest"]
    )
    found = session.scalars(query.order_by(PublicRowSet.id.desc()).limit(1)).one_or_none()
    if found is None:
        raise LookupError("the public rows that this plan names are not stored")
    numbers = np.frombuffer(found.payload, dtype="<f8").reshape(found.count, found.width)
    return PublicRows(numbers.astype(np.float64))


def put(session: Session, dataset: Dataset, rows: PublicRows, *, actor: str, at: datetime) -> None:
    """Attach rows to a sealed dataset in place of those it has; the same again is a repetition."""
    lifecycle.lock_sealed(session, dataset)
    if facts_of(dataset) == rows.facts:
        return
    following = PublicRowSet(
        dataset_id=dataset.id,
        digest=rows.facts.digest,
        count=rows.numbers.shape[0],
        width=rows.numbers.shape[1],
        payload=np.ascontiguousarray(rows.numbers, dtype="<f8").tobytes(),
        set_by=actor,
        set_at=at,
    )
    lifecycle.supersede(
        session,
        dataset,
        dataset.public_rows,
        following,
        "set-public-rows",
        actor=actor,
        at=at,
        rows=len(rows),
        digest=rows.facts.digest,
    )


def remove(session: Session, dataset: Dataset, *, actor: str, at: datetime) -> None:
    """Detach the rows; jobs that were planned with them keep them."""
    lifecycle.lock_sealed(session, dataset)
    if dataset.public_rows is not None:
        action = "remove-public-rows"
        lifecycle.supersede(session, dataset, dataset.public_rows, None, action, actor=actor, at=at)
