"""Limits on what one analyst may ask for, and on the work of one job."""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.plan import Plan, Work
from service.operations.settings import Settings

#: Bytes that a worker process may hold in addition to the memory of a plan and the derived rows it keeps:
#: Python with its libraries takes about 250 MB, and a chunk that is read and encoded about 100 MB.
_WORKER_BYTES = 512 << 20


@dataclass(frozen=True)
class Limits:
    """Limits on what one analyst may ask for."""

    work: Work
    queued_jobs: int
    rehearsals_per_minute: int
    rehearsal_rows: int = 20_000
    rehearsal_operations: float = math.inf
    release_margin: float = 1.5
    job_seconds: float = math.inf
    #: Coordinates of centres that one clustering may release.
    released_values: float = math.inf

    @classmethod
    def of(cls, settings: Settings, plan_bytes: int | None = None) -> Limits:
        """Read the limits off the settings; `plan_bytes` is what the workers have memory for, if known."""
        kept = settings.view_cache_bytes + _WORKER_BYTES
        memory = max(settings.max_memory_bytes - kept, 0)
        work = Work(settings.max_operations, float(memory if plan_bytes is None else min(memory, plan_bytes)))
        return cls(
            work,
            settings.max_queued_jobs,
            settings.rehearsals_per_minute,
            settings.rehearsal_rows,
            settings.rehearsal_operations,
            settings.release_margin,
            settings.job_seconds,
            settings.max_released_values,
        )

    def rows(self, plan: Plan, *, rehearsal: bool) -> int:
        """Return the number of rows that a run reads: the declared size, or that of a rehearsal."""
        return min(self.rehearsal_rows, plan.domain.size) if rehearsal else plan.domain.size
