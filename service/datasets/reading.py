"""How the delimited text of a dataset is read: a public fact, declared or taken from rows and confirmed."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from service.datasets.ingest.readers.text import Dialect
from service.http.wire import Answer, Body, example

#: Files of format 1 were read by inference from all of their records.
FORMAT = 2
INFERRED = {"format": 1}
#: Facts that a look at rows may suggest. The separator and the header line are seen without any row.
FromRows = Literal["encoding", "decimal", "thousands", "quoted_lines"]
_Encoding = Literal["utf-8", "utf-16", "windows-1252", "latin-1"]
_Separator = Literal[",", ";", "\t", "|"]
_Decimal = Literal[".", ","]
_Thousands = Literal["", ",", ".", " ", "'"]
_EXPORTED = {"encoding": "windows-1252", "separator": ";", "decimal": ","}


class ReadingBody(Body, json_schema_extra=example({**_EXPORTED, "confirmed_from_rows": ["decimal"]})):
    """How delimited text is read; every record by itself. Other formats do not need it."""

    encoding: _Encoding = "utf-8"
    separator: _Separator = Field(default=",", description="between fields")
    decimal: _Decimal = Field(default=".", description="decimal sign of numbers")
    thousands: _Thousands = Field(
        default="", description="mark between groups of three digits; a blank includes no-break spaces"
    )
    quoted_lines: bool = Field(
        default=False,
        description="fields in quotes may contain line breaks. A quote that is left open then takes in the "
        "following lines, so declare it only for files that need it",
    )
    header: bool = Field(default=True, description="the first line names the columns")
    confirmed_from_rows: list[FromRows] | None = Field(
        default=None,
        max_length=10,
        description="facts that were read off rows, each of which you confirm to be public; everybody with a "
        "grant sees which",
    )

    @model_validator(mode="after")
    def _has_different_marks(self) -> Self:
        if self.thousands and self.thousands == self.decimal:
            words = "reading: the decimal sign and the mark between thousands must differ"
            raise PydanticCustomError("same_marks", "{words}", {"words": words})
        return self


class ReadingFacts(Answer, json_schema_extra=example({"format": FORMAT, **Dialect().to_json()})):
    """How delimited text is read."""

    format: int = Field(description="2: every record by itself, as declared here; 1: by an earlier version")
    encoding: str | None = None
    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    quoted_lines: bool | None = None
    header: bool | None = None
    confirmed_from_rows: list[FromRows] = Field(default=[])


def stored(body: ReadingBody | None, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the facts that a request declares, as they are stored.

    A fact that was taken from rows before stays marked as such until it is changed.
    """
    declared = (body or ReadingBody()).model_dump(exclude={"confirmed_from_rows"})
    earlier = before or {}
    kept = {fact for fact in earlier.get("confirmed_from_rows", ()) if earlier.get(fact) == declared[fact]}
    confirmed = sorted({*kept, *((body and body.confirmed_from_rows) or ())})
    return {"format": FORMAT, **declared, "confirmed_from_rows": confirmed}


def dialect_of(facts: Mapping[str, Any] | None) -> Dialect:
    """Return the dialect that stored facts describe; drafts of earlier versions have none yet."""
    given = facts or {}
    return Dialect(**{name: given[name] for name in Dialect().to_json() if name in given})


def warnings(facts: Mapping[str, Any] | None) -> list[str]:
    """Return what everybody who uses the dataset should know about how its file was read."""
    if facts is None or facts["format"] < FORMAT:
        return [
            "the file was read by an earlier version, which inferred from all records how to read each: one "
            "record may have decided how the others were read"
        ]
    if facts["confirmed_from_rows"]:
        names = ", ".join(name.replace("_", " ") for name in facts["confirmed_from_rows"])
        return [f"how the file is read was taken from the rows, and confirmed to be public: {names}"]
    return []
