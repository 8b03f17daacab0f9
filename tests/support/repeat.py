"""Repeat the tests that draw noise, race threads or start processes, under load, and list what failed once.

    python -m tests.support.repeat --rounds 10

Each round runs every piece, in an order of its own, while busy loops keep the machine's cores from the tests.
What was done is written down: stopped and started again, it goes on where it was. No test is retried.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: The parts of the suite that chance or a busy machine can change; the others only compute.
PIECES = (
    "tests/acceptance",
    "tests/audit",
    "tests/benchmarks",
    "tests/chaos",
    "tests/client",
    "tests/cluster",
    "tests/console",
    "tests/core",
    "tests/fuzz",
    "tests/legacy",
    "tests/service/datasets",
    "tests/service/http",
    "tests/service/jobs",
    "tests/service/ledger",
    "tests/service/operations",
    "tests/service/people",
    "tests/service/workers",
    "tests/statistical",
    "tests/support",
)
FOLDER = Path("build/repeat")
_BUSY_LOOPS = 4
_DISTRIBUTED = ("--dist", "loadscope", "--max-worker-restart", "0")
_HANGING = ("-o", "faulthandler_timeout=1800", "-o", "faulthandler_exit_on_timeout=true")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@contextmanager
def load() -> Iterator[None]:
    """Busy loops at normal priority."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(_BUSY_LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run(piece: str, seed: int, workers: int) -> tuple[int, list[str]]:
    """The exit code of a piece in the order of this seed, and the lines that name what failed."""
    log = FOLDER / f"{seed}-{piece.replace('/', '-')}.log"
    order = ["--order", str(seed), "-n", str(workers), *_DISTRIBUTED, *_HANGING]
    with log.open("w") as out:
        command = [sys.executable, "-m", "tests.support.run", "-q", *order, piece]
        code = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    lines = log.read_text(errors="replace").splitlines()
    return code, sorted({line for line in lines if line.startswith(("FAILED ", "ERROR "))})


def report(rounds: int, done: list[str]) -> int:
    """Say how many rounds were green and what failed; the exit code."""
    failed = {line.split()[0] for line in done if line.split()[2] != "0"}
    _say(f"{rounds - len(failed)} of {rounds} rounds green")
    failures = FOLDER / "failures.txt"
    if failures.exists():
        names = Counter(line.split(" - ")[0] for line in failures.read_text().splitlines())
        for name, times in names.most_common():
            _say(f"{times:4d}  {name}")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--again", action="store_true", help="forget the rounds of an earlier call")
    parser.add_argument("pieces", nargs="*", default=PIECES)
    options = parser.parse_args()
    if options.again:
        shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    book = FOLDER / "done.txt"
    book.touch()
    for number in range(1, options.rounds + 1):
        pieces = random.Random(number).sample(options.pieces, len(options.pieces))
        for piece in pieces:
            if any(line.startswith(f"{number} {piece} ") for line in book.read_text().splitlines()):
                continue
            with load():
                code, failures = run(piece, number, options.workers)
            with (FOLDER / "failures.txt").open("a") as file:
                file.writelines(f"{line}\n" for line in failures)
            with book.open("a") as file:
                file.write(f"{number} {piece} {code}\n")
            verdict = "green" if code == 0 else f"failed with code {code}"
            _say("\n    ".join([f"round {number}, {piece}: {verdict}", *failures]))
    return report(options.rounds, book.read_text().splitlines())


if __name__ == "__main__":
    sys.exit(main())
