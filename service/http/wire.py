"""Base classes and fields of the wire types: strict models, names, amounts."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
)
from pydantic_core import PydanticCustomError

from core.jobs import kinds
from service.http.plain_text import plain
from service.operations.clock import rfc3339

Item = TypeVar("Item")

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
VISIBLE_PATTERN = r"^[^\x00-\x1f\x7f]*$"

JOB_PATTERN = "^([0-9a-f-]{36}|latest)$"
KEY_PATTERN = "^[0-9a-f]{8}$"
SESSION_PATTERN = "^([0-9a-f]{8}|current)$"
#: Descriptions of the patterns, for error messages.
PATTERNS_IN_WORDS = {
    NAME_PATTERN: "at most 64 lower-case letters, digits, dots, underscores, dashes; a letter or digit first",
    JOB_PATTERN: "the id of a job, 36 characters as the list of jobs shows it, or `latest`",
    KEY_PATTERN: "the id of a key, 8 characters as the list of keys shows it",
    VISIBLE_PATTERN: "text on one line",
    SESSION_PATTERN: "the id of a session, 8 characters as the list of sessions shows it, or `current`",
}
#: What is declared or written for people to read; what is stored, or only looked up, is taken as it is.
Plain = AfterValidator(plain)
Name = Annotated[str, Field(pattern=NAME_PATTERN, description="lower-case letters, digits, `.`, `_`, `-`")]
ColumnName = Annotated[str, Field(min_length=1, max_length=128, pattern=VISIBLE_PATTERN)]
Words = Annotated[str, Field(max_length=2000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$"), Plain]


def _number_or_text(value: Any) -> Any:
    """Refuse in one sentence what no branch of an amount takes."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise PydanticCustomError("amount", "must be a number, best written as a string")
    return value


Amount = Annotated[
    Annotated[StrictStr, Field(max_length=64)] | StrictInt | StrictFloat,
    BeforeValidator(_number_or_text),
    Field(description="an exact decimal, best written as a string"),
]
#: A moment in a response, given as a datetime or as text.
Moment = Annotated[str, BeforeValidator(lambda each: rfc3339(each) if isinstance(each, datetime) else each)]


def example(value: dict[str, Any]) -> dict[str, Any]:
    """Declare a model's example, for OpenAPI."""
    return {"examples": [value]}


def page_example(item: dict[str, Any]) -> dict[str, Any]:
    """Declare the example of a page, for OpenAPI."""
    return example({"items": [item], "next": None})


class Body(BaseModel):
    """Base of request bodies: values are not coerced, unknown fields are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Answer(BaseModel):
    """Base of response bodies."""

    model_config = ConfigDict(extra="forbid")


class Page(Answer, Generic[Item]):
    """A page of a list, and the cursor of the next."""

    items: list[Item]
    next: str | None


#: Kinds of jobs: clusterings, and the questions of the registry.
if TYPE_CHECKING:
    JobKind = str
else:
    JobKind = Literal[kinds.names()]


class BudgetBody(Body, json_schema_extra=example({"epsilon": "3", "delta": "0.000001"})):
    """An (epsilon, delta) to spend."""

    epsilon: Amount
    delta: Amount = "0"
