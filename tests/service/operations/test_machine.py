"""What a process may use is what its container's control groups say, in both versions of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from service.operations import machine


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")


VERSION_2 = {
    "proc/self/cgroup": "0::/",
    "sys/fs/cgroup/memory.max": "268435456",
    "sys/fs/cgroup/cpu.max": "50000 100000",
    "sys/fs/cgroup/memory.events": "low 0\nhigh 0\nmax 9\noom 3\noom_kill 3",
}
#: As Docker shows it: the path of the group is the host's, the mounted tree begins at the group itself.
VERSION_1 = {
    "proc/self/cgroup": "4:memory:/docker/0123\n1:cpu,cpuacct:/docker/0123\n0::/",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456",
    "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000",
    "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
    "sys/fs/cgroup/memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3",
}
UNLIMITED_2 = {
    "proc/self/cgroup": "0::/",
    "sys/fs/cgroup/memory.max": "max",
    "sys/fs/cgroup/cpu.max": "max 100000",
}
UNLIMITED_1 = {
    "proc/self/cgroup": "4:memory:/\n1:cpu,cpuacct:/",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
    "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
    "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
}


@pytest.mark.parametrize("files", [VERSION_2, VERSION_1], ids=["version 2", "version 1"])
def test_limits_of_a_container_are_known(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, files)
    assert machine.memory_bytes(tmp_path) == 256 << 20
    assert machine.processors(tmp_path) == 1
    assert machine.memory_kills(tmp_path) == 3


@pytest.mark.parametrize("files", [UNLIMITED_2, UNLIMITED_1, {}], ids=["version 2", "version 1", "none"])
def test_without_a_limit_it_is_what_the_machine_has(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, files)
    facts = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    assert machine.memory_bytes(tmp_path) == int(facts["MemTotal"].split()[0]) * 1024
    assert machine.processors(tmp_path) == len(os.sched_getaffinity(0))
    assert machine.memory_kills(tmp_path) == 0


def test_the_limit_of_a_group_above_holds_too(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/system.slice/cairn.service",
            "sys/fs/cgroup/system.slice/memory.max": "134217728",
            "sys/fs/cgroup/system.slice/cairn.service/memory.max": "268435456",
        },
    )
    assert machine.memory_bytes(tmp_path) == 128 << 20
