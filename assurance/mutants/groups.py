"""The groups of mutants: what each changes, and the tests that should notice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assurance.mutants import core, service

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Group:
    """Mutants of some files, by file: a text that occurs once, and its replacement."""

    name: str
    tests: tuple[str, ...]
    mutants: Mapping[str, Pairs]
    #: Options of pytest; most groups leave out PostgreSQL, where a mutant behaves as on SQLite.
    options: tuple[str, ...] = ("-k", "not postgresql")


_LEDGER = (
    "tests/service/ledger/test_units.py",
    "tests/service/ledger/test_accountants.py",
    "tests/service/ledger/test_charging.py",
    "tests/service/ledger/test_accounts.py",
    "tests/service/ledger/test_checkpoints.py",
    "tests/service/jobs/test_costs.py",
)
_QUEUE = ("tests/service/jobs/test_queue.py", "tests/service/jobs/test_release.py")
_SUBMIT = (
    "tests/service/jobs/test_submit.py",
    "tests/service/jobs/test_costs.py",
    "tests/service/jobs/test_quotes.py",
    "tests/service/jobs/test_release.py",
    "tests/service/workers/test_rehearsal.py",
)
_PLAN = (
    "tests/core/test_probe.py",
    "tests/core/test_plan.py",
    "tests/core/privacy",
    "tests/contracts/test_golden.py",
)
_MECHANISMS = (
    "tests/core/mechanisms",
    "tests/contracts/test_transcripts.py",
    "tests/statistical/test_threshold.py",
)
_RACES = (
    "tests/service/ledger/test_accounts.py",
    "tests/service/jobs/test_queue.py",
    "tests/service/jobs/test_submit.py",
)

GROUPS = (
    Group("sensitivity", ("tests/core/statistics",), core.SENSITIVITY),
    Group("probe", ("tests/core/test_probe.py", "tests/core/coverage/test_loop.py"), core.PROBE),
    Group("plan", _PLAN, core.PLAN),
    Group("noise", _MECHANISMS, core.NOISE),
    Group("ledger", _LEDGER, service.LEDGER),
    Group("queue", _QUEUE, service.QUEUE),
    Group("submit", _SUBMIT, service.SUBMIT),
    Group("locks", _RACES, service.LOCKS, ("-k", "postgresql and (concurrent or racing or moment)")),
)
