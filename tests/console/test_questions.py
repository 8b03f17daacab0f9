"""Questions in the console: asked from a result page, and shown as histograms and tables."""

from __future__ import annotations

import re
from typing import Any, get_args

import numpy as np
import pytest
from playwright.sync_api import expect

from cairn_client import Client
from service.http.wire import JobKind
from tests.console.conftest import Tab
from tests.console.test_accessibility import complaints_in_every_dress
from tests.console.test_prices import Line, submissions
from tests.support.console import Service


@pytest.fixture(scope="module")
def asked(service: Service) -> tuple[str, dict[str, str]]:
    """The key of an analyst, and the jobs they have: a clustering, and a question of each kind."""
    chance = np.random.default_rng(2)
    rows = chance.normal([[2.0, 1.0], [8.0, 3.0]], 0.3, (500, 2, 2)).reshape(-1, 2).clip(0, 9).round(3)
    text = "\n".join(["a,b", *(f"{x},{y}" for x, y in rows)])
    key = service.analyst("asking-ada")
    caps = {"asking-ada": ("50", "0.0001")}
    service.dataset(
        "asking", text.encode(), {"a": (0.0, 10.0), "b": (0.0, 10.0)}, budget=("100", "0.001"), caps=caps
    )
    granted = {"epsilon": "50", "delta": "0.0001", "kinds": list(get_args(JobKind))}
    service.call("PUT", "/v1/datasets/asking/grants/asking-ada", json=granted)

    def submit(**body: Any) -> str:
        sent = {"dataset": "asking", "epsilon": "2", **body}
        return str(service.call("POST", "/v1/jobs", key=key, json=sent)["id"])

    jobs = {"cluster": submit(k=2, algorithm="sulq")}
    Client(service.address, key).job(jobs["cluster"]).wait(progress=False)
    named = [{"job": jobs["cluster"]}]
    jobs["explain"] = submit(kind="explain", clusterings=named, options={"picks": 1})
    jobs["compare"] = submit(kind="compare", clusterings=named * 2)
    jobs["table"] = submit(kind="table", columns=["a"], options={"bins": 2})
    jobs["quantiles"] = submit(kind="quantiles")
    jobs["summary"] = submit(kind="summary")
    return key, jobs


def test_a_profile_is_asked_for_on_a_result_page_and_shown(
    tab: Tab, asked: tuple[str, dict[str, str]]
) -> None:
    page = tab.sign_in(asked[0], f"#/jobs/{asked[1]['cluster']}")
    expect(page.get_by_role("heading", name="Ask more about these clusters")).to_be_visible()
    expect(page.get_by_text("records are noise")).to_be_visible()
    page.get_by_label("Epsilon").fill("1")
    page.get_by_role("button", name="Ask for ε 1", exact=True).click()
    expect(page.get_by_role("heading", name="Profile of asking")).to_be_visible()
    histogram = page.get_by_role("region", name="Histogram of a")
    expect(histogram.get_by_role("columnheader", name="Cluster 2")).to_be_visible()
    expect(histogram.get_by_role("row")).to_have_count(11)
    assert complaints_in_every_dress(page) == []


def test_a_question_is_asked_at_the_price_on_its_button_or_not_at_all(
    tab: Tab, asked: tuple[str, dict[str, str]]
) -> None:
    page = tab.sign_in(asked[0], f"#/jobs/{asked[1]['cluster']}")
    button = page.get_by_role("button", name=re.compile("^Ask|Working out"))
    expect(button).to_have_text("Ask for ε 0.1")
    line, sent = Line(page), submissions(page)
    page.get_by_label("Epsilon").fill("1.5")
    expect(button).to_have_text("Working out the price…")
    expect(button).to_be_disabled()
    page.get_by_label("Epsilon").press("Enter")
    line.let_through()
    expect(button).to_have_text("Ask for ε 1.5")
    assert sent == []


