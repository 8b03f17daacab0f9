"""The price on the button is the price that is charged, however slowly the service answers."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.sync_api import Page, Request, Route, expect

from tests.console.conftest import Tab

SUBMIT = re.compile(r"Submit|Rehearse|Working out")


class Line:
    """A slow connection: requests to one address wait until they are let through."""

    def __init__(self, page: Page, address: str = "**/v1/plans"):
        self.page = page
        self.waiting: list[Route] = []
        page.route(address, lambda route: self.waiting.append(route))

    def wait(self, number: int = 1) -> None:
        """Wait until so many requests are under way."""
        while len(self.waiting) < number:
            self.page.wait_for_timeout(20)

    def let_through(self, number: int = 1) -> None:
        """Wait for so many requests, then let all of them be answered."""
        self.wait(number)
        for route in self.waiting:
            route.continue_()
        self.waiting.clear()


def submissions(page: Page) -> list[dict[str, Any]]:
    """Return the list of what is sent to POST /v1/jobs from now on."""
    sent: list[dict[str, Any]] = []

    def note(request: Request) -> None:
        if request.method == "POST" and request.url.endswith("/v1/jobs"):
            sent.append(json.loads(request.post_data or "{}"))

    page.on("request", note)
    return sent


def charged(tab: Tab, granted: tuple[str, str]) -> float:
    cap = tab.service.call("GET", f"/v1/datasets/{granted[0]}", key=granted[1])["cap"]
    return float(cap["spent"]["epsilon"]) + float(cap["reserved"]["epsilon"])


def test_a_click_before_the_new_price_is_known_submits_nothing(tab: Tab, granted: tuple[str, str]) -> None:
    page = tab.sign_in(granted[1], f"#/datasets/{granted[0]}/job")
    page.get_by_label("Epsilon, exactly").fill("0.1")
    button = page.get_by_role("button", name=SUBMIT)
    expect(button).to_have_text("Submit for ε 0.1")
    line = Line(page)
    sent = submissions(page)
    page.get_by_label("Epsilon, exactly").fill("1.5")
    expect(button).to_have_text("Working out the price…")
    expect(button).to_be_disabled()
    button.click(force=True)
    page.get_by_label("Epsilon, exactly").press("Enter")
    line.let_through()
    expect(button).to_have_text("Submit for ε 1.5")
    assert sent == []
    assert charged(tab, granted) == 0
    button.click()
    expect(page.locator("#centres")).to_be_visible()
    assert [each["epsilon"] for each in sent] == ["1.5"]
    assert charged(tab, granted) == 1.5


def test_a_rehearsal_that_is_unticked_is_not_charged_as_free(tab: Tab, granted: tuple[str, str]) -> None:
    page = tab.sign_in(granted[1], f"#/datasets/{granted[0]}/job")
    page.get_by_label("Epsilon, exactly").fill("0.2")
    page.get_by_label("Rehearse first").check()
    button = page.get_by_role("button", name=SUBMIT)
    expect(button).to_have_text("Rehearse for free")
    line = Line(page)
    sent = submissions(page)
    page.get_by_label("Rehearse first").uncheck()
    expect(button).to_have_text("Working out the price…")
    button.click(force=True)
    line.let_through()
    expect(button).to_have_text("Submit for ε 0.2")
    assert sent == []
    assert charged(tab, granted) == 0


def test_an_answer_to_an_earlier_question_sets_no_price(tab: Tab, granted: tuple[str, str]) -> None:
    page = tab.sign_in(granted[1], f"#/datasets/{granted[0]}/job")
    button = page.get_by_role("button", name=SUBMIT)
    expect(button).to_have_text("Submit for ε 1")
    line = Line(page)
    page.get_by_label("Epsilon, exactly").fill("0.1")
    line.wait()
    page.get_by_label("Epsilon, exactly").fill("1.5")
    line.let_through(2)
    expect(button).to_have_text("Submit for ε 1.5")


def test_what_is_submitted_is_what_was_shown_even_if_the_form_changes_meanwhile(
    tab: Tab, granted: tuple[str, str]
) -> None:
    page = tab.sign_in(granted[1], f"#/datasets/{granted[0]}/job")
    button = page.get_by_role("button", name=SUBMIT)
    expect(button).to_have_text("Submit for ε 1")
    line = Line(page, "**/v1/jobs")
    button.click()
    line.wait()
    page.get_by_label("Epsilon, exactly").fill("2")
    expect(button).to_have_text("Submit for ε 2")
    line.let_through()
    expect(page.locator("#centres")).to_be_visible()
    assert charged(tab, granted) == 1


def test_a_price_that_changed_after_it_was_shown_is_not_charged(tab: Tab, granted: tuple[str, str]) -> None:
    page = tab.sign_in(granted[1], f"#/datasets/{granted[0]}/job")
    button = page.get_by_role("button", name=SUBMIT)
    expect(button).to_have_text("Submit for ε 1")

    def dearer(route: Route) -> None:
        """Stands for a service that plans differently by now: the request differs from what was quoted."""
        body = json.loads(route.request.post_data or "{}")
        route.continue_(post_data=json.dumps({**body, "epsilon": "1.9"}))

    page.route("**/v1/jobs", dearer)
    button.click()
    expect(page.locator("form").get_by_role("alert")).to_contain_text("check the cost")
    expect(button).to_have_text("Submit for ε 1")
    expect(button).to_be_enabled()
    assert charged(tab, granted) == 0


def test_a_submission_that_is_sent_twice_makes_one_job(tab: Tab, granted: tuple[str, str]) -> None:
    page = tab.sign_in(granted[1], f"#/datasets/{granted[0]}/job")
    button = page.get_by_role("button", name=SUBMIT)
    expect(button).to_have_text("Submit for ε 1")
    lost = []

    def lose(route: Route) -> None:
        """The job arrives, its answer does not."""
        route.fetch()
        lost.append(route)
        route.abort()

    tab.foreseen = ("ERR_FAILED",)
    page.route("**/v1/jobs", lose, times=1)
    button.click()
    expect(page.locator("form").get_by_role("alert")).to_contain_text("The service did not answer")
    button.click()
    expect(page.locator("#centres")).to_be_visible()
    assert len(lost) == 1
    assert charged(tab, granted) == 1
