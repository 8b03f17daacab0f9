"""Tests of quotes: a job is charged what its quote said, or refused."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.ledger.accountants.plain_sum import Sum
from tests.support.service import House

REQUEST = {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": "0.1", "delta": "0"}


def planned(house: House, **changes: Any) -> dict[str, Any]:
    answer = house.ada.post("/v1/plans", {**REQUEST, **changes})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def reserved(house: House, name: str = "flowers") -> dict[str, str]:
    found: dict[str, str] = house.ada.get(f"/v1/datasets/{name}").json()["cap"]["reserved"]
    return found


def test_a_job_with_its_quote_costs_what_the_quote_said(house: House) -> None:
    house.ready()
    quote = planned(house)
    job = house.ada.post("/v1/jobs", {**REQUEST, "quote": quote["quote"]})
    assert job.status_code == 202
    assert job.json()["cost"] == quote["cost"] == reserved(house)
    assert "quote" not in job.json()["request"]


@pytest.mark.parametrize(
    "changes",
    [{"epsilon": "0.2"}, {"k": 3}, {"delta": "0.000001"}, {"options": {"rounds": 2}}, {"rehearsal": True}],
)
def test_a_quote_of_another_request_is_refused_and_nothing_is_reserved(
    small_house: House, changes: dict[str, Any]
) -> None:
    small_house.ready()
    quote = planned(small_house)["quote"]
    refused = small_house.ada.post("/v1/jobs", {**REQUEST, **changes, "quote": quote})
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/quote-mismatch")
    assert refused.json()["cost"] == planned(small_house, **changes)["cost"]
    assert reserved(small_house) == {"epsilon": "0", "delta": "0"}


def test_a_quote_of_a_rehearsal_pays_for_no_job(small_house: House) -> None:
    small_house.ready()
    quote = planned(small_house, rehearsal=True)
    assert (quote["cost"], quote["fits"]) == ({"epsilon": "0", "delta": "0"}, True)
    assert small_house.ada.post("/v1/jobs", {**REQUEST, "quote": quote["quote"]}).status_code == 409
    free = small_house.ada.post("/v1/jobs", {**REQUEST, "rehearsal": True, "quote": quote["quote"]})
    assert free.status_code == 202
    assert reserved(small_house) == {"epsilon": "0", "delta": "0"}


def test_a_quote_of_somebody_else_is_refused(small_house: House) -> None:
    small_house.ready()
    assert small_house.grant("ben").status_code == 200
    quote = planned(small_house)["quote"]
    refused = small_house.ben.post("/v1/jobs", {**REQUEST, "quote": quote})
    assert refused.json()["type"] == "/problems/quote-mismatch"


def test_a_quote_of_another_dataset_with_the_same_facts_is_refused(small_house: House) -> None:
    small_house.ready()
    small_house.ready("meadows")
    quote = planned(small_house, dataset="meadows")["quote"]
    assert small_house.ada.post("/v1/jobs", {**REQUEST, "quote": quote}).status_code == 409


def test_a_quote_from_before_a_change_of_price_is_refused(
    small_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_house.ready()
    quote = planned(small_house)["quote"]
    real = Sum.cost
    monkeypatch.setattr(Sum, "cost", lambda *given: real(*given) + real(*given))
    refused = small_house.ada.post("/v1/jobs", {**REQUEST, "quote": quote})
    assert refused.json()["cost"]["epsilon"] == "0.2"
    assert reserved(small_house)["epsilon"] == "0"


def test_a_repeated_key_is_answered_before_the_quote_is_looked_at(house: House) -> None:
    house.ready()
    headers = {"Idempotency-Key": "once"}
    quote = planned(house)["quote"]
    first = house.ada.post("/v1/jobs", {**REQUEST, "quote": quote}, headers=headers)
    for again in ({}, {"quote": "0" * 64}, {"quote": quote}):
        answer = house.ada.post("/v1/jobs", {**REQUEST, **again}, headers=headers)
        assert (answer.status_code, answer.json()["id"]) == (202, first.json()["id"])


@pytest.mark.parametrize("odd", ["", "0" * 63, "G" * 64, 7, ["0" * 64]])
def test_what_is_no_quote_is_an_invalid_request(shared_house: House, odd: Any) -> None:
    assert shared_house.ada.post("/v1/jobs", {**REQUEST, "quote": odd}).status_code == 422


def test_a_quote_does_not_need_to_fit(small_house: House) -> None:
    small_house.ready()
    quote = planned(small_house, epsilon="5")
    assert quote["fits"] is False
    refused = small_house.ada.post("/v1/jobs", {**REQUEST, "epsilon": "5", "quote": quote["quote"]})
    assert refused.json()["type"].endswith("-exhausted")


@pytest.fixture(scope="module")
def open_house(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house with a budget that no example exhausts, under both accountants."""
    folder = tmp_path_factory.mktemp("quotes")
    shutil.copy(sqlite_template, folder / "cairn.sqlite3")
    url = f"sqlite:///{folder / 'cairn.sqlite3'}"
    made = House(url, folder, plans_per_minute=10_000, max_queued_jobs=10_000, rehearsals_per_minute=10_000)
    for name, accountant in (("flowers", "sum"), ("meadows", "zcdp")):
        made.ready(name, budget={"epsilon": "900", "delta": "0.01"}, accountant=accountant)
        assert made.grant("ada", name, epsilon="900", delta="0.01").status_code == 200
        assert made.grant("ben", name, epsilon="900", delta="0.01").status_code == 200
    yield made
    made.close()


