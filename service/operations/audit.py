"""The audit log: every act of a curator or operator, kept permanently, and each in a sentence."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from service.operations import audit_chain
from service.operations.tables import AuditEvent

Details = Mapping[str, Any]


def _after_a_look(details: Details) -> str:
    revised = details.get("revised_after_a_look")
    return f"; changed after a look at the rows: {', '.join(revised)}" if revised else ""


def _from_rows(details: Details) -> str:
    """What the curator confirmed to be public although it came from rows."""
    columns = details.get("confirmed_from_rows") or {}
    found = [f"{', '.join(facts)} of {column}" for column, facts in columns.items()]
    reading = (details.get("reading") or {}).get("confirmed_from_rows") or []
    found += [f"how the file is read ({', '.join(reading)})"] if reading else []
    return f"; confirmed as public, though taken from rows: {'; '.join(found)}" if found else ""


def _create(details: Details) -> str:
    budget = f"epsilon {details['epsilon']}, delta {details['delta']}"
    return f"created the dataset with {budget}{_from_rows(details)}"


def _edit(details: Details) -> str:
    changed = ", ".join(details.get("changed") or ["the description"])
    return f"changed {changed} of the draft{_after_a_look(details)}{_from_rows(details)}"


def _discard(details: Details) -> str:
    look = " after a look at its rows" if details.get("looked_at_rows") else ""
    return f"discarded the draft {details['name']}{look}"


def _grant(details: Details) -> str:
    kinds = f", for {', '.join(details['kinds'])}" if details.get("kinds") else ""
    permit = f", by permit {details['permit']}" if details.get("permit") else ""
    until = f", until {details['ends_at']}" if details.get("ends_at") else ""
    cap = f"epsilon {details['epsilon']}, delta {details['delta']}"
    return f"granted {details['analyst']} a cap of {cap}{kinds}{permit}{until}"


def _bounds(details: Details) -> str:
    found = [
        f"{each['column']} from {each['low']} to {each['high']} ({each['origin']})"
        for each in details["columns"]
    ]
    return f"set working bounds: {', '.join(found)}"


def _period(details: Details) -> str:
    return f" of the period {details['period']}" if details.get("period") else ""


def _seal(details: Details) -> str:
    what = f"the period {details['period']}" if details.get("period") else "the dataset"
    if details.get("version", 1) > 1:
        what = f"a correction of {what} (version {details['version']})"
    return f"sealed {what}{_after_a_look(details)}"


def _raise(details: Details) -> str:
    budget = f"epsilon {details['epsilon']}, delta {details['delta']}"
    return f"raised the budget{_period(details)} to {budget}"


#: Each action in words: a text with the names of its details in braces, or a function of them.
_WORDS: dict[str, str | Callable[[Details], str]] = {
    "create-dataset": _create,
    "look-at-rows": lambda details: f"looked at a report on rows that were not stored{_period(details)}",
    "upload": lambda details: f"uploaded rows to a draft ({details['format']}){_period(details)}",
    "edit-draft": _edit,
    "throw-away-rows": "deleted the rows of the draft",
    "delete-old-rows": lambda details: f"deleted rows that were not sealed in time{_period(details)}",
    "discard-draft": _discard,
    "seal": _seal,
    "add-period": "added the period {period} of about {size} records, with epsilon {epsilon}, delta {delta}",
    "correct-period": "began a correction of the period {period}",
    "discard-period": "discarded the draft of the period {period}",
    "raise-budget": _raise,
    "hand-over": "handed the dataset over from {former} to {owner}",
    "retire": "retired the dataset and deleted its rows",
    "grant": _grant,
    "revoke-grant": "withdrew the grant of {analyst}",
    "set-working-bounds": _bounds,
    "remove-working-bounds": "removed the working bounds",
    "set-public-rows": "attached {rows} public rows",
    "remove-public-rows": "detached the public rows",
    "put-sites": "stored the public sites {sites}",
    "end-job": "ended the job {job}",
    "prune": "deleted the plans of {jobs} jobs",
    "create-principal": "created the {role} {principal}",
    "sign-in": "signed in by {issuer}",
    "refuse-sign-in": "refused {subject}: {reason}",
    "link-identity": "linked {principal} to {subject} at {issuer}",
    "enable-principal": "enabled the account of {principal}",
    "disable-principal": "disabled the account of {principal}",
    "recover-curator": "gave the curator {principal} access again",
    "issue-key": "issued the key {key} to {principal}",
    "revoke-key": "revoked the key {key} of {principal}",
    "end-session": "ended the session {session_id} of {principal}",
}


def in_words(action: str, details: Details) -> str:
    """Return an act in a sentence, without who did it and when."""
    words = _WORDS[action]
    return words.format_map(details) if isinstance(words, str) else words(details)


def record(
    session: Session,
    action: str,
    *,
    actor: str,
    at: datetime,
    dataset_id: int | None = None,
    changes_facts: bool = True,
    **details: Any,
) -> None:
    """Record an act in the transaction that performs it; KeyError for one that has no words.

    The event is stored when the transaction commits; unless it changes no facts, with digests of them.
    """
    in_words(action, details)
    event = AuditEvent(at=at, actor=actor, action=action, dataset_id=dataset_id, details=details)
    audit_chain.add(session, event, changes_facts=changes_facts)


def wanted(
    actor: str | None, since: datetime | None, until: datetime | None
) -> Iterator[ColumnElement[bool]]:
    """Yield what filters of a list of acts demand."""
    if actor is not None:
        yield AuditEvent.actor == actor
    if since is not None:
        yield AuditEvent.at >= since
    if until is not None:
        yield AuditEvent.at < until


def events(
    session: Session,
    *,
    dataset_ids: list[int],
    actor: str | None,
    wanted: Iterable[ColumnElement[bool]],
    before: int | None,
    limit: int,
) -> list[AuditEvent]:
    """Return acts on these datasets and, for an actor, their own and those on principals, newest first."""
    visible: ColumnElement[bool] = AuditEvent.dataset_id.in_(dataset_ids)
    if actor is not None:
        visible = visible | (AuditEvent.actor == actor) | AuditEvent.dataset_id.is_(None)
    query = select(AuditEvent).where(visible, *wanted)
    if before is not None:
        query = query.where(AuditEvent.id < before)
    return list(session.scalars(query.order_by(AuditEvent.id.desc()).limit(limit)))
