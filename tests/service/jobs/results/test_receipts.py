"""Receipts: signed beside their digest, without contradictions, and of use to people outside the service."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cairn_client import InvalidReceipt, receipt, verify
from service.operations import signing
from tests.markdown import fences
from tests.support.service import House

KEYS = "/.well-known/cairn-keys.json"
PERSON: dict[str, Any] = {"rows_per_person": 3, "id_column": "who"}


def receipt_of(house: House, **body: Any) -> dict[str, Any]:
    job = house.submit("0.25", **body).json()
    assert house.work()
    house.clock.move(3600)
    found: dict[str, Any] = house.carla.get(f"/v1/jobs/{job['id']}/receipt").json()
    return found


def keys_of(house: House) -> dict[str, Any]:
    found: dict[str, Any] = house.client.request("GET", KEYS).json()
    return found


@pytest.fixture
def made(small_house: House) -> dict[str, Any]:
    small_house.ready()
    return receipt_of(small_house)


def person_house(house: House) -> None:
    assert house.create(**PERSON).status_code == 201
    rows = "a,b,who\n" + "".join(f"{i % 10},{i % 4},p{i % 70}\n" for i in range(200))
    assert house.upload(rows.encode()).status_code == 200
    assert house.grant().status_code == 200


@pytest.mark.both_databases
def test_a_receipt_is_signed_by_the_service_on_either_database(house: House) -> None:
    house.ready()
    made = receipt_of(house)
    assert made["format"] == 6
    keys = keys_of(house)
    assert verify(made, keys) == keys["keys"][0]["kid"]


def test_the_signature_is_no_part_of_what_the_digest_covers(made: dict[str, Any]) -> None:
    unsigned = {name: value for name, value in made.items() if name != "signature"}
    assert receipt.digest_of(unsigned) == made["digest"]


@pytest.mark.parametrize(
    "change",
    [
        {"analyst": "ben"},
        {"charged": {"epsilon": "0.01", "delta": "0"}},
        {"citation": "A perfectly private release."},
        {"queued_at": "2031-01-01T00:00:00.000Z"},
    ],
)
def test_a_changed_receipt_is_refused_even_with_a_new_digest(
    made: dict[str, Any], small_house: House, change: dict[str, Any]
) -> None:
    """Anybody can make a digest; nobody else can sign it."""
    keys = keys_of(small_house)
    changed = made | change
    with pytest.raises(InvalidReceipt, match="was changed"):
        verify(changed, keys)
    changed["digest"] = receipt.digest_of(changed)
    with pytest.raises(InvalidReceipt, match="the service did not sign"):
        verify(changed, keys)


def test_a_receipt_signed_by_somebody_else_is_refused(
    made: dict[str, Any], small_house: House, tmp_path: Path
) -> None:
    signing.make(tmp_path / "other.pem")
    forged = signing.load(tmp_path / "other.pem").sign("receipt", made["digest"])
    with pytest.raises(InvalidReceipt, match="not among the service's public keys"):
        verify(made | {"signature": forged}, keys_of(small_house))
    with pytest.raises(InvalidReceipt, match="did not sign"):
        verify(made | {"signature": forged | {"key": made["signature"]["key"]}}, keys_of(small_house))


@pytest.mark.parametrize(
    "change", [{"algorithm": "none"}, {"value": ""}, {"key": None}, {"algorithm": "ed25519"}]
)
def test_an_incomplete_signature_or_one_of_another_kind_is_refused(
    made: dict[str, Any], small_house: House, change: dict[str, Any]
) -> None:
    signature = made["signature"] | change
    with pytest.raises(InvalidReceipt, match="incomplete or not of the kind Ed25519"):
        verify(made | {"signature": signature}, keys_of(small_house))
    keys = signing.open_keys(small_house.settings)
    assert not keys.verifies("receipt", made["digest"], signature)


def test_an_empty_signature_counts_as_none(made: dict[str, Any], small_house: House) -> None:
    with pytest.raises(InvalidReceipt, match="is not signed"):
        verify(made | {"signature": {}}, keys_of(small_house))


def test_a_receipt_of_format_1_is_readable_and_called_unsigned(
    made: dict[str, Any], small_house: House
) -> None:
    earlier = {name: value for name, value in made.items() if name not in ("signature", "citation")}
    earlier["format"] = 1
    earlier["digest"] = receipt.digest_of(earlier)
    assert receipt.is_whole(earlier)
    with pytest.raises(InvalidReceipt, match=r"not signed \(format 1\)"):
        verify(earlier, keys_of(small_house))


def test_a_receipt_of_before_a_rotation_still_verifies(made: dict[str, Any], small_house: House) -> None:
    rotated = signing.rotate(small_house.settings.signing_key_path())
    assert verify(made, rotated.to_json()) != rotated.current


def test_a_receipt_holds_no_time_but_that_of_the_submission(made: dict[str, Any]) -> None:
    told = {name: value for name, value in made.items() if name != "queued_at"}
    assert re.findall(r"\d\d:\d\d", str(told)) == []
    assert set(re.findall(r"20\d\d-\d\d-\d\d", str(told))) == {made["queued_at"][:10]}


def test_what_the_curator_changes_during_a_run_does_not_reach_the_receipt(
    small_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would tell whether the run ended before or after the change."""
    small_house.ready(accountant="zcdp", budget={"epsilon": "1", "delta": "0.000002"})
    from core.algorithms import registry

    run = registry.run

    def raise_and_run(*arguments: Any) -> Any:
        raised = small_house.carla.post("/v1/datasets/flowers/budget", {"epsilon": "9", "delta": "0.001"})
        assert raised.status_code == 200
        return run(*arguments)

    plain = receipt_of(small_house)
    monkeypatch.setattr(registry, "run", raise_and_run)
    raced = receipt_of(small_house)
    assert raced["charged"] == plain["charged"]


