"""Wire types of the catalogue."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from service.datasets.catalogue import listings
from service.http.wire import VISIBLE_PATTERN, Answer, Body, Moment, Page, Plain, example, page_example

#: Groups of facts that a listing can show.
if TYPE_CHECKING:
    GroupName = str
else:
    GroupName = Literal[tuple(listings.GROUPS)]

_COLUMNS = {
    "group": "columns",
    "title": "Columns and their bounds",
    "lines": ["petal_length: number from 0 to 10", "petal_width: number from 0 to 4"],
}
_SIZE = {
    "group": "size",
    "title": "Number of records",
    "lines": ["about 10,000, as declared without counting them"],
}
_ENTRY = {
    "name": "flowers",
    "title": "Petals of irises",
    "since": "2030-01-01T09:00:00.000Z",
    "groups": [_COLUMNS],
    "accessible": False,
}
_LISTING = {
    "title": "Petals of irises",
    "shows": ["columns"],
    "since": "2030-01-01T09:00:00.000Z",
    "groups": [_COLUMNS, _SIZE],
}


class ShownGroup(Answer, json_schema_extra=example(_COLUMNS)):
    """Facts of a dataset that are shown together, in words."""

    group: GroupName
    title: str
    lines: list[str]


class CatalogueEntry(Answer, json_schema_extra=example(_ENTRY)):
    """A listed dataset: what its owner chose to show to people without a grant."""

    name: str
    title: str = Field(description="the name, if the owner gave none")
    since: Moment
    groups: list[ShownGroup]
    accessible: bool = Field(description="whether it is in your own list of datasets, too")


class CataloguePage(Page[CatalogueEntry], json_schema_extra=page_example(_ENTRY)):
    """A page of the catalogue, and the cursor of the next."""


class ListingBody(Body, json_schema_extra=example({"title": "Petals of irises", "shows": ["columns"]})):
    """What the catalogue shows of a dataset besides its name: a title, and the chosen groups of facts."""

    title: Annotated[str, Plain] = Field(
        default="", max_length=200, pattern=VISIBLE_PATTERN, description="default: the name of the dataset"
    )
    shows: list[GroupName] = Field(
        default=[], max_length=20, description="what is not named here is not shown"
    )


class ListingFacts(Answer, json_schema_extra=example(_LISTING)):
    """What the catalogue shows of a dataset, and all that it could show."""

    title: str
    shows: list[GroupName] = Field(description="groups that people without a grant see")
    since: Moment | None = Field(description="since when it is listed; null: it is not")
    groups: list[ShownGroup] = Field(description="every group that could be shown, as it would be")
