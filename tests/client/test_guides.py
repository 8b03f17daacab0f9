"""The guides tell the truth: their blocks, and the first script, run against a real service."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cairn_client.cli import app
from cairn_client.login import login_file
from tests.markdown import ROOT, fences, pages
from tests.support.live import Live
from tests.support.terminal import in_terminal

TOLD = [page for page in pages() if any(fence.role for fence in fences(page))]
DEMO = "http://127.0.0.1:8000"  # where `make run` answers, and where the guides say it does


class Reader:
    """Somebody who follows a page, with a home directory of their own and the keys of the demo."""

    def __init__(self, live: Live, home: Path, monkeypatch: pytest.MonkeyPatch):
        self._live, self._environment = live, monkeypatch
        self._keys = {"analyst": live.analyst_key, "curator": live.curator_key}
        monkeypatch.chdir(home)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
        monkeypatch.setenv("CAIRN_URL", live.url)

    def become(self, role: str) -> None:
        """Use that role's key, unless the page has signed in: from then on the stored key must do."""
        self._role = role
        if not login_file().exists():
            self._environment.setenv("CAIRN_KEY", self._keys[role])

    def run(self, line: str) -> None:
        """Do what a line of a shell block says."""
        program, *words = shlex.split(line.replace(DEMO, self._live.url))
        assert program.removeprefix(".venv/bin/") == "cairn", f"only `cairn` may be used here: {line}"
        if words[0] == "login":
            self._sign_in(words)
        elif words[0] == "--install-completion":
            self._install_completion(line)
        else:
            done = CliRunner().invoke(app, words)
            assert done.exit_code == 0, f"{line}: {done.output}"

    def _sign_in(self, words: list[str]) -> None:
        """Type the key at the prompt, as a person does."""
        for name in ("CAIRN_URL", "CAIRN_KEY"):
            self._environment.delenv(name, raising=False)
        assert "Signed in" in in_terminal(*words, typed=f"{self._keys[self._role]}\n")

    def _install_completion(self, line: str) -> None:
        """Run it in a bash, then ask the next bash what it would complete."""
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment.setenv("PATH", path)
        _bash(f"{line}\n:")  # a second command, or bash would replace itself by the first
        asked = """
            . ~/.bashrc
            complete -p cairn | grep -q _cairn_completion
            COMP_WORDS=(cairn budget vis) COMP_CWORD=2
            _cairn_completion cairn vis budget  # as bash calls it
            echo "${COMPREPLY[@]}"
        """
        assert _bash(asked) == "visits\n"


def _bash(script: str) -> str:
    done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", TOLD)
def test_blocks_for_a_service_run_in_order(
    page: str, live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Python of a page shares one namespace, and all its blocks one empty home directory."""
    reader = Reader(live, tmp_path, monkeypatch)
    namespace: dict[str, object] = {}
    for fence in fences(page):
        if fence.role is None:
            continue
        reader.become(fence.role)
        if fence.language == "python":
            exec(compile(fence.code, fence.place, "exec"), namespace)
            continue
        for line in re.sub(r"\\\n\s*", " ", fence.code).splitlines():
            reader.run(line)


@pytest.mark.parametrize("told", [False, True], ids=["beside make run", "told address and key"])
def test_getting_started_gets_to_a_first_result(live: Live, tmp_path: Path, told: bool) -> None:
    (tmp_path / "var").symlink_to(live.home / "var")
    script = ROOT / "examples" / "getting_started.py"
    command = [sys.executable, "-W", "error", str(script), *([live.url, live.analyst_key] if told else [])]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "centres.csv").read_text().startswith("cluster,minutes,hour,size,size_noise,size_low,")
    assert "Refused: 9 asked" in run.stdout
