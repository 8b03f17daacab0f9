"""A test run says by its exit code whether the console was tested in a browser."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.markdown import ROOT
from tests.support.browser import BROWSER_MISSING, NO_BROWSER, main

PAGE_TEST = """
from tests.support.browser import chromium

def test_a_page_in_a_browser():
    with chromium() as browser:
        browser.new_page().close()

def test_something_else():
    pass
"""


def run_without_a_browser(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a page test where neither the system nor Playwright has a browser."""
    test = folder / "test_page.py"
    test.write_text(PAGE_TEST)
    nowhere = folder / "nowhere"
    environment = {**os.environ, "PATH": str(nowhere), "PLAYWRIGHT_BROWSERS_PATH": str(nowhere)}
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--disable-plugin-autoload", "-ra"]
    command += ["-p", "tests.support.browser"]
    return subprocess.run(
        [*command, str(test), *options], cwd=ROOT, env=environment, capture_output=True, text=True
    )


def test_a_run_whose_browser_tests_did_not_run_does_not_pass(tmp_path: Path) -> None:
    run = run_without_a_browser(tmp_path)
    assert run.returncode == BROWSER_MISSING, run.stdout + run.stderr
    assert "1 passed, 1 skipped" in run.stdout
    assert NO_BROWSER in run.stdout


def test_a_run_of_other_tests_needs_no_browser(tmp_path: Path) -> None:
    assert run_without_a_browser(tmp_path, "-k", "something_else").returncode == 0


def test_a_machine_that_has_a_browser_installs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    assert capsys.readouterr() == ("", "")
