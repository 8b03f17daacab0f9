"""The only reader of chunks: a data source over the database, with a bounded cache on the local disk.

Imported by `execution` alone. A loader travels by value to whatever process runs its task, and reads
there: from the cache by the chunk's digest, else from the database, whose bytes are checked against it.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from core.domain import Domain, domain_from_json
from core.source import Chunk, ChunkLoader
from service import faults
from service.db import Database
from service.tables import Dataset, DatasetChunk
from service.uploads.chunks import decode_payload

__all__ = ["ChunkCache", "DatabaseSource", "RowsGone", "close_databases"]

#: How long a loader goes on asking a database that does not answer.
_PATIENCE_SECONDS = 60.0


class RowsGone(Exception):
    """The rows are not there any more, or not as they were stored."""


@dataclass(frozen=True)
class ChunkCache:
    """Files of encoded rows named by their digest, in a directory that only this user reads."""

    directory: Path
    most_bytes: int

    def get(self, digest: str) -> bytes | None:
        """A chunk's bytes, or None."""
        path = self._path(digest)
        try:
            payload = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        return payload

    def put(self, digest: str, payload: bytes) -> None:
        """Keep a chunk, throwing out those that were not used for longest; a full disk is no fault."""
        if len(payload) > self.most_bytes:
            return
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._make_room(len(payload))
            with tempfile.NamedTemporaryFile(dir=self.directory, prefix="new-", delete=False) as file:
                file.write(payload)
            faults.reach("execute.cached")
            os.replace(file.name, self._path(digest))
        except OSError:
            return

    def _make_room(self, size: int) -> None:
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
                return
            path.unlink(missing_ok=True)
            held -= each

    def _path(self, digest: str) -> Path:
        return self.directory / f"{digest}.chunk"


@dataclass(frozen=True)
class DatabaseChunk:
    """Loads one chunk of a dataset."""

    url: str
    chunk_id: int
    digest: str
    first: int
    kind: str
    dimension: int
    cache: ChunkCache

    @property
    def key(self) -> Hashable:
        """Names the content; the ordinal is part of it, for statistics that depend on the record's number."""
        return (self.digest, self.first)

    def __call__(self) -> Chunk:
        payload = self.cache.get(self.digest)
        if payload is None:
            payload = self._fetch()
            faults.reach("execute.fetched")
            self.cache.put(self.digest, payload)
        return Chunk(decode_payload(self.kind, payload, self.dimension), self.first, self.key)

    def _fetch(self) -> bytes:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        query = select(DatasetChunk.payload).where(DatasetChunk.id == self.chunk_id)
        while True:
            try:
                with _database(self.url).read() as session:
                    payload = session.scalar(query)
                break
            except DBAPIError:
                # The database is away: an accident of the machines, so waiting tells nothing of rows.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
        if payload is None or hashlib.sha256(payload).hexdigest() != self.digest:
            raise RowsGone("a chunk is missing or damaged")
        return payload


class DatabaseSource:
    """The chunks of a sealed dataset."""

    def __init__(self, database: Database, dataset_id: int, cache: ChunkCache):
        with database.read() as session:
            dataset = session.get_one(Dataset, dataset_id)
            self._domain = domain_from_json(dataset.domain)
            rows = session.execute(
                select(DatasetChunk.id, DatasetChunk.digest, DatasetChunk.first_record)
                .where(DatasetChunk.dataset_id == dataset_id)
                .order_by(DatasetChunk.ordinal)
            ).all()
        if not rows:
            raise RowsGone("the dataset has no chunks")
        self._loaders: list[ChunkLoader] = [
            DatabaseChunk(
                database.url, number, digest, first, self._domain.kind, self._domain.dimension, cache
            )
            for number, digest, first in rows
        ]

    @property
    def domain(self) -> Domain:
        """The dataset's public domain."""
        return self._domain

    def loaders(self) -> Sequence[ChunkLoader]:
        """One loader per chunk, in order."""
        return self._loaders


_opened: dict[str, Database] = {}


def _database(url: str) -> Database:
    """One small pool per database and process, also in processes that a cluster started."""
    if url not in _opened:
        _opened[url] = Database(url, pool=2)
    return _opened[url]


def close_databases() -> None:
    """Close the connections that loaders opened in this process."""
    while _opened:
        _opened.popitem()[1].dispose()
