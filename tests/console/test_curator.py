"""The curator's story in the browser: create, upload, grant, account, retire."""

import csv
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.console.conftest import Tab, rows
from tests.support.console import Service


def test_a_curator_ends_a_job(tab: Tab, service: Service, granted: tuple[str, str]) -> None:
    with service.resting_worker():
        job = service.call(
            "POST", "/v1/jobs", key=granted[1], json={"dataset": granted[0], "k": 2, "epsilon": "1"}
        )
        page = tab.sign_in(service.curator_key, f"#/jobs/{job['id']}")
        page.get_by_role("button", name="End", exact=True).click()
        page.get_by_role("button", name="End the job").click()
        expect(page.get_by_text("ended by the dataset's curator; nothing was charged")).to_be_visible()


def describe(page: Page, name: str) -> None:
    """Fill in the form of a new dataset of numbers."""
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Description").fill("People of three towns.")
    page.get_by_label("Rows are").select_option("box")
    page.get_by_role("button", name="Add a column").click()
    for number, (column, high) in enumerate((("age", "100"), ("income", "80"), ("visits", "10")), 1):
        page.get_by_label(f"Column of column {number}").fill(column)
        page.get_by_label(f"Low of column {number}").fill("0")
        page.get_by_label(f"High of column {number}").fill(high)
    page.get_by_label("Size", exact=True).fill("3000")


def test_a_curator_creates_uploads_grants_and_sees_the_ledger(tab: Tab, fresh: str, tmp_path: Path) -> None:
    name, analyst = f"towns-{fresh}", f"ben-{fresh}"
    tab.service.analyst(analyst)
    page = tab.sign_in(tab.service.curator_key)

    page.get_by_role("link", name="New dataset").click()
    describe(page, name)
    page.get_by_role("button", name="Create the dataset").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_text("draft", exact=True)).to_be_visible()

    (tmp_path / "people.csv").write_bytes(rows())
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "people.csv")
    page.get_by_role("button", name="Upload and check").click()
    look = page.locator("section", has=page.get_by_role("heading", name="Check before you seal"))
    expect(look).to_contain_text("3,000")
    expect(page.get_by_text("draft", exact=True)).to_be_visible()
    look.get_by_role("button", name="Seal the dataset").click()
    expect(page.get_by_role("heading", name="The upload")).to_be_visible()
    upload = page.locator("section", has=page.get_by_role("heading", name="The upload"))
    expect(upload).to_contain_text("3,000")
    expect(upload).to_contain_text("town")

    page.get_by_role("link", name="Grants").click()
    page.get_by_role("button", name="Grant", exact=True).click()
    window = page.get_by_role("dialog")
    window.get_by_label("Analyst").select_option(analyst)
    window.get_by_label("Epsilon").fill("1.5")
    window.get_by_role("button", name="Grant").click()
    expect(page.get_by_role("row", name=analyst)).to_contain_text("ε 1.5")

    page.get_by_role("link", name="Ledger").click()
    expect(page.get_by_role("row", name="opened the account")).to_contain_text("ε 3")
    expect(page.get_by_role("row", name="set a cap")).to_contain_text(analyst)
    page.get_by_role("button", name="Verify").click()
    expect(page.locator("main").get_by_text("All 2 entries check out")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    with Path(download.value.path()).open() as file:
        assert [row["kind"] for row in csv.DictReader(file)] == ["open", "cap"]

    page.get_by_role("navigation", name="Main").get_by_role("link", name="Audit").click()
    page.get_by_label("Show").select_option(name)
    expect(page.get_by_text(f"granted {analyst} a cap of epsilon 1.5, delta 1×10⁻⁵")).to_be_visible()


def test_bad_rows_are_shown_with_their_lines_and_can_be_left_out(
    tab: Tab, fresh: str, tmp_path: Path
) -> None:
    page = tab.sign_in(tab.service.curator_key, "#/datasets/new")
    describe(page, f"rough-{fresh}")
    page.get_by_role("button", name="Create the dataset").click()
    (tmp_path / "rough.csv").write_text("age,income,visits\n1,2,3\n4,five,6\n7,8\n9,10,1\n" + ",2,3\n" * 90)
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "rough.csv")
    page.get_by_role("button", name="Upload and check").click()
    bad = page.get_by_role("region", name="Bad rows")
    expect(bad.get_by_role("row")).to_have_count(4)  # a heading, and one for each of three reasons
    expect(bad.get_by_role("row").nth(1).get_by_role("cell").last).to_have_text("3")
    expect(bad.get_by_role("row").nth(1)).to_contain_text("income")
    expect(bad.get_by_role("row").nth(3).get_by_role("cell").nth(1)).to_have_text("90")
    expect(page.get_by_role("alert").first).to_contain_text("Nothing was stored")
    page.get_by_label("Leave bad rows out").check()
    page.get_by_role("button", name="Upload and check").click()
    expect(page.locator(".facts", has_text="Left out").first).to_contain_text("92 bad rows")
    found = page.get_by_role("region", name="Columns with findings")
    expect(found.get_by_role("row", name="income")).to_contain_text("five")

    page.get_by_role("button", name="Seal the dataset").click()
    expect(page.get_by_role("alert").first).to_contain_text("92 of 94 rows were left out")
    page.get_by_label("92 of 94 rows were left out.").check()
    page.get_by_label("there are 2 rows, but the size was declared as 3,000.").check()
    page.get_by_role("button", name="Seal the dataset").click()
    expect(page.get_by_role("heading", name="The upload")).to_be_visible()
    expect(page.get_by_text("five")).to_have_count(0)


