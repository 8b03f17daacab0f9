"""Histograms, tables and departures count what they say; twins that break their arguments are caught."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from core.data import UNITS, Chunk
from core.mechanisms.choice import TopChoice
from core.privacy.losses import Pure
from core.statistics.base import Statistic
from core.statistics.histograms import WHOLE, CellCounts, Departures, Histograms, PickedHistograms
from core.views import Assigned, Binning, Bins, Encoded
from tests.support.rows import DENSE, chunk_of
from tests.support.statistics import CODE_BINS, SIGNED_BINS

ROWS = np.random.default_rng(6).integers(-20_000, 20_000, size=(60, 3))
GROUP = Assigned(Encoded.of(DENSE), np.array([[-9000, 0, 0], [9000, 0, 0], [0, 30_000, 0]]))


def bins_of(row: np.ndarray, bins: Bins) -> list[int]:
    """The bin of a record in each binning, one edge after the other."""
    found = []
    for binning in bins.binnings:
        value = int(row[binning.place])
        inner = binning.edges[1:-1]
        missing = binning.missing and value & 0xFFFF == 0xFFFF
        found.append(binning.bins - 1 if missing else sum(value >= edge for edge in inner))
    return found


def label(row: np.ndarray) -> int:
    return int(((GROUP.centres - row) ** 2).sum(axis=1).argmin())


def test_counts_are_those_of_records_one_by_one() -> None:
    chunk = chunk_of(ROWS)
    cells = np.zeros((3, *SIGNED_BINS.widths), dtype=np.int64)
    side = np.zeros((3, sum(SIGNED_BINS.widths)), dtype=np.int64)
    starts = np.cumsum([0, *SIGNED_BINS.widths])[:-1]
    for row in ROWS:
        found = bins_of(row, SIGNED_BINS)
        cells[(label(row), *found)] += 1
        side[label(row), starts + found] += 1
    assert np.array_equal(CellCounts(SIGNED_BINS, (GROUP,)).of(chunk), cells)
    assert np.array_equal(Histograms(SIGNED_BINS, GROUP).of(chunk), side)
    assert np.array_equal(Histograms(SIGNED_BINS, None).of(chunk)[0], side.sum(axis=0))
    picked = PickedHistograms(SIGNED_BINS, GROUP, np.array([[2], [0], [1]])).of(chunk)
    assert picked[:, 0, :].tolist() == [
        [*side[0, 4:6], 0],
        side[1, 0:3].tolist(),
        [side[2, 3], 0, 0],
    ]


def test_every_code_has_a_bin_and_missing_values_have_their_own() -> None:
    codes = np.array([[0, 0, 0], [500, 1, 9], [65_535, 7, 65_535]], dtype=np.uint16)
    found = Histograms(CODE_BINS, None).of(Chunk(codes, 0, "codes"))[0]
    assert found.tolist() == [1, 2, 1, 2, 1, *([0] * 8), 1, 1]


def test_a_departure_is_the_distance_to_the_reference_times_the_size() -> None:
    reference = np.concatenate(
        [np.diff(np.linspace(0, WHOLE, width + 1).astype(np.int64)) for width in SIGNED_BINS.widths]
    )
    statistic = Departures(SIGNED_BINS, GROUP, reference)
    histograms = statistic.of(chunk_of(ROWS))
    scores = statistic.finish(histograms) / (2 * WHOLE)
    for cluster, row in enumerate(histograms):
        parts = zip(statistic.parts(row), statistic.parts(reference), strict=True)
        for place, (counts, shares) in enumerate(parts):
            distance = np.abs(counts / counts.sum() - shares / WHOLE).sum() / 2
            assert scores[cluster, place] == pytest.approx(distance * counts.sum())


@pytest.mark.parametrize(
    "make",
    [
        lambda: Binning(0, (5, 5)),
        lambda: Binning(0, (5,)),
        lambda: PickedHistograms(SIGNED_BINS, GROUP, np.array([[0, 0], [0, 1], [0, 1]])),
        lambda: PickedHistograms(SIGNED_BINS, GROUP, np.array([[0, 1]])),
        lambda: Departures(SIGNED_BINS, GROUP, np.full(sum(SIGNED_BINS.widths), WHOLE)),
        lambda: Departures(SIGNED_BINS, GROUP, np.zeros(2, dtype=np.int64)),
    ],
)
def test_parameters_that_would_break_an_argument_are_refused(make: Any) -> None:
    with pytest.raises(ValueError):
        make()


# --- twins ------------------------------------------------------------------------------------------------

BINS = Bins(DENSE.fingerprint, (Binning(0, (-UNITS, 0, UNITS)),), signed=True)
TWO_COLUMNS = Bins(
    DENSE.fingerprint, (Binning(0, (-UNITS, 0, UNITS)), Binning(1, (-UNITS, 0, UNITS))), signed=True
)
PAIR = Assigned(Encoded.of(DENSE), np.array([[0, 0, -9000], [0, 0, 9000]]))


def breach(statistic: Statistic, rows: np.ndarray) -> bool:
    """Whether leaving out some record changes more than the statistic declares."""
    whole = statistic.finish(statistic.of(chunk_of(rows)))
    declared = statistic.sensitivity
    for left_out in range(len(rows)):
        less = statistic.finish(statistic.of(chunk_of(np.delete(rows, left_out, axis=0))))
        assert isinstance(whole, np.ndarray)
        assert isinstance(less, np.ndarray)
        change = np.abs(whole - less) / declared.scales
        moved_rows = (change.reshape(len(change), -1).sum(axis=1) > 0).sum()
        if change.sum() > declared.l1 + 1e-9 or change.max() > declared.linf + 1e-9 or moved_rows > 1:
            return True
    return False


class UnreleasedCentres(Histograms):
    """Divides records by the exact means of two halves of the data."""

    def of(self, chunk: Chunk) -> Any:
        rows = np.asarray(chunk.rows)
        centres = np.stack([part.mean(axis=0) for part in np.array_split(rows, 2)]).astype(np.int64)
        return Histograms(self.view, Assigned(Encoded.of(DENSE), centres)).of(chunk)


class BinsOfTheData(Histograms):
    """Bins that end at the data's own median."""

    def of(self, chunk: Chunk) -> Any:
        middle = int(np.median(np.asarray(chunk.rows)[:, 0]))
        fitted = Bins(DENSE.fingerprint, (Binning(0, (-UNITS, middle, UNITS)),), signed=True)
        return Histograms(fitted, self.group).of(chunk)


