"""How the console behaves towards everybody: keyboard, small screens, colours, keys, sentences for errors."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import Tab
from tests.support.console import Service

CHECKS = (Path(__file__).parent / "checks.js").read_text()
BASIC_CHECKS = f"() => {{ {CHECKS} return basics(); }}"
CONTRAST = f"() => {{ {CHECKS} return contrast(); }}"


def pages_of_an_analyst(finished: tuple[str, str, str]) -> list[tuple[str, str]]:
    """Addresses with what shows that each is complete."""
    name, _, job = finished
    return [
        ("#/datasets", ".gauge"),
        (f"#/datasets/{name}", ".facts"),
        (f"#/datasets/{name}/job", "#after"),
        (f"#/datasets/{name}/sites", "td"),
        (f"#/datasets/{name}/ledger", "td"),
        ("#/catalogue", "article"),
        ("#/jobs", "td"),
        (f"#/jobs/{job}", "#receipt"),
        (f"#/jobs/{job}/report", "#report"),
        ("#/requests", "article"),
        (f"#/datasets/{name}/request", "form"),
        ("#/sessions", "li"),
    ]


def pages_of_a_curator(finished: tuple[str, str, str]) -> list[tuple[str, str]]:
    name, _, job = finished
    return [
        ("#/datasets", ".gauge"),
        ("#/datasets/new", "form"),
        *((f"#/datasets/{name}{tab}", ".card") for tab in ("", "/grants", "/sites")),
        *((f"#/datasets/{name}{tab}", "td") for tab in ("/ledger", "/jobs", "/audit")),
        (f"#/jobs/{job}", "#receipt"),
        ("#/people", "article"),
        ("#/requests", "article"),
        ("#/sessions", "li"),
        ("#/audit", "td"),
        (f"#/datasets/{name}/report", "td"),
        ("#/help", "article"),
        ("#/help/table", "li"),
        ("#/help/epsilon", "#guesses"),
    ]


def look_at_every_page(
    tab: Tab, finished: tuple[str, str, str], look: Callable[[Page, str], list[str]]
) -> list[str]:
    """What `look` complains about, over every page of both roles."""
    found = []
    tab.go("")
    expect(tab.page.get_by_label("Your key")).to_be_visible()
    found += look(tab.page, "sign in")
    for key, places in (
        (finished[1], pages_of_an_analyst(finished)),
        (tab.service.curator_key, pages_of_a_curator(finished)),
    ):
        tab.sign_in(key)
        for place, sign in places:
            tab.go(place)
            # The page of before may have that sign too.
            expect(tab.page.locator(f"main[data-page='{place}'] {sign}").first).to_be_visible()
            expect(tab.page.locator(".busy, main[aria-busy]")).to_have_count(0)
            found += [f"{place}: {each}" for each in look(tab.page, place)]
        tab.page.get_by_role("button", name="Sign out").click()
        expect(tab.page.get_by_label("Your key")).to_be_visible()
    return found


def test_every_page_passes_the_basic_checks_and_is_readable_in_the_dark_and_in_the_light(
    tab: Tab, finished: tuple[str, str, str]
) -> None:
    def look(page: Page, _place: str) -> list[str]:
        found = list(page.evaluate(BASIC_CHECKS))
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        found += [f"dark: {each}" for each in page.evaluate(CONTRAST)]
        page.emulate_media(color_scheme="light", reduced_motion="reduce")  # as the next page is opened
        return [*found, *page.evaluate(CONTRAST)]

    assert look_at_every_page(tab, finished, look) == []


def test_no_page_scrolls_sideways_on_a_phone(phone: Tab, finished: tuple[str, str, str]) -> None:
    def look(page: Page, _place: str) -> list[str]:
        width = page.evaluate("document.documentElement.scrollWidth")
        return [] if width <= 375 else [f"{width} pixels wide"]

    assert look_at_every_page(phone, finished, look) == []


def test_the_colours_can_be_switched_and_are_remembered(tab: Tab) -> None:
    page = tab.go("")
    background = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Dark colours").click()
    dark = page.evaluate(background)
    assert dark != light
    page.reload()
    expect(page.get_by_role("button", name="Light colours")).to_be_visible()
    assert page.evaluate(background) == dark


def tab_to(page: Page, name: str, role: str) -> None:
    """Press the Tab key until a control has the focus, and shows it."""
    target = page.get_by_role(role, name=name).first  # type: ignore[arg-type]  # any role
    expect(target).to_be_visible()
    for _ in range(60):
        page.keyboard.press("Tab")
        if target.evaluate("e => e === document.activeElement"):
            outline = target.evaluate(
                "e => e.matches(':focus-visible') && getComputedStyle(e).outlineStyle !== 'none'"
            )
            assert outline, f"{name} does not show that it has the focus"
            return
    pytest.fail(f"{name} cannot be reached with the Tab key")


def test_a_job_is_planned_and_submitted_with_the_keyboard_alone(tab: Tab, granted: tuple[str, str]) -> None:
    page = tab.go("")
    keys = page.keyboard
    tab_to(page, "Your key", "textbox")
    keys.type(granted[1])
    keys.press("Enter")
    tab_to(page, "Plan a job", "link")
    keys.press("Enter")
    expect(page.locator("#cost")).to_have_text("ε 1")
    tab_to(page, "Epsilon", "slider")
    keys.press("PageDown")
    expect(page.locator("#cost")).not_to_have_text("ε 1")
    tab_to(page, "Submit for", "button")
    keys.press("Enter")
    expect(page.locator("#centres")).to_be_visible()


def test_the_skip_link_leads_past_the_bar(tab: Tab) -> None:
    page = tab.sign_in(tab.service.curator_key)
    page.reload()
    expect(page.get_by_role("heading", name="Datasets", exact=True)).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    page.get_by_role("link", name="Skip to the content").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Datasets", exact=True)).to_be_focused()


def test_a_dialog_keeps_the_focus_closes_with_escape_and_gives_it_back(tab: Tab) -> None:
    page = tab.sign_in(tab.service.curator_key, "#/people")
    page.get_by_role("button", name="New person").click()
    window = page.get_by_role("dialog")
    expect(window).to_be_visible()
    for press in ["Tab"] * 6 + ["Shift+Tab"] * 6:
        page.keyboard.press(press)
        assert window.evaluate("e => e.contains(document.activeElement)")
    page.keyboard.press("Escape")
    expect(window).to_have_count(0)
    expect(page.get_by_role("button", name="New person")).to_be_focused()


def test_a_page_takes_the_focus_and_names_itself(tab: Tab) -> None:
    page = tab.sign_in(tab.service.curator_key)
    page.get_by_role("link", name="People", exact=True).click()
    expect(page.get_by_role("heading", name="People", exact=True)).to_be_focused()
    expect(page).to_have_title("People · Cairn")
    expect(page.locator("#announcer")).to_have_text("People")


@pytest.mark.parametrize("key", ["cairn_00000000_no-such-key", "nonsense with spaces", "cairn_ключ"])
def test_a_wrong_key_gets_a_sentence_that_says_what_to_do(tab: Tab, key: str) -> None:
    page = tab.go("")
    page.get_by_label("Your key").fill(key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert").first).to_contain_text("ask a curator for a new one")
    expect(page.get_by_label("Your key")).to_be_focused()
    assert tab.context.cookies() == []


def test_a_revoked_key_leads_back_to_the_door_with_the_reason(tab: Tab, fresh: str) -> None:
    key = tab.service.analyst(f"gone-{fresh}")
    page = tab.sign_in(key)
    tab.service.call("DELETE", f"/v1/principals/gone-{fresh}")
    page.evaluate("location.hash = '#/jobs'")  # not a click: the page's own refresh may be first to learn it
    expect(page.get_by_text("You were signed out")).to_be_visible()


def test_an_absent_service_gets_a_sentence(tab: Tab) -> None:
    page = tab.sign_in(tab.service.curator_key)
    tab.foreseen = ("ERR_INTERNET_DISCONNECTED",)
    tab.context.set_offline(True)
    page.get_by_role("link", name="Jobs", exact=True).click()
    expect(page.get_by_role("alert").first).to_contain_text("The service did not answer.")
    expect(page.get_by_role("alert").first).to_contain_text("Check the connection")


def test_what_is_not_there_is_said_plainly(tab: Tab) -> None:
    page = tab.sign_in(tab.service.curator_key, "#/datasets/no-such-thing")
    expect(page.get_by_role("heading", name="Not found")).to_be_visible()
    expect(page.get_by_role("alert").first).to_contain_text("Check the name")


def test_a_name_that_looks_like_markup_is_shown_as_text(tab: Tab, service: Service, fresh: str) -> None:
    evil = "<img src=x onerror=alert(1)>"
    service.dataset(f"evil-{fresh}", b"a,b\n1,2\n", {"a": (0, 1), "b": (0, 1)}, description=evil)
    page = tab.sign_in(service.curator_key, f"#/datasets/evil-{fresh}")
    expect(page.get_by_text(evil)).to_be_visible()
    assert page.locator("main img").count() == 0


def test_a_phone_shows_the_whole_story(phone: Tab, granted: tuple[str, str]) -> None:
    page = phone.sign_in(granted[1])
    page.get_by_role("article").get_by_role("link", name="Plan a job").tap()
    expect(page.locator("#cost")).to_have_text("ε 1")
    page.get_by_role("button", name="Submit for").tap()
    picture = page.get_by_role("img", name="Map of 1,500 made-up rows")
    expect(picture).to_be_visible()
    assert picture.evaluate("e => e.getBoundingClientRect().right") <= 375


def test_a_dataset_is_found_among_many(tab: Tab, service: Service) -> None:
    facts = {"dimension": 2, "bounds": {"box": {"low": 0, "high": 1}}, "size": 9}
    for number in range(30):
        body = {"name": f"zz-{number}", "description": "Grain." if number == 29 else "", **facts}
        service.call("POST", "/v1/datasets", json={**body, "budget": {"epsilon": "1"}})
    page = tab.sign_in(service.curator_key)
    page.get_by_label("Find a dataset").fill("ZZ-2")
    expect(page.get_by_role("article")).to_have_count(11)
    page.get_by_label("Find a dataset").fill("grain")
    expect(page.get_by_role("article")).to_have_count(1)
    page.get_by_label("Find a dataset").fill("no such thing")
    expect(page.get_by_text("Nothing found.")).to_be_visible()
    page.get_by_label("Find a dataset").fill("")
    expect(page.get_by_role("article").nth(29)).to_be_visible()


def test_a_job_is_found_by_its_algorithm(tab: Tab, service: Service, granted: tuple[str, str]) -> None:
    for algorithm in ["sulq"] * 8 + ["auto"]:
        body = {"dataset": granted[0], "k": 2, "epsilon": "1", "algorithm": algorithm, "rehearsal": True}
        service.call("POST", "/v1/jobs", key=granted[1], json=body)
    page = tab.sign_in(granted[1], "#/jobs")
    page.get_by_label("Find a job").fill("sulq")
    expect(page.get_by_role("row")).to_have_count(9)


def test_filters_of_jobs_are_in_the_address(phone: Tab, finished: tuple[str, str, str]) -> None:
    page = phone.sign_in(finished[1], "#/jobs")
    page.get_by_text("Filters").click()
    page.get_by_label("State").select_option("failed")
    expect(page.get_by_text("No jobs like that.")).to_be_visible()
    page.get_by_label("State").select_option("succeeded")
    page.get_by_label("Kind").select_option("cluster")
    page.get_by_label("From").fill("2020-01-01")
    expect(page.get_by_role("table")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Filters: 3 chosen")).to_be_visible()
    expect(page.get_by_label("Kind")).to_have_value("cluster")
    page.get_by_label("To", exact=True).fill("2020-01-02")
    expect(page.get_by_text("No jobs like that.")).to_be_visible()
    assert "state=succeeded&kind=cluster&since=2020-01-01&until=2020-01-02" in page.url


def test_the_console_works_from_its_own_files_alone(tab: Tab, tmp_path: Path) -> None:
    page = tab.sign_in(tab.service.curator_key)
    loaded = page.evaluate("performance.getEntriesByType('resource').map((e) => new URL(e.name).host)")
    assert set(loaded) == {tab.service.address.removeprefix("http://")}


def test_an_address_without_a_page_is_said_to_be_wrong(tab: Tab, finished: tuple[str, str, str]) -> None:
    page = tab.sign_in(finished[1])
    for place in ("#/jobs/1234", "#/nothing", "#/people"):  # a cut link, a wrong one, a curator's
        tab.go(place)
        expect(page.get_by_role("heading", name="Not found")).to_be_visible()
        expect(page.get_by_text("Check the address.")).to_be_visible()
    page.get_by_role("link", name="All datasets").click()
    expect(page.get_by_role("heading", name="Datasets", exact=True)).to_be_visible()
