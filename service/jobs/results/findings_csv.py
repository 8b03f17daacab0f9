"""Findings of questions as CSV: one line for each released number."""

from collections.abc import Callable, Iterator
from itertools import pairwise, product
from typing import Any

from service.jobs.results.csv_files import written

Lines = Iterator[list[Any]]


def findings_csv(body: dict[str, Any]) -> str:
    """Return the findings of a question as CSV; clusters are numbered from 1."""
    names, lines = _TABLES[body["kind"]]
    findings = body["findings"]
    if body["kind"] == "table":
        names = (*(column["column"] for column in findings["columns"]), "count")
    return written(names, lines(findings))


def _bins(column: dict[str, Any]) -> list[str]:
    """The names of a column's bins: levels, or the values from which to which a bin reaches."""
    edges = column.get("edges", ())
    named = column.get("levels") or [f"{a} to {b}" for a, b in pairwise(edges)]
    return [*named, "missing"] if column["missing"] else list(named)


def _profile(findings: dict[str, Any]) -> Lines:
    for cluster, size in enumerate(findings["sizes"], 1):
        yield [cluster, "", "", size]
        for column in findings["columns"]:
            counts = column["counts"][cluster - 1]
            yield from (
                [cluster, column["column"], *pair] for pair in zip(_bins(column), counts, strict=True)
            )


def _explain(findings: dict[str, Any]) -> Lines:
    for number, cluster in enumerate(findings["clusters"], 1):
        yield [number, "", "", cluster["size"], ""]
        for column in cluster["columns"]:
            bins = zip(_bins(column), column["counts"], column["overall"], strict=True)
            yield from ([number, column["column"], *each] for each in bins)


def _table(findings: dict[str, Any]) -> Lines:
    for cell in product(*(enumerate(_bins(column)) for column in findings["columns"])):
        count = findings["counts"]
        for place, _ in cell:
            count = count[place]
        yield [*(name for _, name in cell), count]


def _quantiles(findings: dict[str, Any]) -> Lines:
    for column in findings["columns"]:
        pairs = zip(findings["levels"], column["values"], strict=True)
        yield from ([column["column"], *pair] for pair in pairs)


def _summary(findings: dict[str, Any]) -> Lines:
    yield ["", "count", "", findings["count"]]
    names = findings["coordinates"]
    for column in findings["columns"]:
        if "shares" in column:
            yield from (
                [f"{column['column']}={level}", "mean", "", share]
                for level, share in column["shares"].items()
            )
        else:
            yield [column["column"], column["measure"], "", column["value"]]
    yield from ([name, "spread", "", value] for name, value in zip(names, findings["spreads"], strict=True))
    for name, row in zip(names, findings["correlations"], strict=True):
        yield from ([name, "correlation", other, value] for other, value in zip(names, row, strict=True))


def _compare(findings: dict[str, Any]) -> Lines:
    for first, row in enumerate(findings["counts"], 1):
        yield from ([first, second, count] for second, count in enumerate(row, 1))


_TABLES: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any]], Lines]]] = {
    "profile": (("cluster", "column", "bin", "count"), _profile),
    "explain": (("cluster", "column", "bin", "count", "overall_share"), _explain),
    "table": ((), _table),
    "quantiles": (("column", "level", "value"), _quantiles),
    "summary": (("column", "measure", "other_column", "value"), _summary),
    "compare": (("cluster_of_first", "cluster_of_second", "count"), _compare),
}
