"""Traces: what operators see of requests and jobs at a real collector, and what callers do not."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from service.operations import tracing
from service.operations.settings import Settings
from tests.support.service import House, answer_to_a_mistake

CHOSEN = "0af7651916cd43dd8448eb211c80319c"


@dataclass
class Collector:
    """Receives spans over OTLP, as a collector does."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def handler(self) -> type[BaseHTTPRequestHandler]:
        spans = self.spans

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # the name is that of the base class
                body = self.rfile.read(int(self.headers["Content-Length"]))
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    spans.extend(span for scope in resource.scope_spans for span in scope.spans)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    server = HTTPServer(("127.0.0.1", 0), found.handler())
    found.url = f"http://127.0.0.1:{server.server_port}/v1/traces"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    tracing.configure(Settings(), "api")
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_job_is_traced_by_measurement_and_a_request_by_route(
    small_house: House, collector: Collector
) -> None:
    provider = tracing.configure(Settings(traces_url=collector.url), "api")
    assert provider is not None
    small_house.ready()
    submitted = small_house.submit()
    assert small_house.work()
    provider.shutdown()
    (job,) = collector.named("job")
    assert {each.key: each.value.string_value for each in job.attributes}["job"] == submitted.json()["id"]
    steps = [span for span in collector.spans if span.parent_span_id == job.span_id]
    assert [span.name for span in steps] == ["counts", "sums"] * (len(steps) // 2)
    assert all(span.trace_id == job.trace_id for span in steps)
    for one, following in pairwise(steps):
        assert one.end_time_unix_nano == following.start_time_unix_nano
    (upload,) = collector.named("PUT /v1/datasets/{name}/data")
    stages = {span.name for span in collector.spans if span.parent_span_id == upload.span_id}
    assert stages == {"receive", "encode", "store"}


def test_callers_neither_choose_nor_learn_a_trace(small_house: House, collector: Collector) -> None:
    """A trace that a caller could look up would tell how long jobs run."""
    provider = tracing.configure(Settings(traces_url=collector.url), "api")
    assert provider is not None
    headers = {"traceparent": f"00-{CHOSEN}-00f067aa0ba902b7-01", "tracestate": "a=b", "baggage": "c=d"}
    answer = small_house.ada.get("/v1/datasets", headers=headers)
    provider.shutdown()
    (span,) = collector.named("GET /v1/datasets")
    assert span.trace_id.hex() != CHOSEN
    assert span.parent_span_id == b""
    shown = str(answer.headers) + answer.text
    assert span.trace_id.hex() not in shown
    assert span.span_id.hex() not in shown
    assert not {"traceparent", "tracestate", "server-timing"} & {name.lower() for name in answer.headers}


def test_spans_hold_no_value_of_an_error(
    small_house: House, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages of errors may quote rows."""
    provider = tracing.configure(Settings(traces_url=collector.url), "api")
    assert provider is not None
    small_house.ready()
    assert answer_to_a_mistake(small_house, monkeypatch).status_code == 500

    def fail(*_: object) -> None:
        raise KeyError("a value from a row")

    monkeypatch.setattr("service.workers.execution.make_receipt", fail)
    small_house.submit()
    small_house.work()
    provider.shutdown()
    (job,) = collector.named("job")
    assert job.status.message == "KeyError"
    assert not any("a value from a row" in str(span) for span in collector.spans)


def test_nothing_is_traced_unless_a_collector_is_named(collector: Collector) -> None:
    assert tracing.configure(Settings(), "api") is None
    with tracing.span("request") as span:
        assert span is None


@pytest.mark.parametrize(
    ("exporter", "url", "words"),
    [("absent", "http://collector:4318", r"cairn-dp\[otel\]"), (None, "collector:4318", "such as http")],
)
def test_traces_that_cannot_be_sent_are_refused_at_the_start(
    exporter: str | None, url: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if exporter:
        monkeypatch.setattr("service.operations.settings._EXPORTER", exporter)
    with pytest.raises(ValueError, match=words):
        Settings(traces_url=url)


def test_an_unreachable_collector_does_not_delay_the_end_of_a_process() -> None:
    provider = tracing.configure(Settings(traces_url="http://127.0.0.1:9/v1/traces"), "api")
    assert provider is not None
    with tracing.span("request"):
        pass
    ending = threading.Thread(target=provider.shutdown)
    ending.start()
    ending.join(timeout=20)
    tracing.configure(Settings(), "api")
    assert not ending.is_alive()
