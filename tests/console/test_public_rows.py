"""Public rows in the console: attached by the curator, who confirms that they are public."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from playwright.sync_api import expect

from tests.console.conftest import Tab
from tests.support.console import Service

WIDTH = 70


def test_a_curator_attaches_and_detaches_public_rows(
    tab: Tab, service: Service, fresh: str, tmp_path: Path
) -> None:
    name, path = f"digits-{fresh}", tmp_path / "open.csv"
    rows = np.random.default_rng(1).uniform(size=(30, WIDTH)).round(3)
    header = ",".join(f"x{i}" for i in range(WIDTH))
    np.savetxt(path, rows, delimiter=",", header=header, comments="", fmt="%.3f")
    facts = {"name": name, "dimension": WIDTH, "bounds": {"box": {"low": 0, "high": 1}}, "size": 30}
    service.call("POST", "/v1/datasets", json={**facts, "budget": {"epsilon": "1", "delta": "0.001"}})
    service.call("PUT", f"/v1/datasets/{name}/data", content=path.read_bytes())
    service.call("POST", f"/v1/datasets/{name}/seal", json={"confirm": ["size"]})

    page = tab.sign_in(service.curator_key, f"#/datasets/{name}")
    card = page.locator("#public-rows")
    card.get_by_role("button", name="Attach the rows").click()
    expect(card.get_by_text("Choose a file.")).to_be_visible()
    card.get_by_label("File").set_input_files(path)
    card.get_by_role("button", name="Attach the rows").click()
    expect(card.get_by_text("Confirm with public=true")).to_be_visible()
    card.get_by_label("These rows are public").check()
    card.get_by_role("button", name="Attach the rows").click()
    expect(card.get_by_text("30 rows for jobs to learn from")).to_be_visible()
    page = tab.go(f"#/datasets/{name}/audit")
    expect(page.get_by_text("attached 30 public rows")).to_be_visible()
    page = tab.go(f"#/datasets/{name}")
    card.get_by_role("button", name="Detach").click()
    page.get_by_role("dialog").get_by_role("button", name="Detach").click()
    expect(card.get_by_text("30 rows for jobs to learn from")).to_be_hidden()
    assert service.call("GET", f"/v1/datasets/{name}")["public_rows"] is None
