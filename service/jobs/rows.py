"""The only reader of chunks: a data source over the database, with a bounded cache on the local disk.

Imported by `execution` alone. A loader travels by value to whatever process runs its task, and reads
there: from the cache by the chunk's digest, else from the database, whose bytes are checked against it. It
carries no address and no password: a process of a cluster opens the database of its own settings.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import tempfile
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.data import Chunk, ChunkLoader, Domain, domain_from_json
from core.views import limit_cache
from service.datasets.ingest.chunks import decode_payload
from service.operations import faults
from service.operations.database import Database
from service.operations.settings import Settings
from service.operations.tables import Dataset, DatasetChunk

__all__ = ["ChunkCache", "DatabaseSource", "RowsGone", "chunks_read", "close_databases"]


class RowsGone(Exception):
    """The rows are not there any more, or not as they were stored."""


@dataclass(frozen=True)
class ChunkCache:
    """Files of encoded rows named by dataset and digest, in a directory that only this user reads."""

    directory: Path
    most_bytes: int

    def get(self, dataset: int, digest: str) -> bytes | mmap.mmap | None:
        """A chunk's bytes, mapped (what a pass does not need is never read); None where it is not kept."""
        path = self._path(dataset, digest)
        try:
            with path.open("rb") as file:
                os.utime(file.fileno())
                if os.fstat(file.fileno()).st_size == 0:
                    return b""
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError:
            return None

    def put(self, dataset: int, digest: str, payload: bytes) -> None:
        """Keep a chunk if there is room or can be made; a full disk is no fault.

        Room is made at the cost of other datasets, those first that were not used for longest. A dataset that
        is larger than the cache keeps what it has: each pass would else throw out what the next one needs.
        """
        if len(payload) > self.most_bytes:
            return
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self._make_room(dataset, len(payload)):
                return
            with tempfile.NamedTemporaryFile(dir=self.directory, prefix="new-", delete=False) as file:
                file.write(payload)
            faults.reach("execute.cached")
            os.replace(file.name, self._path(dataset, digest))
        except OSError:
            return

    def _make_room(self, dataset: int, size: int) -> bool:
        entries = []
        for path in self.directory.iterdir():
            try:
                facts = path.stat()
            except OSError:
                continue
            entries.append((facts.st_mtime_ns, facts.st_size, path))
        held = sum(each for _, each, _ in entries)
        for _, each, path in sorted(entries, key=lambda entry: entry[0]):
            if held + size <= self.most_bytes:
                break
            if not path.name.startswith(f"{dataset}-"):
                path.unlink(missing_ok=True)
                held -= each
        return held + size <= self.most_bytes

    def _path(self, dataset: int, digest: str) -> Path:
        return self.directory / f"{dataset}-{digest}.chunk"


class _Tally:
    """Chunks that this process has read since somebody last asked, for operators."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._read: dict[tuple[str, str], int] = {}

    def add(self, source: str, size: int, microseconds: int) -> None:
        with self._lock:
            for name, amount in (("chunks", 1), ("chunk_bytes", size), ("chunk_microseconds", microseconds)):
                self._read[name, source] = self._read.get((name, source), 0) + amount

    def take(self) -> dict[tuple[str, str], int]:
        with self._lock:
            taken, self._read = self._read, {}
        return taken


_tally = _Tally()


def chunks_read() -> dict[tuple[str, str], int]:
    """How many chunks, bytes and microseconds of reading there were in this process since the last call."""
    return _tally.take()


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

    @property
    def key(self) -> Hashable:
        """Names the content; the ordinal is part of it, for statistics that depend on the record's number."""
        return (self.digest, self.first)

    def __call__(self) -> Chunk:
        begun = time.perf_counter_ns()
        shelf = _shelf(self.database)
        source = "cache"
        payload = shelf.cache.get(self.dataset_id, self.digest)
        if payload is None:
            source = "database"
            payload = self._fetch(shelf.database)
            faults.reach("execute.fetched")
            shelf.cache.put(self.dataset_id, self.digest, payload)
        _tally.add(source, len(payload), (time.perf_counter_ns() - begun) // 1000)
        rows = decode_payload(self.kind, memoryview(payload), self.dimension)
        return Chunk(rows, self.first, self.key)

    def _fetch(self, database: Database) -> bytes:
        query = select(DatasetChunk.payload).where(DatasetChunk.id == self.chunk_id)
        payload = database.patiently(lambda session: session.scalar(query))
        if payload is None or hashlib.sha256(payload).hexdigest() != self.digest:
            raise RowsGone("a chunk is missing or damaged")
        return payload


class DatabaseSource:
    """The chunks of a sealed dataset."""

    def __init__(self, database: Database, dataset_id: int, cache: ChunkCache):
        self._domain, rows = database.patiently(lambda session: _facts(session, dataset_id))
        if not rows:
            raise RowsGone("the dataset has no chunks")
        name = database.engine.url.render_as_string(hide_password=True)
        _keep_shelf(name, database.url, cache)
        kind, dimension = self._domain.kind, self._domain.dimension
        self._loaders: list[ChunkLoader] = [
            DatabaseChunk(name, dataset_id, number, digest, first, kind, dimension)
            for number, digest, first in rows
        ]

    @property
    def domain(self) -> Domain:
        """The dataset's public domain."""
        return self._domain

    def loaders(self) -> Sequence[ChunkLoader]:
        """One loader per chunk, in order."""
        return self._loaders


def _facts(session: Session, dataset_id: int) -> tuple[Domain, list[tuple[int, str, int]]]:
    """The domain of a dataset, and the id, digest and first record of each of its chunks."""
    dataset = session.get_one(Dataset, dataset_id)
    query = select(DatasetChunk.id, DatasetChunk.digest, DatasetChunk.first_record)
    chunks = query.where(DatasetChunk.dataset_id == dataset_id).order_by(DatasetChunk.ordinal)
    found = [(number, digest, first) for number, digest, first in session.execute(chunks)]
    return domain_from_json(dataset.domain), found


@dataclass(frozen=True)
class _Shelf:
    """Where loaders find chunks in this process: one small pool of connections, and the cache."""

    database: Database
    cache: ChunkCache


_shelves: dict[str, _Shelf] = {}


def _keep_shelf(name: str, url: str, cache: ChunkCache) -> _Shelf:
    held = _shelves.get(name)
    if held is None or held.cache != cache:
        database = Database(url, pool=2) if held is None else held.database
        _shelves[name] = held = _Shelf(database, cache)
    return held


def _shelf(name: str) -> _Shelf:
    """The shelf that a source prepared; in a process of a cluster, the one that its own settings describe."""
    if name in _shelves:
        return _shelves[name]
    settings = Settings()
    limit_cache(settings.view_cache_bytes)
    return _keep_shelf(
        name, settings.database_address(), ChunkCache(settings.cache_directory, settings.cache_bytes)
    )


def close_databases() -> None:
    """Close the connections that loaders opened in this process."""
    while _shelves:
        _shelves.popitem()[1].database.dispose()
