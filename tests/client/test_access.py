"""Requests for access by the client and the command."""

from __future__ import annotations

import json

import pytest

from cairn_client import BudgetExhausted, errors
from tests.support.command import cairn
from tests.support.live import Live


@pytest.mark.usefixtures("as_curator")
def test_a_refused_job_is_requested_granted_by_half_and_submitted(live: Live) -> None:
    owned = live.dataset(cap="0.5", epsilon="3")
    dataset = live.analyst().dataset(owned.name)
    with pytest.raises(BudgetExhausted) as refused:
        dataset.submit(2, 2, 0)
    cap = refused.value.fields["request"]
    assert cap["epsilon"] == "2"
    request = dataset.request_access(epsilon=cap["epsilon"], purpose="frailty", plan={"k": 2, "epsilon": "2"})
    shown = cairn("request", "show", request.id).stdout
    assert "2 centres" in shown
    assert "left of the dataset" in shown
    assert request.id[:8] in cairn("requests", "--waiting", "--dataset", owned.name).stdout
    said = cairn("request", "grant", request.id, "--epsilon", "1", "--reason", "half").stdout
    assert "granted, a cap of epsilon 1" in said
    assert (request.refresh().reason, request.state) == ("half", "granted")
    assert dataset.submit(2, 1, 0).id
    with pytest.raises(errors.AlreadyDecided):
        request.withdraw()
    second = dataset.request_access(epsilon=3)
    cairn("request", "decline", second.id, "--reason", "no")
    listed = json.loads(cairn("requests", "--dataset", owned.name, "--json").stdout)
    assert [each["state"] for each in listed] == ["declined", "granted"]
