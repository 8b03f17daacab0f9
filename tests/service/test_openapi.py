"""The description of the interface: OpenAPI 3.1, an example for every call, a page without foreign hosts."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.datasets.wire import DatasetBody
from service.http.pages import example_of
from service.http.wire import BudgetBody
from service.jobs.request_wire import AccessRequestBody
from service.jobs.wire import JobBody, PlanBody
from service.operations.audit import Record
from service.people.access_events import DECLARED
from service.people.wire import KeyBody, PrincipalBody
from tests.support.service import House

ROOT = Path(__file__).parent.parent.parent


def calls(openapi: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, verbs in openapi["paths"].items():
        for verb, call in verbs.items():
            yield f"{verb.upper()} {path}", call


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
def test_the_description_is_made_once_and_sent_only_to_callers_without_it(
    shared_house: House, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    first = shared_house.client.request("GET", path)
    monkeypatch.setattr(shared_house.app, "openapi", None)  # asking for it again would fail
    again = shared_house.client.request("GET", path)
    assert (again.status_code, again.content) == (200, first.content)
    known = {"If-None-Match": first.headers["etag"]}
    unchanged = shared_house.client.request("GET", path, headers=known)
    assert (unchanged.status_code, unchanged.content) == (304, b"")


def test_description_is_openapi_3_1(shared_house: House) -> None:
    answer = shared_house.client.request("GET", "/openapi.json").json()
    assert answer["openapi"].startswith("3.1")


def test_every_call_has_examples_of_body_and_answer(shared_house: House) -> None:
    openapi = shared_house.app.openapi()
    lacking = []
    for name, call in calls(openapi):
        bodies = call.get("requestBody", {}).get("content", {})
        if bodies and not any(example_of(openapi, media) is not None for media in bodies.values()):
            lacking.append(f"{name}: body")
        for status, answer in call["responses"].items():
            contents = answer.get("content", {}) if status.startswith("2") else {}
            if contents and not any(example_of(openapi, media) is not None for media in contents.values()):
                lacking.append(f"{name}: {status}")
    assert lacking == []


def test_examples_of_bodies_are_accepted_by_their_schemas(shared_house: House) -> None:
    for model in (DatasetBody, BudgetBody, PrincipalBody, KeyBody, PlanBody, JobBody, AccessRequestBody):
        extra: Any = model.model_config["json_schema_extra"]
        for each in extra["examples"]:
            model.model_validate(each)


def test_every_call_of_the_contract_is_there(shared_house: House) -> None:
    offered = {re.sub(r"\{[a-z_]+\}", "{}", name) for name, _ in calls(shared_house.app.openapi())}
    wanted = """
        POST /v1/datasets, PUT /v1/datasets/{}/data, GET /v1/datasets, GET /v1/datasets/{},
        POST /v1/datasets/{}/budget, PUT /v1/datasets/{}/grants/{}, DELETE /v1/datasets/{}/grants/{},
        PUT /v1/datasets/{}/sites/{}, GET /v1/datasets/{}/ledger, POST /v1/datasets/{}/ledger/verify,
        POST /v1/datasets/{}/retire, GET /v1/algorithms, POST /v1/plans, POST /v1/jobs, GET /v1/jobs,
        GET /v1/jobs/{}, GET /v1/jobs/{}/result, GET /v1/jobs/{}/receipt, DELETE /v1/jobs/{},
        GET /v1/jobs/{}/transcript,
        POST /v1/principals, POST /v1/principals/{}/keys, DELETE /v1/principals/{}/keys/{},
        GET /healthz, GET /readyz, GET /docs, GET /metrics, GET /.well-known/cairn-keys.json
    """
    assert {call.strip() for call in wanted.split(",")} <= offered


#: Reading calls whose answers hold nothing that was released, and no report on rows.
NOT_RECORDED = """
    GET /v1/accountants, GET /v1/algorithms, GET /v1/column-kinds, GET /v1/kinds, GET /v1/whoami,
    GET /v1/principals, GET /v1/sessions, GET /v1/datasets/{name}/grants, GET /v1/datasets/{name}/sites,
    GET /v1/jobs, GET /v1/jobs/{job_id}, GET /v1/jobs/{job_id}/axes, GET /v1/requests,
    GET /v1/requests/{request_id}, GET /v1/catalogue, GET /v1/catalogue/{name},
    GET /v1/datasets/{name}/listing, GET /v1/populations,
    GET /v1/populations/{population}
"""


def test_every_call_that_returns_what_was_released_declares_its_event(shared_house: House) -> None:
    """A new reading call declares one, or is named here for a reason."""
    found = dict(calls(shared_house.app.openapi()))
    reading = {name for name in found if name.startswith("GET /v1/")}
    undeclared = {name for name in reading if DECLARED not in found[name]}
    assert undeclared == {name.strip() for name in NOT_RECORDED.split(",")}
    declared = [call[DECLARED] for call in found.values() if DECLARED in call]
    assert {each["action"] for each in declared} <= set(Record.ACCESS.actions)
    for call in (each for each in found.values() if DECLARED in each):
        offered = {each["name"] for each in call.get("parameters", [])}
        assert set(call[DECLARED]["parameters"]) <= offered


def test_links_lead_to_calls_that_exist_by_parameters_they_have(shared_house: House) -> None:
    openapi = shared_house.app.openapi()
    parameters = {
        call["operationId"]: {each["name"] for each in call.get("parameters", []) if each["in"] == "path"}
        for _, call in calls(openapi)
    }
    found = [
        link
        for _, call in calls(openapi)
        for answer in call["responses"].values()
        for link in answer.get("links", {}).values()
    ]
    assert len(found) >= 14
    for link in found:
        assert set(link["parameters"]) == parameters[link["operationId"]]


def test_pages_name_no_other_host_and_run_no_script(shared_house: House) -> None:
    for path in ("/docs", "/", "/problems/not-found"):
        page = shared_house.client.request("GET", path).text
        assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)
        assert "<script" not in page
    assert "POST" in shared_house.client.request("GET", "/docs").text


def test_api_process_imports_neither_execution_nor_rows_nor_what_takes_seconds() -> None:
    program = (
        "import sys, service.cli, service.app\n"
        "inside = {f'service.workers.{name}' for name in ('execution', 'rows', 'worker')}\n"
        "loaded = {'sklearn', 'scipy.stats', *inside} & set(sys.modules)\n"
        "sys.exit(', '.join(loaded) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
