"""Queries of the alert rules and of the dashboard, held against what a service reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import yaml
from prometheus_client.parser import text_string_to_metric_families

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"
#: Made by Prometheus itself.
_OWN = {"up"}

Sample = tuple[str, dict[str, str]]


def alerts() -> dict[str, dict[str, Any]]:
    """The rules by the name of their alert."""
    (group,) = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def dashboard() -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    found: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
    return found


def queries() -> dict[str, str]:
    """Every query, by its alert or its panel."""
    found = {name: rule["expr"] for name, rule in alerts().items()}
    for panel in dashboard()["panels"]:
        found |= {f"{panel['title']} {target['refId']}": target["expr"] for target in panel["targets"]}
    return found


def samples(scrape: str) -> list[Sample]:
    """The samples of a scrape, without their values."""
    families = text_string_to_metric_families(scrape)
    return [(sample.name, sample.labels) for family in families for sample in family.samples]


def selectors(query: str) -> list[Any]:
    """The selectors of a query that the service must answer."""
    return [each for each in _selectors(promql_parser.parse(query)) if each.name not in _OWN]


def _selectors(node: Any) -> Iterator[Any]:
    """Every selector of a query, however deep."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for name in ("lhs", "rhs", "expr", "vector_selector"):
        if (inner := getattr(node, name, None)) is not None:
            yield from _selectors(inner)
    for argument in getattr(node, "args", None) or ():
        yield from _selectors(argument)


def unanswered(query: str, scraped: list[Sample]) -> list[str]:
    """The selectors of a query that match no sample."""
    missing = []
    for selector in selectors(query):
        found = [labels for name, labels in scraped if name == selector.name]
        for matcher in selector.matchers.matchers:
            found = [labels for labels in found if _matches(matcher, labels)]
        if not found:
            missing.append(str(selector))
    return missing


def _matches(matcher: Any, labels: dict[str, str]) -> bool:
    value = labels.get(matcher.name, "")
    same = re.fullmatch(matcher.value, value) if "Re" in str(matcher.op) else matcher.value == value
    return bool(same) is not str(matcher.op).endswith(("NotEqual", "NotRe"))
