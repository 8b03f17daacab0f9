"""Compile `kernels.c` for each kind of processor into shared libraries, which any Python loads."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

SOURCE = Path(__file__).parent / "cairn_kernels" / "kernels.c"
#: No flag may let the compiler change a result: these two only say that nobody reads errno or traps.
FLAGS = "-std=gnu11 -O3 -fPIC -shared -fno-math-errno -fno-trapping-math -Wall -Wextra -Wno-psabi"
#: What each body asks of a processor. Others than x86-64 have the plain one alone.
PROCESSORS = {
    "plain": "",
    "avx2": "-mavx2 -mfma",
    "avx512": (
        "-mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx2 -mfma -mprefer-vector-width=256"
    ),
}


def compile_bodies(folder: Path, *flags: str) -> None:
    """Compile every body for this machine into a folder, with further flags if given."""
    on_x86 = platform.machine().lower() in ("x86_64", "amd64")
    for name in PROCESSORS if on_x86 else ("plain",):
        compiler = [*shlex.split(os.environ.get("CC", "cc")), *FLAGS.split(), *PROCESSORS[name].split()]
        try:
            subprocess.run([*compiler, *flags, "-o", folder / f"{name}.so", SOURCE, "-lm"], check=True)
        except FileNotFoundError:
            raise SystemExit(
                f"cairn-dp-kernels needs a C compiler, and {compiler[0]!r} is not one: set CC. "
                "cairn-dp returns the same results without this package."
            ) from None


class BuildWithBodies(build_py):
    """Builds the package, and compiles its bodies into it."""

    def run(self) -> None:
        super().run()
        compile_bodies(Path(self.build_lib) / "cairn_kernels")


class Compiled(Distribution):
    """A distribution of one platform."""

    def has_ext_modules(self) -> bool:
        return True


class WheelForEveryPython(bdist_wheel):
    """A wheel of one platform and of every Python: its libraries know nothing of Python."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


if __name__ == "__main__":
    setup(distclass=Compiled, cmdclass={"build_py": BuildWithBodies, "bdist_wheel": WheelForEveryPython})
