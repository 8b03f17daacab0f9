"""Grants with a purpose, a permit and an end in the console."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.console.conftest import COLUMNS, Tab, rows
from tests.support.console import Service


def test_curator_gives_a_grant_a_permit_and_the_analyst_sees_it(
    tab: Tab, phone: Tab, service: Service, fresh: str
) -> None:
    key = service.analyst(f"ada-{fresh}")
    service.dataset(f"people-{fresh}", rows(300), COLUMNS)
    page = tab.sign_in(service.curator_key, f"#/datasets/people-{fresh}/grants")
    page.get_by_role("button", name="Grant", exact=True).click()
    page.get_by_label("Analyst").select_option(f"ada-{fresh}")
    page.get_by_label("Purpose").fill("Frailty after surgery")
    page.get_by_label("Permit").fill("2030/17")
    page.get_by_role("textbox", name="Last day").fill("2099-12-31")
    page.get_by_role("dialog").get_by_role("button", name="Grant").click()
    expect(page.get_by_text("Frailty after surgery · permit 2030/17 · until")).to_be_visible()
    page.get_by_role("button", name="Change cap").click()
    expect(page.get_by_role("textbox", name="Last day")).to_have_value("2099-12-31")
    page.get_by_role("button", name="Cancel").click()
    seen = phone.sign_in(key, f"#/datasets/people-{fresh}")
    expect(seen.get_by_text("permit 2030/17")).to_be_visible()
