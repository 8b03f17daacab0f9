"""Who may do what: every route of the interface, for every kind of caller, on everything they may meet.

The routes come from the OpenAPI description and from the app itself, so a new route fails here until the
table RULES says who may call it. A call that is refused must change nothing, and what is somebody else's
must look like what does not exist.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pytest
from httpx import Response

from assurance.fuzz.stage import MISSING_JOB, PEOPLE, TOKEN, Stage
from service import console
from service.app import create_app
from tests.support.databases import migrated_database

CURATORS, ANALYSTS, AUDITORS, OPERATORS = ("carla", "cleo"), ("ada", "ben", "dan"), ("nora",), ("otto",)
DATASETS = ("own", "retired", "withdrawn", "ungranted", "draft", "monthly", "other", "missing")
OWNED = {"carla": {"own", "retired", "withdrawn", "ungranted", "draft", "monthly"}, "cleo": {"other"}}
GRANTED = {"ada": {"own", "retired", "draft", "monthly"}, "ben": {"ungranted"}, "dan": {"other"}}
#: Requests for access, by their datasets: who asked, and who owns the dataset.
ASKED = {"ada": {"own", "retired"}, "ben": {"ungranted"}, "dan": {"other"}}
WITH_REQUESTS = {"own", "retired", "ungranted", "other"}
DECIDED = {"carla": {"own", "retired", "ungranted"}, "cleo": {"other"}}
SUBMITTED = {"ada": {"own", "retired", "withdrawn", "monthly"}, "ben": {"ungranted"}, "dan": {"other"}}
MANAGED = {"carla": {"carla", "cleo", "ada", "ben"}, "cleo": {"cleo", "dan"}, "otto": set(PEOPLE)}
#: In the catalogue; that of a retired dataset, too, is not shown.
LISTED = {"ungranted", "other"}
WITH_JOBS = {"own", "retired", "withdrawn", "ungranted", "monthly", "other"}
#: Datasets that can be seen and have no periods.
NO_PERIODS = dict.fromkeys(("own", "retired", "withdrawn", "ungranted", "draft", "other"), 404)
#: Populations: carla's own, one of hers that cleo may use, and none.
POPULATIONS = ("alone", "shared", "missing")
#: Who may make a call at all; the others are told that it is not theirs, whatever it is about.
ADMITTED = {
    "anybody": PEOPLE,
    "key": PEOPLE,
    "holder": PEOPLE,
    "curator": CURATORS,
    "owner": CURATORS,
    "ender": CURATORS,
    "planner": (*CURATORS, *ANALYSTS),
    "requester": (*CURATORS, *ANALYSTS),
    "decider": CURATORS,
    "asker": (*CURATORS, *ANALYSTS),
    "party": (*CURATORS, *ANALYSTS, *AUDITORS),
    "watcher": (*CURATORS, *ANALYSTS),
    "canceller": (*CURATORS, *ANALYSTS),
    "reader": (*CURATORS, *ANALYSTS, *AUDITORS),
    "follower": (*CURATORS, *ANALYSTS, *AUDITORS),
    "population owner": CURATORS,
    "joiner": CURATORS,
    "population reader": (*CURATORS, *AUDITORS),
    "population readers": (*CURATORS, *AUDITORS),
    "readers": (*CURATORS, *ANALYSTS, *AUDITORS),
    "browser": (*CURATORS, *ANALYSTS, *AUDITORS),
    "overseer": (*CURATORS, *AUDITORS),
    "manager": (*CURATORS, *OPERATORS),
    "appointer": (*CURATORS, *OPERATORS),
    "monitor": (*CURATORS, *OPERATORS),
    "historian": (*CURATORS, *AUDITORS, *OPERATORS),
}

BUDGET = {"epsilon": "60", "delta": "0.0002"}
JOB = {"k": 2, "algorithm": "sulq", "epsilon": "0.1"}


@dataclass(frozen=True)
class Rule:
    """Who may make a call, and what happens when they do."""

    #: A name of ADMITTED; `key` is any valid one. On a thing of the call's own: `owner`, `reader`, `planner`,
    #: `overseer`, `requester`, `browser` (datasets), `watcher` (results), `follower`, `canceller`, `ender`
    #: (jobs), `decider`, `asker`, `party` (requests for access), `manager` (people), `holder` (sessions).
    #: `joiner`, `population owner`, `population reader` (populations).
    who: str
    #: The status of a call that is allowed; differently for some things.
    allowed: int = 200
    on: Mapping[str, int] = field(default_factory=dict)
    send: Mapping[str, Any] = field(default_factory=dict)


def body(value: Any) -> dict[str, Any]:
    return {"json": value}


_NEW = {"name": "new", "dimension": 2, "bounds": {"box": {"low": 0, "high": 1}}, "size": 9, "budget": BUDGET}
RULES = {
    "GET /healthz": Rule("anybody"),
    "GET /readyz": Rule("anybody"),
    "GET /docs": Rule("anybody"),
    "GET /.well-known/cairn-keys.json": Rule("anybody"),
    "GET /.well-known/cairn-providers.json": Rule("anybody"),
    "GET /problems/{slug}": Rule("anybody"),
    "GET /metrics": Rule("monitor"),
    "GET /v1/whoami": Rule("key"),
    "GET /v1/algorithms": Rule("key"),
    "GET /v1/kinds": Rule("key"),
    "GET /v1/column-kinds": Rule("key"),
    "GET /v1/accountants": Rule("key"),
    "POST /v1/principals": Rule("appointer", 201, send=body({"name": "new", "role": "analyst"})),
    "GET /v1/principals": Rule("appointer"),
    "DELETE /v1/principals/{name}": Rule("manager", 204),
    "POST /v1/principals/{name}/enable": Rule("manager", 204),
    "POST /v1/principals/{name}/identities": Rule(
        "manager",
        422,
        send=body({"provider": "uni", "subject": "7"}),  # the stage has no provider
    ),
    "POST /v1/principals/{name}/keys": Rule("manager", 201, send=body({})),
    "DELETE /v1/principals/{name}/keys/{key_id}": Rule("manager", 204),
    "POST /v1/sessions": Rule("key", 201, send=body({})),
    "GET /v1/sessions": Rule("key"),
    "DELETE /v1/sessions/{session_id}": Rule("holder", 204),
    "GET /v1/audit": Rule("historian"),
    "POST /v1/datasets": Rule("curator", 201, send=body(_NEW)),
    "GET /v1/datasets": Rule("readers"),
    "GET /v1/datasets/{name}": Rule("reader"),
    "POST /v1/datasets/{name}/retire": Rule("owner"),
    "POST /v1/datasets/{name}/owner": Rule("owner", 204, send=body({"curator": "cleo"})),
    "PUT /v1/datasets/{name}/data": Rule(
        "owner", 409, {"draft": 200}, {"content": b"a,b\n1,1\n", "headers": {"Content-Type": "text/csv"}}
    ),
    "PATCH /v1/datasets/{name}": Rule("owner", 409, {"draft": 200}, body({"size": 20_000})),
    "DELETE /v1/datasets/{name}": Rule("owner", 409, {"draft": 204}),
    "DELETE /v1/datasets/{name}/data": Rule("owner", 409, {"draft": 204}),
    "POST /v1/datasets/{name}/seal": Rule("owner", 409, {"draft": 200}, body({"confirm": ["size"]})),
    "POST /v1/datasets/{name}/correction": Rule("owner", 201, {"retired": 409, "draft": 409, "monthly": 409}),
    "POST /v1/datasets/{name}/budget": Rule("owner", 200, {"retired": 409, "monthly": 422}, body(BUDGET)),
    "GET /v1/datasets/{name}/grants": Rule("overseer"),
    "PUT /v1/datasets/{name}/grants/{analyst}": Rule(
        "owner", 200, {"retired": 409}, body({"epsilon": "55", "delta": "0.0001"})
    ),
    "DELETE /v1/datasets/{name}/grants/{analyst}": Rule("owner", 204, {"withdrawn": 404}),
    "GET /v1/catalogue": Rule("readers"),
    "GET /v1/catalogue/{name}": Rule("browser"),
    "GET /v1/datasets/{name}/listing": Rule("overseer"),
    "PUT /v1/datasets/{name}/listing": Rule(
        "owner", 200, {"retired": 409, "draft": 409}, body({"shows": ["columns"]})
    ),
    "DELETE /v1/datasets/{name}/listing": Rule("owner", 204, {"retired": 409, "draft": 409}),
    "GET /v1/datasets/{name}/ledger": Rule("reader"),
    "POST /v1/datasets/{name}/ledger/verify": Rule("overseer"),
    "PUT /v1/datasets/{name}/working-bounds": Rule(
        "owner",
        200,
        {"retired": 409, "draft": 409},
        body({"columns": [{"column": "a", "low": 1, "high": 5}]}),
    ),
    "DELETE /v1/datasets/{name}/working-bounds": Rule("owner", 204, {"retired": 409, "draft": 409}),
    "PUT /v1/datasets/{name}/public-rows": Rule(
        "owner",
        200,
        {"retired": 409, "draft": 409},
        {"content": b"a,b\n" + b"1,1\n" * 20, "params": {"public": "true"}},
    ),
    "DELETE /v1/datasets/{name}/public-rows": Rule("owner", 204, {"retired": 409, "draft": 409}),
    "POST /v1/datasets/{name}/periods": Rule("owner", 409, {"monthly": 201}, body({"label": "2026-03"})),
    "GET /v1/datasets/{name}/periods": Rule("reader"),
    "GET /v1/datasets/{name}/periods/{label}": Rule("reader", 200, NO_PERIODS),
    "DELETE /v1/datasets/{name}/periods/{label}": Rule("owner", 204, NO_PERIODS),
    "PUT /v1/datasets/{name}/periods/{label}/data": Rule(
        "owner", 200, NO_PERIODS, {"content": b"a,b\n1,1\n", "headers": {"Content-Type": "text/csv"}}
    ),
    "POST /v1/datasets/{name}/periods/{label}/seal": Rule("owner", 200, NO_PERIODS, body({})),
    "POST /v1/datasets/{name}/periods/{label}/correction": Rule("owner", 201, NO_PERIODS),
    "POST /v1/datasets/{name}/periods/{label}/budget": Rule("owner", 200, NO_PERIODS, body(BUDGET)),
    "POST /v1/populations": Rule(
        "curator", 201, send=body({"name": "new", "accountant": "sum", "budget": BUDGET})
    ),
    "GET /v1/populations": Rule("population readers"),
    "GET /v1/populations/{population}": Rule("population reader"),
    "PATCH /v1/populations/{population}": Rule("population owner", send=body({"description": "x"})),
    "POST /v1/populations/{population}/budget": Rule("population owner", send=body(BUDGET)),
    "POST /v1/populations/{population}/datasets": Rule(
        "joiner", 200, {"shared": 200}, body({"dataset": "own", "one_row_per_person": True})
    ),
    "PUT /v1/datasets/{name}/sites/{sites_name}": Rule(
        "owner", 200, {"retired": 409}, {"content": b"1,1\n2,2\n"}
    ),
    "GET /v1/datasets/{name}/sites": Rule("reader"),
    "POST /v1/previews": Rule("curator", send={"content": b"a,b\n1,1\n"}),
    "POST /v1/plans": Rule("planner", 200, {"retired": 409, "draft": 409}, body(JOB)),
    "POST /v1/jobs": Rule("planner", 202, {"retired": 409, "draft": 409}, body(JOB)),
    "POST /v1/requests": Rule("requester", 201, {"retired": 409}, body({"epsilon": "51"})),
    "GET /v1/requests": Rule("readers"),
    "GET /v1/requests/{request_id}": Rule("party"),
    "POST /v1/requests/{request_id}/grant": Rule("decider", 200, {"retired": 409}, body({})),
    "POST /v1/requests/{request_id}/second": Rule("decider", 409),  # nothing is proposed
    "POST /v1/requests/{request_id}/decline": Rule("decider", 200, {"retired": 409}, body({"reason": "x"})),
    "DELETE /v1/requests/{request_id}": Rule("asker", 200, {"retired": 409}),
    "GET /v1/jobs": Rule("readers"),
    "GET /v1/jobs/{job_id}": Rule("follower"),
    "DELETE /v1/jobs/{job_id}": Rule("canceller", 200, {"retired": 409, "withdrawn": 409}),
    "PUT /v1/jobs/{job_id}/note": Rule("canceller", send=body({"name": "x", "note": "y"})),
    "POST /v1/jobs/{job_id}/end": Rule("ender", 200, {"retired": 409, "withdrawn": 409}),
    "GET /v1/jobs/{job_id}/result": Rule("watcher"),
    "GET /v1/jobs/{job_id}/axes": Rule("watcher"),
    "GET /v1/jobs/{job_id}/differences": Rule("watcher", 422),  # names no second job
    "GET /v1/jobs/{job_id}/sample": Rule("watcher", 422),  # those jobs ask for a single k
    "GET /v1/jobs/{job_id}/receipt": Rule("follower"),
    "GET /v1/jobs/{job_id}/transcript": Rule("watcher"),
}
#: What the description does not list: pages and files that hold no data, open to anybody.
HIDDEN = {
    "/",
    "/openapi.json",
    "/docs/style.css",
    "/console/{path:path}",
    "/sign-in/{provider}",
    "/sign-in/{provider}/callback",
}


def expected(rule: Rule, person: str, thing: str) -> int:
    """The status that a person with a valid key gets."""
    if person not in ADMITTED[rule.who]:
        return 403
    fine = rule.on.get(thing, rule.allowed)
    audited = {who: set(DATASETS) - {"missing"} for who in AUDITORS}
    watched = SUBMITTED | {who: OWNED[who] - {"draft"} for who in CURATORS}
    people = {"carla": {"alone", "shared"}}
    sees = people | {"cleo": {"shared"}} | {who: {"alone", "shared"} for who in AUDITORS}
    if rule.who == "population owner" and thing in sees.get(person, set()) - people.get(person, set()):
        return 403
    holds: dict[str, Mapping[str, set[str]]] = {
        "population owner": people,
        "population reader": sees,
        "joiner": people,
        "owner": OWNED,
        "overseer": OWNED | audited,
        "reader": OWNED | GRANTED | audited,
        "planner": OWNED | GRANTED,
        "requester": OWNED | {who: GRANTED[who] | LISTED for who in ANALYSTS},
        "decider": DECIDED,
        "asker": ASKED,
        "party": DECIDED | ASKED | dict.fromkeys(AUDITORS, WITH_REQUESTS),
        "browser": dict.fromkeys(PEOPLE, LISTED),
        "watcher": watched,
        "follower": watched | dict.fromkeys(AUDITORS, WITH_JOBS),
        "canceller": SUBMITTED,
        "ender": {who: OWNED[who] - {"draft"} for who in CURATORS},
        "manager": MANAGED,
        "holder": {who: MANAGED.get(who, set()) | {who} for who in PEOPLE},
    }
    if rule.who == "canceller" and person in CURATORS:  # only who submitted a job: a curator can end it
        return 403 if thing in OWNED[person] - {"draft"} else 404
    if rule.who == "asker" and person in CURATORS and thing in DECIDED[person]:  # who declines in its place
        return fine if thing == "retired" else 403
    if rule.who == "requester" and person in CURATORS and thing in OWNED[person]:  # who needs no grant
        return 422
    if rule.who in holds and thing not in holds[rule.who].get(person, set()):
        return 403 if rule.who == "manager" and thing != "missing" else 404
    return fine


def things(rule: Rule) -> tuple[str, ...]:
    """What a call of this kind may be about."""
    of_datasets = (
        "owner",
        "reader",
        "planner",
        "requester",
        "overseer",
        "decider",
        "asker",
        "party",
        "browser",
    )
    if rule.who in of_datasets:
        return DATASETS
    if rule.who in ("watcher", "follower", "canceller", "ender"):
        return tuple(name for name in DATASETS if name != "draft")
    if rule.who in ("population owner", "population reader", "joiner"):
        return POPULATIONS
    return (*PEOPLE, "missing") if rule.who in ("manager", "holder") else ("-",)


def ask(
    stage: Stage, call: str, thing: str, key: str | None, sent: Mapping[str, str] | None = None
) -> Response:
    """Make the call about the thing."""
    verb, path = call.split(" ")
    rule = RULES[call]
    jobs = stage.queued | {n: stage.finished[n] for n in ("retired", "withdrawn")}
    if rule.who in ("watcher", "follower"):
        jobs = stage.finished
    path = path.format(
        name=thing,
        population=thing,
        job_id=jobs.get(thing, MISSING_JOB),
        slug="not-found",
        analyst={"other": "dan", "ungranted": "ben"}.get(thing, "ada"),
        sites_name="extra",
        label="2026-01" if verb == "GET" or path.endswith(("/budget", "/correction")) else "2026-02",
        request_id=stage.requests.get(thing, MISSING_JOB),
        key_id=stage.key_ids.get(thing, "00000000"),
        session_id=stage.session_ids.get(thing, "00000000"),
    )
    options = dict(rule.send)
    if rule.who in ("planner", "requester"):
        options["json"] = {**options["json"], "dataset": thing}
    headers = {**options.pop("headers", {}), **(sent or {})}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    return stage.client.request(verb, path, headers=headers, **options)


@pytest.fixture(scope="module")
def stage(
    request: pytest.FixtureRequest, database_kind: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("stage")
    with migrated_database(request, database_kind, folder) as url, closing(Stage(url, folder)) as made:
        yield made


def test_every_route_of_the_description_has_a_rule(stage: Stage) -> None:
    described = stage.app.openapi()["paths"]
    found = {f"{verb.upper()} {path}" for path, verbs in described.items() for verb in verbs}
    assert found == set(RULES)


def test_every_route_that_is_not_described_is_known(stage: Stage) -> None:
    app = create_app(stage.settings, database=stage.database, extra_routers=[console.router])
    described = set(app.openapi()["paths"])
    paths: set[str] = set()
    waiting: list[Any] = list(app.routes)
    while waiting:
        route = waiting.pop()
        inner = getattr(route, "original_router", None)
        if inner is None:
            paths.add(route.path)
        else:
            waiting += inner.routes
    assert {path for path in paths if not any(each.endswith(path) for each in described)} == HIDDEN
    assert paths >= HIDDEN


@pytest.mark.parametrize("call", RULES)
def test_caller_without_a_valid_key_is_let_in_nowhere(stage: Stage, call: str) -> None:
    before = stage.state()
    wrong = []
    for kind, key in stage.strangers.items():
        for thing in things(RULES[call])[: None if key is None and stage.database.is_sqlite else 1]:
            answer = ask(stage, call, thing, key)
            wanted = RULES[call].allowed if RULES[call].who == "anybody" else 401
            if answer.status_code != wanted:
                wrong.append((kind, thing, answer.status_code))
    assert wrong == []
    assert stage.state() == before


@pytest.mark.parametrize("call", [call for call, rule in RULES.items() if rule.who != "anybody"])
def test_token_of_the_scraper_opens_the_metrics_alone(stage: Stage, call: str) -> None:
    wanted = 200 if call == "GET /metrics" else 401
    assert ask(stage, call, things(RULES[call])[0], TOKEN).status_code == wanted


@pytest.mark.parametrize("call", RULES)
def test_refused_caller_gets_the_right_status_learns_nothing_and_changes_nothing(
    stage: Stage, call: str
) -> None:
    rule = RULES[call]
    before = stage.state()
    wrong = []
    for person in PEOPLE:
        unseen: dict[str, str] = {}  # what is not yours must look like what does not exist
        for thing in things(rule):
            wanted = expected(rule, person, thing)
            if wanted < 400:
                continue
            answer = ask(stage, call, thing, getattr(stage, person).key)
            if answer.status_code != wanted:
                wrong.append((person, thing, wanted, answer.status_code))
            if wanted == 404 and thing not in rule.on:
                unseen[thing] = look(answer, thing)
        assert len(set(unseen.values())) <= 1, unseen
    assert wrong == []
    assert stage.state() == before


def look(answer: Response, thing: str) -> str:
    """All that an answer tells, but for the name that was asked for."""
    changing = ("x-request-id", "content-length")
    headers = {name: value for name, value in answer.headers.items() if name not in changing}
    return json.dumps([answer.text.replace(thing, "?"), headers])


@pytest.mark.parametrize("call", RULES)
def test_allowed_caller_is_let_in(stage: Stage, call: str) -> None:
    rule = RULES[call]
    changes = not call.startswith("GET")
    if changes and not stage.database.is_sqlite:
        return  # the way back is quick on SQLite alone
    restore = stage.remember() if changes else lambda: None
    wrong = []
    for person in PEOPLE:
        for thing in things(rule):
            wanted = expected(rule, person, thing)
            if wanted >= 400:
                continue
            answer = ask(stage, call, thing, getattr(stage, person).key)
            if answer.status_code != wanted:
                wrong.append((person, thing, wanted, answer.status_code))
            restore()
    assert wrong == []


def test_key_of_somebody_else_is_not_revoked_through_ones_own_people(stage: Stage) -> None:
    before = stage.state()
    for name, key in (("ada", "dan"), ("dan", "ada")):
        path = f"/v1/principals/{name}/keys/{stage.key_ids[key]}"
        assert stage.carla.delete(path).status_code in (403, 404)
        assert stage.cleo.delete(path).status_code in (403, 404)
    assert stage.state() == before


def by_cookie(stage: Stage, call: str, cookie: str, origin: str | None) -> Response:
    """Make the call about what is carla's own with a session cookie instead of a key."""
    sent = {"Cookie": cookie} | ({"Origin": origin} if origin else {})
    return ask(stage, call, things(RULES[call])[0], None, sent)


