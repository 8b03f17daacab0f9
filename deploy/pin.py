"""Pin what the image installs: each package at its version of constraints.txt, with hashes of its wheels.

    python deploy/pin.py > deploy/requirements.txt

pip resolves the dependencies of the project and of its build once for each processor that the image is built
for, so the file holds one hash per wheel and processor, and nothing of the index that they come from.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXTRAS = ("server", "cluster", "otel")
PYTHON = "3.11"
PROCESSORS = ("x86_64", "aarch64")
#: Versions of glibc up to that of the base image, newest first: wheels are tagged with the oldest they need.
GLIBC = range(36, 4, -1)
_HEADER = (
    "# Made by `make requirements` from pyproject.toml and constraints.txt; installed by the Dockerfile.\n"
)


def wanted() -> list[str]:
    """What the image needs, as pyproject.toml states it."""
    facts = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = facts["project"]["optional-dependencies"]
    chosen = [requirement for extra in EXTRAS for requirement in extras[extra]]
    return [*facts["project"]["dependencies"], *chosen, *facts["build-system"]["requires"]]


def wheels(processor: str) -> dict[str, str]:
    """The SHA-256 of the wheel of every package, by `name==version`."""
    platforms = [f"--platform=manylinux_2_{minor}_{processor}" for minor in GLIBC]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    command += ["--report=-", "--target=unused", "--only-binary=:all:", f"--python-version={PYTHON}"]
    command += [
        *platforms,
        f"--platform=manylinux2014_{processor}",
        "--constraint=constraints.txt",
        *wanted(),
    ]
    report = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    return {
        f"{each['metadata']['name'].lower()}=={each['metadata']['version']}": each["download_info"][
            "archive_info"
        ]["hashes"]["sha256"]
        for each in report["install"]
    }


def main() -> None:
    """Write the file to standard output."""
    hashes: dict[str, set[str]] = defaultdict(set)
    for processor in PROCESSORS:
        for package, sha256 in wheels(processor).items():
            hashes[package].add(sha256)
    lines = [
        " \\\n".join([package, *(f"    --hash=sha256:{each}" for each in sorted(hashes[package]))])
        for package in sorted(hashes)
    ]
    sys.stdout.write(_HEADER + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
