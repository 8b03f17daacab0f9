"""The likelihood of the picks of a coverage loop, for datasets of a few kinds of records.

Records with equal rows are in the same sets, so a loop's law depends on how many of each kind its coins keep:
a product of binomials that is summed over, as the attacker does not see coins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from assurance.audit.scores import log_sum
from core.coverage.families import Family
from core.coverage.loop import CoverageLoop
from core.data import Chunk
from core.mechanisms.coverage_choice import CoverageChoice

__all__ = ["Kinds", "log_cover_ratio"]

Floats = npt.NDArray[np.float64]


class Kinds:
    """The different rows of two neighbours, each with how often either holds it."""

    def __init__(self, chunks: list[Chunk], with_it: list[int], without: list[int]) -> None:
        """`chunks` hold one record each, one of each kind."""
        self.chunks = chunks
        self.with_it = with_it
        self.without = without
        self._patterns: dict[tuple[str, int], Patterns] = {}

    def patterns(self, family: Family, level: int) -> Patterns:
        """Which kinds the sets of a level hold, as bits."""
        name = (family.digest, level)
        if name not in self._patterns:
            found = []
            for chunk in self.chunks:
                counts_of_sets = family.set_counts(level)
                counts_of_sets.change(
                    family.parts(family.positions(chunk, np.zeros(1, dtype=np.int64)), level), 1
                )
                indices, counts = counts_of_sets.listed()
                found.append(indices[counts > 0])
            self._patterns = {name: Patterns.of(found, family.size(level)), **self._latest()}
        return self._patterns[name]

    def _latest(self) -> dict[tuple[str, int], Patterns]:
        return dict(list(self._patterns.items())[:16])


@dataclass(frozen=True, eq=False)
class Patterns:
    """The sets of one level that hold any record, with what they hold, and how many sets hold what."""

    indices: npt.NDArray[np.int64]
    held: npt.NDArray[np.int64]
    often: Floats

    @classmethod
    def of(cls, holding: list[npt.NDArray[np.int64]], size: int) -> Patterns:
        """`holding[i]` lists the sets that hold kind i."""
        bits = np.repeat(1 << np.arange(len(holding)), [len(sets) for sets in holding])
        indices, places = np.unique(np.concatenate(holding), return_inverse=True)
        held = np.bincount(places, bits, minlength=len(indices)).astype(np.int64)
        often = np.bincount(held, minlength=1 << len(holding)).astype(np.float64)
        often[0] = size - len(indices)
        return cls(indices, held, often)

    def __getitem__(self, index: int) -> int:
        place = int(np.searchsorted(self.indices, index))
        found = place < len(self.indices) and self.indices[place] == index
        return int(self.held[place]) if found else 0


def log_cover_ratio(
    mechanism: CoverageChoice, cover: CoverageLoop, picks: npt.NDArray[np.int64], kinds: Kinds
) -> float:
    """log P[picks | with the record] / P[picks | without it], whatever the coins were."""
    levels = [kinds.patterns(cover.family, level) for level in range(cover.family.levels)]
    rounds = [
        (levels[level][int(pick)], levels[level].often)
        for level, pick in zip(cover.schedule, picks, strict=True)
    ]
    one, other = (_log_chance(mechanism, rounds, counts) for counts in (kinds.with_it, kinds.without))
    return one - other


def _log_chance(mechanism: CoverageChoice, rounds: list[tuple[int, Floats]], counts: list[int]) -> float:
    kept, weights = _coins(tuple(counts), mechanism.keep / 2**64)
    members = (np.arange(1 << len(counts))[:, None] >> np.arange(len(counts))) & 1
    alive = np.ones(len(counts), dtype=np.int64)
    logs = weights
    for picked, often in rounds:
        # How many records in play the sets of each pattern hold, in each fall of the coins.
        held = mechanism.eta * (kept * alive) @ members.T
        logs = logs + held[:, picked] - log_sum(held, often)
        alive = alive * (1 - members[picked])
    return float(log_sum(logs))


@cache
def _coins(counts: tuple[int, ...], keep: float) -> tuple[npt.NDArray[np.int64], Floats]:
    """Every way the coins may fall, as the number of kept records of each kind, with its log-probability."""
    if keep == 1:
        return np.array([counts]), np.zeros(1)
    axes = [np.arange(count + 1) for count in counts]
    kept = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(counts))
    logs = sum(binom.logpmf(kept[:, i], count, keep) for i, count in enumerate(counts))
    return kept, np.asarray(logs)
