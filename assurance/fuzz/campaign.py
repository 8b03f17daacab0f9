"""The fuzzing campaign: thousands of hostile requests in every role, on either database, counted by kind.

    python -m assurance fuzz --database sqlite --requests 5000 --seed 1

It goes through the OpenAPI description with schemathesis (fitting and unfitting calls, and chains of calls
along the links), spoils good bodies in every place, and damages files. Each answer is judged; a fault is
printed with the request, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hypothesis
import schemathesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from schemathesis.core.result import Ok

import migrations
from assurance.fuzz import bodies, files
from assurance.fuzz.judge import Judge
from assurance.fuzz.stage import TOKEN, Stage
from benchmarks.harness.postgres import Server
from core.algorithms import registry
from core.questions import registry as questions
from service.operations.database import Database

KINDS = ("sqlite", "postgresql")
KNOWN = ("ada", "ben", "dan", "carla", "cleo", "browser")
ROLES = ("nobody", "unknown", "revoked", "scraper", *KNOWN)
#: What one request may take of this process, in seconds of its own time: more is a hang.
LONGEST = 30.0
_DATASETS = ("own", "retired", "withdrawn", "ungranted", "draft", "other", "monthly")
_NAMES = (*_DATASETS, "ada", "dan", "carla", "latest", "places")
#: Periods of `monthly`: sealed, a draft, and one that does not exist.
_LABELS = ("2026-01", "2026-02", "2026-03")


class Campaign:
    """Sends requests to a stage and keeps count."""

    def __init__(self, stage: Stage, seed: int):
        self.stage = stage
        self.seed = seed
        self.judge = Judge(stage)
        self.chance = random.Random(seed)
        self.tried: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.roles: Counter[str] = Counter()
        self.faults: list[str] = []
        self.longest = 0.0
        self._drafts: dict[tuple[str, str], int] = {}  # how many drafts of each kind and owner were filled
        # The description as everybody may fetch it; calls then go to the app in this process.
        self.schema = schemathesis.openapi.from_asgi("/openapi.json", stage.app)

    @property
    def requests(self) -> int:
        return sum(self.tried.values())

    def key(self, role: str) -> str | None:
        others = {
            "nobody": None,
            "unknown": self.stage.strangers["unknown key"],
            "revoked": self.stage.strangers["revoked key"],
            "scraper": TOKEN,
        }
        return others[role] if role in others else getattr(self.stage, role).key

    def headers(self, role: str) -> dict[str, str]:
        if role == "browser":  # ada's, sent by a page of the service or by another site
            origin = self.chance.choice(("http://localhost", "http://evil.example"))
            return {"Cookie": self.stage.cookies["ada"], "Origin": origin}
        key = self.key(role)
        return {"Authorization": f"Bearer {key}"} if key else {}

    def send(self, kind: str, role: str, verb: str, path: str, **options: Any) -> int:
        """Send a request of our own making, and judge the answer."""
        headers = {**options.pop("headers", {}), **self.headers(role)}
        with self._timed(kind, (role, verb, path)):
            answer = self.stage.client.request(verb, path, headers=headers, **options)
        self._judge(kind, role, verb, path, answer.status_code, answer.headers, answer.text, options)
        return answer.status_code

    def call(self, kind: str, role: str, case: Any) -> Any:
        """Send a request that schemathesis made, and judge the answer."""
        what = f"{role} {case.method} {case.formatted_path} {case.query} {str(case.body)[:300]}"
        with self._timed(kind, what):
            answer = case.call(headers=self.headers(role))
        headers = {name: values[0] for name, values in answer.headers.items()}
        text = (answer.content or b"").decode("utf-8", "replace")
        path = case.formatted_path
        self._judge(kind, role, case.method, path, answer.status_code, headers, text, what)
        return answer

    @contextmanager
    def _timed(self, kind: str, what: object) -> Iterator[None]:
        started = time.process_time()
        try:
            yield
        except Exception as error:
            self.faults.append(f"{kind}: {what}: raised {type(error).__name__}: {str(error)[:300]}")
            raise
        finally:
            taken = time.process_time() - started
            if taken > LONGEST:
                self.faults.append(f"{kind}: {what}: took {taken:.0f} seconds")
            self.longest = max(self.longest, taken)

    def _judge(
        self, kind: str, role: str, verb: str, path: str, status: int, headers: Any, text: str, what: Any
    ) -> None:
        self.tried[kind] += 1
        self.statuses[status] += 1
        self.roles[role] += 1
        for fault in self.judge.faults(role, verb, path, status, headers, text):
            self.faults.append(f"{kind}: {role} {verb} {path}: {fault}: {text[:200]} <- {str(what)[:600]}")

    # What is sent

    def operations(self) -> list[Any]:
        """All operations of the service's description."""
        found = []
        for each in self.schema.get_all_operations():
            assert isinstance(each, Ok), each.err()
            found.append(each.ok())
        return found

    def described(self, operation: Any, role: str, count: int) -> None:
        """Calls that fit the description and calls that do not, for one operation and role."""
        both = st.one_of(
            operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE),
            operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE),
        )

        def run(case: Any) -> None:
            for name in case.path_parameters or {}:
                if self.chance.random() < 0.5:  # names that exist lead further
                    case.path_parameters[name] = self.name_for(name)
            self.call("described", role, case)

        self._given(run, both, count)

    def name_for(self, parameter: str) -> str:
        if parameter == "job_id":
            return self.chance.choice([*self.stage.finished.values(), *self.stage.queued.values(), "latest"])
        if parameter == "request_id":
            return self.chance.choice([*self.stage.requests.values()])
        if parameter == "key_id":
            return self.chance.choice(list(self.stage.key_ids.values()))
        if parameter == "session_id":
            return self.chance.choice([*self.stage.session_ids.values(), "current"])
        if parameter == "slug":
            return "not-found"
        if parameter == "label":
            return self.chance.choice(_LABELS)
        return self.chance.choice(_DATASETS if parameter == "name" else _NAMES)

    def chains(self, role: str, count: int) -> None:
        """Calls in chains, along the links of the description."""
        campaign = self

        class Machine(self.schema.as_state_machine()):  # type: ignore[misc]  # made at run time
            def call(self, case: Any, **_options: Any) -> Any:
                return campaign.call("chained", role, case)

            def validate_response(self, *_arguments: Any, **_options: Any) -> None:
                pass  # judged already

        settings = self._settings(max(1, count // 6), stateful_step_count=6)
        with _quiet():
            schemathesis.generation.stateful.run_state_machine_as_test(Machine, settings=settings)

    def _given(self, run: Callable[[Any], None], strategy: st.SearchStrategy[Any], count: int) -> None:
        test = hypothesis.given(strategy)(run)
        test = hypothesis.seed(self.seed + self.requests)(self._settings(count)(test))
        with _quiet():
            test()

    def _settings(self, count: int, **more: Any) -> hypothesis.settings:
        return hypothesis.settings(
            max_examples=count,
            phases=[Phase.generate],
            deadline=None,
            database=None,
            derandomize=False,
            suppress_health_check=list(HealthCheck),
            **more,
        )

    def spoiled(self, role: str) -> None:
        """A good body with something wrong in it, to a call that takes one."""
        verb, path, good = self.chance.choice(self._good_bodies(role))
        self.send(
            "spoiled",
            role,
            verb,
            path,
            content=bodies.encode(bodies.spoiled(good, self.chance)),
            headers={"Content-Type": "application/json"},
        )

    def _good_bodies(self, role: str) -> list[tuple[str, str, Any]]:
        dataset = {"ben": "ungranted", "dan": "other"}.get(role, "own")
        job = {"dataset": dataset, "k": 2, "epsilon": "0.01", "options": {}}
        job["algorithm"] = self.chance.choice((*registry.names(), "auto"))
        on_periods = {**job, "dataset": "monthly", "periods": self._periods()}
        named = {"name": f"n{self.requests}", "role": "analyst"}
        facts = {
            "name": f"d{self.requests}",
            "columns": ["a", "b"],
            "bounds": {"box": {"low": [0, 0], "high": [10, 4]}},
            "size": 1000,
            "budget": {"epsilon": "1", "delta": "0.000001"},
        }
        ball = {**facts, "bounds": {"ball": {"radius": 2.0, "centre": [0.0, 1.0]}}, "accountant": "zcdp"}
        sparse = {**facts, "columns": None, "dimension": 9, "bounds": {"sparse": {"radius": 1.0}}}
        ids = {
            **facts,
            "columns": None,
            "bounds": {"ids": {"count": 9}},
            "rows_per_person": 2,
            "id_column": "p",
        }
        table = {**facts, "columns": None, "bounds": None, "table": files.COLUMNS}
        work = [
            ("POST", "/v1/plans", job),
            ("POST", "/v1/plans", {**job, "columns": ["a"], "weights": {"a": 2.0}, "scaling": "private"}),
            ("POST", "/v1/plans", self._with_options(job)),
            ("POST", "/v1/plans", self._question(job)),
            ("POST", "/v1/jobs", {**self._question(job), "rehearsal": True}),
            ("POST", "/v1/jobs", {**job, "rehearsal": True}),
            ("POST", "/v1/jobs", self._with_options(job)),
            ("POST", "/v1/jobs", {**job, "quote": "0" * 64}),
            ("POST", "/v1/plans", on_periods),
            ("POST", "/v1/jobs", on_periods),
            ("PUT", "/v1/jobs/latest/note", {"name": "n", "note": "why"}),
            ("POST", "/v1/requests", {"dataset": dataset, "epsilon": "52", "purpose": "p", "plan": job}),
        ]
        if role in ("ada", "ben", "dan") and self.chance.random() < 0.9:
            return work
        period = f"/v1/datasets/monthly/periods/{self.chance.choice(_LABELS)}"
        budget = {"epsilon": "50", "delta": "0.0001"}
        return [
            *work[:1],
            (
                "POST",
                "/v1/datasets/monthly/periods",
                {"label": f"p{self.requests}", "size": 9, "budget": budget},
            ),
            ("POST", f"{period}/budget", budget),
            ("POST", f"{period}/seal", {"confirm": ["size"], "sha256": "0" * 64}),
            ("POST", f"{period}/correction", {}),
            ("POST", "/v1/datasets/own/correction", {}),
            ("POST", "/v1/principals", named),
            ("POST", "/v1/principals/ada/keys", {"label": "x", "expires_in_days": 3}),
            ("POST", "/v1/sessions", {"remember": True}),
            ("POST", "/v1/datasets", self.chance.choice((facts, ball, sparse, ids, table))),
            ("PATCH", "/v1/datasets/draft", {"table": files.COLUMNS}),
            ("POST", "/v1/datasets/own/budget", budget),
            ("PUT", "/v1/datasets/own/grants/ada", budget),
        ]

    def _periods(self) -> Any:
        """Periods of a request: a list of labels, or a range with or without its ends."""
        first, last = self.chance.choice(_LABELS), self.chance.choice(_LABELS)
        return self.chance.choice(([first], [first, last], {"from": first, "to": last}, {"from": first}, {}))

    def _question(self, job: dict[str, Any]) -> dict[str, Any]:
        """A question, about the columns of the dataset and about a clustering where it needs one."""
        kind = questions.get(self.chance.choice(questions.names()))
        found = {"dataset": job["dataset"], "kind": kind.name, "epsilon": "0.1", "options": {}}
        if kind.clusterings:
            finished = self.stage.finished.get(job["dataset"], "0" * 36)
            found["clusterings"] = [{"job": finished, "k": 2}] * kind.clusterings
        if kind.most_columns:
            found["columns"] = ["a"]
        names = [option.name for option in kind.options]
        some = self.chance.sample(names, self.chance.randint(0, len(names)))
        return {**found, "options": {name: bodies.pick(self.chance) for name in some}}

    def _with_options(self, job: dict[str, Any]) -> dict[str, Any]:
        """A job with some of its algorithm's options, whose values then are spoiled."""
        if job["algorithm"] == "auto":
            return job
        names = [option.name for option in registry.get(job["algorithm"]).options]
        some = self.chance.sample(names, min(len(names), self.chance.randint(0, 3)))
        return {**job, "options": {name: bodies.pick(self.chance) for name in some}}

    def raw(self, role: str) -> None:
        """A body that is no JSON, or is announced as something else."""
        verb, path, good = self.chance.choice(self._good_bodies(role))
        content = self.chance.choice((*bodies.RAW, bodies.encode(good)))
        kind = self.chance.choice(bodies.KINDS)
        self.send(
            "raw bodies", role, verb, path, content=content, headers={"Content-Type": kind} if kind else {}
        )

    def addresses(self, role: str) -> None:
        """Paths, queries and headers with odd contents."""
        odd = (
            "%00",
            "%2e%2e",
            "..",
            "a%0d%0ab",
            "%ff",
            "é",
            "a" * 3000,
            "'",
            "%25",
            "own%00",
            "OWN",
            "-1",
            "{}",
        )
        path = self.chance.choice(
            (
                "/v1/datasets/{}",
                "/v1/jobs/{}",
                "/v1/jobs/{}/result",
                "/problems/{}",
                "/console/{}",
                "/{}",
                "/v1/{}",
            )
        ).format(self.chance.choice(odd))
        text = self.chance.choice(
            [*(v for v in bodies.VALUES if isinstance(v, str)), "eyJhIjoxfQ", "MQ", "IlwwIg"]
        )
        header = text.encode("latin-1", "replace").translate(None, b"\r\n\0")[:2000]
        self.send(
            "odd addresses",
            role,
            self.chance.choice(("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS")),
            self.chance.choice((path, "/v1/datasets", "/v1/jobs", "/v1/audit", "/v1/datasets/own/ledger")),
            params={self.chance.choice(("cursor", "limit", "dataset", "on_bad_row", "sha256", "kind")): text},
            headers={
                self.chance.choice(("Accept", "Idempotency-Key", "Content-Digest", "X-Forwarded-For")): header
            },
        )

    def file(self, role: str) -> None:
        """A damaged file, to be previewed, or to a draft that takes its format."""
        kind, content, facts = files.GOOD[self.chance.choice(list(files.GOOD))]
        sent = files.damaged(content, self.chance)
        if self.chance.random() < 0.4:
            corrected = "/v1/datasets/monthly/periods/2026-01"
            if self.chance.random() < 0.3:  # so that files meet the draft of a correction
                self.stage.carla.post(f"{corrected}/correction")
            sites = f"/v1/datasets/own/sites/s{self.requests}"
            verb, path = self.chance.choice(
                (("POST", "/v1/previews"), ("PUT", sites), ("PUT", f"{corrected}/data"))
            )
            self.send("damaged files", role, verb, path, content=sent, headers={"Content-Type": kind})
            return
        name = "f" + re.sub(r"[^a-z]", "", str(sorted(facts)) + kind)[-40:]
        owner = role if role in ("carla", "cleo") else "carla"
        draft = f"{name}-{owner}-{self._drafts.get((name, owner), 0)}"
        if (name, owner) not in self._drafts:
            self._drafts[(name, owner)] = 0
            self._draft(owner, draft, facts)
        query = {"on_bad_row": self.chance.choice(("refuse", "drop"))}
        status = self.send(
            "damaged files", role, "PUT", f"/v1/datasets/{draft}/data", content=sent, params=query,
            headers={"Content-Type": self.chance.choice((kind, "application/octet-stream"))},
        )  # fmt: skip
        if status == 200:
            self._drafts[(name, owner)] += 1
            self._draft(owner, f"{name}-{owner}-{self._drafts[(name, owner)]}", facts)

    def _draft(self, owner: str, name: str, facts: dict[str, Any]) -> None:
        body: dict[str, Any] = {
            "name": name,
            "columns": ["a", "b"],
            "bounds": {"box": {"low": [0, 0], "high": [10, 4]}},
            "size": 1000,
            "budget": {"epsilon": "1"},
        }
        body |= facts
        made = getattr(self.stage, owner).post(
            "/v1/datasets", {k: v for k, v in body.items() if v is not None}
        )
        assert made.status_code == 201, made.text

    def run(self, requests: int, seconds: float) -> None:
        """Send about so many requests of all kinds, or as many as the time allows."""
        end = time.monotonic() + seconds
        operations = self.operations()
        cheap = (self.spoiled, self.raw, self.addresses, self.file)
        while self.requests < requests and time.monotonic() < end:
            for role in ROLES:
                if time.monotonic() > end:
                    return
                self.described(self.chance.choice(operations), role, 12 if role in KNOWN else 3)
                for send in cheap:
                    for _ in range(40 if role in KNOWN else 5):
                        send(role)
            self.chains(self.chance.choice(("ada", "carla", "cleo", "carla")), 30)
            sys.stderr.write(f"{self.requests} requests, {len(self.faults)} faults\n")
            self.stage.clock.move(61)  # past the limits per minute
            self._work()

    def _work(self) -> None:
        """Let a worker take what was accepted: its results and failures are judged by later calls."""
        for _ in range(3):
            if not self.stage.work():
                return

    def report(self) -> str:
        lines = [f"{self.requests} requests, seed {self.seed}, {len(self.faults)} faults"]
        lines += [f"  {count:6d} {kind}" for kind, count in self.tried.most_common()]
        lines.append("  by role: " + ", ".join(f"{role} {n}" for role, n in self.roles.most_common()))
        lines.append(
            "  answers: " + ", ".join(f"{n} x {status}" for status, n in sorted(self.statuses.items()))
        )
        lines.append(f"  the longest took {self.longest:.1f} seconds of processor time")
        return "\n".join(lines + self.faults[:40])


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def stage_on(kind: str, folder: Path) -> Iterator[Stage]:
    """A stage on a fresh database of either kind."""
    server = Server() if kind == "postgresql" else None
    url = server.url(server.create()) if server else f"sqlite:///{folder / 'cairn.sqlite3'}"
    database = Database(url)
    migrations.upgrade(database.engine)
    database.dispose()
    made = Stage(url, folder, max_upload_bytes=8 << 20, max_queued_jobs=1000, max_operations=1e10)
    try:
        yield made
    finally:
        made.close()
        if server:
            server.close()


def main(arguments: list[str]) -> int:
    """Send hostile requests on one database, or on each in turn; print what was answered."""
    parser = argparse.ArgumentParser(prog="python -m assurance fuzz", description=__doc__)
    parser.add_argument("--database", choices=KINDS, help="default: each in turn")
    parser.add_argument("--requests", type=int, default=10_000, help="on each database")
    parser.add_argument("--seconds", type=float, default=3600.0, help="stop after this time on each database")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    faults = 0
    for kind in [chosen.database] if chosen.database else KINDS:
        with tempfile.TemporaryDirectory() as folder, stage_on(kind, Path(folder)) as stage:
            campaign = Campaign(stage, chosen.seed)
            campaign.run(chosen.requests, chosen.seconds)
        sys.stdout.write(f"{kind}: {campaign.report()}\n")
        faults += len(campaign.faults)
    return 1 if faults else 0
