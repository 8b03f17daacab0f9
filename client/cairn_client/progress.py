"""Progress of a job: a line in a terminal, a bar in a notebook, nothing elsewhere."""

import html
import sys
from collections.abc import Callable
from typing import Any, TextIO

from cairn_client.wire import JobFacts

#: Called with the job each time it was fetched, and with None at the end.
Show = Callable[[JobFacts | None], None]
_WIDTH = 24


def in_words(job: JobFacts) -> str:
    """The state of a job, in a few words."""
    if job.state != "running":
        return job.state
    done = job.progress
    phase = f"measurement {min(done.measured + 1, done.planned)} of {done.planned}" if done else "running"
    return phase if job.due_at is None else f"{phase}, result at {job.due_at.astimezone():%H:%M:%S}"


def done_share(job: JobFacts) -> float:
    """The share of the planned measurements that are due, between 0 and 1."""
    if job.state == "succeeded":
        return 1.0
    return job.progress.measured / max(job.progress.planned, 1) if job.progress else 0.0


class TerminalBar:
    """A progress bar on one line of a terminal."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._length = 0

    def __call__(self, job: JobFacts | None) -> None:
        """Redraw the line; at the end, start a new one."""
        if job is None:
            self._stream.write("\n" if self._length else "")
        else:
            filled = round(_WIDTH * done_share(job))
            line = f"{job.dataset} [{'#' * filled}{'.' * (_WIDTH - filled)}] {in_words(job)}"
            self._stream.write("\r" + line.ljust(self._length))
            self._length = len(line)
        self._stream.flush()


class NotebookBar:
    """A progress bar in the output of a notebook cell."""

    def __init__(self, display: Any, as_html: Any):
        self._display, self._html = display, as_html
        self._handle: Any = None

    def __call__(self, job: JobFacts | None) -> None:
        """Draw the bar in place of the previous one."""
        if job is None:
            return
        words = html.escape(f"{job.dataset}: {in_words(job)}")
        drawn = self._html(f'<progress value="{done_share(job):.3f}" max="1"></progress> {words}')
        if self._handle is None:
            self._handle = self._display(drawn, display_id=True)
        else:
            self._handle.update(drawn)


def automatic() -> Show | None:
    """The progress bar for where this program runs, if any."""
    ipython = sys.modules.get("IPython")  # loaded already, if this is a notebook
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and hasattr(shell, "kernel"):
        from importlib import import_module

        tools = import_module("IPython.display")
        return NotebookBar(tools.display, tools.HTML)
    return TerminalBar(sys.stderr) if sys.stderr.isatty() else None
