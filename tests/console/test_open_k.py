"""A job that leaves k open: one price, then a slider, a curve, a tree and a map that answer for every k."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.conftest import Tab
from tests.console.test_accessibility import complaints_in_every_dress
from tests.console.test_manners import BASIC_CHECKS, CONTRAST
from tests.console.test_modules import call
from tests.console.test_prices import submissions
from tests.console.test_results import copied, run
from tests.support.console import Service

MIDDLES = ((20, 15, 2), (50, 60, 8), (80, 30, 5), (30, 70, 1))
COLUMNS = {"age": (0.0, 100.0), "income": (0.0, 80.0), "visits": (0.0, 10.0)}


def four_groups() -> bytes:
    dice = random.Random(5)
    lines = [",".join(COLUMNS)]
    for i in range(4000):
        lines.append(
            ",".join(f"{dice.gauss(x, s):.2f}" for x, s in zip(MIDDLES[i % 4], (4, 4, 0.5), strict=True))
        )
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture(scope="module")
def opened(service: Service) -> tuple[str, str]:
    """An analyst's key and a job of theirs with k from 1 to 8; the rows are in four groups."""
    key = service.analyst("open-minded")
    service.dataset("four-groups", four_groups(), COLUMNS, caps={"open-minded": ("3", "0.00001")})
    body = {"dataset": "four-groups", "k": {"from": 1, "to": 8}, "epsilon": "1"}
    return key, service.call("POST", "/v1/jobs", key=key, json=body)["id"]


def result_page(tab: Tab, opened: tuple[str, str]) -> Page:
    page = tab.sign_in(opened[0], f"#/jobs/{opened[1]}")
    expect(page.locator("#map svg")).to_be_visible()
    return page


def expect_k(page: Page, k: int) -> None:
    """Everything on the page is about so many clusters."""
    expect(page.get_by_label("Clusters (k)")).to_have_value(str(k))
    expect(page.locator("#centres tbody tr")).to_have_count(k)
    expect(page.locator("#sureness tbody tr")).to_have_count(k)
    expect(page.locator("#elbow .chosen")).to_have_attribute("data-k", str(k))
    expect(page.get_by_role("img", name=f"Cut into {k}.")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile(rf"made-up rows in {k} cluster"))).to_be_visible()
    expect(page.locator("#map circle")).to_have_count(k)
    sizes = page.get_by_role("img", name="Noisy sizes")
    expect(sizes).to_have_attribute("aria-label", re.compile(rf"centre {k}: about [\d,]+$"))


def test_a_job_leaves_k_open_unless_told_otherwise(tab: Tab, granted: tuple[str, str]) -> None:
    page = tab.sign_in(granted[1], f"#/datasets/{granted[0]}/job")
    expect(page.get_by_label("leave open")).to_be_checked()
    expect(page.get_by_label("Clusters (k)")).to_be_hidden()
    page.get_by_label("To", exact=True).fill("5")
    expect(page.locator("#quote")).to_contain_text("small ones, which are merged for every k")
    sent = submissions(page)
    page.get_by_role("button", name="Submit for ε 1").click()
    expect(page.get_by_role("heading", name=f"1 to 5 centres of {granted[0]}")).to_be_visible()
    expect(page.get_by_role("heading", name="How many clusters?")).to_be_visible()
    assert [each["k"] for each in sent] == [{"from": 1, "to": 5}]
    tab.go("#/jobs")
    expect(page.get_by_role("link", name="1 to 5 centres, summit")).to_be_visible()


def test_k_is_asked_for_where_it_cannot_be_left_open(tab: Tab, granted: tuple[str, str]) -> None:
    page = tab.sign_in(granted[1], f"#/datasets/{granted[0]}/job")
    for choose in (
        lambda: page.get_by_label("medians").check(),
        lambda: page.get_by_label("Algorithm").select_option("sulq"),
    ):
        choose()
        expect(page.get_by_label("leave open")).to_be_disabled()
        expect(page.get_by_label("Clusters (k)")).to_be_visible()
        expect(page.get_by_text("k can be left open for means")).to_be_visible()
        expect(page.get_by_role("button", name="Submit for ε 1")).to_be_enabled()
        page.get_by_label("Algorithm").select_option("auto")
        page.get_by_label("means").check()
        expect(page.get_by_label("leave open")).to_be_checked()


def test_a_range_is_copied_as_commands_that_ask_for_it(tab: Tab, granted: tuple[str, str]) -> None:
    page = tab.sign_in(granted[1], f"#/datasets/{granted[0]}/job")
    page.get_by_label("To", exact=True).fill("3")
    page.get_by_label("Rehearse first").check()
    expect(page.get_by_role("button", name="Rehearse for free")).to_be_enabled()
    python, curl = copied(page, "Copy as Python"), copied(page, "Copy as curl")
    assert "k=(1, 3)" in python
    assert json.loads(run(["sh", "-c", curl], granted[1]))["request"]["k"] == {"from": 1, "to": 3}


