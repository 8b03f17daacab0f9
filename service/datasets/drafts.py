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
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self, TypeVar

from pydantic import TypeAdapter
from sqlalchemy import Delete, Select, delete, select, update
from sqlalchemy.orm import Session

from core.data import Stored, Table, domain_from_json
from core.data.base import MAX_RECORDS, whole
from core.privacy import Budget
from service import ledger
from service.datasets import access, lifecycle, reading, view
from service.datasets.columns import TableColumns
from service.datasets.decisions import Decision
from service.datasets.doubts import doubts
from service.datasets.ingest import store
from service.datasets.ingest.chunks import StoredChunk
from service.datasets.ingest.readers.batch import Expected
from service.datasets.periods import accounts, selection, stored
from service.datasets.periods.wire import PeriodBody
from service.datasets.reading import ReadingBody
from service.datasets.wire import Bounds, DatasetBody, DraftChanges
from service.errors import AlreadySealed, CannotSeal, InvalidRequest, NotFound, NotSealed, Retired
from service.ledger import accountants
from service.ledger.charging import WHOLE
from service.operations import audit, faults
from service.operations.signing import SigningKeys
from service.operations.states import DatasetState
from service.operations.tables import Dataset, DatasetChunk, Period, SiteSet

T = TypeVar("T", Dataset, Period)


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
    lifecycle.require_unit(dataset.unit, id_column, domain.rows_per_person)
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


@dataclass(frozen=True)
class Place:
    """Names a draft: a dataset, or a version of its rows or of those of a period."""

    dataset_id: int
    period_id: int = 0

    @classmethod
    def of(cls, dataset: Dataset, period: Period | None) -> Self:
        return cls(dataset.id, 0 if period is None else period.id)

    def read(self, session: Session) -> tuple[Dataset, Period | None]:
        """Read the draft again, as it is now; NotFound or Retired if it was discarded meanwhile."""
        dataset = session.get_one(Dataset, self.dataset_id, populate_existing=True)
        if not self.period_id:
            return dataset, None
        period = session.get(Period, self.period_id, populate_existing=True)
        if period is None:
            lifecycle.require_not_retired(dataset)
            raise NotFound(f"this draft of {dataset.name} was discarded", next_step="Begin it again.")
        return dataset, period


def store_rows(
    session: Session,
    place: Place,
    expected: Expected,
    chunks: Iterable[StoredChunk],
    report: dict[str, Any],
    *,
    actor: str,
    at: datetime,
) -> dict[str, Any]:
    """Store the rows of a draft in place of those it has, in one transaction; return the report as shown.

    Uploads to one dataset wait for each other; other transactions wait only for the last statements.
    """
    store.wait_for_other_uploads(session, place.dataset_id)
    lifecycle.require_draft(*place.read(session))
    session.execute(_of_draft(place))
    store.store(session, place.dataset_id, place.period_id, chunks)
    ledger.lock(session, place.dataset_id)
    dataset, period = place.read(session)
    lifecycle.require_draft(dataset, period)
    if Expected.of(dataset) != expected:
        raise InvalidRequest(f"{dataset.name} was edited during the upload; upload again", status=409)
    rows = _rows(dataset, period)
    rows.upload, rows.rows_digest = report, None
    _look(dataset, period, at)
    if dataset.state == DatasetState.DRAFT:
        dataset.reading = dataset.reading or reading.stored(None)
    about = {"format": report["format"], **_named(period)}
    audit.record(session, "upload", actor=actor, at=at, dataset_id=dataset.id, **about)
    session.flush()
    faults.reach("upload.stored")
    shown = view.report_on(dataset, period)
    assert shown is not None  # it was just stored
    return shown


def bind_rows(session: Session, place: Place, keys: SigningKeys) -> None:
    """Record the keyed digest of the rows that a draft has, in the transaction that stores them."""
    dataset, period = place.read(session)
    _rows(dataset, period).rows_digest = store.rows_digest(session, dataset.id, place.period_id, keys)


def note_look(session: Session, place: Place, *, actor: str, at: datetime) -> None:
    """Record that the owner has seen a report on rows of a draft, though none were stored."""
    ledger.lock(session, place.dataset_id)
    dataset, period = place.read(session)
    rows = _rows(dataset, period)
    if rows.state == DatasetState.DRAFT and rows.upload is None:
        _look(dataset, period, at)
        about = _named(period)
        audit.record(session, "look-at-rows", actor=actor, at=at, dataset_id=dataset.id, **about)


def _rows(dataset: Dataset, period: Period | None) -> Dataset | Period:
    """Return what holds state and report of the rows."""
    return dataset if period is None else period


