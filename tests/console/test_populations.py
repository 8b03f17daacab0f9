"""Populations in the console: created, joined by a dataset with its history, and seen by an analyst."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.console.conftest import Tab


def test_dataset_joins_a_population_that_limits_what_an_analyst_may_ask(
    tab: Tab, granted: tuple[str, str], fresh: str
) -> None:
    dataset, key = granted
    name = f"patients-{fresh}"
    page = tab.sign_in(tab.service.curator_key)
    page.get_by_role("link", name="Populations").click()
    page.get_by_role("button", name="New population").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.get_by_label("Accountant").select_option("sum")
    dialog.get_by_label("Epsilon").fill("1")
    dialog.get_by_label("Delta").fill("0.000005")
    dialog.get_by_role("button", name="Create").click()
    expect(page.get_by_text("None yet. Open a sealed dataset and let it join.")).to_be_visible()

    page.goto(f"{tab.service.address}/#/datasets/{dataset}")
    page.get_by_role("button", name="Join a population").click()
    dialog.get_by_label("Population").select_option(name)
    dialog.get_by_role("button", name="Join for good").click()
    expect(dialog.get_by_role("alert")).to_contain_text("has no id column")
    dialog.get_by_label("Nobody has two rows in this dataset").check()
    dialog.get_by_role("button", name="Join for good").click()
    expect(page.locator("#population-left")).to_contain_text(name)
    page.locator("#population-left").get_by_role("link", name=name).click()
    expect(page.get_by_role("table").get_by_role("link", name=dataset)).to_be_visible()

    plan = {"dataset": dataset, "k": 2, "epsilon": "0.5"}
    tab.service.call("POST", "/v1/jobs", json=plan)
    page.get_by_role("button", name="Sign out").click()
    tab.sign_in(key)
    page.goto(f"{tab.service.address}/#/datasets/{dataset}/job")
    expect(page.locator("#too-much")).to_contain_text(f"the population {name} has epsilon 0.5 ")
