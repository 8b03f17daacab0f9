"""Uploads that are stored before their last byte has arrived: a real server, on a real PostgreSQL."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

from service.datasets.ingest.store import _UPLOADS
from tests.support.postgres import Server
from tests.support.processes import RemotePerson, RunningService, server

BODY = b"a,b\n" + b"1.25,2.5\n" * 2_000_000
FACTS = {
    "columns": ["a", "b"],
    "bounds": {"box": {"low": 0, "high": 4}},
    "size": 2_000_000,
    "budget": {"epsilon": "1"},
}
LONG = 60.0


@pytest.fixture(scope="module")
def database(postgres: Server, postgres_template: str) -> str:
    return postgres.create(template=postgres_template)


@pytest.fixture(scope="module")
def service(
    postgres: Server, database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("server")
    with server(postgres.url(database), folder, command=("serve", "--workers", "0")) as running:
        yield running


@pytest.fixture(scope="module")
def curator(service: RunningService) -> RemotePerson:
    return service.person(service.bootstrap_key())


@pytest.fixture
def watch(postgres: Server, database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.dsn(database), autocommit=True) as connection:
        yield connection


def wait_until(watch: psycopg.Connection, storing: bool) -> None:
    """Uploads that are being stored hold a lock of their own kind."""
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = %s AND objsubid = 2"
    end = time.monotonic() + LONG
    while (watch.execute(locks, (_UPLOADS,)).fetchone() == (0,)) == storing:
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.01)  # waiting for another program, which offers nothing to wait on


def begin(service: RunningService, curator: RemotePerson, name: str) -> socket.socket:
    """A connection on which all of the body but its last bytes has been sent."""
    place = urlsplit(service.address)
    made = socket.create_connection((place.hostname, place.port), timeout=LONG)
    head = (
        f"PUT /v1/datasets/{name}/data HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: text/csv\r\n"
        f"Authorization: Bearer {curator.key}\r\nContent-Length: {len(BODY)}\r\n\r\n"
    )
    made.sendall(head.encode() + BODY[:-8])
    return made


def test_upload_is_stored_while_its_last_bytes_are_still_to_come(
    service: RunningService, curator: RemotePerson, watch: psycopg.Connection
) -> None:
    curator.call("POST", "/v1/datasets", json={"name": "early", **FACTS}, expect=201)
    with begin(service, curator, "early") as made:
        wait_until(watch, storing=True)
        made.sendall(BODY[-8:])
        assert made.recv(65536).startswith(b"HTTP/1.1 200")
    assert watch.execute("SELECT sum(rows) FROM dataset_chunks").fetchone() == (2_000_000,)


def test_upload_that_breaks_off_while_it_is_stored_leaves_nothing(
    service: RunningService, curator: RemotePerson, watch: psycopg.Connection
) -> None:
    curator.call("POST", "/v1/datasets", json={"name": "broken", **FACTS}, expect=201)
    before = watch.execute("SELECT count(*) FROM dataset_chunks").fetchone()
    with begin(service, curator, "broken"):
        wait_until(watch, storing=True)
    wait_until(watch, storing=False)
    assert watch.execute("SELECT count(*) FROM dataset_chunks").fetchone() == before
    assert curator.call("GET", "/v1/datasets/broken").json()["state"] == "draft"


def test_upload_with_another_digest_than_announced_leaves_nothing(
    curator: RemotePerson, watch: psycopg.Connection
) -> None:
    curator.call("POST", "/v1/datasets", json={"name": "other", **FACTS}, expect=201)
    before = watch.execute("SELECT count(*) FROM dataset_chunks").fetchone()
    wrong = {"sha256": "0" * 64}
    answer = curator.call(
        "PUT", "/v1/datasets/other/data", params=wrong, content=BODY, headers={"Content-Type": "text/csv"}
    )
    assert answer.json()["type"].endswith("digest-mismatch")
    assert watch.execute("SELECT count(*) FROM dataset_chunks").fetchone() == before
    assert curator.call("GET", "/v1/datasets/other").json()["state"] == "draft"
