"""Workers run the plan of a job and keep nothing of it."""

from __future__ import annotations

from core.kernels.cache import CACHE
from tests.support.service import House


def test_nothing_derived_from_rows_is_kept_after_a_job(small_house: House) -> None:
    small_house.ready()
    small_house.submit("0.5")
    assert small_house.work()
    assert CACHE._bytes == 0
    assert not CACHE._views
