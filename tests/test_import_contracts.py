"""The import contracts bite: each is shown a tree of empty modules with one forbidden import in it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.markdown import ROOT

CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]


def modules_of_the_contracts() -> set[str]:
    """Every module that a contract names, whether it exists yet or not."""
    named = {"core", "service", "cairn_client", "cairn_client.client"}
    for contract in CONFIGURATION["contracts"]:
        for container in contract.get("containers", []):
            tails = re.findall(r"\w+", " ".join(contract["layers"]))
            named |= {f"{container}.{tail}" for tail in tails}
        keys = ("modules", "source_modules", "forbidden_modules", "protected_modules", "allowed_importers")
        for key in keys:
            named |= {
                module
                for module in contract.get(key, [])
                if module.startswith(("core.", "service.")) and "*" not in module
            }
    return named


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """The real contracts over packages in which nothing imports anything."""
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    for name in sorted(modules_of_the_contracts()):
        package = tmp_path / name.replace(".", "/")
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()
    return tmp_path


def verdict(toy: Path) -> str:
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as c; c()",
        "--no-cache",
    ]
    return subprocess.run(command, cwd=toy, capture_output=True, text=True).stdout


def test_modules_that_import_nothing_keep_every_contract(toy: Path) -> None:
    assert f"{len(CONFIGURATION['contracts'])} kept, 0 broken" in verdict(toy)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("core.data", "service.operations"),
        ("core.estimators", "pydantic"),
        ("core.views", "core.statistics"),
        ("core.mechanisms", "core.statistics"),
        ("core.statistics", "core.mechanisms.sampler"),
        ("core.algorithms", "core.mechanisms.sampler"),
        ("service.workers.worker", "core.probe"),
        ("service.app", "core.probe"),
        ("service.workers.worker", "service.workers.rows"),
        ("service.app", "service.workers.worker"),
        ("service.people", "service.workers.execution"),
        ("service.ledger", "service.jobs"),
        ("service.http", "service.people"),
        ("service.operations", "benchmarks"),
        ("service.workers.worker", "assurance"),
        ("core.algorithms", "assurance"),
        ("core.algorithms.summit", "core.algorithms.papers"),
        ("cairn_client.client", "core.plan"),
        ("cairn_client.client", "scipy"),
        ("cairn_client.client", "typer"),
    ],
)
def test_a_forbidden_import_is_found(toy: Path, importer: str, imported: str) -> None:
    (toy / importer.replace(".", "/") / "__init__.py").write_text(f"import {imported}\n")
    answer = verdict(toy)
    assert "0 broken" not in answer
    assert f"{importer} -> {imported}" in answer


def test_a_module_without_a_layer_is_found(toy: Path) -> None:
    (toy / "core" / "surprise.py").touch()
    assert "- core.surprise" in verdict(toy)
