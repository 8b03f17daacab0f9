"""A hospital's table in the console alone: from a file to a draft, its report, the seal and a result."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.console.conftest import Tab
from tests.console.test_manners import tab_to
from tests.console.test_table_forms import choose, column
from tests.support.console import Service
from tests.support.hospital import as_text, hospital


def unfold(page: Page, name: str) -> None:
    """Open the form of a column."""
    fold = page.locator("details.column", has=page.locator("summary strong", has_text=name))
    if not fold.evaluate("e => e.open"):
        fold.locator("summary").click()


def describe_hospital(page: Page, name: str, file: Path) -> None:
    """Take the columns of the hospital's table from its file, and say what is known without it."""
    page.locator("input[name=name]").fill(name)
    page.get_by_label("Start from a file").set_input_files(file)
    expect(page.get_by_text("9 columns proposed")).to_be_visible()
    for text in ("admissions", "cost", "bmi"):
        unfold(page, text)
    column(page, 5, low="0", high="20")
    column(page, 6, low="10", high="1000000")
    page.get_by_label("Log scale of column 6").check()
    choose(page, 7, missing_value="fill")
    column(page, 7, fill_value="25")
    confirm_all(page)
    page.get_by_label("Size", exact=True).fill("20000")


def confirm_all(page: Page) -> None:
    """Confirm what came from rows: the columns' facts at once, and how the file is written."""
    boxes = page.get_by_role("checkbox", name="I know these facts without the rows, or they may be public")
    for box in boxes.all():
        box.check()


def upload(page: Page) -> Locator:
    """Upload the file that the draft was described from; the report on it."""
    page.get_by_role("button", name="Upload and check").click()
    look = page.locator("section", has=page.get_by_role("heading", name="Check before you seal"))
    expect(look).to_be_visible()
    return look


def test_a_hospitals_table_goes_from_file_to_result(
    tab: Tab, service: Service, fresh: str, tmp_path: Path
) -> None:
    name, analyst = f"hospital-{fresh}", f"hal-{fresh}"
    key = service.analyst(analyst)
    commas = [[cell.replace(".", ",") for cell in row] for row in hospital()]
    (tmp_path / "hospital.csv").write_text(as_text(commas[:15_000], ";").rstrip())
    (tmp_path / "later.csv").write_text(as_text(commas[15_000:], ";"))
    page = tab.sign_in(service.curator_key, "#/datasets/new")
    describe_hospital(page, name, tmp_path / "hospital.csv")
    page.get_by_role("button", name="Create the dataset").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    assert page.get_by_label("File", exact=True).evaluate("e => e.files[0].name") == "hospital.csv"

    page.get_by_label("File", exact=True).set_input_files([tmp_path / "hospital.csv", tmp_path / "later.csv"])
    look = upload(page)
    expect(look).to_contain_text("separated by semicolons, UTF-8, decimal commas")
    expect(look.locator(".facts")).to_contain_text("20,000")
    expect(look.locator(".facts")).to_contain_text("0 bad rows")
    look.get_by_role("button", name="Seal the dataset").click()
    expect(page.get_by_role("heading", name="The upload")).to_be_visible()
    page.get_by_role("link", name="Grants").click()
    page.get_by_role("button", name="Grant", exact=True).click()
    window = page.get_by_role("dialog")
    window.get_by_label("Analyst").select_option(analyst)
    window.get_by_label("Epsilon").fill("2")
    window.get_by_role("button", name="Grant").click()
    expect(page.get_by_role("row", name=analyst)).to_contain_text("ε 2")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Your key")).to_be_visible()

    tab.sign_in(key, f"#/datasets/{name}")
    columns = page.get_by_role("region", name="Columns")
    expect(columns.get_by_role("row", name="region")).to_contain_text(
        "one of 4 levels: east, north, south, west"
    )
    expect(columns.get_by_role("row", name="cost")).to_contain_text("on a log scale")
    expect(columns.get_by_role("row", name="bmi")).to_contain_text("counts as 25")
    expect(columns.get_by_role("row", name="region")).to_contain_text(
        "kind, levels, what a missing value means, use from the rows, confirmed as public"
    )
    page.get_by_role("link", name="Plan a job").click()
    page.get_by_label("To", exact=True).fill("6")
    page.get_by_label("Weight of region").fill("0.5")
    page.get_by_label("admissions", exact=True).uncheck()
    expect(page.locator(".busy")).to_have_count(0)
    page.get_by_role("button", name="Submit for ε 1").click()
    expect(page.get_by_role("heading", name="What each centre is like")).to_be_visible()
    page.get_by_label("Clusters (k)").fill("3")
    expect(page.locator("#centres tbody tr")).to_have_count(3)
    centre = page.locator("figure", has=page.get_by_role("heading", name="Centre 1"))
    for words in ("geometric mean", "shares", "rate", "% yes", "% to ", "2024"):
        expect(centre).to_contain_text(words)
    expect(page.locator("#centres th")).to_have_count(9)
    expect(page.locator("#centres")).not_to_contain_text("admissions")
    expect(page.get_by_role("img", name="Map of 1,500 made-up rows in 3 clusters")).to_be_visible()
    page.get_by_label("Across").select_option("cost")
    expect(page.locator("#map svg")).to_contain_text("cost")


