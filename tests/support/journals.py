"""What is in the journal of a running job, to compare with what becomes of it."""

from collections.abc import Iterable
from io import BytesIO

import numpy as np
import numpy.typing as npt
from sqlalchemy import select

from core.data import domain_from_json
from core.jobs.transcript import Transcript
from service.jobs.results import transcripts
from service.operations.database import Database
from service.operations.tables import Dataset, Job, JournalEntry

Numbers = npt.NDArray[np.int64]
_SEED_BYTES = 16


def entries(database: Database, job: str | None = None) -> list[bytes | None]:
    """The entries of a job's journal, or of all journals, in order."""
    query = select(JournalEntry.payload).order_by(JournalEntry.ordinal)
    if job is not None:
        query = query.where(JournalEntry.job_id == job)
    with database.read() as session:
        return list(session.scalars(query))


def releases(kept: Iterable[bytes | None]) -> list[Numbers]:
    """The releases among some entries; the others are seeds."""
    return [np.load(BytesIO(payload)) for payload in kept if payload and len(payload) > _SEED_BYTES]


def seeds(kept: Iterable[bytes | None]) -> list[str]:
    """The seeds among some entries."""
    return [payload.hex() for payload in kept if payload and len(payload) == _SEED_BYTES]


def transcript(database: Database, job: str) -> Transcript:
    """The transcript that is stored with a job's result."""
    content = b"".join(transcripts.stored_parts(database, job))
    with database.read() as session:
        dataset = session.scalars(
            select(Dataset).join(Job, Job.dataset_id == Dataset.id).where(Job.id == job)
        )
        return Transcript.read(content, domain_from_json(dataset.one().domain))


def goes_on(before: list[bytes | None], after: Transcript) -> bool:
    """Whether a transcript begins with the releases of a journal, and has its seeds."""
    numbers, earlier = _flat(each.values for each in after.releases), _flat(releases(before))
    known = seeds(before)
    return (
        np.array_equal(numbers[: len(earlier)], earlier) and known == list(after.draws.values())[: len(known)]
    )


def _flat(values: Iterable[Numbers]) -> Numbers:
    """All numbers, one after the other: a coverage loop is one entry, and a release for each round."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *(each.reshape(-1) for each in values)])
