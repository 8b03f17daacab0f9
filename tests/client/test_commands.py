"""The command `cairn` as people and scripts use it, against a real service."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer
from typer.testing import CliRunner

from benchmarks.harness.processes import free_port
from cairn_client import Client, Unreachable
from cairn_client.cli import app
from cairn_client.commands.common import ExitCode
from cairn_client.commands.jobs import watched
from cairn_client.login import login_file
from cairn_client.receipt import digest_of
from tests.markdown import ROOT
from tests.support.command import as_json, cairn, sentence
from tests.support.flaky import flaky
from tests.support.live import Live
from tests.support.terminal import CAIRN, in_terminal

pytestmark = pytest.mark.usefixtures("place")

# --- one sentence for everything that fails -----------------------------------------------------------------


def test_a_wrong_key_says_whom_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAIRN_KEY", "cairn_00000000_wrong")
    assert "ask a curator for a new one" in sentence(cairn("datasets", code=ExitCode.NOT_SIGNED_IN))


def test_a_wrong_address_says_to_check_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAIRN_URL", f"127.0.0.1:{free_port()}")
    assert "check the address, or start the service" in sentence(cairn("datasets", code=ExitCode.AWAY))


def test_a_full_budget_says_what_is_left_and_what_to_do(live: Live) -> None:
    owned = live.dataset(cap="0.5")
    done = cairn("submit", owned.name, "-k", "2", "--epsilon", "0.75", code=ExitCode.BUDGET)
    said = sentence(done)
    assert "epsilon 0.5" in said
    assert "epsilon 0.75" in said
    assert "The largest job that you can submit now costs epsilon 0.5" in said
    assert "request a larger cap" in said


@pytest.mark.usefixtures("as_curator")
def test_a_bad_csv_names_the_line_and_the_way_out(live: Live, place: Path) -> None:
    (place / "bad.csv").write_text("a,b\n1,2\n3,many\n4\n")
    owned = live.dataset(rows=None)
    said = sentence(cairn("upload", owned.name, "bad.csv", code=ExitCode.BAD_DATA))
    assert "line 3: b: “many” is not a finite number; line 4: the line has 1 field instead of 2" in said
    assert "--on-bad-row drop" in said


@pytest.mark.usefixtures("as_curator")
def test_a_file_that_cannot_be_read_is_answered_with_what_to_do(live: Live, place: Path) -> None:
    (place / "twice.csv").write_text("a,a,b\n1,1,2\n")
    said = sentence(cairn("upload", live.dataset(rows=None).name, "twice.csv", code=ExitCode.BAD_DATA))
    assert "more than one column named a; rename or remove one. Nothing was stored. Correct" in said


@pytest.mark.usefixtures("as_curator")
def test_a_grant_to_nobody_says_how_to_create_the_account(live: Live) -> None:
    words = ["grant", live.dataset().name, "nobody", "--epsilon", "1"]
    said = sentence(cairn(*words, code=ExitCode.NOT_FOUND))
    assert "there is no account named nobody; `cairn principals add NAME` creates one" in said


def test_options_that_can_be_repeated_show_what_to_write() -> None:
    def of(command: Any) -> Iterator[Any]:
        yield from command.params
        for inner in getattr(command, "commands", {}).values():
            yield from of(inner)

    repeated = [each for each in of(typer.main.get_command(app)) if getattr(each, "multiple", False)]
    assert len(repeated) > 5
    assert [each.name for each in repeated if each.metavar is None] == []


@pytest.mark.parametrize("epsilon", ["-1", "abc", "0,5"])
def test_an_amount_that_cannot_be_one_is_wrong_usage(epsilon: str) -> None:
    done = cairn("submit", "visits", "-k", "2", "--epsilon", epsilon, code=ExitCode.USAGE)
    assert "write a number such as 0.5" in done.stderr


def test_nobody_signed_in_says_how_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAIRN_KEY")
    assert "sign in with `cairn login`" in sentence(cairn("whoami", code=ExitCode.NOT_SIGNED_IN))


@pytest.mark.usefixtures("as_curator")
def test_an_upload_without_rows_is_not_to_be_sealed(live: Live, place: Path) -> None:
    (place / "empty.csv").write_text("a,b\n")
    said = cairn("upload", live.dataset(rows=None).name, "empty.csv").stderr
    assert "upload a file with usable rows" in said
    assert "seal" not in said


@pytest.mark.usefixtures("as_curator")
def test_bounds_are_shown_column_by_column(live: Live) -> None:
    name = live.dataset(rows=None).name
    assert re.search(r"bounds +a from \S+ to \S+, b from \S+ to \S+", cairn("dataset", "show", name).stdout)


def test_an_analyst_is_told_that_a_command_is_for_other_roles() -> None:
    done = cairn("principals", "list", code=ExitCode.NOT_SIGNED_IN)
    assert "only curators and operators may do this. Sign in with such a key" in sentence(done)


def test_an_unknown_dataset_has_its_own_exit_code() -> None:
    sentence(cairn("budget", "no-such-dataset", code=ExitCode.NOT_FOUND))


@pytest.mark.usefixtures("as_curator")
def test_a_missing_file_is_named(live: Live) -> None:
    assert "nowhere.csv" in sentence(cairn("upload", "visits", "nowhere.csv", code=ExitCode.REFUSED))


@pytest.mark.parametrize("words", [["plan", "visits", "-k", "2", "--epsilon", "much"], ["plan"], ["fly"]])
def test_wrong_usage_has_its_own_exit_code(words: list[str]) -> None:
    assert "Traceback" not in cairn(*words, code=ExitCode.USAGE).output


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (["result", "nonsense"], "there is no job whose id begins with 'nonsense'"),
        (["plan", "Visits", "-k", "2", "--epsilon", "1"], "lower-case letters"),
        (
            ["plan", "visits", "-k", "2", "--epsilon", "1", "--algorithm", "gupta"],
            "set the objective to medians",
        ),
        (["plan", "visits", "-k", "2", "--epsilon", "1", "--algorithm", "jones"], "choose one with --sites"),
        (["plan", "visits", "-k", "2", "--epsilon", "1", "--sites", "no"], "those it has: none"),
    ],
)
def test_a_slip_is_answered_with_the_way_out(words: list[str], way_out: str) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code in (ExitCode.REFUSED, ExitCode.NOT_FOUND)
    assert way_out in sentence(done)


def test_login_without_a_key_says_how_to_give_one(live: Live) -> None:
    assert "type or paste it" in sentence(cairn("login", live.url, stdin="\n", code=ExitCode.NOT_SIGNED_IN))


def test_the_version_is_told() -> None:
    assert re.fullmatch(r"cairn \d+\.\d+\.\d+\S*\n", cairn("--version").stdout)


def test_every_exit_code_is_documented() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    assert [code for code in ExitCode if not re.search(rf"(?m)^\| {code.value} \|", page)] == []


# --- signing in ---------------------------------------------------------------------------------------------


def test_login_tries_the_key_and_keeps_it_for_its_owner_alone(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CAIRN_KEY")
    monkeypatch.delenv("CAIRN_URL")
    done = cairn("login", live.url, stdin=f"{live.analyst_key}\n")
    assert "as analyst (analyst)" in done.stdout
    assert live.analyst_key not in done.output
    assert stat.S_IMODE(login_file().stat().st_mode) == 0o600
    assert as_json("whoami") == {"name": "analyst", "role": "analyst", "url": live.url}
    cairn("logout")
    assert not login_file().exists()


def test_login_warns_before_a_key_travels_unencrypted() -> None:
    done = cairn("login", "http://cairn.invalid", stdin="cairn_00000000_x\n", code=ExitCode.AWAY)
    assert done.stderr.startswith("Warning: the key is sent to http://cairn.invalid unencrypted")


def test_login_with_a_wrong_key_keeps_nothing(live: Live) -> None:
    sentence(cairn("login", live.url, stdin="cairn_00000000_wrong\n", code=ExitCode.NOT_SIGNED_IN))
    assert not login_file().exists()


def test_a_typed_key_is_not_shown(live: Live) -> None:
    shown = in_terminal("login", live.url, typed=f"{live.analyst_key}\n")
    assert "Signed in" in shown
    assert live.analyst_key not in shown


# --- work ---------------------------------------------------------------------------------------------------


def test_submit_watch_writes_the_centres(live: Live, place: Path) -> None:
    owned = live.dataset(cap="1")
    words = ["submit", owned.name, "-k", "2", "--epsilon", "0.5", "--algorithm", "sulq"]
    cairn(*words, "-o", "centres.csv")
    assert (place / "centres.csv").read_text().startswith("cluster,a,b,size,size_noise,size_low,")
    assert len((place / "centres.csv").read_text().splitlines()) == 3
    job = as_json("jobs", "--limit", "1")[0]
    assert job["state"] == "succeeded"
    assert as_json("result", job["id"])["job"] == job["id"]
    receipt = cairn("receipt", job["id"]).stdout
    assert "(correct)" in receipt
    assert receipt.count("delta 1e-6") == 3  # of the guarantee, the charge and the citation
    cairn("receipt", job["id"], "-o", "receipt.json", "--report", "report.html", "--registry", "entry.yaml")
    assert "not been changed" in cairn("verify", "receipt.json").stdout
    assert "Who is protected?" in Path("report.html").read_text()
    assert Path("entry.yaml").read_text().startswith("url_slug: ")
    cairn("transcript", job["id"])
    assert (place / "transcript").read_bytes().startswith(b"cairn transcript 1\n")
    assert as_json("job", job["id"])["cost"]["epsilon"] == "0.5"
    assert re.search(rf"charge .* {job['id'][:8]}\s+0\.5\s+1e-6", cairn("ledger", owned.name).stdout)
    assert cairn("ledger", owned.name, "--csv").stdout.splitlines()[-1].split(",")[1] == "charge"


def test_a_receipt_is_verified_without_a_connection(
    live: Live, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = live.analyst().dataset("visits").submit(k=2, epsilon=1, algorithm="sulq", rehearsal=True).wait()
    receipt = job.receipt()
    earlier = {name: value for name, value in receipt.items() if name != "signature"} | {"format": 1}
    stored = {
        "receipt": receipt,
        "changed": {**receipt, "analyst": "somebody"},
        "earlier": earlier | {"digest": digest_of(earlier)},
        "keys": live.analyst().public_keys(),
    }
    for name, content in stored.items():
        (place / f"{name}.json").write_text(json.dumps(content))
    monkeypatch.setenv("CAIRN_URL", f"127.0.0.1:{free_port()}")
    monkeypatch.delenv("CAIRN_KEY")
    words = ["--keys", "keys.json"]
    assert "The service signed this receipt" in cairn("verify", "receipt.json", *words).stdout
    changed = cairn("verify", "changed.json", *words, code=ExitCode.REFUSED)
    assert "the receipt was changed" in sentence(changed)
    assert "not signed (format 1)" in sentence(cairn("verify", "earlier.json", *words, code=ExitCode.REFUSED))


def test_submitting_prints_the_id_alone_for_scripts() -> None:
    done = cairn("submit", "visits", "-k", "2", "--epsilon", "1", "--rehearsal", "--algorithm", "sulq")
    assert re.fullmatch(r"[0-9a-f-]{36}\n", done.stdout)
    assert "--watch" in done.stderr


def test_a_cancelled_job_has_no_result_and_its_own_exit_code() -> None:
    # The only worker is busy with this one for seconds, so the next is still queued when it is cancelled.
    long = ["-k", "1500", "--algorithm", "sulq", "--option", "rounds=100"]
    cairn("submit", "visits", *long, "--epsilon", "1", "--rehearsal")
    short = cairn("submit", "visits", "-k", "2", "--epsilon", "1", "--rehearsal", "--algorithm", "sulq")
    job = short.stdout.strip()
    assert "nothing was charged" in cairn("cancel", job).stdout
    assert "submit it again" in sentence(cairn("result", job, code=ExitCode.NO_RESULT))


def test_ctrl_c_leaves_the_job_running_and_says_how_to_come_back(live: Live) -> None:
    with flaky(live.url) as proxy:
        proxy.make("hold", on="GET /v1/jobs/")  # else a fast job would be done before the signal comes
        watching = proxy.expect("GET /v1/jobs/")
        words = [
            "submit",
            "visits",
            "-k",
            "2",
            "--epsilon",
            "1",
            "--rehearsal",
            "--algorithm",
            "sulq",
            "--watch",
        ]
        process = subprocess.Popen(
            [*CAIRN, *words],
            env={**os.environ, "CAIRN_URL": proxy.url},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Whoever starts the tests in the background has them ignore Ctrl-C, and they would hand that on.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        assert watching.wait(120)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    assert process.returncode == ExitCode.INTERRUPTED
    assert "Traceback" not in said
    found = re.search(r"Job (\S+) keeps running\. Return to it with `cairn job \1 --watch`\.", said)
    assert found, said
    assert "rehearsal" in cairn("job", found[1], "--watch").output


def test_a_connection_that_breaks_for_good_while_watching_says_how_to_come_back(live: Live) -> None:
    with flaky(live.url) as proxy:
        visits = Client(proxy.url, live.analyst_key, patience=0.2).dataset("visits")
        job = visits.submit(k=2, epsilon=1, rehearsal=True, algorithm="sulq")
    with pytest.raises(Unreachable, match=f"return to it with `cairn job {job.id[:8]} --watch`"):
        watched(job)


@pytest.mark.usefixtures("as_curator")
def test_a_dataset_goes_from_its_description_to_its_retirement(live: Live, place: Path) -> None:
    name = f"cli-{os.getpid()}"
    columns = ["--column", "age:0:120", "--column", "a:b:-1:1"]
    made = as_json("dataset", "create", name, *columns, "--size", "100", "--epsilon", "1", "--delta", "1e-6")
    assert made["columns"] == ["age", "a:b"]
    assert made["bounds"] == {"box": {"low": [0.0, -1.0], "high": [120.0, 1.0]}}
    (place / "rows.csv").write_text("age,a:b\n30,0.5\n31,9\n")
    uploaded = cairn("upload", name, "rows.csv")
    assert re.search(r"rows clipped to the bounds\s+1", uploaded.stdout)
    assert f"cairn dataset seal {name} --confirm clipped --confirm size" in uploaded.stderr
    assert "declared as 100" in sentence(cairn("dataset", "seal", name, code=ExitCode.REFUSED))
    assert "bounds" in cairn("dataset", "edit", name, "--bounds", "a:b:-9:9").stderr
    cairn("dataset", "discard", name, "--rows", "--yes")
    cairn("upload", name, "rows.csv", "--seal", "--confirm", "size")
    assert as_json("dataset", "show", name)["state"] == "sealed"
    assert "analyst may spend epsilon 0.5" in cairn("grant", name, "analyst", "--epsilon", "0.5").stdout
    assert as_json("budget", name, "--epsilon", "2")["budget"]["total"]["epsilon"] == "2"
    assert "hashes, balances and charges are correct" in cairn("ledger", name, "--verify").stderr
    assert [grant["analyst"] for grant in as_json("grants", name)] == ["analyst"]
    cairn("revoke", name, "analyst")
    logged = cairn("audit", "--dataset", name).stdout
    assert re.search(r"create-dataset .* created the dataset with epsilon 1, delta 1e-6", logged)
    cairn("dataset", "retire", name, stdin="n\n", code=1)
    cairn("dataset", "hand-over", name, "nobody", stdin="n\n", code=1)
    refused = cairn("dataset", "hand-over", name, "nobody", "--yes", code=ExitCode.REFUSED)
    assert "not the name of a curator" in sentence(refused)
    assert "retired" in cairn("dataset", "retire", name, "--yes").stdout


@pytest.mark.usefixtures("as_curator")
def test_an_upload_in_a_terminal_shows_its_speed(live: Live, place: Path) -> None:
    owned = live.dataset(rows=None)
    (place / "rows.csv").write_text("a,b\n" + "1.5,2.5\n" * 100_000)
    shown = in_terminal("upload", owned.name, "rows.csv")
    assert re.search(r"[kMG]B/s", shown)
    assert re.search(r"rows stored\s+100,000", shown)


@pytest.mark.usefixtures("as_curator")
def test_an_upload_may_come_from_a_pipe(live: Live) -> None:
    owned = live.dataset(rows=None)
    done = cairn("upload", owned.name, "-", "--kind", "text/csv", "--json", stdin="a,b\n1,2\n")
    assert json.loads(done.stdout)["rows"] == 1


@pytest.mark.usefixtures("as_curator")
def test_a_new_key_is_printed_alone_and_can_be_revoked() -> None:
    name = f"cli-person-{os.getpid()}"
    first = cairn("principals", "add", name).stdout.strip()
    second = cairn("keys", "issue", name, "--label", "laptop", "--days", "3").stdout.strip()
    assert first.startswith("cairn_")
    assert second.startswith("cairn_")
    listed = cairn("keys", "list", name).stdout
    assert "laptop" in listed
    assert second not in listed
    ids = [key["id"] for key in as_json("keys", "list", name)[0]["keys"]]
    cairn("keys", "revoke", name, ids[0])
    cairn("principals", "disable", name)
    assert name in cairn("principals", "list").stdout


@pytest.mark.usefixtures("as_curator")
def test_sites_are_stored_from_a_file(live: Live, place: Path) -> None:
    owned = live.dataset()
    (place / "depots.csv").write_text("1,1\n9,3\n")
    assert "2 sites" in cairn("sites", "put", owned.name, "depots", "depots.csv").stdout
    words = ["sites", "put", owned.name, "towns", "depots.csv", "--kind", "great-circle"]
    assert "stored as great-circle" in cairn(*words).stdout
    assert "depots" in cairn("sites", "list", owned.name).stdout


@pytest.mark.usefixtures("as_curator")
def test_sites_with_a_header_name_the_line_and_the_way_out(live: Live, place: Path) -> None:
    owned = live.dataset()
    (place / "depots.csv").write_text("lat,lon\n9,3\n")
    words = ["sites", "put", owned.name, "depots", "depots.csv"]
    said = sentence(cairn(*words, code=ExitCode.BAD_DATA))
    assert "line 1 of the sites holds something other than numbers" in said
    assert "no header" in said


def test_the_shell_completes_commands_and_names_of_datasets() -> None:
    def completed(words: str) -> list[str]:
        environment = {**os.environ, "_CAIRN_COMPLETE": "complete_bash", "COMP_WORDS": words}
        environment["COMP_CWORD"] = str(len(words.split()) - 1)
        program = "from cairn_client.cli import app; app(prog_name='cairn')"
        run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        return run.stdout.split()

    assert completed("cairn rec") == ["receipt"]
    assert completed("cairn budget vis") == ["visits"]


@pytest.mark.usefixtures("as_curator")
def test_browsers_that_are_signed_in_are_listed_and_signed_out(live: Live) -> None:
    name = f"olga-{os.urandom(3).hex()}"
    key = cairn("principals", "add", name).stdout.split()[-1]
    start = {"headers": {"Authorization": f"Bearer {key}"}, "json": {}}
    sessions = [httpx.post(f"{live.url}/v1/sessions", **start).json()["id"] for _ in range(2)]  # type: ignore[arg-type]  # options
    assert [each["id"] for each in as_json("sessions", "list", name)] == sessions
    assert sessions[0] in cairn("sessions", "list", name).stdout
    assert "has ended" in cairn("sessions", "end", sessions[0]).stdout
    with Client(live.url, key) as olga:
        assert [each.id for each in olga.sessions()] == sessions[1:]
        olga.end_session(sessions[1])
    assert "No browser is signed in" in cairn("sessions", "list", name).stderr
    assert "no such session" in sentence(cairn("sessions", "end", sessions[0], code=ExitCode.NOT_FOUND))


def test_a_job_is_named_and_found_by_its_name(live: Live) -> None:
    owned = live.dataset()
    ask = ("submit", owned.name, "-k", "2", "--epsilon", "0.1", "--rehearsal")
    id = cairn(*ask, "--name", "the Baseline").stdout.split()[0]
    assert "why" in cairn("note", id[:12], "this is why").stdout
    (found,) = as_json("jobs", "--dataset", owned.name, "--search", "baseline")
    assert (found["id"], found["name"], found["note"]) == (id, "the Baseline", "this is why")
    assert "the Baseline" in cairn("jobs", "--search", "BASE").stdout
    assert "this is why" in cairn("job", id).stdout
    assert "No job matches" in cairn("jobs", "--search", "no such name").stderr
    with live.analyst() as analyst:
        assert [job.id for job in analyst.jobs(search="is why")] == [id]
        assert analyst.job(id).describe(name="").facts.name == ""


def test_the_command_starts_without_libraries_that_only_some_results_need() -> None:
    """It imports about 480 modules; each one more is time before every command."""
    program = "import sys, cairn_client.cli; print(len(sys.modules), *sys.modules)"
    count, *names = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert int(count) < 600
    assert {"pandas", "pyarrow", "matplotlib", "polars", "scipy"} & set(names) == set()
