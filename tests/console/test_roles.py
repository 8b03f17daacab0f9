"""Auditors and operators in the console: what their pages show, and what they do not offer."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.console.conftest import Tab
from tests.support.console import Service


def key_of(service: Service, name: str, role: str) -> str:
    made = service.call("POST", "/v1/principals", json={"name": name, "role": role})
    return str(made["first_key"]["key"])


def test_auditor_reads_facts_ledgers_and_receipts_and_no_result(
    tab: Tab, service: Service, finished: tuple[str, str, str], fresh: str
) -> None:
    dataset, _, job = finished
    page = tab.sign_in(key_of(service, f"nora-{fresh}", "auditor"))
    bar = page.get_by_role("navigation", name="Main")
    assert bar.get_by_role("link").all_inner_texts() == [
        "Datasets",
        "Catalogue",
        "Jobs",
        "Requests",
        "Audit",
        "Help",
    ]
    page.get_by_role("link", name=dataset, exact=True).click()
    expect(page.get_by_role("link", name="Plan a job")).to_have_count(0)
    page.get_by_role("link", name="Ledger").click()
    expect(page.get_by_role("cell", name="charge").first).to_be_visible()
    tab.go(f"#/jobs/{job}")
    expect(page.get_by_role("heading", name="Receipt")).to_be_visible()
    expect(page.get_by_role("heading", name="Clusters")).to_have_count(0)
    bar.get_by_role("link", name="Audit").click()
    expect(page.get_by_text("sealed the dataset").first).to_be_visible()
