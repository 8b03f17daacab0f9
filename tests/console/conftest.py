"""The stage of the console's tests: one service and one browser for all of them, a fresh tab for each."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import chromium
from tests.support.console import Service
from tests.support.hospital import REGIONS, as_text, hospital

expect.set_options(timeout=60_000)  # a busy machine is slow, and waiting costs nothing when all is well
_serial = itertools.count(1)

# What a browser itself writes to its console when the service refuses something: the page handles those.
EXPECTED = "Failed to load resource: the server responded with a status of 4"


# Not of the session: while the browser is open, no other test of this process could run an event loop.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="package")
def service(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    path = tmp_path_factory.mktemp("console") / "cairn.sqlite3"
    shutil.copy(sqlite_template, path)
    with closing(Service(path)) as started:
        yield started


class Tab:
    """A page that keeps count of what it should never do."""

    def __init__(self, browser: Browser, service: Service, **options: Any):
        self.service = service
        self.context = browser.new_context(
            **{"viewport": {"width": 1280, "height": 900}, "color_scheme": "light", **options}
        )
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.complaints: list[str] = []
        self.foreseen: tuple[str, ...] = ()  # what a test causes on purpose, whenever the browser says it
        self.requests: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(EXPECTED):
            self.complaints.append(message.text)

    def go(self, place: str) -> Page:
        self.page.goto(f"{self.service.address}/{place}")
        return self.page

    def sign_in(self, key: str, place: str = "#/datasets") -> Page:
        self.go(place)
        self.page.get_by_label("Your key").fill(key)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("navigation", name="Main")).to_be_visible()
        return self.page

    def close(self) -> None:
        """Every test ends here: no complaint in the browser's console, no request to anybody else."""
        # What a page did just before its end is heard only after the browser had a turn.
        self.page.evaluate("() => new Promise((done) => setTimeout(done))")
        self.context.close()
        assert [each for each in self.complaints if not each.endswith(self.foreseen)] == []
        own = (self.service.address, "blob:", "data:")
        assert [url for url in self.requests if not url.startswith(own)] == []


@pytest.fixture
def tab(browser: Browser, service: Service) -> Iterator[Tab]:
    with closing(Tab(browser, service)) as opened:
        yield opened


@pytest.fixture
def phone(browser: Browser, service: Service) -> Iterator[Tab]:
    with closing(Tab(browser, service, viewport={"width": 375, "height": 740}, has_touch=True)) as opened:
        yield opened


@pytest.fixture
def fresh() -> str:
    """A name nobody has used in this service."""
    return f"n{next(_serial)}"


THREE_GROUPS = ((20.0, 10.0, 2.0), (50.0, 60.0, 8.0), (80.0, 30.0, 5.0))
COLUMNS = {"age": (0.0, 100.0), "income": (0.0, 80.0), "visits": (0.0, 10.0)}


def rows(count: int = 3000) -> bytes:
    """Three groups of make-believe people as a CSV file."""
    lines = ["age,income,visits,town"]
    for i in range(count):
        age, income, visits = THREE_GROUPS[i % 3]
        lines.append(f"{age + i % 7 - 3},{income + i % 5 - 2},{visits + i % 3 - 1},x")
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture
def granted(service: Service, fresh: str) -> tuple[str, str]:
    """A sealed dataset and the key of an analyst who may spend epsilon 2 of it."""
    key = service.analyst(f"ada-{fresh}")
    service.dataset(f"people-{fresh}", rows(), COLUMNS, caps={f"ada-{fresh}": ("2", "0.000005")})
    return f"people-{fresh}", key


@pytest.fixture(scope="package")
def finished(service: Service) -> tuple[str, str, str]:
    """A dataset, an analyst's key and the analyst's finished job."""
    key = service.analyst("grace")
    service.dataset("manners", rows(), COLUMNS, caps={"grace": ("2", "0.000005")}, description="For manners.")
    service.call("PUT", "/v1/datasets/manners/sites/depots", content=b"20,10,2\n50,60,8\n")
    listing = {"title": "People with manners", "shows": ["description", "columns"]}
    service.call("PUT", "/v1/datasets/manners/listing", json=listing)
    body = {"dataset": "manners", "k": 4, "epsilon": "1"}
    job = service.call("POST", "/v1/jobs", key=key, json=body)["id"]
    asked = {"dataset": "manners", "epsilon": "3", "purpose": "manners", "plan": body}
    service.call("POST", "/v1/requests", key=key, json=asked)
    return "manners", key, job


HOSPITAL: list[dict[str, Any]] = [
    {"name": "patient_id", "kind": "text", "role": "id"},
    {"name": "age", "kind": "number", "low": 0, "high": 120, "whole": True},
    {"name": "sex", "kind": "category", "levels": ["female", "male"], "missing": "level"},
    {"name": "region", "kind": "category", "levels": [*REGIONS, "abroad"], "other": "abroad", "weight": 0.5},
    {"name": "admissions", "kind": "number", "low": 0, "high": 20, "whole": True, "role": "keep"},
    {"name": "cost", "kind": "number", "low": 10, "high": 1e6, "log": True},
    {"name": "bmi", "kind": "number", "low": 10, "high": 60, "missing": "fill", "fill": 25},
    {"name": "visited", "kind": "date", "low": "2024-01-01", "high": "2024-12-31"},
    {"name": "smoker", "kind": "boolean"},
]


@pytest.fixture(scope="package")
def clustered_table(service: Service) -> tuple[str, str, str]:
    """A sealed table with columns of every kind, an analyst's key and the analyst's finished job."""
    key, name = service.analyst("florence"), "wards"
    budget = {"epsilon": "3", "delta": "0.00001"}
    service.call(
        "POST", "/v1/datasets", json={"name": name, "table": HOSPITAL, "size": 1000, "budget": budget}
    )
    service.call("PUT", f"/v1/datasets/{name}/data", content=as_text(hospital(1000)).encode())
    service.call("POST", f"/v1/datasets/{name}/seal", json={})
    service.call("PUT", f"/v1/datasets/{name}/grants/florence", json=budget)
    body = {"dataset": name, "k": 2, "epsilon": "1", "scaling": "private", "weights": {"age": 2}}
    return name, key, str(service.call("POST", "/v1/jobs", key=key, json=body)["id"])
