"""The catalogue in the console: an owner chooses what others see, and a person without a grant sees it."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.console.conftest import COLUMNS, Tab, rows
from tests.support.console import Service


def test_owner_lists_a_dataset_and_others_see_what_was_chosen(
    tab: Tab, phone: Tab, service: Service, fresh: str
) -> None:
    key, name = service.analyst(f"bob-{fresh}"), f"towns-{fresh}"
    service.dataset(name, rows(300), COLUMNS, description="Made-up people.")
    page = tab.sign_in(service.curator_key, f"#/datasets/{name}")
    card = page.locator("#listing")
    expect(card).to_contain_text("Not listed")
    card.get_by_role("button", name="List in the catalogue").click()
    dialog = page.get_by_role("dialog")
    preview = dialog.locator(".hollow")
    dialog.get_by_label("Title").fill("People of three towns")
    dialog.get_by_label("Columns and their bounds").check()
    expect(preview).to_contain_text("age: number from 0 to 100")
    dialog.get_by_label("Description").check()
    expect(preview).to_contain_text("Made-up people.")
    dialog.get_by_label("Description").uncheck()
    expect(preview).not_to_contain_text("Made-up people.")
    dialog.get_by_role("button", name="List it").click()
    expect(card).to_contain_text("Everybody who is signed in sees: the name, columns and their bounds.")

    seen = phone.sign_in(key, "#/catalogue")
    entry = seen.get_by_role("article").filter(has_text=name)
    expect(entry.get_by_role("heading", name="People of three towns")).to_be_visible()
    expect(entry).to_contain_text("age: number from 0 to 100")
    expect(entry).not_to_contain_text("Made-up people.")

    card.get_by_role("button", name="Remove from the catalogue").click()
    page.get_by_role("button", name="Remove it").click()
    expect(card).to_contain_text("Not listed")
    seen.reload()
    expect(seen.get_by_role("heading", name="Catalogue")).to_be_visible()
    expect(entry).to_have_count(0)
