"""The long campaign of `make chaos`: `python -m assurance chaos` runs all pieces, or those that are named.

Each piece takes a few minutes and leaves its counts in `build/chaos/`, so that a campaign can be split; at
the end the counts of all pieces so far are added up. The exit code is 1 when anything was lost or overspent.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from assurance.chaos import (
    attacks,
    clocks,
    curators,
    deaths,
    guests,
    lost,
    periods,
    populations,
    races,
    statements,
)
from assurance.chaos.scene import Accountant
from assurance.chaos.stage import Stage, Tally
from core.postprocessing import kmeans
from service.operations.database import Database
from service.operations.logs import configure
from tests.support.databases import share_statements

FOLDER = Path("build/chaos")


def _statements(kind: str, accountant: Accountant) -> Callable[[Tally], None]:
    def run(tally: Tally) -> None:
        with Stage(kind) as stage:
            statements.kill_at_every_statement(stage, tally, accountant=accountant)

    return run


def _deaths(kind: str) -> Callable[[Tally], None]:
    def run(tally: Tally) -> None:
        with Stage(kind) as stage:
            deaths.kill_workers(stage, tally, rounds=3)
            deaths.kill_api(stage, tally, rounds=3)

    return run


def _lost(kind: str) -> Callable[[Tally], None]:
    def run(tally: Tally) -> None:
        with Stage(kind) as stage:
            lost.kill_at_every_statement_of_a_job(stage, tally)

    return run


def _postgres(tally: Tally) -> None:
    with Stage("postgresql") as stage:
        deaths.kill_postgres(stage, tally, rounds=2)


def _cuts(tally: Tally) -> None:
    with Stage("postgresql") as stage:
        deaths.cut_connections(stage, tally, most=36, stride=2)


def _attacks(kind: str) -> Callable[[Tally], None]:
    def run(tally: Tally) -> None:
        with Stage(kind) as stage:
            for line in attacks.attack(stage, tally, seconds=8.0):
                sys.stdout.write(line + "\n")
                sys.stdout.flush()

    return run


def _races(kind: str, accountant: Accountant) -> Callable[[Tally], None]:
    def run(tally: Tally) -> None:
        with Stage(kind) as stage:
            races.race(stage, tally, accountant=accountant, contests=210)

    return run


def _curators(kind: str) -> Callable[[Tally], None]:
    def run(tally: Tally) -> None:
        with Stage(kind) as stage:
            database = Database(stage.database())
            for fault in curators.race(database, 1000):
                tally.check(False, f"curators: {fault}")
            tally.add("races: curators who disable each other or themselves", 1000)
            tally.audit(database, "curators")
            database.dispose()

    return run


def _clocks(kind: str) -> Callable[[Tally], None]:
    def run(tally: Tally) -> None:
        with Stage(kind) as stage:
            clocks.step_at_every_statement(stage, tally)

    return run


def _guests(kind: str) -> Callable[[Tally], None]:
    def run(tally: Tally) -> None:
        with Stage(kind) as stage:
            sys.stdout.write(guests.keep_a_worker_busy(stage, tally) + "\n")

    return run


def _periods(kind: str) -> Callable[[Tally], None]:
    def run(tally: Tally) -> None:
        with Stage(kind) as stage:
            database = Database(stage.database())
            for give_back in (False, True):
                for fault in periods.race(database, 500, give_back=give_back):
                    tally.check(False, f"periods: {fault}")
                tally.add("races: overlapping periods", 500)
            database.dispose()

    return run


def _populations(kind: str) -> Callable[[Tally], None]:
    def run(tally: Tally) -> None:
        with Stage(kind) as stage:
            database = Database(stage.database())
            for fault in populations.race(database, 1000):
                tally.check(False, f"populations: {fault}")
            tally.add("races: two datasets of a population", 1000)
            database.dispose()

    return run


_DATABASES = ("sqlite", "postgresql")
_ACCOUNTANTS: tuple[Accountant, ...] = ("sum", "zcdp")
PIECES: dict[str, Callable[[Tally], None]] = {
    **{f"statements-{kind}-{each}": _statements(kind, each) for kind in _DATABASES for each in _ACCOUNTANTS},
    **{f"deaths-{kind}": _deaths(kind) for kind in _DATABASES},
    **{f"lost-{kind}": _lost(kind) for kind in _DATABASES},
    **{f"attacks-{kind}": _attacks(kind) for kind in _DATABASES},
    **{f"guests-{kind}": _guests(kind) for kind in _DATABASES},
    **{f"clocks-{kind}": _clocks(kind) for kind in _DATABASES},
    **{f"curators-{kind}": _curators(kind) for kind in _DATABASES},
    **{f"periods-{kind}": _periods(kind) for kind in _DATABASES},
    **{f"populations-{kind}": _populations(kind) for kind in _DATABASES},
    "outages": _postgres,
    "cuts": _cuts,
    **{
        f"races-{kind}-{each}-{part}": _races(kind, each)
        for part in range(1, 7)
        for kind in _DATABASES
        for each in _ACCOUNTANTS
    },
}


_SAMPLED = (
    "submit the owner's question",
    "narrow kinds",
    "submit",
    "claim",
    "end a queued job",
    "seal",
    "throw away rows",
    "seal a correction of a period",
)


def _sample(kind: str) -> Callable[[Tally], None]:
    """A little of everything, for `make test`."""

    def run(tally: Tally) -> None:
        with Stage(kind) as stage:
            first = _DATABASES.index(kind)  # other statements on the other database
            statements.kill_at_every_statement(stage, tally, acts=_SAMPLED, first=first, stride=3)
            lost.kill_at_every_statement_of_a_job(stage, tally, first=20 + first, stride=29)
            clocks.step_at_every_statement(stage, tally, first=first, stride=7, steps=clocks.STEPS[first::2])
            workers = ("claim.committed", "execute.measured", "finish.updated")
            deaths.kill_workers(stage, tally, rounds=1, points=workers)
            requests = ("submit.enqueued", "upload.chunk", "seal.updated")
            deaths.kill_api(stage, tally, rounds=1, points=requests)
            races.race(stage, tally, accountant="zcdp", contests=24, large_every=12)
            if kind == "postgresql":
                points = ("execute.begun", "execute.released", "submit.enqueued")
                deaths.kill_postgres(stage, tally, rounds=1, points=points)
                deaths.cut_connections(stage, tally, most=30, stride=15)

    return run


#: Not part of the campaign, and not counted with it.
SAMPLES = {f"sample-{kind}": _sample(kind) for kind in _DATABASES}


def main(names: list[str]) -> int:
    """Run some pieces, or all, and print what was done."""
    configure("text", "error")
    # Before processes are forked, which have it then.
    share_statements()
    kmeans.load()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or PIECES:
        began = time.monotonic()
        tally = Tally()
        (PIECES | SAMPLES)[name](tally)
        _print(f"{name} ({time.monotonic() - began:.0f} s)", tally.counts, tally.problems)
        if name in SAMPLES:
            return 1 if tally.problems else 0
        (FOLDER / f"{name}.json").write_text(tally.to_json())
    counts: Counter[str] = Counter()
    problems: list[str] = []
    found = sorted(FOLDER.glob("*.json"))
    for path in found:
        piece = json.loads(path.read_text())
        counts.update(piece["counts"])
        problems += piece["problems"]
    _print(f"All {len(found)} pieces so far", counts, problems)
    return 1 if problems else 0


def _print(title: str, counts: Counter[str], problems: list[str]) -> None:
    lines = [title, *(f"  {number:8,d}  {what}" for what, number in sorted(counts.items()))]
    faults = sum(number for what, number in counts.items() if what.endswith(("killed", "statement", "cut")))
    raced = sum(number for what, number in counts.items() if what.startswith("races: "))
    lost = sum("lost" in problem for problem in problems)
    overspent = sum("overspent" in problem or "more than the total" in problem for problem in problems)
    lines += [
        f"  faults injected {faults:,}, races run {raced:,}, "
        f"lost {lost}, overspent {overspent}, other problems {len(problems) - lost - overspent}"
    ]
    lines += [f"  PROBLEM: {problem}" for problem in problems[:20]]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
