"""Alert rules and the dashboard ask for metrics, with labels, that a real scrape has."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.harness.monitoring import Sample, alerts, dashboard, queries, samples, selectors, unanswered
from tests.markdown import ROOT
from tests.support.service import House, answer_to_a_mistake

TOKEN = "t" * 32
QUERIES = [pytest.param(query, id=name) for name, query in queries().items()]


@pytest.fixture(scope="module")
def scrape(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> list[Sample]:
    """The samples of a service on which jobs ran and were refused, and a request failed."""
    folder = tmp_path_factory.mktemp("monitored")
    (folder / "cairn.sqlite3").write_bytes(sqlite_template.read_bytes())
    url = f"sqlite:///{folder / 'cairn.sqlite3'}"
    with closing(House(url, folder, metrics_token=TOKEN)) as house:
        house.ready()
        house.submit("0.6")
        house.submit("0.6")
        assert house.work()
        house.worker.announce()
        with pytest.MonkeyPatch.context() as patch:
            assert answer_to_a_mistake(house, patch).status_code == 500
        headers = {"Authorization": f"Bearer {TOKEN}"}
        text = house.client.request("GET", "/metrics", headers=headers).text
    return samples(text)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_asks_for_what_the_service_reports(query: str, scrape: list[Sample]) -> None:
    assert unanswered(query, scrape) == []
    assert selectors(query) or "up" in query


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_groups_by_labels_that_exist(query: str, scrape: list[Sample]) -> None:
    asked = {selector.name for selector in selectors(query)}
    labels = {label for name, found in scrape if name in asked for label in found}
    for words in re.findall(r"(?:by|without) \(([^)]*)\)", query):
        assert {label.strip() for label in words.split(",")} <= labels


@pytest.mark.parametrize("name", list(alerts()))
def test_an_alert_names_only_labels_that_it_keeps_and_is_in_the_guide(name: str) -> None:
    rule = alerts()[name]
    used = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    kept = re.match(r"(?:max|min) by \(([^)]*)\)", rule["expr"])
    outermost = {label.strip() for label in kept[1].split(",")} if kept else {"instance"}
    assert used <= outermost
    assert f"`{name}`" in (ROOT / "docs" / "monitoring.md").read_text()


def test_panels_do_not_overlap() -> None:
    cells = [
        (x, y)
        for panel in dashboard()["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
