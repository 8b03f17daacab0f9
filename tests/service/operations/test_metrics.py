"""Tests of what operators see: metrics in numbers, log lines without keys, and nothing of it for analysts."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
import structlog
from sqlalchemy import text

from benchmarks.harness.processes import server
from service.operations.logs import configure, redact
from tests.support.service import House, Person

KEY = "cairn_0123abcd_" + "x" * 43


def metrics(house: House) -> dict[str, float]:
    """Every sample of the metrics page by its name and labels."""
    text = house.carla.get("/metrics").text
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


def test_metrics_are_not_for_analysts(small_house: House) -> None:
    assert small_house.ada.get("/metrics").status_code == 403
    assert small_house.client.request("GET", "/metrics").status_code == 401


def test_charges_refusals_and_states_are_counted(house: House) -> None:
    house.ready()
    house.submit("0.6")
    house.submit("0.6")
    house.submit("0.1", delta="0")
    before = metrics(house)
    assert before['cairn_refusals_total{problem="budget-exhausted"}'] == 1
    assert before['cairn_jobs{state="queued"}'] == 2
    assert 'cairn_ledger_entries_total{kind="charge"}' not in before
    assert house.work()
    after = metrics(house)
    assert after['cairn_ledger_entries_total{kind="charge"}'] == 1
    assert (after['cairn_jobs{state="queued"}'], after['cairn_jobs{state="succeeded"}']) == (1, 1)


@pytest.mark.both_databases
def test_counts_of_jobs_and_entries_are_those_of_the_tables(house: House) -> None:
    """Whatever ends a job: a worker, its analyst, its curator before and after it ran, a withdrawn grant."""
    house.ready()
    for _ in range(6):
        house.submit("0.1", delta="0")
    assert house.work()
    house.clock.move(3600)
    assert house.work()
    running = house.worker.claim()
    assert running is not None
    unreleased = house.carla.get("/v1/jobs").json()["items"]
    for job in [each["id"] for each in unreleased if each["state"] == "running"]:
        assert house.carla.post(f"/v1/jobs/{job}/end").status_code == 200
    newest = house.ada.get("/v1/jobs/latest").json()["id"]
    assert house.ada.delete(f"/v1/jobs/{newest}").status_code == 200
    house.submit("0.1", delta="0", rehearsal=True)
    assert house.carla.delete("/v1/datasets/flowers/grants/ada").status_code == 204
    told = metrics(house)
    with house.database.read() as session:
        states = session.execute(text("SELECT state, count(*) FROM jobs GROUP BY state")).all()
        kinds = session.execute(text("SELECT kind, count(*) FROM ledger_entries GROUP BY kind")).all()
    assert len(states) == 3
    found = {name: value for name, value in told.items() if name.startswith("cairn_jobs{") and value}
    assert found == {f'cairn_jobs{{state="{state}"}}': times for state, times in states}
    for kind, times in kinds:
        assert told[f'cairn_ledger_entries_total{{kind="{kind}"}}'] == times


@pytest.mark.both_databases
def test_waiting_in_the_queue_is_measured(house: House) -> None:
    house.ready()
    house.submit("0.1", delta="0")
    house.clock.move(20)
    assert metrics(house)["cairn_queue_age_seconds"] == 20
    house.work()
    told = metrics(house)
    assert told["cairn_queue_age_seconds"] == 0
    assert told['cairn_claim_latency_seconds_bucket{le="10"}'] == 0
    assert told['cairn_claim_latency_seconds_bucket{le="30"}'] == 1
    assert told["cairn_claim_latency_seconds_count"] == 1
    assert told["cairn_claim_latency_seconds_sum"] == pytest.approx(20)


def test_chunks_that_workers_read_are_counted_by_where_they_were(house: House) -> None:
    house.ready(rows=50)
    for _ in range(2):
        house.submit("0.1", delta="0")
        assert house.work()
    told = metrics(house)
    assert told['cairn_chunks_read_total{dataset="flowers",source="database"}'] == 1
    assert told['cairn_chunks_read_total{dataset="flowers",source="cache"}'] >= 1
    assert told['cairn_chunk_bytes_read_total{dataset="flowers",source="database"}'] == 50 * 2 * 2
    assert told['cairn_chunk_read_seconds_total{dataset="flowers",source="database"}'] > 0


def test_curator_sees_nothing_of_other_curators_datasets(sqlite_url: str, tmp_path: Path) -> None:
    with closing(House(sqlite_url, tmp_path, metrics_token="t" * 32)) as house:
        house.ready(rows=50)
        house.submit("0.1", delta="0")
        assert house.work()
        made = house.carla.post("/v1/principals", {"name": "cleo", "role": "curator"}).json()
        told = Person(house.client, "cleo", made["first_key"]["key"]).get("/metrics").text
        assert "flowers" not in told
        assert 'cairn_jobs{state="succeeded"} 0.0' in told
        assert "cairn_ledger_entries_total{" not in told
        scraped = house.client.request("GET", "/metrics", headers={"Authorization": "Bearer " + "t" * 32})
        assert 'cairn_chunks_read_total{dataset="flowers",source="database"} 1.0' in scraped.text


TOKEN = "t" * 32


@pytest.fixture
def scraped_house(database_url: str, tmp_path: Path) -> Iterator[House]:
    """A service whose operator may see everything."""
    with closing(House(database_url, tmp_path, metrics_token=TOKEN, spool_directory=tmp_path)) as made:
        yield made


def scrape(house: House) -> dict[str, float]:
    """Every sample that an operator sees, by its name and labels."""
    text = house.client.request("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


@pytest.mark.both_databases
def test_requests_are_counted_by_area_and_status(scraped_house: House) -> None:
    before = scrape(scraped_house)  # other tests in this process have sent requests, too
    scraped_house.ready()
    scraped_house.ada.get("/v1/datasets/flowers")
    scraped_house.ada.get("/v1/datasets/nothing")
    scraped_house.client.request("GET", "/v1/whoami")
    scraped_house.client.request("GET", "/nobody/knows/this")
    after = scrape(scraped_house)
    found = {name: value - before.get(name, 0) for name, value in after.items()}
    assert found['cairn_http_requests_total{area="datasets",status="404"}'] == 1
    assert found['cairn_http_requests_total{area="uploads",status="200"}'] == 1
    assert found['cairn_http_requests_total{area="other",status="401"}'] == 1
    assert found['cairn_http_requests_total{area="other",status="404"}'] == 1
    assert found["cairn_http_errors_total"] == 0
    requests = sum(value for name, value in found.items() if name.startswith("cairn_http_requests_total"))
    assert found["cairn_http_request_seconds_count"] == requests - 1  # an upload takes as long as its body
    assert found['cairn_http_seconds_total{area="datasets"}'] > 0
    assert found['cairn_http_requests_total{area="metrics",status="200"}'] == 1  # the first of the two


def test_requests_are_counted_across_processes_and_restarts(sqlite_url: str, tmp_path: Path) -> None:
    with server(sqlite_url, tmp_path, command=("serve", "--workers", "0")) as service:
        assert httpx.get(f"{service.address}/v1/whoami").status_code == 401
    with server(sqlite_url, tmp_path, command=("serve", "--workers", "0"), metrics_token=TOKEN) as service:
        scraped = httpx.get(f"{service.address}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).text
    assert 'cairn_http_requests_total{area="other",status="401"} 1.0' in scraped


def test_requests_during_an_outage_of_the_database_are_counted_afterwards(scraped_house: House) -> None:
    name = 'cairn_http_requests_total{area="other",status="401"}'
    before = scrape(scraped_house).get(name, 0)
    scraped_house.client.request("GET", "/v1/whoami")
    with scraped_house.database.engine.begin() as connection:
        connection.execute(text("ALTER TABLE counters RENAME TO elsewhere"))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert scraped_house.client.request("GET", "/metrics", headers=headers).status_code == 503
    with scraped_house.database.engine.begin() as connection:
        connection.execute(text("ALTER TABLE elsewhere RENAME TO counters"))
    assert scrape(scraped_house)[name] == before + 1


@pytest.mark.both_databases
def test_operators_see_budgets_disks_and_sizes(scraped_house: House) -> None:
    scraped_house.ready()
    scraped_house.submit("0.6")
    scraped_house.worker.announce()
    found = scrape(scraped_house)
    assert found['cairn_budget_spent_ratio{dataset="flowers"}'] == pytest.approx(0.6)
    assert found['cairn_overruns_total{dataset="flowers",source=""}'] == 0
    assert found["cairn_workers"] == 1
    assert found["cairn_database_bytes"] > 100_000
    shares = {name: value for name, value in found.items() if name.startswith("cairn_disk_free_ratio")}
    assert len(shares) == 2
    assert all(0 < value < 1 for value in shares.values())


def test_a_curator_sees_nothing_of_machines(scraped_house: House) -> None:
    scraped_house.ready()
    seen = set(re.findall(r"(?m)^# TYPE (\w+) ", scraped_house.carla.get("/metrics").text))
    assert [name for name in seen if re.match("cairn_(http|workers|database|disk|cache|worker)", name)] == []


def test_every_metric_is_in_the_operators_guide(scraped_house: House) -> None:
    from tests.markdown import ROOT

    scraped_house.ready()
    scraped_house.submit("0.6")
    scraped_house.submit("0.6")
    scraped_house.work()
    scraped_house.worker.announce()
    answer = scraped_house.client.request("GET", "/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    exposed = set(re.findall(r"(?m)^# TYPE (\w+) ", answer.text))
    guide = (ROOT / "docs/operations.md").read_text()
    assert [name for name in sorted(exposed) if f"`{name}" not in guide] == []


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Where log lines go."""
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    configure("json", "info")
    yield written
    monkeypatch.undo()
    configure("text", "error")


