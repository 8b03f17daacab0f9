"""Sign-in by a real provider in a browser: there and back, refusals, and out of both."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from service.operations.clock import SystemClock, rfc3339
from tests.console.conftest import COLUMNS, rows
from tests.support.console import Service, free_port
from tests.support.identity_provider import IdentityProvider, identity_provider


class Institution:
    """A service at `localhost` and a provider at 127.0.0.1: two sites to a browser."""

    def __init__(self, browser: Browser, service: Service, idp: IdentityProvider, address: str):
        self.browser, self.service, self.idp, self.address = browser, service, idp, address

    def tab(self) -> Page:
        page = self.browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{self.address}/")
        return page

    def sign_in(self, page: Page, name: str) -> None:
        page.get_by_role("button", name="Sign in with University of Elsewhere").click()
        self.enter(page, name)

    def enter(self, page: Page, name: str) -> None:
        """Fill in the provider's own pages."""
        page.get_by_placeholder("Enter any login").fill(name)
        page.get_by_placeholder("and password").fill("x")
        page.get_by_role("button", name="Sign-in").click()
        page.get_by_role("button", name="Continue").click()

    def acts(self) -> list[str]:
        events = self.service.call("GET", "/v1/audit")["items"]
        return [f"{each['actor']} {each['words']}" for each in events]


@pytest.fixture(scope="module")
def institution(
    browser: Browser, sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Institution]:
    folder, port = tmp_path_factory.mktemp("institution"), free_port()
    shutil.copy(sqlite_template, folder / "cairn.sqlite3")
    address = f"http://localhost:{port}"
    with identity_provider(folder, [f"{address}/sign-in/uni/callback"]) as idp:
        settings = {"CAIRN_PROVIDERS_FILE": str(idp.file(folder)), "CAIRN_PUBLIC_URL": address}
        with closing(Service(folder / "cairn.sqlite3", port=port, settings=settings)) as service:
            yield Institution(browser, service, idp, address)


def test_person_signs_in_by_the_provider_and_out_of_both(institution: Institution) -> None:
    institution.idp.person("grace", "researchers")
    page = institution.tab()
    page.goto(f"{institution.address}/#/jobs")
    institution.sign_in(page, "grace")
    expect(page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible()  # the page that was left
    expect(page.get_by_text("grace, analyst")).to_be_visible()
    page.get_by_role("link", name="Signed in as grace").click()
    expect(page.get_by_text(f"by {institution.idp.issuer}")).to_be_visible()
    assert f"grace signed in by {institution.idp.issuer}" in institution.acts()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Yes, sign me out").click()
    expect(page.get_by_role("button", name="Sign in with University of Elsewhere")).to_be_visible()
    page.context.close()


def test_operator_enables_an_account_and_links_an_identity(institution: Institution) -> None:
    service = institution.service
    made = service.call("POST", "/v1/principals", json={"name": "otto", "role": "operator"})
    lena = {"name": "lena", "role": "analyst"}
    service.call("POST", "/v1/principals", json=lena)
    service.call("DELETE", "/v1/principals/lena")
    page = institution.tab()
    page.get_by_label("Your key").fill(made["first_key"]["key"])
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="People")).to_be_visible()
    bar = page.get_by_role("navigation", name="Main")
    assert bar.get_by_role("link").all_inner_texts() == ["People", "Audit", "Help"]
    card = page.get_by_role("article").filter(has=page.get_by_role("heading", name="lena"))
    expect(card.get_by_text("disabled")).to_be_visible()
    card.get_by_role("button", name="Enable account").click()
    card.get_by_role("button", name="Link an identity").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Provider")).to_contain_text("University of Elsewhere")
    dialog.get_by_label("Subject").fill("staff-77")
    dialog.get_by_role("button", name="Link it").click()
    expect(card.get_by_text("University of Elsewhere as staff-77")).to_be_visible()
    institution.idp.person("staff-77", "researchers")
    other = institution.tab()
    institution.sign_in(other, "staff-77")
    expect(other.get_by_text("lena, analyst")).to_be_visible()
    for tab in (page, other):
        tab.context.close()