class ComparedWithTheRest(Departures):
    """Compares each cluster with all records, exactly, and forgets that these change too."""

    def finish(self, total: Any) -> Any:
        everyone = [part / max(1, part.sum()) for part in self.parts(total.sum(axis=0))]
        shares = [np.rint(np.cumsum(part) * WHOLE).astype(np.int64) for part in everyone]
        exact = np.concatenate([np.diff(part, prepend=0) for part in shares])
        found = []
        for row in total:
            pairs = zip(self.parts(row), self.parts(exact), strict=True)
            found.append([np.abs(WHOLE * n - r * n.sum()).sum() for n, r in pairs])
        return np.array(found)


EVEN = np.array([WHOLE // 2] * 4)


def test_a_partition_by_centres_that_were_not_released_is_caught() -> None:
    assert not breach(Histograms(BINS, PAIR), ROWS)
    assert breach(UnreleasedCentres(BINS, PAIR), ROWS)


def test_bins_that_follow_the_data_are_caught() -> None:
    rows = np.array([[x, 0, 0] for x in (1, 1, 1, 2, 2, 2, 3)])
    assert not breach(Histograms(BINS, None), rows)
    assert breach(BinsOfTheData(BINS, None), rows)


def test_scores_that_compare_a_cluster_with_the_rest_are_caught() -> None:
    assert not breach(Departures(TWO_COLUMNS, PAIR, EVEN), ROWS)
    assert breach(ComparedWithTheRest(TWO_COLUMNS, PAIR, EVEN), ROWS)


def loss_of_choices(statistic: Departures, rows: np.ndarray, epsilon: float) -> float:
    """The exact loss of one choice for each cluster, enumerated, over all records that may be left out."""

    def chances(records: np.ndarray) -> np.ndarray:
        scores = np.asarray(statistic.finish(statistic.of(chunk_of(records))), dtype=np.float64)
        rate = epsilon / (2 * 2 * WHOLE)  # as TopChoice has it for one pick
        weights = np.exp(rate * (scores - scores.max(axis=1, keepdims=True)))
        single = weights / weights.sum(axis=1, keepdims=True)
        outcomes = itertools.product(*(range(len(row)) for row in single))
        return np.array(
            [math.prod(single[place, pick] for place, pick in enumerate(picks)) for picks in outcomes]
        )

    whole = chances(rows)
    return max(
        float(np.abs(np.log(whole / chances(np.delete(rows, place, axis=0)))).max())
        for place in range(len(rows))
    )


def test_choices_compose_in_parallel_only_against_a_released_reference() -> None:
    """The last record is alone on its side of the first column: the scores of all clusters depend on it."""
    up, down, alone = (-1000, 1000), (-1000, -1000), (1000, 1000)
    members = {-30_000: [up] * 3 + [down] * 3, 0: [up] * 4 + [down] * 3, 30_000: [down] * 3 + [alone]}
    rows = np.array([(*record, height) for height, records in members.items() for record in records])
    group = Assigned(Encoded.of(DENSE), np.array([[0, 0, height] for height in members]))
    declared = 40.0
    assert TopChoice(declared, 1).loss == Pure(declared)
    assert loss_of_choices(Departures(TWO_COLUMNS, group, EVEN), rows, declared) <= declared
    assert loss_of_choices(ComparedWithTheRest(TWO_COLUMNS, group, EVEN), rows, declared) > 1.1 * declared
