"""Compare the plan of every pinned case with what `golden/privacy.jsonl` and `golden/estimates.jsonl` keep.

    python -m tests.contracts.golden                    print every difference
    python -m tests.contracts.golden --write-estimates  write the estimates of all plans again
    python -m tests.contracts.golden --write-privacy    write the privacy of all plans again

`privacy.jsonl` holds what a plan measures, with what noise and at what cost: it changes only together with an
argument for the change. `estimates.jsonl` holds planned work and forecasts of accuracy, which no promise
depends on: write it again whenever a constant is tuned. A new case needs both commands. Where
`--write-privacy` changes lines that were there before, explain each of them in the commit.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.contracts.cases import Case, QuestionCase, cases

__all__ = ["ESTIMATES", "PRIVACY", "GoldenFile"]

_FOLDER = Path(__file__).parent / "golden"

#: Computed in another order or by another libm, a number may differ by this share of itself.
ROUNDING = 1e-11
#: Numbers are kept to this many digits, which is finer than `ROUNDING`.
DIGITS = 13
#: Digests are kept to this many characters, which still name one domain or one set of sites.
DIGEST_CHARACTERS = 16
#: The parts of a plan that estimate something and promise nothing.
ESTIMATED = ("work", "forecast")
#: The parts that are in neither file: wording, and the number of the format of stored plans.
NOT_KEPT = ("format", "reason")


@dataclass(frozen=True)
class GoldenFile:
    """A file that keeps the same part of every case's plan, a line for each case."""

    path: Path
    estimates: bool

    def of(self, plan: Any) -> dict[str, Any]:
        """This file's part of a plan."""
        whole = plan.to_json()
        names = ESTIMATED if self.estimates else whole.keys() - {*ESTIMATED, *NOT_KEPT}
        kept: dict[str, Any] = _shorter({name: whole[name] for name in whole if name in names})
        if "steps" in kept:
            kept["steps"] = {step.pop("name"): _measured(step) for step in kept["steps"]}
        return kept

    def kept(self) -> dict[str, dict[str, Any]]:
        """What is kept, by name of the case."""
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        return dict(json.loads(line) for line in lines)

    def write(self, plans: Mapping[str, Any]) -> None:
        """Keep this file's part of all plans."""
        lines = (json.dumps([name, self.of(plan)], separators=(",", ":")) for name, plan in plans.items())
        self.path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def differences(self, plans: Mapping[str, Any]) -> list[str]:
        """A sentence for every value of these plans that is not the one that is kept."""
        kept = self.kept()
        return [
            f"{name}: {path}: {was!r} -> {now!r}"
            for name, plan in plans.items()
            for path, was, now in changed(kept.get(name, {}), self.of(plan))
        ]


PRIVACY = GoldenFile(_FOLDER / "privacy.jsonl", estimates=False)
ESTIMATES = GoldenFile(_FOLDER / "estimates.jsonl", estimates=True)


def _measured(step: Mapping[str, Any]) -> list[Any]:
    """What a step measures: the statistic (and its alternative), its mechanism, and how often if not once."""
    statistic = " or ".join(step[name] for name in ("statistic", "alternative") if name in step)
    return [statistic, step["mechanism"], *([step["repeats"]] if step["repeats"] != 1 else [])]


def _shorter(value: Any) -> Any:
    """A copy of a value, as JSON reads it back, with numbers and digests cut to what tells them apart."""
    if isinstance(value, Mapping):
        shorter = {name: _shorter(part) for name, part in value.items()}
        if "digest" in shorter:
            shorter["digest"] = shorter["digest"][:DIGEST_CHARACTERS]
        return shorter
    if isinstance(value, list | tuple):
        return [_shorter(part) for part in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The path of every value that differs, what it was and what it is."""
    before, after = dict(_leaves("", old)), dict(_leaves("", new))
    for path in {**before, **after}:
        was, now = before.get(path), after.get(path)
        if not _same(was, now):
            yield path, was, now


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Every number and text of a plan by its path, and the order of what has names."""
    if isinstance(value, Mapping):
        yield f"{path} has", list(value)
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


def plans() -> dict[str, Any]:
    """The plan of every pinned case, by its name."""
    made: list[Case | QuestionCase] = list(cases())
    return {case.name: case.plan() for case in made}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write-estimates", action="store_const", const=ESTIMATES, dest="written")
    what.add_argument("--write-privacy", action="store_const", const=PRIVACY, dest="written")
    written: GoldenFile | None = parser.parse_args().written
    made = plans()
    if written is not None:
        written.write(made)
        return 0
    found = [*PRIVACY.differences(made), *ESTIMATES.differences(made)]
    sys.stdout.writelines(f"{line}\n" for line in found)
    sys.stdout.write(f"{len(made)} plans compared, {len(found)} values changed\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
