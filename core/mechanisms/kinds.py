"""Mechanisms as JSON: the kinds that a plan may name."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from core.mechanisms.base import Mechanism
from core.mechanisms.choice import Choice, TopChoice
from core.mechanisms.coverage_choice import CoverageChoice
from core.mechanisms.noise import GaussianNoise, L2Noise, LaplaceNoise
from core.mechanisms.threshold import Threshold

_KINDS: dict[str, type[Any]] = {
    m.kind: m for m in (GaussianNoise, LaplaceNoise, L2Noise, Choice, TopChoice, Threshold, CoverageChoice)
}


def mechanism_to_json(mechanism: Mechanism) -> dict[str, Any]:
    named = {each.name: getattr(mechanism, each.name) for each in fields(mechanism)}  # type: ignore[arg-type]  # all are dataclasses
    return {"kind": mechanism.kind, **named}


def mechanism_from_json(data: Mapping[str, Any]) -> Mechanism:
    parameters = {name: value for name, value in data.items() if name != "kind"}
    mechanism: Mechanism = _KINDS[data["kind"]](**parameters)
    return mechanism
