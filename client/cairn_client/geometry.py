"""Bounds and distances of a dataset as its receipt states them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def bounds_of(domain: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The shape of the bounds, `box` or `ball`, and its numbers."""
    if domain["kind"] == "sparse":
        return "ball", {"radius": domain["radius"], "centre": 0.0}
    if domain["kind"] != "dense":
        raise ValueError("rows of this dataset name sites, so they have no coordinates to measure")
    ((shape, numbers),) = domain["bounds"].items()
    return shape, numbers


def placement(receipt: Mapping[str, Any]) -> Callable[[Floats], Floats]:
    """A function that moves rows to where straight distances order them as the service's distances do."""
    domain = receipt["domain"]
    if receipt.get("parameters", {}).get("sites", {}).get("metric") == "great-circle":
        return _on_the_sphere
    shape, numbers = bounds_of(domain)
    if shape == "box" and domain["scaling"] == "unit":
        widths = np.asarray(numbers["high"], dtype=np.float64) - np.asarray(numbers["low"])
        return lambda rows: rows / widths
    return lambda rows: rows


def _on_the_sphere(rows: Floats) -> Floats:
    """Latitudes and longitudes in degrees as points on the unit sphere: a longer arc has a longer chord."""
    latitude, longitude = np.radians(rows).T
    across = np.cos(latitude)
    return np.stack([across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude)], axis=1)


def clipped(rows: Floats, domain: Mapping[str, Any]) -> Floats:
    """Move rows outside the dataset's bounds onto them."""
    shape, numbers = bounds_of(domain)
    if shape == "box":
        return np.clip(rows, numbers["low"], numbers["high"])
    centre = np.asarray(numbers["centre"], dtype=np.float64)
    away = rows - centre
    radius = float(numbers["radius"])
    inside: Floats = centre + away * (radius / np.maximum(np.linalg.norm(away, axis=1), radius))[:, None]
    return inside
