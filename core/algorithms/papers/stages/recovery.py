"""Centres, in all columns, of clusters that were found elsewhere: means, sparse means, or medians from nets.

A cluster is the records nearest to one of some released points, so one record touches one cluster.
"""

import math
from dataclasses import dataclass

import numpy as np

from core.algorithms.papers.stages.lloyd import sum_share
from core.arrays import Floats, Integers
from core.blocks.base import Block, Clusters
from core.data import UNITS, Domain
from core.mechanisms.base import Mechanism
from core.mechanisms.choice import Choice, TopChoice
from core.mechanisms.noise import GaussianNoise, LaplaceNoise, additive_noise, vector_noise
from core.plan import Step
from core.postprocessing.bounds import clip_into, inside_ball, spread_centres
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import ClusterCounts
from core.statistics.scores import NetLosses
from core.statistics.sums import EntrySums, GroupSums, PickedSums
from core.views import Assigned, Encoded, TopEntries

CONSTANTS = ("tight", "paper")
_COUNT_SHARE = 1 / 5  # The constants of NoisyAVG in Chaturvedi et al. (2021).
_DIAMETER_FACTOR = 5 / 4
_DELTA_FACTOR = 3.5


@dataclass(frozen=True)
class GroupMeans(Block):
    """A noisy sum over a noisy count for each cluster, `times` times.

    With `constants="paper"` it draws the noise that Chaturvedi et al. (2021) take from Nissim, Stemmer and
    Vadhan (2016), about three times as much, for comparison; it then needs all of its shares.
    """

    domain: Domain
    shares: Shares
    fraction: float
    times: int = 1
    constants: str = "tight"

    @property
    def clip(self) -> int:
        return UNITS

    def steps(self) -> tuple[Step, ...]:
        sizes, sums = self._noise()
        return (
            self.step("sizes", sizes, ClusterCounts, self.times, "size of each cluster"),
            self.step("means", sums, GroupSums, self.times, "its mean in all columns"),
        )

    def _noise(self) -> tuple[Mechanism, Mechanism]:
        if self.constants == "tight":
            share = sum_share(self.domain.dimension)
            sizes = self.shares.noise(self.fraction * (1 - share), self.times)
            return additive_noise(sizes), vector_noise(self.shares.noise(self.fraction * share, self.times))
        budget, rows = self.shares.budget, self.shares.rows_per_person
        printed = budget.epsilon / (
            2 * _DIAMETER_FACTOR * math.sqrt(2 * math.log(_DELTA_FACTOR / budget.delta))
        )
        # The paper's constant, or an exact one where that would not hold (at a large epsilon).
        mu = min(printed / rows, self.shares.portion(1 - _COUNT_SHARE).total)
        return LaplaceNoise(self.shares.pure(_COUNT_SHARE).epsilon), GaussianNoise(mu)

    def run(self, probe: Probe, assigned: Assigned) -> Clusters:
        """Means moved into the bounds, and noisy sizes."""
        sizes = self.measure(probe, "sizes", ClusterCounts(assigned))
        sums = self.measure(probe, "means", GroupSums(assigned, Encoded.of(self.domain)))
        means = clip_into(self.domain, sums / np.maximum(sizes, 1)[:, None])
        if self.constants == "paper":  # as printed: a random point for a cluster that is too small
            scale = self.deviation(probe.plan, "sizes") / math.sqrt(2)
            unsure = sizes < math.log(2 / probe.plan.budget.delta) * scale
            means[unsure] = spread_centres(self.domain, len(sizes), probe.draw("too-small"))[unsure]
        return Clusters(means, np.maximum(sizes, 0).astype(np.float64))


_SELECT = 0.6  # Share of a sparse recovery that chooses columns.
_VALUES = 0.3  # Share of the sums in these columns.
_SIZES = 0.1  # Share of the sizes of clusters.
_TELLING = 0.25  # A column should be found if a cluster's records reach this share of its largest sum.


