"""What axe says about every page, in both themes and on a phone, and how soon a page has its heading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Request, Route, expect

from tests.console.conftest import Tab
from tests.console.test_manners import BASIC_CHECKS, look_at_every_page
from tests.console.test_tables import dirty_hospital
from tests.support.console import Service
from tests.support.hospital import as_text, hospital

CONNECTIONS = 6  # what a browser opens to one host
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 740}
OPEN_ALL = "document.querySelectorAll('details').forEach((each) => (each.open = true))"
#: Leaves folded what holds no element of a new kind: fifty calls are described by the same few.
OPEN_EVERY_KIND = """() => {
    const seen = new Set();
    for (const part of document.querySelectorAll("details")) {
        const kinds = [...part.querySelectorAll("*")].map(
            (each) => `${each.parentElement.localName} > ${each.localName}.${each.className}`
        );
        part.open = kinds.some((kind) => !seen.has(kind));
        kinds.forEach((kind) => seen.add(kind));
    }
    return document.querySelectorAll("details[open]").length;
}"""


def complaints(page: Page, *, contrast: bool = True) -> list[str]:
    """What axe finds wrong with a page as it is now; checking contrast takes most of the time."""
    if not page.evaluate("'axe' in window"):  # once for each document: a new script is slow at first
        page.evaluate(Axe().axe_script)
    options = {"resultTypes": ["violations"], "rules": {"color-contrast": {"enabled": contrast}}}
    found: list[dict[str, Any]] = page.evaluate(
        "(options) => axe.run(options).then((found) => found.violations)", options
    )
    return [f"{each['id']}: {node['html'][:150]}" for each in found for node in each["nodes"]]


def complaints_in_every_dress(page: Page, opening: str = OPEN_ALL) -> list[str]:
    """Light and dark in a wide window, and dark on a phone; folded parts are opened first."""
    page.evaluate(opening)
    found = []
    for name, scheme, size in (("light", "light", WIDE), ("dark", "dark", WIDE), ("phone", "dark", PHONE)):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]  # a scheme
        page.set_viewport_size(size)  # type: ignore[arg-type]  # a dict of two sizes
        found += [f"{name}: {each}" for each in complaints(page)]
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]  # a dict of two sizes
    return found


def test_axe_finds_nothing_on_any_page(tab: Tab, finished: tuple[str, str, str]) -> None:
    def look(page: Page, _place: str) -> list[str]:
        return complaints_in_every_dress(page)

    assert look_at_every_page(tab, finished, look) == []


def test_axe_finds_nothing_in_dialogs_and_among_mistakes(
    tab: Tab, service: Service, granted: tuple[str, str]
) -> None:
    page = tab.sign_in(service.curator_key, f"#/datasets/{granted[0]}/grants")
    page.get_by_role("button", name="Change cap").click()
    page.get_by_role("dialog").get_by_label("Epsilon").fill("much")
    page.get_by_role("dialog").get_by_role("button", name="Change cap").click()
    expect(page.get_by_text("“much” is not a number.").first).to_be_visible()
    found = complaints_in_every_dress(page)
    page.keyboard.press("Escape")
    tab.go("#/datasets/new")
    page.get_by_role("button", name="Create the dataset").click()
    expect(page.get_by_label("Name", exact=True)).to_have_attribute("aria-invalid", "true")
    assert found + complaints_in_every_dress(page) == []


def test_axe_finds_nothing_in_the_report_on_a_draft(tab: Tab, service: Service, fresh: str) -> None:
    name = f"draft-{fresh}"
    body = {"name": name, "columns": ["a", "b"], "bounds": {"box": {"low": 0, "high": 1}}, "size": 9}
    more = {"budget": {"epsilon": "1"}, "reading": {"separator": ";", "decimal": ","}}
    service.call("POST", "/v1/datasets", json={**body, **more})
    rows = b"a;b\n1;x\n;2\n0,5;7\n"
    service.call("PUT", f"/v1/datasets/{name}/data?on_bad_row=drop", content=rows)
    page = tab.sign_in(service.curator_key, f"#/datasets/{name}")
    expect(page.get_by_role("heading", name="Check before you seal")).to_be_visible()
    assert complaints_in_every_dress(page) == []
    page.get_by_role("button", name="Edit").click()
    assert complaints_in_every_dress(page) == []


def everything_wrong_with(page: Page) -> list[str]:
    """What axe and the basic checks find, and whether a phone would scroll sideways."""
    found = [*complaints_in_every_dress(page), *page.evaluate(BASIC_CHECKS)]
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]  # a dict of two sizes
    width = page.evaluate("document.documentElement.scrollWidth")
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]  # a dict of two sizes
    return found if width <= PHONE["width"] else [*found, f"{width} pixels wide"]


def test_axe_finds_nothing_in_the_description_of_a_table(tab: Tab, tmp_path: Path) -> None:
    page = tab.sign_in(tab.service.curator_key, "#/datasets/new")
    commas = [[cell.replace(".", ",") for cell in row] for row in hospital(100)]
    (tmp_path / "hospital.csv").write_text(as_text(commas, ";"))
    page.get_by_label("Start from a file").set_input_files(tmp_path / "hospital.csv")
    expect(page.get_by_text("9 columns proposed")).to_be_visible()
    found = everything_wrong_with(page)
    page.get_by_label("Log scale of column 6").check()
    page.get_by_label("Missing value of column 7").select_option("fill")
    page.get_by_label("Levels of column 3").fill("")
    page.get_by_role("button", name="Create the dataset").click()
    expect(page.get_by_label("Levels of column 3")).to_have_attribute("aria-invalid", "true")
    assert found + everything_wrong_with(page) == []


def test_axe_finds_nothing_where_a_file_is_written_otherwise(
    tab: Tab, service: Service, fresh: str, tmp_path: Path
) -> None:
    table = [{"name": "cost", "kind": "number", "low": 0, "high": 9}]
    body = {"name": f"other-{fresh}", "table": table, "size": 9, "budget": {"epsilon": "1"}}
    service.call("POST", "/v1/datasets", json=body)
    commas = [[cell.replace(".", ",") for cell in row] for row in hospital(9)]
    (tmp_path / "costs.csv").write_text(as_text(commas, ";"))
    page = tab.sign_in(service.curator_key, f"#/datasets/other-{fresh}")
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "costs.csv")
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_role("button", name="Read it like this")).to_be_visible()
    assert everything_wrong_with(page) == []


def test_axe_finds_nothing_on_the_pages_of_a_table(tab: Tab, clustered_table: tuple[str, str, str]) -> None:
    name, key, job = clustered_table
    found = []
    page = tab.sign_in(key)
    for place, sign in (
        (f"#/datasets/{name}", "table"),
        (f"#/datasets/{name}/job", "#after"),
        (f"#/jobs/{job}", "#receipt"),
    ):
        tab.go(place)
        expect(page.locator(f"main[data-page='{place}'] {sign}").first).to_be_visible()
        expect(page.locator(".busy, main[aria-busy]")).to_have_count(0)
        found += [f"{place}: {each}" for each in everything_wrong_with(page)]
    assert found == []


def test_axe_finds_nothing_in_the_report_on_a_table_and_its_correction(
    tab: Tab, service: Service, fresh: str
) -> None:
    dirty_hospital(service, f"dirty-{fresh}")
    page = tab.sign_in(service.curator_key, f"#/datasets/dirty-{fresh}")
    expect(page.get_by_role("heading", name="Check before you seal")).to_be_visible()
    found = everything_wrong_with(page)
    page.get_by_role("link", name="Edit", exact=True).click()
    expect(page.get_by_role("button", name="Save the changes")).to_be_visible()
    assert found + everything_wrong_with(page) == []


def test_axe_finds_nothing_where_a_job_does_not_fit(tab: Tab, granted: tuple[str, str]) -> None:
    page = tab.sign_in(granted[1], f"#/datasets/{granted[0]}/job")
    page.get_by_label("Epsilon, exactly").fill("9")
    expect(page.locator("#too-much")).to_be_visible()
    assert complaints_in_every_dress(page) == []


def test_axe_finds_nothing_on_the_pages_about_calls_and_problems(tab: Tab) -> None:
    found = []
    for path in ("docs", "problems/cap-exhausted"):
        page = tab.go(path)
        found += [f"{path}: {each}" for each in complaints_in_every_dress(page, OPEN_EVERY_KIND)]
        page.evaluate(OPEN_ALL)
        found += [f"{path}: {each}" for each in complaints(page, contrast=False)]
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]  # a dict of two sizes
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path
    assert found == []


def trips_until_the_heading(page: Page, address: str) -> tuple[int, int]:
    """Round trips and bytes until a heading is seen, where a browser asks for six files at a time."""
    waiting: list[Route] = []
    done: list[Request] = []

    def hold(route: Route) -> None:
        if route.request.is_navigation_request():
            route.continue_()
        else:
            waiting.append(route)

    page.route("**/*", hold)
    page.on("requestfinished", lambda request: done.append(request))
    page.goto(address, wait_until="commit")
    heading, trips = page.locator("h1"), 1
    for _ in range(10):
        still = 0
        while still < 10 and not heading.count():  # until the page does nothing but wait for answers
            before = len(waiting)
            page.wait_for_timeout(20)
            still = still + 1 if len(waiting) == before else 0
        if heading.count():
            break
        for route in waiting[:CONNECTIONS]:
            route.continue_()
        del waiting[:CONNECTIONS]
        trips += 1
    loaded = sum(request.sizes()["responseBodySize"] for request in list(done))
    page.unroute("**/*")  # lets through what is still held
    return trips, loaded


def test_the_first_heading_takes_three_round_trips_and_150_kilobytes(tab: Tab) -> None:
    trips, size = trips_until_the_heading(tab.page, tab.service.address)
    assert tab.page.locator("h1").inner_text().startswith("Find the groups")
    assert trips <= 3
    assert 10_000 < size <= 150_000


def test_a_page_of_somebody_signed_in_has_its_heading_as_soon(
    tab: Tab, finished: tuple[str, str, str]
) -> None:
    page = tab.sign_in(finished[1])
    page.goto("about:blank")
    trips, size = trips_until_the_heading(page, f"{tab.service.address}/#/datasets/{finished[0]}/job")
    assert page.locator("h1").inner_text() == "Plan a job"
    assert trips <= 3
    assert size <= 150_000
    expect(page.locator("#cost")).to_be_visible()
