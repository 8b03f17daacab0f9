"""Run pinned cases under fixed bits, and compare every released value with an earlier run.

    python -m tests.contracts.transcripts                  compare tiny cases with `golden/transcripts.jsonl`
    python -m tests.contracts.transcripts --write          write that file anew
    python -m tests.contracts.transcripts --against HEAD~1 run all cases in that commit and here, and compare

Only values that no BLAS and no libm rounds are kept in the repository: released integers of tiny cases.
`--against` runs both trees on this machine and compares all there is, to the letter: seeds, released values,
centres, sizes and details, and what whole runs over thousands of rows release (`large.py`). With
`--same-noise` this tree takes the other commit's mechanisms, for a change of noise that is wanted.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from tests.contracts.cases import DOMAINS, Case, QuestionCase, cases, rows_for
from tests.contracts.large import LARGE_RUNS, released_by
from tests.contracts.library import drawing_bytes_from, run, with_mechanisms
from tests.support.bits import RepeatableBytes

__all__ = ["KEPT", "golden_transcripts", "tiny_cases", "tiny_transcript", "transcript"]

_HERE = Path(__file__).parent
KEPT = _HERE / "golden" / "transcripts.jsonl"

TINY_ROWS, ROWS = 24, 120
#: Steps that come before an algorithm's first eigenvectors, which depend on LAPACK.
_BEFORE_EIGENVECTORS = {"summit": ("size", "centre", "radius", "moments")}
#: More values than these are kept as a digest.
_MOST_VALUES = 24


def tiny_cases() -> Iterator[Case | QuestionCase]:
    """Cases whose transcripts are kept in the repository."""
    everything = (case for case in cases() if case.algorithm != "auto")
    return (case for case in everything if case.k == 3 and "wide" not in case.domain)


def _run(
    case: Case | QuestionCase, count: int, mechanisms: list[dict[str, Any]] | None = None
) -> tuple[Any, Any, Any]:
    """The plan, what a run found and the released values of a case on made-up rows."""
    plan = case.plan()
    if mechanisms is not None:
        plan = with_mechanisms(plan, mechanisms)
    seed = int.from_bytes(hashlib.sha256(case.name.encode()).digest()[:6], "big")
    with drawing_bytes_from(RepeatableBytes(seed)):
        return plan, *run(plan, rows_for(DOMAINS[case.domain], count))


def tiny_transcript(case: Case | QuestionCase) -> list[list[Any]]:
    """For each step in turn: its name, how often it was measured, and the values or their digest."""
    _, _, released = _run(case, TINY_ROWS)
    exact = _BEFORE_EIGENVECTORS.get(case.algorithm)
    kept: list[list[Any]] = []
    for step, group in groupby(released, key=lambda release: release[0]):
        if exact is None or step in exact:
            values = [np.asarray(value, dtype="<i8") for _, value in group]
            flat = np.concatenate([value.ravel() for value in values])
            kept.append([step, len(values), flat.tolist() if flat.size <= _MOST_VALUES else _digest(values)])
    return kept


def _digest(values: list[Any]) -> str:
    """Names a list of arrays: every value, and every shape."""
    found = hashlib.sha256()
    for value in values:
        found.update(f"{value.dtype} {value.shape} ".encode() + np.ascontiguousarray(value).tobytes())
    return found.hexdigest()[:32]


def transcript(case: Case | QuestionCase, mechanisms: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """All that a run gives, exactly."""
    plan, found, released = _run(case, ROWS, mechanisms)
    whole = {
        "mechanisms": [step["mechanism"] for step in plan.to_json()["steps"]],
        "draws": dict(found.draws),
        "released": [[step, _digest([np.asarray(values)])] for step, values in released],
    }
    if isinstance(case, QuestionCase):
        return {**whole, "findings": found.values}
    return {
        **whole,
        "centres": np.asarray(found.centres).tolist(),
        "sizes": None if found.sizes is None else np.asarray(found.sizes).tolist(),
        "details": dict(found.details),
    }


def _all_transcripts(others: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Transcripts of all cases, under the mechanisms of `others` where these are given."""
    found: dict[str, Any] = {}
    for case in cases():
        theirs = others.get(case.name) if others else None
        found[case.name] = transcript(case, theirs["mechanisms"] if theirs else None)
    if others is None:  # whole runs keep their own mechanisms
        for large in LARGE_RUNS:
            released = released_by(large, chunk_rows=None)
            found[f"large: {large.name}"] = [[step, _digest([np.asarray(value)])] for step, value in released]
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]  # tuples become lists, as in the file


def golden_transcripts() -> dict[str, list[list[Any]]]:
    """The transcripts that are kept, by name of their case."""
    records = (json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines())
    return {kept["case"]: kept["released"] for kept in records}


def _run_commit(commit: str) -> dict[str, Any]:
    """Transcripts of all cases in the tree of a commit, by the cases and the adapter of this tree."""
    root = _HERE.parent.parent
    archive = subprocess.run(["git", "archive", commit], cwd=root, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory(prefix="cairn-transcripts-") as folder:
        tree = Path(folder)
        with tarfile.open(fileobj=io.BytesIO(archive)) as files:
            files.extractall(tree, filter="data")
        there = tree / "tests" / "contracts"
        there.mkdir(exist_ok=True)
        for name in ("__init__", "cases", "large", "library", "transcripts"):
            shutil.copy(_HERE / f"{name}.py", there / f"{name}.py")
        command = [sys.executable, "-m", "tests.contracts.transcripts", "--record", "found.json"]
        subprocess.run(command, cwd=tree, check=True)
        found: dict[str, Any] = json.loads((tree / "found.json").read_text())
        return found


def _differences(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    for name in [*theirs, *(name for name in ours if name not in theirs)]:
        if theirs.get(name) != ours.get(name):
            yield f"{name}: {_first_difference(theirs.get(name), ours.get(name))}"


def _first_difference(theirs: Any, ours: Any) -> str:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        parts = [part for part in theirs if theirs[part] != ours.get(part)]
        return "; ".join(f"{part}, {_first_difference(theirs[part], ours.get(part))}" for part in parts)
    if isinstance(theirs, list) and isinstance(ours, list):
        pairs = enumerate(zip(theirs, ours, strict=False))
        first = next((i for i, (was, now) in pairs if was != now), min(len(theirs), len(ours)))
        return f"number {first}: {theirs[first : first + 1]} -> {ours[first : first + 1]}"
    return f"{theirs!r} -> {ours!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true")
    what.add_argument("--against", metavar="COMMIT")
    what.add_argument("--record", metavar="FILE", help="write all transcripts of this tree to a file")
    parser.add_argument("--same-noise", action="store_true")
    chosen = parser.parse_args()
    if chosen.record:
        Path(chosen.record).write_text(json.dumps(_all_transcripts()))
        return 0
    if chosen.write:
        lines = (json.dumps({"case": c.name, "released": tiny_transcript(c)}) for c in tiny_cases())
        KEPT.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return 0
    if chosen.against:
        theirs = _run_commit(chosen.against)
        ours = _all_transcripts(theirs if chosen.same_noise else None)
    else:
        theirs, ours = golden_transcripts(), {case.name: tiny_transcript(case) for case in tiny_cases()}
    different = list(_differences(theirs, ours))
    sys.stdout.writelines(f"{line}\n" for line in different)
    sys.stdout.write(f"{len(ours)} transcripts compared, {len(different)} of them changed\n")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
