"""The OpenAPI document: names of calls, shared components, files, and links between calls."""

from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from service.http.problems import FAULT, PROBLEM

#: Parameters of the calls that continue from a response, and where their values come from.
_DATASET = {"name": "$response.body#/name"}
_JOB = {"job_id": "$response.body#/id"}
_PERSON = {"name": "$response.body#/name"}
_SAME_PERSON = {"name": "$request.path.name", "key_id": "$response.body#/id"}
_TARGETS: dict[str, dict[str, tuple[str, dict[str, str]]]] = {
    "dataset": {
        "look": ("getDataset", _DATASET),
        "upload": ("uploadData", _DATASET),
        "raise-budget": ("raiseBudget", _DATASET),
        "grants": ("listGrants", _DATASET),
        "ledger": ("getLedger", _DATASET),
        "sites": ("listSites", _DATASET),
        "retire": ("retireDataset", _DATASET),
    },
    "job": {
        "look": ("getJob", _JOB),
        "result": ("getResult", _JOB),
        "receipt": ("getReceipt", _JOB),
        "transcript": ("getTranscript", _JOB),
        "cancel": ("cancelJob", _JOB),
    },
    "principal": {
        "issue-key": ("issueKey", _PERSON),
        "disable": ("disablePrincipal", _PERSON),
    },
    "key": {"revoke": ("revokeKey", _SAME_PERSON)},
}


BINARY = {"schema": {"type": "string", "format": "binary"}}


def file_body(csv: dict[str, Any], *others: str) -> dict[str, Any]:
    """Document a request whose body is a file, by examples of CSV, and the other types that it may have.

    One type, which every generator of clients knows: with more, most of them leave the call out.
    """
    named = ", ".join(f"`{each}`" for each in others)
    words = f"A file: CSV, or one whose `Content-Type` is {named}. Without a type, its first bytes tell."
    content = {"application/octet-stream": {**BINARY, **csv}}
    return {"requestBody": {"description": words, "required": True, "content": content}}


def links(status: int, thing: str) -> dict[int | str, dict[str, Any]]:
    """Return the response of this status with links to what can be done with the thing it describes."""
    found = {
        name: {"operationId": operation, "parameters": dict(parameters)}
        for name, (operation, parameters) in _TARGETS[thing].items()
    }
    return {status: {"links": found}}


def install(app: FastAPI) -> None:
    """Describe the app's calls by short names (`submitJob`), and problems by one component."""
    for route in app.routes:
        if isinstance(route, APIRoute):
            route.operation_id = operation_id(route.name)
    describe = app.openapi

    def described() -> dict[str, Any]:
        document = describe()
        document["components"]["schemas"].update({"Fault": FAULT, "Problem": PROBLEM})
        return document

    app.openapi = described  # type: ignore[method-assign]  # as FastAPI's guide extends it


def operation_id(name: str) -> str:
    """Return the name of a call: that of its function, in camel case."""
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)
