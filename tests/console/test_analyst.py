"""The analyst's story in the browser: look, plan, rehearse, submit, read, be refused."""

import json
import re
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from cairn_client import verify
from tests.console.conftest import THREE_GROUPS, Tab
from tests.support.console import Service


def plan_a_job(tab: Tab, granted: tuple[str, str]) -> Page:
    """Sign in, ask for one k, and wait until the first price is there."""
    page = tab.sign_in(granted[1], f"#/datasets/{granted[0]}/job")
    page.get_by_label("exactly", exact=True).check()
    expect(page.locator("#cost")).to_have_text("ε 1")
    return page


def figure(page: Page, name: str) -> float:
    """A number of the forecast."""
    text = page.locator(f"#forecast-{name}").inner_text()
    return float(re.sub(r"[^0-9.]", "", text))


def numbers_in(page: Page, column: int) -> list[float]:
    """The numbers in a column of the table of centres, each before its interval."""
    return [
        float(text.split()[0]) for text in page.locator(f"#centres td:nth-child({column})").all_inner_texts()
    ]


def test_an_analyst_watches_the_price_submits_and_reads_the_result(
    tab: Tab, granted: tuple[str, str]
) -> None:
    page = tab.sign_in(granted[1])
    page.get_by_role("article").get_by_role("link", name="Plan a job").click()
    expect(page.locator("#cost")).to_have_text("ε 1")
    expect(page.locator("#after")).to_contain_text("ε 1 of your cap, ε 2 of the budget")
    expect(page.locator("#reason")).not_to_be_empty()
    names = ("smallest-cluster", "noise-per-radius", "noise-at-bounds")
    before = {name: figure(page, name) for name in names}

    slider = page.get_by_label("Epsilon", exact=True)
    slider.focus()
    for _ in range(40):
        slider.press("ArrowLeft")
    expect(page.get_by_label("Epsilon, exactly")).not_to_have_value("1")
    cheaper = page.get_by_label("Epsilon, exactly").input_value()
    expect(page.locator("#cost")).to_have_text(f"ε {cheaper}")
    assert float(cheaper) < 1
    assert all(figure(page, name) > noise for name, noise in before.items())

    page.get_by_label("Epsilon, exactly").fill("0.75")
    page.get_by_label("exactly", exact=True).check()
    page.get_by_label("Clusters (k)").fill("3")
    expect(page.locator("#cost")).to_have_text("ε 0.75")
    expect(page.locator("#after")).to_contain_text("ε 1.25 of your cap, ε 2.25 of the budget")
    page.get_by_role("button", name="Submit for ε 0.75").click()

    expect(page.locator("#centres tbody tr")).to_have_count(3)
    expect(page.get_by_role("img", name="Map of 3 centres")).to_be_visible()
    expect(page.get_by_role("img", name="Noisy sizes")).to_be_visible()
    expect(page.get_by_role("img", name="Profile of centre")).to_have_count(3)
    expect(page.locator("#receipt")).to_contain_text("Each single row")
    expect(page.locator("#receipt")).to_contain_text("2.12 times as likely")
    assert sorted(numbers_in(page, 3)) == pytest.approx(sorted(age for age, _, _ in THREE_GROUPS), abs=5)


def test_a_result_is_downloaded_as_it_was_released(tab: Tab, granted: tuple[str, str]) -> None:
    page = plan_a_job(tab, granted)
    page.get_by_role("button", name="Submit for ε 1").click()
    expect(page.locator("#centres tbody tr")).to_have_count(4)
    job = page.url.rsplit("/", 1)[1]
    released = tab.service.call("GET", f"/v1/jobs/{job}/result", key=granted[1])
    files = {}
    for ending in ("JSON", "CSV", "NPY"):
        with page.expect_download() as download:
            page.get_by_role("button", name=ending, exact=True).click()
        assert download.value.suggested_filename == f"{granted[0]}-{job[:8]}.{ending.lower()}"
        files[ending] = Path(download.value.path()).read_bytes()
    assert json.loads(files["JSON"]) == released
    lines = [line.split(",") for line in files["CSV"].decode().splitlines()]
    assert lines[0][:8] == [
        "cluster",
        "age",
        "income",
        "visits",
        "size",
        "size_noise",
        "size_low",
        "size_high",
    ]
    assert [line[0] for line in lines[1:]] == ["1", "2", "3", "4"]
    off = np.array([[float(x) for x in line[1:4]] for line in lines[1:]]) - released["centres"]
    ends = (np.array(released["intervals"][f"centre_{end}"]) for end in ("low", "high"))
    assert np.all(np.abs(off) <= -np.subtract(*ends) / 4)  # rounded to the noise
    assert np.load(BytesIO(files["NPY"])).tolist() == released["centres"]
    with page.expect_download() as download:
        page.get_by_role("button", name="Download", exact=True).click()
    receipt = json.loads(Path(download.value.path()).read_text())
    keys = tab.service.call("GET", "/.well-known/cairn-keys.json", key=granted[1])
    assert verify(receipt, keys) == keys["keys"][0]["kid"]