def _look(dataset: Dataset, period: Period | None, at: datetime) -> None:
    """Record that the owner has seen a report; public facts of a draft dataset count from then on."""
    for each in (dataset, period):
        if each is not None and each.state == DatasetState.DRAFT:
            each.checked_at = at


def _named(period: Period | None) -> dict[str, Any]:
    """Return what an event of the audit log says of a period, or of a version of all rows."""
    if period is None:
        return {}
    label = {"period": period.label} if period.label else {}
    return {**label, "version": period.version}


def _title(dataset: Dataset, period: Period | None) -> str:
    """Return what a message calls the rows of a dataset or a period."""
    return f"{period.label} of {dataset.name}" if period and period.label else dataset.name


def _of_draft(place: Place) -> Delete:
    """Return the statement that deletes the rows of a draft."""
    of_place = (DatasetChunk.dataset_id == place.dataset_id, DatasetChunk.period_id == place.period_id)
    return delete(DatasetChunk).where(*of_place)


def throw_away_rows(session: Session, dataset: Dataset, *, actor: str, at: datetime) -> None:
    """Delete the rows of a draft and the report on them."""
    _lock(session, dataset)
    _delete_rows(session, dataset)
    audit.record(session, "throw-away-rows", actor=actor, at=at, dataset_id=dataset.id)


def discard(session: Session, dataset: Dataset, *, actor: str, at: datetime) -> None:
    """Delete a draft; its name can be used again. Its ledger stays, since nothing of a ledger is deleted."""
    _lock(session, dataset)
    _delete_rows(session, dataset)
    session.execute(delete(Period).where(Period.dataset_id == dataset.id))
    audit.record(
        session, "discard-draft", actor=actor, at=at, dataset_id=dataset.id, name=dataset.name,
        looked_at_rows=dataset.checked_at is not None,
    )  # fmt: skip
    dataset.name, dataset.description = f"{access.NAMELESS}{dataset.id}", ""
    dataset.state, dataset.retired_at = DatasetState.RETIRED, at


def seal(
    session: Session,
    dataset: Dataset,
    period: Period | None = None,
    *,
    confirmed: Collection[str] = (),
    sha256: str | None = None,
    actor: str,
    at: datetime,
) -> None:
    """Seal a draft with the rows it has; CannotSeal when it has none, or when they look wrong.

    With `sha256`, repeating it is safe, and rows that replaced those of the report are not sealed. The first
    period to be sealed seals the dataset's public facts, too.
    """
    rows = _rows(dataset, period)
    _wait(session, dataset, period)
    _delete_replaced(session, dataset, period)
    try:
        _lock(session, dataset, period)
    except AlreadySealed:
        if sha256 is not None and rows.upload and rows.upload["sha256"] == sha256:
            return
        raise
    if period is None and dataset.unit is not None:
        raise InvalidRequest(f"{dataset.name} has periods", status=409, next_step="Seal one of them.")
    report = _sealable(dataset, period, confirmed, sha256)
    columns = [{**column, "examples": []} for column in report["columns"]]
    rows.upload = {**report, "columns": columns, "bad_row_lines": []}  # copies of values go with the draft
    if period is not None:
        _make_room(session, dataset, period, report["rows"], at)
    rows.state, rows.sealed_at = DatasetState.SEALED, at
    if period is not None and period.version == 1:
        if dataset.state == DatasetState.DRAFT:
            dataset.state, dataset.sealed_at = DatasetState.SEALED, at
        session.flush()
        accounts.open_for(session, dataset, period, actor=actor)
    about = {"revised_after_a_look": view.revised(dataset), **_named(period)}
    audit.record(session, "seal", actor=actor, at=at, dataset_id=dataset.id, **about)
    session.flush()
    faults.reach("seal.updated")


def _make_room(session: Session, dataset: Dataset, period: Period, rows: int, at: datetime) -> None:
    """End what a correction replaces; CannotSeal if periods would hold more than sums are exact for."""
    others = [each for each in selection.sealed(session, dataset.id) if each.label != period.label]
    held = sum(each.upload["rows"] for each in others if each.upload is not None)
    if held + rows > MAX_RECORDS:
        raise CannotSeal(
            f"a dataset holds at most {MAX_RECORDS:,} records, and the other periods of {dataset.name} hold "
            f"{held:,}",
            next_step="Create another dataset for further periods.",
            doubts=[],
        )
    if period.version > 1:
        _supersede(session, dataset, period, at)


def _delete_replaced(session: Session, dataset: Dataset, period: Period | None) -> None:
    """Delete the rows of the version that a correction replaces; a refusal to seal it brings them back.

    This comes before the lock of the account, for which analysts' requests wait: they would notice how long
    it takes, which depends on how many rows there are.
    """
    if period is not None and period.version > 1 and period.state == DatasetState.DRAFT:
        replaced = _sealed_version(session, dataset, period.label)
        session.execute(_of_draft(Place.of(dataset, replaced)))


