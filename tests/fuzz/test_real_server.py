"""A real server under slow, endless and malformed requests; and its log, in which no key may stand."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from assurance.fuzz.judge import HEADERS, KEY
from benchmarks.harness.processes import RemotePerson, RunningService, server
from service.operations.logs import redact

# How long a test waits for the server to lose patience; its own limits are a few seconds.
LONG = 60.0


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("server")
    with server(
        f"sqlite:///{folder / 'cairn.sqlite3'}",
        folder,
        command=("serve", "--workers", "0"),
        log_level="debug",
        log_format="json",
        header_seconds="3",
        body_idle_seconds="3",
        body_bytes_per_second="1000",
    ) as running:
        yield running


@pytest.fixture
def curator(service: RunningService) -> RemotePerson:
    return service.person(service.bootstrap_key())


def connect(service: RunningService) -> socket.socket:
    place = urlsplit(service.address)
    return socket.create_connection((place.hostname, place.port), timeout=LONG)


def answer_to_drops(made: socket.socket, drop: bytes) -> bytes:
    """Send a drop whenever nothing has come for a while; returns all that comes until the server closes."""
    came, end = b"", time.monotonic() + LONG
    made.settimeout(0.2)
    while time.monotonic() < end:
        try:
            made.sendall(drop)
            piece = made.recv(65536)
        except TimeoutError:
            continue
        except OSError:  # closed while we were sending
            return came
        if not piece:
            return came
        came += piece
    raise AssertionError("the server had patience without end")


@pytest.mark.parametrize("start", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n", b"GET /"])
def test_head_that_never_ends_is_cut_off(service: RunningService, start: bytes) -> None:
    with connect(service) as made:
        made.sendall(start)
        assert answer_to_drops(made, b"x" if start else b"") == b""


def test_second_head_on_a_connection_is_cut_off_too(service: RunningService) -> None:
    with connect(service) as made:
        made.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert made.recv(65536).startswith(b"HTTP/1.1 200")
        made.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        assert b"HTTP/1.1 2" not in answer_to_drops(made, b"x")


@pytest.mark.parametrize("path", ["/v1/datasets", "/v1/datasets/slow/data", "/v1/datasets/slow/sites/s"])
def test_body_that_drips_is_given_up(service: RunningService, curator: RemotePerson, path: str) -> None:
    curator.call(
        "POST",
        "/v1/datasets",
        json={
            "name": "slow",
            "dimension": 2,
            "bounds": {"box": {"low": 0, "high": 1}},
            "size": 9,
            "budget": {"epsilon": "1"},
        },
    )
    verb = "POST" if path == "/v1/datasets" else "PUT"
    with connect(service) as made:
        head = f"{verb} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {curator.key}\r\n"
        made.sendall(head.encode() + b"Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
        came = answer_to_drops(made, b" ")
    assert came.startswith(b"HTTP/1.1 408")
    assert b"/problems/invalid-request" in came


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 20_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: x\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused_like_every_wrong_request(service: RunningService, sent: bytes) -> None:
    with connect(service) as made:
        made.sendall(sent)
        came = answer_to_drops(made, b"")
    head, _, body = came.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
    assert json.loads(body)["type"] == "/problems/invalid-request"
    said = dict(line.lower().split(": ", 1) for line in head.decode().splitlines()[1:])
    assert {name: value.lower() for name, value in HEADERS.items()}.items() <= said.items()


def test_body_that_announces_too_much_is_refused_before_it_is_sent(
    service: RunningService, curator: RemotePerson
) -> None:
    with connect(service) as made:
        head = f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {curator.key}\r\n"
        made.sendall(head.encode() + b"Content-Length: 99999999999\r\n\r\n")
        assert made.recv(65536).startswith(b"HTTP/1.1 413")


def test_no_key_stands_in_the_log(service: RunningService, curator: RemotePerson) -> None:
    made = curator.call("POST", "/v1/principals", json={"name": "lea", "role": "analyst"}, expect=201).json()
    key = made["first_key"]["key"]
    secret = key.split("_", 2)[2]
    lea = service.person(key)
    lea.call("GET", "/v1/whoami", expect=200)
    lea.call("GET", f"/v1/datasets/{key}")
    lea.call("GET", f"/v1/jobs?cursor={key}&limit={key}")
    for length in range(120, 200, 7):  # cut in the middle of the key
        lea.call("GET", f"/{'x' * length}/{key}")
    lea.call("POST", "/v1/jobs", json={"dataset": key, "k": key, "epsilon": key})
    lea.call("POST", "/v1/jobs", headers={"Idempotency-Key": key}, content=key.encode())
    lea.call("GET", "/v1/whoami", headers={"Authorization": f"Basic {key}"})
    lea.call("GET", "/v1/whoami", headers={"Authorization": f"bearer  {key} {key}"})
    lea.call(key[:20], "/v1/whoami")
    with connect(service) as raw:
        raw.sendall(f"GET /{key} {key} HTTP/9.9\r\n\r\n".encode())
        raw.recv(65536)
    log = service.log.read_text()
    assert '"path": "/v1/whoami"' in log
    assert secret not in log
    assert secret[:8] not in log
    # The first curator's key is shown once, by design, and never again.
    assert KEY.findall(log) == [service.bootstrap_key()]


def test_keys_are_blotted_out_even_when_they_are_cut() -> None:
    key = "cairn_0a1b2c3d_" + "s" * 43
    for length in range(17, len(key) + 1):
        assert "s" * (length - 15) not in redact(f"see /{key[:length]}")


def test_file_with_the_log_is_all_there_is(service: RunningService) -> None:
    beside = {path.name for path in Path(service.log).parent.iterdir()}
    assert beside <= {
        "server.log",
        "cairn.sqlite3",
        "cairn.sqlite3-wal",
        "cairn.sqlite3-shm",
        "cache",
        "signing-key.pem",
    }
