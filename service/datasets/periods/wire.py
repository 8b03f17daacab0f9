"""Wire types of periods."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from service.datasets.wire import BALANCE, BudgetFacts, CorrectionFacts, UploadReport
from service.http.wire import Answer, Body, BudgetBody, Moment, Name, Page, example, page_example

_PERIOD = {
    "label": "2026-02",
    "version": 1,
    "state": "sealed",
    "size": 10000,
    "created_at": "2026-03-02T09:00:00.000Z",
    "sealed_at": "2026-03-02T09:05:00.000Z",
    "budget": BALANCE,
    "cap": None,
    "upload": None,
    "correction": None,
}


class PeriodRange(Body, json_schema_extra=example({"from": "2026-01", "to": "2026-03"})):
    """All sealed periods whose labels lie between two, in the order of text; open where one is left out."""

    first: Name | None = Field(default=None, alias="from")
    last: Name | None = Field(default=None, alias="to")


#: Periods by their labels, or a range. Tags begin with a colon, so that no problem names them as a field.
PeriodChoice = Annotated[
    Annotated[list[Name], Field(min_length=1, max_length=1000), Tag(":list")]
    | Annotated[PeriodRange, Tag(":range")],
    Discriminator(lambda given: ":range" if isinstance(given, dict | PeriodRange) else ":list"),
]


class PeriodBody(Body, json_schema_extra=example({"label": "2026-02"})):
    """Public facts of a new period. Nothing here may be taken from the rows themselves."""

    label: Name = Field(description="periods are ordered by their labels, as text: 2026-02 before 2026-10")
    size: int | None = Field(
        default=None,
        ge=1,
        description="public order of magnitude of the number of records; default: that of the dataset",
    )
    budget: BudgetBody | None = Field(
        default=None, description="where each period has a budget; default: that of the dataset"
    )


class PeriodFacts(Answer, json_schema_extra=example(_PERIOD)):
    """A period: its public facts, what is left of it, and to the owner the report on its rows."""

    label: str
    version: int
    state: Literal["draft", "sealed", "retired"]
    size: int
    created_at: Moment
    sealed_at: Moment | None
    budget: BudgetFacts | None = Field(description="null: all periods share the dataset's budget")
    cap: BudgetFacts | None = Field(description="to an analyst: what is left of the cap in this period")
    upload: UploadReport | None
    correction: CorrectionFacts | None = Field(
        description="to the owner: the draft of the next version, whose rows will replace these"
    )


class PeriodPage(Page[PeriodFacts], json_schema_extra=page_example(_PERIOD)):
    """A page of periods by their labels, and the cursor of the next."""


class PeriodName(Answer, json_schema_extra=example({"label": "2026-02", "version": 1})):
    """A period that a job reads, in the version that it reads."""

    label: str
    version: int
