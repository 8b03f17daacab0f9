"""Pages for other roles: help for data managers and data protection, and the report on a dataset."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.console.conftest import Tab


def test_epsilon_is_explained_by_guesses(tab: Tab, clustered_table: tuple[str, str, str]) -> None:
    page = tab.sign_in(clustered_table[1], "#/datasets")
    page.get_by_role("link", name="Help", exact=True).click()
    page.get_by_role("link", name="What epsilon means for a person").click()
    expect(page.locator("#guesses")).to_have_text("Of 100 people who guess, at most 74 are right on average.")
    page.get_by_label("Epsilon").fill("0,1")
    expect(page.locator("#guesses")).to_contain_text("at most 53")
    page.reload()
    expect(page.locator("#guesses")).to_contain_text("at most 53")
    page.get_by_label("Epsilon").fill("1e9")
    expect(page.locator("main")).to_contain_text("An epsilon this large limits nothing in practice")
    page.get_by_role("link", name="Help", exact=True).first.click()
    page.get_by_role("link", name="How to prepare a table").click()
    expect(page.get_by_role("heading", name="What is missing stays empty")).to_be_visible()


def test_a_dataset_has_a_report_with_totals_and_the_origin_of_its_facts(
    tab: Tab, clustered_table: tuple[str, str, str]
) -> None:
    name, _, _ = clustered_table
    page = tab.sign_in(tab.service.curator_key, f"#/datasets/{name}")
    page.get_by_role("link", name="Report for data protection").click()
    spent = page.get_by_role("region", name="Spent by analyst")
    expect(spent.get_by_role("row", name="florence")).to_contain_text("ε 1, δ 1×10⁻⁶")
    expect(spent.get_by_role("row", name="All together")).to_contain_text("ε 3, δ 1×10⁻⁵")
    origin = page.get_by_role("region", name="Origin of public facts")
    expect(origin.get_by_role("row", name="age")).to_contain_text(
        "declared by the curator, before a row was read"
    )
    expect(page.locator("main")).to_contain_text("can become at most 95.3% sure of it")


def test_three_hundred_incomplete_columns_open_one_of_them(tab: Tab) -> None:
    page = tab.sign_in(tab.service.curator_key, "#/datasets/new")
    line = ",".join(str(place) for place in range(300))
    page.get_by_label("Start from a file").set_input_files(
        {"name": "wide.csv", "mimeType": "text/csv", "buffer": f"{line}\n{line}\n".encode()}
    )
    expect(page.get_by_text("300 columns proposed")).to_be_visible()
    expect(page.locator("details.column[open]")).to_have_count(1)
    page.get_by_role("button", name="Create the dataset").click()
    expect(page.locator("details.column[open]")).to_have_count(1)