def test_a_report_for_a_data_protection_officer_is_one_page_to_print(
    tab: Tab, finished: tuple[str, str, str]
) -> None:
    page = tab.sign_in(finished[1], f"#/jobs/{finished[2]}")
    page.get_by_role("link", name="Report").click()
    report = page.locator("#report")
    expect(report).to_contain_text("Who is protected?")
    expect(report).to_contain_text("by the service, with the key")
    expect(report).not_to_contain_text("`")
    page.emulate_media(media="print")
    expect(page.get_by_role("button", name="Print")).to_be_hidden()
    pages = len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4")))
    assert pages == 1


def test_centres_are_sorted_by_any_column(tab: Tab, granted: tuple[str, str]) -> None:
    page = plan_a_job(tab, granted)
    page.get_by_role("button", name="Submit for").click()
    heading = page.get_by_role("button", name="income")
    heading.click()
    column = page.locator("#centres td:nth-child(4)")
    expect(column).to_have_count(4)
    assert numbers_in(page, 4) == sorted(numbers_in(page, 4))
    heading.click()
    expect(page.get_by_role("columnheader", name="income")).to_have_attribute("aria-sort", "descending")
    expect(heading).to_be_focused()


def test_what_does_not_fit_cannot_be_submitted_and_what_remains_is_offered(
    tab: Tab, granted: tuple[str, str]
) -> None:
    page = plan_a_job(tab, granted)
    page.get_by_label("Epsilon, exactly").fill("3.5")
    expect(page.locator("#too-much")).to_contain_text("it costs epsilon 3.5 and delta")
    expect(page.locator("#too-much")).to_contain_text("your cap has epsilon 2 and delta")
    expect(page.get_by_role("button", name="Submit for ε 3.5")).to_be_disabled()
    page.get_by_role("button", name="Ask for what remains (ε 2, δ 1×10⁻⁶)").click()
    expect(page.locator("#cost")).to_have_text("ε 2")
    expect(page.get_by_role("button", name="Submit for ε 2")).to_be_enabled()
    expect(page.locator("#too-much")).to_have_count(0)


def test_the_tighter_of_two_limits_is_named(tab: Tab, service: Service, granted: tuple[str, str]) -> None:
    other = service.analyst(f"{granted[0]}-rival")
    cap = {"epsilon": "3", "delta": "0.00001"}
    service.call("PUT", f"/v1/datasets/{granted[0]}/grants/{granted[0]}-rival", json=cap)
    taken = {"dataset": granted[0], "k": 2, "epsilon": "2.5"}
    service.call("POST", "/v1/jobs", key=other, json=taken)
    page = tab.sign_in(granted[1], f"#/datasets/{granted[0]}/job")
    expect(page.locator("#too-much")).to_contain_text("the dataset's budget has epsilon 0.5 and delta")
    page.get_by_role("button", name="Ask for what remains (ε 0.5").click()
    expect(page.get_by_role("button", name="Submit for ε 0.5")).to_be_enabled()


