"""What an algorithm returns is a function of what was released: it is the same without any rows."""

from typing import Any

import numpy as np
import pytest

from core.algorithms import registry
from core.probe import Probe
from tests.audit.cases import PAIRS, VARIANTS, Case
from tests.audit.probes import ReplayProbe


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("pair", ["outlier", "lone member"])
def test_a_transcript_gives_the_same_result_without_rows(name: str, pair: str) -> None:
    case = Case(VARIANTS[name], PAIRS[pair])
    algorithm, probe = registry.get(case.plan.algorithm), Probe(case.plan, case.neighbours.with_it)
    found = algorithm.run(case.plan, probe)
    nobody = case.variant.source(case.domain, ())
    replay = ReplayProbe(case.plan, nobody, probe.transcript, probe.draws)
    again = algorithm.run(case.plan, replay)
    assert len(replay.transcript) == len(probe.transcript)
    assert np.array_equal(found.centres, again.centres)
    assert np.array_equal(_or_empty(found.sizes), _or_empty(again.sizes))
    assert found.details == again.details
    assert found.draws == again.draws


def _or_empty(sizes: Any) -> Any:
    return np.zeros(0) if sizes is None else sizes
