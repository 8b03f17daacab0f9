"""The only reader of chunks: a data source over the database, with a bounded cache on the local disk.

Imported by `execution` alone. A loader travels by value to whatever process runs its task, and reads
there: from the cache by the chunk's digest, else from the database, whose bytes are checked against it. It
carries no address and no password: a process of a cluster opens the database of its own settings.
"""

import hashlib
import math
import mmap
import os
import tempfile
import time
import uuid
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import structlog
from sqlalchemy import select
from sqlalchemy.orm import Session

from core.data import Chunk, ChunkLoader, Ids, Stored, clip_encoded, domain_from_json
from core.views import limit_cache
from service.datasets.ingest.chunks import decode_payload
from service.datasets.periods.selection import PeriodsRead
from service.operations import faults, metrics
from service.operations.database import Database
from service.operations.settings import Settings
from service.operations.tables import Dataset, DatasetChunk

log = structlog.get_logger()

#: Beginning of the temporary names in the cache.
_UNFINISHED = "new-"
#: A temporary file that nobody has written to for this long belongs to a worker that was killed.
_UNFINISHED_SECONDS = 600.0
#: Shortest time between two log lines about a cache that cannot be written.
_WARN_SECONDS = 60.0


class RowsGone(Exception):
    """The rows are not there any more, or not as they were stored."""


@dataclass(frozen=True)
class ChunkCache:
    """Files of encoded rows named by dataset and digest, in a directory that only this user reads."""

    directory: Path
    most_bytes: int

    def get(self, dataset: int, digest: str, source: str) -> bytes | mmap.mmap | None:
        """Return a chunk's bytes, mapped into memory, or None where they are not cached.

        A file whose bytes do not have the digest in its name is deleted. Each process checks a file when a
        source first reads it, and again when it was written to since: to hash it in every pass would take as
        long as the pass. A file that is written to while a task reads it is found by the next task.
        """
        path = self._path(dataset, digest)
        try:
            with path.open("rb") as file:
                identity = _identity(file, source)
                checked = _checked_files.get(path) == identity
                if not checked:
                    os.utime(file.fileno())  # in use: files of other datasets make room first
                    identity = _identity(file, source)
                payload = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if identity.size else b""
        except OSError:
            return None
        if not checked:
            if hashlib.sha256(payload).hexdigest() != digest:
                log.warning("a damaged file of the chunk cache was deleted", dataset=dataset)
                path.unlink(missing_ok=True)
                return None
            _checked_files[path] = identity
        return payload

    def put(self, dataset: int, digest: str, payload: bytes) -> None:
        """Keep a chunk if there is room or can be made; a job continues without, for example on a full disk.

        Room is made at the cost of other datasets, those first that were not used for longest. A dataset that
        is larger than the cache keeps what it has: each pass would else throw out what the next one needs.
        """
        if len(payload) > self.most_bytes:
            return
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self._make_room(dataset, len(payload)):
                self._write(self._path(dataset, digest), payload)
        except OSError as error:
            _warn_of_cache(self.directory, error)

    def _write(self, path: Path, payload: bytes) -> None:
        """Write a file under a temporary name and rename it; nothing is left behind if that fails."""
        with tempfile.NamedTemporaryFile(dir=self.directory, prefix=_UNFINISHED, delete=False) as file:
            try:
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())  # else a power cut may leave the name with other bytes
                faults.reach("execute.cached")
                os.replace(file.name, path)
            except OSError:
                os.unlink(file.name)
                raise

    def _make_room(self, dataset: int, size: int) -> bool:
        entries = []
        for path in self.directory.iterdir():
            with suppress(OSError):  # another worker removed it
                facts = path.stat()
                if path.name.startswith(_UNFINISHED) and time.time() - facts.st_mtime > _UNFINISHED_SECONDS:
                    path.unlink()  # of a worker that was killed
                    continue
                entries.append((facts.st_mtime_ns, facts.st_size, path))
        total = size + sum(each for _, each, _ in entries)
        for _, each, path in sorted(entries):
            if total <= self.most_bytes:
                break
            if not path.name.startswith(f"{dataset}-"):
                path.unlink(missing_ok=True)
                total -= each
        return total <= self.most_bytes

    def _path(self, dataset: int, digest: str) -> Path:
        return self.directory / f"{dataset}-{digest}.chunk"


#: When this process last logged that its cache cannot be written.
_warned_at = -math.inf


def _warn_of_cache(directory: Path, error: OSError) -> None:
    """Log that chunks are not cached, now and then: every chunk of every pass would fail."""
    global _warned_at
    if time.monotonic() - _warned_at > _WARN_SECONDS:
        _warned_at = time.monotonic()
        log.warning("chunks cannot be cached", directory=str(directory), reason=error.strerror)


class _Identity(NamedTuple):
    """The source that reads a file, and what changes when the file is replaced or written to."""

    source: str
    inode: int
    size: int
    written_at: int


def _identity(file: IO[bytes], source: str) -> _Identity:
    facts = os.fstat(file.fileno())
    return _Identity(source, facts.st_ino, facts.st_size, facts.st_mtime_ns)


