"""Questions with the client and with the command, against a real service with a real worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from cairn_client import Findings, KindNotGranted
from tests.support.command import as_json, cairn
from tests.support.live import Live

pytestmark = pytest.mark.usefixtures("place")


def test_clusters_are_profiled_explained_and_compared(live: Live, place: Path) -> None:
    owned = live.dataset(epsilon="5", cap="4")
    owned.grant(live.analyst().whoami().name, kinds=["cluster", "profile", "explain", "compare"])
    mine = live.analyst().dataset(owned.name)
    result = mine.cluster(k=2, epsilon="0.5", algorithm="sulq")
    profile = result.profile(["a"], epsilon="0.5", options={"bins": 4})
    assert [each["column"] for each in profile["columns"]] == ["a"]
    assert profile.receipt["kind"] == "profile"
    frame = profile.frame()
    assert list(frame.columns)[:4] == ["cluster", "column", "bin", "count"]
    assert len(frame) == 2 * (1 + 4)
    explained = result.explain(1, epsilon="0.5")
    assert [len(each["columns"]) for each in explained["clusters"]] == [1, 1]
    assert len(result.compare(result, epsilon="0.5")["counts"]) == 2
    profile.save(place / "profile.json")
    profile.save(place / "profile.csv")
    again = Findings.load(place / "profile.json")
    assert again["sizes"] == profile["sizes"]
    assert "profile of" in repr(again)
    with pytest.raises(KindNotGranted):
        mine.summary(epsilon="0.1")


def test_a_dataset_is_asked_on_the_command_line(live: Live, place: Path) -> None:
    owned = live.dataset(epsilon="5", cap="4")
    owned.grant(live.analyst().whoami().name, kinds=["cluster", "quantiles", "table", "summary", "profile"])
    assert "quantiles" in cairn("kinds").stdout
    planned = cairn("ask", owned.name, "quantiles", "--epsilon", "0.5", "--plan").stdout
    assert "Counts below about" in planned
    answer = as_json("ask", owned.name, "quantiles", "--epsilon", "0.5", "--option", "levels=[0.5]")
    assert answer["findings"]["levels"] == [0.5]
    printed = cairn("ask", owned.name, "table", "--epsilon", "0.5", "--columns", "a", "-o", "table.csv")
    assert "Wrote the table" in printed.stderr
    assert (place / "table.csv").read_text().startswith("a,count,")
    assert "Spread" in cairn("ask", owned.name, "summary", "--epsilon", "0.5").stdout
    job = live.analyst().dataset(owned.name).cluster(k=2, epsilon="0.5", algorithm="sulq").facts.job
    cairn("ask", owned.name, "profile", "--of", f"{job[:8]}:2", "--epsilon", "0.1", "--columns", "a")
    assert " – " in cairn("jobs", "--limit", "1").stdout
    assert "profile" in cairn("job", "latest").stdout
    assert "Cluster 1" in cairn("result", "latest").stdout
    refused = cairn("ask", owned.name, "compare", "--of", job, "--of", job, "--epsilon", "0.1", code=1)
    assert "Request this kind of job" in refused.stderr


@pytest.mark.usefixtures("as_curator")
def test_a_curator_asks_and_uses_the_answer_as_bounds(live: Live) -> None:
    owned = live.dataset(epsilon="5", cap="1")
    found = owned.quantiles(["a", "b"], [0.1, 0.9], epsilon="1")
    assert found._repr_html_().count("<table>") >= 1
    assert repr(found.receipt).startswith("<Receipt of job")
    assert found.arrow().num_rows == len(found.frame())
    facts = owned.set_working_bounds({"a": found})
    assert facts.working_bounds is not None
    (column,) = facts.working_bounds.columns
    low, high = found["columns"][0]["values"]
    assert (column.column, column.low, column.high) == ("a", pytest.approx(low), pytest.approx(high))
    assert column.origin == f"released by job {found.facts.job}"
    shown = cairn("dataset", "bounds", owned.name, "--column", "b:1:3").stdout
    assert shown.splitlines()[1] == "b from 1.0 to 3.0, typed by the curator"
    assert "typed by the curator" in cairn("dataset", "show", owned.name).stdout
    planned = as_json("plan", owned.name, "-k", "2", "--epsilon", "0.5", "--algorithm", "sulq")
    assert planned["plan"]["domain"]["bounds"]["box"]["low"] == [pytest.approx(low), 1]
    cairn("ask", owned.name, "summary", "--epsilon", "0.5")
    again = as_json("dataset", "bounds", owned.name, "--released-by", "latest", "--columns", "b")
    assert [each["job"] is not None for each in again["working_bounds"]["columns"]] == [True, True]
    assert "declared bounds" in cairn("dataset", "bounds", owned.name, "--declared").stdout
    assert owned.refresh().working_bounds is None
    assert "NAME:LOW:HIGH" in cairn("dataset", "bounds", owned.name, "--column", "b:1", code=2).stderr
