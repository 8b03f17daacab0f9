"""One job for every k, with the client and with the command, against a real service with a real worker."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from cairn_client import InvalidRequest, Result
from tests.support.command import as_json, cairn
from tests.support.live import Live

pytestmark = pytest.mark.usefixtures("place")


def test_a_job_with_a_range_answers_for_every_k_and_makes_up_rows(live: Live, place: Path) -> None:
    owned = live.dataset(cap="1")
    mine = live.analyst().dataset(owned.name)
    result = mine.cluster(k=(1, 4), epsilon="0.5")
    assert result.facts.range is not None
    assert len(result.centres) == result.facts.range["suggested"]
    before = mine.refresh().cap
    for k in range(1, 5):
        other = result.at(k)
        assert other.centres.shape == (k, 2)
        assert other.facts.level is not None
        assert other.facts.level["k"] == k
        assert other.predict([[0.0, 0.0]]).shape == (1,)
        frame = other.frame()
        assert (frame["size_low"] <= frame["size_high"]).all()
        assert (frame["a_low"] <= frame["a"]).all()
    rows = result.sample(100)
    assert rows.shape == (100, 2)
    np.testing.assert_array_equal(rows[:10], result.sample(10))
    rehearsal = mine.cluster(k=1, epsilon="50", rehearse_on=result.facts.job)
    assert rehearsal.facts.rehearsal
    np.testing.assert_allclose(rehearsal.centres[0], result.sample(400).mean(axis=0), atol=0.05)
    assert mine.refresh().cap == before
    with pytest.raises(InvalidRequest, match="from 1 to 4"):
        result.at(5)
    assert len(as_json("result", result.facts.job, "--k", "3")["centres"]) == 3
    printed = cairn("result", result.facts.job, "--k", "2")
    assert "every k from 1 to 4 is free" in printed.stderr
    asked = ("submit", owned.name, "-k", "2", "--epsilon", "0.5", "--rehearse-on", result.facts.job[:8])
    assert "free of charge" in cairn(*asked).stderr
    assert as_json("jobs", "--limit", "1")[0]["request"]["rehearse_on"] == result.facts.job
    assert re.search(r"(?m)^ +1 +[\d,]+ +[\d,]+–[\d,]+ ", printed.stdout)
    result.save(place / "result.json")
    with pytest.raises(ValueError, match="fetch it again"):
        Result.load(place / "result.json").at(6)


def test_clusters_of_a_single_k_are_merged_into_fewer_and_not_split(live: Live) -> None:
    owned = live.dataset(cap="1")
    result = live.analyst().dataset(owned.name).cluster(k=3, epsilon="0.5", algorithm="sulq")
    fewer = result.at(2)
    assert fewer.facts.merged is not None
    assert fewer.facts.merged["of"] == 3
    assert result.sizes is not None
    assert fewer.sizes is not None
    assert fewer.sizes.sum() == pytest.approx(result.sizes.sum())
    assert fewer.predict([[0.0, 0.0]]).shape == (1,)
    printed = cairn("result", result.facts.job, "--k", "2")
    assert "of 3 clusters that were merged" in printed.stderr
    assert "(noise only)" in printed.stderr
    with pytest.raises(InvalidRequest, match="for k = 3, and for fewer"):
        result.at(4)
    with pytest.raises(ValueError, match=r"k=\(1, 32\)"):
        result.sample()


def test_a_range_is_written_with_a_dash_on_the_command_line(live: Live) -> None:
    owned = live.dataset(cap="1")
    cairn("submit", owned.name, "-k", "1-3", "--epsilon", "0.5", "--rehearsal")
    assert as_json("jobs", "--limit", "1")[0]["request"]["k"] == {"from": 1, "to": 3}
    assert " 1-3 " in cairn("jobs", "--limit", "1").stdout
    assert "such as 1-32" in cairn("submit", owned.name, "-k", "many", "--epsilon", "1", code=2).stderr
