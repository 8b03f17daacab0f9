"""Signing in: it survives a new tab and, if asked for, the end of the browser, and it can be ended."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.console.conftest import Tab
from tests.support.console import Service

STORED = "JSON.stringify([localStorage, sessionStorage, document.cookie, window.name, history.state])"


def cookie_of(context: BrowserContext) -> dict[str, Any]:
    (found,) = context.cookies()
    return dict(found)


def sign_in(page: Page, service: Service, *, remember: bool = False) -> None:
    page.goto(service.address)
    page.get_by_label("Your key").fill(service.curator_key)
    if remember:
        page.get_by_label("Keep me signed in").check()
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()


def test_a_new_tab_is_signed_in(tab: Tab, service: Service) -> None:
    tab.sign_in(service.curator_key)
    other = tab.context.new_page()
    other.goto(f"{service.address}/#/people")
    expect(other.get_by_role("heading", name="People", exact=True)).to_be_visible()
    other.close()


def test_no_script_and_no_storage_holds_a_key_or_a_session(tab: Tab, service: Service) -> None:
    page = tab.sign_in(service.curator_key)
    expect(page.get_by_role("heading", name="Datasets", exact=True)).to_be_visible()
    assert "cairn_" not in page.evaluate(STORED)
    assert "cairn_" not in page.content()
    cookie = cookie_of(tab.context)
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == ("cairn-session", True, "Strict")
    assert cookie["value"] != service.curator_key
    assert all("cairn_" not in url for url in tab.requests)


@pytest.mark.parametrize("remember", [False, True])
def test_the_end_of_the_browser_is_survived_only_if_asked_for(
    browser: Browser, service: Service, remember: bool
) -> None:
    with browser.new_context() as first:
        sign_in(first.new_page(), service, remember=remember)
        kept = first.storage_state()
    # What a browser keeps when it is closed: everything but cookies without an end.
    kept["cookies"] = [each for each in kept["cookies"] if each["expires"] != -1]
    with browser.new_context(storage_state=kept) as second:
        page = second.new_page()
        page.goto(service.address)
        expected = page.get_by_role("navigation", name="Main") if remember else page.get_by_label("Your key")
        expect(expected).to_be_visible()


def test_signing_out_ends_the_session_in_every_tab(tab: Tab, service: Service) -> None:
    page = tab.sign_in(service.curator_key)
    other = tab.context.new_page()
    other.goto(f"{service.address}/#/people")
    expect(other.get_by_role("heading", name="People", exact=True)).to_be_visible()
    kept = cookie_of(tab.context)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Your key")).to_be_visible()
    assert tab.context.cookies() == []
    # By address: the page may have noticed by itself, and then has no link to click.
    other.evaluate("location.hash = '#/datasets'")
    expect(other.get_by_label("Your key")).to_be_visible()
    other.close()
    tab.context.add_cookies([kept])  # type: ignore[list-item]  # as the browser gave it
    page.evaluate("localStorage.setItem('cairn.signed-in', 'yes')")
    page.reload()
    expect(page.get_by_label("Your key")).to_be_visible()


def test_signing_out_without_a_connection_is_not_claimed(tab: Tab, service: Service) -> None:
    page = tab.sign_in(service.curator_key)
    expect(page.get_by_role("heading", name="Datasets", exact=True)).to_be_visible()  # all has been fetched
    tab.foreseen = ("ERR_INTERNET_DISCONNECTED",)
    tab.context.set_offline(True)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("alert")).to_contain_text("The service did not answer")
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    assert tab.context.cookies() != []


def test_a_session_is_listed_and_ended_from_another_browser(
    tab: Tab, browser: Browser, service: Service, fresh: str
) -> None:
    key = service.analyst(f"ida-{fresh}")
    page = tab.sign_in(key, "#/sessions")
    expect(page.get_by_text("this browser")).to_be_visible()
    with browser.new_context() as elsewhere:
        lost = elsewhere.new_page()
        lost.goto(service.address)
        lost.get_by_label("Your key").fill(key)
        lost.get_by_role("button", name="Sign in").click()
        expect(lost.get_by_role("navigation", name="Main")).to_be_visible()
        page.reload()
        page.get_by_role("button", name="End session").click()
        expect(page.get_by_role("button", name="End session")).to_have_count(0)
        lost.get_by_role("link", name="Jobs", exact=True).click()
        expect(lost.get_by_text("You were signed out: your session has ended.")).to_be_visible()
    expect(page.get_by_text("this browser")).to_be_visible()


def test_a_curator_signs_out_somebody_else(tab: Tab, browser: Browser, service: Service, fresh: str) -> None:
    name = f"ivo-{fresh}"
    key = service.analyst(name)
    service.call("POST", "/v1/sessions", key=key, json={})
    page = tab.sign_in(service.curator_key, "#/people")
    card = page.get_by_role("article").filter(has=page.get_by_role("heading", name=name))
    card.get_by_role("button", name="End session").click()
    expect(card.get_by_role("button", name="End session")).to_have_count(0)
    assert service.call("GET", "/v1/sessions", key=key)["items"] == []


def test_a_page_of_another_site_can_do_nothing_with_the_session(
    tab: Tab, service: Service, fresh: str
) -> None:
    service.dataset(f"prey-{fresh}", b"a,b\n1,2\n", {"a": (0, 1), "b": (0, 1)})
    tab.sign_in(service.curator_key)
    # The same host with another port is the same site to a browser: its cookies travel along.
    evil = "http://127.0.0.1:47101/"
    other = tab.context.new_page()
    other.route(evil, lambda route: route.fulfill(content_type="text/html", body="<h1>Another site</h1>"))
    other.goto(evil)
    attack = (
        "(url) => fetch(url, {method: 'POST', mode: 'no-cors', credentials: 'include'}).catch(() => null)"
    )
    with other.expect_request("**/retire") as attacked:
        other.evaluate(attack, f"{service.address}/v1/datasets/prey-{fresh}/retire")
    sent = attacked.value.all_headers()
    assert (sent["origin"], "cairn-session" in sent["cookie"]) == (evil.rstrip("/"), True)
    other.close()
    assert service.call("GET", f"/v1/datasets/prey-{fresh}")["state"] == "sealed"


def test_a_browser_that_keeps_no_cookies_is_told_so(tab: Tab, service: Service) -> None:
    page = tab.go("")
    page.route(
        "**/v1/sessions", lambda route: route.fulfill(status=201, content_type="application/json", body="{}")
    )
    page.get_by_label("Your key").fill(service.curator_key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert").first).to_contain_text("did not keep the session cookie")
