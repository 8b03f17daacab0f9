"""Verify a dataset: totals and caps against its ledger, and what it stores against digests."""

import hashlib
from collections.abc import Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from service import ledger
from service.datasets.ingest import store
from service.ledger import accountants
from service.operations.database import Database
from service.operations.signing import SigningKeys
from service.operations.tables import Dataset, DatasetChunk, Grant, PublicRowSet, SiteSet


def faults(session: Session, dataset_id: int, keys: SigningKeys) -> Iterator[str]:
    """Yield what contradicts the facts of a dataset: totals of accounts, and the list of its chunks."""
    dataset = session.get_one(Dataset, dataset_id)
    if ledger.balance(ledger.find(session, dataset_id)).total != accountants.of(dataset).total:
        yield "the total of the ledger is not that of the dataset's budget"
    for grant in session.scalars(select(Grant).where(Grant.dataset_id == dataset_id)):
        cap = accountants.of(dataset, grant).total
        if ledger.balance(ledger.find(session, dataset_id, grant.id)).total != cap:
            yield f"the cap of grant {grant.id} is not the one that was declared"
    # Rows from before revision 0028 have no digest.
    if dataset.rows_digest not in (None, store.rows_digest(session, dataset_id, keys)):
        yield "the rows are not those that were uploaded: chunks were changed, added or removed"


def damaged(database: Database, dataset_id: int) -> Iterator[str]:
    """Read every chunk, site set and set of public rows; yield those whose bytes differ from their digest."""
    for model in (DatasetChunk, SiteSet, PublicRowSet):
        after = 0
        while (found := _next_payload(database, model, dataset_id, after)) is not None:
            after, digest, payload = found
            if hashlib.sha256(payload).hexdigest() != digest:
                yield f"row {after} of {model.__tablename__} is damaged: its bytes differ from its digest"


def _next_payload(
    database: Database, model: type[DatasetChunk | SiteSet | PublicRowSet], dataset_id: int, after: int
) -> tuple[int, str, bytes] | None:
    following = select(model.id, model.digest, model.payload).where(
        model.dataset_id == dataset_id, model.id > after
    )
    with database.read() as session:
        found = session.execute(following.order_by(model.id).limit(1)).one_or_none()
    return None if found is None else (found.id, found.digest, found.payload)