def test_a_refusal_shows_the_numbers_and_leaves_the_button_locked(tab: Tab, granted: tuple[str, str]) -> None:
    page = plan_a_job(tab, granted)
    other = {"dataset": granted[0], "k": 2, "epsilon": "1.5"}
    # From another window, after the price was shown here.
    tab.service.call("POST", "/v1/jobs", key=granted[1], json=other)
    page.get_by_role("button", name="Submit for ε 1").click()
    refusal = page.locator("#refusal")
    expect(refusal).to_contain_text("this asks for epsilon 1")
    for name, number in (("Requested", "ε 1"), ("Total", "ε 2"), ("Remaining", "ε 0.5")):
        expect(refusal.get_by_role("row", name=name).first).to_contain_text(number)
    expect(refusal).to_contain_text("The largest job that you can submit now costs epsilon 0.5 and delta")
    expect(refusal).to_contain_text("request a larger cap")
    expect(page.locator("#too-much")).to_contain_text("your cap has epsilon 0.5 and delta")
    expect(page.get_by_role("button", name="Submit for ε 1")).to_be_disabled()
    assert len(tab.service.call("GET", "/v1/jobs", key=granted[1])["items"]) == 1


def test_a_rehearsal_is_free_and_says_so_everywhere(tab: Tab, granted: tuple[str, str]) -> None:
    page = plan_a_job(tab, granted)
    page.get_by_label("Rehearse first").check()
    expect(page.locator("#cost")).to_have_text("free")
    page.get_by_role("button", name="Rehearse for free").click()
    expect(page.locator("#centres")).to_be_visible()
    expect(page.get_by_text("A rehearsal on synthetic rows: it says nothing about the data")).to_be_visible()
    expect(page.locator("#receipt")).to_contain_text("A rehearsal on synthetic rows")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Jobs", exact=True).click()
    expect(page.get_by_text("rehearsal, free")).to_be_visible()
    spent = tab.service.call("GET", f"/v1/datasets/{granted[0]}", key=granted[1])["cap"]["spent"]
    assert spent["epsilon"] == "0"


def test_a_queued_job_can_be_cancelled_and_costs_nothing(
    tab: Tab, service: Service, granted: tuple[str, str]
) -> None:
    page = plan_a_job(tab, granted)
    with service.resting_worker():
        page.get_by_role("button", name="Submit for").click()
        expect(page.get_by_role("heading", name="In the queue")).to_be_visible()
        job = page.url.rsplit("/", 1)[1]
        tab.foreseen = ("404 (Not Found)",)
        tab.go(f"#/jobs/{job}/report")
        expect(page.get_by_role("heading", name="No result")).to_be_visible()
        expect(page.get_by_role("alert").first).to_contain_text("Wait until the job has ended.")
        tab.go(f"#/jobs/{job}")
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Cancel the job").click()
        expect(page.get_by_text("cancelled by the analyst; nothing was charged")).to_be_visible()
    cap = service.call("GET", f"/v1/datasets/{granted[0]}", key=granted[1])["cap"]
    assert (cap["spent"]["epsilon"], cap["reserved"]["epsilon"]) == ("0", "0")


def test_progress_is_followed_until_the_result_is_there(
    tab: Tab, service: Service, granted: tuple[str, str]
) -> None:
    page = plan_a_job(tab, granted)
    with service.resting_worker():
        page.get_by_role("button", name="Submit for").click()
        expect(page.get_by_text("The cost is reserved, not yet charged")).to_be_visible()
        expect(page.get_by_role("progressbar", name="Progress of the job")).to_be_visible()
        asked = sum(url.endswith(page.url.rsplit("/", 1)[1]) for url in tab.requests)
    expect(page.locator("#centres")).to_be_visible()
    assert asked <= 10  # it asks when Retry-After says so, not all the time


def test_the_page_waits_out_a_broken_connection(tab: Tab, service: Service, granted: tuple[str, str]) -> None:
    page = plan_a_job(tab, granted)
    with service.resting_worker():
        page.get_by_role("button", name="Submit for").click()
        expect(page.get_by_role("heading", name="In the queue")).to_be_visible()
        tab.foreseen = ("ERR_INTERNET_DISCONNECTED",)
        tab.context.set_offline(True)
        expect(page.get_by_text("The job keeps running; the page will try again.")).to_be_visible()
        tab.context.set_offline(False)
    expect(page.locator("#centres")).to_be_visible()


def test_an_algorithm_and_its_options_are_the_analysts_choice(tab: Tab, granted: tuple[str, str]) -> None:
    page = plan_a_job(tab, granted)
    page.get_by_label("Algorithm").select_option("sulq")
    page.get_by_text("Options of sulq").click()
    page.get_by_label("rounds").fill("2")
    expect(page.get_by_text("Algorithm: sulq")).to_be_visible()
    expect(page.locator("#quote")).to_contain_text("4 measurements with noise")