@pytest.mark.parametrize("call", [call for call in RULES if call.split(" ")[1].startswith("/v1/")])
def test_cookie_is_refused_to_other_sites_and_after_its_end_on_every_route(stage: Stage, call: str) -> None:
    before = stage.state()
    for origin in ("http://evil.example", "http://localhost:1", "null"):
        assert by_cookie(stage, call, stage.cookies["carla"], origin).status_code == 403
    if not call.startswith("GET"):
        assert by_cookie(stage, call, stage.cookies["carla"], None).status_code == 403
    for kind in ("ended", "expired", "key revoked", "person disabled"):
        assert by_cookie(stage, call, stage.cookies[kind], "http://localhost").status_code == 401, kind
    assert stage.state() == before


@pytest.mark.parametrize("call", [call for call in RULES if call.startswith("GET /v1/")])
def test_cookie_opens_what_its_key_opens(stage: Stage, call: str) -> None:
    for person in ("carla", "ada"):
        thing = things(RULES[call])[0]
        by_key = ask(stage, call, thing, getattr(stage, person).key)
        cookie = by_cookie(stage, call, stage.cookies[person], "http://localhost")
        assert cookie.status_code == by_key.status_code
        if call != "GET /v1/sessions" and call != "GET /v1/principals":  # which name the current session
            assert cookie.content == by_key.content


