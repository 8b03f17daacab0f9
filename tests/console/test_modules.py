"""The console's own arithmetic, checked in the browser against numpy and core."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from core.data import Dense
from tests.console.conftest import Tab

CALL = "([file, name, given]) => import(`/console/${file}`).then((m) => m[name](...given))"


def call(page: Page, file: str, name: str, *given: Any) -> Any:
    """What a function of one of the console's modules answers."""
    return page.evaluate(CALL, [file, name, list(given)])


@pytest.mark.parametrize("shape", [(3, 3), (8, 5), (4, 60), (2, 4)])
def test_the_plane_of_the_centres_is_the_principal_one(tab: Tab, shape: tuple[int, int]) -> None:
    points = np.random.default_rng(sum(shape)).normal(size=shape) * np.linspace(1, 4, shape[1])
    plane = call(tab.go(""), "results/pca.js", "principalPlane", points.tolist())
    away = points - points.mean(axis=0)
    _, singular, directions = np.linalg.svd(away, full_matrices=False)
    shares = singular**2 / np.sum(singular**2)
    for axis in range(2 if shape[0] > 2 else 1):
        found = np.array(plane["axes"][axis]["direction"])
        assert abs(found @ directions[axis]) == pytest.approx(1, abs=1e-5)
        assert plane["axes"][axis]["share"] == pytest.approx(shares[axis], abs=1e-6)
        assert away @ found == pytest.approx(np.array(plane["places"])[:, axis], abs=1e-5)


def test_equal_centres_are_drawn_on_one_spot(tab: Tab) -> None:
    plane = call(tab.go(""), "results/pca.js", "principalPlane", [[1.0, 2.0, 3.0]] * 3)
    assert np.array(plane["places"]).tolist() == [[0, 0]] * 3


def test_error_bars_show_the_noise_that_the_result_states(tab: Tab) -> None:
    axes = {"units": Dense.box([0, 0], [1, 10], size=10_000).unit_lengths().tolist()}
    stated: dict[str, Any] = {"size": 12.5, "centres": [0.2, 0.4], "columns": [0.1, 1.0]}
    found = call(tab.go(""), "results/noise.js", "noise", axes, {"noise": stated, "details": {}})
    assert found["size"] == 12.5
    along = np.outer(found["places"], found["lengths"])
    assert along == pytest.approx(np.outer(stated["centres"], stated["columns"]))


def test_a_result_of_an_earlier_version_states_no_noise(tab: Tab) -> None:
    found = call(tab.go(""), "results/noise.js", "noise", {"units": [1.0]}, {"details": {}})
    assert (found["size"], found["places"]) == (None, None)


def test_modules_that_need_no_page_pass_their_own_tests() -> None:
    tests = sorted((Path(__file__).parent / "modules").glob("*.test.js"))
    node = Path(sys.executable).parent / "node"
    run = subprocess.run([node, "--test", *tests], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
