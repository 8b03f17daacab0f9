"""Fault points: named places where a test may kill or stop this process; inert otherwise.

Only tests arm one, by `CAIRN_TEST_FAULT=point:action:skip:ticket` in the environment of a process
that it starts. `action` is `kill` (SIGKILL) or `stop` (SIGSTOP, until the test lets it go on); `skip` is how
often the point is passed before; `ticket` is a file that the fault uses up, so that it happens once among all
processes that share it, or empty. In production mode the variable is not read. A point that is not armed
costs one comparison.
"""

import os
import signal
import threading
from pathlib import Path

VARIABLE = "CAIRN_TEST_FAULT"

#: Every point, in the order in which a job, a submission or an upload passes them.
POINTS = (
    "submit.planned",
    "submit.reserved",
    "submit.enqueued",
    "submit.committed",
    "cancel.voided",
    "upload.received",
    "upload.encoded",
    "upload.chunk",
    "upload.stored",
    "upload.committed",
    "draft.emptied",
    "seal.updated",
    "seal.committed",
    "claim.locked",
    "claim.charged",
    "claim.committed",
    "execute.begun",
    "execute.fetched",
    "execute.cached",
    "execute.drawn",
    "execute.kept",
    "execute.measured",
    "execute.released",
    "beat.renewed",
    "beat.committed",
    "finish.begun",
    "finish.updated",
    "finish.stored",
    "finish.committed",
)
_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


class _Fault:
    """A fault that has not happened yet."""

    def __init__(self, order: str):
        self.point, action, skip, ticket = order.split(":", 3)
        if self.point not in POINTS:
            raise ValueError(f"{VARIABLE} names no fault point: {self.point}")
        self._signal = _SIGNALS[action]
        self._skip = int(skip)
        self._ticket = Path(ticket) if ticket else None
        self._lock = threading.Lock()

    def meet(self) -> None:
        with self._lock:
            self._skip -= 1
            due = self._skip == -1
        if due and self._use_ticket():
            os.kill(os.getpid(), self._signal)

    def _use_ticket(self) -> bool:
        if self._ticket is None:
            return True
        try:
            self._ticket.unlink()
        except FileNotFoundError:
            return False
        return True


_armed: _Fault | None = None


def arm(order: str) -> None:
    """Arm a fault in this process; for tests that start processes by other means than a command."""
    global _armed
    _armed = _Fault(order) if order else None


def reach(point: str) -> None:
    """Pass a fault point; nothing happens unless a test armed it."""
    if _armed is not None and _armed.point == point:
        _armed.meet()


if os.environ.get("CAIRN_MODE") != "production":
    arm(os.environ.get(VARIABLE, ""))