def test_quote_of_somebody_else_buys_nothing(stage: Stage) -> None:
    request = {**JOB, "dataset": "own"}
    quote = stage.ada.post("/v1/plans", request).json()["quote"]
    before = stage.state()
    assert stage.ben.post("/v1/jobs", {**request, "quote": quote}).status_code == 404
    owner = stage.carla.post("/v1/jobs", {**request, "quote": quote})
    assert owner.json()["type"] == "/problems/quote-mismatch"
    for thing in GRANTED["ben"]:
        refused = stage.ben.post("/v1/jobs", {**request, "dataset": thing, "quote": quote})
        assert refused.json()["type"] == "/problems/quote-mismatch"
    assert stage.state() == before


def test_lists_show_everybody_their_own_alone(stage: Stage) -> None:
    datasets = OWNED | GRANTED | {"nora": set(DATASETS) - {"missing"}}
    with_jobs = {who: OWNED[who] - {"draft"} for who in CURATORS} | SUBMITTED | {"nora": WITH_JOBS}
    for person in (*CURATORS, *ANALYSTS, *AUDITORS):
        caller = getattr(stage, person)
        named = {each["name"] for each in caller.get("/v1/datasets").json()["items"]}
        assert named == datasets[person]
        jobs = {each["dataset"] for each in caller.get("/v1/jobs").json()["items"]}
        assert jobs == with_jobs[person]


