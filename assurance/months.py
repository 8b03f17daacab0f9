"""Twelve months of a dataset, by Python, by the command or in the console, with balances computed by hand.

    python -m assurance months --by python command console --months 12

Each run starts an empty service. Months arrive one by one; after each of them a job reads the last three.
Then come a job on all of them, a correction, a job on the corrected month, and retirement. After every step
what the service says is spent in each month is compared, to the last unit, with what was asked for.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Protocol

import numpy as np
from playwright.sync_api import Locator, Page, expect

import cairn_client
from benchmarks.harness.processes import server
from tests.support.browser import chromium

__all__ = ["Service", "ThroughPython", "run"]

_COLUMNS = {"days": (0, 60), "cost": (0, 50_000)}
_SIZE, _EPSILON, _DELTA = 1000, "3", "0.00001"
#: What jobs cost: on the last three months, on all of them, and on a corrected one.
_RECENT, _ALL, _SINGLE = Decimal("0.1"), Decimal("0.05"), Decimal("0.2")


class Service(Protocol):
    """A way to use a service: by a program, by commands, or in a browser."""

    def create(self, name: str) -> None: ...

    def add(self, name: str, label: str, file: Path) -> None: ...

    def ask(self, name: str, first: str, last: str, epsilon: Decimal) -> None: ...

    def correct(self, name: str, label: str, file: Path) -> None: ...

    def retire(self, name: str) -> None: ...


class ThroughPython:
    """The Python client."""

    def __init__(self, client: cairn_client.Client):
        self.client = client

    def create(self, name: str) -> None:
        low, high = zip(*_COLUMNS.values(), strict=True)
        self.client.create_dataset(
            name,
            columns=list(_COLUMNS),
            bounds=cairn_client.box(list(low), list(high)),
            size=_SIZE,
            epsilon=_EPSILON,
            delta=_DELTA,
            unit="record",
            planned_release=False,
        )

    def add(self, name: str, label: str, file: Path) -> None:
        self.client.dataset(name).upload(file, period=label, seal=True)

    def ask(self, name: str, first: str, last: str, epsilon: Decimal) -> None:
        self.client.dataset(name).cluster(2, epsilon, periods=(first, last), progress=False)

    def correct(self, name: str, label: str, file: Path) -> None:
        self.client.dataset(name).correct_period(label)
        self.add(name, label, file)

    def retire(self, name: str) -> None:
        self.client.dataset(name).retire()


class ThroughCommands:
    """The command `cairn`."""

    def __init__(self, address: str, key: str):
        self.environment = {**os.environ, "CAIRN_URL": address, "CAIRN_KEY": key}

    def _run(self, *arguments: str) -> None:
        command = [str(Path(sys.executable).with_name("cairn")), *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout}{done.stderr}"

    def create(self, name: str) -> None:
        columns = [f"--column={column}:{low}:{high}" for column, (low, high) in _COLUMNS.items()]
        budget = (f"--size={_SIZE}", f"--epsilon={_EPSILON}", f"--delta={_DELTA}")
        self._run("dataset", "create", name, "--unit=record", *columns, *budget, "--no-planned-release")

    def add(self, name: str, label: str, file: Path) -> None:
        self._run("upload", name, str(file), "--period", label, "--seal")

    def ask(self, name: str, first: str, last: str, epsilon: Decimal) -> None:
        chosen = (f"--epsilon={epsilon}", f"--periods={first}..{last}")
        self._run("submit", name, "-k", "2", *chosen, "--watch")

    def correct(self, name: str, label: str, file: Path) -> None:
        self._run("upload", name, str(file), "--period", label, "--correct", "--seal")

    def retire(self, name: str) -> None:
        self._run("dataset", "retire", name, "--yes")


class ThroughConsole:
    """The console, in a browser."""

    def __init__(self, page: Page, address: str, key: str):
        self.page, self.address = page, address
        page.goto(f"{address}/#/datasets")
        page.get_by_label("Your key").fill(key)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("navigation", name="Main")).to_be_visible()

    def _go(self, place: str) -> None:
        self.page.goto(f"{self.address}/#/datasets/{place}")

    def create(self, name: str) -> None:
        self._go("new")
        fill = self.page.get_by_label
        fill("Name", exact=True).fill(name)
        fill("Rows are").select_option("box")
        for number, (column, (low, high)) in enumerate(_COLUMNS.items(), 1):
            fill(f"Column of column {number}").fill(column)
            fill(f"Low of column {number}").fill(str(low))
            fill(f"High of column {number}").fill(str(high))
        fill("Size", exact=True).fill(str(_SIZE))
        fill("Rows arrive").select_option("record")
        fill("Show results at planned times").uncheck()
        self.page.get_by_role("button", name="Create the dataset").click()
        expect(self.page.get_by_role("heading", name=name)).to_be_visible()

    def add(self, name: str, label: str, file: Path) -> None:
        self._go(f"{name}/periods")
        self.page.get_by_role("button", name="Add the ").click()
        dialog = self.page.get_by_role("dialog")
        if not dialog.get_by_label("Label").input_value():
            dialog.get_by_label("Label").fill(label)  # of the first month; the next one is filled in
        expect(dialog.get_by_label("Label")).to_have_value(label)
        dialog.get_by_role("button", name="Add the period").click()
        self._seal(file, "Seal the period", label, 1)

    def correct(self, name: str, label: str, file: Path) -> None:
        self._go(f"{name}/periods")
        self._point(label).get_by_role("button", name="Correct").click()
        self.page.get_by_role("button", name="Begin a correction").click()
        self._seal(file, "Seal the correction", label, 2)

    def _point(self, label: str) -> Locator:
        heading = self.page.get_by_role("heading", name=label, exact=True)
        return self.page.locator(".timeline > li", has=heading)

    def _seal(self, file: Path, words: str, label: str, version: int) -> None:
        self.page.get_by_label("File", exact=True).set_input_files(file)
        self.page.get_by_role("button", name="Upload and check").click()
        self.page.get_by_role("button", name=words).click()
        expect(self._point(label)).to_contain_text(", sealed")
        if version > 1:
            expect(self._point(label)).to_contain_text(f"version {version}")

    def ask(self, name: str, first: str, last: str, epsilon: Decimal) -> None:
        self._go(f"{name}/job")
        self.page.get_by_label("First period").select_option(first)
        self.page.get_by_label("Last period").select_option(last)
        self.page.get_by_label("Epsilon, exactly").fill(str(epsilon))
        self.page.get_by_role("button", name="Submit for").click()
        expect(self.page.get_by_text("succeeded", exact=True).first).to_be_visible()

    def retire(self, name: str) -> None:
        self._go(name)
        self.page.get_by_role("button", name="Retire this dataset").click()
        self.page.get_by_role("dialog").get_by_role("textbox").fill(name)
        self.page.get_by_role("button", name="Delete the rows permanently").click()
        expect(self.page.get_by_text("retired", exact=True).first).to_be_visible()


def run(service: Service, books: cairn_client.Client, name: str, months: int, folder: Path) -> int:
    """Use a service for some months; return how many balances were compared."""
    dataset, spent, compared = books.dataset(name), dict[str, Decimal](), 0

    def compare() -> None:
        nonlocal compared
        found = {each.label: each.budget.spent.epsilon for each in dataset.periods() if each.budget}
        assert found == spent, f"the service says {found}, by hand it is {spent}"
        compared += len(found)

    def ask(labels: list[str], epsilon: Decimal) -> None:
        service.ask(name, labels[0], labels[-1], epsilon)
        spent.update({label: spent[label] + epsilon for label in labels})
        compare()

    service.create(name)
    for number in range(months):
        label = f"{2030 + number // 12}-{number % 12 + 1:02}"
        service.add(name, label, _rows(folder, number))
        spent[label] = Decimal(0)
        ask(list(spent)[-3:], _RECENT)
    ask(list(spent), _ALL)
    corrected = list(spent)[months // 2]
    service.correct(name, corrected, _rows(folder, months))
    compare()
    assert dataset.period(corrected).version == 2
    ask([corrected], _SINGLE)
    service.retire(name)
    compare()
    assert {each.state for each in dataset.periods()} == {"retired"}
    assert dataset.verify_ledger().ok
    return compared


def _rows(folder: Path, number: int) -> Path:
    """The file of a month."""
    low, high = np.array(list(_COLUMNS.values())).T
    rows = np.random.default_rng(number).uniform(low, high, (_SIZE, 2))
    path = folder / f"month-{number}.csv"
    np.savetxt(path, rows, delimiter=",", header=",".join(_COLUMNS), comments="", fmt="%.1f")
    return path


@contextlib.contextmanager
def _way(by: str, address: str, key: str) -> Iterator[Service]:
    if by == "python":
        with cairn_client.Client(address, key) as client:
            yield ThroughPython(client)
    elif by == "command":
        yield ThroughCommands(address, key)
    else:
        with chromium() as browser:
            yield ThroughConsole(browser.new_page(), address, key)


def main(arguments: list[str]) -> int:
    """Run some months in each way; print how many balances agreed."""
    parser = argparse.ArgumentParser(prog="python -m assurance months", description=__doc__)
    ways = ("python", "command", "console")
    parser.add_argument("--by", nargs="+", choices=ways, default=ways)
    parser.add_argument("--months", type=int, default=12)
    chosen = parser.parse_args(arguments)
    for by in chosen.by:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            limits = {"caller_rate": "1e6", "caller_burst": "1e6"}  # this asks faster than people do
            url = f"sqlite:///{folder / 'cairn.sqlite3'}"
            with server(url, folder, command=("serve", "--workers", "1"), **limits) as started:
                key = started.bootstrap_key()
                books = cairn_client.Client(started.address, key)
                with books, _way(by, started.address, key) as service:
                    compared = run(service, books, "stays", chosen.months, folder)
        sys.stdout.write(f"{by}: {chosen.months} months, {compared} balances agree to the last unit\n")
    return 0
