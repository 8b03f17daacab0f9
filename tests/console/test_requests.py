"""Requests for access in the console: from a price that does not fit to a job that does."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.console.conftest import COLUMNS, Tab, rows
from tests.support.console import Service


def test_analyst_requests_more_for_a_job_and_submits_once_half_is_granted(
    tab: Tab, phone: Tab, service: Service, fresh: str
) -> None:
    name, ada = f"people-{fresh}", f"ada-{fresh}"
    key = service.analyst(ada)
    service.dataset(name, rows(300), COLUMNS, caps={ada: ("0.5", "0.000001")})
    page = tab.sign_in(key, f"#/datasets/{name}/job")
    page.get_by_label("Epsilon, exactly").fill("2")
    page.get_by_label("Delta").fill("0")
    page.get_by_role("link", name="Request more").click()
    expect(page.get_by_label("Epsilon (ε)")).to_have_value("2")  # the cap in which the job fits
    expect(page.get_by_text("The job that did not fit is sent with the request")).to_be_visible()
    page.get_by_label("Purpose").fill("Frailty after surgery")
    page.get_by_role("button", name="Send the request").click()
    expect(page.get_by_text("waits for the owner")).to_be_visible()

    owner = phone.sign_in(service.curator_key)
    owner.get_by_role("link", name="Requests", exact=True).last.click()
    asked = owner.get_by_role("article").filter(has_text=ada)
    expect(asked).to_contain_text("a cap of epsilon 2, delta 1×10⁻⁶")
    expect(asked).to_contain_text("Frailty after surgery")
    expect(asked).to_contain_text("It costs ε 2, δ 0.")
    expect(asked).to_contain_text("Nobody else has a grant.")
    asked.get_by_role("button", name="Grant").click()
    dialog = owner.get_by_role("dialog")
    dialog.get_by_label("Epsilon (ε)").fill("1")
    dialog.get_by_label("A word to who asked").fill("half for now")
    dialog.get_by_role("button", name="Grant").click()
    expect(asked).to_contain_text("granted a cap of epsilon 1")
    expect(owner.get_by_text("wait for you")).to_have_count(0)

    page.goto(f"{service.address}/#/datasets/{name}/job")
    expect(page.get_by_text("granted a cap of epsilon 1, delta 1×10⁻⁶. “half for now”")).to_be_visible()
    page.get_by_label("Epsilon, exactly").fill("1")
    page.get_by_role("button", name="Submit for ε 1").click()
    expect(page.locator("#centres")).to_be_visible()


def test_owner_declines_with_a_word_and_analyst_withdraws(
    tab: Tab, phone: Tab, service: Service, fresh: str
) -> None:
    name, ada = f"people-{fresh}", f"ada-{fresh}"
    key = service.analyst(ada)
    service.dataset(name, rows(300), COLUMNS, caps={ada: ("0.5", "0.000001")})
    for _ in range(2):
        service.call("POST", "/v1/requests", key=key, json={"dataset": name, "epsilon": "3"})
    page = tab.sign_in(service.curator_key, "#/requests?find=" + name)
    page.get_by_role("button", name="Decline").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Decline").click()
    expect(page.get_by_role("dialog")).to_contain_text("Say why, in a word.")
    page.get_by_label("A word to who asked").fill("too much")
    page.get_by_role("dialog").get_by_role("button", name="Decline").click()
    expect(page.get_by_text("declined. “too much”")).to_be_visible()
    page = phone.sign_in(key, "#/requests")
    page.get_by_role("button", name="Withdraw the request").click()
    page.get_by_role("button", name="Withdraw it").click()
    expect(page.get_by_role("article").filter(has_text="withdrawn")).to_be_visible()
