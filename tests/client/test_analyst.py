"""The analyst's story with the Python client, against a real service with real workers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cairn_client import (
    BudgetExhausted,
    CapExhausted,
    Forbidden,
    InvalidRequest,
    Job,
    JobCancelled,
    NotCancellable,
    NotFound,
    NotSealed,
    Result,
    Retired,
    UnknownAlgorithm,
    WaitTimeout,
    is_whole,
)
from cairn_client.errors import DamagedTranscript, QuoteMismatch
from cairn_client.transport import Transport
from cairn_client.wire import JobFacts
from tests.support.live import Live


@pytest.fixture(scope="module")
def finished(live: Live) -> Job:
    """A job that has succeeded, for tests that only look."""
    owned = live.dataset(cap="1")
    return live.analyst().dataset(owned.name).submit(k=2, epsilon="0.5", algorithm="sulq").wait()


@pytest.fixture
def queued(live: Live) -> Job:
    """A job behind a long rehearsal, so that no worker takes it for a while."""
    visits = live.analyst().dataset("visits")
    visits.submit(k=300, epsilon=1, algorithm="sulq", options={"rounds": 60}, rehearsal=True)
    return visits.submit(k=2, epsilon=1, algorithm="sulq", rehearsal=True)


def test_plan_and_job_cost_the_same_and_the_ledger_says_so(live: Live) -> None:
    owned = live.dataset(cap="1")
    mine = live.analyst().dataset(owned.name)
    plan = mine.plan(k=2, epsilon=0.25, algorithm="sulq")
    assert repr(plan).startswith("<Plan by sulq: epsilon 0.25, delta ")
    assert "Would remain of the cap" in plan._repr_html_()
    assert plan.fits
    assert plan.remaining_after is not None
    assert plan.remaining_after["cap"].epsilon == Decimal("0.75")
    with pytest.raises(QuoteMismatch):
        mine.submit(k=2, epsilon=0.5, algorithm="sulq", quote=plan.quote)
    job = mine.submit(k=2, epsilon=0.25, algorithm="sulq", quote=plan.quote)
    assert job.facts.cost == plan.cost
    assert job.facts.plan_digest == plan.digest
    job.wait()
    assert mine.refresh().cap is not None
    assert [row.kind for row in mine.ledger() if row.job == job.id] == ["reserve", "charge"]
    assert mine.facts.cap is not None
    assert mine.facts.cap.spent.epsilon == Decimal("0.25")


def test_a_plan_tells_the_noise_in_sizes_that_the_result_confirms(live: Live, finished: Job) -> None:
    plan = live.analyst().dataset(finished.facts.dataset).plan(k=2, epsilon="0.5", algorithm="sulq")
    assert plan.average_size == 200
    assert plan.size_error == finished.result().size_error
    assert plan.size_error is not None


def test_a_result_has_centres_inside_the_bounds_and_a_whole_receipt(finished: Job) -> None:
    result = finished.result()
    assert isinstance(result, Result)
    assert result.centres.shape == (2, 2)
    assert (result.centres >= 0).all()
    assert (result.centres <= [10, 4]).all()
    assert is_whole(result.receipt)
    assert set(result.predict(np.array([[0.0, 0.0], [10.0, 4.0]])).tolist()) <= {0, 1}


def test_a_transcript_is_checked_against_the_receipt(finished: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    receipt, content = finished.receipt(), finished.transcript()
    assert len(content) == receipt["transcript"]["bytes"]
    monkeypatch.setattr(Job, "receipt", lambda _: {**receipt, "transcript": {"sha256": "0" * 64}})
    with pytest.raises(DamagedTranscript, match="not the transcript"):
        finished.transcript()


def test_a_job_is_found_again_by_its_id_and_as_the_newest(live: Live, finished: Job) -> None:
    client = live.analyst()
    again = client.job(finished.id)
    assert again.state == "succeeded"
    assert np.array_equal(again.result().centres, finished.result().centres)
    assert client.job().id == client.jobs(limit=1)[0].id


def test_progress_is_told_while_waiting_and_ended_with_none(live: Live) -> None:
    seen: list[JobFacts | None] = []
    visits = live.analyst().dataset("visits")
    visits.cluster(k=2, epsilon=1, algorithm="sulq", rehearsal=True, progress=seen.append)
    assert seen[-1] is None
    assert seen[-2] is not None
    assert seen[-2].state == "succeeded"


def test_not_waiting_returns_the_job_at_once(live: Live) -> None:
    job = live.analyst().dataset("visits").cluster(k=2, epsilon=1, wait=False, rehearsal=True)
    assert isinstance(job, Job)
    assert job.result().facts.rehearsal


def test_waiting_too_long_says_how_to_come_back(queued: Job) -> None:
    with pytest.raises(WaitTimeout, match="return to it with"):
        queued.wait(timeout=0, progress=False)


def test_stopping_while_waiting_leaves_the_job_and_says_how_to_come_back(queued: Job) -> None:
    def stop(job: JobFacts | None) -> None:
        if job is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        queued.wait(progress=stop)
    assert "The job keeps running: return" in stopped.value.__notes__[0]
    assert queued.refresh().state != "cancelled"


def test_a_queued_job_is_cancelled_and_has_no_result(queued: Job) -> None:
    assert queued.cancel().state == "cancelled"
    with pytest.raises(JobCancelled, match="submit it again"):
        queued.result()


def test_a_finished_job_cannot_be_cancelled(finished: Job) -> None:
    with pytest.raises(NotCancellable):
        finished.cancel()


def test_more_than_the_cap_is_refused_with_the_numbers(live: Live) -> None:
    owned = live.dataset(epsilon="2", cap="0.5")
    with pytest.raises(CapExhausted) as refusal:
        live.analyst().dataset(owned.name).submit(k=2, epsilon="0.75")
    assert refusal.value.requested.epsilon == Decimal("0.75")
    assert refusal.value.remaining.epsilon == Decimal("0.5")
    assert "request a larger cap" in str(refusal.value)


def test_more_than_the_budget_is_refused_with_the_numbers(live: Live) -> None:
    owned = live.dataset(epsilon="2", cap="2")
    with pytest.raises(BudgetExhausted) as refusal:
        live.analyst().dataset(owned.name).submit(k=2, epsilon="3")
    assert not isinstance(refusal.value, CapExhausted)
    assert refusal.value.requested.epsilon == 3
    assert refusal.value.remaining.epsilon == 2
    assert refusal.value.spent.epsilon == refusal.value.reserved.epsilon == 0


def test_an_own_idempotency_key_gives_the_same_job(live: Live) -> None:
    owned = live.dataset(cap="1")
    mine = live.analyst().dataset(owned.name)
    jobs = {mine.submit(k=2, epsilon="0.5", idempotency_key=f"{owned.name}-once").id for _ in range(2)}
    assert len(jobs) == 1


def test_an_own_key_finds_its_job_even_where_no_plan_is_possible_any_more(live: Live) -> None:
    owned = live.dataset(cap="1")
    mine = live.analyst().dataset(owned.name)
    first = mine.submit(k=2, epsilon="0.5", idempotency_key=f"{owned.name}-once").wait()
    owned.retire()
    assert mine.submit(k=2, epsilon="0.5", idempotency_key=f"{owned.name}-once").id == first.id
    with pytest.raises(Retired):
        mine.submit(k=2, epsilon="0.5", idempotency_key=f"{owned.name}-twice")


@pytest.mark.parametrize("rehearsal", [False, True])
def test_a_job_is_always_submitted_with_the_quote_of_its_plan(
    live: Live, monkeypatch: pytest.MonkeyPatch, rehearsal: bool
) -> None:
    owned = live.dataset(cap="1")
    client = live.analyst()
    sent: list[tuple[str, dict[str, Any]]] = []
    real = Transport.call

    def note(self: Transport, method: str, path: str, **options: Any) -> Any:
        sent.append((path, options.get("body") or {}))
        return real(self, method, path, **options)

    monkeypatch.setattr(Transport, "call", note)
    client.dataset(owned.name).submit(k=2, epsilon="0.25", algorithm="sulq", rehearsal=rehearsal)
    (planned, plan), (submitted, job) = sent
    assert (planned, submitted) == ("/v1/plans", "/v1/jobs")
    assert job == {**plan, "quote": job["quote"]}


def test_a_price_that_changes_between_plan_and_submission_is_not_charged(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    owned = live.dataset(cap="1")
    mine = live.analyst().dataset(owned.name)
    real = Transport.call

    def dearer(self: Transport, method: str, path: str, **options: Any) -> Any:
        """Stands for a service that plans differently by then."""
        if path == "/v1/jobs":
            options["body"] = {**options["body"], "epsilon": "0.75"}
        return real(self, method, path, **options)

    monkeypatch.setattr(Transport, "call", dearer)
    with pytest.raises(QuoteMismatch):
        mine.submit(k=2, epsilon="0.25", algorithm="sulq")
    assert [entry for entry in owned.ledger() if entry.kind == "reserve"] == []


def test_a_dataset_without_data_says_that_the_curator_must_upload(live: Live) -> None:
    owned = live.dataset(rows=None)
    owned.grant("analyst", 1, "0.00005")
    with pytest.raises(NotSealed, match="until its curator has uploaded"):
        live.analyst().dataset(owned.name).plan(k=2, epsilon=1)


def test_what_is_wrong_with_a_request_is_named(live: Live) -> None:
    visits = live.analyst().dataset("visits")
    with pytest.raises(InvalidRequest) as refusal:
        visits.plan(k=0, epsilon=1)
    assert refusal.value.errors[0]["where"] == "k"
    with pytest.raises(UnknownAlgorithm):
        visits.plan(k=2, epsilon=1, algorithm="magic")


def test_a_dataset_without_a_grant_looks_as_if_it_were_not_there(live: Live) -> None:
    owned = live.dataset(rows=None)
    with pytest.raises(NotFound):
        live.analyst().dataset(owned.name).refresh()


def test_an_analyst_cannot_do_what_curators_do(live: Live) -> None:
    with pytest.raises(Forbidden):
        live.analyst().principals()


def test_a_job_is_found_by_the_first_characters_of_its_id(live: Live, finished: Job) -> None:
    client = live.analyst()
    assert client.job(finished.id[:8]).id == finished.id
    assert client.job(finished.id[:20].upper()).id == finished.id
    with pytest.raises(NotFound, match="no job whose id begins with 'zzz'"):
        client.job("zzz")


def test_the_beginning_of_several_job_ids_is_ambiguous(live: Live) -> None:
    visits = live.analyst().dataset("visits")
    firsts = [job.id[0] for job in live.analyst().jobs()]
    while len(firsts) == len(set(firsts)):  # ends: there are 16 characters to begin with
        firsts.append(visits.submit(k=2, epsilon=1, algorithm="sulq", rehearsal=True).id[0])
    shared = next(each for each in firsts if firsts.count(each) > 1)
    with pytest.raises(ValueError, match=f"job ids begin with '{shared}': type more of it"):
        live.analyst().job(shared)


def test_a_plan_shows_what_the_service_says_of_its_accuracy(live: Live) -> None:
    visits = live.analyst().dataset("visits")
    plans = [visits.plan(k=3, epsilon=epsilon, delta=1e-6) for epsilon in ("0.02", "0.1", "4")]
    assert [plan.accuracy["verdict"]["tone"] for plan in plans] == ["bad", "warn", "good"]
    assert all(plan.verdict == plan.accuracy["verdict"]["sentence"] for plan in plans)


def test_an_amount_is_rounded_for_people_and_exact_in_its_fields(finished: Job) -> None:
    assert str(finished.facts.cost) == "epsilon 0.5, delta 1e-6"
    assert finished.facts.cost.delta == Decimal("0.000001")


def test_a_result_is_complete_after_its_client_is_closed(live: Live, tmp_path: Path) -> None:
    with live.analyst() as client:
        result = client.dataset("visits").cluster(k=2, epsilon=1, algorithm="sulq", rehearsal=True)
    result.save(tmp_path / "result.json")
    loaded = Result.load(tmp_path / "result.json")
    assert is_whole(loaded.receipt)
    assert np.array_equal(loaded.centres, result.centres)
    rows = [[10.0, 9.0], [80.0, 19.5]]
    assert loaded.predict(rows).tolist() == result.predict(rows).tolist()
    assert loaded.plot() is not None


def test_lists_are_read_page_by_page(live: Live, finished: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    client = live.analyst()
    everything = [job.id for job in client.jobs()]
    monkeypatch.setattr("cairn_client.transport._PAGE", 1)
    assert [job.id for job in client.jobs()] == everything
    assert finished.id in everything
    assert [job.id for job in client.jobs(limit=2)] == everything[:2]
    assert {algorithm.name for algorithm in client.algorithms()} >= {"summit", "sulq"}