@pytest.mark.parametrize("unit", ["row", "person"])
def test_neighbours_are_the_same_everywhere_in_a_receipt(small_house: House, unit: str) -> None:
    person_house(small_house) if unit == "person" else small_house.ready()
    made = receipt_of(small_house)
    words = {"row": "add or remove one record", "person": "add or remove all rows of one person"}[unit]
    assert made["neighbours"] == made["privacy"]["neighbours"] == words
    assert made["privacy"]["unit"] == made["privacy_unit"] == unit
    details = made["registry"]["deployment"]["privacy_loss"]
    assert words in details["privacy_unit_details"]
    assert details["privacy_unit"] == f"{unit.capitalize()}-level"


def test_a_rehearsal_is_signed_and_cites_and_registers_nothing(small_house: House) -> None:
    small_house.ready()
    made = receipt_of(small_house, rehearsal=True)
    verify(made, keys_of(small_house))
    assert (made["citation"], made["explanation"], made["registry"]) == (None, [], None)
    for write in (receipt.report, receipt.registry_entry):
        with pytest.raises(InvalidReceipt, match="rehearsal"):
            write(made)


def test_a_citation_names_dataset_job_software_and_guarantee(made: dict[str, Any]) -> None:
    for part in ("“flowers”", made["job"], "Cairn", "epsilon 0.25", "delta 0.000001", "each single row"):
        assert part in made["citation"]


def test_a_report_is_a_page_of_html_with_every_answer(made: dict[str, Any]) -> None:
    page = receipt.report(made)
    assert page.count("<dt>") == len(made["explanation"]) + 2
    assert "factor of at most 1.28" in page
    assert made["signature"]["key"] in page
    assert "<code>cairn verify</code>" in page
    assert "`" not in page
    assert "<script>" in made["job"] or "&lt;" in receipt.report(made | {"citation": "<b>"})


# --- the registry of deployments ----------------------------------------------------------------------------


def documented() -> dict[str, Any]:
    (fence,) = [fence for fence in fences("docs/receipts.md") if fence.language == "yaml"]
    found: dict[str, Any] = yaml.safe_load(fence.code)
    return found


def differences(entry: Any, fields: Any, place: str = "") -> list[str]:
    """Where an entry departs from the documented fields: names, kinds of values, listed words."""
    if isinstance(fields, dict):
        if not isinstance(entry, dict):
            return [f"{place} is no mapping"]
        unknown = [f"{place}.{name} is unknown" for name in entry.keys() - fields.keys()]
        missing = [
            f"{place}.{name} is missing"
            for name, value in fields.items()
            if name not in entry and not str(value).startswith("optional")
        ]
        inner = [differences(entry[name], fields[name], f"{place}.{name}") for name in entry.keys() & fields]
        return [*unknown, *missing, *(each for found in inner for each in found)]
    if isinstance(fields, list):
        return [each for item in entry for each in differences(item, fields[0], place)]
    kind, _, words = str(fields).removeprefix("optional ").partition(": ")
    expected: dict[str, type] = {"text": str, "number": float, "date": str, "whole": int, "word": str}
    if not isinstance(entry, expected[kind]):
        return [f"{place} is no {kind}"]
    said = str(entry)
    if kind == "date" and not re.fullmatch(r"\d{4}-\d\d-\d\d", said):
        return [f"{place} is no date"]
    if kind == "word" and said not in words.split(", ") and not said.startswith("FILL IN"):
        return [f"{place}: {entry} is not listed"]
    return []


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("delta", ["0", "0.000001"])
def test_an_entry_of_the_registry_has_the_documented_fields(
    small_house: House, unit: str, delta: str
) -> None:
    person_house(small_house) if unit == "person" else small_house.ready()
    written = receipt.registry_entry(receipt_of(small_house, delta=delta))
    entry = yaml.safe_load(written)
    assert differences(entry, documented()) == []
    variant = "Pure DP" if delta == "0" else "Approximate DP"
    assert entry["deployment"]["dp_variant"]["variant_name"] == variant


def test_an_entry_in_yaml_is_the_entry_of_the_receipt(made: dict[str, Any]) -> None:
    assert yaml.safe_load(receipt.registry_entry(made)) == made["registry"]


def test_the_comparison_notices_a_wrong_entry(made: dict[str, Any]) -> None:
    entry = made["registry"] | {"tier": "three", "colour": "blue"}
    del entry["status"]
    assert len(differences(entry, documented())) == 3
