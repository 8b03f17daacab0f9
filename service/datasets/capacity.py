"""What limits of the operator mean for jobs on an upload, for its curator to read before sealing."""

from sqlalchemy.orm import Session

from core.data import Stored
from core.errors import CoreError
from core.jobs import kinds
from core.plan import Plan, Request
from core.privacy import Budget, default_delta
from service.operations import timing
from service.operations.settings import Settings

#: Clusters of the job whose planned time is held against the limit.
_TYPICAL_K = 10


def warnings(session: Session, domain: Stored, stored_bytes: int, settings: Settings) -> list[str]:
    """Warn of rows that the chunk cache does not hold, and of jobs that would be refused for their time."""
    found = []
    if 0 < settings.cache_bytes < stored_bytes:
        found.append(
            f"the rows take {_megabytes(stored_bytes)}, but workers cache at most "
            f"{_megabytes(settings.cache_bytes)}: each pass over them reads the database, which makes jobs "
            "slow and may make them overrun; ask the operator to raise CAIRN_CACHE_BYTES"
        )
    seconds = _typical_seconds(session, domain, settings.release_margin)
    if seconds is not None and seconds > settings.job_seconds:
        found.append(
            f"a clustering into {_TYPICAL_K} clusters is planned to take {seconds:,g} seconds, but jobs may "
            f"take {settings.job_seconds:,g}: it will be refused; ask the operator to raise "
            "CAIRN_JOB_SECONDS or, if this machine was never measured, to run `cairn-server calibrate`"
        )
    return found


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"


def _typical_seconds(session: Session, domain: Stored, margin: float) -> float | None:
    """Return the planned time of a typical clustering; None where it needs more than rows, such as sites."""
    plan = _typical_plan(domain)
    if plan is None:
        return None
    rates = timing.rates_of(session, plan)
    return timing.planned_ms(rates, plan, plan.domain.size, margin) / 1000


def _typical_plan(domain: Stored) -> Plan | None:
    budget = Budget.at_most(1, default_delta(domain.size))
    try:
        return kinds.plan(domain, Request(_TYPICAL_K, budget))
    except CoreError:
        return None