def test_a_question_is_about_the_columns_that_are_ticked_and_no_others(
    tab: Tab, service: Service, clustered_table: tuple[str, str, str]
) -> None:
    page = tab.sign_in(service.curator_key, f"#/datasets/{clustered_table[0]}")
    form = page.locator("#ask")
    send = form.get_by_role("button", name=re.compile("^Ask|Working out"))
    expect(send).to_have_text("Ask for ε 0.1")
    # Quantiles are of columns with an order: no others are on offer.
    expect(form.get_by_label("region")).to_be_hidden()
    form.get_by_label("admissions").uncheck()
    expect(form.get_by_text("Choose at least one column.")).to_be_visible()
    expect(send).to_be_disabled()
    form.get_by_label("a table of up to three columns").check()
    for name in ("age", "sex", "region", "smoker"):
        form.get_by_label(name, exact=True).check()
    expect(form.get_by_text("Choose at most 3 columns.")).to_be_visible()
    expect(send).to_be_disabled()
    sent = submissions(page)
    form.get_by_label("age", exact=True).uncheck()
    expect(send).to_have_text("Ask for ε 0.1")
    send.click()
    expect(page.get_by_role("heading", name="Table of wards")).to_be_visible()
    assert [each["columns"] for each in sent] == [["sex", "region", "smoker"]]


def test_answers_of_every_kind_are_shown(tab: Tab, asked: tuple[str, dict[str, str]]) -> None:
    shown = {
        "explain": "Histogram of",
        "compare": "Overlap of clusters",
        "table": "Table of counts",
        "quantiles": "Quantiles",
        "summary": "Correlations",
    }
    page = tab.sign_in(asked[0], "#/jobs")
    expect(page.get_by_role("link", name="Summary")).to_be_visible()
    for kind, label in shown.items():
        page = tab.go(f"#/jobs/{asked[1][kind]}")
        expect(page.get_by_role("region", name=label).first).to_be_visible()
        expect(page.locator("#receipt")).to_be_visible()


def test_two_profiles_by_the_same_clusters_are_set_side_by_side(
    tab: Tab, service: Service, asked: tuple[str, dict[str, str]]
) -> None:
    named = {"clusterings": [{"job": asked[1]["cluster"]}], "columns": ["a"], "options": {"bins": 2}}
    body = {"dataset": "asking", "kind": "profile", "epsilon": "1", **named}
    first, second = (str(service.call("POST", "/v1/jobs", key=asked[0], json=body)["id"]) for _ in range(2))
    for job in (first, second):
        Client(service.address, asked[0]).job(job).wait(progress=False)
    page = tab.sign_in(asked[0], f"#/jobs/{first}")
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("dialog").get_by_label("Job").select_option(second)
    page.get_by_role("dialog").get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="Two answers side by side")).to_be_visible()
    expect(page.get_by_text("differences are certain at 95%")).to_be_visible()
    expect(page.get_by_role("region", name="Histogram of a, cluster 2")).to_be_visible()
    assert complaints_in_every_dress(page) == []


def test_clusters_are_compared_with_another_dataset_by_a_link(
    tab: Tab, service: Service, asked: tuple[str, dict[str, str]]
) -> None:
    caps = {"asking-ada": ("50", "0.0001")}
    bounds = {"a": (0.0, 10.0), "b": (0.0, 10.0)}
    service.dataset("asking-next", b"a,b\n8,3\n2,1\n", bounds, budget=("100", "0.001"), caps=caps)
    granted = {"epsilon": "50", "delta": "0.0001", "kinds": ["cluster", "profile"]}
    service.call("PUT", "/v1/datasets/asking-next/grants/asking-ada", json=granted)
    page = tab.sign_in(asked[0], f"#/jobs/{asked[1]['cluster']}")
    page.get_by_label("Records of").select_option("asking-next")
    expect(page.get_by_role("radio", name="how two clusterings overlap")).to_have_count(0)
    assert page.url.endswith("?records=asking-next")
    page.reload()
    expect(page.get_by_label("Records of")).to_have_value("asking-next")
    assert complaints_in_every_dress(page) == []
    page.get_by_label("Epsilon").fill("1")
    page.get_by_role("button", name="Ask for ε 1", exact=True).click()
    expect(page.get_by_role("heading", name="Profile of asking-next")).to_be_visible()
    expect(page.get_by_role("button", name="Compare")).to_be_visible()
    tab.go(f"#/jobs/{asked[1]['explain']}")
    expect(page.get_by_role("heading", name="Explanation of asking")).to_be_visible()
    expect(page.get_by_role("button", name="Compare")).to_have_count(0)


