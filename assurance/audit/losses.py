"""Exact losses between two totals along the path of a run, and what was declared about them."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from assurance.audit.probes import Neighbours
from assurance.audit.scores import log_named
from core.coverage.coins import Coins
from core.coverage.loop import CoverageLoop
from core.data import Chunk, DataSource
from core.kernels.sparse_counts import SparseCounts
from core.mechanisms.choice import Choice, TopChoice
from core.mechanisms.coverage_choice import CoverageChoice
from core.mechanisms.noise import GaussianNoise, L2Noise, LaplaceNoise
from core.mechanisms.threshold import Threshold
from core.plan import Plan
from core.privacy.composition import compose
from core.privacy.losses import ZCDP, Approximate, Gaussian, Loss, Pure
from core.privacy.sensitivity import Sensitivity

__all__ = ["LoopRun", "Pick", "Unfaithful", "change_of", "loss_of", "loss_of_loop"]
__all__ += ["require_no_more", "require_within", "share_of"]

#: Doubles carry the exact losses; sums of a few thousand of them are good to this, relatively.
ROUNDING = 1e-9
#: A loss of nothing at all, which no loss may be.
_LEAST = 1e-300


class Unfaithful(AssertionError):
    """A run that looks at rows in another way than it declares."""


def change_of(smaller: Any, larger: Any) -> npt.NDArray[np.float64]:
    if isinstance(smaller, SparseCounts):
        cells = np.union1d(smaller.cells, larger.cells)
        smaller, larger = (_dense(total, cells) for total in (smaller, larger))
    changed: npt.NDArray[np.float64] = (larger - smaller).astype(np.float64)
    return changed


def _dense(total: SparseCounts, cells: Any) -> Any:
    found = np.zeros(len(cells), dtype=np.int64)
    found[np.searchsorted(cells, total.cells)] = total.counts
    return found


def require_within(step: str, change: Any, sensitivity: Sensitivity, rows: int) -> None:
    """A person's rows may move a total so many times as far as one row."""
    relative = np.abs(change) / sensitivity.scales
    norms = {"l1": relative.sum(), "l2": np.linalg.norm(relative), "linf": relative.max()}
    for norm, value in norms.items():
        if value > rows * getattr(sensitivity, norm) * (1 + ROUNDING):
            raise Unfaithful(f"{step!r} moved by {value:.4g} in {norm}, beyond what it declares")
    if sensitivity.one_block and change.ndim == 2 and np.count_nonzero(change.any(axis=1)) > rows:
        raise Unfaithful(f"{step!r} moved more blocks than there are rows")
    if sensitivity.monotone and change.min() < 0 < change.max():
        raise Unfaithful(f"{step!r} moved both ways")
    if sensitivity.touched is not None and np.count_nonzero(change) > rows * sensitivity.touched:
        raise Unfaithful(f"{step!r} moved more entries than it declares")


def loss_of(
    mechanism: Any, smaller: Any, larger: Any, change: Any, sensitivity: Sensitivity, rows: int
) -> Loss | None:
    """The exact loss of a mechanism between two totals, over all that it might have released."""
    relative = np.abs(change) / sensitivity.scales
    match mechanism:
        case GaussianNoise(mu):
            return Gaussian(float(np.linalg.norm(relative)) * mu / sensitivity.l2)
        case LaplaceNoise(epsilon):
            return Pure(float(relative.sum()) * epsilon / sensitivity.l1)
        case L2Noise(epsilon):
            return Pure(float(np.linalg.norm(relative, axis=1).sum()) * epsilon / sensitivity.l2)
        case Threshold():
            if mechanism.noise == "gaussian":  # named or not is a function of the noisy counts
                return Gaussian(float(np.linalg.norm(change)) * mechanism.amount)
            cells = np.union1d(smaller.cells, larger.cells)
            pairs = zip(_dense(smaller, cells), _dense(larger, cells), strict=True)
            each = (
                max(abs(log_named(mechanism, one, n) - log_named(mechanism, other, n)) for n in (True, False))
                for one, other in pairs
            )
            return Pure(max(sum(each), _LEAST))
        case Choice():
            return _loss_of_choice(mechanism, smaller, larger, sensitivity)
        case TopChoice():
            reach = float(sensitivity.scales.reshape(())) * sensitivity.linf
            if mechanism.concentrated:
                return ZCDP(mechanism.amount * (float(np.abs(change).max()) / reach) ** 2)
            touched = min(mechanism.picks, int(np.count_nonzero(change)))
            rate = mechanism.amount / (
                mechanism.picks + min(sensitivity.touched or mechanism.picks, mechanism.picks)
            )
            # Each pick moves by its own weight at most, and by the sum of weights of those that are left.
            moved = float(np.abs(change).max()) / reach
            return Pure(rate * moved * (mechanism.picks + touched))
    raise NotImplementedError(f"no exact loss for {mechanism.kind}")


def _loss_of_choice(mechanism: Choice, smaller: Any, larger: Any, sensitivity: Sensitivity) -> Loss | None:
    reach = float(sensitivity.scales.reshape(())) * sensitivity.linf
    rate = mechanism.epsilon / (reach * (1 if sensitivity.monotone else 2))
    sides = []
    for total in (smaller, larger):
        rows = total if mechanism.in_each_row else total.reshape(1, -1)
        logs = rate * (rows - rows.max(axis=1, keepdims=True)).astype(np.float64)
        sides.append(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))
    worst = float(np.abs(sides[0] - sides[1]).max(axis=1).sum())
    return Pure(worst, bounded_range=True) if worst > 0 else None


