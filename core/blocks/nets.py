"""Pure k-median recovery: a private choice from a public net of points around each released centre.

Exact sampling from a log-concave density is not available in finite time, and approximate sampling costs a
delta. A finite net is chosen from exactly: the released centre itself and steps away from it along
random directions, drawn without looking at rows, at a few public lengths; repeated about what was chosen.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.data import UNITS
from core.mechanisms import Choice
from core.plan import Step
from core.postprocessing.bounds import clip_into, inside_ball
from core.probe import Probe
from core.statistics import NetLosses
from core.views import Assigned, Encoded

#: Lengths of the steps, as shares of the domain's radius, and directions for each length.
_LENGTHS = (1 / 4, 1 / 16, 1 / 64)
_DIRECTIONS = 16


def net_step(epsilon: float, rounds: int) -> Step:
    purpose = "which point of a net around each centre has the shortest distances"
    return Step("net", Choice(epsilon, in_each_row=True), NetLosses.kind, rounds, purpose)


def net_rounds(probe: Probe, centres: Floats, rounds: int) -> Floats:
    """Centres in encoded units after some choices from nets around them."""
    domain = probe.plan.domain
    rows = Encoded.of(domain)
    draw = probe.draw("nets")
    for _ in range(rounds):
        middles = inside_ball(np.rint(clip_into(domain, centres)).astype(np.int64))
        nets = np.stack([_net(middle, draw) for middle in middles])
        nets = inside_ball(nets.reshape(-1, rows.width)).reshape(nets.shape)
        chosen = probe.measure("net", NetLosses(Assigned(rows, middles), nets))
        centres = nets[np.arange(len(nets)), chosen].astype(np.float64)
    return clip_into(domain, centres)


def _net(middle: npt.NDArray[np.int64], draw: np.random.Generator) -> npt.NDArray[np.int64]:
    away = draw.normal(size=(len(_LENGTHS), _DIRECTIONS, len(middle)))
    away *= np.array(_LENGTHS)[:, None, None] * UNITS / np.linalg.norm(away, axis=2, keepdims=True)
    steps = np.concatenate([np.zeros((1, len(middle))), away.reshape(-1, len(middle))])
    net: npt.NDArray[np.int64] = np.trunc(middle + steps).astype(np.int64)
    return net
