"""Planned times of jobs: how long after its claim the end of a job is shown, from public numbers alone."""

import math
from dataclasses import dataclass

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from core.blocks.work import numbers
from core.jobs import kinds
from core.kernels.backend import NUMPY, body_in_use
from core.kernels.cache import CACHE_BYTES
from core.plan import Plan
from service.operations.tables import Timing

#: Planned times are whole numbers of this many milliseconds.
_STEP_MS = 250
#: Steps of the shortest planned time.
_LEAST_STEPS = 3
#: Operations to read a stored number of a record: its digest is checked, it is clipped to the domain, and
#: in a table it is given its place.
_READ = {"dense": 12.0, "table": 24.0, "sparse": 100.0, "ids": 12.0}
#: Operations to look a number up in working bounds.
_LOOK_UP = 30.0


@dataclass(frozen=True)
class Rates:
    """Seconds that a run needs: in any case, for each row in each measurement, and for each operation."""

    run: float
    row: float
    operation: float

    def seconds(self, plan: Plan, rows: int, *, narrowed: bool = False) -> float:
        """Estimate the time of a run on this number of rows, which may be read in working bounds."""
        operations = operations_of(plan, rows) + reading(plan, rows, narrowed=narrowed)
        return self.run + self.row * plan.measurements * rows + self.operation * operations


# Built once: every submission needs it.
_MEASURED = select(Timing.run_seconds, Timing.row_seconds, Timing.operation_seconds).where(
    Timing.algorithm == bindparam("algorithm"),
    Timing.objective == bindparam("objective"),
    Timing.kind == bindparam("kind"),
    Timing.kernels.in_((bindparam("kernels"), NUMPY)),
)
#: Enough for most plans on a machine of ten years ago.
DEFAULT = Rates(run=0.3, row=60e-9, operation=0.8e-9)


def operations_of(plan: Plan, rows: int) -> float:
    """Return the work of a run on the rows that the domain declares, or on those of a rehearsal."""
    work = plan.work if rows == plan.domain.size else kinds.work_on(plan, rows)
    return work.operations


def reading(plan: Plan, rows: int, *, narrowed: bool = False) -> float:
    """Return the operations of reading rows; in working bounds, again if they cannot be kept."""
    values = numbers(plan.domain) * rows
    looked_up = _LOOK_UP * (1 if 2 * values <= CACHE_BYTES else plan.measurements)
    return values * (_READ[plan.domain.kind] + (looked_up if narrowed else 0.0))


def rates_of(session: Session, plan: Plan) -> Rates:
    """Return what this service measured for the algorithm of a plan, or the defaults.

    Rates of another body of the kernels than this process uses do not count, unless they are numpy's:
    others are preferred to it only where they are faster.
    """
    key = {"algorithm": plan.algorithm, "objective": plan.objective, "kind": plan.domain.kind}
    key["kernels"] = body_in_use()
    found = session.connection().execute(_MEASURED, key).one_or_none()
    return DEFAULT if found is None else Rates(*found)


def planned_ms(rates: Rates, plan: Plan, rows: int, margin: float, *, narrowed: bool = False) -> int:
    """Return the planned time of a run on this number of rows in milliseconds: the estimate with a margin."""
    steps = math.ceil(margin * rates.seconds(plan, rows, narrowed=narrowed) * 1000 / _STEP_MS)
    return _STEP_MS * max(_LEAST_STEPS, steps)
