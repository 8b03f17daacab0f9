"""Transcripts hold what was released and nothing else, and refuse what they would not have written."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from core.algorithms import registry
from core.algorithms.base import Clustering
from core.coverage.coins import Coins
from core.data import ArraySource, Dense
from core.errors import InvalidTranscript
from core.jobs.transcript import Transcript
from core.mechanisms import sampler
from core.plan import Request
from core.privacy import Budget
from core.probe import Release

DOMAIN = Dense.box(0, 1, dimension=2, size=200)
ROWS = ArraySource(DOMAIN, np.random.default_rng(5).uniform(size=(150, 2)))


def run(algorithm: str = "sulq", **options: object) -> Clustering:
    objective = registry.get(algorithm).objectives[0]
    return registry.run(
        registry.plan(DOMAIN, Request(2, Budget.of(4, "0.001"), objective, algorithm, options)), ROWS
    )


@pytest.fixture(scope="module")
def clustering() -> Clustering:
    return run()


@pytest.fixture(scope="module")
def content(clustering: Clustering) -> bytes:
    return b"".join(Transcript.of(clustering).parts())


def test_what_is_written_is_what_is_read(clustering: Clustering, content: bytes) -> None:
    read = Transcript.read(content, DOMAIN)
    assert read.plan.digest == clustering.plan.digest
    assert [each.step for each in read.releases] == [each.step for each in clustering.releases]
    for one, other in zip(read.releases, clustering.releases, strict=True):
        assert np.array_equal(one.values, other.values)


def test_the_file_is_its_header_and_the_released_integers(clustering: Clustering, content: bytes) -> None:
    title, line, numbers = content.split(b"\n", 2)
    assert title == b"cairn transcript 1"
    header = json.loads(line)
    assert set(header) == {"plan", "draws", "sites", "releases"}
    arrays = [each["type"] + str(each["shape"]) for each in header["releases"]]
    assert len(arrays) == len(clustering.releases)
    values = np.concatenate([each.values.ravel() for each in clustering.releases])
    assert len(numbers) < 8 * values.size


def test_coins_and_noise_are_in_no_transcript(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every secret byte that was drawn, and every total before noise, is looked for in the file."""
    drawn: list[bytes] = []
    real, coins = sampler.random_bytes, []

    def record(count: int) -> bytes:
        drawn.append(real(count))
        return drawn[-1]

    def keep(key: bytes, chance: int) -> Coins:
        coins.append(key)
        return Coins(key, chance)

    monkeypatch.setattr(sampler, "random_bytes", record)
    monkeypatch.setattr("core.probe.random_bytes", record)
    monkeypatch.setattr("core.probe.Coins", keep)
    sites = {"kind": "coordinates", "points": [[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]}
    found = run("jones", sites=sites, rounds=2)
    text = b"".join(Transcript.of(found).parts())
    seeds = {bytes.fromhex(seed) for seed in found.draws.values()}
    assert coins
    assert all(key not in text and key.hex().encode() not in text for key in coins)
    secret = [each for each in drawn if len(each) >= 8 and each not in seeds]
    assert not [each for each in secret if each in text or each.hex().encode() in text]


@pytest.mark.parametrize("damage", ["cut", "longer", "title", "header", "type", "shape"])
def test_a_damaged_file_is_refused(content: bytes, damage: str) -> None:
    damaged = {
        "cut": content[:-1],
        "longer": content + b"\0",
        "title": content.replace(b"cairn", b"Cairn", 1),
        "header": content.replace(b'"releases"', b'"releaseS"', 1),
        "type": content.replace(b'"<i', b'"<f', 1),
        "shape": content.replace(b'"shape":[', b'"shape":[-1,', 1),
    }[damage]
    with pytest.raises(InvalidTranscript):
        Transcript.read(damaged, DOMAIN)


def test_a_transcript_of_another_domain_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidTranscript, match="public inputs"):
        Transcript.read(content, Dense.box(0, 2, dimension=2, size=200))


def test_a_transcript_that_lacks_a_release_is_refused(clustering: Clustering) -> None:
    whole = Transcript.of(clustering)
    with pytest.raises(InvalidTranscript, match="in this place"):
        replace(whole, releases=whole.releases[:-1]).replay()


def test_a_transcript_with_more_than_the_run_released_is_refused(clustering: Clustering) -> None:
    whole = Transcript.of(clustering)
    with pytest.raises(InvalidTranscript, match="more than"):
        replace(whole, releases=[*whole.releases, whole.releases[-1]]).replay()


def test_values_of_another_shape_are_refused(clustering: Clustering) -> None:
    whole = Transcript.of(clustering)
    first = Release(whole.releases[0].step, np.zeros((7, 7, 7), dtype=np.int64))
    with pytest.raises(InvalidTranscript, match="does not fit"):
        replace(whole, releases=[first, *whole.releases[1:]]).replay()
