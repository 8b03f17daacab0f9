"""Mistakes in forms: each is marked at its field, in the reader's words, and nothing is sent."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from tests.console.conftest import Tab
from tests.console.test_curator import describe
from tests.support.console import Service

CODE_NAMES = re.compile(
    r"id_column|rows_per_person|on_bad_row|planned_release|Input should|Something went wrong"
)


def expect_mistake(page: Page, control: Locator, words: str) -> None:
    """The field is marked, and the sentence beside it is the one that is read out with it."""
    expect(control).to_have_attribute("aria-invalid", "true")
    described = control.get_attribute("aria-describedby") or ""
    expect(page.locator(f"#{described.split()[-1]}")).to_have_text(words)
    assert not CODE_NAMES.search(page.locator("body").inner_text())


def price_page(tab: Tab, granted: tuple[str, str]) -> Page:
    page = tab.sign_in(granted[1], f"#/datasets/{granted[0]}/job")
    expect(page.locator("#cost")).to_have_text("ε 1")
    return page


MISTAKES = [
    ("Clusters (k)", "", "Enter the number of clusters (1 or more)."),
    ("Clusters (k)", "0", "Enter the number of clusters (1 or more)."),
    ("Clusters (k)", "2.5", "“2.5” is not a whole number. Write it in digits only."),
    ("Clusters (k)", "20000", "Enter at most 10,000."),
    ("From", "0", "Enter a number from 1 to 64."),
    ("To", "65", "Enter at most 64."),
    ("To", "0,5", "“0,5” is not a whole number. Write it in digits only."),
    ("Epsilon, exactly", "", "Enter an epsilon, for example 0.5."),
    ("Epsilon, exactly", "much", "“much” is not a number."),
    ("Epsilon, exactly", "-1", "Enter a number above 0."),
    ("Epsilon, exactly", "1,500", "“1,500” has two meanings: write 1500 or 1.500."),
    ("Delta (δ)", "2", "Delta must be at least 0 and below 1."),
]


def test_a_mistake_in_a_job_is_marked_and_nothing_can_be_submitted(
    tab: Tab, granted: tuple[str, str]
) -> None:
    page = price_page(tab, granted)
    for label, typed, words in MISTAKES:
        page.get_by_label("leave open" if label in ("From", "To") else "exactly", exact=True).check()
        control = page.get_by_label(label)
        before, asked = control.input_value(), len(tab.requests)
        control.fill(typed)
        expect_mistake(page, control, words)
        expect(page.get_by_role("button", name="Submit")).to_be_disabled()
        expect(page.locator("#quote")).to_have_text("Correct the marked fields to see the price.")
        assert [url for url in tab.requests[asked:] if "/v1/" in url] == []
        control.fill(before)
        expect(control).not_to_have_attribute("aria-invalid", "true")
        expect(page.get_by_role("button", name="Submit for ε 1")).to_be_enabled()


def test_a_decimal_comma_is_understood(tab: Tab, granted: tuple[str, str]) -> None:
    page = price_page(tab, granted)
    page.get_by_label("Epsilon, exactly").fill("0,5")
    expect(page.get_by_role("button", name="Submit for ε 0.5")).to_be_enabled()


def test_an_option_out_of_its_range_is_marked(tab: Tab, granted: tuple[str, str]) -> None:
    page = price_page(tab, granted)
    page.get_by_label("Algorithm").select_option("sulq")
    page.get_by_text("Options of sulq").click()
    page.get_by_label("rounds").fill("M")
    expect_mistake(page, page.get_by_label("rounds"), "“M” is not a whole number. Write it in digits only.")


def test_an_empty_dataset_form_says_at_each_field_what_is_missing(tab: Tab) -> None:
    page = tab.sign_in(tab.service.curator_key, "#/datasets/new")
    page.get_by_role("button", name="Create the dataset").click()
    for label, words in (
        ("Name", "Enter a name for the dataset."),
        ("Name of column 1", "Enter the column's name."),
        ("Low of column 2", "Enter the lowest value that makes sense."),
        ("High of column 2", "Enter the highest value that makes sense."),
        ("Size", "Enter about how many records there are, for example 10000."),
    ):
        expect_mistake(page, page.get_by_label(label, exact=True), words)
    expect(page.get_by_label("Name", exact=True)).to_be_focused()


def test_a_bound_that_is_no_number_is_explained(tab: Tab, fresh: str) -> None:
    page = tab.sign_in(tab.service.curator_key, "#/datasets/new")
    describe(page, f"texts-{fresh}")
    page.get_by_label("High of column 1").fill("M")
    page.get_by_role("button", name="Create the dataset").click()
    words = "“M” is not a number. Such rows hold numbers only: describe a table above for anything else."
    expect_mistake(page, page.get_by_label("High of column 1"), words)


def test_bounds_may_be_written_with_a_decimal_comma(tab: Tab, service: Service, fresh: str) -> None:
    page = tab.sign_in(service.curator_key, "#/datasets/new")
    describe(page, f"commas-{fresh}")
    page.get_by_label("High of column 1").fill("99,5")
    page.get_by_role("button", name="Create the dataset").click()
    expect(page.get_by_role("heading", name=f"commas-{fresh}")).to_be_visible()
    assert service.call("GET", f"/v1/datasets/commas-{fresh}")["bounds"]["box"]["high"][0] == 99.5


def test_several_rows_per_person_need_an_id_column_by_its_label(tab: Tab, fresh: str) -> None:
    page = tab.sign_in(tab.service.curator_key, "#/datasets/new")
    describe(page, f"many-{fresh}")
    page.get_by_label("Rows per person").fill("3")
    page.get_by_role("button", name="Create the dataset").click()
    words = "Enter the name of the column that tells people apart."
    expect_mistake(page, page.get_by_label("Id column"), words)


def test_what_only_the_service_can_know_is_put_beside_the_field_too(tab: Tab, fresh: str) -> None:
    page = tab.sign_in(tab.service.curator_key, "#/datasets/new")
    describe(page, f"same-{fresh}")
    page.get_by_label("Rows per person").fill("3")
    page.get_by_label("Id column").fill("age")
    page.get_by_role("button", name="Create the dataset").click()
    words = "The id column must not be one of the other columns: it is not stored."
    expect_mistake(page, page.get_by_label("Id column"), words)
    expect(page.locator("form").get_by_role("alert")).to_have_text(
        "Correct the marked fields, then try again."
    )


def test_an_upload_without_a_file_is_marked(tab: Tab, service: Service, fresh: str) -> None:
    page = tab.sign_in(service.curator_key, "#/datasets/new")
    describe(page, f"bare-{fresh}")
    page.get_by_role("button", name="Create the dataset").click()
    page.get_by_role("button", name="Upload and check").click()
    expect_mistake(page, page.get_by_label("File", exact=True), "Choose a file.")


def test_a_cap_that_is_no_number_is_marked_in_its_dialog(
    tab: Tab, service: Service, granted: tuple[str, str]
) -> None:
    page = tab.sign_in(service.curator_key, f"#/datasets/{granted[0]}/grants")
    page.get_by_role("button", name="Change cap").click()
    window = page.get_by_role("dialog")
    window.get_by_label("Epsilon").fill("all")
    window.get_by_label("Delta").fill("")
    window.get_by_role("button", name="Change cap").click()
    expect_mistake(page, window.get_by_label("Epsilon"), "“all” is not a number.")
    words = "Enter a delta, for example 1e-6; 0 means pure differential privacy."
    expect_mistake(page, window.get_by_label("Delta"), words)
