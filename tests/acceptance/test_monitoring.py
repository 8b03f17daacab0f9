"""Alert rules and the dashboard ask for metrics, with labels, that a real scrape has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.markdown import ROOT
from tests.support.service import House, answer_to_a_mistake

MONITORING = ROOT / "deploy" / "monitoring"
TOKEN = "t" * 32
#: Made by Prometheus itself.
_OWN = {"up"}

Sample = tuple[str, dict[str, str]]


def alerts() -> dict[str, dict[str, Any]]:
    (group,) = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
    return found


def queries() -> Iterator[Any]:
    for name, rule in alerts().items():
        yield pytest.param(rule["expr"], id=name)
    for panel in dashboard()["panels"]:
        for target in panel["targets"]:
            yield pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")


def selectors(node: Any) -> Iterator[Any]:
    """Every selector of a query, however deep."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for name in ("lhs", "rhs", "expr", "vector_selector"):
        if (inner := getattr(node, name, None)) is not None:
            yield from selectors(inner)
    for argument in getattr(node, "args", None) or ():
        yield from selectors(argument)


def matches(matcher: Any, labels: dict[str, str]) -> bool:
    value = labels.get(matcher.name, "")
    same = re.fullmatch(matcher.value, value) if "Re" in str(matcher.op) else matcher.value == value
    return bool(same) is not str(matcher.op).endswith(("NotEqual", "NotRe"))


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
    return [
        (sample.name, sample.labels)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


@pytest.mark.parametrize("query", list(queries()))
def test_a_query_asks_for_what_the_service_reports(query: str, scrape: list[Sample]) -> None:
    asked = [each for each in selectors(promql_parser.parse(query)) if each.name not in _OWN]
    for selector in asked:
        found = [labels for name, labels in scrape if name == selector.name]
        for matcher in selector.matchers.matchers:
            found = [labels for labels in found if matches(matcher, labels)]
        assert found, f"nothing matches {selector}"
    assert asked or "up" in query


@pytest.mark.parametrize("query", list(queries()))
def test_a_query_groups_by_labels_that_exist(query: str, scrape: list[Sample]) -> None:
    asked = {selector.name for selector in selectors(promql_parser.parse(query))}
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
