"""A threshold is refused where its limit is out of reach of its noise, before anything is measured."""

from __future__ import annotations

import pytest

from core.errors import InvalidRequest
from core.mechanisms.threshold import Threshold, threshold
from core.privacy.losses import Gaussian, Pure


@pytest.mark.parametrize("loss", [Gaussian(0.025), Pure(0.0125), Gaussian(40.0), Pure(700.0)])
def test_a_limit_out_of_reach_is_refused_with_the_largest_that_is_not(loss: Gaussian | Pure) -> None:
    with pytest.raises(InvalidRequest, match="choose at most") as refused:
        threshold(loss, 10**6)
    most = int(str(refused.value).rsplit(" ", 1)[1])
    assert refused.value.parameter == "threshold"
    if most > 0:
        assert threshold(loss, most).limit == most
    with pytest.raises(InvalidRequest):
        threshold(loss, most + 1)


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="at least zero"):
        Threshold("laplace", 1.0, -1)
