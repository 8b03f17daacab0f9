"""Axes: the coordinates that one column of a table has in the geometry of a job, and the way back."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.columns.base import StoredColumn
from core.columns.reading import Codes
from core.kernels.clipping import onto_simplex

if TYPE_CHECKING:
    from core.columns.line import OnLine


@dataclass(frozen=True)
class Axis(ABC):
    """The coordinates of one column; `place` is that of its code in a stored row."""

    column: StoredColumn
    place: int

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """A name for each coordinate."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """The largest squared norm of the coordinates of any code."""

    @property
    @abstractmethod
    def width(self) -> float:
        """Distance between both ends of the column, or between two of its levels."""

    @abstractmethod
    def coordinates(self, codes: npt.NDArray[Any]) -> npt.NDArray[np.int16]:
        """Coordinates of stored codes, clipped to those that the column has."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[Floats, Floats]:
        """Least and largest coordinates."""

    @property
    @abstractmethod
    def inner(self) -> float:
        """Radius of the largest ball about the origin among the means of records."""

    @abstractmethod
    def clip(self, points: Floats) -> Floats:
        """Released coordinates moved to the nearest mean that records can have."""

    @abstractmethod
    def scatter(self, count: int, draw: np.random.Generator) -> Floats:
        """Random coordinates of records."""

    @abstractmethod
    def decode(self, points: Floats) -> Floats:
        """Released coordinates as a number on the column's line, a rate, or shares that add up to one."""

    def decode_alone(self, points: Floats) -> Floats:
        """As `decode`, each coordinate for itself: ends of intervals of shares do not add up to one."""
        return self.decode(points)

    @abstractmethod
    def encode(self, decoded: Floats) -> Floats:
        """Coordinates of what `decode` returned."""

    @abstractmethod
    def codes(self, points: Floats, draw: np.random.Generator) -> Codes:
        """Codes of made-up records around released coordinates, whose mean they keep on average."""

    @property
    @abstractmethod
    def unit(self) -> float:
        """Length of a step of the coordinates, in what `decode` returns."""

    def is_coarse(self, steps: int) -> bool:
        """Whether the coordinates tell fewer values apart than this, and than the column has."""
        return False


@dataclass(frozen=True)
class Line(Axis):
    """Even steps between `-half` and `half`, for the codes from `first` to `last`."""

    column: OnLine
    half: int
    first: int
    last: int

    @property
    def names(self) -> tuple[str, ...]:
        return (self.column.name,)

    @property
    def longest(self) -> int:
        return self.half**2

    @property
    def width(self) -> float:
        return 2.0 * self.half

    def coordinates(self, codes: npt.NDArray[Any]) -> npt.NDArray[np.int16]:
        # |2c - first - last| <= last - first, so truncation towards zero stays within `half`. Products are
        # below 2^33, and a quotient that is not an integer is 2^-16 away from one: doubles are exact.
        inside = np.clip(codes.astype(np.float64), self.first, self.last)
        steps = np.trunc((2 * inside - (self.first + self.last)) * self.half / (self.last - self.first))
        return steps.astype(np.int16)[:, None]

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        return np.array([-float(self.half)]), np.array([float(self.half)])

    @property
    def inner(self) -> float:
        return float(self.half)

    def clip(self, points: Floats) -> Floats:
        return np.clip(points, -self.half, self.half)

    def scatter(self, count: int, draw: np.random.Generator) -> Floats:
        return draw.uniform(-self.half, self.half, size=(count, 1))

    def decode(self, points: Floats) -> Floats:
        return self.column.on_line(self.first + self._share(points) * (self.last - self.first))

    def encode(self, decoded: Floats) -> Floats:
        ends = self.decode(np.array([-float(self.half), float(self.half)]))
        share = (decoded - ends[0]) / (ends[1] - ends[0])
        coordinates: Floats = (2 * np.clip(share, 0.0, 1.0) - 1) * self.half
        return coordinates

    def codes(self, points: Floats, draw: np.random.Generator) -> Codes:
        """One of the two codes next to each point; the rate of a boolean is the chance of true."""
        places = self.first + self._share(points[:, 0]) * (self.last - self.first)
        rounded = np.floor(places + draw.random(len(places)))
        return np.clip(rounded, self.first, self.last).astype(np.uint16)

    def _share(self, points: Floats) -> Floats:
        """Positions of points between the first code (0) and the last one (1)."""
        share: Floats = (np.clip(points / self.half, -1.0, 1.0) + 1) / 2
        return share

    @property
    def unit(self) -> float:
        low, high = self.column.line
        return (high - low) * (self.last - self.first) / (self.column.codes - 1) / (2 * self.half)

    def is_coarse(self, steps: int) -> bool:
        return not self.column.is_discrete and 2 * self.half < min(steps, self.column.codes)


@dataclass(frozen=True)
class Levels(Axis):
    """One coordinate for each level: `height - drop` for a record's own level, `-drop` for the others."""

    height: int

    @property
    def drop(self) -> int:
        """Brings the mean of all levels to about zero, which makes records shorter."""
        return self.height // self.column.codes

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.column.name}={level}" for level in self.column.level_names or ())

    @property
    def longest(self) -> int:
        return (self.height - self.drop) ** 2 + (self.column.codes - 1) * self.drop**2

    @property
    def width(self) -> float:
        return math.sqrt(2) * self.height

    def coordinates(self, codes: npt.NDArray[Any]) -> npt.NDArray[np.int16]:
        inside = np.clip(codes, 0, self.column.codes - 1)
        rows = np.full((len(codes), self.column.codes), -self.drop, dtype=np.int16)
        rows[np.arange(len(codes)), inside] = self.height - self.drop
        return rows

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        ones = np.ones(self.column.codes)
        return -self.drop * ones, (self.height - self.drop) * ones

    @property
    def inner(self) -> float:
        return float(self.drop)

    def clip(self, points: Floats) -> Floats:
        return self.decode(points) * self.height - self.drop

    def scatter(self, count: int, draw: np.random.Generator) -> Floats:
        return self.coordinates(draw.integers(0, self.column.codes, count)).astype(np.float64)

    def decode(self, points: Floats) -> Floats:
        """The nearest shares that are at least zero and add up to one."""
        return onto_simplex((points + self.drop) / self.height, np.ones(len(points)))

    def encode(self, decoded: Floats) -> Floats:
        return decoded * self.height - self.drop

    def decode_alone(self, points: Floats) -> Floats:
        return np.clip((points + self.drop) / self.height, 0.0, 1.0)

    def codes(self, points: Floats, draw: np.random.Generator) -> Codes:
        """Levels drawn with the shares of each point."""
        reached = np.cumsum(self.decode(points), axis=1)
        reached /= reached[:, -1:]
        levels: Codes = (draw.random((len(points), 1)) >= reached[:, :-1]).sum(axis=1).astype(np.uint16)
        return levels

    @property
    def unit(self) -> float:
        return 1 / self.height
