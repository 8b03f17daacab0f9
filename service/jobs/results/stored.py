"""Stored results: the one reader of what a job released, whole or in part."""

from typing import Any

from sqlalchemy import SQLColumnExpression, Text, cast, select
from sqlalchemy.orm import Session

from service.errors import NotFound
from service.operations.tables import Result


def body(session: Session, job_id: str) -> dict[str, Any]:
    """Return the result of a job, or raise NotFound."""
    found: dict[str, Any] = _column(session, job_id, Result.body)
    return found


def text(session: Session, job_id: str) -> str:
    """Return the result of a job as it was stored, to the letter, or raise NotFound."""
    found: str = _column(session, job_id, cast(Result.body, Text))
    return found


def receipt(session: Session, job_id: str) -> dict[str, Any]:
    """Return the receipt of a job, or raise NotFound."""
    found: dict[str, Any] = _column(session, job_id, Result.receipt)
    return found


def _column(session: Session, job_id: str, column: SQLColumnExpression[Any]) -> Any:
    found = session.scalars(select(column).where(Result.job_id == job_id)).one_or_none()
    if found is None:
        raise NotFound(f"the result of job {job_id} is not kept any more: submit the job again")
    return found
