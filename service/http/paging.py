"""Paging of lists: the limit of a page and the opaque cursor of the next one."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query
from pydantic import AwareDatetime

from service.errors import InvalidRequest
from service.http.context import Services

Item = TypeVar("Item")


@dataclass(frozen=True)
class PageRequest:
    """The page of a list that a request asks for."""

    size: int
    cursor: str | None

    @property
    def fetch(self) -> int:
        """The number of entries to look for: one more tells whether there is a next page."""
        return self.size + 1

    def after(self, kind: type) -> Any:
        """Decode the place after which the page begins, if any; InvalidRequest when it is not one of ours."""
        if self.cursor is None:
            return None
        text = self.cursor + "=" * (-len(self.cursor) % 4)
        try:
            value = json.loads(base64.b64decode(text, altchars=b"-_", validate=True))
        except (binascii.Error, ValueError, RecursionError):
            value = None
        number = isinstance(value, int) and 0 <= value < 2**63
        words = isinstance(value, str) and len(value) <= 200 and value.isprintable()
        if not isinstance(value, kind) or not (number or words):
            raise InvalidRequest("this cursor is not one that a page gave you; begin again without it")
        return value

    def cut(self, found: Sequence[Item], place: Callable[[Item], Any]) -> tuple[Sequence[Item], str | None]:
        """Return the entries of the page, and the cursor of the next one where there are more."""
        shown = found[: self.size]
        if len(found) <= self.size:
            return shown, None
        return shown, base64.urlsafe_b64encode(json.dumps(place(shown[-1])).encode()).decode().rstrip("=")


async def _paging(
    context: Services,
    limit: Annotated[int | None, Query(ge=1, le=500, description="entries on a page")] = None,
    cursor: str | None = None,
) -> PageRequest:
    return PageRequest(limit or context.settings.default_page, cursor)


#: Filters of lists by time.
Since = Annotated[
    AwareDatetime | None, Query(description="only from this moment on, such as 2026-01-31T08:00:00Z")
]
Until = Annotated[AwareDatetime | None, Query(description="only before this moment")]
Paging = Annotated[PageRequest, Depends(_paging)]
