"""A probe measures what was planned, as often as planned, and checks before it reads."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from core.data import ArraySource, Chunk, ChunkLoader, Dense
from core.errors import PlanViolation
from core.mechanisms.choice import Choice
from core.mechanisms.noise import GaussianNoise, L2Noise, LaplaceNoise
from core.plan import Plan, Step
from core.privacy import Budget
from core.probe import Probe
from core.statistics.counts import ClusterCounts, Count
from core.statistics.sums import ResidualSums, Sums
from core.views import Assigned, Encoded
from tests.support.bits import inject_bytes

DOMAIN = Dense.box(0, 1, dimension=2, size=100)
OTHER = Dense.box(0, 2, dimension=2, size=100)


class UnreadableLoader:
    """Fails the test when a row is read."""

    key = "unreadable"

    def __call__(self) -> Chunk:
        raise AssertionError("a row was read")


class UnreadableSource:
    domain = DOMAIN

    def loaders(self) -> Sequence[ChunkLoader]:
        return [UnreadableLoader()]


def make_plan(*steps: Step, domain: Dense = DOMAIN) -> Plan:
    return Plan("test", "means", 2, domain, Budget.of(1000, "0.001"), steps)


COUNT_TWICE = Step("count", LaplaceNoise(1.0), Count.kind, 2)


def test_a_step_that_is_not_planned_is_refused_before_a_row_is_read() -> None:
    probe = Probe(make_plan(COUNT_TWICE), UnreadableSource())
    with pytest.raises(PlanViolation, match="no step named"):
        probe.measure("sums", Count(DOMAIN.fingerprint))


def test_another_statistic_than_planned_is_refused_before_a_row_is_read() -> None:
    probe = Probe(make_plan(COUNT_TWICE), UnreadableSource())
    with pytest.raises(PlanViolation, match="measures count, not sums"):
        probe.measure("count", Sums(Encoded.of(DOMAIN)))


def test_a_statistic_for_another_domain_is_refused_before_a_row_is_read() -> None:
    probe = Probe(make_plan(COUNT_TWICE), UnreadableSource())
    with pytest.raises(PlanViolation, match="another domain"):
        probe.measure("count", Count(OTHER.fingerprint))


def test_a_plan_for_another_domain_is_refused_before_a_row_is_read() -> None:
    with pytest.raises(PlanViolation, match="another domain"):
        Probe(make_plan(COUNT_TWICE, domain=OTHER), UnreadableSource())


def test_one_repetition_too_many_is_refused_before_a_row_is_read() -> None:
    probe = Probe(make_plan(COUNT_TWICE), UnreadableSource())
    for _ in range(2):
        with pytest.raises(AssertionError, match="a row was read"):
            probe.measure("count", Count(DOMAIN.fingerprint))
    with pytest.raises(PlanViolation, match="used up"):
        probe.measure("count", Count(DOMAIN.fingerprint))


def test_a_measurement_that_fails_is_spent() -> None:
    once = Step("count", LaplaceNoise(1.0), Count.kind)
    probe = Probe(make_plan(once), UnreadableSource())
    with pytest.raises(AssertionError):
        probe.measure("count", Count(DOMAIN.fingerprint))
    with pytest.raises(PlanViolation, match="used up"):
        probe.measure("count", Count(DOMAIN.fingerprint))


def test_an_empty_dataset_is_measured_like_any_other() -> None:
    probe = Probe(make_plan(COUNT_TWICE), ArraySource(DOMAIN, np.empty((0, 2))))
    assert probe.measure("count", Count(DOMAIN.fingerprint)).shape == (1,)


def test_the_transcript_holds_every_release_and_the_listener_hears_of_it() -> None:
    heard: list[tuple[str, int, int]] = []
    source = ArraySource(DOMAIN, np.full((50, 2), 0.5))
    probe = Probe(make_plan(COUNT_TWICE), source, listener=lambda *news: heard.append(news))
    values = [probe.measure("count", Count(DOMAIN.fingerprint)) for _ in range(2)]
    assert heard == [("count", 1, 2), ("count", 2, 2)]
    assert [release.values is value for release, value in zip(probe.transcript, values, strict=True)] == [
        True,
        True,
    ]


def test_public_randomness_is_recorded_and_drawn_once_per_name() -> None:
    probe = Probe(make_plan(COUNT_TWICE), UnreadableSource())
    drawn = probe.draw("projection").normal(size=3)
    again = np.random.default_rng(int(probe.draws["projection"], 16)).normal(size=3)
    assert np.array_equal(drawn, again)
    with pytest.raises(PlanViolation, match="drawn already"):
        probe.draw("projection")


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_any_executor_measures_the_same_integers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(3).uniform(size=(500, 2))
    source = ArraySource(DOMAIN, rows, chunk_rows=37)
    assigned = Assigned(Encoded.of(DOMAIN), np.array([[0, 0], [9000, 9000]]))
    steps = (
        Step("counts", GaussianNoise(1.0), ClusterCounts.kind),
        Step("sums", L2Noise(1.0), ResidualSums.kind),
        Step("pick", Choice(1.0), ClusterCounts.kind),
    )
    pools: dict[str, Callable[[], Executor]] = {
        "threads": lambda: ThreadPoolExecutor(2),
        "processes": lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")),
    }
    released = []
    with pools[kind]() as pool:
        for executor in (None, pool):
            inject_bytes(monkeypatch, 1)
            probe = Probe(make_plan(*steps), source, executor)
            probe.measure("counts", ClusterCounts(assigned))
            probe.measure("sums", ResidualSums(assigned, np.array([5000, 20000])))
            probe.measure("pick", ClusterCounts(assigned))
            released.append([release.values.tolist() for release in probe.transcript])
    assert released[0] == released[1]
