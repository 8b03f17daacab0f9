"""Wire types of public rows."""

from pydantic import Field

from service.http.wire import Answer, Moment, example


class PublicRowSetFacts(
    Answer,
    json_schema_extra=example({"rows": 500, "digest": "5e" * 32, "set_at": "2030-01-01T09:00:00.000Z"}),
):
    """Public rows that jobs may learn from; the guarantee does not cover them."""

    rows: int
    digest: str = Field(description="SHA-256 of the numbers as little-endian doubles, row by row")
    set_at: Moment
