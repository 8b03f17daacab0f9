"""Mistakes in the description of a table: each is marked at its field, and nothing is sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import Tab
from tests.console.test_forms import expect_mistake
from tests.support.console import Service
from tests.support.hospital import NAMES, hospital
from tests.support.spreadsheets import spreadsheet


@pytest.fixture
def page(tab: Tab) -> Page:
    """The form of a new table, with one column that is filled in and one that is not."""
    page = tab.sign_in(tab.service.curator_key, "#/datasets/new")
    page.locator("input[name=name]").fill("mistaken")
    page.get_by_label("Size", exact=True).fill("1000")
    column(page, 1, name="age", low="0", high="120")
    return page


def column(page: Page, number: int, **fields: str) -> None:
    """Fill in fields of a column by their labels."""
    for label, text in fields.items():
        name = f"{label.replace('_', ' ').capitalize()} of column {number}"
        page.get_by_label(name, exact=True).fill(text)


def choose(page: Page, number: int, **fields: str) -> None:
    """Choose in fields of a column by their labels."""
    for label, key in fields.items():
        control = page.get_by_label(f"{label.replace('_', ' ').capitalize()} of column {number}")
        control.select_option(key)


def expect_refused(page: Page, label: str, words: str) -> None:
    """Nothing is sent, and the field says what is wrong with it."""
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))
    page.get_by_role("button", name="Create the dataset").click()
    expect_mistake(page, page.get_by_label(label, exact=True), words)
    assert "POST" not in sent


def test_a_column_needs_a_name_of_its_own(page: Page) -> None:
    expect_refused(page, "Name of column 2", "Enter the column's name.")
    column(page, 2, name=" AGE")
    expect_refused(page, "Name of column 2", "Another column has this name.")


def test_bounds_must_be_there_in_order_and_numbers(page: Page) -> None:
    column(page, 2, name="cost")
    expect_refused(page, "Low of column 2", "Enter the lowest value that makes sense.")
    column(page, 2, low="5", high="x")
    expect_refused(page, "High of column 2", "“x” is not a number.")
    column(page, 2, high="5")
    expect_refused(page, "High of column 2", "High must be above low.")


def test_bounds_of_whole_numbers_are_whole(page: Page) -> None:
    column(page, 2, name="visits", low="0,5", high="9")
    page.get_by_label("Whole numbers of column 2").check()
    expect_refused(page, "Low of column 2", "Bounds of whole numbers must be whole.")


def test_a_log_scale_begins_above_zero_or_with_an_offset(page: Page) -> None:
    column(page, 2, name="cost", low="0", high="9")
    page.get_by_label("Log scale of column 2").check()
    words = "On a log scale the lowest value must be above zero. Enter one, or add an offset."
    expect_refused(page, "Low of column 2", words)
    column(page, 2, offset="-1")
    expect_refused(page, "Offset of column 2", "Enter 0 or more.")
    column(page, 2, offset="1")
    page.get_by_label("Log scale of column 2").press("Tab")
    page.get_by_role("button", name="Add a column").click()
    page.get_by_role("button", name="Create the dataset").click()
    expect(page.get_by_label("Low of column 2")).not_to_have_attribute("aria-invalid", "true")


def test_dates_have_an_earliest_and_a_latest(page: Page) -> None:
    column(page, 2, name="visited")
    choose(page, 2, kind="date")
    expect_refused(page, "Earliest of column 2", "Enter the earliest date that makes sense.")
    column(page, 2, earliest="2026-01-31", latest="2026-01-01")
    expect_refused(page, "Latest of column 2", "The latest must be after the earliest.")


def test_a_category_has_two_levels_or_more_each_once(page: Page) -> None:
    column(page, 2, name="sex")
    choose(page, 2, kind="category")
    words = "A category has at least two levels. Type them, one on each line."
    expect_refused(page, "Levels of column 2", words)
    column(page, 2, levels="F\nM\nF")
    expect_refused(page, "Levels of column 2", "“F” is listed twice.")
    column(page, 2, levels="\n".join(str(number) for number in range(257)))
    expect_refused(page, "Levels of column 2", "A category has at most 256 levels; these are 257.")
    column(page, 2, levels="F\nmissing")
    choose(page, 2, missing_value="level")
    words = "“missing” is the level of missing values. Give yours another name."
    expect_refused(page, "Levels of column 2", words)


def test_a_fixed_value_lies_between_the_bounds(page: Page) -> None:
    column(page, 2, name="bmi", low="10", high="80")
    choose(page, 2, missing_value="fill")
    expect_refused(page, "Fill value of column 2", "Enter the value that replaces a missing one.")
    column(page, 2, fill_value="90")
    expect_refused(page, "Fill value of column 2", "Enter a value from 10 to 80.")


def test_a_weight_lies_within_its_limits(page: Page) -> None:
    column(page, 1, weight="0")
    expect_refused(page, "Weight of column 1", "Enter a weight from 0.001 to 1000.")


def test_some_column_is_clustered_on_and_one_at_most_tells_people_apart(page: Page) -> None:
    column(page, 2, name="patient")
    choose(page, 1, use="keep")
    choose(page, 2, use="id")
    expect_refused(page, "Use of column 1", "At least one column must be used for clustering.")
    choose(page, 1, use="id")
    expect_refused(page, "Use of column 2", "Only one column can tell people apart.")


def test_several_rows_per_person_need_a_column_that_tells_people_apart(page: Page) -> None:
    page.get_by_label("Rows per person").fill("3")
    words = "Choose above the column that is used for telling people apart."
    expect_refused(page, "Rows per person", words)


def test_a_mistake_in_a_folded_column_unfolds_it(page: Page) -> None:
    column(page, 1, weight="much")
    fold = page.locator("details", has=page.get_by_label("Weight of column 1"))
    fold.locator("summary").click()
    expect(page.get_by_label("Weight of column 1")).not_to_be_visible()
    expect_refused(page, "Weight of column 1", "“much” is not a number.")
    expect(page.get_by_label("Weight of column 1")).to_be_visible()


def test_a_first_line_of_data_names_no_column_of_a_table(page: Page, tmp_path: Path) -> None:
    (tmp_path / "bare.csv").write_text("54;F;2026-01-02\n61;M;2026-01-03\n")
    page.get_by_label("Start from a file").set_input_files(tmp_path / "bare.csv")
    expect(page.locator("main").get_by_text("The first line looks like data")).to_be_visible()
    assert [page.get_by_label(f"Name of column {n}").input_value() for n in (1, 2, 3)] == ["", "", ""]
    (tmp_path / "names.csv").write_text("Smith;Jones\nBlack;White\n")
    page.get_by_label("Start from a file").set_input_files(tmp_path / "names.csv")
    expect(page.get_by_label("Name of column 1")).to_have_value("Smith")
    page.get_by_role("button", name="The first line is data").click()
    expect(page.get_by_label("Name of column 1")).to_have_value("")
    expect(page.get_by_text("The first line is data, so no names were taken from it.")).to_be_visible()


def test_what_only_the_service_knows_is_said_below_the_form(page: Page, service: Service, fresh: str) -> None:
    page.get_by_role("button", name="Remove column 2").click()
    page.locator("input[name=name]").fill(f"taken-{fresh}")
    body = {"name": f"taken-{fresh}", "dimension": 2, "bounds": {"box": {"low": 0, "high": 1}}, "size": 9}
    service.call("POST", "/v1/datasets", json={**body, "budget": {"epsilon": "1"}})
    page.get_by_role("button", name="Create the dataset").click()
    expect(page.locator("form [aria-invalid], form [role=alert]").first).to_be_visible()
    expect(page.get_by_label("Low of column 1")).to_have_value("0")


def test_a_spreadsheet_proposes_the_columns_that_its_text_would(page: Page, tmp_path: Path) -> None:
    (tmp_path / "hospital.xlsx").write_bytes(spreadsheet([list(NAMES), *hospital(60)]))
    page.get_by_label("Start from a file").set_input_files(tmp_path / "hospital.xlsx")
    words = "hospital.xlsx: a spreadsheet. 9 columns proposed from its first lines."
    expect(page.get_by_text(words)).to_be_visible()
    expect(page.get_by_label("Kind of column 8")).to_have_value("date")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1....")
    page.get_by_label("Start from a file").set_input_files(tmp_path / "damaged.parquet")
    expect(page.get_by_text("The file cannot be read as Parquet")).to_be_visible()


def test_a_mark_between_thousands_is_not_the_decimal_sign(page: Page) -> None:
    page.locator("summary", has_text="Change how the file is written").click()
    page.get_by_label("Between thousands").select_option(".")
    expect_refused(page, "Between thousands", "Choose another mark than the decimal sign.")
    page.get_by_label("Decimal sign").select_option(",")
    expect(page.locator("main")).to_contain_text(
        "Comma-separated text in UTF-8 with decimal commas, points between thousands."
    )


def test_a_pasted_list_of_levels_is_not_from_the_rows_and_a_repeated_id_asks(tab: Tab) -> None:
    page = tab.sign_in(tab.service.curator_key, "#/datasets/new")
    file = b"patient_id,ward\np1,A\np1,B\np2,A\n"
    page.get_by_label("Start from a file").set_input_files(
        {"name": "stays.csv", "mimeType": "text/csv", "buffer": file}
    )
    expect(page.get_by_text("“patient_id” repeats, up to 2 times in these lines")).to_be_visible()
    expect(page.get_by_label("Rows per person")).to_have_value("")
    levels = page.get_by_label("Levels of column 2")
    confirmation = page.get_by_role("group", name="From the rows").first
    expect(confirmation).to_contain_text("levels A, B")
    levels.evaluate(
        """(control) => {
          const clipboardData = new DataTransfer();
          clipboardData.setData("text/plain", "A\\tSurgery\\nB\\tMedicine\\nC\\tIntensive care\\n");
          control.select();
          const options = { clipboardData, bubbles: true, cancelable: true };
          control.dispatchEvent(new ClipboardEvent("paste", options));
        }"""
    )
    expect(levels).to_have_value("A\nB\nC")
    expect(confirmation).not_to_contain_text("levels")


@pytest.mark.parametrize("columns", [12, 300])
def test_a_draft_of_many_columns_is_edited(tab: Tab, service: Service, fresh: str, columns: int) -> None:
    name = f"wide-{fresh}"
    table = [{"name": f"c{place}", "kind": "number", "low": 0, "high": 9} for place in range(columns)]
    body = {"name": name, "table": table, "size": 100, "budget": {"epsilon": "1"}}
    service.call("POST", "/v1/datasets", json=body)
    page = tab.sign_in(service.curator_key, f"#/datasets/{name}/edit")
    expect(page.locator("details.column")).to_have_count(columns)
    page.locator("details.column").last.locator("summary").click()
    page.get_by_label(f"High of column {columns}", exact=True).fill("12")
    page.get_by_label("Size", exact=True).fill("200")
    page.get_by_role("button", name="Save the changes").click()
    expect(page.get_by_text("The changes are saved.")).to_be_visible()
    facts = service.call("GET", f"/v1/datasets/{name}")
    assert (facts["size"], facts["table"][-1]["high"]) == (200, 12)
    for width in (390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        for place in (f"datasets/{name}", f"datasets/{name}/edit", f"datasets/{name}/grants", "people"):
            tab.go(f"#/{place}")
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (width, place)
