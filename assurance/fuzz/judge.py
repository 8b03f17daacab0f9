"""What is wrong with an answer, whatever was asked: errors 5xx, traces, secrets, missing headers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from assurance.fuzz.stage import RECORDS, Stage
from service.errors import PROBLEMS

TRACES = re.compile(
    r"Traceback|File \"|site-packages|\.py\b|sqlalchemy|psycopg|sqlite3?\.|pydantic|SELECT |INSERT |"
    r" object at 0x|/(home|root|work|usr|tmp)/"
)
KEY = re.compile(r"cairn_[0-9a-f]{8}_[A-Za-z0-9_-]{43}")
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_COUNT = re.compile(rf"(?<![\d.]){RECORDS}(?![\d.])")
_ISSUES_KEYS = re.compile(r"/v1/principals(/[^/]+/keys)?")
_PAGES = re.compile(r"/(docs|openapi\.json|problems/.*)?")


class Judge:
    """Finds faults in answers of one stage."""

    def __init__(self, stage: Stage):
        self._keys = {each.key for each in (stage.carla, stage.cleo, stage.ada, stage.ben, stage.dan)}
        self._secrets = stage.secrets()

    def faults(
        self, role: str, method: str, path: str, status: int, headers: Mapping[str, str], text: str
    ) -> list[str]:
        """What is wrong with an answer to a caller of this role; an empty list if nothing is."""
        found = []
        if status >= 500:
            found.append(f"status {status}")
        found += [f"header {name}" for name, value in HEADERS.items() if headers.get(name) != value]
        if "default-src 'none'" not in headers.get("content-security-policy", ""):
            found.append("header content-security-policy")
        if status >= 400 and method != "HEAD":
            found += _problem_faults(status, headers, text)
            if TRACES.search(text):
                found.append("a trace of the code")
        if any(key in text for key in self._keys):
            found.append("somebody's key")
        issued = method == "POST" and status == 201 and _ISSUES_KEYS.fullmatch(path)
        if KEY.search(text) and not issued and not _PAGES.fullmatch(path):
            found.append("a key")
        if role != "carla":  # who owns the rows
            found += ["a secret" for secret in self._secrets if secret in text]
            if _COUNT.search(text):
                found.append("the number of records")
        return found


def _problem_faults(status: int, headers: Mapping[str, str], text: str) -> list[str]:
    if headers.get("content-type") != "application/problem+json":
        return [f"{headers.get('content-type')} instead of a problem"]
    try:
        problem: Any = json.loads(text)
    except ValueError:
        return ["a problem that is no JSON"]
    slug = str(problem.get("type", "")).removeprefix("/problems/")
    wrong = (
        slug not in PROBLEMS
        or problem.get("status") != status
        or not (problem.get("detail") and problem.get("next"))
    )
    return ["a problem of no known type"] if wrong else []
