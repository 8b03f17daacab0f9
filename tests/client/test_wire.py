"""The client's own wire types say what the service's say, and pass over what they do not know."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from cairn_client import errors, wire
from cairn_client.conversion import read, to_json
from cairn_client.wire import Amount, DatasetFacts, JobFacts, NewKey, amount_text
from service import errors as service_errors
from service.datasets import bounds_wire, preview_routes
from service.datasets import wire as datasets
from service.datasets.catalogue import wire as catalogue
from service.datasets.periods import wire as periods
from service.datasets.populations import wire as populations
from service.datasets.public_rows import wire as public_rows
from service.datasets.sites import wire as sites
from service.jobs import request_wire as requests
from service.jobs import wire as jobs
from service.jobs.results import wire as results
from service.people import wire as people

PAIRS: list[tuple[type, type[BaseModel]]] = [
    (wire.AccessRequestFacts, requests.AccessRequestFacts),
    (wire.Account, datasets.BudgetFacts),
    (wire.AlgorithmFacts, jobs.AlgorithmFacts),
    (wire.Amount, datasets.AmountFacts),
    (wire.AuditEntry, people.AuditEntry),
    (wire.CatalogueEntry, catalogue.CatalogueEntry),
    (wire.ColumnReport, datasets.ColumnReport),
    (wire.CorrectionFacts, datasets.CorrectionFacts),
    (wire.DatasetFacts, datasets.DatasetFacts),
    (wire.DoubtReport, datasets.DoubtReport),
    (wire.FindingsFacts, results.FindingsFacts),
    (wire.DifferencesFacts, results.DifferencesFacts),
    (wire.GrantFacts, datasets.GrantFacts),
    (wire.IdentityFacts, people.IdentityFacts),
    (wire.JobFacts, jobs.JobFacts),
    (wire.JobProgress, jobs.JobProgress),
    (wire.KeyFacts, people.KeyFacts),
    (wire.KindFacts, jobs.KindFacts),
    (wire.LedgerRow, datasets.LedgerRow),
    (wire.ListingFacts, catalogue.ListingFacts),
    (wire.MemberFacts, populations.MemberFacts),
    (wire.NewKey, people.NewKey),
    (wire.NewPrincipal, people.NewPrincipal),
    (wire.NoiseFacts, results.NoiseFacts),
    (wire.Others, requests.Others),
    (wire.PeriodFacts, periods.PeriodFacts),
    (wire.PlanFacts, jobs.Quote),
    (wire.PlanSummary, requests.PlanSummary),
    (wire.OfPerson, jobs.OfPerson),
    (wire.OtherMembers, populations.OtherMembers),
    (wire.PopulationFacts, populations.PopulationFacts),
    (wire.PopulationOfDataset, datasets.PopulationOfDataset),
    (wire.PreviewFacts, preview_routes.PreviewFacts),
    (wire.PrincipalFacts, people.PrincipalFacts),
    (wire.PublicRowSetFacts, public_rows.PublicRowSetFacts),
    (wire.ResultFacts, results.ResultFacts),
    (wire.Retirement, datasets.Retirement),
    (wire.SessionFacts, people.SessionFacts),
    (wire.ShownGroup, catalogue.ShownGroup),
    (wire.SiteSetFacts, sites.SiteSetFacts),
    (wire.Standing, requests.Standing),
    (wire.UploadReport, datasets.UploadReport),
    (wire.VerifyReport, datasets.VerifyReport),
    (wire.WantedFacts, requests.WantedFacts),
    (wire.WhoAmI, people.WhoAmI),
    (wire.WorkingBoundsFacts, bounds_wire.WorkingBounds),
    (wire.WorkingColumn, bounds_wire.WorkingColumn),
]


def example(model: type[BaseModel]) -> dict[str, Any]:
    extra: Any = model.model_config["json_schema_extra"]
    found: dict[str, Any] = extra["examples"][0]
    return found


@pytest.mark.parametrize(("own", "served"), PAIRS, ids=lambda kind: kind.__name__)
def test_each_wire_type_has_the_fields_that_the_service_sends(own: type, served: type[BaseModel]) -> None:
    assert {each.name for each in fields(own)} == set(served.model_fields)


def test_every_wire_type_is_compared_with_the_service() -> None:
    assert {kind for kind in vars(wire).values() if is_dataclass(kind)} == {own for own, _ in PAIRS}


@pytest.mark.parametrize(
    ("own", "served"),
    [pair for pair in PAIRS if "json_schema_extra" in pair[1].model_config],
    ids=lambda kind: kind.__name__,
)
def test_what_was_read_is_written_as_it_came(own: type, served: type[BaseModel]) -> None:
    assert to_json(read(own, example(served))) == example(served)


def test_every_problem_of_the_service_has_a_class_here() -> None:
    assert set(errors.PROBLEMS) == set(service_errors.PROBLEMS)


def test_a_problem_of_a_newer_service_is_still_a_problem() -> None:
    found = errors.problem_from(418, {"type": "/problems/teapot", "detail": "no coffee"}, None)
    assert (type(found), str(found)) == (errors.Problem, "no coffee")


def test_an_exhausted_budget_carries_requested_and_remaining() -> None:
    numbers = {name: {"epsilon": "1", "delta": "0"} for name in ("requested", "spent", "reserved")}
    found = errors.problem_from(
        409,
        {
            "type": "/problems/budget-exhausted",
            "detail": "no",
            **numbers,
            "remaining": {"epsilon": "0.25", "delta": "0"},
        },
        None,
    )
    assert isinstance(found, errors.BudgetExhausted)
    assert found.requested.epsilon == 1
    assert found.remaining.epsilon == Decimal("0.25")


def test_fields_of_a_newer_service_are_passed_over() -> None:
    assert read(Amount, {"epsilon": "1", "delta": "0", "colour": "blue"}).epsilon == 1


def test_what_is_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="not a JobFacts"):
        read(JobFacts, {"id": "x"})
    with pytest.raises(ValueError, match="not a DatasetFacts"):
        read(DatasetFacts, ["a", "list"])


def test_a_new_key_does_not_show_its_secret() -> None:
    assert "secret" not in repr(read(NewKey, {**example(people.NewKey), "key": "secret"}))


@given(st.integers(1, 10**15).map(lambda units: Decimal(units) / 10**12))
def test_decimals_are_sent_exactly(amount: Decimal) -> None:
    assert Decimal(amount_text(amount)) == amount
    assert "E" not in amount_text(amount)


@pytest.mark.parametrize(
    ("given_as", "sent"), [(1, "1"), (0.1, "0.1"), (1e-6, "0.000001"), ("0.50", "0.50"), ("1e-6", "0.000001")]
)
def test_a_number_is_sent_as_it_is_written(given_as: wire.Number, sent: str) -> None:
    assert amount_text(given_as) == sent


@pytest.mark.parametrize("wrong", [True, "much", float("nan"), "inf"])
def test_what_is_no_amount_is_refused_before_it_is_sent(wrong: Any) -> None:
    with pytest.raises(ValueError, match="not an amount"):
        amount_text(wrong)
