"""Stored results: the one reader of what a job released."""

from typing import Any

from sqlalchemy import SQLColumnExpression, Text, cast, func, select
from sqlalchemy.orm import Session

from service.errors import NotFound
from service.operations.tables import Result

#: A result as the text that was stored. JSON is stored in ASCII, so that its characters are its bytes.
_TEXT = cast(Result.body, Text)


def body(session: Session, job_id: str) -> dict[str, Any]:
    """Return the result of a job, or raise NotFound."""
    found: dict[str, Any] = _column(session, job_id, Result.body)
    return found


def part(session: Session, job_id: str, name: str) -> Any:
    """Return one field of the result of a job, without reading the others, or raise NotFound."""
    return _column(session, job_id, Result.body[name])


def receipt(session: Session, job_id: str) -> dict[str, Any]:
    """Return the receipt of a job, or raise NotFound."""
    found: dict[str, Any] = _column(session, job_id, Result.receipt)
    return found


def text(session: Session, job_id: str) -> str:
    """Return the result of a job as it was stored, to the letter, or raise NotFound."""
    found: str = _column(session, job_id, _TEXT)
    return found


def length(session: Session, job_id: str) -> int:
    """Return the number of characters of a stored result, or raise NotFound."""
    found: int = _column(session, job_id, func.length(_TEXT))
    return found


def _column(session: Session, job_id: str, column: SQLColumnExpression[Any]) -> Any:
    found = session.scalars(select(column).where(Result.job_id == job_id)).one_or_none()
    if found is None:
        raise NotFound(f"the result of job {job_id} is not kept any more: submit the job again")
    return found