def _supersede(session: Session, dataset: Dataset, period: Period, at: datetime) -> None:
    """End the version that a correction replaces; its account goes on.

    Refused while jobs are shown as running on them: a job ends on the version that it began with. The caller
    holds the dataset's account, as every claim of a job on periods does, so no job begins meanwhile.
    """
    if selection.is_running(session, dataset.id, period.label, at):
        raise CannotSeal(
            f"jobs are running on {_title(dataset, period)}",
            next_step="Wait until they have ended, or end them, and seal again.",
            doubts=[],
        )
    replaced = _sealed_version(session, dataset, period.label)
    earlier = _rows(dataset, replaced)
    earlier.rows_digest = None
    if replaced is not None:
        replaced.state = DatasetState.RETIRED
    if not period.label:
        dataset.upload, dataset.reading = period.upload, dataset.reading or reading.stored(None)
    period.epsilon_units, period.delta_units = earlier.epsilon_units, earlier.delta_units
    session.flush()


def _sealed_version(session: Session, dataset: Dataset, label: str) -> Period | None:
    """Return the sealed version of a period; None, where that is the first one of all rows of a dataset."""
    return next(iter(selection.sealed(session, dataset.id, [label])), None)


def _sealable(
    dataset: Dataset, period: Period | None, confirmed: Collection[str], sha256: str | None
) -> dict[str, Any]:
    """Return the report on rows that may be sealed; CannotSeal if there are none, or if they look wrong."""
    report = _rows(dataset, period).upload
    name = _title(dataset, period)
    if report is None or report["rows"] == 0:
        raise CannotSeal(
            f"{name} has no rows to seal",
            next_step="Upload a file with usable rows first.",
            doubts=[],
        )
    if dataset.reading is None and period is None:
        raise CannotSeal(
            f"the rows of {name} were read by an earlier version",
            next_step="Upload the file again.",
            doubts=[],
        )
    if sha256 not in (None, report["sha256"]):
        raise CannotSeal(
            f"other rows have been uploaded to {name}",
            next_step="Read the report on them first.",
            doubts=[],
        )
    size = access.domain_of(dataset).size if period is None else period.size
    left = [each for each in doubts(report, size) if each.confirm not in confirmed]
    if left:
        words = sorted({each.confirm for each in left})
        raise CannotSeal(
            "; ".join(each.detail for each in left),
            next_step=f"If that is correct, confirm {' and '.join(words)}; otherwise upload other rows.",
            doubts=[{"confirm": each.confirm, "detail": each.detail} for each in left],
        )
    return report


def add_period(session: Session, dataset: Dataset, body: PeriodBody, *, by: Decision) -> Period:
    """Add a period without rows to a dataset that has periods; InvalidRequest if its label is taken.

    SecondNeeded for a budget of its own above what the curator may allow alone.
    """
    _hold(session, dataset)
    lifecycle.require_not_retired(dataset)
    if dataset.unit is None:
        raise InvalidRequest(
            f"{dataset.name} has no periods",
            status=409,
            next_step="Create a dataset with a unit of privacy: it has periods.",
        )
    if body.budget is not None and not dataset.has_accounts_of_periods:
        raise InvalidRequest(
            f"all periods of {dataset.name} share one budget", next_step="Leave the budget out."
        )
    sizes = _declared_sizes(session, dataset)
    if body.label in sizes:
        raise InvalidRequest(
            f"{dataset.name} has a period {body.label}", status=409, next_step="Choose another label."
        )
    size = whole(body.size or access.domain_of(dataset).size, "size", 1, MAX_RECORDS)
    if sum(sizes.values()) + size > MAX_RECORDS:
        raise InvalidRequest(
            f"the sizes of all periods of a dataset add up to at most {MAX_RECORDS:,}, and {dataset.name} "
            f"declares {sum(sizes.values()):,} already",
            next_step="Declare a smaller size, or create another dataset for further periods.",
        )
    declared = Budget(dataset.epsilon_units, dataset.delta_units)
    budget = declared if body.budget is None else Budget.of(body.budget.epsilon, body.budget.delta)
    accountants.get(dataset.accountant, budget).total  # noqa: B018  refuses what the accountant does not support
    if dataset.has_accounts_of_periods:
        by.require(budget, "a total", lifecycle.CREATE_SMALLER)
    period = Period(
        dataset_id=dataset.id,
        label=body.label,
        version=1,
        size=size,
        epsilon_units=budget.epsilon_units,
        delta_units=budget.delta_units,
        state=DatasetState.DRAFT,
        created_at=by.at,
    )
    session.add(period)
    about = {"size": period.size, **_named(period), **accountants.declared(budget)}
    audit.record(session, "add-period", actor=by.actor, at=by.at, dataset_id=dataset.id, **about)
    session.flush()
    return period