def test_the_suggested_k_is_shown_first_with_its_reason(tab: Tab, opened: tuple[str, str]) -> None:
    page = result_page(tab, opened)
    answer = tab.service.call("GET", f"/v1/jobs/{opened[1]}/result", key=opened[0])
    expect_k(page, answer["range"]["suggested"])
    expect(page.locator("#choose-k")).to_contain_text(f"Suggested {answer['range']['reason']}.")
    page.get_by_label("Clusters (k)").fill("7")
    expect_k(page, 7)
    page.get_by_role("button", name="Suggested: ").click()
    expect_k(page, answer["range"]["suggested"])


def test_the_slider_moves_everything_at_once(tab: Tab, opened: tuple[str, str]) -> None:
    page = result_page(tab, opened)
    for k in (6, 1, 8, 3):
        page.get_by_label("Clusters (k)").fill(str(k))
        expect_k(page, k)
        shown = page.locator("#k-in-words").inner_text()
        assert shown.startswith("One cluster explains" if k == 1 else f"{k} clusters explain")


def test_a_question_is_about_the_k_that_is_shown(tab: Tab, service: Service, opened: tuple[str, str]) -> None:
    granted = {"epsilon": "3", "delta": "0.00001", "kinds": ["cluster", "profile"]}
    service.call("PUT", "/v1/datasets/four-groups/grants/open-minded", json=granted)
    page = result_page(tab, opened)
    expect(
        page.get_by_role("heading", name=re.compile(r"Ask more about these clusters \(k = \d\)"))
    ).to_be_visible()
    page.get_by_label("Clusters (k)").fill("6")
    expect(page.get_by_role("heading", name="Ask more about these clusters (k = 6)")).to_be_visible()
    sent = submissions(page)
    page.get_by_role("button", name="Ask for ε 0.1", exact=True).click()
    expect(page.get_by_role("heading", name="Profile of four-groups")).to_be_visible()
    assert [each["clusterings"] for each in sent] == [[{"job": opened[1], "k": 6}]]


def test_the_slider_is_moved_with_the_keyboard(tab: Tab, opened: tuple[str, str]) -> None:
    page = result_page(tab, opened)
    slider = page.get_by_label("Clusters (k)")
    slider.focus()
    for key, k in (("Home", 1), ("ArrowRight", 2), ("End", 8), ("ArrowLeft", 7)):
        slider.press(key)
        expect_k(page, k)
        expect(slider).to_be_focused()
        expect(slider).to_have_attribute("aria-valuetext", re.compile(rf"^{k} clusters?"))


def test_the_curve_has_an_interval_at_every_k_and_is_clicked(tab: Tab, opened: tuple[str, str]) -> None:
    page = result_page(tab, opened)
    expect(page.locator("#elbow .whisker")).to_have_count(8)
    expect(page.locator("#elbow .suggested")).to_have_count(1)
    curve = tab.service.call("GET", f"/v1/jobs/{opened[1]}/result", key=opened[0])["range"]["curve"]
    whole = curve[0]["loss"]["value"]
    heights = [float(each.get_attribute("cy") or 0) for each in page.locator("#elbow .point").all()]
    losses = [each["loss"]["value"] / whole for each in curve]
    assert np.corrcoef(heights, losses)[0, 1] == pytest.approx(-1, abs=1e-9)
    page.locator("#elbow [data-k='5']").click()
    expect_k(page, 5)


def test_the_tree_is_cut_where_it_is_clicked(tab: Tab, opened: tuple[str, str]) -> None:
    page = result_page(tab, opened)
    merges = tab.service.call("GET", f"/v1/jobs/{opened[1]}/result", key=opened[0])["range"]["tree"]
    expect(page.locator("#tree .branch")).to_have_count(len(merges["joined"]))
    page.locator("#tree [data-k='2']").click()
    expect_k(page, 2)
    expect(page.locator("#tree .branch.above-cut")).to_have_count(1)


def test_the_map_shows_made_up_rows_and_says_so(tab: Tab, opened: tuple[str, str]) -> None:
    page = result_page(tab, opened)
    expect(page.locator("#map")).to_contain_text("made-up rows")
    expect(page.locator("#map")).to_contain_text("none of them is a record")
    page.get_by_label("Clusters (k)").fill("4")
    expect(page.locator("#map .spread")).to_have_count(4)
    dust = page.locator("#map .dust")
    expect(dust).to_have_count(4)
    assert sum((each.get_attribute("d") or "").count("M") for each in dust.all()) == 1500


