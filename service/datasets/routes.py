"""Routes of datasets: create, edit, list, upload, seal, correct, retire."""

import base64
import binascii
import re
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Literal, Self

from anyio import from_thread, to_thread
from fastapi import APIRouter, Depends, Header, Path, Query, Request
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from service.datasets import access, capacity, decisions, drafts, lifecycle, ownership, view
from service.datasets.ingest.encode import Upload, encode
from service.datasets.ingest.readers.batch import Expected
from service.datasets.ingest.spool import FORMATS, Spool
from service.datasets.periods import stored
from service.datasets.wire import (
    DatasetBody,
    DatasetFacts,
    DatasetPage,
    DraftChanges,
    OwnerBody,
    Retirement,
    SealBody,
    UploadReport,
)
from service.errors import BadRows, InvalidRequest
from service.http.context import Context, Services
from service.http.documentation import file_body, links
from service.http.json_limits import StrictRoute
from service.http.limits import Pace
from service.http.paging import Paging
from service.http.problems import answers
from service.http.route_limits import RouteLimits, limited
from service.http.wire import NAME_PATTERN
from service.ledger.charging import WHOLE
from service.operations import faults, tracing
from service.operations.states import DatasetState, Role
from service.operations.tables import Dataset, Period
from service.people.access_events import recorded
from service.people.authentication import Caller, Curator, FreeCurator, Reader

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=StrictRoute)
DatasetName = Annotated[str, Path(pattern=NAME_PATTERN, description="name of a dataset")]

_WRITE_AT = 1 << 20
_CSV = {"example": "petal_length,petal_width\n1.4,0.2\n4.7,1.4\n"}
#: Limits of a call that takes a file with rows.
UPLOAD = RouteLimits(longest_body=attrgetter("max_upload_bytes"), streams_body=True)
#: The body of a call that takes any file with rows.
FILE = file_body(_CSV, *(kind for kind in sorted(FORMATS) if kind != "text/csv"))


def _digest_of(header: str | None) -> str | None:
    """Return the SHA-256 of a Content-Digest header, in hexadecimal."""
    if header is None:
        return None
    match = re.search(r"(?:^|,)\s*sha-256=:([A-Za-z0-9+/=]+):", header)
    try:
        digest = base64.b64decode(match[1], validate=True) if match else b""
    except binascii.Error:
        digest = b""
    if len(digest) != 32:
        raise InvalidRequest("Content-Digest must be `sha-256=:<base64 of the SHA-256 of the body>:`")
    return digest.hex()


def _announced(
    sha256: Annotated[
        str | None, Query(pattern="^[0-9a-f]{64}$", description="SHA-256 of the body, in hexadecimal")
    ] = None,
    content_digest: Annotated[
        str | None, Header(max_length=200, description="RFC 9530: `sha-256=:<base64>:`")
    ] = None,
) -> str | None:
    return sha256 or _digest_of(content_digest)


#: SHA-256 of the body of an upload, if its sender announces it.
AnnouncedDigest = Annotated[str | None, Depends(_announced)]
OnBadRow = Annotated[Literal["refuse", "drop"], Query(description="refuse the upload, or leave bad rows out")]


@router.post("", status_code=201, responses={**answers("second-needed"), **links(201, "dataset")})
def create_dataset(body: DatasetBody, caller: FreeCurator, context: Services) -> DatasetFacts:
    """Describe a new dataset: columns, bounds, size and budget, all known without looking at the rows."""
    with context.database.write() as session:
        alone = decisions.alone(context.settings)
        dataset = lifecycle.create(session, body, owner=caller, at=context.clock.now(), alone=alone)
        session.flush()
        return DatasetFacts.model_validate(view.facts(session, access.Right(caller, dataset)))


@router.get("", responses=answers(), openapi_extra=recorded("read-reports", only=Role.CURATOR))
def list_datasets(
    caller: Reader,
    context: Services,
    paging: Paging,
    state: Annotated[DatasetState | None, Query(description="only datasets in this state")] = None,
) -> DatasetPage:
    """List datasets that you own, or that are granted to you; auditors see all of them."""
    with context.database.read() as session:
        found = access.page(session, caller, after=paging.after(str) or "", limit=paging.fetch, state=state)
        shown, following = paging.cut(found, lambda right: right.dataset.name)
        items = [view.facts(session, right) for right in shown]
    return DatasetPage.model_validate({"items": items, "next": following})


