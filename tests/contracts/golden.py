"""Compare the plan of every pinned case with the one that `golden/plans.jsonl` keeps.

    python -m tests.contracts.golden            print every difference
    python -m tests.contracts.golden --write    write plans of new cases, and drop those of removed ones
    python -m tests.contracts.golden --replace  write all plans anew, after a change of plans that is wanted
    python -m tests.contracts.golden --list     write what moved within the tolerance to `golden/moved.txt`

Public inputs (the domain, the sites) are compared by digest, apart from the rest of a plan. All other
numbers must be the same up to rounding. The exception is the noise of a step, and what is computed from it:
it may move by 0.1%, but a step may never lose more privacy than its share of the budget. What moved must be
listed in `golden/moved.txt`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.contracts.cases import Case, QuestionCase, cases

__all__ = ["Difference", "compare", "differences", "golden_plans", "moves", "record"]

_FOLDER = Path(__file__).parent / "golden"
PLANS, MOVED = _FOLDER / "plans.jsonl", _FOLDER / "moved.txt"

#: Computed in another order or by another libm, a number may differ by this much.
ROUNDING = 1e-11
#: Noise may move by this share of itself, and rho, which is quadratic in it, by twice that.
NOISE = 1e-3
#: What each share of a budget leaves unused, and a loss may therefore grow by.
UNUSED = 2e-9
#: Numbers of a mechanism that say how much is lost: more noise is a smaller number.
LOSSES = {"mu", "epsilon", "amount", "delta"}
#: Parts of a plan with numbers that are computed from the noise of its steps.
_FROM_NOISE = ("forecast.", "privacy.rho", "privacy.approximate_delta", "parameters.")
_STEP_FIELDS = ("name", "statistic", "repeats", "mechanism", "purpose")


@dataclass(frozen=True)
class Difference:
    """A value of a plan that is not what it was."""

    path: str
    was: Any
    now: Any
    #: Noise, or a number that follows from it, within what is tolerated.
    tolerated: bool

    @property
    def percent(self) -> float:
        return 100 * (float(self.now) / float(self.was) - 1) if float(self.was) else math.inf

    def __str__(self) -> str:
        return f"{self.path}: {self.was!r} -> {self.now!r}" + (" (tolerated)" if self.tolerated else "")


def record(case: Case | QuestionCase) -> dict[str, Any]:
    """What is kept of a case's plan: public inputs by digest, and the rest as it is."""
    plan = json.loads(json.dumps(case.plan().to_json(), allow_nan=False))
    plan.pop("format")
    named = plan.pop("inputs")
    inputs = {"domain": named["domain"]["digest"], "sites": named.get("sites")}
    inputs |= {each: named[each] for each in ("clustered", "partitions") if each in named}
    plan["steps"] = [[step[field] for field in _STEP_FIELDS] for step in plan["steps"]]
    return {"case": case.name, "inputs": inputs, "plan": plan}


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """Every difference between two plans (the `plan` of a record)."""
    before, after = dict(_leaves("", old)), dict(_leaves("", new))
    changed = [path for path in {**before, **after} if not _same(before.get(path), after.get(path))]
    pairs = ((path, before.get(path), after.get(path)) for path in changed)
    return [Difference(path, was, now, _tolerated(path, was, now)) for path, was, now in pairs]


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Every number and text of a plan by its path; steps by their names."""
    if path == "steps":
        yield "order of steps", ", ".join(step[0] for step in value)
        for name, *rest in value:
            for field, part in zip(_STEP_FIELDS[1:], rest, strict=True):
                yield from _leaves(f"steps.{name}.{field}", part)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(f"{path}.{key}".lstrip("."), part)
    elif isinstance(value, list):
        yield f"{path} has", len(value)
        for i, part in enumerate(value):
            yield from _leaves(f"{path}[{i}]", part)
    else:
        yield path, value


def _same(was: Any, now: Any) -> bool:
    if isinstance(was, float) and isinstance(now, float):
        return math.isclose(was, now, rel_tol=ROUNDING)
    return type(was) is type(now) and bool(was == now)


def _tolerated(path: str, was: Any, now: Any) -> bool:
    head, _, name = path.rpartition(".")
    if path.startswith("privacy.") and isinstance(was, str) and isinstance(now, str):
        was, now = float(was), float(now)
    if not isinstance(was, float) or not isinstance(now, float):
        return False
    if head.startswith("steps.") and name in LOSSES:
        return was * (1 - NOISE) <= now <= was * (1 + UNUSED)
    return path.startswith(_FROM_NOISE) and math.isclose(was, now, rel_tol=2 * NOISE)


def golden_plans() -> dict[str, dict[str, Any]]:
    """The records that are kept, by name of their case."""
    if not PLANS.exists():
        return {}
    records = (json.loads(line) for line in PLANS.read_text(encoding="utf-8").splitlines())
    return {kept["case"]: kept for kept in records}


def differences(records: Iterable[Mapping[str, Any]]) -> dict[str, list[Difference]]:
    """By case, what differs between the plans that are kept and these."""
    kept = golden_plans()
    return {made["case"]: compare(kept[made["case"]]["plan"], made["plan"]) for made in records}


def moves(found: Mapping[str, list[Difference]]) -> str:
    """The tolerated differences, summed up: a line for each number of each algorithm."""
    changes: dict[str, list[float]] = defaultdict(list)
    for name, different in found.items():
        for each in different:
            if each.tolerated:
                changes[f"{name.split(';')[0]}: {each.path}"].append(each.percent)
    lines = [
        f"{where}: {min(percent):+.3f}% to {max(percent):+.3f}% in {len(percent)} plans"
        for where, percent in sorted(changes.items())
    ]
    return "\n".join(lines or ["Nothing moved."]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    for flag in ("--write", "--replace", "--list"):
        what.add_argument(flag, action="store_true")
    chosen = parser.parse_args()
    if chosen.write or chosen.replace:
        kept = golden_plans() if chosen.write else {}
        records = [kept.get(case.name) or record(case) for case in cases()]
        text = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in records)
        PLANS.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{len(records)} plans are kept\n")
        return 0
    found = differences(record(case) for case in cases())
    if chosen.list:
        MOVED.write_text(moves(found), encoding="utf-8")
    for name, different in found.items():
        sys.stdout.writelines(f"{name}: {each}\n" for each in different)
    changed = sum(bool(different) for different in found.values())
    sys.stdout.write(f"{len(found)} plans compared, {changed} of them changed\n")
    return int(any(not each.tolerated for different in found.values() for each in different))


if __name__ == "__main__":
    sys.exit(main())