#: The files of the cache whose digests this process has checked, as they were then.
_checked_files: dict[Path, _Identity] = {}
#: Chunks in which this process found no row outside the domain, as digest, columns and sites.
_clean_chunks: set[tuple[str, int, int | None]] = set()


@dataclass(frozen=True)
class DatabaseChunk:
    """Loads one chunk of a dataset, in whatever process it is called."""

    #: Names the database, without a password; a process that does not know it has one of its own.
    database: str
    dataset_id: int
    chunk_id: int
    digest: str
    first: int
    kind: str
    dimension: int
    site_count: int | None
    #: Names the source, by which each job has the files of the cache checked anew.
    source: str

    @property
    def key(self) -> Hashable:
        """Names the content; the ordinal is part of it, for statistics that depend on the record's number."""
        return (self.digest, self.first)

    def __call__(self) -> Chunk:
        begun = time.perf_counter_ns()
        database, cache = _store(self.database)
        found_in = "cache"
        payload = cache.get(self.dataset_id, self.digest, self.source)
        if payload is None:
            found_in = "database"
            payload = self._fetch(database)
            faults.reach("execute.fetched")
            cache.put(self.dataset_id, self.digest, payload)
        metrics.chunk_read(found_in, self.dataset_id, len(payload), (time.perf_counter_ns() - begun) // 1000)
        rows = decode_payload(self.kind, memoryview(payload), self.dimension)
        return Chunk(self._clipped(rows), self.first, self.key)

    def _clipped(self, rows: Any) -> Any:
        """Clip rows to the domain, whatever was stored; a chunk that needs no clipping is checked once.

        The codes of a table are clipped by the view of a job, column by column.
        """
        if self.kind == "table":
            return rows
        checked = (self.digest, self.dimension, self.site_count)
        if checked in _clean_chunks:
            return rows
        clipped = clip_encoded(rows, self.site_count)
        if clipped is rows:
            _clean_chunks.add(checked)
        return clipped

    def _fetch(self, database: Database) -> bytes:
        query = select(DatasetChunk.payload).where(DatasetChunk.id == self.chunk_id)
        payload = database.patiently(lambda session: session.scalar(query))
        if payload is None or hashlib.sha256(payload).hexdigest() != self.digest:
            raise RowsGone("a chunk is missing or damaged")
        return payload


class DatabaseSource:
    """The chunks of a sealed dataset, or of some of its periods one after the other."""

    def __init__(
        self, database: Database, dataset_id: int, cache: ChunkCache, periods: PeriodsRead | None = None
    ):
        self._domain, rows = database.patiently(lambda session: _facts(session, dataset_id, periods))
        if not rows:
            raise RowsGone("the dataset has no chunks")
        name = database.engine.url.render_as_string(hide_password=True)
        _open_store(name, database.url, cache)
        kind, dimension = self._domain.kind, self._domain.dimension
        site_count = self._domain.count if isinstance(self._domain, Ids) else None
        source = uuid.uuid4().hex
        self._loaders: list[ChunkLoader] = [
            DatabaseChunk(name, dataset_id, number, digest, first, kind, dimension, site_count, source)
            for number, digest, first in rows
        ]

    @property
    def domain(self) -> Stored:
        """The dataset's public domain."""
        return self._domain

    def loaders(self) -> Sequence[ChunkLoader]:
        """One loader per chunk, in order."""
        return self._loaders


def _facts(
    session: Session, dataset_id: int, periods: PeriodsRead | None
) -> tuple[Stored, list[tuple[int, str, int]]]:
    """The domain of a dataset, or of periods of it, and of each chunk the id, digest and first record."""
    declared = domain_from_json(session.get_one(Dataset, dataset_id).domain)
    ids = [0] if periods is None else [each.id for each in periods.read]
    query = select(DatasetChunk.id, DatasetChunk.digest, DatasetChunk.rows, DatasetChunk.period_id)
    of_periods = query.where(DatasetChunk.dataset_id == dataset_id, DatasetChunk.period_id.in_(ids))
    stored = session.execute(of_periods.order_by(DatasetChunk.ordinal)).all()
    if {each.period_id for each in stored} != set(ids):
        raise RowsGone("a period has no chunks")
    found, first = [], 0
    for each in stored:  # records are numbered through, in whatever order the periods were uploaded
        found.append((each.id, each.digest, first))
        first += each.rows
    return declared if periods is None else periods.domain(declared), found


#: Connections and cache of the loaders in this process, by the name of their database.
_stores: dict[str, tuple[Database, ChunkCache]] = {}


def _open_store(name: str, url: str, cache: ChunkCache) -> None:
    database = _stores[name][0] if name in _stores else Database(url, pool=2)
    _stores[name] = database, cache


def _store(name: str) -> tuple[Database, ChunkCache]:
    """Return what a source has opened; a process of a cluster opens what its own settings describe."""
    if name not in _stores:
        settings = Settings()
        limit_cache(settings.view_cache_bytes)
        cache = ChunkCache(settings.cache_directory, settings.cache_bytes)
        _open_store(name, settings.database_address(), cache)
    return _stores[name]


def close_databases() -> None:
    """Close the connections that loaders opened in this process."""
    while _stores:
        _stores.popitem()[1][0].dispose()
