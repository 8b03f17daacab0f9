"""Traces for operators, by OpenTelemetry: spans of requests, uploads, jobs and measurements.

Off unless `CAIRN_TRACES_URL` names a collector. Spans tell how long jobs run, which may depend on rows, so
they go to the collector alone: no caller is told the trace of a request, and none can choose it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from service.operations.settings import Settings

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

#: Longest try to send spans, in seconds: an unreachable collector must not delay the end of a process.
_SEND_SECONDS = 2.0
#: Settings of FastAPI that switch off tracing of its own, which would follow the trace that a caller names.
OFF: Any = dict.fromkeys(("auto_configure", "tracing", "metrics", "logs"), False)

Attribute = str | int | bool

_tracer: Tracer | None = None


def configure(settings: Settings, component: str) -> TracerProvider | None:
    """Send spans of this process, named `cairn-<component>`, to the collector of the settings, if any."""
    global _tracer
    if not settings.traces_url:
        _tracer = None
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    about = {"service.name": f"cairn-{component}", "service.version": version("cairn-dp")}
    provider = TracerProvider(resource=Resource.create(about))
    exporter = OTLPSpanExporter(settings.traces_url, timeout=_SEND_SECONDS)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    # Not the provider of the whole process: libraries would add spans of their own.
    _tracer = provider.get_tracer("cairn")
    return provider


@contextmanager
def span(name: str, **attributes: Attribute) -> Iterator[Span | None]:
    """Trace a block of code within the span around it; None if traces are off.

    Of an exception only its type is noted: its message may hold a value of a row.
    """
    if _tracer is None:
        yield None
        return
    from opentelemetry.trace import StatusCode

    with _tracer.start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except BaseException as error:
            current.set_status(StatusCode.ERROR, type(error).__name__)
            raise


class Laps:
    """Spans that follow each other within the current one: each begins where the one before ended."""

    def __init__(self) -> None:
        self._since = time.time_ns()

    def end(self, name: str) -> None:
        """Trace the time since the last span ended."""
        if _tracer is not None:
            begun, self._since = self._since, time.time_ns()
            _tracer.start_span(name, start_time=begun).end(self._since)
