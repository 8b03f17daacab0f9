"""Progress of a long verification: how far it came is kept in a file, so that another run can go on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

#: Seconds between two reports, each of which is also written to the file.
_REPORT_SECONDS = 5.0


class Step(NamedTuple):
    """A thing that was verified: its number in the order of its part, its size, and what is wrong with it."""

    number: int
    size: int
    faults: list[str]


@dataclass(frozen=True)
class Part:
    """Things that are verified in the order of their numbers."""

    #: Tells it from other parts in the file.
    key: str
    #: The dataset, by name, and what is verified of it.
    dataset: str
    things: str
    #: Return the size of the things after a number, all together.
    size_after: Callable[[int], int]
    #: Verify the things after a number.
    steps_after: Callable[[int], Iterable[Step]]
    #: Divides sizes in reports; bytes are shown in GB.
    scale: float = 1.0
    unit: str = ""


class Progress:
    """How far each part of a verification has come, and what was wrong so far."""

    def __init__(
        self,
        path: Path | None = None,
        report: Callable[[str], None] = lambda _line: None,
        *,
        resume: bool = False,
    ):
        """`path`: where progress is kept; with `resume`, parts begin where the last run left them."""
        self._path, self._report = path, report
        self._reached: dict[str, int] = {}
        #: Of steps that an earlier run made.
        self.earlier_faults: list[str] = []
        if resume and path is not None and path.exists():
            kept = json.loads(path.read_text())
            self._reached, self.earlier_faults = kept["reached"], kept["faults"]
        self._faults = list(self.earlier_faults)

    def verify(self, part: Part) -> Iterator[str]:
        """Make the steps of a part that are left; yield what is wrong."""
        after = self._reached.get(part.key, 0)
        left, passed = part.size_after(after), 0
        begun = reported = time.monotonic()
        for step in part.steps_after(after):
            passed += step.size
            self._reached[part.key] = step.number
            faults = [f"{part.dataset}: {fault}" for fault in step.faults]
            self._faults += faults
            yield from faults
            if time.monotonic() - reported > _REPORT_SECONDS:
                reported = time.monotonic()
                self._report(_in_words(part, passed, left, reported - begun))
                self._keep()

    def end(self) -> None:
        """Forget the progress: everything was verified."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _keep(self) -> None:
        if self._path is None:
            return
        new = self._path.with_suffix(".new")
        with suppress(OSError):  # where nothing can be written, nothing can be resumed
            new.write_text(json.dumps({"reached": self._reached, "faults": self._faults}))
            new.replace(self._path)


def _in_words(part: Part, passed: int, whole: int, seconds: float) -> str:
    """Say how much of a part is verified, how fast, and how long the rest takes."""
    rate = passed / seconds
    left = max(0, whole - passed) / rate
    digits = 0 if part.scale == 1 else 2
    done, size, speed = (f"{each / part.scale:,.{digits}f}" for each in (passed, whole, rate))
    name = f"{part.things} of {part.dataset}"
    return f"{name}: {done} of {size}{part.unit} verified, {speed}{part.unit} a second, {left:.0f} s left"
