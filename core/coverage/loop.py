"""Maximum coverage as one measurement: fixed rounds, and records that leave once a pick covers them.

What the proof (`loop.md`) needs is kept here and in the probe, out of the algorithm's reach: the picks so
far, which records are still in play, and the secret coin of every record.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from core.arrays import Integers
from core.coverage.coins import Coins
from core.coverage.families import Family, Mask, Positions
from core.data import Chunk
from core.kernels.cache import CACHE
from core.kernels.sparse_counts import Total
from core.views.base import Parametrised

#: Bytes of loop states that one process keeps.
_STATE_BYTES = 1 << 28


@dataclass(frozen=True, eq=False)
class CoverageLoop(Parametrised):
    """The measurement of a coverage step: at each level of the family, that many rounds of picking a set."""

    kind: ClassVar[str] = "coverage"
    family: Family
    rounds: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.rounds) != self.family.levels or min(self.rounds, default=0) < 1:
            raise ValueError("every level of the family needs at least one round")

    @property
    def domain(self) -> str:
        return self.family.domain

    @cached_property
    def schedule(self) -> tuple[int, ...]:
        """The level of each round, in order."""
        return tuple(level for level, rounds in enumerate(self.rounds) for _ in range(rounds))


@dataclass(frozen=True, eq=False)
class _State:
    """A chunk after some picks: which records are still in play, and those the last pick took out."""

    picks: tuple[int, ...]
    #: The records whose coins let them take part, and which of them no pick has covered yet.
    everyone: Integers
    in_play: Mask
    leaving: Mask


@dataclass(frozen=True, eq=False)
class LoopRound:
    """Changes of the counts before a round: at a new level all records in play, else those that just left.

    A pure function of the chunk, the picks and the coins; a cached state saves going through all picks again.
    Levels and picks pass over all records that take part, in play or not: only the changes between two picks
    of a level take time for the records that left, each of which leaves once.
    """

    cover: CoverageLoop
    coins: Coins
    picks: tuple[int, ...]

    @property
    def level(self) -> int:
        return self.cover.schedule[len(self.picks)]

    @property
    def opens_level(self) -> bool:
        return not self.picks or self.cover.schedule[len(self.picks) - 1] != self.level

    def of(self, chunk: Chunk) -> Total:
        state = self._state(chunk)
        positions = self._positions(chunk, state)
        if self.opens_level:
            return self.cover.family.parts(positions, self.level, state.in_play)
        return self._left(positions, state)

    def _left(self, positions: Positions, state: _State) -> Total:
        return self.cover.family.parts(positions[state.leaving], self.level)

    def _positions(self, chunk: Chunk, state: _State) -> Positions:
        """The records that take part, one after the other: every pick passes over all of them."""
        family, name = self.cover.family, f"{self.coins.name};{self.cover.family.digest}"
        positions: Positions = CACHE.get(name, chunk.key, lambda: family.positions(chunk, state.everyone))
        return positions

    def _state(self, chunk: Chunk) -> _State:
        name = (self.coins.name, self.cover.digest, chunk.key)
        state = _states.get(name)
        if state is None or state.picks != self.picks[: len(state.picks)]:
            everyone = np.flatnonzero(self.coins.kept(chunk.first, len(chunk)))
            in_play = np.ones(len(everyone), dtype=bool)
            state = _State((), everyone, in_play, ~in_play)
        for done in range(len(state.picks), len(self.picks)):
            state = self._after(state, chunk, self.cover.schedule[done], self.picks[done])
        _states.put(name, state)
        return state

    def _after(self, state: _State, chunk: Chunk, level: int, pick: int) -> _State:
        covered = self.cover.family.holds(self._positions(chunk, state), level, pick)
        in_play, leaving = state.in_play & ~covered, state.in_play & covered
        return _State((*state.picks, pick), state.everyone, in_play, leaving)


class _States:
    """The latest state of each chunk in each loop; forgets the loops that were used least recently."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: OrderedDict[Hashable, _State] = OrderedDict()
        self._bytes = 0

    def get(self, name: Hashable) -> _State | None:
        with self._lock:
            return self._states.get(name)

    def put(self, name: Hashable, state: _State) -> None:
        with self._lock:
            self._drop(name)
            size = _size(state)
            if size > _STATE_BYTES:
                return
            while self._bytes + size > _STATE_BYTES:
                self._drop(next(iter(self._states)))
            self._states[name] = state
            self._bytes += size

    def _drop(self, name: Hashable) -> None:
        state = self._states.pop(name, None)
        if state is not None:
            self._bytes -= _size(state)


def _size(state: _State) -> int:
    return state.everyone.nbytes + state.in_play.nbytes + state.leaving.nbytes + 16 * len(state.picks)


_states = _States()
