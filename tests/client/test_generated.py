"""Clients that generators make of the service's description: they understand all of it, and submit a job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.live import Live

ROOT = Path(__file__).parent.parent.parent
PYTHON_PROGRAM = """
import io
import sys

from generated import AuthenticatedClient
from generated.api.datasets import list_datasets, upload_data
from generated.api.jobs import list_jobs, submit_job
from generated.models import JobBody, JobState, Problem
from generated.types import File

address, key, dataset = sys.argv[1:]
body = {"dataset": dataset, "k": 3, "epsilon": "0.1"}
with AuthenticatedClient(base_url=address, token=key) as client:
    job = submit_job.sync(client=client, body=JobBody.from_dict(body))
    refused = submit_job.sync(client=client, body=JobBody.from_dict({**body, "dataset": "none"}))
    forbidden = upload_data.sync(dataset, client=client, body=File(payload=io.BytesIO(b"a,b")))
    listed = list_jobs.sync(client=client, dataset=dataset, state=JobState.SUCCEEDED)
    assert list_datasets.sync(client=client).items
assert isinstance(refused, Problem), refused
assert isinstance(forbidden, Problem), forbidden
assert (refused.status, forbidden.status) == (404, 403)
assert not isinstance(listed, Problem), listed
print(job.id)
"""
TYPESCRIPT_PROGRAM = """
import createClient from "openapi-fetch";

const [address, key, dataset] = process.argv.slice(2);
/** @type {ReturnType<typeof createClient<import("./schema.d.ts").paths>>} */
const client = createClient({ baseUrl: address, headers: { Authorization: `Bearer ${key}` } });
const { data, error } = await client.POST("/v1/jobs", { body: { dataset, k: 3, epsilon: "0.1" } });
if (error) throw new Error(error.detail);
const path = { job_id: data.id.replace(/[0-9a-f]/g, "0") };
const refused = await client.GET("/v1/jobs/{job_id}", { params: { path } });
if (refused.error?.title === undefined) throw new Error("a problem was expected");
console.log(data.id);
"""
#: Models that a client has beside those of the service's components: unions and enumerations within them.
MOST_MODELS = 300


@pytest.fixture(scope="module")
def description(live: Live, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("generated") / "openapi.json"
    path.write_bytes(httpx.get(f"{live.url}/openapi.json").content)
    return path


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(each) for each in command],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def analysts_job(live: Live, job: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {live.analyst_key}"}
    found: dict[str, Any] = httpx.get(f"{live.url}/v1/jobs/{job}", headers=headers).json()
    return found


def test_a_generated_python_client_submits_a_job(live: Live, description: Path) -> None:
    folder = description.parent
    config = folder / "config.yml"
    config.write_text("post_hooks: []\n")
    said = run(
        *(sys.executable, "-m", "openapi_python_client", "generate", "--path", description, "--meta", "none"),
        *("--output-path", folder / "generated", "--overwrite", "--config", config),
        folder=folder,
    )
    assert "WARNING" not in said, said
    models = list((folder / "generated" / "models").glob("*.py"))
    assert len(models) < MOST_MODELS
    assert "problem.py" in {each.name for each in models}
    name = live.dataset().name
    program = (sys.executable, "-c", PYTHON_PROGRAM, live.url, live.analyst_key, name)
    job = run(*program, folder=folder, PYTHONPATH=str(folder)).strip()
    assert analysts_job(live, job)["dataset"] == name


def test_a_generated_typescript_client_submits_a_job(live: Live, description: Path) -> None:
    folder, modules = description.parent, ROOT / "node_modules"
    node = Path(sys.executable).parent / "node"
    (folder / "node_modules").symlink_to(modules)
    defaults = ("--default-non-nullable", "false")  # a field with a default need not be sent
    (folder / "submit.mjs").write_text(TYPESCRIPT_PROGRAM)
    run(
        node,
        modules / "openapi-typescript/bin/cli.js",
        description,
        "-o",
        "schema.d.ts",
        *defaults,
        folder=folder,
    )
    options = ("--checkJs", "--allowJs", "--strict", "--noEmit", "--skipLibCheck", "--target", "es2022")
    resolution = ("--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2022,dom")
    (folder / "node.d.ts").write_text("declare const process: { argv: string[] };\n")
    run(node, modules / ".bin/tsc", *options, *resolution, "submit.mjs", "node.d.ts", folder=folder)
    name = live.dataset().name
    job = run(node, "submit.mjs", live.url, live.analyst_key, name, folder=folder).strip()
    assert analysts_job(live, job)["dataset"] == name


def test_calls_have_short_names_and_problems_one_schema(description: Path) -> None:
    document = json.loads(description.read_text())
    calls = [call for verbs in document["paths"].values() for call in verbs.values()]
    names = [call["operationId"] for call in calls]
    assert len(set(names)) == len(names)
    assert {"submitJob", "getResult", "uploadData", "listDatasets"} < set(names)
    assert [name for name in names if not name.isalpha()] == []
    problems = [
        media["schema"]
        for call in calls
        for response in call["responses"].values()
        for kind, media in response.get("content", {}).items()
        if kind == "application/problem+json"
    ]
    assert len(problems) > 100
    assert all(each == {"$ref": "#/components/schemas/Problem"} for each in problems)
    responses = [response for call in calls for response in call["responses"].values()]
    linked = {link["operationId"] for each in responses for link in each.get("links", {}).values()}
    assert len(linked) > 10
    assert linked <= set(names)
