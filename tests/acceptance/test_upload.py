"""Large uploads through a real server: little memory, and a cut connection leaves nothing behind.

`make test-upload` runs the full size (1,000,000 x 20); `make test` a twentieth of it.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator

import numpy as np
import psutil
import pytest
from sqlalchemy import func, select

from benchmarks.harness.processes import RemotePerson, RunningService, server
from service.operations.database import Database
from service.operations.tables import Dataset, DatasetChunk
from tests.support.databases import new_database

pytestmark = pytest.mark.both_databases

ROWS = int(os.environ.get("UPLOAD_ROWS", "50000"))
COLUMNS = 20
MOST_GROWTH = 150 << 20
_BLOCK = 5000


def csv_blocks(rows: int) -> Iterator[bytes]:
    """About 200 bytes a row, as a stream."""
    generator = np.random.default_rng(11)
    yield (",".join(f"c{i}" for i in range(COLUMNS)) + "\n").encode()
    block = generator.uniform(-1, 1, (_BLOCK, COLUMNS)).round(7)
    text = "".join(",".join(map(repr, row)) + "\n" for row in block.tolist()).encode()
    for _ in range(rows // _BLOCK):
        yield text


def facts(name: str) -> dict[str, object]:
    return {
        "name": name,
        "columns": [f"c{i}" for i in range(COLUMNS)],
        "bounds": {"box": {"low": -1, "high": 1}},
        "size": ROWS,
        "budget": {"epsilon": "1"},
    }


@pytest.fixture(scope="module")
def url(
    request: pytest.FixtureRequest, database_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """One database of each kind for the whole module: starting a service takes longer than the tests."""
    with new_database(request, database_kind, tmp_path_factory.mktemp("upload")) as address:
        yield address


@pytest.fixture(scope="module")
def service(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("service")
    with server(url, folder, command=("serve", "--workers", "0"), log_level="warning") as running:
        yield running


def resident(service: RunningService) -> int:
    memory: int = psutil.Process(service.process.pid).memory_info().rss
    return memory


def test_large_upload_takes_little_memory(service: RunningService) -> None:
    carla = service.person(service.bootstrap_key())
    # A small upload first: what the libraries take once is not what an upload takes.
    carla.call("POST", "/v1/datasets", json=facts("small"), expect=201)
    carla.call("PUT", "/v1/datasets/small/data", content=b"".join(csv_blocks(_BLOCK)), expect=200)
    carla.call("POST", "/v1/datasets", json=facts("large"), expect=201)
    before = peak = resident(service)
    sent = 0

    def watched() -> Iterator[bytes]:
        nonlocal peak, sent
        for block in csv_blocks(ROWS):
            sent += len(block)
            peak = max(peak, resident(service))
            yield block

    with Peak(service) as highest:
        report = carla.call(
            "PUT",
            "/v1/datasets/large/data",
            content=watched(),
            headers={"Content-Type": "text/csv"},
            expect=200,
        ).json()
    growth = max(peak, highest.bytes) - before
    said = f"{ROWS} x {COLUMNS}: {sent / 1e6:.0f} MB sent, resident memory grew by {growth / 2**20:.0f} MiB\n"
    sys.stdout.write(said)  # the figure of `make test-upload`
    assert (report["rows"], report["bytes"]) == (ROWS, sent)
    assert growth < MOST_GROWTH


class Peak:
    """The highest resident memory of the service's process while the context lasts."""

    def __init__(self, service: RunningService):
        from threading import Event, Thread

        self._service, self.bytes, self._done = service, 0, Event()
        self._thread = Thread(target=self._watch)

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self.bytes = max(self.bytes, resident(self._service))

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.999999])
def test_cut_connection_leaves_nothing_and_a_retry_works(
    service: RunningService, url: str, share: float
) -> None:
    carla = service.person(service.bootstrap_key())
    name = f"cut-{share}"
    made = carla.call("POST", "/v1/datasets", json=facts(name), expect=201).json()
    body = b"".join(csv_blocks(_BLOCK * 2))
    send_part(service, carla, name, body, int(len(body) * share))
    database = Database(url)
    with database.read() as session:
        dataset = session.scalars(select(Dataset).where(Dataset.name == made["name"])).one()
        chunks = select(func.count()).where(DatasetChunk.dataset_id == dataset.id)
        assert (dataset.state, session.scalar(chunks)) == ("draft", 0)
    database.dispose()
    report = carla.call("PUT", f"/v1/datasets/{name}/data", content=body, expect=200).json()
    assert report["rows"] == 2 * _BLOCK


def send_part(service: RunningService, person: RemotePerson, name: str, body: bytes, length: int) -> None:
    """Begin an upload and cut the connection after `length` bytes of its body."""
    host, port = service.address.removeprefix("http://").split(":")
    head = (
        f"PUT /v1/datasets/{name}/data HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {person.key}\r\n"
        f"Content-Type: text/csv\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + body[:length])
    # The server takes calls in order of arrival; when this one is answered, the cut one has been noticed.
    person.call("GET", f"/v1/datasets/{name}", expect=200)
