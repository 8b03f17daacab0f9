"""What the wire types share: strict models, names, amounts and pages."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

__all__ = ["Amount", "Answer", "Body", "BudgetBody", "ColumnName", "Name", "Words", "example"]

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,63}$"
_VISIBLE = r"^[^\x00-\x1f\x7f]*$"

JOB_PATTERN = "^([0-9a-f-]{36}|latest)$"
KEY_PATTERN = "^[0-9a-f]{8}$"
#: What a person may write, where a pattern decides.
PATTERNS_IN_WORDS = {
    NAME_PATTERN: "at most 64 lower-case letters, digits, dots, underscores, dashes; a letter or digit first",
    JOB_PATTERN: "the 36 characters that submitting answered, or `latest`; the list of jobs has it",
    KEY_PATTERN: "the 8 characters before the secret of a key; the list of keys has it",
}
Name = Annotated[str, Field(pattern=NAME_PATTERN, description="lower-case letters, digits, `.`, `_`, `-`")]
ColumnName = Annotated[str, Field(min_length=1, max_length=128, pattern=_VISIBLE)]
Words = Annotated[str, Field(max_length=2000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$")]
Amount = Annotated[
    Annotated[StrictStr, Field(max_length=64)] | StrictInt | StrictFloat,
    Field(description="an exact decimal, best written as a string"),
]


def example(value: dict[str, Any]) -> dict[str, Any]:
    """A model's example, for OpenAPI."""
    return {"examples": [value]}


class Body(BaseModel):
    """What a caller sends: nothing is coerced, nothing unknown is passed over."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Answer(BaseModel):
    """What the service answers."""

    model_config = ConfigDict(extra="forbid")


class BudgetBody(Body):
    """An (epsilon, delta) to spend."""

    model_config = ConfigDict(json_schema_extra=example({"epsilon": "3", "delta": "0.000001"}))

    epsilon: Amount
    delta: Amount = "0"
