"""Structured log lines with request and job ids, and without keys or passwords."""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

_KEY = re.compile(r"cairn_[0-9a-f]{8}_[A-Za-z0-9_-]+|(?i:bearer)\s+\S+")  # whole keys and cut ones
_PASSWORD = re.compile(r"(?<=://)([^\s:/@]*):[^\s@]+@")


def redact(text: str) -> str:
    """Return the text with every key, and every password in an address, redacted."""
    return _PASSWORD.sub(r"\1:[password]@", _KEY.sub("[key]", text))


def _redacted(value: Any) -> Any:
    """Return a value of a log line with keys redacted, however deeply nested."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, bytes):
        return redact(value.decode("utf-8", "replace"))
    if isinstance(value, dict):
        return {_redacted(name): _redacted(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_redacted(each) for each in value]
    return value


def _redact_event(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in event.items():
        if not name.startswith("_"):  # structlog's own fields, which are not written
            event[name] = _redacted(value)
    return event


def configure(format_name: str, level: str) -> None:
    """Send log lines, also those of libraries, to standard error in the given format.

    Tracebacks show no values.
    """
    numeric = logging.getLevelNamesMapping()[level.upper()]
    render: Any = (
        structlog.processors.JSONRenderer(default=str)
        if format_name == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _redact_event,
    ]
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(numeric),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
        )
    )
    root = logging.getLogger()
    for old in [each for each in root.handlers if getattr(each, "of_cairn", False)]:
        root.removeHandler(old)
    handler.of_cairn = True  # type: ignore[attr-defined]  # so that the next call can remove it
    root.addHandler(handler)
    root.setLevel(max(numeric, logging.WARNING))
