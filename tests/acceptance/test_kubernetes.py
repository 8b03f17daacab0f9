"""The manifests are valid for several versions of Kubernetes, and agree with settings, commands and image."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import typer.main
import yaml

from service.cli import app
from service.operations.settings import Settings

MANIFESTS = Path(__file__).parent.parent.parent / "deploy" / "kubernetes"
FOLDERS = ("base", "one-node", "replicas", "cluster")
VERSIONS = ("1.30.0", "1.34.0", "1.37.0")
#: What a kustomization of ours may say; none of it patches a resource.
_KNOWN = {"apiVersion", "kind", "namespace", "resources", "replicas"}


@cache
def resources(folder: str) -> tuple[dict[str, Any], ...]:
    """Every resource that `kubectl apply -k` of a folder makes."""
    kustomization = yaml.safe_load((MANIFESTS / folder / "kustomization.yaml").read_text())
    assert set(kustomization) <= _KNOWN
    found: list[dict[str, Any]] = []
    for name in kustomization["resources"]:
        path = MANIFESTS / folder / name
        if path.is_dir():
            found += resources(path.resolve().relative_to(MANIFESTS.resolve()).as_posix())
        else:
            found += yaml.safe_load_all(path.read_text())
    known = {resource["metadata"]["name"] for resource in found}
    assert {each["name"] for each in kustomization.get("replicas", [])} <= known
    return tuple(found)


def everything() -> list[dict[str, Any]]:
    """Every resource of every folder, once."""
    found = {
        (resource["kind"], resource["metadata"]["name"]): resource
        for folder in FOLDERS
        for resource in resources(folder)
    }
    return list(found.values())


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    """The specification of each pod, by the name of what starts it."""
    for resource in everything():
        spec = resource.get("spec", {})
        if resource["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if "containers" in (pod := spec.get("template", {}).get("spec", {})):
            yield resource["metadata"]["name"], pod


def containers() -> list[Any]:
    return [
        pytest.param(pod, container, id=f"{name}-{container['name']}")
        for name, pod in pods()
        for container in pod["containers"]
    ]


def words(container: dict[str, Any]) -> list[str]:
    return [*container.get("command", []), *container.get("args", [])]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("folder", FOLDERS)
def test_manifests_are_valid(folder: str, version: str) -> None:
    assert len(resources(folder)) > 10
    for resource in resources(folder):
        kubernetes_validate.validate(resource, version, strict=True)


def test_no_resource_is_defined_twice() -> None:
    for folder in FOLDERS:
        names = [(resource["kind"], resource["metadata"]["name"]) for resource in resources(folder)]
        assert len(names) == len(set(names))


@pytest.mark.parametrize(("pod", "container"), containers())
def test_a_container_is_allowed_under_the_restricted_standard(
    pod: dict[str, Any], container: dict[str, Any]
) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] in (999, 10001)
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize(("pod", "container"), containers())
def test_secrets_are_files_and_every_mount_has_a_volume(
    pod: dict[str, Any], container: dict[str, Any]
) -> None:
    assert not any("secretRef" in source for source in container.get("envFrom", []))
    assert not any("valueFrom" in variable for variable in container.get("env", []))
    volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
    claims = {"database"}  # of the stateful set
    for mount in container["volumeMounts"]:
        assert mount["name"] in volumes.keys() | claims
        if "secret" in volumes.get(mount["name"], {}):
            assert mount["readOnly"] is True
            assert volumes[mount["name"]]["secret"]["defaultMode"] == 0o440


def test_every_setting_is_known_and_valid(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, str] = {}
    for resource in everything():
        if resource["kind"] == "ConfigMap":
            given |= resource["data"]
    for _, pod in pods():
        for container in pod["containers"]:
            given |= {each["name"]: each["value"] for each in container.get("env", [])}
    ours = {name: value for name, value in given.items() if name.startswith("CAIRN_")}
    assert {name.removeprefix("CAIRN_").lower() for name in ours} <= set(Settings.model_fields)
    for name, value in ours.items():
        monkeypatch.setenv(name, value)
    assert Settings().mode == "production"


def test_heads_are_kept_on_the_volume_of_maintenance() -> None:
    (settings,) = [each for each in everything() if each["metadata"]["name"] == "cairn-settings"]
    folder, _, _ = settings["data"]["CAIRN_HEADS_FILE"].rpartition("/")
    (pod,) = [pod for found, pod in pods() if found == "cairn-maintenance"]
    (name,) = [each["name"] for each in pod["containers"][0]["volumeMounts"] if each["mountPath"] == folder]
    (volume,) = [volume for volume in pod["volumes"] if volume["name"] == name]
    assert "persistentVolumeClaim" in volume


@pytest.mark.parametrize(("pod", "container"), containers())
def test_every_command_of_ours_exists(pod: dict[str, Any], container: dict[str, Any]) -> None:
    group: Any = typer.main.get_command(app)
    commands = [words(container)] if container["image"].startswith("cairn:") else []
    if commands and "command" not in container:  # the image's entry point
        commands = [["cairn-server", *container["args"]]]
    if commands and commands[0][0] == "sh":
        script = container["args"][-1].replace("&&", "\n")
        commands = [shlex.split(line) for line in script.splitlines()]
    probes = [container[name] for name in container if name.endswith("Probe")]
    commands += [probe["exec"]["command"] for probe in probes if "exec" in probe]
    for program, *arguments in commands:
        if program == "cairn-server":
            command = group.commands[arguments[0]]
            command.make_context(arguments[0], list(arguments[1:]))


@pytest.mark.parametrize("name", ["cairn-api", "cairn-worker"])
def test_a_pod_ends_by_itself_before_it_is_killed(name: str) -> None:
    (pod,) = [pod for found, pod in pods() if found == name]
    (container,) = pod["containers"]
    (stop,) = [float(each["value"]) for each in container["env"] if each["name"] == "CAIRN_STOP_SECONDS"]
    longest = stop if name == "cairn-worker" else 5 + stop / 2  # before it stops, it sleeps for 5 seconds
    assert longest + 10 < pod["terminationGracePeriodSeconds"]


def test_every_component_is_under_a_network_policy_and_only_the_cluster_reaches_the_scheduler() -> None:
    policies = {
        each["metadata"]["name"]: each["spec"] for each in everything() if each["kind"] == "NetworkPolicy"
    }
    assert policies["deny-by-default"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    accepted = [spec["podSelector"] for spec in policies.values() if spec.get("ingress")]
    assert [one.get("matchLabels", {}).get("app.kubernetes.io/component", "cluster") for one in accepted] == [
        "api",
        "postgres",
        "cluster",
    ]
    (selected,) = policies["cluster-talks-among-itself"]["podSelector"]["matchExpressions"]
    assert selected["values"] == ["worker", "scheduler", "cluster-worker"]


def test_services_and_deployments_select_pods_that_exist() -> None:
    templates = [
        resource["spec"]["template"]["metadata"]["labels"]
        for resource in everything()
        if resource["kind"] in ("Deployment", "StatefulSet")
    ]
    for resource in everything():
        if resource["kind"] == "Service":
            assert resource["spec"]["selector"] in templates
        if resource["kind"] in ("Deployment", "StatefulSet"):
            assert resource["spec"]["selector"]["matchLabels"] in templates
