"""Answers for every k of a job that left k open: stored with its result, a row for each k, and read alone."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import select
from sqlalchemy.orm import Session

from core.data import Domain, Geometry, Table, domain_from_json
from core.data.tables.profiles import describe_intervals
from core.postprocessing.synopsis import Level, Synopsis, decoded_rows
from service.operations.tables import Answer

#: The number under which made-up rows are stored; no answer has it.
_ROWS = 0
_ARRAYS = ("centres", "sizes", "centre_low", "centre_high", "size_low", "size_high", "spreads", "apart")


@dataclass(frozen=True, eq=False)
class MadeUpRows:
    """Made-up rows as they are stored: encoded, or of a table a code for each column of the clustering."""

    domain: Domain
    rows: npt.NDArray[Any]

    def decoded(self) -> npt.NDArray[Any]:
        """Return the rows in the data's units, with a field for each column of a table."""
        return decoded_rows(self.domain, self.rows)


def encoded(synopsis: Synopsis) -> dict[int, bytes]:
    """Return the answer for each k, and the made-up rows, as the bytes that are stored."""
    levels = {level.k: _saved(level_facts(level)) for level in synopsis.levels}
    return {**levels, _ROWS: _saved({"rows": synopsis.rows})}


def store(session: Session, job_id: str, answers: Mapping[int, bytes]) -> None:
    """Store a job's answers with its result."""
    for k, payload in answers.items():
        session.add(Answer(job_id=job_id, k=k, payload=payload))
    session.flush()


def at(session: Session, job_id: str, k: int, receipt: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a job's result shows for k clusters in place of the suggested ones; None if nothing."""
    found = _loaded(session, job_id, k)
    if found is None:
        return None
    level, domain = _level_json(found), _clustered(receipt["domain"])
    parts = {name: level.pop(name) for name in ("centres", "sizes")}
    if isinstance(domain, Geometry):
        parts["profiles"] = describe_intervals(
            domain, found["centres"], found["centre_low"], found["centre_high"]
        )
    return {**parts, "level": level}


def has_made_up_rows(session: Session, job_id: str) -> bool:
    """Return True for a job that left k open."""
    found = session.scalars(select(Answer.k).filter_by(job_id=job_id, k=_ROWS)).one_or_none()
    return found is not None


def made_up_rows(session: Session, job_id: str, receipt: Mapping[str, Any]) -> MadeUpRows | None:
    """Return the made-up rows of a job that left k open."""
    found = _loaded(session, job_id, _ROWS)
    return None if found is None else MadeUpRows(_clustered(receipt["domain"]), found["rows"])


def _clustered(domain: Mapping[str, Any]) -> Domain:
    """Return the domain of a receipt as the job clustered in it."""
    stored = domain_from_json(domain)
    return Geometry.from_json(stored, domain["clustered"]) if isinstance(stored, Table) else stored


def level_facts(level: Level) -> dict[str, Any]:
    """Return an answer as arrays."""
    loss = [level.loss.value, level.loss.low, level.loss.high, level.explained]
    return {**{name: getattr(level, name) for name in _ARRAYS}, "real": level.real, "loss": np.array(loss)}


def shown(synopsis: Synopsis) -> dict[str, Any]:
    """Return what the result of an open job shows beside the centres and sizes of the suggested k."""
    level = _level_json(level_facts(synopsis.at(synopsis.suggested)))
    return {
        "level": {name: value for name, value in level.items() if name not in ("centres", "sizes")},
        "range": {
            "from": synopsis.levels[0].k,
            "to": synopsis.levels[-1].k,
            "suggested": synopsis.suggested,
            "reason": synopsis.reason,
            "curve": [
                {"k": each.k, "loss": _loss_json(each.loss.value, each.loss.low, each.loss.high)}
                | {"explained": each.explained}
                for each in synopsis.levels
            ],
            "tree": {"joined": synopsis.tree.joined.tolist(), "added": synopsis.tree.added.tolist()},
            "reach": synopsis.reach,
            "beyond": synopsis.beyond,
            "heavy_tailed": synopsis.heavy_tailed,
            "warning": synopsis.warning,
            "made_up_rows": len(synopsis.rows),
        },
    }


def _level_json(facts: Mapping[str, Any]) -> dict[str, Any]:
    value, low, high, explained = facts["loss"].tolist()
    return {
        "k": len(facts["centres"]),
        **{name: facts[name].tolist() for name in (*_ARRAYS, "real")},
        "loss": _loss_json(value, low, high),
        "explained": explained,
    }


def _loss_json(value: float, low: float, high: float) -> dict[str, float]:
    return {"value": value, "low": low, "high": high}


def _saved(arrays: Mapping[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def _loaded(session: Session, job_id: str, k: int) -> dict[str, Any] | None:
    payload = session.scalars(select(Answer.payload).filter_by(job_id=job_id, k=k)).one_or_none()
    if payload is None:
        return None
    with np.load(io.BytesIO(payload), allow_pickle=False) as stored:
        return dict(stored)
