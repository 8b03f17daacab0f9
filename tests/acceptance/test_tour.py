"""The README's tour, pasted command by command into a shell, against what `make run` starts."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.harness.processes import RunningService, server
from tests.markdown import fences


def paste(service: RunningService, key: str, command: str) -> Any:
    environment = {"KEY": key, "HERE": f"{service.address}/v1", "PATH": "/usr/bin:/bin:/usr/local/bin"}
    done = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_commands_of_the_tour_answer_as_the_readme_says(tmp_path: Path) -> None:
    commands = [each.code for each in fences("README.md") if each.language == "sh" and "$HERE/" in each.code]
    directory = ("demo", "--directory", str(tmp_path / "demo"))
    with server("sqlite:///unused", tmp_path, command=directory) as service:
        keys = (tmp_path / "demo" / "demo-keys.txt").read_text().split()
        plan, job, read, too_much = commands
        quoted = paste(service, keys[1], plan)
        assert (quoted["fits"], quoted["cost"]) == (True, {"epsilon": "1", "delta": "0.000001"})
        submitted = paste(service, keys[1], job)
        service.person(keys[1]).wait(submitted["id"])
        centres = paste(service, keys[1], read)["centres"]
        # The demo's rows lie around these three points; far less than this is lost to noise at epsilon 1.
        for minutes, hour in ((8, 8.5), (35, 13), (75, 19)):
            assert any(abs(a - minutes) < 10 and abs(b - hour) < 3 for a, b in centres)
        refused = paste(service, keys[1], too_much)
        assert (refused["type"], refused["remaining"]["epsilon"]) == ("/problems/cap-exhausted", "4")
        # Those who took the first steps before the tour have spent one epsilon more.
        service.person(keys[1]).wait(paste(service, keys[1], job)["id"])
        refused = paste(service, keys[1], too_much)
        assert (refused["type"], refused["remaining"]["epsilon"]) == ("/problems/cap-exhausted", "3")
    said = service.log.read_text()
    assert f"Cairn answers at {service.address}" in said
    assert len(re.findall(r"curl -sS", said)) == 3
    assert all(key in said for key in keys)
