"""The browser of the console's tests: find one, or install one, and open it.

`make test` runs `python -m tests.support.browser`, which makes sure that a browser opens. It looks for the
system's Chromium, then for Playwright's own build, then downloads that build, and as a last resort asks the
system's package manager, as root only. Where nothing works it says so and the other tests run; pytest then
exits with `BROWSER_MISSING`, because the console was not tested.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Error, Playwright, sync_playwright

#: Exit code of a test run that would have passed, but whose browser tests did not run.
BROWSER_MISSING = 9

NO_BROWSER = (
    "The console's tests need Chromium and none could be opened: install your system's package `chromium`, "
    "or run `.venv/bin/playwright install --with-deps chromium`, then run `make test` again."
)
# The headless shell first: the same engine without the window around the page, for half the processor time.
SYSTEM_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# The browser must reach nothing but the page under test.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-default-apps",
    "--disable-extensions",
    "--mute-audio",
]


class BrowserMissing(Exception):
    """No browser opens; the message says why each candidate failed."""


def launch(playwright: Playwright) -> Browser:
    """Open the system's Chromium, or else Playwright's own build."""
    failures = []
    for path in [*filter(None, map(shutil.which, SYSTEM_BROWSERS)), None]:
        try:
            return playwright.chromium.launch(executable_path=path, args=FLAGS)
        except Error as error:
            failures.append(f"{path or 'build of Playwright'}: {error.message.strip().splitlines()[0]}")
    raise BrowserMissing("; ".join(failures))


@contextmanager
def chromium() -> Iterator[Browser]:
    """Open a browser for a test; without one the test is skipped, and the whole run does not pass."""
    with sync_playwright() as playwright:
        try:
            browser = launch(playwright)
        except BrowserMissing:
            pytest.skip(NO_BROWSER)
        yield browser
        browser.close()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run that passed without its browser tests: untested must not look like tested."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = (
        reporter.stats.get("skipped", []) if reporter else []
    )  # workers of pytest-xdist have no reporter
    if exitstatus == pytest.ExitCode.OK and any(NO_BROWSER in report.longreprtext for report in skipped):
        session.exitstatus = BROWSER_MISSING


def opens() -> bool:
    """True when a browser starts, with all the libraries it needs."""
    with sync_playwright() as playwright:
        try:
            launch(playwright).close()
        except BrowserMissing:
            return False
        return True


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _run(*command: str) -> bool:
    """Run a command of an installer; show the end of its output if it fails."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    finished = subprocess.run(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if finished.returncode:
        last = finished.stdout.strip().splitlines()[-1:] or ["no output"]
        _say(f"    failed: {' '.join(command)}: {last[0].strip()}")
    return finished.returncode == 0


def install() -> bool:
    """Try each way to get a browser until one opens; system packages are touched by root only."""
    root = os.geteuid() == 0
    _say("No Chromium on this machine: downloading the build that Playwright provides.")
    if _run(sys.executable, "-m", "playwright", "install", "--only-shell", "chromium"):
        if opens():
            return True
        if root:
            _say("It lacks system libraries: installing them with the package manager, as root.")
            if _run(sys.executable, "-m", "playwright", "install-deps", "chromium") and opens():
                return True
    if root and shutil.which("apt-get"):
        _say("The download did not work: installing the system's package of Chromium, as root.")
        _run("apt-get", "update", "-qq")
        for package in ("chromium-headless-shell", "chromium"):  # not every system has both
            if _run("apt-get", "install", "-y", "-qq", "--no-install-recommends", package) and opens():
                return True
    return opens()


def main() -> None:
    """Make sure that a browser opens; say so where it cannot be done."""
    if not opens() and not install():
        _say(NO_BROWSER)
        _say("All other tests run; the exit code will say that these did not.")


if __name__ == "__main__":
    main()