def test_a_curator_grants_questions(tab: Tab, service: Service, asked: tuple[str, dict[str, str]]) -> None:
    service.analyst("asking-ben")
    page = tab.sign_in(service.curator_key, "#/datasets/asking/grants")
    page.get_by_role("button", name="Grant", exact=True).click()
    page.get_by_label("Analyst").select_option("asking-ben")
    page.get_by_label("Epsilon").fill("1")
    page.get_by_label("Questions too").check()
    page.get_by_role("dialog").get_by_role("button", name="Grant").click()
    expect(page.get_by_text("asking-ben may now use asking.")).to_be_visible()
    granted = service.call("GET", "/v1/datasets/asking/grants")["items"]
    kinds = next(each["kinds"] for each in granted if each["analyst"] == "asking-ben")
    assert set(kinds) == set(get_args(JobKind))


def test_a_curator_asks_for_quantiles_and_uses_them_as_bounds(
    tab: Tab, service: Service, asked: tuple[str, dict[str, str]]
) -> None:
    page = tab.sign_in(service.curator_key, "#/datasets/asking")
    form = page.locator("#ask")
    form.get_by_label("Levels").fill("0.1 0.9")
    form.get_by_label("Epsilon").fill("2")
    form.get_by_role("button", name="Ask for ε 2", exact=True).click()
    expect(page.get_by_role("region", name="Quantiles")).to_be_visible()
    page.get_by_role("button", name="Use these as bounds").click()
    window = page.get_by_role("dialog")
    window.get_by_label("b", exact=True).uncheck()
    window.get_by_role("button", name="Use these bounds").click()
    card = page.locator("#working-bounds")
    expect(card.get_by_text("released by job")).to_be_visible()
    assert complaints_in_every_dress(page) == []

    card.get_by_role("button", name="Change").click()
    page.get_by_label("Low of b").fill("0.5")
    page.get_by_role("dialog").get_by_role("button", name="Use these bounds").click()
    expect(card.get_by_role("row", name=re.compile("b.*typed by the curator"))).to_be_visible()
    facts = service.call("GET", "/v1/datasets/asking")["working_bounds"]["columns"]
    assert [(each["column"], each["job"] is None) for each in facts] == [("a", False), ("b", True)]
    assert (facts[1]["low"], facts[1]["high"]) == (0.5, 10)

    page = tab.go("#/datasets/asking/audit")
    expect(page.get_by_text(re.compile("set working bounds: .*typed by the curator"))).to_be_visible()
    page = tab.go("#/datasets/asking")
    page.get_by_role("button", name="Use the declared bounds again").click()
    page.get_by_role("dialog").get_by_role("button", name="Use the declared bounds").click()
    expect(card.get_by_text("released by job")).to_be_hidden()
    assert service.call("GET", "/v1/datasets/asking")["working_bounds"] is None


def test_a_curator_plans_names_and_sees_a_job_of_their_own(
    tab: Tab, service: Service, asked: tuple[str, dict[str, str]]
) -> None:
    page = tab.sign_in(service.curator_key, "#/datasets/asking")
    page.get_by_role("link", name="Plan a job").click()
    expect(page.get_by_role("heading", name="The dataset's budget")).to_be_visible()
    expect(page.get_by_role("heading", name="Your cap")).to_be_hidden()
    page.get_by_label("Algorithm").select_option("sulq")
    page.get_by_role("button", name="Submit for ε 1").click()
    expect(page.get_by_role("heading", name="Centres", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Name and note")).to_be_visible()
    expect(page.get_by_role("heading", name="Ask more about these clusters")).to_be_visible()
    # An analyst's job is not theirs to name.
    page = tab.go(f"#/jobs/{asked[1]['cluster']}")
    expect(page.get_by_role("heading", name="Centres", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Name and note")).to_be_hidden()