@router.get("/{name}", responses=answers(), openapi_extra=recorded("read-report", only=Role.CURATOR))
def get_dataset(name: DatasetName, caller: Reader, context: Services) -> DatasetFacts:
    """Get a dataset's public facts, its remaining budget and your cap."""
    with context.database.read() as session:
        return DatasetFacts.model_validate(view.facts(session, access.find(session, name, caller)))


@router.patch("/{name}", responses=answers("already-sealed", "retired"))
def edit_draft(name: DatasetName, body: DraftChanges, caller: Curator, context: Services) -> DatasetFacts:
    """Change public facts of a draft. Rows that are there are thrown away, unless only the size changes.

    Facts that are changed after a look at rows are marked as such, for everybody and for good.
    """
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        drafts.edit(session, dataset, body, actor=caller.name, at=context.clock.now())
        return DatasetFacts.model_validate(view.facts(session, access.Right(caller, dataset)))


@router.delete("/{name}", status_code=204, responses=answers("already-sealed", "retired"))
def discard_draft(name: DatasetName, caller: Curator, context: Services) -> None:
    """Delete a draft with its rows; its name can be used again."""
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        drafts.discard(session, dataset, actor=caller.name, at=context.clock.now())


@router.delete("/{name}/data", status_code=204, responses=answers("already-sealed", "retired"))
def throw_away_data(name: DatasetName, caller: Curator, context: Services) -> None:
    """Delete the rows of a draft, or a correction that was begun, and the report on them."""
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        correction, now = _correction(session, dataset), context.clock.now()
        if correction is None:
            drafts.throw_away_rows(session, dataset, actor=caller.name, at=now)
        else:
            drafts.discard_period(session, dataset, correction, actor=caller.name, at=now)


@router.post("/{name}/correction", status_code=201, responses=answers("not-sealed", "retired"))
def correct_dataset(name: DatasetName, caller: Curator, context: Services) -> DatasetFacts:
    """Begin a correction of a sealed dataset; then upload the corrected rows and seal them.

    Sealing them deletes the rows that are there. What was charged stays charged. A correction that was begun
    before goes on.
    """
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        drafts.correct(session, dataset, WHOLE, actor=caller.name, at=context.clock.now())
        return DatasetFacts.model_validate(view.facts(session, access.Right(caller, dataset)))


def _correction(session: Session, dataset: Dataset) -> Period | None:
    """Return the draft of a correction of a dataset without periods, if one was begun."""
    return stored.corrections(session, dataset.id).get(WHOLE)


@router.post("/{name}/seal", responses=answers("already-sealed", "retired", "cannot-seal"))
def seal_dataset(name: DatasetName, body: SealBody, caller: Curator, context: Services) -> DatasetFacts:
    """Seal a draft, or a correction, with the rows it has; jobs can then run on them.

    Doubts about the rows (many left out, many outside the bounds, another number of rows than declared)
    must be confirmed. A dataset without rows cannot be sealed.
    """
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        drafts.seal(
            session,
            dataset,
            _correction(session, dataset),
            confirmed=body.confirm,
            sha256=body.sha256,
            actor=caller.name,
            at=context.clock.now(),
        )
        facts = DatasetFacts.model_validate(view.facts(session, access.Right(caller, dataset)))
    faults.reach("seal.committed")
    context.database.empty_log()  # an upload has made it as large as the rows
    return facts


@router.post("/{name}/retire", responses=answers())
def retire_dataset(name: DatasetName, caller: Curator, context: Services) -> Retirement:
    """Delete a dataset's rows permanently and keep its ledger. Queued jobs are cancelled and not charged."""
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        withdrawn = lifecycle.retire(session, dataset, actor=caller.name, at=context.clock.now())
    return Retirement(state="retired", voided_jobs=withdrawn)


@router.post("/{name}/owner", status_code=204, responses=answers())
def hand_dataset_over(name: DatasetName, body: OwnerBody, caller: Curator, context: Services) -> None:
    """Hand a dataset over to another curator, who owns it from now on, with its grants and its ledger."""
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        ownership.hand_over(session, dataset, body.curator, actor=caller.name, at=context.clock.now())


