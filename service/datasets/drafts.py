"""Drafts: rows are stored and reported on, thrown away or sealed; public facts may still change.

```text
            create            upload (report)               seal
  (nothing) ------> no rows ------------------> with rows ---------> sealed
                       |  <------------------      |  \\__ upload again
                       |   throw away, edit, or    |
                       |   nothing for some days   |
                       +--------- discard ---------+----------> (its name is free again)
```

Jobs never run on a draft, so nothing of its rows can be released. What its owner changes after a look at the
rows is marked for good: such a fact may depend on them.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from core.data import Stored, Table, domain_from_json
from service import ledger
from service.datasets import access, lifecycle, reading, view
from service.datasets.columns import TableColumns
from service.datasets.doubts import doubts
from service.datasets.ingest import store
from service.datasets.ingest.chunks import StoredChunk
from service.datasets.ingest.readers.batch import Expected
from service.datasets.reading import ReadingBody
from service.datasets.wire import Bounds, DatasetBody, DraftChanges
from service.errors import AlreadySealed, CannotSeal, InvalidRequest
from service.operations import audit, faults
from service.operations.signing import SigningKeys
from service.operations.states import DatasetState
from service.operations.tables import Dataset, DatasetChunk, SiteSet


def edit(session: Session, dataset: Dataset, changes: DraftChanges, *, actor: str, at: datetime) -> None:
    """Change public facts of a draft; its rows are thrown away unless they would be encoded the same."""
    _lock(session, dataset)
    given = {
        name: getattr(changes, name)
        for name in changes.model_fields_set
        if name == "id_column" or getattr(changes, name) is not None
    }
    dataset.description = given.pop("description", dataset.description)
    dataset.planned_release = given.pop("planned_release", dataset.planned_release)
    read_before, dataset.reading = dataset.reading, _reading(dataset, given.pop("reading", None))
    before = _facts(domain_from_json(dataset.domain), dataset.id_column)
    asked = DatasetBody.model_construct(**_as_body(before, given))
    domain = lifecycle.domain_of(asked)
    id_column = lifecycle.id_column_of(asked, domain)
    after = _facts(domain, id_column)
    changed = _changed(before, after)
    was_inferred = read_before is None and dataset.reading is not None
    if was_inferred or reading.dialect_of(dataset.reading) != reading.dialect_of(read_before):
        changed.append("reading")
    if dataset.checked_at is not None:
        dataset.revised = sorted({*view.revised(dataset), *changed})
    dataset.domain, dataset.id_column = domain.to_json(), id_column
    kept, confirmed = _still_from_rows(dataset, before, after), lifecycle.confirmed_from_rows(asked.table)
    dataset.from_rows = {
        name: sorted({*kept.get(name, ()), *confirmed.get(name, ())}) for name in {**kept, **confirmed}
    } or None
    if set(changed) - {"size"}:
        _delete_rows(session, dataset)
    if set(changed) - {"size", "reading"}:
        session.execute(delete(SiteSet).where(SiteSet.dataset_id == dataset.id))
    audit.record(
        session,
        "edit-draft",
        actor=actor,
        at=at,
        dataset_id=dataset.id,
        changed=changed,
        domain=domain.fingerprint,
        revised_after_a_look=view.revised(dataset),
        confirmed_from_rows=dataset.from_rows or {},
        reading=dataset.reading or reading.INFERRED,
    )


def _reading(dataset: Dataset, body: ReadingBody | None) -> dict[str, Any] | None:
    """Return how text will be read after an edit."""
    return dataset.reading if body is None else reading.stored(body, dataset.reading)


def _still_from_rows(dataset: Dataset, before: dict[str, Any], after: dict[str, Any]) -> dict[str, list[str]]:
    """Return the known facts from rows that an edit leaves as they were."""
    columns = [{column["name"]: column for column in facts.get("table", ())} for facts in (before, after)]
    known = {name: facts for name, facts in (dataset.from_rows or {}).items() if name in columns[1]}
    same = {
        name: [fact for fact in facts if not _differ(fact, columns[0][name], columns[1][name])]
        for name, facts in known.items()
    }
    return {name: facts for name, facts in same.items() if facts}


def _facts(domain: Stored, id_column: str | None) -> dict[str, Any]:
    """Return the public facts that an edit may change, by the names that requests use."""
    facts = {name: value for name, value in domain.to_json().items() if name != "kind"}
    if isinstance(domain, Table):
        return {"table": facts.pop("columns"), **facts}
    if "bounds" not in facts:
        facts["bounds"] = view.other_bounds(domain)
        for name in ("radius", "count"):
            facts.pop(name, None)
    return {**facts, "id_column": id_column}


def _as_body(facts: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return a request for these facts and the changes; a table replaces bounds, and bounds a table."""
    kept = facts
    if "table" in given:
        kept = {name: facts[name] for name in ("size", "rows_per_person")}
    elif "bounds" in given:
        kept = {name: value for name, value in facts.items() if name != "table"}
    if "table" in kept:
        kept = {**kept, "table": TypeAdapter(TableColumns).validate_python(kept["table"])}
    if "bounds" in kept:
        kept = {**kept, "bounds": Bounds.model_validate(kept["bounds"])}
    absent = dict.fromkeys(("columns", "dimension", "bounds", "table", "id_column"))
    return {**absent, "scaling": "unit", **kept, **given}


