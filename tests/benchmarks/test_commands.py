"""`python -m benchmarks` offers every benchmark, and the sampler's prints its figures."""

import re

from typer.testing import CliRunner

from benchmarks.__main__ import commands
from tests.markdown import ROOT


def run(*arguments: str) -> str:
    answer = CliRunner().invoke(commands(), list(arguments), catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_every_module_with_a_main_is_a_command() -> None:
    offered = run("--help")
    modules = [path for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "__main__"]
    runnable = [path.stem for path in modules if re.search(r"(?m)^(def main\(|app\b.*=)", path.read_text())]
    assert "sampler" in runnable
    assert [name for name in runnable if not re.search(rf"\b{name}\b", offered)] == []


def test_the_sampler_prints_draws_per_second() -> None:
    figures = re.findall(r"(\w+) at scale 10000: ([\d.]+) million", run("sampler", "--draws", "50000"))
    assert [law for law, _ in figures] == ["Gaussian", "Laplace"]
    assert all(float(rate) > 0 for _, rate in figures)
