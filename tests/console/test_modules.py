"""The console's own arithmetic, checked in the browser against numpy and core."""

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from core.algorithms import registry
from core.domain import Dense
from core.mechanisms import GaussianNoise, L2Noise, LaplaceNoise
from core.plan import Plan, Request, Step
from core.privacy import Budget
from tests.console.conftest import Tab

CALL = "([file, name, given]) => import(`/console/${file}`).then((m) => m[name](...given))"


def call(page: Page, file: str, name: str, *given: Any) -> Any:
    """What a function of one of the console's modules answers."""
    return page.evaluate(CALL, [file, name, list(given)])


@pytest.mark.parametrize("shape", [(3, 3), (8, 5), (4, 60), (2, 4)])
def test_the_plane_of_the_centres_is_the_principal_one(tab: Tab, shape: tuple[int, int]) -> None:
    points = np.random.default_rng(sum(shape)).normal(size=shape) * np.linspace(1, 4, shape[1])
    plane = call(tab.go(""), "pca.js", "principalPlane", points.tolist())
    away = points - points.mean(axis=0)
    _, singular, directions = np.linalg.svd(away, full_matrices=False)
    shares = singular**2 / np.sum(singular**2)
    for axis in range(2 if shape[0] > 2 else 1):
        found = np.array(plane["axes"][axis]["direction"])
        assert abs(found @ directions[axis]) == pytest.approx(1, abs=1e-5)
        assert plane["axes"][axis]["share"] == pytest.approx(shares[axis], abs=1e-6)
        assert away @ found == pytest.approx(np.array(plane["places"])[:, axis], abs=1e-5)


def test_equal_centres_are_drawn_on_one_spot(tab: Tab) -> None:
    plane = call(tab.go(""), "pca.js", "principalPlane", [[1.0, 2.0, 3.0]] * 3)
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
    lengths = call(tab.go(""), "forecast.js", "unitLengths", domain.to_json())
    assert lengths == pytest.approx(domain.unit_lengths().tolist())


def plan_with(mechanism: Any) -> Plan:
    domain = Dense.box([0] * 5, [1] * 5, size=6000)
    steps = (Step("counts", mechanism, "cluster-counts"), Step("sums", mechanism, "residual-sums"))
    return Plan("any", "means", 3, domain, Budget.of("100", "0.1"), steps)


@pytest.mark.parametrize(
    ("mechanism", "size", "sums"),
    [
        (GaussianNoise(0.5), 2.0, 2.0),
        (LaplaceNoise(0.5), 2 * np.sqrt(2), 2 * np.sqrt(2) * np.sqrt(5)),
        (L2Noise(0.5), 2 * np.sqrt(2), 2 * np.sqrt(6)),
    ],
)
def test_a_forecast_tells_the_noise_of_the_planned_mechanism(
    tab: Tab, mechanism: Any, size: float, sums: float
) -> None:
    expected = call(tab.go(""), "forecast.js", "forecast", plan_with(mechanism).to_json())
    assert expected["size"] == pytest.approx(size)
    assert expected["relativeSize"] == pytest.approx(size / 2000)
    # One record moves a sum by at most the radius, sqrt(5)/2 column ranges; the cluster has 2000 records.
    assert expected["relativePosition"] == pytest.approx(sums * np.sqrt(5) / 2 / 2000)


def test_a_larger_epsilon_forecasts_less_noise(tab: Tab) -> None:
    page = tab.go("")
    domain = Dense.box([0, 0], [1, 1], size=10_000)
    found = []
    for epsilon in ("0.1", "0.5", "2"):
        plan = registry.plan(domain, Request(k=4, budget=Budget.of(epsilon, "0.000001")))
        found.append(call(page, "forecast.js", "forecast", plan.to_json()))
    for name in ("size", "smallest", "relativePosition"):
        assert found[0][name] > found[1][name] > found[2][name] > 0


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("1e-6", "0.000001"),
        ("2.5E-3", "0.0025"),
        ("1e2", "100"),
        ("1.25e1", "12.5"),
        ("0.000001", "0.000001"),
        (" 3 ", "3"),
    ],
)
def test_amounts_are_sent_as_exact_decimals(tab: Tab, written: str, sent: str) -> None:
    assert call(tab.go(""), "widgets.js", "decimal", written) == sent


def test_epsilon_is_put_into_words(tab: Tab) -> None:
    words = call(tab.go(""), "format.js", "epsilonInWords", "1", "0.000001", "row")
    assert "2.72 times as likely" in words
    assert "73.1% sure" in words
    assert "one in 1,000,000" in words
    pure = call(tab.page, "format.js", "epsilonInWords", "1", "0", "person")
    assert "except" not in pure
    assert "a person's records" in pure
