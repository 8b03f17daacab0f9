"""Transcripts of runs: what was released, in order, from which anybody computes the result again.

A transcript is a file in three parts (`transcript.md`): a line that names the format, a line of JSON, and
numbers. It holds released values, seeds of public randomness and public inputs; never noise, coins or rows.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from core.arrays import Integers
from core.coverage.loop import CoverageLoop
from core.data import Partition, PublicRows, Sites, Stored
from core.errors import CoreError, InvalidTranscript
from core.jobs import kinds
from core.plan import Plan, Step
from core.probe import Probe, Release
from core.statistics.base import Statistic

FORMAT = 1
_TITLE = b"cairn transcript %d\n" % FORMAT
#: Types of released values; each array has the smallest one that holds it.
_TYPES = ("<i1", "<i2", "<i4", "<i8")


@dataclass(frozen=True, eq=False)
class Transcript:
    """Everything that a run released, in order, with its plan and its public inputs."""

    plan: Plan
    releases: Sequence[Release]
    draws: Mapping[str, str]

    @classmethod
    def of(cls, released: kinds.Released) -> Self:
        return cls(released.plan, released.releases, released.draws)

    def parts(self) -> Iterator[bytes]:
        """The file, array by array."""
        sites = self.plan.sites if isinstance(self.plan.sites, Sites) else None
        partitions = [each for each in self.plan.partitions if isinstance(each, Partition)]
        public = self.plan.public_rows if isinstance(self.plan.public_rows, PublicRows) else None
        types = [_smallest_type(release.values) for release in self.releases]
        header = {
            "plan": self.plan.to_json(),
            "draws": dict(self.draws),
            "sites": None if sites is None else {"metric": sites.metric, "shape": sites.numbers.shape},
            **({"partitions": [each.centres.shape for each in partitions]} if partitions else {}),
            **({} if public is None else {"public_rows": public.numbers.shape}),
            "releases": [
                {"step": release.step, "type": kind, "shape": release.values.shape}
                for release, kind in zip(self.releases, types, strict=True)
            ],
        }
        yield _TITLE + json.dumps(header, separators=(",", ":")).encode() + b"\n"
        if sites is not None:
            yield sites.numbers.astype("<f8").tobytes()
        for each in partitions:
            yield each.centres.astype("<f8").tobytes()
        if public is not None:
            yield public.numbers.astype("<f8").tobytes()
        for release, kind in zip(self.releases, types, strict=True):
            yield release.values.astype(kind).tobytes()

    @classmethod
    def read(cls, content: bytes, domain: Stored) -> Self:
        """Read a file; refuses whatever `parts` would not have written for this domain."""
        try:
            header, values = _open(content)
            sites = header["sites"]
            chosen = sites and Sites(sites["metric"], values.take("<f8", sites["shape"]).astype(np.float64))
            named = header["plan"]["inputs"].get("partitions", ())
            partitions = [
                Partition.of(domain, values.take("<f8", shape), facts.get("clustered"), job=facts["job"])
                for facts, shape in zip(named, header.get("partitions", ()), strict=True)
            ]
            shape = header.get("public_rows")
            public = shape and PublicRows(values.take("<f8", shape).astype(np.float64))
            releases = [
                Release(each["step"], values.take(_known(each["type"]), each["shape"]).astype(np.int64))
                for each in header["releases"]
            ]
            values.require_used_up()
            plan = Plan.from_json(header["plan"], domain, chosen, partitions, public)
            found = cls(plan, releases, dict(header["draws"]))
        except (CoreError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise InvalidTranscript(f"this is not a transcript of format {FORMAT}: {error}") from error
        return found

    def replay(self) -> kinds.Released:
        """Run the plan again on what was released: the same result, without rows."""
        probe = Probe(self.plan, _NoRows(self.plan.stored), journal=_Replay(self))
        try:
            found = kinds.get(self.plan).run(self.plan, probe)
        except (CoreError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise InvalidTranscript(f"the transcript does not fit its plan: {error}") from error
        if len(probe.transcript) != len(self.releases):
            raise InvalidTranscript("the transcript holds more than the run released")
        return found


class _Values:
    """Numbers of a file, taken from its front."""

    def __init__(self, content: memoryview) -> None:
        self._left = content

    def take(self, kind: str, shape: Sequence[int]) -> npt.NDArray[Any]:
        size = np.dtype(kind).itemsize * math.prod(shape)
        if min(shape, default=0) < 0 or size > len(self._left):
            raise ValueError("it ends too early")
        taken, self._left = self._left[:size], self._left[size:]
        return np.frombuffer(taken, dtype=kind).reshape(shape)

    def require_used_up(self) -> None:
        if len(self._left):
            raise ValueError("it is longer than it says")


def _open(content: bytes) -> tuple[dict[str, Any], _Values]:
    if not content.startswith(_TITLE):
        raise ValueError("its first line is not that of a transcript")
    end = content.index(b"\n", len(_TITLE)) + 1
    return json.loads(content[len(_TITLE) : end]), _Values(memoryview(content)[end:])


def _known(kind: str) -> str:
    if kind not in _TYPES:
        raise ValueError(f"{kind!r} is not a type of released values")
    return kind


def _smallest_type(values: Integers) -> str:
    least, most = (int(values.min()), int(values.max())) if values.size else (0, 0)
    return next(kind for kind in _TYPES if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max)


class _NoRows:
    """A source without rows."""

    def __init__(self, domain: Stored) -> None:
        self.domain = domain

    def loaders(self) -> tuple[()]:
        return ()


class _Replay:
    """The journal of a run that is over: every value is in it, and nothing is measured."""

    def __init__(self, transcript: Transcript) -> None:
        self._releases = iter(transcript.releases)
        self._seeds = transcript.draws

    def release(
        self, step: Step, statistic: Statistic | CoverageLoop, measure: Callable[[], Integers]
    ) -> Integers:
        if isinstance(statistic, CoverageLoop):
            return np.concatenate([self._next(step.name) for _ in statistic.schedule])
        return self._next(step.name)

    def _next(self, step_name: str) -> Integers:
        release = next(self._releases, None)
        if release is None or release.step != step_name:
            raise InvalidTranscript(f"the transcript has no value of step {step_name!r} in this place")
        return release.values

    def seed(self, name: str, draw: Callable[[], bytes]) -> bytes:
        return bytes.fromhex(self._seeds[name])
