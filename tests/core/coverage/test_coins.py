"""Coins are words of SHAKE-256: the same in every chunking, and secret."""

import copy
import hashlib
import pickle

import numpy as np
import pytest
from scipy.stats import binom

from core.coverage.coins import Coins
from core.coverage.loop import CoverageLoop, LoopRound
from core.mechanisms import sampler
from core.mechanisms.coverage_choice import CoverageChoice
from core.probe import Probe
from tests.support.coverage import DOMAIN, balls, matrix, plan_for, source


def test_a_record_has_the_same_coin_in_every_chunking() -> None:
    coins = Coins(b"s" * 32, 1 << 63)
    whole = coins.kept(0, 10_000)
    for first, count in ((0, 1), (4095, 2), (4096, 4096), (5000, 5000), (9999, 1)):
        assert np.array_equal(coins.kept(first, count), whole[first : first + count])
    assert coins.kept(17, 0).shape == (0,)


def test_coins_are_words_of_shake_256_and_keep_the_declared_share() -> None:
    keep = CoverageChoice(1.0).keep
    coins = Coins(b"q" * 32, keep)
    word = 4 * 4096 + 5
    block = hashlib.shake_256(b"q" * 32 + (4).to_bytes(8, "little")).digest(8 * 4096)
    assert coins.kept(word, 1)[0] == (int.from_bytes(block[40:48], "little") < keep)
    kept = int(coins.kept(0, 200_000).sum())
    # False alarm: none, the key is fixed; it would be below 1e-6 for a random one.
    low, high = binom.ppf(np.array([5e-7, 1 - 5e-7]), 200_000, keep / 2**64)
    assert low <= kept <= high


def test_without_coins_every_record_takes_part() -> None:
    assert Coins(b"a" * 32, CoverageChoice(1.0, 0.01, "approximate").keep).kept(5, 9000).all()


def test_every_loop_draws_a_key_of_its_own_and_shows_it_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[bytes] = []
    genuine = sampler.random_bytes

    def watched(count: int) -> bytes:
        found = genuine(count)
        if count == 32:
            drawn.append(found)
        return found

    monkeypatch.setattr("core.probe.random_bytes", watched)
    for _ in range(2):
        probe = Probe(plan_for(DOMAIN, 6), source())
        probe.measure("cover", CoverageLoop(balls(), (2, 2, 2)))
        shown = pickle.dumps([probe.transcript, probe.draws, probe.plan.to_json()])
        shown += repr([vars(probe), probe.transcript, probe.plan, probe.plan.to_json()]).encode()
        assert drawn[-1] not in shown
        assert drawn[-1].hex().encode() not in shown
        assert repr(drawn[-1]).encode() not in shown
    assert len(set(drawn)) == 2


def test_what_a_chunk_task_carries_prints_without_its_key() -> None:
    key = bytes(range(65, 97))
    step = LoopRound(CoverageLoop(matrix(), (1, 1, 1)), Coins(key, 1 << 63), ())
    assert repr(key)[2:-1] not in repr([step, step.coins])
    assert key not in repr(vars(copy.copy(step))).encode()
