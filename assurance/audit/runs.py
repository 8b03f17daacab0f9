"""The long privacy audit of every mechanism and algorithm: runs where bounds are loose, then prints a table.

`python -m assurance audit runs` keeps thresholds and counts in a CSV file after every few seconds of work, so
it can be stopped and taken up again at any time; randomness comes from the operating system. Counts belong to
one state of the code that measures: when it changes, they start anew. `--questions` audits questions alone.

Bounds hold at every number of runs, so the campaign looks at them as it goes. Every item gets a quarter of
its count first. What is left of an algorithm's runs goes, a few seconds at a time, to the item whose bound
may yet rise most; where none can rise by much, the algorithm is done early, unless `--every-run` is given.
`--each 200` counts so many runs on each neighbour of every item instead, and no more: a light look at all.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import sys
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from assurance.audit.audits import Audit, sample
from assurance.audit.bounds import ALPHA, Claim, Event, Rate
from assurance.audit.cases import CASES, PAIRS, VARIANTS, Case
from assurance.audit.mechanisms import MECHANISMS, MechanismCase
from assurance.audit.probes import WHOLE
from core.questions import registry as questions

ROOT = Path(__file__).parent.parent.parent
COUNTS = ROOT / "benchmarks/results/audit.csv"

#: At most so many counted runs of each algorithm, on both neighbours together.
RUNS = 20_000
#: The pair that tells most gets half of them, the others equal parts of the rest. Where sets of centres
#: compete, a crowd decides for itself and hides one record: there the first record tells most.
MAIN_SHARE = 0.5
FIRST_RECORD = ("gupta", "balcan", "balcan-median", "balcan-sparse", "jones")
#: The modules that decide what a mechanism releases.
MECHANICS = ("mechanisms", "sampling", "coverage", "families", "probe", "sensitivity", "totals", "privacy")
#: Thresholds are chosen on this part of as many runs beforehand, which are not counted.
PILOT, LEAST_PILOT = 0.15, 80
#: Every item gets this share of its count before any gets more.
FIRST_SHARE = 0.25
#: A bound that may rise by less than this share of what was declared is clear.
CLEAR = 0.05
_BATCH_SECONDS = 5.0


class Item:
    """One line of work: a mechanism or a case, how much of it is asked for and what was counted."""

    def __init__(self, name: str, work: Case | MechanismCase, each: int | None = None) -> None:
        self.name = name
        self.work = work
        #: Runs on each neighbour that are asked for, where that does not follow from `RUNS`.
        self.each = each
        self.audit: Audit | None = None

    @property
    def draws_each(self) -> int:
        return self.work.draws_each if isinstance(self.work, MechanismCase) else 1

    @property
    def claims(self) -> dict[str, Claim]:
        return self.work.claims

    @cached_property
    def code(self) -> str:
        """Names the code that is audited, and what it was asked to do."""
        if isinstance(self.work, Case):
            plan = self.work.plan.to_json()
            code, asked = code_digest(), json.dumps([plan["steps"], plan["parameters"]])
        else:
            code, asked = code_digest(*MECHANICS), repr(self.work.declared)
        return hashlib.sha256(f"{code}/{asked}".encode()).hexdigest()[:16]

    @property
    def target(self) -> int:
        """Runs on each neighbour."""
        if self.each is not None:
            return self.each
        if isinstance(self.work, MechanismCase):
            return -(-self.work.asked // (2 * self.draws_each))
        algorithm = self.work.variant.algorithm
        runs = RUNS / sum(variant.algorithm == algorithm for variant in VARIANTS.values())
        main = "first record" if algorithm in FIRST_RECORD else "outlier"
        others = (1 - MAIN_SHARE) / (len(PAIRS) - 1)
        return math.ceil(runs * (MAIN_SHARE if self.work.pair.name == main else others) / 2)

    @property
    def first(self) -> int:
        """Runs on each neighbour before any item gets more."""
        return self.target if self.each is not None else math.ceil(FIRST_SHARE * self.target)

    @property
    def counted(self) -> int:
        """Runs on each neighbour so far."""
        return 0 if self.audit is None else min(event.rare.runs for event in self.audit.events[WHOLE])

    @property
    def family(self) -> str:
        """The algorithm or mechanism whose runs this item shares."""
        return self.work.variant.algorithm if isinstance(self.work, Case) else self.name

    @property
    def row(self) -> str:
        """The row of the summary that this item may be the worst pair of."""
        return self.work.variant.name if isinstance(self.work, Case) else self.name

    def shares(self, estimated: bool) -> tuple[float, float]:
        """Of the whole and of the strongest step: the bound, or what it may come to, of what was declared."""
        if self.audit is None:
            return 0.0, 0.0
        found = self.audit.estimates() if estimated else self.audit.bounds()
        parts = {part: value / self.claims[part].limit for part, value in found.items()}
        return parts.pop(WHOLE), max(parts.values(), default=0.0)

    def take(self, runs: int, draw: np.random.Generator) -> Any:
        if isinstance(self.work, MechanismCase):
            return self.work.sample(runs, draw)
        return sample(self.work, runs, draw)

    def advance(self, until: float, draw: np.random.Generator) -> None:
        """Count about `_BATCH_SECONDS` more (no more than wanted at first), or choose thresholds."""
        if self.audit is None:
            pilot = self.take(max(LEAST_PILOT, int(PILOT * self.target)), draw)
            self.audit = Audit.begin(self.claims, pilot, self.target)
            return
        started, batch = time.monotonic(), 20
        while time.monotonic() < min(until, started + _BATCH_SECONDS):
            missing = self.first - self.counted
            batch = min(2 * batch, missing if missing > 0 else self.target, 100_000)
            self.audit.count(self.take(batch, draw))
            if 0 < missing <= batch:
                return


def items(each: int | None = None) -> list[Item]:
    return [
        *(Item(name, mechanism) for name, mechanism in MECHANISMS.items()),
        *(Item(name, case, each) for name, case in CASES.items()),
    ]


@cache
def code_digest(*modules: str) -> str:
    """Names what some modules of core say, or all that may see rows or add noise.

    What only sees released values, such as k-means on a coreset, changes no law of what is released.
    """
    hasher = hashlib.sha256()
    for path in sorted((ROOT / "core").rglob("*.py")):
        if path.stem in modules if modules else "postprocessing" not in path.parts:
            hasher.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return hasher.hexdigest()


def loosest(work: list[Item], clear: float = CLEAR) -> Item | None:
    """The item whose bound may yet rise most above its row's best; None where all are clear or spent."""
    spent, best = Counter[str](), defaultdict[str, tuple[float, float]](lambda: (0.0, 0.0))
    allowed = Counter[str]()
    for item in work:
        spent[item.family] += item.counted
        allowed[item.family] = RUNS // 2 if isinstance(item.work, Case) else item.target
        whole, alone = item.shares(estimated=False)
        best[item.row] = max(best[item.row][0], whole), max(best[item.row][1], alone)

    def gain(item: Item) -> float:
        pairs = zip(item.shares(estimated=True), best[item.row], strict=True)
        return max(min(estimate, 1.0) - bound for estimate, bound in pairs)

    left = [item for item in work if spent[item.family] < allowed[item.family]]
    found = max(left, key=gain, default=None)
    return found if found is not None and gain(found) > clear else None