def test_an_impossible_request_is_explained_in_place(tab: Tab, granted: tuple[str, str]) -> None:
    page = plan_a_job(tab, granted)
    page.get_by_label("Epsilon, exactly").fill("0.0000000000001")  # smaller than the unit of the ledger
    expect(page.get_by_label("Epsilon, exactly")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#quote")).to_have_text("Correct the marked fields to see the price.")
    page.get_by_label("Epsilon, exactly").fill("0.5")
    expect(page.locator("#cost")).to_have_text("ε 0.5")


def test_many_columns_are_chosen_from_and_rho_is_the_currency_of_zcdp(
    tab: Tab, service: Service, fresh: str
) -> None:
    name, key = f"wide-{fresh}", service.analyst(f"ada-{fresh}")
    body = {"name": name, "dimension": 40, "bounds": {"box": {"low": 0, "high": 1}}, "size": 2000}
    budget = {"epsilon": "2", "delta": "0.00001"}
    service.call("POST", "/v1/datasets", json={**body, "budget": budget, "accountant": "zcdp"})
    file = BytesIO()
    np.save(file, np.random.default_rng(1).integers(0, 3, (2000, 1)) / 2 * np.ones(40))
    headers = {"Content-Type": "application/x-npy"}
    service.call("PUT", f"/v1/datasets/{name}/data", content=file.getvalue(), headers=headers)
    service.call("POST", f"/v1/datasets/{name}/seal", json={})
    service.call("PUT", f"/v1/datasets/{name}/grants/ada-{fresh}", json=budget)
    page = tab.sign_in(key, f"#/datasets/{name}/job")
    page.get_by_label("exactly", exact=True).check()
    expect(page.locator("#cost")).to_contain_text("ρ")
    expect(page.locator("#quote")).to_contain_text("worth ε 1")
    page.get_by_role("button", name="Submit for ρ").click()
    expect(page.get_by_text("The plane in which the centres differ most")).to_be_visible()
    expect(page.locator("#centres thead th")).to_have_count(14)
    expect(page.get_by_text("28 columns not shown")).to_be_visible()
    page.get_by_text("Columns: 12 of 40").click()
    page.get_by_role("button", name="All", exact=True).click()
    expect(page.locator("#centres thead th")).to_have_count(42)
    expect(page.get_by_role("img", name="Heat map of 4 centres and 40 columns")).to_be_visible()


def test_facilities_are_chosen_among_public_sites(tab: Tab, service: Service, fresh: str) -> None:
    name, key = f"calls-{fresh}", service.analyst(f"ada-{fresh}")
    columns = {"lat": (47.0, 55.0), "lon": (5.0, 16.0)}
    calls = b"lat,lon\n" + b"52.5,13.4\n48.1,11.6\n" * 2000
    service.dataset(name, calls, columns, caps={f"ada-{fresh}": ("2", "0.000005")})
    page = tab.sign_in(key, f"#/datasets/{name}/job")
    page.get_by_label("Algorithm").select_option("gupta")
    expect(page.get_by_text("this dataset has none yet: ask its curator")).to_be_visible()

    stations, params = b"52.5,13.4\n48.1,11.6\n53.5,10\n", {"kind": "great-circle"}
    service.call("PUT", f"/v1/datasets/{name}/sites/stations", content=stations, params=params)
    page.reload()
    page.get_by_label("Algorithm").select_option("gupta")
    expect(page.get_by_label("means")).to_be_disabled()
    expect(page.get_by_label("medians")).to_be_checked()
    expect(page.get_by_label("Public sites")).to_have_value("stations")
    page.get_by_label("Clusters (k)").fill("2")
    expect(page.locator("#quote")).to_contain_text("Algorithm: gupta")
    page.get_by_role("button", name="Submit for ε 1").click()
    expect(page.locator("#centres tbody tr")).to_have_count(2)
    shown = sorted(float(text) for text in page.locator("#centres td:nth-child(2)").all_inner_texts())
    assert shown == [48.1, 52.5]  # by 2000 records each; another choice has odds below exp(-50)
