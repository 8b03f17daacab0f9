"""Answers for numbers of clusters other than the one that a result shows, stored with it.

A job that left k open has a row for each k, and one of made-up rows. A job of a single k has a row of its
centres, and one that says which of its clusters are merged for each smaller k.
"""

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic_core import from_json
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.arrays import Floats
from core.blocks.noise import Noise, NoiseIntervals
from core.data import Domain, Geometry, Table, domain_from_json
from core.data.tables.profiles import describe, describe_intervals
from core.postprocessing.coarsening import Coarsening
from core.postprocessing.synopsis import Level, Synopsis, decoded_rows
from service.errors import InvalidRequest
from service.jobs.results import stored
from service.operations.tables import StoredAnswer

Found = TypeVar("Found")

#: The number under which made-up rows are stored; no answer has it.
ROWS = 0
#: The number under which merges of a single k are stored; no answer has it.
_MERGES = -1
#: The number under which the centres of a single k are stored; no answer has it.
_CENTRES = -2
_ARRAYS = ("centres", "sizes", "centre_low", "centre_high", "size_low", "size_high", "spreads", "apart")


@dataclass(frozen=True, eq=False)
class MadeUpRows:
    """Made-up rows as they are stored: encoded, or of a table a code for each column of the clustering."""

    domain: Domain
    rows: npt.NDArray[Any]

    def first(self, count: int) -> npt.NDArray[Any]:
        """Return the first rows in the data's units, with a field for each column of a table."""
        return decoded_rows(self.domain, self.rows[:count])

    def coordinates(self, count: int) -> npt.NDArray[Any]:
        """Return the first rows as numbers of centres."""
        rows = self.rows[:count]
        if isinstance(self.domain, Geometry):
            return self.domain.decode(self.domain.coordinates(rows))
        return decoded_rows(self.domain, rows)


def encoded(synopsis: Synopsis) -> dict[int, bytes]:
    """Return the answer for each k, and the made-up rows, as the bytes that are stored."""
    levels = {level.k: _saved(level_facts(level)) for level in synopsis.levels}
    return {**levels, ROWS: _saved({"rows": synopsis.rows})}


def encoded_centres(centres: Floats) -> dict[int, bytes]:
    """Return the centres of a single k as the bytes that are stored: plans of questions need them as such."""
    return {_CENTRES: _saved({"centres": np.asarray(centres, dtype=np.float64)})}


def encoded_merges(merged: Coarsening) -> dict[int, bytes]:
    """Return which clusters of a single k are merged for each smaller one, as the bytes that are stored."""
    return {_MERGES: _saved({"owners": merged.owners, "weights": merged.weights})}


def store(session: Session, job_id: str, answers: Mapping[int, bytes]) -> None:
    """Store a job's answers with its result."""
    for k, payload in answers.items():
        session.add(StoredAnswer(job_id=job_id, k=k, payload=payload))
    session.flush()


def stored_bytes(session: Session, job_id: str, k: int) -> int:
    """Return the length of what is stored for one k, or for the made-up rows."""
    length = select(func.length(StoredAnswer.payload)).filter_by(job_id=job_id, k=k)
    return session.scalars(length).one_or_none() or 0