def test_person_without_a_group_is_refused_and_loses_the_session_of_before(institution: Institution) -> None:
    institution.idp.person("henry", "researchers")
    first, second = institution.tab(), institution.tab()
    institution.sign_in(first, "henry")
    expect(first.get_by_text("henry, analyst")).to_be_visible()
    institution.idp.person("henry", "former-staff")
    institution.sign_in(second, "henry")
    expect(second.get_by_role("heading", name="Sign-in refused")).to_be_visible()
    expect(second.get_by_text("none of the groups")).to_be_visible()
    first.get_by_role("link", name="Jobs").click()
    expect(first.get_by_text("You were signed out")).to_be_visible()
    assert any("refused henry" in each for each in institution.acts())
    for page in (first, second):
        page.context.close()


def test_answer_without_the_sign_in_of_this_browser_is_refused(institution: Institution) -> None:
    institution.idp.person("iris", "researchers")
    page = institution.tab()
    answers: list[str] = []
    page.on(
        "request", lambda request: answers.append(request.url) if "/callback?code" in request.url else None
    )
    institution.sign_in(page, "iris")
    expect(page.get_by_text("iris, analyst")).to_be_visible()
    [answer] = answers
    stranger = institution.tab()
    for address in (
        answer,
        answer.replace("state=", "state=x"),
        f"{institution.address}/sign-in/uni/callback",
    ):
        for tab in (page, stranger):  # replayed, in the same browser and in another one
            response = tab.goto(address)
            assert response is not None
            assert response.status == 403
            expect(tab.get_by_text("belongs to no sign-in that began in this browser")).to_be_visible()
    page.goto(f"{institution.address}/")
    expect(page.get_by_text("iris, analyst")).to_be_visible()  # whose session goes on
    for tab in (page, stranger):
        tab.context.close()


def test_answer_to_another_nonce_and_another_way_back_are_refused(institution: Institution) -> None:
    institution.idp.person("judy", "researchers")
    page = institution.tab()

    def begun(name: str, value: str) -> httpx.URL:
        """Where a sign-in of this browser goes, with one of its parameters changed on the way."""
        response = page.request.get(f"{institution.address}/sign-in/uni", max_redirects=0)
        return httpx.URL(response.headers["location"]).copy_set_param(name, value)

    elsewhere = page.goto(str(begun("redirect_uri", f"{institution.address}/elsewhere")))
    assert elsewhere is not None
    assert elsewhere.status == 400
    expect(page.get_by_text("redirect_uri did not match")).to_be_visible()

    page.goto(str(begun("nonce", "of-another-sign-in")))
    institution.enter(page, "judy")
    expect(page.get_by_role("heading", name="Sign-in refused")).to_be_visible()
    expect(page.get_by_text("its nonce is not valid here")).to_be_visible()
    page.goto(f"{institution.address}/")
    expect(page.get_by_role("button", name="Sign in with University of Elsewhere")).to_be_visible()
    page.context.close()


def test_code_is_taken_once_and_of_our_provider_alone(institution: Institution) -> None:
    address = f"{institution.address}/sign-in/uni"
    with httpx.Client(follow_redirects=False) as browser:
        for sent, words in (
            ("code=made-up", "did not take the code"),
            ("error=access_denied", "did not sign you in"),
            ("code=x&iss=https://evil.example", "of another provider"),
        ):
            begun = browser.get(address)
            asked = httpx.URL(begun.headers["location"]).params
            assert asked["redirect_uri"] == f"{address}/callback"
            assert asked["code_challenge_method"] == "S256"
            answer = browser.get(f"{address}/callback?state={asked['state']}&{sent}")
            assert (answer.status_code, words in answer.text) == (403, True), answer.text
            assert "cairn-session" not in answer.headers.get("set-cookie", "")
        assert browser.get(f"{institution.address}/sign-in/nobody").status_code == 404