def require_no_more(step: str, exact: Loss, declared: Loss) -> None:
    """One use of a step, against what the plan declares for it (to a person)."""
    match exact, declared:
        case (Gaussian(own), Gaussian(most)) | (ZCDP(own), ZCDP(most)):
            fine = own <= most * (1 + ROUNDING)
        case (Pure(own), Pure(most)):
            fine = own <= most * (1 + ROUNDING)
        case (Approximate(), Approximate()):
            fine = True  # beyond epsilon with a chance of delta: the one sure direction was looked at
        case _:
            raise Unfaithful(f"{step!r} has another kind of loss than it declares")
    if not fine:
        raise Unfaithful(f"{step!r} loses {own:.6g}, and declares {most:.6g}")


def share_of(losses: list[tuple[Loss, int]], charged: Plan) -> float:
    """The composed loss over the plan's, in the plan's own currency."""
    sure = [(loss, uses) for loss, uses in losses if not isinstance(loss, Approximate)]
    if not sure:
        return 0.0
    own, whole = compose(sure), charged.composition
    currency = "mu_squared" if whole.mu_squared and not whole.zcdp_rho else "rho"
    if charged.budget.is_pure:
        currency = "pure"
    found = float(getattr(own, currency)) / float(getattr(whole, currency))
    return math.sqrt(found) if currency == "mu_squared" else found


# --- coverage loops -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Pick:
    """A pick of a coverage loop, with the counts that it was made from."""

    index: int
    counts: dict[int, int]


@dataclasses.dataclass(frozen=True, eq=False)
class LoopRun:
    """A coverage loop as it ran."""

    cover: CoverageLoop
    coins: Coins
    picks: tuple[Pick, ...]


def _counts_of(loop: LoopRun, records: list[Chunk]) -> list[dict[int, int]]:
    """The counts before each round, of records that all take part, by the definition of a loop."""
    found: list[dict[int, int]] = []
    alive = list(records)
    for level, pick in zip(loop.cover.schedule, loop.picks, strict=True):
        family, one = loop.cover.family, np.zeros(1, dtype=np.int64)
        held: dict[int, int] = {}
        for record in alive:
            counts_of_sets = family.set_counts(level)
            counts_of_sets.change(family.parts(family.positions(record, one), level), 1)
            for index, count in zip(*counts_of_sets.listed(), strict=True):
                if count:
                    held[int(index)] = held.get(int(index), 0) + int(count)
        found.append(held)
        alive = [r for r in alive if not family.holds(family.positions(r, one), level, pick.index)[0]]
    return found


def _log_chance(mechanism: CoverageChoice, loop: LoopRun, counts: list[dict[int, int]]) -> float:
    """log P[picks] given who takes part."""
    found = 0.0
    for level, pick, held in zip(loop.cover.schedule, loop.picks, counts, strict=True):
        heights = np.array([0.0, *(mechanism.eta * count for count in held.values())])
        often = np.ones(len(heights))
        often[0] = loop.cover.family.size(level) - len(held)
        most = heights.max()
        whole = most + math.log(float((np.exp(heights - most) * often).sum()))
        found += mechanism.eta * held.get(pick.index, 0) - whole
    return found


def loss_of_loop(
    mechanism: CoverageChoice, smaller: LoopRun, larger: LoopRun, neighbours: Neighbours
) -> Loss:
    """The exact loss of a loop along its picks, given the coins of all records but the person's own.

    The person's coins are summed over: whether they take part is as secret as their rows.
    """
    everyone = _records(neighbours.with_it)
    count = len(_records(neighbours.without))
    kept = larger.coins.kept(0, len(everyone)) if everyone else np.zeros(0, dtype=bool)
    others = [record for record, stays in zip(everyone[:count], kept, strict=False) if stays]
    own = [record for record, stays in zip(everyone[count:], kept[count:], strict=False) if stays]
    for loop, records in ((smaller, others), (larger, [*others, *own])):
        if [pick.counts for pick in loop.picks] != _counts_of(loop, records):
            raise Unfaithful("a coverage loop counts other records than those that are still in play")
    chance = mechanism.keep / 2**64
    base, person = _counts_of(larger, others), everyone[count:]
    without = _log_chance(mechanism, larger, base)
    ratio = 0.0
    for stays in itertools.product((False, True), repeat=len(person)):
        joined = [record for record, one in zip(person, stays, strict=True) if one]
        weight = math.prod(chance if one else 1 - chance for one in stays)
        if weight:
            ratio += weight * math.exp(
                _log_chance(mechanism, larger, _counts_of(larger, [*others, *joined])) - without
            )
    loss = abs(math.log(ratio))
    if mechanism.accounting == "pure":
        return Pure(max(loss, _LEAST))
    # One way the loss is bounded for sure; the other way by epsilon, but for a chance of delta.
    if math.log(ratio) > mechanism.eta * len(person) * (1 + ROUNDING):
        raise Unfaithful("a record makes picks likelier than by its weight")
    rows = len(person)
    return Approximate(max(loss, _LEAST), mechanism.loss.for_group(rows).delta)  # type: ignore[union-attr]


def _records(source: DataSource) -> list[Chunk]:
    """Every record as a chunk of its own."""
    chunks = [loader() for loader in source.loaders()]
    return [
        Chunk(chunk.rows[place : place + 1], chunk.first + place, ("record", id(source), chunk.first + place))
        for chunk in chunks
        for place in range(len(chunk))
    ]
