"""Transcripts of jobs: stored in parts with the result, named in the receipt, and replayed without rows."""

import hashlib
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.data import domain_from_json
from core.errors import InvalidTranscript
from core.jobs.kinds import Released
from core.jobs.transcript import FORMAT, Transcript
from core.questions.base import QuestionResult
from service.jobs.results import answers
from service.jobs.results.receipts import digest_of
from service.operations.database import Database
from service.operations.tables import TranscriptPart

MEDIA_TYPE = "application/octet-stream"
_PART_BYTES = 1 << 20


def cut(released: Released, most_bytes: int) -> list[bytes]:
    """Return a run's transcript in parts of equal length; none when it would be longer than `most_bytes`.

    Its length follows from what was released, and so does whether there is one.
    """
    whole = bytearray()
    for part in Transcript.of(released).parts():
        whole += part
        if len(whole) > most_bytes:
            return []
    return [bytes(whole[start : start + _PART_BYTES]) for start in range(0, len(whole), _PART_BYTES)]


def facts_of(parts: Sequence[bytes]) -> dict[str, Any] | None:
    """Return what the receipt says of a transcript; None for a job without one."""
    if not parts:
        return None
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return {"format": FORMAT, "bytes": sum(map(len, parts)), "sha256": digest.hexdigest()}


def store(session: Session, job_id: str, parts: Sequence[bytes]) -> None:
    """Store a transcript with its job's result."""
    for ordinal, part in enumerate(parts):
        session.add(TranscriptPart(job_id=job_id, ordinal=ordinal, payload=part))
    session.flush()


def length(session: Session, job_id: str) -> int:
    """Return the bytes of a stored transcript; 0 for a job without one."""
    parts = select(func.sum(func.length(TranscriptPart.payload))).filter_by(job_id=job_id)
    return session.scalars(parts).one() or 0


def stored_parts(database: Database, job_id: str) -> Iterator[bytes]:
    """Yield the parts of a stored transcript, one at a time in memory."""
    ordinal = 0
    while True:
        wanted = select(TranscriptPart.payload).filter_by(job_id=job_id, ordinal=ordinal)
        with database.read() as session:
            part = session.scalars(wanted).one_or_none()
        if part is None:
            return
        yield part
        ordinal += 1


def released_values(released: Released) -> dict[str, Any]:
    """Return what a run released, as results show it."""
    if isinstance(released, QuestionResult):
        return {"findings": released.values, "draws": dict(released.draws)}
    clustering = released
    sizes, synopsis, profiles = clustering.sizes, clustering.synopsis, clustering.profiles
    intervals = None if clustering.intervals is None else clustering.intervals.to_json()
    return {
        "centres": np.asarray(clustering.centres, dtype=np.float64).tolist(),
        **({} if profiles is None else {"profiles": profiles}),
        "sizes": None if sizes is None else np.asarray(sizes, dtype=np.float64).tolist(),
        "noise": clustering.noise.to_json(),
        **({"intervals": intervals} if intervals else {}),
        "draws": dict(clustering.draws),
        "details": dict(clustering.details),
        **({} if synopsis is None else answers.shown(synopsis)),
    }


def replay(receipt: dict[str, Any], content: bytes) -> dict[str, Any]:
    """Compute a job's result again from its receipt and its transcript; raises InvalidTranscript."""
    if receipt.get("digest") != digest_of(receipt):
        raise InvalidTranscript("the receipt does not match its own digest: fetch it again")
    named = receipt.get("transcript")
    if named is None:
        raise InvalidTranscript("the receipt names no transcript: this job has none")
    if hashlib.sha256(content).hexdigest() != named["sha256"]:
        raise InvalidTranscript("this is not the transcript that the receipt names: its SHA-256 is another")
    transcript = Transcript.read(content, domain_from_json(receipt["domain"]))
    if transcript.plan.digest != receipt["plan_digest"]:
        raise InvalidTranscript("the transcript belongs to another plan than the receipt's")
    return released_values(transcript.replay())


def other_versions(receipt: dict[str, Any]) -> list[str]:
    """Return the packages whose versions here are not those of the run, which may change last digits."""
    was = receipt["versions"]
    here = {"cairn": version("cairn-dp"), "numpy": version("numpy"), "scipy": version("scipy")}
    return [f"{name} {here[name]} (was {was[name]})" for name in here if was.get(name) != here[name]]
