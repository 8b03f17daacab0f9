"""Wire types of sets of sites."""

from typing import Literal

from service.http.wire import Answer, Moment, example

SiteKind = Literal["coordinates", "great-circle", "distances"]
_SITES = {
    "name": "hospitals",
    "kind": "great-circle",
    "count": 40,
    "width": 2,
    "created_at": "2030-01-01T09:00:00.000Z",
}


class SiteSetFacts(Answer, json_schema_extra=example(_SITES)):
    """A set of public sites."""

    name: str
    kind: SiteKind
    count: int
    width: int
    created_at: Moment


class SiteSetList(Answer, json_schema_extra=example({"items": [_SITES]})):
    """The site sets of a dataset."""

    items: list[SiteSetFacts]
