"""Paging of lists: the limit of a page and the opaque cursor of the next one."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Annotated, Any

from fastapi import Query

from service.errors import InvalidRequest

__all__ = ["Limit", "cursor_from", "cursor_to"]

Limit = Annotated[int | None, Query(ge=1, le=500, description="entries on a page")]


def cursor_to(value: Any) -> str:
    """Encode the place where a page ends as an opaque cursor."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def cursor_from(text: str | None, kind: type) -> Any:
    """Decode a cursor into the place where a page begins; InvalidRequest when it is not one of ours."""
    if text is None:
        return None
    try:
        value = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        value = None
    if not isinstance(value, kind) or (isinstance(value, int) and not 0 <= value < 2**63):
        raise InvalidRequest("this cursor is not one that a page gave you; begin again without it")
    if isinstance(value, str) and ("\0" in value or len(value) > 200 or not value.isprintable()):
        raise InvalidRequest("this cursor is not one that a page gave you; begin again without it")
    return value