def of_other_k(
    session: Session, job_id: str, k: int, body: Mapping[str, Any], receipt: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what a job's result shows for another k in place of its own centres; refuses what it cannot."""
    known = body.get("range")
    found = _at(session, job_id, k, receipt) if known else _merged(session, job_id, k, body, receipt)
    return _require(found, job_id, k, known, len(body["centres"]))


def centres(session: Session, job_id: str, k: int | None) -> Floats:
    """Return the centres that a job's result shows, or those for another k; refuses what it cannot.

    They are read as arrays: the JSON of a result may have half a million numbers.
    """
    if has_made_up_rows(session, job_id):
        known = stored.part(session, job_id, "range")
        k = known["suggested"] if k is None else k
        level = _require(level_arrays(session, job_id, k), job_id, k, known, 0)
        return np.asarray(level["centres"], dtype=np.float64)
    own = _own_centres(session, job_id)
    if k is None or k == len(own):
        return own
    merges = _require(_merges(session, job_id, k, len(own)), job_id, k, None, len(own))
    merged: Floats = merges.shares(k) @ own
    return merged


def _own_centres(session: Session, job_id: str) -> Floats:
    found = _loaded(session, job_id, _CENTRES)
    if found is None:  # a result of an earlier version
        found = from_json(stored.text(session, job_id))
    return np.asarray(found["centres"], dtype=np.float64)


def _require(found: Found | None, job_id: str, k: int, known: Mapping[str, Any] | None, own_k: int) -> Found:
    """Return what was found for a k; refuses those for which a job of a range, or of its own k, has none."""
    if found is None:
        single = f"= {own_k}, and for fewer where clusters can be merged"
        asked = f"from {known['from']} to {known['to']}" if known else single
        raise InvalidRequest(f"job {job_id} has no result for k = {k}: it has results for k {asked}")
    return found


def _at(session: Session, job_id: str, k: int, receipt: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the answer for one k of a job that left k open; None outside its range."""
    found = level_arrays(session, job_id, k)
    if found is None:
        return None
    level, domain = _level_json(found), clustered(receipt["domain"])
    parts = {name: level.pop(name) for name in ("centres", "sizes")}
    if isinstance(domain, Geometry):
        parts["profiles"] = describe_intervals(
            domain, found["centres"], found["centre_low"], found["centre_high"]
        )
    return {**parts, "level": level}


def _merged(
    session: Session, job_id: str, k: int, body: Mapping[str, Any], receipt: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the result of a job of a single k with its clusters merged into fewer; None if not possible."""
    merges = _merges(session, job_id, k, len(body["centres"]))
    if merges is None:
        return None
    members, shares = merges.members(k), merges.shares(k)
    centres = shares @ np.array(body["centres"])
    noise = _merged_noise(body["noise"], members, shares)
    sizes, domain = members @ body["sizes"], clustered(receipt["domain"])
    intervals = NoiseIntervals.of(domain, centres, sizes, noise)
    parts: dict[str, Any] = {"centres": centres.tolist(), "sizes": sizes.tolist()}
    if isinstance(domain, Geometry):
        parts["profiles"] = describe(domain, centres, noise.deviations, body["objective"], intervals.centres)
    groups = [np.flatnonzero(row).tolist() for row in members]
    return {
        **parts,
        "noise": noise.to_json(),
        "intervals": intervals.to_json(),
        "merged": {"of": len(body["centres"]), "groups": groups},
    }


def _merges(session: Session, job_id: str, k: int, own_k: int) -> Coarsening | None:
    """Return how the clusters of a job of a single k are merged into fewer; None if they cannot be."""
    found = _loaded(session, job_id, _MERGES) if 1 <= k < own_k else None
    return None if found is None else Coarsening(found["owners"], found["weights"])


def _merged_noise(noise: Mapping[str, Any], members: npt.NDArray[np.bool_], shares: Floats) -> Noise:
    """Return the noise of merged clusters: in sizes that of the one made of most, which holds for all."""
    size = noise["size"] * math.sqrt(members.sum(axis=1).max())
    centres = None
    if noise["centres"] is not None:
        centres = tuple(np.sqrt(shares**2 @ np.square(noise["centres"])).tolist())
    known = {"tail": noise["tail"]} if "tail" in noise else {}  # those of earlier versions lack it
    return Noise(size, centres, noise["columns"] and tuple(noise["columns"]), **known)


def level_arrays(session: Session, job_id: str, k: int) -> dict[str, Any] | None:
    """Return the answer for one k of a job that left k open, as arrays; None outside its range."""
    return _loaded(session, job_id, k) if k > ROWS else None


def has_made_up_rows(session: Session, job_id: str) -> bool:
    """Return True for a job that left k open."""
    found = session.scalars(select(StoredAnswer.k).filter_by(job_id=job_id, k=ROWS)).one_or_none()
    return found is not None


def made_up_rows(session: Session, job_id: str, receipt: Mapping[str, Any]) -> MadeUpRows | None:
    """Return the made-up rows of a job that left k open."""
    found = _loaded(session, job_id, ROWS)
    return None if found is None else MadeUpRows(clustered(receipt["domain"]), found["rows"])


def clustered(domain: Mapping[str, Any]) -> Domain:
    """Return the domain of a receipt as the job clustered in it."""
    stored = domain_from_json(domain)
    return Geometry.from_json(stored, domain["clustered"]) if isinstance(stored, Table) else stored


def level_facts(level: Level) -> dict[str, Any]:
    """Return an answer as arrays."""
    loss = [level.loss.value, level.loss.low, level.loss.high, level.explained]
    return {**{name: getattr(level, name) for name in _ARRAYS}, "real": level.real, "loss": np.array(loss)}


def shown(synopsis: Synopsis) -> dict[str, Any]:
    """Return what the result of an open job shows as well as the centres and sizes of the suggested k."""
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
    payload = session.scalars(select(StoredAnswer.payload).filter_by(job_id=job_id, k=k)).one_or_none()
    if payload is None:
        return None
    with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
        return dict(arrays)
