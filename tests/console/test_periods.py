"""A dataset with periods in the console: months on a line of time, the next one filled in from the last."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.console.conftest import COLUMNS, Tab, rows


def test_next_month_is_filled_in_from_the_last_uploaded_sealed_and_asked_about(tab: Tab, fresh: str) -> None:
    name = f"months-{fresh}"
    box = {"low": [low for low, _ in COLUMNS.values()], "high": [high for _, high in COLUMNS.values()]}
    facts = {"name": name, "columns": list(COLUMNS), "bounds": {"box": box}, "size": 3000, "unit": "record"}
    budget = {"epsilon": "2", "delta": "0.000005"}
    place = f"/v1/datasets/{name}/periods"
    call = tab.service.call
    call("POST", "/v1/datasets", json={**facts, "budget": budget})
    call("POST", place, json={"label": "2025-12", "size": 2500})
    call("PUT", f"{place}/2025-12/data", content=rows())
    call("POST", f"{place}/2025-12/seal", json={})

    page = tab.sign_in(tab.service.curator_key, f"#/datasets/{name}/periods")
    page.get_by_role("button", name="Add the next period").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Label")).to_have_value("2026-01")
    expect(dialog.get_by_label("Size")).to_have_value("2500")
    dialog.get_by_role("button", name="Add the period").click()
    file = {"name": "january.csv", "mimeType": "text/csv", "buffer": rows(2000)}
    page.get_by_label("File").set_input_files(file)  # type: ignore[arg-type]
    page.get_by_role("button", name="Upload and check").click()
    page.get_by_role("button", name="Seal the period").click()
    expect(page.locator(".timeline > li.sealed")).to_have_count(2)

    page.goto(f"{tab.service.address}/#/datasets/{name}/job")
    page.get_by_label("First period").select_option("2026-01")
    page.get_by_role("button", name="Submit for").click()
    read = page.locator("dt:text-is('Periods') + dd")
    expect(read).to_have_text("2026-01")

    page.goto(f"{tab.service.address}/#/datasets/{name}")
    question = page.locator("#ask")
    question.get_by_label("First period").select_option("2026-01")
    with page.expect_request(lambda sent: "0.2" in (sent.post_data or "")) as planned:
        question.get_by_label("Epsilon").fill("0.2")
    assert '"periods":{"from":"2026-01","to":"2026-01"}' in (planned.value.post_data or "")

    page.goto(f"{tab.service.address}/#/datasets/{name}/periods")
    corrected = page.locator(".timeline > li", has=page.get_by_role("heading", name="2025-12"))
    corrected.get_by_role("button", name="Correct").click()
    page.get_by_role("button", name="Begin a correction").click()
    page.get_by_label("File").set_input_files(file)  # type: ignore[arg-type]
    page.get_by_role("button", name="Upload and check").click()
    page.get_by_role("button", name="Seal the correction").click()
    expect(corrected).to_contain_text("version 2")
