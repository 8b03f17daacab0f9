"""The image holds a whole service: its Dockerfile's steps, done without a container engine, and its pins."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.dockerfile import PlainBuild, copy_context, stages

ROOT = Path(__file__).parent.parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text()
REQUIREMENTS = (ROOT / "deploy" / "requirements.txt").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> PlainBuild:
    """What the build stage leaves, in a plain directory."""
    folder = tmp_path_factory.mktemp("image")
    copy_context(ROOT, folder / "context")
    if sys.version_info[:2] != (3, 11):  # the hashes are those of the image's Python
        pins = folder / "context" / "deploy" / "requirements.txt"
        pins.write_text("\n".join(pinned()) + "\n")
        dockerfile = DOCKERFILE.replace("--require-hashes", "")
    else:
        dockerfile = DOCKERFILE
    # Bytecode of every library takes a minute, and `make image-test` builds the image with it.
    compiling = " && /opt/cairn/bin/python -m compileall -q -j 0 /opt/cairn/lib"
    assert compiling in dockerfile
    dockerfile = dockerfile.replace(compiling, " && true")
    build = PlainBuild(folder / "context", folder / "root")
    build.run(stages(dockerfile)[0])
    return build


def pinned() -> list[str]:
    return re.findall(r"(?m)^[\w.-]+==\S+", REQUIREMENTS)


def site_packages(build: PlainBuild) -> Path:
    (found,) = build.path("/opt/cairn/lib").glob("python3*/site-packages")
    return found


def packages() -> list[str]:
    return [name.rstrip("*") for name in PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]]


@pytest.mark.parametrize("package", packages())
def test_every_file_of_a_package_is_in_the_image(built: PlainBuild, package: str) -> None:
    sources = [path for path in (ROOT / package).rglob("*.py") if "__pycache__" not in path.parts]
    assert sources
    for source in sources:
        installed = site_packages(built) / source.relative_to(ROOT)
        assert installed.read_bytes() == source.read_bytes(), installed


@pytest.mark.skipif(not shutil.which("cc"), reason="the kernels are compiled only where a compiler is")
def test_compiled_kernels_are_in_the_image(built: PlainBuild) -> None:
    assert (site_packages(built) / "cairn_kernels" / "plain.so").is_file()


def test_the_console_is_in_the_image(built: PlainBuild) -> None:
    assert list(site_packages(built).glob("service/console/**/*.html"))
    assert list(site_packages(built).glob("service/console/**/*.js"))


def test_the_installed_server_makes_its_tables_and_a_first_key(built: PlainBuild, tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "CAIRN_DATABASE_URL": f"sqlite:///{tmp_path}/cairn.sqlite3",
    }
    for command in ("migrate", "bootstrap"):
        done = subprocess.run(
            [built.path("/opt/cairn/bin/cairn-server"), command],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cairn_")


def test_nothing_is_left_that_installs_or_tests(built: PlainBuild) -> None:
    names = {path.name for path in site_packages(built).iterdir()}
    assert not names & {"pip", "setuptools", "pkg_resources", "wheel"}
    assert [path for path in site_packages(built).rglob("tests") if path.is_dir()] == []


def test_the_final_stage_takes_what_was_built_and_downloads_nothing() -> None:
    final = stages(DOCKERFILE)[1]
    assert [step.rest for step in final if step.word == "COPY"] == ["--from=build /opt/cairn /opt/cairn"]
    assert [step.rest for step in final if step.word == "USER"] == ["10001:10001"]
    assert [step.word for step in final if step.word == "HEALTHCHECK"]
    assert not re.search(r"\b(pip|apt-get|curl|wget)\b", "\n".join(step.rest for step in final))


def test_the_build_needs_no_registry_but_for_its_base() -> None:
    assert not re.search(r"(?mi)^#\s*syntax\s*=", DOCKERFILE)
    bases = re.findall(r"(?m)^FROM (\S+)", DOCKERFILE)
    assert set(bases) == {"python:3.11-slim${BASE_DIGEST:+@$BASE_DIGEST}"}


def test_the_image_says_which_version_it_is() -> None:
    version = PROJECT["project"]["version"]
    assert f"ARG VERSION={version}\n" in DOCKERFILE
    assert 'org.opencontainers.image.version="$VERSION"' in DOCKERFILE
    compose = (ROOT / "docker-compose.yml").read_text()
    assert set(re.findall(r"image: (\S*cairn\S*)", compose)) == {f"${{CAIRN_IMAGE:-cairn:{version}}}"}


# --- pins ---------------------------------------------------------------------------------------------------


def test_every_requirement_of_the_image_has_the_version_of_the_constraints_and_a_hash() -> None:
    constraints = {
        canonicalize_name(Requirement(line).name): str(Requirement(line).specifier)
        for line in (ROOT / "constraints.txt").read_text().split()
    }
    for line in pinned():
        requirement = Requirement(line)
        assert constraints[canonicalize_name(requirement.name)] == str(requirement.specifier)
    blocks = re.split(r"(?m)^(?=[\w.-]+==)", REQUIREMENTS)[1:]
    assert [block for block in blocks if not re.search(r"--hash=sha256:[0-9a-f]{64}", block)] == []


def test_everything_that_the_image_needs_is_among_its_requirements() -> None:
    names = {canonicalize_name(Requirement(line).name) for line in pinned()}
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = PROJECT["project"]["dependencies"] + PROJECT["build-system"]["requires"]
    wanted += extras["server"] + extras["cluster"] + extras["otel"]
    assert [line for line in wanted if canonicalize_name(Requirement(line).name) not in names] == []


def test_requirements_name_no_index() -> None:
    assert re.findall(r"https?://\S+|--(?:extra-)?index|--find-links", REQUIREMENTS) == []


def test_the_image_is_tagged_with_the_version_alone() -> None:
    command = ["make", "-n", "image"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tags = f"-t cairn:{PROJECT['project']['version']} -t cairn:latest ."
    assert tags in " ".join(printed.split())
