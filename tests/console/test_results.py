"""Results with many columns and many clusters, and results as commands for other programs."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from cairn_client import Client
from tests.console.conftest import Tab
from tests.console.test_accessibility import complaints_in_every_dress
from tests.support.console import Service

COLUMNS = [f"a_rather_long_name_without_any_gap_of_column_number_{i}" for i in range(30)]


@pytest.fixture(scope="module")
def wide(service: Service) -> tuple[str, str]:
    """The key of an analyst and their finished job with 20 centres of 30 columns."""
    chance = np.random.default_rng(1)
    spread = np.where(np.arange(30) < 12, 0.4, 0.05)  # centres differ in the first twelve columns
    groups = 0.5 + spread * chance.uniform(-1, 1, (20, 30))
    rows = groups[np.arange(4000) % 20].round(3)
    text = "\n".join([",".join(COLUMNS), *(",".join(map(str, row)) for row in rows)])
    key = service.analyst("wide-ada")
    bounds = dict.fromkeys(COLUMNS, (0.0, 1.0))
    caps = {"wide-ada": ("100", "0.0001")}
    service.dataset("wide-table", text.encode(), bounds, budget=("100", "0.0001"), caps=caps)
    body = {"dataset": "wide-table", "k": 20, "epsilon": "40", "delta": "0.000001"}
    return key, service.call("POST", "/v1/jobs", key=key, json=body)["id"]


def result_page(tab: Tab, wide: tuple[str, str]) -> Page:
    page = tab.sign_in(wide[0], f"#/jobs/{wide[1]}")
    expect(page.locator("#receipt")).to_be_visible()
    return page


def columns_shown(page: Page) -> list[str]:
    return [each.get_attribute("title") or "" for each in page.locator("#centres thead button").all()][2:]


def test_the_columns_in_which_centres_differ_most_are_shown_first(tab: Tab, wide: tuple[str, str]) -> None:
    page = result_page(tab, wide)
    assert columns_shown(page) == COLUMNS[:12]
    expect(page.get_by_role("img", name="Heat map of 20 centres and 12 columns")).to_be_visible()


def test_released_clusters_are_merged_into_fewer_with_the_keyboard(tab: Tab, wide: tuple[str, str]) -> None:
    page = result_page(tab, wide)
    expect(page.locator("#centres tbody tr")).to_have_count(20)
    knob = page.get_by_label("Clusters (k)")
    knob.press("ArrowLeft")
    expect(page.locator("#centres tbody tr")).to_have_count(19)
    knob.press("Home")
    expect(page.locator("#centres tbody tr")).to_have_count(1)
    assert "?k=1" in copied(page, "Copy as curl")
    page.get_by_role("button", name="As released: 20").click()
    expect(page.locator("#centres tbody tr")).to_have_count(20)
    assert "?k=" not in copied(page, "Copy as curl")


def test_columns_are_found_by_name_and_chosen(tab: Tab, wide: tuple[str, str]) -> None:
    page = result_page(tab, wide)
    page.get_by_text("Columns: 12 of 30").click()
    page.get_by_label("Find a column").fill("NUMBER_2")
    expect(page.get_by_label(COLUMNS[29])).to_be_visible()
    expect(page.get_by_label(COLUMNS[13])).to_have_count(0)
    page.get_by_role("button", name="Only those found").click()
    assert columns_shown(page) == [COLUMNS[2], *COLUMNS[20:]]
    page.get_by_label(COLUMNS[2], exact=True).uncheck()
    assert columns_shown(page) == COLUMNS[20:]


def test_a_sorted_column_that_is_taken_away_leaves_the_centres_in_order(
    tab: Tab, wide: tuple[str, str]
) -> None:
    page = result_page(tab, wide)
    page.locator("#centres thead button").nth(2).click()
    page.get_by_text("Columns: 12 of 30").click()
    page.get_by_label(COLUMNS[0], exact=True).uncheck()
    assert page.locator("#centres tbody td:first-child").all_inner_texts() == [str(i) for i in range(1, 21)]


def test_many_centres_are_drawn_one_by_one_on_request(tab: Tab, wide: tuple[str, str]) -> None:
    page = result_page(tab, wide)
    expect(page.get_by_role("img", name="Profile of centre")).to_have_count(0)
    page.get_by_role("button", name="Draw 20 centres one by one").click()
    expect(page.get_by_role("img", name="Profile of centre")).to_have_count(20)
    assert complaints_in_every_dress(page) == []


def test_long_names_do_not_scroll_the_page_sideways_on_a_phone(phone: Tab, wide: tuple[str, str]) -> None:
    page = result_page(phone, wide)
    expect(page.get_by_role("img", name="Heat map")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    phone.go("#/datasets/wide-table/job")
    expect(page.locator("#forecast-noise-at-bounds")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_the_file_of_the_console_is_that_of_the_client(
    tab: Tab, wide: tuple[str, str], tmp_path: Path
) -> None:
    page = result_page(tab, wide)
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=True).click()
    with Client(tab.service.address, wide[0]) as client:
        client.job(wide[1]).result().save(tmp_path / "client.csv")
    files = (Path(download.value.path()), tmp_path / "client.csv")
    ours, theirs = (list(csv.reader(path.read_text().splitlines())) for path in files)
    assert ours[0] == theirs[0]
    assert np.allclose(np.array(ours[1:], dtype=float), np.array(theirs[1:], dtype=float), rtol=1e-12)


def test_thousands_of_columns_are_not_all_listed(tab: Tab) -> None:
    page = tab.go("")
    expect(page.get_by_label("Your key")).to_be_visible()
    listed = page.evaluate(
        """async () => {
          const { columnChooser } = await import("/console/results/centres.js");
          const names = Array.from({ length: 50_000 }, (_, j) => `x${j}`);
          const chosen = [];
          const { element, follow } = columnChooser(names, [3, 7]);
          follow((places) => chosen.push(places));
          const search = element.querySelector("input[type=search]");
          search.value = "x4999";
          const before = element.querySelectorAll("input[type=checkbox]").length;
          search.dispatchEvent(new Event("input"));
          return [before, element.querySelectorAll("input[type=checkbox]").length, chosen];
        }"""
    )
    assert listed == [200, 11, [[3, 7]]]


def test_two_jobs_are_shown_side_by_side(tab: Tab, service: Service, granted: tuple[str, str]) -> None:
    for epsilon in ("0.5", "0.75"):
        body = {"dataset": granted[0], "k": 3, "epsilon": epsilon}
        service.call("POST", "/v1/jobs", key=granted[1], json=body)
    page = tab.sign_in(granted[1], "#/jobs/latest")
    expect(page.locator("#receipt")).to_be_visible()
    page.get_by_role("button", name="Compare").click()
    window = page.get_by_role("dialog")
    window.get_by_role("button", name="Compare").click()
    asked = page.get_by_role("region", name="What was asked")
    expect(asked.get_by_role("row", name="Cost")).to_contain_text("ε 0.75")
    expect(asked.get_by_role("row", name="Cost")).to_contain_text("ε 0.5")
    pairs = page.get_by_role("region", name="Pairs of centres").get_by_role("row")
    expect(pairs).to_have_count(4)
    distances = [float(row.get_by_role("cell").nth(2).inner_text().rstrip("%")) for row in pairs.all()[1:]]
    assert distances == sorted(distances)
    assert distances[-1] < 20  # three groups far apart: each pair is of one group
    assert complaints_in_every_dress(page) == []


def copied(page: Page, button: str) -> str:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name=button).click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    text: str = page.evaluate("navigator.clipboard.readText()")
    expect(page.get_by_role("button", name=button)).to_be_visible()
    return text


def run(command: list[str], key: str, text: str = "") -> str:
    environment = {"CAIRN_KEY": key, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_result_is_copied_as_commands_that_fetch_it(tab: Tab, wide: tuple[str, str]) -> None:
    page = result_page(tab, wide)
    python, curl = copied(page, "Copy as Python"), copied(page, "Copy as curl")
    assert wide[0] not in python + curl
    released = tab.service.call("GET", f"/v1/jobs/{wide[1]}/result", key=wide[0])
    first = released["centres"][0][0]
    assert f"{first:.8f}"[:5] in run([sys.executable, "-"], wide[0], python)
    assert released["job"] in run(["sh", "-c", curl], wide[0])


def test_a_planned_request_is_copied_as_commands_that_make_it(tab: Tab, granted: tuple[str, str]) -> None:
    page = tab.sign_in(granted[1], f"#/datasets/{granted[0]}/job")
    page.get_by_label("Algorithm").select_option("sulq")
    page.get_by_text("Options of sulq").click()
    page.get_by_label("rounds").fill("2")
    page.get_by_label("Epsilon, exactly").fill("0.25")
    expect(page.get_by_role("button", name="Submit for ε 0.25")).to_be_enabled()
    run([sys.executable, "-"], granted[1], copied(page, "Copy as Python"))
    run(["sh", "-c", copied(page, "Copy as curl")], granted[1])
    jobs = tab.service.call("GET", "/v1/jobs", key=granted[1])["items"]
    assert [(job["request"]["options"], job["cost"]["epsilon"]) for job in jobs] == [
        ({"rounds": 2}, "0.25")
    ] * 2


def test_a_job_gets_a_name_and_a_note_and_is_found_by_them(tab: Tab, granted: tuple[str, str]) -> None:
    ask = {"dataset": granted[0], "k": 2, "epsilon": "1", "rehearsal": True}
    jobs = [tab.service.call("POST", "/v1/jobs", key=granted[1], json=ask)["id"] for _ in range(9)]
    page = tab.sign_in(granted[1], f"#/jobs/{jobs[0]}")
    page.get_by_role("button", name="Name and note").click()
    window = page.get_by_role("dialog")
    window.get_by_label("Name").fill("Baseline")
    window.get_by_label("Note").fill("Before <b>the</b> reform.\nFirst try.")
    assert complaints_in_every_dress(page) == []
    window.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Baseline")).to_be_visible()
    expect(page.get_by_text("Before <b>the</b> reform.")).to_be_visible()
    tab.go("#/jobs")
    for words in ("baseline", "FIRST TRY"):
        page.get_by_label("Find a job").fill(words)
        expect(page.get_by_role("row")).to_have_count(2)
        expect(page.get_by_role("link", name="Baseline")).to_be_visible()