def affordable_picks(
    shares: Shares, fraction: float, size: int, k: int, width: int, entries: int, eta: float
) -> int:
    """Number of columns to pick: 2s/eta, but no more than stand out from noise, judged from public numbers.

    A column that every fourth record of a cluster has, at full size, should outweigh all empty columns.
    """
    printed = math.ceil(2 * entries / eta)
    amount = shares.amount(fraction * _SELECT)
    records = _TELLING * size / k / math.log(max(width, 2))
    telling = amount * records / 2 if shares.budget.is_pure else 2 * amount * records**2
    return max(1, min(printed, width, int(min(telling, 1e9))))


@dataclass(frozen=True)
class SparseMeans(Block):
    """A few columns for each cluster, chosen privately, and noisy means there (Balcan et al., Algorithm 5).

    Rows are cut to their largest entries, each of bounded size: a record changes few column sums by little.
    """

    shares: Shares
    fraction: float
    picks: int
    rounds: int

    def steps(self) -> tuple[Step, ...]:
        shares, rounds = self.shares, self.rounds
        select = TopChoice(
            shares.amount(self.fraction * _SELECT, rounds), self.picks, not shares.budget.is_pure
        )
        values = additive_noise(shares.noise(self.fraction * _VALUES, rounds))
        sizes = additive_noise(shares.noise(self.fraction * _SIZES, rounds))
        columns = "in which columns each cluster's mean is large"
        return (
            self.step("columns", select, EntrySums, rounds, columns),
            self.step("values", values, PickedSums, rounds, "the sums in those columns"),
            self.step("sizes", sizes, ClusterCounts, rounds, "how many records each cluster has"),
        )

    def run(self, probe: Probe, assigned: Assigned, rows: TopEntries) -> Clusters:
        """The means of one round, and noisy sizes."""
        picks = self.measure(probe, "columns", EntrySums(assigned, rows))
        values = self.measure(probe, "values", PickedSums(assigned, rows, picks))
        sizes = self.measure(probe, "sizes", ClusterCounts(assigned))
        means = np.clip(values / np.maximum(sizes, 1)[:, None], -rows.largest, rows.largest)
        centres = np.zeros((len(picks), rows.width))
        np.put_along_axis(centres, picks, means, axis=1)
        return Clusters(centres, np.maximum(sizes, 0).astype(np.float64))


#: Lengths of the steps of a net, as shares of the domain's radius, and directions for each length.
_LENGTHS = (1 / 4, 1 / 16, 1 / 64)
_DIRECTIONS = 16


@dataclass(frozen=True)
class NetMedians(Block):
    """Private choices from a public net of points around each released centre, repeated about the choice.

    Exact sampling from a log-concave density is not available, and approximate sampling costs a delta. A net
    is chosen from exactly: the centre, and steps of public lengths in directions drawn without rows.
    """

    domain: Domain
    shares: Shares
    fraction: float
    rounds: int

    def steps(self) -> tuple[Step, ...]:
        choice = Choice(self.shares.choice(self.fraction, self.rounds), in_each_row=True)
        purpose = "which point of a net around each centre has the shortest distances"
        return (self.step("net", choice, NetLosses, self.rounds, purpose),)

    def run(self, probe: Probe, centres: Floats) -> Clusters:
        """Centres after some choices from nets around them."""
        rows = Encoded.of(self.domain)
        draw = probe.draw("nets")
        for _ in range(self.rounds):
            middles = inside_ball(np.rint(clip_into(self.domain, centres)).astype(np.int64))
            nets = np.stack([_net(middle, draw) for middle in middles])
            nets = inside_ball(nets.reshape(-1, rows.width)).reshape(nets.shape)
            chosen = self.measure(probe, "net", NetLosses(Assigned(rows, middles), nets))
            centres = nets[np.arange(len(nets)), chosen].astype(np.float64)
        return Clusters(clip_into(self.domain, centres))


def _net(middle: Integers, draw: np.random.Generator) -> Integers:
    away = draw.normal(size=(len(_LENGTHS), _DIRECTIONS, len(middle)))
    away *= np.array(_LENGTHS)[:, None, None] * UNITS / np.linalg.norm(away, axis=2, keepdims=True)
    steps = np.concatenate([np.zeros((1, len(middle))), away.reshape(-1, len(middle))])
    net: Integers = np.trunc(middle + steps).astype(np.int64)
    return net
