"""The console's own arithmetic, checked in the browser against numpy and core."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from core.data import Dense, Geometry, Table
from core.data.tables.profiles import ranges_of
from core.plan import Plan
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


@pytest.mark.parametrize(
    "domain",
    [
        Dense.box([0, -5, 1], [10, 5, 2], size=100),
        Dense.box([0, -5, 1], [10, 5, 2], size=100, scaling="none"),
        Dense.ball(7.5, dimension=4, size=100),
    ],
)
def test_lengths_of_units_are_those_of_the_domain(tab: Tab, domain: Dense) -> None:
    lengths = call(tab.go(""), "results/noise.js", "unitLengths", domain.to_json())
    assert lengths == pytest.approx(domain.unit_lengths().tolist())


def hospital(**choices: Any) -> Geometry:
    """Columns of every kind, as a job sees them."""
    columns: list[dict[str, Any]] = [
        {"kind": "number", "name": "age", "low": 0, "high": 120, "weight": 2.0},
        {"kind": "number", "name": "cost", "low": 0, "high": 1e5, "log": True, "offset": 10},
        {"kind": "category", "name": "sex", "levels": ["F", "M"], "missing": "level"},
        {"kind": "date", "name": "visited", "low": "2024-01-01", "high": "2024-12-31"},
        {"kind": "datetime", "name": "seen", "low": "2024-01-01T00:00", "high": "2024-01-02T12:00"},
        {"kind": "boolean", "name": "smoker"},
    ]
    table = Table.from_json({"columns": columns, "size": 100, "rows_per_person": 1})
    return Geometry.of(table, **choices)


@pytest.mark.parametrize("choices", [{}, {"columns": ["sex", "cost"], "weights": {"sex": 3.0}}])
def test_lengths_of_units_are_those_of_a_tables_geometry(tab: Tab, choices: dict[str, Any]) -> None:
    geometry = hospital(**choices)
    lengths = call(tab.go(""), "results/noise.js", "unitLengths", geometry.to_json())
    assert lengths == pytest.approx(geometry.unit_lengths().tolist(), rel=1e-3)


def test_lengths_of_units_follow_the_ranges_that_private_scaling_released(tab: Tab) -> None:
    geometry = hospital().clipped({"age": (0, 32767)})
    ranges = {"ranges": ranges_of(geometry)}
    lengths = call(tab.go(""), "results/noise.js", "unitLengths", geometry.to_json(), ranges)
    assert lengths == pytest.approx(geometry.unit_lengths().tolist(), rel=1e-3)


def shown(plan: Plan) -> dict[str, Any]:
    """A plan as quotes and receipts show it: with the whole domain."""
    return {**plan.to_json(), "domain": plan.domain.to_json()}


def test_error_bars_show_the_noise_that_the_result_states(tab: Tab) -> None:
    domain = Dense.box([0, 0], [1, 10], size=10_000)
    stated: dict[str, Any] = {"size": 12.5, "centres": [0.2, 0.4], "columns": [0.1, 1.0]}
    found = call(tab.go(""), "results/noise.js", "noise", domain.to_json(), {"noise": stated, "details": {}})
    assert found["size"] == 12.5
    along = np.outer(found["places"], found["lengths"])
    assert along == pytest.approx(np.outer(stated["centres"], stated["columns"]))


def test_a_result_of_an_earlier_version_states_no_noise(tab: Tab) -> None:
    domain = Dense.box([0, 0], [1, 10], size=10_000)
    found = call(tab.go(""), "results/noise.js", "noise", domain.to_json(), {"details": {}})
    assert (found["size"], found["places"]) == (None, None)


def test_modules_that_need_no_page_pass_their_own_tests() -> None:
    tests = sorted((Path(__file__).parent / "modules").glob("*.test.js"))
    node = Path(sys.executable).parent / "node"
    run = subprocess.run([node, "--test", *tests], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