def test_auditor_sees_no_report_on_rows_and_no_end_of_a_job_before_its_analyst(stage: Stage) -> None:
    for name in ("own", "draft", "other"):
        audited, owned = (who.get(f"/v1/datasets/{name}").json() for who in (stage.nora, stage.carla))
        assert [audited[each] for each in ("upload", "overruns", "size_warning", "cap")] == [None] * 4
        if name in OWNED["carla"]:
            assert owned["upload"] is not None
            assert audited["budget"] == owned["budget"]
    facts = f"/v1/jobs/{stage.finished['own']}"
    assert stage.nora.get(facts).json() == stage.ada.get(facts).json()


def test_while_there_is_an_operator_curators_create_analysts_alone(stage: Stage) -> None:
    before = stage.state()
    for role in ("curator", "auditor", "operator"):
        assert stage.carla.post("/v1/principals", {"name": "new", "role": role}).status_code == 403
    assert stage.state() == before


def test_latest_job_is_ones_own(stage: Stage) -> None:
    assert stage.ada.get("/v1/jobs/latest").json()["dataset"] == "own"
    assert stage.dan.get("/v1/jobs/latest").json()["dataset"] == "other"
    assert stage.cleo.get("/v1/jobs/latest").json()["dataset"] == "other"


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT", "BREW"])
def test_other_methods_open_nothing(stage: Stage, method: str) -> None:
    before = stage.state()
    for call in RULES if stage.database.is_sqlite else list(RULES)[:1]:
        path = call.split(" ")[1].format(
            name="own",
            population="shared",
            job_id=stage.finished["own"],
            slug="x",
            analyst="ada",
            sites_name="s",
            label="2026-01",
            request_id=MISSING_JOB,
            key_id="0" * 8,
            session_id="0" * 8,
        )
        answer = stage.client.request(method, path)
        assert answer.status_code in (200, 401, 404, 405), (method, path)
        assert answer.status_code != 200 or RULES[call].who == "anybody"
    assert stage.state() == before