def test_command_signs_in_by_the_device_flow_and_renews_its_token(
    institution: Institution, tmp_path: Path
) -> None:
    institution.idp.person("kay", "researchers")
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "PATH": os.environ.get("PATH", "")}
    command = [sys.executable, "-m", "cairn_client.cli"]
    page = institution.tab()
    login = subprocess.Popen(
        [*command, "login", institution.address, "--provider", "uni"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert login.stderr is not None
    shown = ""
    while (address := re.search(r"http://\S+", shown)) is None:
        line = login.stderr.readline()
        assert line, shown
        shown += line
    page.goto(address[0])
    page.get_by_role("button", name="Continue").click()
    page.get_by_placeholder("Enter any login").fill("kay")
    page.get_by_placeholder("and password").fill("x")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()
    said, _ = login.communicate(timeout=60)
    assert "as kay (analyst). The token is stored" in " ".join(said.split())

    stored = tmp_path / "cairn" / "login.json"
    expired = {**json.loads(stored.read_text()), "key": institution.idp.token(sub="kay", exp=1)}
    stored.write_text(json.dumps(expired))
    done = subprocess.run(
        [*command, "whoami"], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert "kay (analyst)" in done.stdout
    assert json.loads(stored.read_text())["key"] != expired["key"]
    page.context.close()


def test_access_from_nothing_to_its_end_and_every_step_in_the_audit_log(institution: Institution) -> None:
    """Mona finds a dataset and asks; half is granted; she submits; the grant ends, and she asks again."""
    service, audit = institution.service, "/v1/audit?dataset=wards&limit=100"
    service.dataset("wards", rows(300), COLUMNS)
    service.call("PUT", "/v1/datasets/wards/listing", json={"title": "Three wards", "shows": ["columns"]})
    institution.idp.person("mona", "researchers")
    page, desk = institution.tab(), institution.tab()
    institution.sign_in(page, "mona")
    page.get_by_role("link", name="Catalogue").click()
    entry = page.get_by_role("article").filter(has_text="Three wards")
    expect(entry).to_contain_text("age: number from 0 to 100")
    entry.get_by_role("link", name="Request access").click()
    page.get_by_label("Epsilon (ε)").fill("2")
    page.get_by_label("Purpose").fill("Frailty after surgery")
    page.get_by_role("button", name="Send the request").click()
    expect(page.get_by_text("waits for the owner")).to_be_visible()

    desk.get_by_label("Your key").fill(service.curator_key)
    desk.get_by_role("button", name="Sign in", exact=True).click()
    desk.get_by_role("link", name="Requests", exact=True).last.click()
    asked = desk.get_by_role("article").filter(has_text="mona")
    expect(asked).to_contain_text("Frailty after surgery")
    asked.get_by_role("button", name="Grant").click()
    desk.get_by_role("dialog").get_by_label("Epsilon (ε)").fill("1")
    desk.get_by_role("dialog").get_by_label("A word to who asked").fill("half for now")
    desk.get_by_role("dialog").get_by_role("button", name="Grant").click()
    expect(asked).to_contain_text("granted a cap of epsilon 1")

    page.goto(f"{institution.address}/#/datasets/wards/job")
    expect(page.get_by_text("“half for now”")).to_be_visible()
    page.get_by_label("Epsilon, exactly").fill("0.5")
    page.get_by_role("button", name="Submit for ε 0.5").click()
    expect(page.locator("#centres")).to_be_visible()

    page.goto(f"{institution.address}/#/datasets/wards/job")
    page.get_by_label("Epsilon, exactly").fill("0.4")
    again = page.get_by_role("button", name="Submit for ε 0.4")
    expect(again).to_be_enabled()
    ends_at = rfc3339(SystemClock().now() + timedelta(seconds=1))
    ending = {"epsilon": "1", "delta": "0.00001", "ends_at": ends_at}
    service.call("PUT", "/v1/datasets/wards/grants/mona", json=ending)
    while page.request.get(f"{institution.address}/v1/datasets/wards").status != 404:
        pass  # until its end by the clock
    again.click()
    expect(page.locator("#refusal")).to_contain_text("you have no grant for it")
    page.get_by_role("link", name="Request more").click()
    expect(page.get_by_text("is sent with the request")).to_be_visible()
    page.get_by_label("Epsilon (ε)").fill("1")
    page.get_by_role("button", name="Send the request").click()
    expect(page.get_by_text("waits for the owner")).to_be_visible()

    acts = [f"{each['actor']} {each['words']}" for each in service.call("GET", audit)["items"]]
    for words in (
        "carla listed the dataset in the catalogue",
        "mona asked for a cap of epsilon 2",
        "carla granted mona a cap of epsilon 1",
        "mona asked for a cap of epsilon 1",
    ):
        assert any(each.startswith(words) for each in acts), (words, acts)
    assert any("mona signed in by" in each for each in institution.acts())
    expected = {"mona read the result of job", "mona was refused: submit job (404)"}
    while expected:  # accesses are written within a second
        found = service.call("GET", f"{audit}&record=access")["items"]
        seen = [f"{each['actor']} {each['words']}" for each in found]
        expected = {words for words in expected if not any(each.startswith(words) for each in seen)}
    for tab in (page, desk):
        tab.context.close()
