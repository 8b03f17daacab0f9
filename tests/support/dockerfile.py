"""Run the steps of a Dockerfile's stage in plain directories, for tests where there is no container engine.

Knows what this project's Dockerfile uses: ENV, WORKDIR, COPY from the context, RUN. Paths of the image are
directories below one folder; the context holds what .dockerignore lets through.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class Step:
    """One instruction of a Dockerfile, its continued lines joined."""

    word: str
    rest: str


def stages(text: str) -> list[list[Step]]:
    """The steps of each stage, without the FROM that begins it."""
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", "", lines)
    found: list[list[Step]] = []
    for line in filter(None, map(str.strip, joined.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append([])
        elif found:
            found[-1].append(Step(word, rest))
    return found


def copy_context(project: Path, target: Path) -> None:
    """What a build sees of the project: the files that .dockerignore excepts from its `*`."""
    everything, *rules = (project / ".dockerignore").read_text().split()
    assert everything == "*"
    for rule in rules:
        if rule.startswith("!"):
            source, copy = project / rule[1:], target / rule[1:]
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, copy)


@dataclass
class PlainBuild:
    """A build whose image is a folder: `/opt/x` of the image is `root/opt/x` here."""

    context: Path
    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    directory: Path = field(init=False)

    def __post_init__(self) -> None:
        self.directory = self.root
        programs = self.root / "programs"
        programs.mkdir(parents=True)
        # The base image's `python`, with its pip: the interpreter that runs the tests.
        (programs / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (programs / "python").chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}

    def path(self, inside: str) -> Path:
        """Where a path of the image lies."""
        return self.root / inside.lstrip("/") if inside.startswith("/") else self.directory / inside

    def run(self, steps: list[Step]) -> None:
        """Do the steps in their order."""
        for step in steps:
            getattr(self, f"_{step.word.lower()}")(step.rest)

    def _env(self, rest: str) -> None:
        # An image keeps no cache of downloads; the tests use theirs, or every run would fetch 200 MB again.
        self.environment |= dict(pair.split("=", 1) for pair in shlex.split(rest))
        self.environment.pop("PIP_NO_CACHE_DIR", None)

    def _workdir(self, rest: str) -> None:
        self.directory = self.path(rest)
        self.directory.mkdir(parents=True, exist_ok=True)

    def _copy(self, rest: str) -> None:
        *sources, target = rest.split()
        for name in sources:
            source = self.context / name
            if source.is_dir():
                shutil.copytree(source, self.path(target), dirs_exist_ok=True)
                continue
            folder = target.endswith("/")
            copy = self.path(target) / PurePosixPath(name).name if folder else self.path(target)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)

    def _run(self, rest: str) -> None:
        command = re.sub(r"(?<![\w.*])/(?=opt/|tmp/)", f"{self.root}/", rest)
        (self.root / "tmp").mkdir(exist_ok=True)
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"RUN {rest}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