def test_a_draft_is_corrected_its_rows_thrown_away_and_it_is_discarded(
    tab: Tab, fresh: str, tmp_path: Path
) -> None:
    name = f"draft-{fresh}"
    page = tab.sign_in(tab.service.curator_key, "#/datasets/new")
    describe(page, name)
    page.get_by_role("button", name="Create the dataset").click()
    (tmp_path / "people.csv").write_bytes(rows())
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "people.csv")
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_role("heading", name="Check before you seal")).to_be_visible()

    page.get_by_role("button", name="Edit").click()
    window = page.get_by_role("dialog")
    expect(window).to_contain_text("changed after a look at the rows")
    window.get_by_label("High of age").fill("110")
    window.get_by_role("button", name="Save the changes").click()
    expect(page.get_by_text("after a look at the rows: bounds", exact=False).first).to_be_visible()
    expect(page.get_by_role("heading", name="Check before you seal")).to_have_count(0)

    page.get_by_label("File", exact=True).set_input_files(tmp_path / "people.csv")
    page.get_by_role("button", name="Upload and check").click()
    page.get_by_role("button", name="Throw the rows away").click()
    page.get_by_role("dialog").get_by_role("button", name="Throw them away").click()
    expect(page.get_by_role("heading", name="Check before you seal")).to_have_count(0)

    page.get_by_role("button", name="Discard this draft").click()
    page.get_by_role("dialog").get_by_role("button", name="Discard it").click()
    expect(page.get_by_role("heading", name="Datasets", exact=True)).to_be_visible()
    expect(page.get_by_text(name, exact=True)).to_have_count(0)


def test_columns_of_numbers_take_from_a_file_only_names_and_what_follows_from_them(
    tab: Tab, fresh: str, tmp_path: Path
) -> None:
    page = tab.sign_in(tab.service.curator_key, "#/datasets/new")
    page.get_by_label("Rows are").select_option("box")
    (tmp_path / "people.csv").write_bytes(rows(5))
    page.get_by_text("Take the names from a CSV file").click()
    page.get_by_label("A CSV file whose first line names the columns").set_input_files(
        tmp_path / "people.csv"
    )
    names = page.locator("input[name=column]")
    expect(names).to_have_count(4)
    assert [names.nth(i).input_value() for i in range(4)] == ["age", "income", "visits", "town"]
    assert [page.locator("input[name=high]").nth(i).input_value() for i in range(4)] == ["120", "", "", ""]


