"""What `cairn` prints for people: tables that fit a terminal, readable numbers, short ids, verdicts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from cairn_client.commands.common import ExitCode
from tests.support.command import as_json, cairn, sentence
from tests.support.live import Live
from tests.support.terminal import in_terminal

pytestmark = pytest.mark.usefixtures("place")

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d"


@pytest.fixture(scope="module")
def finished_job(live: Live) -> tuple[str, str]:
    """The short id of a job that has succeeded, and its dataset's name."""
    owned = live.dataset(cap="1")
    job = live.analyst().dataset(owned.name).submit(k=2, epsilon="0.5", algorithm="sulq").wait()
    return job.id[:8], owned.name


def in_80_columns(command: str, finished_job: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal of 80 columns shows; JOB and DATASET stand for those of the finished job."""
    monkeypatch.setenv("COLUMNS", "80")
    job, dataset = finished_job
    shown = in_terminal(*command.replace("JOB", job).replace("DATASET", dataset).split())
    lines = [line.rstrip() for line in shown.splitlines()]
    assert max(map(len, lines)) <= 80
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("who", "command", "line"),
    [
        ("analyst", "jobs", rf"^JOB +test-\S+ +analyst +succeeded +2 +epsilon 0\.5 +{TIME}$"),
        ("analyst", "dataset list", r"^visits +sealed +2 +20,000 +[\d.]+ +[\de.-]+$"),
        ("analyst", "budget DATASET", r"^dataset +epsilon +2 +0\.5 +0 +1\.5$"),
        ("analyst", "ledger DATASET", rf"charge +{TIME} +analyst +JOB +0\.5 +1e-6$"),
        ("analyst", "algorithms", r"^sulq +either +means +dense, sparse,? +\S"),
        ("analyst", "result JOB", r"^ +1 +-?[\d,]+ +[\d,]+–[\d,]+ +[\d.]+ \([\d.]+ to [\d.]+\) +[\d.]+ \("),
        ("analyst", "receipt JOB", r"sums +\S+ +\d+ +0\.\d+$"),
        ("analyst", "plan DATASET -k 2 --epsilon 0.1", r"^step +times +what it measures$"),
        ("curator", "jobs", rf"^JOB +test-\S+ +analyst +succeeded +2 +epsilon 0\.5 +{TIME}$"),
        ("curator", "grants DATASET", r"^analyst +epsilon +1 +0\.5 +0 +0\.5$"),
        ("curator", "ledger DATASET", rf"charge +{TIME} +analyst +JOB +0\.5 +1e-6 +worker"),
        ("curator", "audit --dataset DATASET", rf"^{TIME} +curator +grant +test-"),
        ("curator", "principals list", r"^analyst +analyst +curator +\d{4}-\d\d-\d\d +\d+( +-)?$"),
        ("curator", "keys list analyst", r"^analyst +[0-9a-f]{8} +demo +\d{4}-\d\d-\d\d$"),
    ],
    ids=lambda text: text.split()[0],
)
def test_tables_fit_80_columns_without_broken_cells(
    who: str,
    command: str,
    line: str,
    finished_job: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if who == "curator":
        request.getfixturevalue("as_curator")
    shown = in_80_columns(command, finished_job, monkeypatch)
    assert re.search(line.replace("JOB", finished_job[0]), shown, re.MULTILINE), shown


def test_tables_are_for_people_and_json_for_scripts() -> None:
    assert re.search(r"name\s+state\s+columns\s+records", cairn("datasets").stdout)
    listed = as_json("datasets")
    assert "visits" in [each["name"] for each in listed]
    assert as_json("budget", "visits")["cap"]["total"] == {"epsilon": "5", "delta": "0.00001"}
    assert as_json("algorithms")[0]["guarantee"]


def test_a_plan_shows_cost_steps_and_what_is_left() -> None:
    shown = cairn(
        "plan", "visits", "-k", "3", "--epsilon", "0.5", "--algorithm", "sulq", "--option", "rounds=2"
    )
    assert re.search(r"cost\s+epsilon 0.5", shown.stdout)
    assert "left of the cap after it" in shown.stdout
    assert "what it measures" in shown.stdout
    assert re.search(
        r"size of a cluster\s+± [\d,]+ records in 95 of 100 runs; an average one has 6,670", shown.stdout
    )


def test_numbers_are_written_for_people() -> None:
    shown = cairn("plan", "visits", "-k", "3", "--epsilon", "0.1").stdout
    assert not re.search(r"\d[eE]\+", shown)
    assert re.search(r"smallest cluster that is found\s+≈ \d,\d{3} records", shown)
    assert re.search(r"visits\s+sealed\s+2\s+20,000\s", cairn("dataset", "list").stdout)


def test_a_plan_that_fits_has_the_verdict_and_exit_code_0(live: Live) -> None:
    owned = live.dataset(epsilon="10", cap="10")
    shown = cairn("plan", owned.name, "-k", "2", "--epsilon", "10", code=ExitCode.OK).stdout
    assert re.search(r"fits\s+yes\s", shown)
    assert re.search(r"verdict\s+The noise is small compared with the clusters", shown)


def test_a_plan_that_does_not_fit_names_the_limit_and_has_its_own_exit_code(live: Live) -> None:
    owned = live.dataset(epsilon="2", cap="0.5")
    words = ["plan", owned.name, "-k", "2", "--epsilon", "0.75"]
    shown = " ".join(cairn(*words, code=ExitCode.BUDGET).stdout.split())
    assert "This does not fit: it costs epsilon 0.75 and delta 1e-6, and your cap has epsilon 0.5" in shown
    assert json.loads(cairn(*words, "--json", code=ExitCode.BUDGET).stdout)["fits"] is False
    too_much_delta = ["plan", owned.name, "-k", "2", "--epsilon", "0.25", "--delta", "0.00006"]
    shown = " ".join(cairn(*too_much_delta, code=ExitCode.BUDGET).stdout.split())
    assert "epsilon 0.25 and delta 6e-5, and your cap has epsilon 0.5 and delta 5e-5 left" in shown


def test_a_plan_that_fits_neither_limit_names_the_tighter_one(live: Live) -> None:
    owned = live.dataset(epsilon="2", cap="5")
    shown = " ".join(
        cairn("plan", owned.name, "-k", "2", "--epsilon", "6", code=ExitCode.BUDGET).stdout.split()
    )
    assert "it costs epsilon 6 and delta 1e-6, and the dataset's budget has epsilon 2" in shown
    assert "your cap has" not in shown


def test_an_automatic_delta_that_does_not_fit_is_explained(live: Live) -> None:
    owned = live.dataset(cap="1")
    mine = live.analyst().dataset(owned.name)
    mine.submit(k=2, epsilon="0.25", delta="0.00005", algorithm="sulq")
    shown = " ".join(
        cairn("plan", owned.name, "-k", "2", "--epsilon", "0.25", code=ExitCode.BUDGET).stdout.split()
    )
    assert "epsilon 0.25 and delta 1e-7, and your cap has epsilon 0.75 and delta 0 left" in shown
    assert "never less than a tenth of the default: give a smaller one, or 0" in shown


def datasets_listed_by(*words: str) -> list[dict[str, Any]]:
    """The datasets that a command lists, with totals alone: jobs of earlier tests may still be claimed."""
    return [{**each, **{name: each[name]["total"] for name in ("budget", "cap")}} for each in as_json(*words)]


def test_datasets_are_listed_by_either_command() -> None:
    assert datasets_listed_by("dataset", "list") == datasets_listed_by("datasets")


def test_an_algorithm_is_shown_with_its_options() -> None:
    assert re.search(r"rounds\s+\S+\s+\w+", cairn("algorithms", "sulq").stdout)
    assert "see `cairn algorithms`" in sentence(cairn("algorithms", "magic", code=ExitCode.NOT_FOUND))


def test_commands_take_the_first_characters_of_a_job_s_id() -> None:
    words = ["submit", "visits", "-k", "2", "--epsilon", "1", "--rehearsal", "--algorithm", "sulq"]
    id = cairn(*words).stdout.strip()
    assert re.search(rf"(?m)^{id[:8]} ", cairn("jobs").stdout)
    for command in ("job", "result", "receipt"):
        assert id in cairn(command, id[:8], "--json").stdout
    cairn("cancel", id[:8], code=ExitCode.REFUSED)  # found, and too late


def test_the_clusters_of_a_result_are_numbered_from_1() -> None:
    words = ["submit", "visits", "-k", "2", "--epsilon", "1", "--rehearsal", "--algorithm", "sulq", "--watch"]
    done = cairn(*words)
    assert re.findall(r"(?m)^ +(\d+) ", done.stdout) == ["1", "2"]
    assert re.search(r"Sizes are noisy: ±[\d,]+ records in 95 of 100 runs", done.stderr)


@pytest.mark.usefixtures("as_curator")
def test_a_grant_keeps_the_delta_that_is_not_named_and_warns_above_the_total(live: Live) -> None:
    owned = live.dataset(epsilon="2", cap="1")
    done = cairn("grant", owned.name, "analyst", "--epsilon", "200")
    assert "analyst may spend epsilon 200, delta 5e-5" in done.stdout
    assert "Warning: this cap is above the dataset's total of epsilon 2, delta 0.0001" in done.stderr
    assert "Warning" not in cairn("grant", owned.name, "analyst", "--epsilon", "1.5").stderr
    assert re.search(r"delta\s+5e-5", cairn("grants", owned.name).stdout)