def test_the_map_is_turned_to_two_columns(tab: Tab, opened: tuple[str, str]) -> None:
    page = result_page(tab, opened)
    page.get_by_label("Clusters (k)").fill("4")
    expect(page.locator("#map circle")).to_have_count(4)
    page.get_by_label("Across").select_option("income")
    page.get_by_label("Upwards").select_option("age")
    expect(page.locator("#map svg")).to_contain_text("income")
    centres = tab.service.call("GET", f"/v1/jobs/{opened[1]}/result?k=4", key=opened[0])["centres"]
    places = [float(each.get_attribute("cx") or 0) for each in page.locator("#map circle").all()]
    assert np.corrcoef(places, [income for _, income, _ in centres])[0, 1] == pytest.approx(1, abs=1e-9)


def test_another_k_is_fetched_once_and_costs_nothing(tab: Tab, opened: tuple[str, str]) -> None:
    page = result_page(tab, opened)
    place = "/v1/datasets/four-groups"
    before = tab.service.call("GET", place, key=opened[0])["cap"]
    page.wait_for_load_state("networkidle")  # the form for questions asks for datasets and its first price
    tab.requests.clear()
    for k in ("2", "6", "8", "3"):
        page.locator("#k").evaluate(
            """(slider, k) => {
              slider.value = k;
              slider.dispatchEvent(new Event("input", { bubbles: true }));
            }""",
            k,
        )
        expect(page.locator("#map circle")).to_have_count(int(k))
    asked = [url for url in tab.requests if "/v1/" in url]
    assert [url for url in asked if "/result?k=" not in url] == []
    assert len(set(asked)) == len(asked)  # some are fetched ahead, none twice
    assert tab.service.call("GET", place, key=opened[0])["cap"] == before


def test_an_answer_that_does_not_come_is_explained_and_asked_for_again(
    tab: Tab, opened: tuple[str, str]
) -> None:
    page = result_page(tab, opened)
    tab.foreseen = ("ERR_FAILED",)
    page.route("**/result?k=8", lambda route: route.abort(), times=1)
    page.get_by_label("Clusters (k)").fill("8")
    expect(page.get_by_text("The service did not answer.")).to_be_visible()
    page.get_by_label("Clusters (k)").fill("2")
    expect_k(page, 2)
    page.get_by_label("Clusters (k)").fill("8")
    expect_k(page, 8)


def test_a_late_answer_for_another_k_is_not_shown(tab: Tab, opened: tuple[str, str]) -> None:
    page = result_page(tab, opened)
    late: list[Route] = []
    page.route("**/result?k=8", lambda route: late.append(route))
    page.get_by_label("Clusters (k)").fill("8")
    page.get_by_label("Clusters (k)").fill("2")
    expect_k(page, 2)
    with page.expect_response("**/result?k=8"):
        late[0].continue_()
    expect_k(page, 2)


def test_files_and_commands_are_of_the_k_that_is_shown(tab: Tab, opened: tuple[str, str]) -> None:
    page = result_page(tab, opened)
    page.get_by_label("Clusters (k)").fill("6")
    expect_k(page, 6)
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV", exact=True).click()
    lines = download.value.path().read_text().splitlines()
    assert download.value.suggested_filename.endswith("-k6.csv")
    assert len(lines) == 7
    assert "size_low,size_high,age_low" in lines[0]
    assert ".at(6)" in copied(page, "Copy as Python")
    fetched = json.loads(run(["sh", "-c", copied(page, "Copy as curl")], opened[0]))
    assert len(fetched["centres"]) == 6


def test_the_page_is_usable_on_a_phone(phone: Tab, opened: tuple[str, str]) -> None:
    page = result_page(phone, opened)
    page.locator("#elbow [data-k='5']").tap()
    expect_k(page, 5)
    box = page.get_by_label("Clusters (k)").bounding_box()
    assert box is not None
    page.touchscreen.tap(box["x"] + 2, box["y"] + box["height"] / 2)
    expect_k(page, 1)
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_axe_and_the_checks_find_nothing_on_the_page(tab: Tab, opened: tuple[str, str]) -> None:
    page = result_page(tab, opened)
    assert complaints_in_every_dress(page) == []
    found: list[Any] = page.evaluate(BASIC_CHECKS)
    assert found == []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(CONTRAST) == []


def test_the_ellipse_of_points_is_that_of_their_covariance(tab: Tab) -> None:
    points = np.random.default_rng(3).normal(size=(400, 2)) @ np.array([[3.0, 1.0], [0.0, 0.5]])
    found = call(tab.go(""), "results/cloud.js", "ellipse", points.tolist())
    values, axes = np.linalg.eigh(np.cov(points.T, bias=True))
    assert [found["ry"], found["rx"]] == pytest.approx(2 * np.sqrt(values))
    turn = np.radians(found["turn"])
    assert abs(np.array([np.cos(turn), np.sin(turn)]) @ axes[:, 1]) == pytest.approx(1)
