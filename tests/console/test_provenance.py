"""What the console takes from a file: what it sends, and that each fact from rows is marked and confirmed."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.conftest import Tab
from tests.console.test_tables import confirm_all, unfold
from tests.support.console import Service
from tests.support.hospital import NAMES, as_text, hospital

KIB = 1024
START = """([bytes, name]) => import("/console/datasets/first-lines.js")
    .then((m) => m.startOf(new File([new Uint8Array(bytes)], name)))
    .then(async (start) => [start.name, Array.from(new Uint8Array(await start.arrayBuffer()))])"""
#: Every field of every column, with its value and whether it is marked; then those of the reading.
FIELDS = """() => {
    const read = (place) => Object.fromEntries(
        [...place.querySelectorAll("input, select, textarea")]
            .filter((each) => !each.closest("[hidden]"))
            .map((each) => [each.name.replace(/ \\d+$/, ""), [
                each.type === "checkbox" ? each.checked : each.value, each.closest(".from-rows") !== null
            ]])
    );
    const cards = [...document.querySelectorAll("details.column")].map(read);
    const reading = read(document.querySelector("[name=encoding]").closest("details"));
    return Object.fromEntries([...cards.map((card) => [card.Name[0], card]), ["reading", reading]]);
}"""
#: Fields that appear with the kind or the use of a column, but that no proposal fills in.
NOT_PROPOSED = {"Weight", "Other values", "log", "Offset"}
#: A column, and what one of its cells holds instead.
CHANGES = [
    ("age", "41.5"),
    ("age", ""),
    ("admissions", "many"),
    ("admissions", "007"),
    ("cost", "1000000"),
    ("cost", "0"),
    ("sex", "other"),
    ("sex", "x" * 129),
    ("region", ""),
    ("visited", "2031-01-01"),
    ("visited", "1.1.2024"),
    ("visited", "2024-05-01 10:30"),
    ("smoker", "perhaps"),
]
Fields = dict[str, dict[str, tuple[Any, bool]]]


@pytest.fixture
def page(tab: Tab) -> Page:
    """The form of a new table."""
    return tab.sign_in(tab.service.curator_key, "#/datasets/new")


def start_from(page: Page, file: Path, content: str | bytes) -> Fields:
    """Start from a file with this content; what the form then holds."""
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with page.expect_response("**/v1/previews*"):
        page.get_by_label("Start from a file").set_input_files(file)
    expect(page.get_by_text("proposed from its first lines")).to_be_visible()
    found: Fields = page.evaluate(FIELDS)
    return found


def confirmation(page: Page, heading: str) -> Locator:
    """The list of what came from rows in a section."""
    section = page.locator("section", has=page.get_by_role("heading", name=heading, exact=True))
    return section.get_by_role("group", name="From the rows")


def test_only_the_first_lines_of_a_text_file_are_sent(tab: Tab) -> None:
    page = tab.go("")
    text = b"age,sex\n" + b"41,f\n" * 60_000
    for content, sent in (
        (text, text[: 256 * KIB]),
        (gzip.compress(text), text[: 256 * KIB]),
        (b"age\n41\n", b"age\n41\n"),
        ("größe\n1\n".encode("utf-16"), "größe\n1\n".encode("utf-16")),
    ):
        name, found = page.evaluate(START, [list(content), "t.csv"])
        assert (name, bytes(found) == sent) == ("t.csv", True)


def test_a_file_of_another_format_is_sent_whole(tab: Tab) -> None:
    page = tab.go("")
    binary = b"PAR1\0" + b"x" * 300 * KIB
    for content in (binary, gzip.compress(binary), b"\x1f\x8bnot really"):
        _name, found = page.evaluate(START, [list(content), "t"])
        assert bytes(found) == content


def test_every_field_that_one_changed_row_moves_is_marked(page: Page, tmp_path: Path) -> None:
    rows = hospital(200)
    before = start_from(page, tmp_path / "a.csv", as_text(rows))
    moved = set()
    for column, value in CHANGES:
        place = NAMES.index(column)
        changed = [[*row[:place], value, *row[place + 1 :]] if i == 17 else row for i, row in enumerate(rows)]
        after = start_from(page, tmp_path / f"{column} {len(value)}.csv", as_text(changed))
        for where in NAMES:
            for fields, others in ((before[where], after[where]), (after[where], before[where])):
                differ = {name for name in fields if others.get(name, (None,))[0] != fields[name][0]}
                moved |= differ
                assert {name for name in differ if not fields[name][1]} <= NOT_PROPOSED
    assert moved - NOT_PROPOSED == {
        "Kind", "Use", "Levels", "Low", "High", "whole", "Missing value", "Earliest", "Latest", "Order",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("row", "fact"),
    [
        (b'7,"12,5"', "decimal"),
        (b"7,\xe4", "encoding"),
        (b'7,"12\n5"', "quoted_lines"),
        (b"7,12 345", "thousands"),
    ],
)
def test_every_fact_of_the_reading_that_one_row_moves_is_marked(
    page: Page, tmp_path: Path, row: bytes, fact: str
) -> None:
    content = b"visits,note\n" + b"1,a\n" * 20
    before = start_from(page, tmp_path / "a.csv", content)["reading"]
    after = start_from(page, tmp_path / "b.csv", content + row + b"\n")["reading"]
    assert {name for name in after if after[name][0] != before[name][0]} == {fact}
    assert {name for name in after if after[name][1]} == {fact}
    expect(confirmation(page, "How the file is written")).to_be_visible()


def test_nothing_is_created_before_what_came_from_rows_is_confirmed(
    page: Page, service: Service, fresh: str, tmp_path: Path
) -> None:
    commas = [[cell.replace(".", ",") for cell in row] for row in hospital(100)]
    start_from(page, tmp_path / "a.csv", as_text(commas, ";"))
    page.locator("input[name=name]").fill(f"asked-{fresh}")
    page.get_by_label("Size", exact=True).fill("100")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))
    for heading in ("Columns", "How the file is written"):
        page.get_by_role("button", name="Create the dataset").click()
        box = confirmation(page, heading).get_by_role("checkbox")
        expect(box).to_be_focused()
        expect(confirmation(page, heading)).to_contain_text("Confirm that these facts may be public")
        box.check()
    assert "POST" not in sent
    page.get_by_role("button", name="Create the dataset").click()
    expect(page.get_by_role("heading", name=f"asked-{fresh}")).to_be_visible()
    found = service.call("GET", f"/v1/datasets/asked-{fresh}")
    assert {each["name"]: each.get("confirmed_from_rows") for each in found["table"]} == {
        "patient_id": None,
        "age": ["kind", "missing", "role", "whole"],
        "sex": ["kind", "levels", "missing", "role"],
        "region": ["kind", "levels", "missing", "role"],
        "admissions": ["high", "kind", "low", "missing", "role", "whole"],
        "cost": ["high", "kind", "log", "low", "missing", "role", "whole"],
        "bmi": ["kind", "missing", "role", "whole"],
        "visited": ["high", "kind", "low", "missing", "order", "role"],
        "smoker": ["kind", "missing", "role"],
    }
    assert found["reading"]["confirmed_from_rows"] == ["decimal"]


def test_what_becomes_public_is_listed_whole(page: Page, tmp_path: Path) -> None:
    levels = [f"ward {number}" for number in range(30)]
    start_from(page, tmp_path / "a.csv", "\n".join(["ward", *levels, *levels]))
    listed = confirmation(page, "Columns")
    expect(listed).to_contain_text(f"ward: kind category; use clustering; levels {', '.join(levels)};")


def test_an_edited_field_no_longer_counts_as_from_rows(
    page: Page, service: Service, fresh: str, tmp_path: Path
) -> None:
    start_from(page, tmp_path / "a.csv", "visits;cost\n1;2,5\n9;7,5\n")
    page.locator("input[name=name]").fill(f"edited-{fresh}")
    page.get_by_label("Size", exact=True).fill("100")
    confirm_all(page)
    unfold(page, "cost")
    page.get_by_label("High of column 2").fill("1000")
    page.get_by_label("Missing value of column 2").select_option("drop")
    page.locator("summary", has_text="Change how the file is written").click()
    page.get_by_label("Decimal sign").select_option(".")
    fields: Fields = page.evaluate(FIELDS)
    marked = {name for name, (_, is_marked) in fields["cost"].items() if is_marked}
    assert marked == {"Kind", "Use", "Low", "whole"}
    expect(confirmation(page, "Columns")).to_contain_text("lowest value 2.5; not only whole numbers")
    expect(confirmation(page, "How the file is written")).to_be_hidden()
    page.get_by_role("button", name="Create the dataset").click()
    expect(page.get_by_role("heading", name=f"edited-{fresh}")).to_be_visible()
    found = service.call("GET", f"/v1/datasets/edited-{fresh}")
    assert found["table"][1]["confirmed_from_rows"] == ["kind", "low", "role", "whole"]
    assert found["reading"]["confirmed_from_rows"] == []


def test_facts_that_were_not_in_the_list_must_be_confirmed_again(page: Page, tmp_path: Path) -> None:
    start_from(page, tmp_path / "a.csv", "visits;cost\n1;2.5\n9;7.5\n")
    unfold(page, "cost")
    low, box = page.get_by_label("Low of column 2"), confirmation(page, "Columns").get_by_role("checkbox")
    low.fill("0")
    box.check()
    low.fill("2.5")
    expect(box).not_to_be_checked()
