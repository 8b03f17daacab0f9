"""OpenAPI documents: bodies that are files, and links to calls that continue from a response."""

from typing import Any

#: Parameters of the calls that continue from a response, and where their values come from.
_DATASET = {"name": "$response.body#/name"}
_JOB = {"job_id": "$response.body#/id"}
_PERSON = {"name": "$response.body#/name"}
_SAME_PERSON = {"name": "$request.path.name", "key_id": "$response.body#/id"}
_TARGETS: dict[str, dict[str, tuple[str, dict[str, str]]]] = {
    "dataset": {
        "look": ("get_dataset_v1_datasets__name__get", _DATASET),
        "upload": ("upload_data_v1_datasets__name__data_put", _DATASET),
        "raise-budget": ("raise_budget_v1_datasets__name__budget_post", _DATASET),
        "grants": ("list_grants_v1_datasets__name__grants_get", _DATASET),
        "ledger": ("get_ledger_v1_datasets__name__ledger_get", _DATASET),
        "sites": ("list_sites_v1_datasets__name__sites_get", _DATASET),
        "retire": ("retire_dataset_v1_datasets__name__retire_post", _DATASET),
    },
    "job": {
        "look": ("get_job_v1_jobs__job_id__get", _JOB),
        "result": ("get_result_v1_jobs__job_id__result_get", _JOB),
        "receipt": ("get_receipt_v1_jobs__job_id__receipt_get", _JOB),
        "transcript": ("get_transcript_v1_jobs__job_id__transcript_get", _JOB),
        "cancel": ("cancel_job_v1_jobs__job_id__delete", _JOB),
    },
    "principal": {
        "issue-key": ("issue_key_v1_principals__name__keys_post", _PERSON),
        "disable": ("disable_principal_v1_principals__name__delete", _PERSON),
    },
    "key": {"revoke": ("revoke_key_v1_principals__name__keys__key_id__delete", _SAME_PERSON)},
}


BINARY = {"schema": {"type": "string", "format": "binary"}}


def file_body(csv: dict[str, Any], *others: str) -> dict[str, Any]:
    """Document a request whose body is a file: CSV with its examples, or one of the other types."""
    text = {"schema": {"type": "string"}, **csv}
    content = {**dict.fromkeys(others, BINARY), "text/csv": text}
    return {"requestBody": {"required": True, "content": content}}


def links(status: int, thing: str) -> dict[int | str, dict[str, Any]]:
    """Return the response of this status with links to what can be done with the thing it describes."""
    found = {
        name: {"operationId": operation, "parameters": dict(parameters)}
        for name, (operation, parameters) in _TARGETS[thing].items()
    }
    return {status: {"links": found}}
