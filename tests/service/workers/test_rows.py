"""Rows from the database and the chunk cache are the stored ones, or none."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select, update

from service.operations.logs import configure
from service.operations.tables import Dataset, DatasetChunk
from service.workers import rows
from service.workers.rows import ChunkCache, DatabaseSource
from tests.support.service import House


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start each test as a new process would: nothing is checked yet."""
    monkeypatch.setattr(rows, "_checked_files", {})
    monkeypatch.setattr(rows, "_clean_chunks", set())


@pytest.fixture
def sealed(small_house: House) -> House:
    small_house.ready()
    return small_house


def source(house: House) -> DatabaseSource:
    with house.database.read() as session:
        number = session.scalars(select(Dataset.id)).one()
    return DatabaseSource(house.database, number, ChunkCache(house.settings.cache_directory, 1 << 30))


def stored(house: House) -> list[bytes]:
    return [np.ascontiguousarray(loader().rows).tobytes() for loader in source(house).loaders()]


@pytest.mark.parametrize("damage", ["emptied", "cut in half", "zeroed", "one bit flipped"])
def test_damaged_file_of_the_cache_is_deleted_and_read_again(
    sealed: House, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = stored(sealed)
    (path,) = sealed.settings.cache_directory.iterdir()
    good = path.read_bytes()
    bad = {
        "emptied": b"",
        "cut in half": good[: len(good) // 2],
        "zeroed": bytes(len(good)),
        "one bit flipped": bytes([good[0] ^ 1]) + good[1:],
    }[damage]
    path.write_bytes(bad)
    monkeypatch.setattr(rows, "_checked_files", {})  # another worker process
    assert stored(sealed) == expected
    assert path.read_bytes() == good


@pytest.mark.parametrize("next_one", ["pass", "job"])
def test_file_zeroed_in_place_under_a_living_worker_is_read_again(sealed: House, next_one: str) -> None:
    reading = source(sealed)

    def read() -> list[bytes]:
        return [np.ascontiguousarray(loader().rows).tobytes() for loader in reading.loaders()]

    expected = read()
    assert read() == expected  # from the cache, mapped and checked
    (path,) = sealed.settings.cache_directory.iterdir()
    facts = path.stat()
    with path.open("r+b") as file:
        file.write(bytes(facts.st_size))
    if next_one == "job":
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # as if the disk had lost it
        reading = source(sealed)
    assert read() == expected


def test_file_of_the_cache_is_hashed_once_by_a_process_for_each_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ChunkCache(tmp_path / "cache", 1 << 20)
    digest = hashlib.sha256(b"rows").hexdigest()
    cache.put(1, digest, b"rows")
    assert bytes(cache.get(1, digest, "first") or b"") == b"rows"
    monkeypatch.setattr("service.workers.rows.hashlib.sha256", lambda _: pytest.fail("hashed again"))
    assert bytes(cache.get(1, digest, "first") or b"") == b"rows"
    with pytest.raises(pytest.fail.Exception):
        cache.get(1, digest, "second")


def test_file_reaches_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def noted(name: str, call: Any) -> Any:
        def noting(*arguments: Any) -> Any:
            calls.append(name)
            return call(*arguments)

        return noting

    monkeypatch.setattr("service.workers.rows.os.fsync", noted("fsync", os.fsync))
    monkeypatch.setattr("service.workers.rows.os.replace", noted("replace", os.replace))
    ChunkCache(tmp_path, 1 << 20).put(1, "0" * 64, b"rows")
    assert calls == ["fsync", "replace"]


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Let every write beyond a few bytes fail, as on a disk without room."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_no_files_behind_and_is_logged_once(
    tmp_path: Path, full_disk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "_warned_at", -math.inf)
    cache = ChunkCache(tmp_path / "cache", 1 << 20)
    written = io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", written)
        configure("json", "info")
        for number in range(5):
            cache.put(1, f"{number:064}", bytes(4096))
    configure("text", "error")
    assert list((tmp_path / "cache").iterdir()) == []
    events = [json.loads(line)["event"] for line in written.getvalue().splitlines()]
    assert events == ["chunks cannot be cached"]


def test_temporary_files_of_killed_workers_are_removed_and_those_of_others_kept(tmp_path: Path) -> None:
    old, young = tmp_path / "new-old", tmp_path / "new-young"
    for path in (old, young):
        path.write_bytes(b"half of a chunk")
    hour_ago = time.time() - 3600
    os.utime(old, (hour_ago, hour_ago))
    ChunkCache(tmp_path, 1 << 20).put(1, "0" * 64, b"rows")
    assert {path.name for path in tmp_path.iterdir()} == {"new-young", f"1-{'0' * 64}.chunk"}


def test_stored_rows_longer_than_the_radius_are_clipped(sealed: House) -> None:
    """Whoever can write to the database can store such rows; noise calibrated to the radius must still do."""
    (honest,) = stored(sealed)
    width = source(sealed).domain.dimension
    long = np.frombuffer(honest, dtype="<i2").reshape(-1, width).copy()
    long[0] = 32767
    payload = long.tobytes()
    with sealed.database.write() as session:
        changed = {"payload": payload, "digest": hashlib.sha256(payload).hexdigest()}
        session.execute(update(DatasetChunk).values(**changed))
    (loader,) = source(sealed).loaders()
    for _ in range(2):
        read = np.asarray(loader().rows).astype(np.int64)
        assert (read[0] @ read[0]) <= 32767**2
        assert np.array_equal(read[1:], long[1:])