def _changed(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Name the facts that differ; of a table, its columns."""
    columns = [{column["name"]: column for column in facts.get("table", ())} for facts in (before, after)]
    differ = [f"column {name}" for name in {**columns[0], **columns[1]} if _differ(name, *columns)]
    if list(columns[0]) != list(columns[1]) and not differ:
        differ = ["order of columns"]
    return differ + [name for name in {**before, **after} if name != "table" and _differ(name, before, after)]


def _differ(name: str, before: dict[str, Any], after: dict[str, Any]) -> bool:
    return bool(before.get(name) != after.get(name))


def store_rows(
    session: Session,
    dataset_id: int,
    expected: Expected,
    chunks: Iterable[StoredChunk],
    report: dict[str, Any],
    *,
    actor: str,
    at: datetime,
) -> Dataset:
    """Store the rows of a draft in place of those it has, in the caller's one transaction.

    Uploads to one dataset wait for each other; other transactions wait only for the last statements.
    """
    store.wait_for_other_uploads(session, dataset_id)
    lifecycle.require_draft(session.get_one(Dataset, dataset_id, populate_existing=True))
    session.execute(delete(DatasetChunk).where(DatasetChunk.dataset_id == dataset_id))
    store.store(session, dataset_id, chunks)
    ledger.lock(session, dataset_id)
    dataset = session.get_one(Dataset, dataset_id, populate_existing=True)
    lifecycle.require_draft(dataset)
    if Expected.of(dataset) != expected:
        raise InvalidRequest(f"{dataset.name} was edited during the upload; upload again", status=409)
    dataset.upload, dataset.checked_at, dataset.rows_digest = report, at, None
    dataset.reading = dataset.reading or reading.stored(None)
    audit.record(session, "upload", actor=actor, at=at, dataset_id=dataset_id, format=report["format"])
    session.flush()
    faults.reach("upload.stored")
    return dataset


def bind_rows(session: Session, dataset: Dataset, keys: SigningKeys) -> None:
    """Record the keyed digest of the rows that a draft has, in the transaction that stores them."""
    dataset.rows_digest = store.rows_digest(session, dataset.id, keys)


def note_look(session: Session, dataset_id: int, *, actor: str, at: datetime) -> None:
    """Record that the owner has seen a report on rows of a draft, though none were stored."""
    ledger.lock(session, dataset_id)
    dataset = session.get_one(Dataset, dataset_id, populate_existing=True)
    if dataset.state == DatasetState.DRAFT and dataset.upload is None:
        dataset.checked_at = at
        audit.record(session, "look-at-rows", actor=actor, at=at, dataset_id=dataset_id)


def throw_away_rows(session: Session, dataset: Dataset, *, actor: str, at: datetime) -> None:
    """Delete the rows of a draft and the report on them."""
    _lock(session, dataset)
    _delete_rows(session, dataset)
    audit.record(session, "throw-away-rows", actor=actor, at=at, dataset_id=dataset.id)


def discard(session: Session, dataset: Dataset, *, actor: str, at: datetime) -> None:
    """Delete a draft; its name can be used again. Its ledger stays, since nothing of a ledger is deleted."""
    _lock(session, dataset)
    _delete_rows(session, dataset)
    audit.record(
        session, "discard-draft", actor=actor, at=at, dataset_id=dataset.id, name=dataset.name,
        looked_at_rows=dataset.checked_at is not None,
    )  # fmt: skip
    dataset.name, dataset.description = f"{access.NAMELESS}{dataset.id}", ""
    dataset.state, dataset.retired_at = DatasetState.RETIRED, at


def seal(
    session: Session,
    dataset: Dataset,
    *,
    confirmed: Collection[str] = (),
    sha256: str | None = None,
    actor: str,
    at: datetime,
) -> None:
    """Seal a draft with the rows it has; CannotSeal when it has none, or when they look wrong.

    With `sha256`, repeating it is safe, and rows that replaced those of the report are not sealed.
    """
    try:
        _lock(session, dataset)
    except AlreadySealed:
        if sha256 is not None and dataset.upload and dataset.upload["sha256"] == sha256:
            return
        raise
    report = dataset.upload
    if report is None or report["rows"] == 0:
        raise CannotSeal(
            f"{dataset.name} has no rows to seal",
            next_step="Upload a file with usable rows first.",
            doubts=[],
        )
    if dataset.reading is None:
        raise CannotSeal(
            f"the rows of {dataset.name} were read by an earlier version",
            next_step="Upload the file again.",
            doubts=[],
        )
    if sha256 not in (None, report["sha256"]):
        raise CannotSeal(
            f"other rows have been uploaded to {dataset.name}",
            next_step="Read the report on them first.",
            doubts=[],
        )
    left = [each for each in doubts(report, access.domain_of(dataset).size) if each.confirm not in confirmed]
    if left:
        words = sorted({each.confirm for each in left})
        raise CannotSeal(
            "; ".join(each.detail for each in left),
            next_step=f"If that is correct, confirm {' and '.join(words)}; otherwise upload other rows.",
            doubts=[{"confirm": each.confirm, "detail": each.detail} for each in left],
        )
    columns = [{**column, "examples": []} for column in report["columns"]]
    dataset.upload = {**report, "columns": columns, "bad_row_lines": []}  # copies of values go with the draft
    dataset.state, dataset.sealed_at = DatasetState.SEALED, at
    revised = view.revised(dataset)
    audit.record(session, "seal", actor=actor, at=at, dataset_id=dataset.id, revised_after_a_look=revised)
    session.flush()
    faults.reach("seal.updated")


def delete_old_rows(session: Session, *, before: datetime, at: datetime) -> int:
    """Delete the rows of drafts that were uploaded before a moment and never sealed."""
    old = (Dataset.state == DatasetState.DRAFT) & (Dataset.checked_at < before) & Dataset.upload.is_not(None)
    found = session.scalars(select(Dataset).where(old).order_by(Dataset.id)).all()
    for dataset in found:
        _hold(session, dataset)
        late = dataset.checked_at is not None and dataset.checked_at < before
        if dataset.state == DatasetState.DRAFT and late:
            _delete_rows(session, dataset)
            audit.record(session, "delete-old-rows", actor="cairn", at=at, dataset_id=dataset.id)
    return len(found)


def _lock(session: Session, dataset: Dataset) -> None:
    """Lock a dataset that must be a draft."""
    _hold(session, dataset)
    lifecycle.require_draft(dataset)


def _hold(session: Session, dataset: Dataset) -> None:
    """Let no upload and no other change of a dataset happen until this transaction ends."""
    store.wait_for_other_uploads(session, dataset.id)
    ledger.lock(session, dataset.id)
    session.refresh(dataset)


def _delete_rows(session: Session, dataset: Dataset) -> None:
    session.execute(delete(DatasetChunk).where(DatasetChunk.dataset_id == dataset.id))
    dataset.upload = dataset.rows_digest = None
    session.flush()
    faults.reach("draft.emptied")
