"""A source of random bytes that tests can repeat; the product has no way to reach it."""

import hashlib

import pytest

from core.mechanisms import sampler


class RepeatableBytes:
    """The stream SHAKE-256(seed), handed out piece by piece."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._piece = 0

    def __call__(self, count: int) -> bytes:
        self._piece += 1
        return hashlib.shake_256(f"{self._seed}/{self._piece}".encode()).digest(count)


def inject_bytes(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Make everything that is drawn from here on repeatable."""
    source = RepeatableBytes(seed)
    monkeypatch.setattr(sampler, "random_bytes", source)
    monkeypatch.setattr("core.probe.random_bytes", source)
