"""Verify a dataset: totals and caps against its ledger, and what it stores against digests."""

import hashlib
from collections.abc import Iterator
from functools import partial

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service import ledger
from service.datasets.ingest import store
from service.datasets.periods import accounts
from service.ledger import accountants, verification
from service.ledger.charging import WHOLE
from service.operations.database import Database
from service.operations.progress import Part, Step
from service.operations.signing import SigningKeys
from service.operations.tables import (
    Account,
    Dataset,
    DatasetChunk,
    Grant,
    Period,
    Population,
    PublicRowSet,
    SiteSet,
)

#: What is stored in bytes, with their digest.
Model = type[DatasetChunk | SiteSet | PublicRowSet]


def faults(session: Session, dataset_id: int, keys: SigningKeys) -> Iterator[str]:
    """Yield what contradicts the facts of a dataset: totals of accounts, and the list of its chunks."""
    dataset = session.get_one(Dataset, dataset_id)
    if dataset.accountant not in accountants.names():
        yield f"the dataset names an accountant that does not exist: {dataset.accountant}"
        return
    periods = session.scalars(select(Period).where(Period.dataset_id == dataset_id)).all()
    opened = session.scalars(select(Account).where(Account.dataset_id == dataset_id))
    present = {(account.period, account.grant_id): ledger.balance(account).total for account in opened}
    totals = accounts.totals(session, dataset)
    for label, total in totals.items():
        if present.get((label, None)) != total:
            yield f"the total of the ledger is not that of the budget of {label or 'the dataset'}"
    for grant in session.scalars(select(Grant).where(Grant.dataset_id == dataset_id)):
        cap = accountants.of(dataset, grant).total
        if any(present.get((label, grant.id)) != cap for label in totals):
            yield f"the cap of grant {grant.id} is not the one that was declared"
    own = (Account.dataset_id == dataset_id, Account.grant_id.is_(None), Account.period == WHOLE)
    if session.scalar(select(Account.population_id).where(*own)) != dataset.population_id:
        yield "the account of the dataset is of another population than the dataset"
    # Rows from before revision 0028 have no digest.
    bound = {0: dataset.rows_digest, **{period.id: period.rows_digest for period in periods}}
    for period_id, digest in bound.items():
        if digest not in (None, store.rows_digest(session, dataset_id, period_id, keys)):
            yield "the rows are not those that were uploaded: chunks were changed, added or removed"


def population_faults(session: Session, population: Population) -> Iterator[str]:
    """Yield what contradicts the total of a population, or the entries of its datasets."""
    if population.accountant not in accountants.names():
        yield f"the population names an accountant that does not exist: {population.accountant}"
        return
    total = accountants.of(population).total
    yield from verification.population_faults(session, population.id, total)


def payloads(database: Database, dataset_id: int, name: str) -> Iterator[Part]:
    """Yield the parts of a verification that read what a dataset stores in bytes."""
    for model in (DatasetChunk, SiteSet, PublicRowSet):
        yield Part(
            key=f"{dataset_id} {model.__tablename__}",
            dataset=name,
            things=model.__tablename__,
            size_after=partial(_bytes_after, database, model, dataset_id),
            steps_after=partial(_damaged, database, model, dataset_id),
            scale=1e9,
            unit=" GB",
        )


def _bytes_after(database: Database, model: Model, dataset_id: int, after: int) -> int:
    size = select(func.sum(func.length(model.payload)))
    with database.read() as session:
        return session.scalar(size.where(model.dataset_id == dataset_id, model.id > after)) or 0


def _damaged(database: Database, model: Model, dataset_id: int, after: int) -> Iterator[Step]:
    """Read what is stored in bytes; faults are those that differ from their digest."""
    while (found := _next_payload(database, model, dataset_id, after)) is not None:
        after, digest, payload = found
        damaged = hashlib.sha256(payload).hexdigest() != digest
        fault = f"row {after} of {model.__tablename__} is damaged: its bytes differ from its digest"
        yield Step(after, len(payload), [fault] if damaged else [])


def _next_payload(
    database: Database, model: Model, dataset_id: int, after: int
) -> tuple[int, str, bytes] | None:
    following = select(model.id, model.digest, model.payload).where(
        model.dataset_id == dataset_id, model.id > after
    )
    with database.read() as session:
        found = session.execute(following.order_by(model.id).limit(1)).one_or_none()
    return None if found is None else (found.id, found.digest, found.payload)
