"""A short run of the fuzzing campaign on either database, and proof that its judge is awake."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from assurance.fuzz.campaign import ROLES, Campaign
from assurance.fuzz.judge import HEADERS, Judge
from assurance.fuzz.stage import RECORDS, VALUE, Stage
from tests.support.databases import migrated_database

pytestmark = pytest.mark.both_databases

GOOD = {**HEADERS, "content-security-policy": "default-src 'none'", "content-type": "application/json"}
SETTINGS: dict[str, Any] = {"max_upload_bytes": 8 << 20, "max_queued_jobs": 1000, "max_operations": 1e10}


@pytest.fixture(scope="module")
def campaign(
    request: pytest.FixtureRequest, database_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Campaign]:
    folder = tmp_path_factory.mktemp("campaign")
    with (
        migrated_database(request, database_kind, folder) as url,
        closing(Stage(url, folder, **SETTINGS)) as stage,
    ):
        yield Campaign(stage, 20)


def test_hostile_requests_of_every_kind_are_answered_in_order(campaign: Campaign) -> None:
    for role in ROLES:
        for send in (campaign.spoiled, campaign.raw, campaign.addresses, campaign.file):
            for _ in range(4 if role in ("ada", "carla", "cleo") else 1):
                send(role)
    assert campaign.faults == []


def test_every_call_of_the_description_bears_what_fits_it_and_what_does_not(campaign: Campaign) -> None:
    operations = campaign.operations()
    start = 0 if campaign.stage.database.is_sqlite else 1
    for number, operation in enumerate(operations[start::2]):  # half of them on each database
        campaign.described(operation, ("carla", "ada")[number % 2], 2)
    assert campaign.faults == []


def test_calls_in_chains_along_the_links_are_answered_in_order(campaign: Campaign) -> None:
    campaign.chains("carla", 6)
    assert campaign.tried["chained"] > 0
    assert campaign.faults == []


@pytest.mark.parametrize(
    ("role", "status", "text", "fault"),
    [
        ("ada", 200, f'{{"rows": {RECORDS}}}', "the number of records"),
        ("ada", 200, f"[{VALUE}]", "a secret"),
        ("ada", 500, "{}", "status 500"),
        ("carla", 422, 'Traceback: File "x.py"', "a trace of the code"),
        ("carla", 200, "cairn_01234567_" + "k" * 43, "a key"),
        ("carla", 422, "{}", "application/json instead of a problem"),
    ],
)
def test_judge_sees(campaign: Campaign, role: str, status: int, text: str, fault: str) -> None:
    assert fault in Judge(campaign.stage).faults(role, "GET", "/v1/jobs", status, GOOD, text)


def test_judge_sees_missing_headers_and_keys_of_people(campaign: Campaign) -> None:
    judge = Judge(campaign.stage)
    assert "somebody's key" in judge.faults("cleo", "GET", "/", 200, GOOD, campaign.stage.ada.key)
    without = {name: value for name, value in GOOD.items() if name != "x-frame-options"}
    assert judge.faults("ada", "GET", "/v1/jobs", 200, without, "{}") == ["header x-frame-options"]
    assert judge.faults("ada", "GET", "/v1/jobs", 200, GOOD, "{}") == []