_RATE = [field.name for field in fields(Rate)]
_EVENT = ["score", "rising", "cut", *(f"{side}_{name}" for side in ("rare", "common") for name in _RATE)]
_COLUMNS = ["code", "item", "part", "epsilon", "delta", "mu", *_EVENT]


def load(work: list[Item], path: Path) -> None:
    """Take up what was counted before for the same code."""
    if not path.exists():
        return
    known = {item.name: item for item in work}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            item = known.get(row["item"])
            if item is None or row["code"] != item.code:
                continue
            if item.audit is None:
                item.audit = Audit(item.claims, {})
            rates = (
                Rate(
                    *(int(row[f"{side}_{name}"]) for name in _RATE[:2]),
                    *(float(row[f"{side}_{name}"]) for name in _RATE[2:]),
                )
                for side in ("rare", "common")
            )
            event = Event(row["score"], row["rising"] == "True", float(row["cut"]), *rates)
            item.audit.events.setdefault(row["part"], []).append(event)


def save(work: list[Item], path: Path) -> None:
    fresh = path.with_suffix(".new")
    path.parent.mkdir(exist_ok=True)
    with fresh.open("w", newline="") as file:
        writer = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        writer.writeheader()
        for item in work:
            for part, events in (item.audit.events if item.audit else {}).items():
                claim = asdict(item.claims[part])
                for event in events:
                    flat = {"score": event.score, "rising": event.rising, "cut": event.cut}
                    for side in ("rare", "common"):
                        flat |= {f"{side}_{name}": v for name, v in asdict(getattr(event, side)).items()}
                    writer.writerow({"code": item.code, "item": item.name, "part": part, **claim, **flat})
    fresh.replace(path)


