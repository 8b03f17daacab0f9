"""The audit log: every act, kept for good, and every access, kept for a time, each in a sentence."""

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
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
    return f"granted {details['analyst']} a cap of {cap}{kinds}{permit}{until}{_agreed(details)}"


def _agreed(details: Details) -> str:
    """Which request led to a change, and who agreed as the second curator."""
    request = f", on request {details['request'][:8]}" if details.get("request") else ""
    second = f", with the agreement of {details['second']}" if details.get("second") else ""
    return f"{request}{second}"


def _request(verb: str) -> Callable[[Details], str]:
    """Words for a step of a request for access."""

    def words(details: Details) -> str:
        analyst = f" for {details['analyst']}" if "analyst" in details else ""
        reason = f": {details['reason']}" if details.get("reason") else ""
        return f"{verb} {details['wanted']}{analyst}{reason} (request {details['request'][:8]})"

    return words


def _bounds(details: Details) -> str:
    found = [
        f"{each['column']} from {each['low']} to {each['high']} ({each['origin']})"
        for each in details["columns"]
    ]
    return f"set working bounds: {', '.join(found)}"


def _period(details: Details) -> str:
    return f" of the period {details['period']}" if details.get("period") else ""


def _rows(details: Details) -> str:
    return f"the period {details['period']}" if details.get("period") else "the dataset"


def _discard_version(details: Details) -> str:
    correction = "a correction of " if details.get("version", 1) > 1 else ""
    return f"discarded the draft of {correction}{_rows(details)}"


def _seal(details: Details) -> str:
    what = _rows(details)
    if details.get("version", 1) > 1:
        what = f"a correction of {what} (version {details['version']})"
    return f"sealed {what}{_after_a_look(details)}"


def _list(details: Details) -> str:
    shows = ", ".join(["name", *details["shows"]])
    return f"listed the dataset in the catalogue, which shows: {shows}"


def _raise(details: Details) -> str:
    budget = f"epsilon {details['epsilon']}, delta {details['delta']}"
    return f"raised the budget{_period(details)} to {budget}{_agreed(details)}"


def _join(details: Details) -> str:
    declared = ", declared to have one row for each person" if details.get("one_row_per_person") else ""
    return f"let the dataset join the population {details['population']}{declared}"


def _edit_population(details: Details) -> str:
    others = ", ".join(details["curators"]) or "nobody"
    return f"changed the population {details['population']}; other curators who may use it: {others}"


def _for_k(details: Details) -> str:
    return f" for k = {details['k']}" if "k" in details else ""


def _as_form(details: Details) -> str:
    return f" as {details['form']}" if "form" in details else ""


def _dataset(details: Details) -> str:
    return f" of {details['dataset']}" if "dataset" in details else ""


def _refuse(details: Details) -> str:
    job = f", job {details['job']}" if "job" in details else ""
    return f"was refused: {details['call']} ({details['status']}){job}"


#: Readings, sign-ins and refusals in words; everything else that is recorded is an act.
_ACCESS: dict[str, str | Callable[[Details], str]] = {
    "read-result": lambda details: (
        f"read the result of job {details['job']}{_for_k(details)}{_as_form(details)}"
    ),
    "read-sample": lambda details: f"read made-up rows of job {details['job']}{_as_form(details)}",
    "read-differences": "read the profile of job {job} side by side with another",
    "read-receipt": "read the receipt of job {job}",
    "read-transcript": "read the transcript of job {job}",
    "read-report": "read the report on rows",
    "read-reports": "listed datasets with the reports on their rows",
    "read-ledger": lambda details: f"read the ledger{_as_form(details)}",
    "read-audit": lambda details: f"read the audit log{_dataset(details)}",
    "start-session": "signed in with the key {key}",
    "refuse": _refuse,
    "refuse-more": "was refused {times} more times within a minute",
    "refuse-unknown": "was refused {times} times within a minute, without a valid key, session or token",
}
#: Acts in words: a text with the names of its details in braces, or a function of them.
_ACTS: dict[str, str | Callable[[Details], str]] = {
    "create-dataset": _create,
    "look-at-rows": lambda details: f"looked at a report on rows that were not stored{_period(details)}",
    "upload": lambda details: f"uploaded rows to a draft ({details['format']}){_period(details)}",
    "edit-draft": _edit,
    "throw-away-rows": "deleted the rows of the draft",
    "delete-old-rows": lambda details: f"deleted rows that were not sealed in time{_period(details)}",
    "discard-draft": _discard,
    "seal": _seal,
    "add-period": "added the period {period} of about {size} records, with epsilon {epsilon}, delta {delta}",
    "correct": lambda details: f"began a correction of {_rows(details)}",
    "discard-period": _discard_version,
    "raise-budget": _raise,
    "join-population": _join,
    "create-population": "created the population {population} with epsilon {epsilon}, delta {delta}",
    "edit-population": _edit_population,
    "raise-population": (
        "raised the budget of the population {population} to epsilon {epsilon}, delta {delta}"
    ),
    "hand-over": "handed the dataset over from {former} to {owner}",
    "retire": "retired the dataset and deleted its rows",
    "list-dataset": _list,
    "unlist-dataset": "took the dataset out of the catalogue",
    "grant": _grant,
    "revoke-grant": "withdrew the grant of {analyst}",
    "request": _request("asked for"),
    "propose": _request("proposed to a second curator"),
    "second": _request("agreed as the second curator to"),
    "decline-request": _request("declined"),
    "withdraw-request": _request("withdrew the request of"),
    "set-working-bounds": _bounds,
    "remove-working-bounds": "removed the working bounds",
    "set-public-rows": "attached {rows} public rows",
    "remove-public-rows": "detached the public rows",
    "put-sites": "stored the public sites {sites}",
    "end-job": "ended the job {job}",
    "fail-job": "recorded that the job {job} failed after it was charged",
    "prune": "deleted the plans of {jobs} jobs",
    audit_chain.DELETE_ACCESSES: "deleted who read what, signed in or was refused before {before}",
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


_WORDS = _ACTS | _ACCESS | {audit_chain.DELETED_ACCESS: "was deleted after its time"}


class Record(StrEnum):
    """What the audit log is a record of."""

    ACTS = "acts"
    ACCESS = "access"

    @property
    def actions(self) -> Collection[str]:
        """The actions that belong to it."""
        return (_ACTS if self is Record.ACTS else _ACCESS).keys()


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
    if action in _ACCESS:
        event.salt = secrets.token_hex(16)
    audit_chain.add(session, event, changes_facts=changes_facts)


def events(
    session: Session,
    *,
    dataset_ids: list[int],
    actor: str | None,
    wanted: Iterable[ColumnElement[bool]],
    of_service: bool,
    before: int | None,
    limit: int,
) -> list[AuditEvent]:
    """Return events on these datasets, by an actor, and those that concern none, newest first."""
    visible: ColumnElement[bool] = AuditEvent.dataset_id.in_(dataset_ids)
    if actor is not None:
        visible |= AuditEvent.actor == actor
    if of_service:
        visible |= AuditEvent.dataset_id.is_(None)
    query = select(AuditEvent).where(visible, *wanted)
    if before is not None:
        query = query.where(AuditEvent.id < before)
    return list(session.scalars(query.order_by(AuditEvent.id.desc()).limit(limit)))
