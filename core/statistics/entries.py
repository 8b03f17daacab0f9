"""Column sums of sparse rows that were cut to a few bounded entries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.arrays import Integers
from core.data import Chunk
from core.kernels.accumulate import weighted_sums
from core.privacy import Sensitivity
from core.views import Assigned, TopEntries


@dataclass(frozen=True, eq=False)
class EntrySums:
    """For each centre the column sums of its records' rows, cut to few entries of bounded size each."""

    kind: ClassVar[str] = "entry-sums"
    view: Assigned
    rows: TopEntries

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.view.centres), self.rows.width)

    @property
    def sensitivity(self) -> Sensitivity:
        entries = self.rows.entries
        scale = np.array([float(self.rows.largest)])
        return Sensitivity(scale, l1=float(entries), l2=math.sqrt(entries), touched=entries)

    def of(self, chunk: Chunk) -> Integers:
        labels = self.view.assignment(chunk).labels
        ones = np.ones(len(labels), dtype=np.int64)
        return weighted_sums(self.rows.rows(chunk), labels, ones, self.shape[0])


@dataclass(frozen=True, eq=False)
class PickedSums:
    """The same column sums, at a few released columns for each centre and nowhere else."""

    kind: ClassVar[str] = "picked-sums"
    view: Assigned
    rows: TopEntries
    picks: Integers

    def __post_init__(self) -> None:
        if self.picks.ndim != 2 or len(self.picks) != len(self.view.centres):
            raise ValueError("one row of picked columns for each centre")
        if any(len(set(row)) != len(row) for row in self.picks.tolist()):
            raise ValueError("a column is picked once for each centre")

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.picks.shape[0], self.picks.shape[1])

    @property
    def sensitivity(self) -> Sensitivity:
        entries = min(self.rows.entries, self.shape[1])
        scale = np.array([float(self.rows.largest)])
        return Sensitivity(scale, l1=float(entries), l2=math.sqrt(entries), touched=entries)

    def of(self, chunk: Chunk) -> Integers:
        whole = EntrySums(self.view, self.rows).of(chunk)
        return np.take_along_axis(whole, self.picks, axis=1)
