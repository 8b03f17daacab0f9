"""Apply each listed mutant to a copy of the tree, run the tests of its group, and print which ones survived.

`python -m assurance mutants` keeps verdicts in `build/mutants.json`, so it can be stopped and taken up again.
A verdict is for one state of the mutated file and of the tests; when either changes, the mutant is tried
again. The tests of a group must pass without a mutant first. `--tree ../other` tries the same mutants on
another tree.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from assurance.mutants.groups import GROUPS, Group

ROOT = Path(__file__).parent.parent.parent
VERDICTS = ROOT / "build/mutants.json"
#: A mutant whose tests take longer than this hangs, which a run of the tests would not leave unnoticed.
LONGEST_SECONDS = 600
KILLED, SURVIVED, STALE = "killed", "survived", "stale"


@dataclass(frozen=True)
class Mutant:
    """A text of a file, and the text that replaces it; both are empty where nothing is changed."""

    group: Group
    file: str
    was: str
    now: str

    @property
    def name(self) -> str:
        return f"{self.file}: {_line(self.was)} -> {_line(self.now)}"

    def state(self, tree: Path) -> str:
        """Name the mutant, what it changes and the tests that should find it, by their contents."""
        hasher = hashlib.sha256(f"{self.name} {self.group.options}".encode())
        paths = [tree / name for name in (self.file, *self.group.tests) if name]
        for path in paths:
            for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
                hasher.update(file.read_bytes())
        return hasher.hexdigest()

    def try_in(self, tree: Path) -> str:
        """Apply the mutant to a tree, run the tests, and take it back."""
        if not self.file:
            return _test(tree, self.group)
        path = tree / self.file
        text = path.read_text(encoding="utf-8")
        if text.count(self.was) != 1:
            return STALE
        path.write_text(text.replace(self.was, self.now), encoding="utf-8")
        try:
            return _test(tree, self.group)
        finally:
            path.write_text(text, encoding="utf-8")


def _line(text: str) -> str:
    return " ".join(text.split())


def _test(tree: Path, group: Group) -> str:
    """Run the tests of a group until the first one fails."""
    command = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *group.options]
    # Processes that tests start import the copy, too.
    environment = {**os.environ, "PYTHONPATH": str(tree), "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [*command, *group.tests],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONGEST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return KILLED
    if done.returncode not in (0, 1, 2):  # 1: a test failed; 2: a module cannot even be imported
        raise RuntimeError(f"the tests of {group.name} cannot be run:\n{done.stdout}{done.stderr}")
    return KILLED if done.returncode else SURVIVED


def mutants(only: str) -> list[Mutant]:
    """All mutants of the groups whose names contain a word, each group after its own check."""
    found = []
    for group in GROUPS:
        if only in group.name:
            found.append(Mutant(group, "", "", ""))
            found += [
                Mutant(group, file, was, now) for file, pairs in group.mutants.items() for was, now in pairs
            ]
    return found


def _copy(tree: Path, target: Path) -> None:
    """Copy what git knows of a tree."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=tree, check=True, capture_output=True, text=True)
    for name in filter(None, listing.stdout.split("\0")):
        if (tree / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tree / name, target / name)


def main(arguments: list[str]) -> int:
    """Try mutants; the exit code is 1 if one survived, or no longer fits the code."""
    parser = argparse.ArgumentParser(prog="python -m assurance mutants", description=__doc__)
    parser.add_argument("--only", default="", help="groups whose names contain this")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="stop after this time; go on later"
    )
    parser.add_argument("--tree", type=Path, default=ROOT, help="the tree to try them on; default: this one")
    chosen = parser.parse_args(arguments)
    until = time.monotonic() + 60 * chosen.minutes
    verdicts: dict[str, str] = json.loads(VERDICTS.read_text()) if VERDICTS.exists() else {}
    tried: list[tuple[Mutant, str]] = []
    with tempfile.TemporaryDirectory(prefix="cairn-mutants-") as folder:
        copy = Path(folder)
        _copy(chosen.tree.resolve(), copy)
        for mutant in mutants(chosen.only):
            state = mutant.state(copy)
            if state not in verdicts:
                if time.monotonic() > until:
                    continue
                verdicts[state] = mutant.try_in(copy)
                VERDICTS.parent.mkdir(parents=True, exist_ok=True)
                VERDICTS.write_text(json.dumps(verdicts, indent=0))
            if not mutant.file and verdicts[state] == KILLED:
                raise RuntimeError(f"the tests of {mutant.group.name} fail without any mutant")
            tried.append((mutant, verdicts[state]))
            if mutant.file and verdicts[state] != KILLED:
                sys.stdout.write(f"{verdicts[state]}: {mutant.name}\n")
                sys.stdout.flush()
    real = [(mutant, verdict) for mutant, verdict in tried if mutant.file]
    counts = Counter(f"{mutant.group.name} {verdict}" for mutant, verdict in real)
    sys.stdout.writelines(f"{number:5d}  {what}\n" for what, number in sorted(counts.items()))
    killed = sum(verdict == KILLED for _, verdict in real)
    sys.stdout.write(f"{killed} of {len(real)} mutants were killed\n")
    return 0 if killed == len(real) else 1