def test_request_and_job_ids_stand_in_json_lines(small_house: House, lines: io.StringIO) -> None:
    small_house.ready()
    answer = small_house.submit("0.1", delta="0")
    small_house.work()
    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    accepted = next(line for line in found if line["event"] == "job accepted")
    assert accepted["job"] == answer.json()["id"]
    assert accepted["request"] == answer.headers["x-request-id"]
    assert next(line for line in found if line["event"] == "job ended")["job"] == answer.json()["id"]


def test_request_lines_name_the_caller_and_the_address(small_house: House, lines: io.StringIO) -> None:
    small_house.ada.get("/v1/whoami")
    small_house.client.request("GET", "/v1/whoami")
    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    requests = [line for line in found if line["event"] == "request"]
    assert [(line["caller"], line["address"], line["status"]) for line in requests] == [
        ("ada", "127.0.0.1", 200),
        (None, "127.0.0.1", 401),
    ]


def test_no_log_line_holds_a_key_or_a_password(lines: io.StringIO) -> None:
    log = structlog.get_logger()
    log.info("one", header=f"Bearer {KEY}", nested={"keys": [KEY, {"deep": KEY}]}, raw=KEY.encode())
    log.info("two", database="postgresql+psycopg://cairn:hunter2@db/cairn")
    logging.getLogger("uvicorn.error").warning("three %s", KEY)
    try:
        raise ValueError(KEY)
    except ValueError:
        log.exception("four")
    text = lines.getvalue()
    assert [json.loads(line)["event"].split()[0] for line in text.splitlines()] == [
        "one",
        "two",
        "three",
        "four",
    ]
    assert KEY not in text
    assert "x" * 43 not in text
    assert "hunter2" not in text


def test_redaction_leaves_the_rest_of_a_text_alone() -> None:
    assert redact(f"before {KEY} after") == "before [key] after"