def test_a_first_line_of_data_is_not_taken_for_names(tab: Tab, fresh: str, tmp_path: Path) -> None:
    page = tab.sign_in(tab.service.curator_key, "#/datasets/new")
    page.get_by_label("Rows are").select_option("box")
    (tmp_path / "bare.csv").write_text("54;F;2026-01-02;1.234,50\n61;M;2026-01-03;99,10\n")
    page.get_by_text("Take the names from a CSV file").click()
    chooser = page.get_by_label("A CSV file whose first line names the columns")
    chooser.set_input_files(tmp_path / "bare.csv")
    expect(page.locator("main").get_by_text("looks like data")).to_be_visible()
    names = page.locator("input[name=column]")
    assert [names.nth(i).input_value() for i in range(names.count())] == ["", ""]
    (tmp_path / "named.csv").write_text('age;"cost; total"\n54;1\n')
    chooser.set_input_files(tmp_path / "named.csv")
    expect(names.nth(1)).to_have_value("cost; total")
    expect(page.get_by_text("Semicolon-separated text in UTF-8")).to_be_visible()


def test_a_wrong_dataset_is_corrected_in_place_and_nothing_typed_is_lost(tab: Tab, fresh: str) -> None:
    page = tab.sign_in(tab.service.curator_key, "#/datasets/new")
    describe(page, f"wrong-{fresh}")
    page.get_by_label("Low of column 1").fill("200")
    page.get_by_role("button", name="Create the dataset").click()
    expect(page.locator("main").get_by_text("High must be above low.")).to_be_visible()
    expect(page.get_by_label("High of column 1")).to_be_focused()
    expect(page.get_by_label("Name", exact=True)).to_have_value(f"wrong-{fresh}")


def test_a_budget_is_raised_and_cannot_be_lowered(
    tab: Tab, service: Service, granted: tuple[str, str]
) -> None:
    page = tab.sign_in(service.curator_key, f"#/datasets/{granted[0]}")
    page.get_by_role("button", name="Raise", exact=True).click()
    window = page.get_by_role("dialog")
    window.get_by_label("Epsilon").fill("1")
    window.get_by_role("button", name="Raise the budget").click()
    expect(window.get_by_role("alert")).to_contain_text("can only be raised")
    window.get_by_label("Epsilon").fill("4.5")
    window.get_by_role("button", name="Raise the budget").click()
    expect(page.locator(".gauge").first).to_contain_text("ε 4.5")


def test_a_dataset_is_handed_over(tab: Tab, service: Service, granted: tuple[str, str], fresh: str) -> None:
    following = f"cleo-{fresh}"
    made = service.call("POST", "/v1/principals", json={"name": following, "role": "curator"})
    page = tab.sign_in(service.curator_key, f"#/datasets/{granted[0]}")
    page.get_by_role("button", name="Hand this dataset over").click()
    window = page.get_by_role("dialog")
    window.get_by_label("New owner").select_option(following)
    expect(window).to_contain_text("You can then no longer see the dataset")
    window.get_by_role("button", name="Hand over").click()
    expect(page.get_by_text(f"{following} now owns {granted[0]}")).to_be_visible()
    expect(page.get_by_role("heading", name="Datasets", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name=granted[0])).to_have_count(0)
    key = made["first_key"]["key"]
    assert service.call("GET", f"/v1/datasets/{granted[0]}", key=key)["owner"] == following


def test_retiring_asks_for_the_name_and_deletes_the_rows(
    tab: Tab, service: Service, granted: tuple[str, str]
) -> None:
    page = tab.sign_in(service.curator_key, f"#/datasets/{granted[0]}")
    page.get_by_role("button", name="Retire this dataset").click()
    delete = page.get_by_role("dialog").get_by_role("button", name="Delete the rows permanently")
    expect(delete).to_be_disabled()
    page.get_by_label(f"Type {granted[0]} to confirm").fill(granted[0])
    delete.click()
    expect(page.get_by_role("button", name="Retire this dataset")).to_have_count(0)
    assert service.call("GET", f"/v1/datasets/{granted[0]}")["state"] == "retired"


