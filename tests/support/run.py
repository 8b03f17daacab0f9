"""Run pytest so that a lost test process fails the run within a minute, and its test is named.

    python -m tests.support.run ARGUMENTS OF PYTEST

A process that is killed, or that ends itself, even with code 0, reports nothing. pytest-xdist sees it only
where no child keeps its pipe open, and pytest without xdist would just be gone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil

from tests.support.running import VARIABLE, lost_tests

_LOOK_SECONDS = 1.0
#: How long the other test processes may take to close their services before they are killed.
_END_SECONDS = 30.0
_FAILED = 1


def _say(text: str) -> None:
    sys.stderr.write(f"\n{text}\n")
    sys.stderr.flush()


def _end(tests: subprocess.Popen[bytes], folder: str) -> None:
    """Interrupt the run; kill what is left of it, with the services that it started."""
    tests.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        tests.wait(_END_SECONDS)
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(VARIABLE) == folder:
                process.kill()
    tests.wait()


def run(arguments: list[str]) -> int:
    """The exit code of pytest, or that of a failure if a test process was lost."""
    with tempfile.TemporaryDirectory(prefix="cairn-run-") as folder:
        environment = {**os.environ, VARIABLE: folder}
        tests = subprocess.Popen([sys.executable, "-m", "pytest", *arguments], env=environment)
        for order in (signal.SIGINT, signal.SIGTERM):  # Ctrl-C reaches pytest too, which then ends by itself
            signal.signal(order, lambda number, _frame: tests.send_signal(number))
        lost: list[str] = []
        while not lost and tests.returncode is None:
            with suppress(subprocess.TimeoutExpired):
                tests.wait(_LOOK_SECONDS)
            lost = lost_tests(Path(folder))
        for test in lost:
            _say(f"FAILED {test}: its test process ended in the middle of it.")
        if lost:
            _end(tests, folder)
        return tests.returncode or (_FAILED if lost else 0)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