#: Clicks from this file to the seal when the browser made the proposals: six columns unfolded, six levels
#: ticked, five pairs of bounds accepted, three of them confirmed end by end; then created, uploaded, sealed.
#: How the file is read was inferred; confirming it may be one click more.
CLICKS_BEFORE = 26


def test_a_semicolon_separated_latin_1_file_is_sealed_in_fewer_clicks_than_before(
    tab: Tab, service: Service, fresh: str, tmp_path: Path
) -> None:
    name, file = f"klinik-{fresh}", tmp_path / "hospital.csv"
    rows = [[cell.replace(".", ",").replace("north", "nördlich") for cell in row] for row in hospital(2000)]
    file.write_bytes(as_text(rows, ";").encode("latin-1"))
    page = tab.sign_in(service.curator_key, "#/datasets/new")
    page.evaluate("window.clicks = 0; addEventListener('pointerdown', () => (window.clicks += 1), true)")
    page.locator("input[name=name]").fill(name)
    page.get_by_label("Size", exact=True).fill("2000")
    page.get_by_label("Start from a file").set_input_files(file)
    expect(page.get_by_text("9 columns proposed")).to_be_visible()
    confirm_all(page)
    page.get_by_role("button", name="Create the dataset").click()
    look = upload(page)
    look.get_by_role("button", name="Seal the dataset").click()
    expect(page.get_by_role("heading", name="The upload")).to_be_visible()
    assert page.evaluate("window.clicks") == 5 <= CLICKS_BEFORE + 1
    found = service.call("GET", f"/v1/datasets/{name}")
    assert found["reading"]["confirmed_from_rows"] == ["decimal", "encoding"]
    assert found["table"][3]["levels"] == ["east", "nördlich", "south", "west"]
    (bmi,) = (each for each in found["upload"]["columns"] if each["name"] == "bmi")
    assert found["upload"]["bad_rows"] == bmi["missing"] > 0  # gaps, as declared; nothing was unreadable


def test_a_file_that_is_written_otherwise_is_read_as_proposed_with_one_click(
    tab: Tab, service: Service, fresh: str, tmp_path: Path
) -> None:
    name, parts = f"other-{fresh}", [tmp_path / "a.csv", tmp_path / "b.csv"]
    parts[0].write_bytes("größe;cost\n1,5;2,5".encode("latin-1"))
    parts[1].write_bytes("größe;cost\nfünf;1,5\n".encode("latin-1"))
    table = [{"name": "cost", "kind": "number", "low": 0, "high": 9}]
    body = {"name": name, "table": table, "size": 2, "budget": {"epsilon": "1"}}
    service.call("POST", "/v1/datasets", json=body)
    page = tab.sign_in(service.curator_key, f"#/datasets/{name}")
    page.get_by_label("File", exact=True).set_input_files(parts)
    page.get_by_role("button", name="Upload and check").click()
    proposal = page.locator(".notice.warn", has=page.get_by_role("button", name="Read it like this"))
    expect(proposal).to_contain_text("Semicolon-separated text in Windows-1252 with decimal commas")
    expect(proposal).to_contain_text("From its rows: decimal commas")
    assert service.call("GET", f"/v1/datasets/{name}")["upload"] is None
    proposal.get_by_role("button").click()
    expect(page.get_by_role("heading", name="Check before you seal")).to_be_visible()
    found = service.call("GET", f"/v1/datasets/{name}")
    assert (found["upload"]["rows"], found["reading"]["confirmed_from_rows"]) == (2, ["decimal"])