def test_a_new_persons_key_is_shown_once_and_works_until_it_is_revoked(tab: Tab, fresh: str) -> None:
    name = f"eve-{fresh}"
    page = tab.sign_in(tab.service.curator_key, "#/people")
    page.get_by_role("button", name="New person").click()
    page.get_by_role("dialog").get_by_label("Name").fill(name)
    page.get_by_role("button", name="Create", exact=True).click()
    key = page.locator("code.key").inner_text()
    assert tab.service.call("GET", "/v1/whoami", key=key) == {"name": name, "role": "analyst"}
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_text(key)).to_have_count(0)

    card = page.locator("article", has=page.get_by_role("heading", name=name, exact=True))
    card.get_by_role("button", name="Revoke").click()
    page.get_by_role("button", name="Revoke it").click()
    expect(card.get_by_role("button", name="Revoke")).to_have_count(0)
    listed = {each["name"]: each for each in tab.service.call("GET", "/v1/principals?limit=500")["items"]}
    assert [bool(each["revoked_at"]) for each in listed[name]["keys"]] == [True]


def test_grants_show_epsilon_and_delta_and_a_cap_above_the_total_is_warned_of(
    tab: Tab, service: Service, granted: tuple[str, str]
) -> None:
    page = tab.sign_in(service.curator_key, f"#/datasets/{granted[0]}/grants")
    expect(page.get_by_role("cell", name="ε 2").first).to_contain_text("δ 5×10⁻⁶")
    page.get_by_role("button", name="Change cap").click()
    window = page.get_by_role("dialog")
    expect(window.get_by_label("Delta")).to_have_value("0.000005")
    window.get_by_label("Epsilon").fill("200")
    window.get_by_role("button", name="Change cap").click()
    expect(page.get_by_text("The cap is above the dataset's total of ε 3")).to_be_visible()
    expect(page.get_by_role("cell", name="ε 200").first).to_contain_text("δ 5×10⁻⁶")


def test_a_grant_is_withdrawn(tab: Tab, service: Service, granted: tuple[str, str]) -> None:
    page = tab.sign_in(service.curator_key, f"#/datasets/{granted[0]}/grants")
    page.get_by_role("button", name="Withdraw").click()
    page.get_by_role("button", name="Withdraw it").click()
    expect(page.get_by_role("cell", name="withdrawn")).to_be_visible()
    assert service.call("GET", "/v1/datasets", key=granted[1])["items"] == []


def test_public_sites_are_stored_and_listed(tab: Tab, service: Service, fresh: str, tmp_path: Path) -> None:
    name = f"calls-{fresh}"
    service.dataset(name, b"lat,lon\n52,13\n", {"lat": (47.0, 55.0), "lon": (5.0, 16.0)})
    page = tab.sign_in(service.curator_key, f"#/datasets/{name}")
    page.get_by_role("navigation", name=f"About {name}").get_by_role("link", name="Sites").click()
    expect(page.get_by_text("None yet. With public sites")).to_be_visible()
    page.get_by_role("button", name="Store the sites").click()
    expect(page.locator("main").get_by_text("Enter a name for the set of sites.")).to_be_visible()
    expect(page.locator("main").get_by_text("Choose a file.")).to_be_visible()

    page.get_by_label("Name", exact=True).fill("stations")
    page.get_by_label("The file holds").select_option("great-circle")
    expect(page.get_by_text("latitude, then longitude, in degrees")).to_be_visible()
    (tmp_path / "stations.csv").write_text("lat,lon\n52.5,13.4\n")
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "stations.csv")
    page.get_by_role("button", name="Store the sites").click()
    refusal = page.locator("form").get_by_role("alert")
    expect(refusal).to_contain_text("Line 1 of the sites holds something other than numbers")
    expect(refusal).to_contain_text("Nothing was stored")

    (tmp_path / "good.csv").write_text("52.5,13.4\n48.1,11.6\n")
    page.get_by_label("File", exact=True).set_input_files(tmp_path / "good.csv")
    page.get_by_role("button", name="Store the sites").click()
    row = page.get_by_role("row", name="stations")
    expect(row).to_contain_text("latitude and longitude")
    stored = service.call("GET", f"/v1/datasets/{name}/sites")["items"]
    assert [(each["kind"], each["count"]) for each in stored] == [("great-circle", 2)]
