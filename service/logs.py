"""Structured log lines with request and job ids, and without keys."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

__all__ = ["configure", "redact"]

_KEY = re.compile(r"cairn_[0-9a-f]{8}_[A-Za-z0-9_-]+|(?i:bearer)\s+\S+")  # whole keys and cut ones


def redact(text: str) -> str:
    """The text with every key in it blotted out."""
    return _KEY.sub("[key]", text)


def _redact_event(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name, value in event.items():
        if isinstance(value, str):
            event[name] = redact(value)
    return event


def configure(format_name: str, level: str) -> None:
    """Send log lines to standard error in the form the settings ask for; tracebacks show no values."""
    numeric = logging.getLevelNamesMapping()[level.upper()]
    render: Any = (
        structlog.processors.JSONRenderer()
        if format_name == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _redact_event,
            render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(numeric),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
