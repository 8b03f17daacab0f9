"""Connections break, services are busy: the client goes on where that is harmless, and never pays twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks.harness.processes import free_port
from cairn_client import Client, NotCairn, NotSignedIn, Unauthorized, Unavailable, Unreachable
from cairn_client.dataset import Dataset
from cairn_client.transport import Transport
from cairn_client.wire import WhoAmI
from tests.support.flaky import Flaky, flaky
from tests.support.live import Live


@pytest.fixture
def proxy(live: Live) -> Iterator[Flaky]:
    with flaky(live.url) as state:
        yield state


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def transport(proxy: Flaky, live: Live, pauses: list[float]) -> Transport:
    """The analyst's connection through the proxy; it notes its pauses and does not make them."""
    return Transport(proxy.url, live.analyst_key, sleep=pauses.append)


def test_a_job_whose_answer_was_lost_is_submitted_and_charged_once(live: Live, proxy: Flaky) -> None:
    owned = live.dataset(cap="1")
    proxy.make("lose", "lose", on="POST /v1/jobs")
    job = Client(proxy.url, live.analyst_key).dataset(owned.name).submit(k=2, epsilon="0.5", algorithm="sulq")
    keys = [headers["idempotency-key"] for _, path, headers in proxy.seen if path == "/v1/jobs"]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    reserved = [entry.job for entry in owned.ledger() if entry.kind == "reserve"]
    assert reserved == [job.id]


def test_two_submissions_have_keys_of_their_own(live: Live, proxy: Flaky) -> None:
    owned = live.dataset(cap="1")
    mine = Client(proxy.url, live.analyst_key).dataset(owned.name)
    first, second = (mine.submit(k=2, epsilon="0.1", algorithm="sulq") for _ in range(2))
    assert first.id != second.id


def test_a_connection_that_drops_while_waiting_is_taken_up_again(live: Live, proxy: Flaky) -> None:
    owned = live.dataset(cap="1")
    job = Client(proxy.url, live.analyst_key).dataset(owned.name).submit(k=2, epsilon="0.5", algorithm="sulq")
    proxy.make("cut", "lose", "cut", on=f"GET /v1/jobs/{job.id}")
    assert job.wait().state == "succeeded"
    assert proxy.times("GET /v1/jobs/") >= 4


def test_an_upload_whose_answer_was_lost_is_repeated_and_answered(live: Live, proxy: Flaky) -> None:
    owned = live.dataset(rows=None)
    proxy.make("lose", on="PUT /v1/datasets/")
    report = Client(proxy.url, live.curator_key).dataset(owned.name).upload(b"a,b\n1,2\n3,1\n")
    assert report.rows == 2
    assert proxy.times("PUT ") == 2


def test_creating_is_not_repeated_when_it_may_have_happened(live: Live, proxy: Flaky) -> None:
    curator = Client(proxy.url, live.curator_key)
    curator.whoami()
    proxy.make("lose", on="POST /v1/principals")
    with pytest.raises(Unreachable, match="lost the connection"):
        curator.add_principal("once-only")
    assert proxy.times("POST /v1/principals") == 1


def test_retry_after_is_obeyed(transport: Transport, proxy: Flaky, pauses: list[float]) -> None:
    proxy.make("busy", "busy", on="GET /v1/whoami")
    assert transport.request(WhoAmI, "GET", "/v1/whoami").role == "analyst"
    assert pauses == [3.0, 3.0]


def test_a_pause_longer_than_the_patience_is_refused_at_once(live: Live, proxy: Flaky) -> None:
    proxy.make("busy", on="GET /v1/whoami")
    with pytest.raises(Unavailable) as refusal:
        Client(proxy.url, live.analyst_key, patience=1).whoami()
    assert refusal.value.retry_after == 3.0


def test_pauses_grow_while_the_connection_stays_broken(
    transport: Transport, proxy: Flaky, pauses: list[float]
) -> None:
    proxy.make("cut", "cut", "cut", on="GET /v1/whoami")
    transport.request(WhoAmI, "GET", "/v1/whoami")
    assert pauses == sorted(pauses)
    assert len(set(pauses)) == 3


def test_a_service_that_goes_away_for_good_is_given_up(live: Live) -> None:
    with flaky(live.url) as gone:
        client = Client(gone.url, live.analyst_key, patience=0.3)
        client.whoami()
    with pytest.raises(Unreachable, match="try again"):
        client.whoami()


def test_a_wrong_address_fails_at_once_and_says_so(pauses: list[float]) -> None:
    transport = Transport(f"127.0.0.1:{free_port()}", "key", sleep=pauses.append)
    with pytest.raises(Unreachable, match="cannot connect to http://127"):
        transport.request(WhoAmI, "GET", "/v1/whoami")
    assert pauses == []


def test_a_page_for_people_is_no_answer_of_cairn(live: Live) -> None:
    with pytest.raises(NotCairn, match="is not a Cairn service: check the address"):
        Transport(live.url, live.analyst_key).request(WhoAmI, "GET", "/docs")


def test_another_web_server_is_no_cairn_service() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Elsewhere) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        with pytest.raises(NotCairn, match="is not a Cairn service: check the address"):
            Client(f"127.0.0.1:{server.server_address[1]}", "key").whoami()
        thread.join()


class _Elsewhere(BaseHTTPRequestHandler):
    """A web server that knows nothing of Cairn."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.send_error(404)


def test_a_wrong_key_is_unauthorized(live: Live) -> None:
    with pytest.raises(Unauthorized, match="ask a curator for a new one"):
        Client(live.url, "cairn_00000000_wrong").whoami()


@pytest.mark.parametrize("key", ["two words", "line\nbreak", "clé", ""])
def test_a_key_that_cannot_be_one_is_not_sent(key: str) -> None:
    with pytest.raises(NotSignedIn):
        Transport("127.0.0.1:1", key)


def test_the_key_is_in_no_representation(live: Live) -> None:
    client = live.analyst()
    assert live.analyst_key not in repr([client, client.dataset("visits"), client.datasets()])


def test_names_cannot_reach_other_addresses(live: Live, proxy: Flaky) -> None:
    dataset = Dataset(Transport(proxy.url, live.analyst_key), "../whoami?x=1#")
    with pytest.raises(Exception, match=r"."):
        dataset.refresh()
    assert proxy.seen[-1][1].startswith("/v1/datasets/%2E%2E%2Fwhoami%3F")
