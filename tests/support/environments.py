"""Virtual environments that hold a built wheel, what it requires and nothing else, without a download."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from email import message_from_bytes
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.harness.processes import outside


@dataclass(frozen=True)
class Environment:
    """A virtual environment; its programs run in `home`, away from the checkout."""

    folder: Path
    home: Path

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)

    def run(self, program: str, *arguments: str, typed: str = "", **variables: str) -> str:
        """Run a program of this environment to its end and return what it printed."""
        command = [self.program(program), *arguments]
        done = subprocess.run(
            command,
            cwd=self.home,
            env={**outside(), **variables},
            input=typed,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def add(self, wheel: Path) -> None:
        """Install one wheel more, whose requirements are here."""
        _pip(self.folder, "install", "--quiet", "--no-index", "--no-deps", str(wheel))

    def distributions(self) -> set[str]:
        """The names of everything that is installed here."""
        listed = json.loads(_pip(self.folder, "list", "--format", "json"))
        return {canonicalize_name(each["name"]) for each in listed}


def install(wheel: Path, folder: Path, extras: str = "") -> Environment:
    """Create a virtual environment and let pip install a wheel into it.

    pip may not ask an index. The distributions that the wheel requires, directly and indirectly, are linked
    from the environment of the tests: pip fails if one is missing or has the wrong version, and an import of
    anything that is not required fails.
    """
    made = Environment(folder / "environment", folder / "home")
    made.home.mkdir(parents=True)
    venv.create(made.folder, symlinks=True)
    site = Path(made.run("python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    for required in _closure(_requirements(wheel, extras)):
        for top in _top_level(required):
            (site / top).symlink_to(Path(str(required.locate_file(top))).resolve())
    _pip(made.folder, "install", "--quiet", "--no-index", f"{wheel}[{extras}]" if extras else str(wheel))
    return made


def _pip(folder: Path, *arguments: str) -> str:
    """Run this environment's pip on another one, without any configuration."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(folder),
        "--disable-pip-version-check",
        *arguments,
    ]
    without = {**outside(), "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(command, env=without, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _requirements(wheel: Path, extras: str) -> list[Requirement]:
    with ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = message_from_bytes(archive.read(metadata)).get_all("Requires-Dist", [])
    return _wanted(lines, {"", *filter(None, extras.split(","))})


def _wanted(lines: Iterable[str], extras: set[str]) -> list[Requirement]:
    """The requirements that apply on this machine with any of these extras ("" is none)."""
    parsed = [Requirement(line) for line in lines]
    return [
        each
        for each in parsed
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)
    ]


def _closure(requirements: list[Requirement]) -> list[Distribution]:
    """The installed distributions that satisfy requirements, with all that they require themselves."""
    found: dict[str, Distribution] = {}
    extras: dict[str, set[str]] = {}
    waiting = list(requirements)
    while waiting:
        each = waiting.pop()
        name = canonicalize_name(each.name)
        known = extras.setdefault(name, set())
        if name in found and known >= each.extras:
            continue
        found[name] = distribution(name)
        known |= each.extras
        waiting += _wanted(found[name].requires or [], {"", *known})
    return list(found.values())


def _top_level(installed: Distribution) -> set[str]:
    """The files and folders that a distribution has put into site-packages."""
    parts = {path.parts[0] for path in installed.files or []}
    return parts - {"..", "__pycache__"}