@dataclass(frozen=True)
class Line:
    """What was found about one item: the whole transcript, and the step nearest to its limit."""

    item: Item
    whole: float
    step: str
    alone: float

    @classmethod
    def of(cls, item: Item, audit: Audit) -> Line:
        shares = {part: bound / item.claims[part].limit for part, bound in audit.bounds().items()}
        whole = shares.pop(WHOLE)
        step = max(shares, key=shares.__getitem__, default="")
        return cls(item, whole, step, shares.get(step, 0.0))

    @property
    def runs(self) -> int:
        return 2 * self.item.counted * self.item.draws_each

    def found(self, part: str, share: float) -> str:
        """The bound as an epsilon at the declared delta, and how much of what was declared it is."""
        claim = self.item.claims[part]
        return f"{claim.epsilon_of(share * claim.limit):.3f} ({share:.0%})"

    def text(self, name: str, runs: int) -> str:
        claim = self.item.claims[WHOLE]
        step = ""
        if self.step:
            own = self.item.claims[self.step]
            step = f"{self.step}: {self.found(self.step, self.alone)} of {own.epsilon:.3f}"
        declared = f"{claim.epsilon:.3f}, {claim.delta:g}"
        return f"| {name} | {runs:,} | {declared} | {self.found(WHOLE, self.whole)} | {step} |"


_HEAD = (
    "| | counted | declared epsilon, delta | at least | nearest step: at least, of declared |\n"
    "|---|---|---|---|---|"
)


def table(work: list[Item]) -> str:
    """A line for each mechanism and each case."""
    lines = [Line.of(item, item.audit) for item in work if item.audit]
    return "\n".join([_HEAD, *(line.text(line.item.name, line.runs) for line in lines)])


def summary(work: list[Item]) -> str:
    """A line for each variant of an algorithm: its runs on all pairs, and what the worst pair showed."""
    by_variant: dict[str, list[Line]] = {}
    for item in work:
        if isinstance(item.work, Case) and item.audit:
            by_variant.setdefault(item.work.variant.name, []).append(Line.of(item, item.audit))
    texts = []
    for name, lines in by_variant.items():
        whole, alone = (max(lines, key=key) for key in (lambda x: x.whole, lambda x: x.alone))
        worst = replace(whole, step=alone.step, alone=alone.alone)
        texts.append(worst.text(name, sum(line.runs for line in lines)))
    return "\n".join([_HEAD, *texts])


def violations(work: list[Item]) -> list[str]:
    return [
        f"{item.name}, {part}: at least {bound:.4f}, declared {limit:.4f}"
        for item in work
        if item.audit
        for part, (bound, limit) in item.audit.violations(ALPHA).items()
    ]


def main(arguments: list[str]) -> int:
    """Count runs until bounds are clear, and print them."""
    parser = argparse.ArgumentParser(prog="python -m assurance audit runs", description=__doc__)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long; go on later")
    parser.add_argument("--only", default="", help="items whose names contain this")
    parser.add_argument("--questions", action="store_true", help="questions alone")
    parser.add_argument("--every-run", action="store_true", help="go on where bounds are clear already")
    parser.add_argument("--each", type=int, help="so many runs on each neighbour of every item, and no more")
    parser.add_argument("--counts", type=Path, default=COUNTS, help="where thresholds and counts are kept")
    given = parser.parse_args(arguments)
    until = time.monotonic() + 60 * given.minutes
    every = items(given.each)
    load(every, given.counts)
    chosen = [item for item in every if given.only in item.name]
    if given.questions:
        chosen = [item for item in chosen if item.family in questions.names()]
    clear = -math.inf if given.every_run else CLEAR
    draw = np.random.default_rng()  # which use of a step is looked at; noise is the operating system's
    for item in chosen:
        while item.counted < item.first and time.monotonic() < until:
            item.advance(until, draw)
            save(every, given.counts)
    while given.each is None and time.monotonic() < until and (loose := loosest(chosen, clear)) is not None:
        loose.advance(until, draw)
        save(every, given.counts)
    missing = [item.name for item in chosen if item.counted < item.first]
    broken = violations(every)
    report = [table(chosen), "", summary(chosen), "", f"{len(missing)} of {len(chosen)} still to be counted"]
    report += [f"{len(broken)} bounds exceed what was declared", *broken]
    sys.stdout.write("\n".join(report) + "\n")
    return 1 if broken else 0