REQUESTS = st.fixed_dictionaries(
    {
        "dataset": st.sampled_from(["flowers", "meadows"]),
        "k": st.integers(1, 3),
        "epsilon": st.sampled_from(["0.1", "0.10", "0.2", 0.1]),
        "algorithm": st.sampled_from(["auto", "sulq"]),
    },
    optional={
        "delta": st.sampled_from(["0", "0.000001", "0.0000005"]),
        "rehearsal": st.booleans(),
        "options": st.sampled_from([{}, {"rounds": 1}]),
    },
)


def leave_delta(house: House, left: str) -> None:
    """Move ada's cap on flowers so that this much delta is left: an automatic delta follows it."""
    cap = house.ada.get("/v1/datasets/flowers").json()["cap"]
    used = Decimal(cap["total"]["delta"]) - Decimal(cap["remaining"]["delta"])
    assert house.grant("ada", epsilon="900", delta=f"{used + Decimal(left):f}").status_code == 200


@settings(max_examples=60, deadline=None)
@given(
    asked=REQUESTS,
    sent=REQUESTS,
    same=st.booleans(),
    whose=st.sampled_from(["ada", "ada", "ben"]),
    left=st.tuples(*[st.sampled_from(["0.001", "0.0000005", "0.0000003"])] * 2),
)
def test_what_is_charged_is_what_the_quote_said_or_nothing(
    open_house: House,
    asked: dict[str, Any],
    sent: dict[str, Any],
    same: bool,
    whose: str,
    left: tuple[str, str],
) -> None:
    """Whoever sends whatever, and whatever happens to the cap between the plan and the submission."""
    house, person = open_house, getattr(open_house, whose)
    leave_delta(house, left[0])
    quote = house.ada.post("/v1/plans", asked)
    if quote.status_code != 200:
        return
    leave_delta(house, left[1])
    body = asked if same else sent
    path = f"/v1/datasets/{body['dataset']}"
    before = person.get(path).json()["cap"]["remaining"]
    submission, headers = {**body, "quote": quote.json()["quote"]}, {"Idempotency-Key": uuid.uuid4().hex}
    answer = person.post("/v1/jobs", submission, headers=headers)
    person.post("/v1/jobs", submission, headers=headers)
    after = person.get(path).json()["cap"]["remaining"]
    if answer.status_code == 202:
        assert whose == "ada"
        assert answer.json()["cost"] == quote.json()["cost"]
        assert answer.json()["plan_digest"] == quote.json()["digest"]
        cost = quote.json()["cost"]
        for part in ("rho" if "rho" in cost else "epsilon", "delta"):
            assert Decimal(before[part]) - Decimal(after[part]) == Decimal(cost[part])
    else:
        assert after == before
    if same and whose == "ada" and left[0] == left[1] and quote.json()["fits"]:
        assert answer.status_code == 202