def test_everybody_sees_how_the_file_is_read_and_what_of_it_came_from_rows(
    tab: Tab, service: Service, fresh: str
) -> None:
    name, key = f"seen-{fresh}", service.analyst(f"vera-{fresh}")
    reading = {"separator": ";", "decimal": ",", "confirmed_from_rows": ["decimal"]}
    budget = {"epsilon": "1", "delta": "0.000001"}
    table = [{"name": "cost", "kind": "number", "low": 0, "high": 9}]
    body = {"name": name, "table": table, "size": 2, "budget": budget, "reading": reading}
    service.call("POST", "/v1/datasets", json=body)
    service.call("PUT", f"/v1/datasets/{name}/data", content=b"cost\n2,5\n1,5\n")
    service.call("POST", f"/v1/datasets/{name}/seal", json={})
    service.call("PUT", f"/v1/datasets/{name}/grants/vera-{fresh}", json=budget)
    for who in (service.curator_key, key):
        page = tab.sign_in(who, f"#/datasets/{name}")
        expect(page.locator(".facts").last).to_contain_text(
            "Semicolon-separated text in UTF-8 with decimal commas"
        )
        expect(page.locator("main")).to_contain_text(
            "How the file is read was taken from the rows, and confirmed to be public: decimal."
        )
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Your key")).to_be_visible()


def dirty_hospital(service: Service, name: str) -> None:
    """A draft with rows in which everything is wrong that can be."""
    table = [
        {"name": "age", "kind": "number", "low": 0, "high": 80, "missing": "drop"},
        {"name": "sex", "kind": "category", "levels": ["F", "M"]},
        {"name": "visited", "kind": "date", "low": "2024-01-01", "high": "2024-12-31", "missing": "drop"},
    ]
    body = {"name": name, "table": table, "size": 40, "budget": {"epsilon": "1", "delta": "0.000001"}}
    body["reading"] = {"separator": ";"}
    service.call("POST", "/v1/datasets", json=body)
    good = ["50;F;2024-05-01", "95;M;2024-06-01", "-1;F;2023-12-31"] * 10
    bad = ["fifty;F;2024-05-01", ";M;2024-05-01", "50;X;2024-05-01", "50;F;someday", "51;?;2024-05-01"] * 2
    content = "\n".join(["age;sex;visited", *good, *bad]).encode()
    service.call("PUT", f"/v1/datasets/{name}/data?on_bad_row=drop", content=content)


def test_the_report_on_a_table_says_what_was_found_in_each_column(
    tab: Tab, service: Service, fresh: str
) -> None:
    name = f"dirty-{fresh}"
    dirty_hospital(service, name)
    page = tab.sign_in(service.curator_key, f"#/datasets/{name}")
    found = page.get_by_role("region", name="Columns with findings")
    expect(found).to_be_visible()
    cells = [row.get_by_role("cell").all_inner_texts() for row in found.get_by_role("row").all()[1:]]
    assert cells == [
        ["age", "2", "2", "–", "10", "10", "fifty"],
        ["sex", "–", "–", "4", "–", "–", "X?"],
        ["visited", "–", "2", "–", "10", "–", "someday"],
    ]
    look = page.locator("section", has=page.get_by_role("heading", name="Check before you seal"))
    expect(look).to_contain_text("8 bad rows, 2 rows with gaps, as declared")
    look.get_by_role("button", name="Seal the dataset").click()
    expect(page.get_by_role("alert").first).to_contain_text("rows were left out")
    for box in look.get_by_role("checkbox").all():
        box.check()
    look.get_by_role("button", name="Seal the dataset").click()
    expect(page.get_by_role("heading", name="The upload")).to_be_visible()
    expect(page.get_by_text("someday")).to_have_count(0)


def test_a_declaration_is_corrected_after_a_look_and_marked(tab: Tab, service: Service, fresh: str) -> None:
    name = f"edited-{fresh}"
    dirty_hospital(service, name)
    page = tab.sign_in(service.curator_key, f"#/datasets/{name}")
    page.get_by_role("link", name="Edit", exact=True).click()
    expect(page.get_by_text("changed after a look at the rows")).to_be_visible()
    unfold(page, "sex")
    column(page, 2, levels="F\nM\nX\nunknown")
    choose(page, 2, other_values="unknown")
    page.get_by_role("button", name="Save the changes").click()
    expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
    row = page.get_by_role("region", name="Columns").get_by_role("row", name="sex")
    expect(row).to_contain_text("one of 4 levels: F, M, X, unknown; anything else counts as unknown")
    expect(page.get_by_text("after a look at the rows", exact=False).first).to_be_visible()
    expect(page.get_by_role("heading", name="Check before you seal")).to_have_count(0)


