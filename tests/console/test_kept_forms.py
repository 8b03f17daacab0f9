"""Forms keep what was typed, in the tab alone; pages, filters and views are links."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

from tests.console.conftest import Tab
from tests.support.console import Service

FILE = b"age,region\n34,north\n51,south\n47,north\n29,west\n62,south\n40,east\n33,north\n58,south\n"
STORED = "JSON.stringify({ ...sessionStorage }) + JSON.stringify({ ...localStorage })"
BACK = "What you typed here before is back."


def describe(page: Page, fresh: str) -> None:
    """Fill the form of a new dataset: a file's columns, one of them removed, another changed."""
    page.get_by_label("Name", exact=True).fill(f"kept-{fresh}")
    page.get_by_label("Start from a file").set_input_files(
        {"name": "visits.csv", "mimeType": "text/csv", "buffer": FILE}
    )
    expect(page.get_by_text("2 columns proposed from its first lines.")).to_be_visible()
    page.get_by_role("button", name="Add a column").click()
    page.get_by_label("Name of column 3").fill("visits")
    page.get_by_label("Low of column 3").fill("0")
    page.get_by_label("Size").fill("12000")


def expect_described(page: Page, fresh: str) -> None:
    expect(page.get_by_text(BACK)).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value(f"kept-{fresh}")
    expect(page.get_by_label("Name of column 1")).to_have_value("age")
    expect(page.get_by_label("Levels of column 2")).to_have_value(re.compile("north"))
    expect(page.get_by_label("Name of column 3")).to_have_value("visits")
    expect(page.get_by_label("Low of column 3")).to_have_value("0")
    expect(page.get_by_label("Size")).to_have_value("12000")
    # What came from the rows is still marked as such, and must be confirmed again.
    expect(page.get_by_role("group", name="From the rows").get_by_role("checkbox")).not_to_be_checked()


def test_a_form_survives_back_reload_and_the_end_of_its_session(
    tab: Tab, service: Service, fresh: str
) -> None:
    page = tab.sign_in(service.curator_key, "#/datasets")
    page.get_by_role("link", name="New dataset").click()
    describe(page, fresh)
    page.go_back()
    expect(page.get_by_role("heading", name="Datasets", exact=True)).to_be_visible()
    page.go_forward()
    expect_described(page, fresh)
    page.reload()
    expect_described(page, fresh)
    end_session(tab, service)
    page.get_by_role("button", name="Create").click()
    confirm_and_create(page)
    expect(page.get_by_text("You were signed out")).to_be_visible()
    stored = page.evaluate(STORED)
    assert f"kept-{fresh}" in stored
    assert service.curator_key not in stored
    page.get_by_label("Your key").fill(service.curator_key)
    page.get_by_role("button", name="Sign in").click()
    expect_described(page, fresh)
    confirm_and_create(page)
    expect(page.get_by_role("heading", name=f"kept-{fresh}")).to_be_visible()
    assert f"kept-{fresh}" not in page.evaluate(STORED)


def confirm_and_create(page: Page) -> None:
    page.get_by_label("High of column 3").fill("90")
    for box in page.get_by_label("I know these facts without the rows, or they may be public").all():
        if box.is_enabled():
            box.check()
    page.get_by_role("button", name="Create").click()


def end_session(tab: Tab, service: Service) -> None:
    """End every session of the tab's owner, as another browser would."""
    cookies: Any = {each["name"]: each["value"] for each in tab.context.cookies()}
    items = service.call(
        "GET", "/v1/sessions", headers={"Cookie": f"cairn-session={cookies['cairn-session']}"}
    )
    for each in items["items"]:
        service.call("DELETE", f"/v1/sessions/{each['id']}")


def test_leaving_a_form_with_changes_is_asked_about(tab: Tab, service: Service, fresh: str) -> None:
    page = tab.sign_in(service.curator_key, "#/datasets/new")
    page.get_by_role("link", name="People").click()  # nothing was typed
    expect(page.get_by_role("heading", name="People", exact=True)).to_be_visible()
    page.go_back()
    page.get_by_label("Name", exact=True).fill(f"left-{fresh}")
    page.get_by_role("link", name="People").click()
    question = page.get_by_role("dialog", name="Leave this form?")
    question.get_by_role("button", name="Stay").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value(f"left-{fresh}")
    page.get_by_role("link", name="People").click()
    question.get_by_role("button", name="Leave").click()
    expect(page.get_by_role("heading", name="People", exact=True)).to_be_visible()
    page.go_back()
    expect(page.get_by_text(BACK)).to_be_visible()
    page.get_by_role("button", name="Start afresh").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("")
    expect(page.get_by_text(BACK)).to_have_count(0)


def test_a_dialog_closes_with_its_page_and_keeps_what_was_typed(
    tab: Tab, service: Service, fresh: str
) -> None:
    page = tab.sign_in(service.curator_key, "#/jobs")
    page.get_by_role("link", name="People").click()
    page.get_by_role("button", name="New person").click()
    page.get_by_role("dialog").get_by_label("Name").fill(f"nora-{fresh}")
    page.go_back()
    expect(page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.go_forward()
    page.get_by_role("button", name="New person").click()
    expect(page.get_by_role("dialog").get_by_label("Name")).to_have_value(f"nora-{fresh}")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="New person").click()
    expect(page.get_by_role("dialog").get_by_label("Name")).to_have_value("")


def test_nothing_typed_outlasts_signing_out_or_is_shown_to_somebody_else(
    tab: Tab, service: Service, granted: tuple[str, str]
) -> None:
    dataset, key = granted
    page = tab.sign_in(key, f"#/datasets/{dataset}/job")
    page.get_by_label("Epsilon, exactly").fill("0.37")
    page.reload()
    expect(page.get_by_label("Epsilon, exactly")).to_have_value("0.37")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Your key")).to_be_visible()
    assert "0.37" not in page.evaluate(STORED)
    page.evaluate("sessionStorage.setItem('cairn.form:somebody:#/people', '{}')")
    tab.sign_in(key)
    assert "somebody" not in page.evaluate(STORED)


def test_a_filter_is_part_of_the_address(tab: Tab, service: Service, finished: tuple[str, str, str]) -> None:
    page = tab.sign_in(service.curator_key, "#/audit")
    page.get_by_label("Show").select_option(finished[0])
    expect(page).to_have_url(re.compile(rf"#/audit\?dataset={finished[0]}$"))
    page.reload()
    expect(page.get_by_label("Show")).to_have_value(finished[0])
    page = tab.go(f"#/datasets/{finished[0]}/audit")
    expect(page.get_by_text("sealed the dataset")).to_be_visible()
    page.wait_for_timeout(1500)  # until what was just read is written
    page.get_by_label("Record").select_option("access")
    expect(page).to_have_url(re.compile(rf"#/datasets/{finished[0]}/audit\?record=access$"))
    expect(page.get_by_text("read the report on rows").first).to_be_visible()
    page.goto(f"{service.address}/#/jobs?find=surely-not")
    expect(page.get_by_text("Nothing found.")).to_be_visible()
    expect(page.get_by_label("Find a job")).to_have_value("surely-not")
