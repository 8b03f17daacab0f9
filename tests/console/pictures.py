"""Draws the pictures in docs/images: `make screenshots` runs this against a service of its own."""

from __future__ import annotations

import math
import random
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

import migrations
from service.operations.database import Database
from tests.support.browser import chromium
from tests.support.console import ROOT, Service

FOLDER = ROOT / "docs" / "images"
GROUPS = (
    (34, 28, 3.2, 0.2, 900),
    (52, 61, 1.4, 0.6, 1700),
    (71, 33, 6.8, 0.8, 1300),
    (28, 52, 0.8, 0.1, 700),
)
COLUMNS = {"age": (18.0, 100.0), "income": (0.0, 120.0), "visits": (0.0, 12.0), "chronic": (0.0, 1.0)}


def patients() -> bytes:
    """Make-believe patients in four groups: the same on every machine."""
    dice = random.Random(7)
    lines = ["age,income,visits,chronic"]
    for age, income, visits, chronic, count in GROUPS:
        for _ in range(count):
            values = (
                dice.gauss(age, 6),
                dice.gauss(income, 9),
                dice.gauss(visits, 0.8),
                dice.gauss(chronic, 0.12),
            )
            lines.append(",".join(f"{value:.2f}" for value in values))
    return ("\n".join(lines) + "\n").encode()


def main() -> None:
    """Set the scene, then take one picture after the other."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cairn.sqlite3"
        database = Database(f"sqlite:///{path}")
        migrations.upgrade(database.engine)
        database.dispose()
        service = Service(path)
        try:
            with chromium() as browser:
                draw(browser, service)
        finally:
            service.close()


def draw(browser: Browser, service: Service) -> None:
    """Every picture that the documents show."""
    ada, ben = service.analyst("ada"), service.analyst("ben")
    caps = {"ada": ("4", "0.00001"), "ben": ("2", "0.000005")}
    description = "Patients of four practices: age, income, visits a year, share with a chronic illness."
    service.dataset(
        "patients", patients(), COLUMNS, description=description, budget=("6", "0.00002"), caps=caps
    )
    readings = b"hour,load\n" + b"\n".join(
        f"{hour % 24},{50 + 40 * math.sin(hour)}".encode() for hour in range(2000)
    )
    meters = {"hour": (0.0, 24.0), "load": (0.0, 100.0)}
    service.dataset(
        "meters", readings, meters, description="Hourly readings of electricity meters.", size=2000
    )
    for key, epsilon in ((ben, "0.4"), (ada, "0.8")):
        body = {"dataset": "patients", "k": 3, "epsilon": epsilon}
        job = service.call("POST", "/v1/jobs", key=key, json=body)["id"]
        page = open_page(browser, service, key)
        show(page, service, f"#/jobs/{job}")
        expect(page.locator("#receipt")).to_be_visible(timeout=60_000)
        page.context.close()

    page = open_page(browser, service, service.curator_key)
    expect(page.locator(".gauge")).to_have_count(2)
    take(page, "console-datasets")
    show(page, service, "#/datasets/patients/ledger")
    page.get_by_role("button", name="Verify").click()
    expect(page.locator("main").get_by_text("check out")).to_be_visible()
    take(page, "console-ledger")
    page.context.close()

    page = open_page(browser, service, ada)
    show(page, service, "#/datasets/patients/job")
    expect(page.locator("#after")).to_be_visible()
    take(page, "console-plan", height=1160)
    page.get_by_label("Epsilon, exactly").fill("5")
    expect(page.locator("#cost")).to_have_text("ε 5")
    page.locator("#too-much").screenshot(path=FOLDER / "console-refused.png")
    page.get_by_label("Epsilon, exactly").fill("0.5")
    page.get_by_label("exactly", exact=True).check()
    expect(page.locator("#cost")).to_have_text("ε 0.5")
    page.get_by_role("button", name="Submit for ε 0.5").click()
    expect(page.locator("#receipt")).to_be_visible()
    take(page, "console-result", height=1160)
    page.locator("#receipt").screenshot(path=FOLDER / "console-receipt.png")
    job = page.url.rsplit("#", 1)[1]

    body = {"dataset": "patients", "k": {"from": 1, "to": 16}, "epsilon": "1"}
    opened = service.call("POST", "/v1/jobs", key=ada, json=body)["id"]
    show(page, service, f"#/jobs/{opened}")
    expect(page.locator("#map svg")).to_be_visible()
    page.mouse.move(0, 0)
    page.locator("#choose-k").screenshot(path=FOLDER / "choosing-curve.png")
    page.locator("#map").screenshot(path=FOLDER / "choosing-map.png")
    page.context.close()

    page = open_page(browser, service, ada, width=390, height=844, dark=True)
    show(page, service, f"#{job}")
    expect(page.locator("#receipt")).to_be_visible()
    take(page, "console-phone", height=844)
    page.context.close()


def open_page(
    browser: Browser, service: Service, key: str, *, width: int = 1180, height: int = 760, dark: bool = False
) -> Page:
    """A tab that is signed in."""
    size = {"width": width, "height": height}
    context = browser.new_context(
        viewport=size,  # type: ignore[arg-type]  # a dict of two sizes
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(f"{service.address}/#/datasets")
    page.get_by_label("Your key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    return page


def show(page: Page, service: Service, place: str) -> None:
    page.goto(f"{service.address}/{place}")
    expect(page.locator(f"main[data-page='{place}']")).to_be_visible()


def take(page: Page, name: str, height: int = 760) -> None:
    """What the window shows, without the pointer's marks."""
    width = page.viewport_size["width"] if page.viewport_size else 1180
    page.set_viewport_size({"width": width, "height": height})
    expect(page.locator(".busy")).to_have_count(0)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")


if __name__ == "__main__":
    main()
