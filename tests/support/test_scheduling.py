"""Tests that share a started service are sent to one process; the others go wherever there is room."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.markdown import ROOT
from tests.support.scheduling import home_of
from tests.support.test_run import makefile_options

WHO = """
import os, pytest
@pytest.mark.parametrize("number", range(10))
def test_process(number):
    with open(os.environ["SEEN"], "a") as seen:
        seen.write(f"{__file__} {os.environ['PYTEST_XDIST_WORKER']}\\n")
"""


def test_a_file_with_a_service_is_one_home_and_other_tests_have_their_own() -> None:
    assert home_of("tests/client/test_login.py::test_a[x]") == "tests/client/test_login.py"
    assert home_of("tests/cluster/test_cluster.py::test_b") == "tests/cluster/"
    assert home_of("tests/fuzz/test_campaign.py::test_d[x]") == "tests/fuzz/test_campaign.py"
    assert home_of("tests/core/test_plan.py::test_c") == "tests/core/test_plan.py::test_c"


def test_the_test_command_keeps_a_home_in_one_process(tmp_path: Path) -> None:
    """With the options of the Makefile, on test files of the same names elsewhere."""
    for folder in ("core", "client", "console"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / "test_who.py").write_text(WHO)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    plugins = ["-p", "xdist", "-p", "tests.support.scheduling"]
    command = [sys.executable, "-m", "pytest", *plugins, *makefile_options()]
    environment = {
        "SEEN": str(tmp_path / "seen"),
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in (tmp_path / "seen").read_text().splitlines()]
    homes = [Path(file).parent.name for file, _ in {tuple(line) for line in lines}]
    assert (homes.count("client"), homes.count("console")) == (1, 1)
    assert Path(lines[0][0]).parent.name in ("client", "console")  # homes come first