def _declared_sizes(session: Session, dataset: Dataset) -> dict[str, int]:
    """Return the declared size of each period by its label; every version of a label has the same."""
    found = session.execute(select(Period.label, Period.size).where(Period.dataset_id == dataset.id))
    return {each.label: each.size for each in found}


def correct(session: Session, dataset: Dataset, label: str, *, actor: str, at: datetime) -> None:
    """Begin a correction of sealed rows: a draft of their next version, of the same declared size.

    `label`: of the period; empty for a dataset without periods. A correction that was begun before goes on.
    """
    _hold(session, dataset)
    lifecycle.require_sealed(dataset)
    if label == WHOLE and dataset.unit is not None:
        raise InvalidRequest(f"{dataset.name} has periods", status=409, next_step="Correct one of them.")
    if label in stored.corrections(session, dataset.id):
        return
    period = _sealed_version(session, dataset, label)
    if label != WHOLE and period is None:
        raise NotSealed(f"{label} of {dataset.name} is a draft", next_step="Upload other rows to it.")
    declared = _rows(dataset, period)
    correction = Period(
        dataset_id=dataset.id,
        label=label,
        version=1 + (period.version if period else 1),
        size=period.size if period else access.domain_of(dataset).size,
        epsilon_units=declared.epsilon_units,
        delta_units=declared.delta_units,
        state=DatasetState.DRAFT,
        created_at=at,
    )
    session.add(correction)
    audit.record(session, "correct", actor=actor, at=at, dataset_id=dataset.id, **_named(correction))
    session.flush()


def discard_period(session: Session, dataset: Dataset, period: Period, *, actor: str, at: datetime) -> None:
    """Delete the draft of a period, whose label can be used again, or of a correction, with its rows."""
    _wait(session, dataset, period)
    lifecycle.require_draft(dataset, period)
    session.execute(_of_draft(Place.of(dataset, period)))  # before the account's lock, as in a correction
    _lock(session, dataset, period)
    looked = period.checked_at is not None
    about = {"looked_at_rows": looked, **_named(period)}
    audit.record(session, "discard-period", actor=actor, at=at, dataset_id=dataset.id, **about)
    session.delete(period)
    session.flush()


def delete_old_rows(session: Session, *, before: datetime, at: datetime) -> int:
    """Delete the rows of drafts that were uploaded before a moment and never sealed."""
    found = [Place(each.id) for each in session.scalars(_old(Dataset, before))]
    found += [Place(each.dataset_id, each.id) for each in session.scalars(_old(Period, before))]
    for place in found:
        store.wait_for_other_uploads(session, place.dataset_id)
        try:
            dataset, period = place.read(session)
        except (NotFound, Retired):
            continue  # discarded meanwhile
        rows = _rows(dataset, period)
        late = rows.checked_at is not None and rows.checked_at < before
        if rows.state == DatasetState.DRAFT and late:
            session.execute(_of_draft(place))
            ledger.lock(session, dataset.id)
            rows.upload = None
            about = _named(period)
            audit.record(session, "delete-old-rows", actor="cairn", at=at, dataset_id=dataset.id, **about)
    return len(found)


def _old(kind: type[T], before: datetime) -> Select[T]:
    """Return the query of drafts whose rows were uploaded before a moment."""
    late = (kind.state == DatasetState.DRAFT) & (kind.checked_at < before) & kind.upload.is_not(None)
    return select(kind).where(late).order_by(kind.id)


def _lock(session: Session, dataset: Dataset, period: Period | None = None) -> None:
    """Lock a dataset or a period that must be a draft."""
    _hold(session, dataset, period)
    lifecycle.require_draft(dataset, period)


def _hold(session: Session, dataset: Dataset, period: Period | None = None) -> None:
    """Let no upload and no other change of a dataset happen until this transaction ends."""
    _wait(session, dataset, period)
    ledger.lock(session, dataset.id)
    Place.of(dataset, period).read(session)


def _wait(session: Session, dataset: Dataset, period: Period | None = None) -> None:
    """Let no rows of a dataset be stored or deleted elsewhere until this transaction ends."""
    store.wait_for_other_uploads(session, dataset.id)
    Place.of(dataset, period).read(session)


def _delete_rows(session: Session, dataset: Dataset) -> None:
    session.execute(delete(DatasetChunk).where(DatasetChunk.dataset_id == dataset.id))
    dataset.upload = dataset.rows_digest = None
    drafts_of_periods = update(Period).where(Period.dataset_id == dataset.id)
    session.execute(drafts_of_periods.values(upload=None, rows_digest=None))
    session.flush()
    faults.reach("draft.emptied")