def test_a_table_is_described_by_hand_on_a_phone(phone: Tab, service: Service, fresh: str) -> None:
    page = phone.sign_in(service.curator_key, "#/datasets/new")
    page.locator("input[name=name]").fill(f"hand-{fresh}")
    column(page, 1, name="age", low="0", high="120")
    column(page, 2, name="smoker")
    choose(page, 2, kind="boolean", use="keep", missing_value="keep")
    page.get_by_label("Size", exact=True).fill("100")
    page.get_by_role("button", name="Create the dataset").tap()
    expect(page.get_by_role("heading", name=f"hand-{fresh}")).to_be_visible()
    declared = service.call("GET", f"/v1/datasets/hand-{fresh}")["table"]
    assert [(each["kind"], each["role"], each["missing"]) for each in declared] == [
        ("number", "cluster", "refuse"),
        ("boolean", "keep", "keep"),
    ]
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


def test_a_table_is_described_with_the_keyboard_alone(tab: Tab, service: Service, fresh: str) -> None:
    page = tab.sign_in(service.curator_key, "#/datasets/new")
    keys = page.keyboard
    for role, label, typed in (
        ("textbox", "Name", f"keys-{fresh}"),
        ("textbox", "Name of column 1", "cost"),
        ("textbox", "Low of column 1", "0"),
        ("textbox", "High of column 1", "9000"),
        ("checkbox", "Log scale of column 1", " "),
        ("textbox", "Offset of column 1", "1"),
        ("textbox", "Name of column 2", "sex"),
        ("combobox", "Kind of column 2", "category"),
        ("textbox", "Levels of column 2", "F\nM\n"),
        ("combobox", "Missing value of column 2", "Use"),
        ("combobox", "Fill value of column 2", "M"),
        ("textbox", "Size", "100"),
    ):
        tab_to(page, label, role)
        keys.type(typed)
    tab_to(page, "Create the dataset", "button")
    keys.press("Enter")
    expect(page.get_by_role("heading", name=f"keys-{fresh}")).to_be_visible()
    cost, sex = service.call("GET", f"/v1/datasets/keys-{fresh}")["table"]
    assert (cost["log"], cost["offset"], cost["high"]) == (True, 1, 9000)
    assert (sex["levels"], sex["missing"], sex["fill"]) == (["F", "M"], "fill", "M")


def test_a_job_needs_a_column_and_weights_within_limits(tab: Tab, service: Service, fresh: str) -> None:
    key, name = service.analyst(f"wanda-{fresh}"), f"weighed-{fresh}"
    table = [{"name": each, "kind": "number", "low": 0, "high": 9} for each in ("a", "b")]
    budget = {"epsilon": "1", "delta": "0.000001"}
    service.call("POST", "/v1/datasets", json={"name": name, "table": table, "size": 500, "budget": budget})
    service.call("PUT", f"/v1/datasets/{name}/data", content=b"a,b\n" + b"1,2\n" * 500)
    service.call("POST", f"/v1/datasets/{name}/seal", json={})
    service.call("PUT", f"/v1/datasets/{name}/grants/wanda-{fresh}", json=budget)
    page = tab.sign_in(key, f"#/datasets/{name}/job")
    expect(page.locator("#cost")).to_have_text("ε 1")
    page.get_by_label("Weight of a").fill("0")
    expect(page.locator("form").get_by_text("Enter a weight from 0.001 to 1000.")).to_be_visible()
    page.get_by_label("a", exact=True).uncheck()
    expect(page.get_by_label("Weight of a")).to_be_disabled()
    expect(page.locator("#cost")).to_have_text("ε 1")
    page.get_by_label("b", exact=True).uncheck()
    expect(page.locator("form").get_by_text("Choose at least one column.").first).to_be_visible()
    expect(page.get_by_role("button", name="Submit")).to_be_disabled()
    page.get_by_label("b", exact=True).check()
    page.get_by_label("Private scaling").check()
    with page.expect_request("**/v1/plans") as asked:
        page.get_by_role("radio", name="exactly").check()
    body = json.loads(asked.value.post_data or "{}")
    assert (body["columns"], body["scaling"]) == (["b"], "private")
