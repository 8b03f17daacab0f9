"""Canonical JSON, so that equal values have equal digests: keys sorted, no spaces, ASCII."""

import hashlib
import json
from typing import Any


def text(value: Any) -> str:
    """Return a JSON value as its one canonical text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value."""
    return hashlib.sha256(text(value).encode()).hexdigest()
