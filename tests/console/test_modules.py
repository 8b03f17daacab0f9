"""The console's own arithmetic, checked in the browser against numpy and core."""

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from core.algorithms import registry
from core.data import Dense
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
    lengths = call(tab.go(""), "noise.js", "unitLengths", domain.to_json())
    assert lengths == pytest.approx(domain.unit_lengths().tolist())


def shown(plan: Plan) -> dict[str, Any]:
    """A plan as quotes and receipts show it: with the whole domain."""
    return {**plan.to_json(), "domain": plan.domain.to_json()}


def receipt_with(mechanism: Any) -> Any:
    domain = Dense.box([0] * 5, [1] * 5, size=6000)
    steps = (Step("counts", mechanism, "cluster-counts"), Step("sums", mechanism, "residual-sums"))
    return shown(Plan("any", "means", 3, domain, Budget.of("100", "0.1"), steps))


RELEASED = {"centres": [[0.5] * 5] * 3, "sizes": [2000, 1000, -5], "details": {}}


@pytest.mark.parametrize(
    ("mechanism", "size", "sums"),
    [
        (GaussianNoise(0.5), 2.0, 2.0),
        (LaplaceNoise(0.5), 2 * np.sqrt(2), 2 * np.sqrt(2) * np.sqrt(5)),
        (L2Noise(0.5), 2 * np.sqrt(2), 2 * np.sqrt(6)),
    ],
)
def test_error_bars_show_the_noise_of_the_mechanism_that_was_paid_for(
    tab: Tab, mechanism: Any, size: float, sums: float
) -> None:
    found = call(tab.go(""), "noise.js", "noise", receipt_with(mechanism), RELEASED)
    assert found["size"] == pytest.approx(size)
    # One record moves a sum by at most the radius of the bounds, 32767 units; noisy sizes divide it.
    assert found["places"] == pytest.approx([sums * 32767 / records for records in (2000, 1000, 1)])


def test_error_bars_follow_the_radii_that_clusters_were_clipped_to(tab: Tab) -> None:
    page = tab.go("")
    domain = Dense.box([0, 0], [1, 10], size=10_000)
    plan = registry.plan(domain, Request(k=2, budget=Budget.of("1", "0.000001")))
    released = {"centres": [[0.2, 2], [0.8, 8]], "sizes": None, "details": {"clipping_radii": [1.0, 2.0]}}
    found = call(page, "noise.js", "noise", shown(plan), released)
    # The forecast is for a cluster of this size and any radius: both must tell the same noise.
    expected = np.array([1.0, 2.0]) * plan.forecast["noise_per_radius"]
    assert np.array(found["places"]) * max(found["lengths"]) == pytest.approx(expected)


def quoted(plan: Plan, forecast: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"plan": shown(plan), "forecast": dict(plan.forecast) if forecast is None else forecast}


def test_a_forecast_shows_the_figures_of_the_service(tab: Tab) -> None:
    domain = Dense.box([0, 0], [1, 1], size=20_000)
    plan = registry.plan(domain, Request(k=4, budget=Budget.of("0.5", "0.000001")))
    given = {"smallest_cluster": 300.4, "noise_per_radius": 0.0123, "cluster_share": 0.25, "swaps_tried": 7}
    found = call(tab.go(""), "forecast.js", "expectations", quoted(plan, given))
    assert [each[:3] for each in found["figures"]] == [
        ["smallest_cluster", "Smallest cluster that is found", "300"],
        ["noise_per_radius", "Position of a centre", "± 2.5%"],
    ]
    assert "an average one has 5,000" in found["figures"][0][3]
    assert found["others"] == [["swaps tried", "7"]]


def test_without_a_forecast_nothing_is_promised(tab: Tab) -> None:
    domain = Dense.box([0, 0], [1, 1], size=20_000)
    plan = registry.plan(domain, Request(k=4, budget=Budget.of("0.5", "0.000001")))
    found = call(tab.go(""), "forecast.js", "expectations", quoted(plan, {}))
    assert (found["figures"], found["others"], found["verdict"]) == ([], [], None)


@pytest.mark.parametrize(
    ("k", "epsilon", "kind"), [(3, "1", "good"), (10, "0.2", "warn"), (30, "0.05", "bad")]
)
def test_the_verdict_follows_the_forecast(tab: Tab, k: int, epsilon: str, kind: str) -> None:
    domain = Dense.box([0, 0], [1, 1], size=20_000)
    plan = registry.plan(domain, Request(k=k, budget=Budget.of(epsilon, "0.000001")))
    assert call(tab.go(""), "forecast.js", "expectations", quoted(plan))["verdict"][1] == kind


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
