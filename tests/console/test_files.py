"""What is taken away from a result: charts as pictures, tables as spreadsheets and pages."""

from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page, expect
from python_calamine import CalamineWorkbook

from tests.console.conftest import Tab
from tests.support.console import Service

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def result(tab: Tab, finished: tuple[str, str, str]) -> Page:
    page = tab.sign_in(finished[1], f"#/jobs/{finished[2]}")
    expect(page.get_by_role("heading", name="Centres", exact=True)).to_be_visible()
    return page


def saved(page: Page, button: str) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name=button, exact=True).first.click()
    return download.value.path().rename(download.value.path().with_name(download.value.suggested_filename))


def test_a_chart_is_saved_as_it_is_seen(result: Page) -> None:
    drawn = ElementTree.fromstring(saved(result, "Save this chart as SVG").read_text())
    assert drawn.find(f"{SVG}title") is not None
    circles = list(drawn.iter(f"{SVG}circle"))
    assert circles
    assert all(each.get("fill", "").startswith("rgb") or each.get("fill") == "none" for each in circles)
    assert "class" not in {name for each in drawn.iter() for name in each.attrib}
    picture = saved(result, "Save this chart as PNG").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 2000


def test_a_table_is_saved_as_a_spreadsheet_and_as_a_page_with_the_citation(
    result: Page, service: Service, finished: tuple[str, str, str]
) -> None:
    _, key, job = finished
    centres = service.call("GET", f"/v1/jobs/{job}/result", key=key)["centres"]
    citation = service.call("GET", f"/v1/jobs/{job}/receipt", key=key)["citation"]
    book = CalamineWorkbook.from_filelike(io.BytesIO(saved(result, "Excel").read_bytes()))
    assert book.sheet_names == ["Table", "How to cite"]
    heading, *rows = book.get_sheet_by_name("Table").to_python()
    assert heading[:4] == ["cluster", "age", "income", "visits"]
    assert [row[1:4] for row in rows] == centres
    assert book.get_sheet_by_name("How to cite").to_python() == [[citation]]
    page = saved(result, "Word").read_text()
    assert page.count("<tr>") == len(centres) + 1
    assert citation in page
    assert str(centres[0][0]) not in page  # rounded