@router.put(
    "/{name}/data",
    responses=answers("already-sealed", "retired", "bad-format", "bad-rows", "digest-mismatch", "too-large"),
    openapi_extra=FILE,
)
@limited(UPLOAD)
async def upload_data(
    request: Request,
    name: DatasetName,
    caller: Curator,
    context: Services,
    announced: AnnouncedDigest,
    on_bad_row: OnBadRow = "refuse",
) -> UploadReport:
    """Upload the rows of a draft, or of a correction, in place of those it has, and get a report on them.

    Nothing is stored unless everything is good. No job can run before the rows are sealed. With the SHA-256
    announced, repeating an upload whose answer was lost is safe: the answer is given again.
    """
    draft = await run_in_threadpool(_find_draft, context, name, caller, announced)
    return await take_rows(request, context, caller, draft, drop_bad=on_bad_row == "drop")


@dataclass(frozen=True)
class Draft:
    """A dataset, a period or a correction that takes rows, or the report on those that it holds already."""

    dataset: Dataset
    period: Period | None = None
    #: SHA-256 of the file, if it was announced.
    announced: str | None = None
    earlier: dict[str, Any] | None = None

    @classmethod
    def of(cls, dataset: Dataset, period: Period | None, announced: str | None) -> Self:
        """Return the draft; AlreadySealed or Retired unless it is one, or holds the announced file."""
        rows = dataset if period is None else period
        if rows.state == DatasetState.SEALED and rows.upload and announced == rows.upload["sha256"]:
            return cls(dataset, period, announced, rows.upload)
        lifecycle.require_draft(dataset, period)
        return cls(dataset, period, announced)


async def take_rows(
    request: Request, context: Context, caller: Caller, draft: Draft, *, drop_bad: bool
) -> UploadReport:
    """Receive a file, store its rows in a draft, and return the report on them."""
    if draft.earlier is not None:
        return UploadReport.model_validate(draft.earlier)
    settings = context.settings
    with Spool(settings.spool_directory, settings.max_upload_bytes) as spool:
        with tracing.span("receive"):
            await receive(request, spool, Pace(settings))
        faults.reach("upload.received")
        spool.check(draft.announced)
        content_type = request.headers.get("content-type", "")
        upload = Upload(spool, content_type, Expected.of(draft.dataset), settings, drop_bad)
        store = partial(_store, context, draft, upload, caller, request)
        report = await to_thread.run_sync(store, limiter=context.uploads)
    return UploadReport.model_validate(report)


def _find_draft(context: Context, name: str, caller: Caller, announced: str | None) -> Draft:
    with context.database.read() as session:
        dataset = access.find(session, name, caller).dataset
        correction = _correction(session, dataset)
    if dataset.unit is not None:
        raise InvalidRequest(
            f"{name} has periods", status=409, next_step="Add one, and upload its rows to it."
        )
    return Draft.of(dataset, correction, announced)


async def receive(request: Request, spool: Spool, pace: Pace) -> None:
    """Spool the body to disk in large pieces, off the event loop."""
    pending: list[bytes] = []
    more = True
    while more:
        message = await pace.next(request.receive)
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        pending.append(message.get("body", b""))
        more = message.get("more_body", False)
        if sum(map(len, pending)) >= _WRITE_AT or not more:
            await run_in_threadpool(spool.write, *pending)
            pending = []


def _store(
    context: Context, draft: Draft, upload: Upload, caller: Caller, request: Request
) -> dict[str, Any]:
    """Encode an upload and store it in one transaction."""
    place = drafts.Place.of(draft.dataset, draft.period)
    try:
        with tracing.span("encode"):
            found = encode(upload)
    except BadRows:
        with context.database.write() as session:
            drafts.note_look(session, place, actor=caller.name, at=context.clock.now())
        raise
    with closing(found) as encoded:
        faults.reach("upload.encoded")
        if from_thread.run(request.is_disconnected):
            raise ClientDisconnect
        domain = upload.expected.domain
        with context.database.read() as session:
            limits = capacity.warnings(session, domain, encoded.chunk_file.bytes, context.settings)
        report = encoded.report([*view.warnings(draft.dataset, domain), *limits])
        with tracing.span("store"), context.database.write() as session:
            now = context.clock.now()
            chunks, expected = encoded.chunks(), upload.expected
            shown = drafts.store_rows(session, place, expected, chunks, report, actor=caller.name, at=now)
            drafts.bind_rows(session, place, context.signing_keys)
    faults.reach("upload.committed")
    return shown
