"""Every compiled body computes the integers of numpy's, by itself and in whole runs, and it is what ran."""

from __future__ import annotations

import inspect
import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from core.data import UNITS
from core.kernels.accumulate import column_sums, second_moments, weighted_sums
from core.kernels.backend import CALLS, NUMPY, bodies, computed_by
from core.kernels.compiled import CompiledKernels
from core.kernels.geometry import nearest, project
from tests.contracts.large import LARGE_RUNS, LargeRun, released_by
from tests.contracts.totals import golden_totals, totals
from tests.support.kernels import KernelCase, kernel_cases, made_rows

ROOT = Path(__file__).parent.parent.parent
COMPILED = [body for body in bodies() if body != NUMPY]
#: Rounds of nine cases; each case is compared on every body.
ROUNDS = 240


def compiler() -> str | None:
    return shutil.which(os.environ.get("CC", "cc"))


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """How many kernels each body computes in here."""
    before, by_body = CALLS.copy(), dict.fromkeys(bodies(), 0)
    yield by_body
    for (kernel, body), calls in CALLS.items():
        by_body[body] += calls - before[kernel, body]


def assert_same(case: KernelCase, body: str) -> None:
    with computed_by(NUMPY), counted() as reference:
        expected = case.compute()
    with computed_by(body), counted() as compared:
        found = case.compute()
    assert reference == {**dict.fromkeys(bodies(), 0), NUMPY: 1}
    assert compared == {**dict.fromkeys(bodies(), 0), body: 1}, f"{case.name} was declined"
    for was, now in zip(expected, found, strict=True):
        assert (was.dtype, was.shape) == (now.dtype, now.shape), case.name
        assert np.array_equal(was, now), (case.name, case.arguments)


# --- one kernel at a time -----------------------------------------------------------------------------------


def test_where_there_is_a_compiler_there_are_compiled_bodies_to_compare() -> None:
    assert COMPILED or compiler() is None


def test_at_least_two_thousand_cases_are_compared_and_every_kernel_is_among_them() -> None:
    names = [case.name for case in kernel_cases(1, ROUNDS)]
    assert len(names) >= 2000
    methods = vars(CompiledKernels)
    assert set(names) == {name for name in methods if not name.startswith("_")}


@pytest.mark.parametrize("part", range(4))
def test_compiled_bodies_return_the_integers_of_numpy(part: int) -> None:
    for place, case in enumerate(kernel_cases(1, ROUNDS)):
        if place % 4 == part:
            for body in COMPILED:
                assert_same(case, body)


@pytest.mark.parametrize("body", COMPILED)
@pytest.mark.parametrize("threads", [1, 3])
def test_many_blocks_in_any_threads_give_the_same_integers(body: str, threads: int) -> None:
    draw = np.random.default_rng(5)
    rows, centres = made_rows(draw, 140_001, 5), made_rows(draw, 9, 5).astype(np.int64)
    matrix = np.rint(draw.normal(size=(5, 4)) * 9000).astype(np.int64)
    weights = draw.integers(1 << 15, size=len(rows))
    with threadpool_limits(threads, user_api="blas"):
        labels, _ = nearest(rows, centres, UNITS)
        for case in (
            KernelCase(nearest, (rows, centres, UNITS)),
            KernelCase(column_sums, (rows,)),
            KernelCase(weighted_sums, (rows, labels, weights, 9)),
            KernelCase(second_moments, (rows, centres[0], 9000)),
            KernelCase(project, (rows, matrix, centres[0], 9000, UNITS)),
        ):
            assert_same(case, body)


@pytest.mark.parametrize("body", COMPILED)
def test_sums_beyond_what_doubles_hold_are_exact(body: str) -> None:
    """More rows than a body adds up in doubles at once, each as long as rows may be."""
    rows = np.full((300_000, 2), 23_169, dtype=np.int16)
    assert_same(KernelCase(second_moments, (rows, np.array([-46_000, -46_000]), 2 * UNITS)), body)


@pytest.mark.parametrize("body", COMPILED)
def test_what_a_body_cannot_treat_exactly_is_left_to_numpy(body: str) -> None:
    draw = np.random.default_rng(6)
    rows, far = made_rows(draw, 50, 3), np.array([[40_000, 0, 0]])
    large = np.eye(3, dtype=np.int64) << 28  # squared norms of projected rows could exceed 2^53
    with computed_by(body), counted() as calls:
        nearest(rows, far, UNITS)  # squared distances do not fit 32 bits
        nearest(rows.astype(np.int32), far // 2, UNITS)
        nearest(sp.csr_array(rows), far // 2, UNITS)
        nearest(np.asfortranarray(rows), far // 2, UNITS)
        project(rows, large, None, UNITS, UNITS)
        project(rows, large >> 13, None, 2 * UNITS, UNITS)
        second_moments(rows, far[0], 9000, 4)
    assert calls == {**dict.fromkeys(bodies(), 0), NUMPY: 7}


def test_every_compiled_kernel_has_the_parameters_of_its_body_in_numpy() -> None:
    for case in kernel_cases(1, 1):
        method = inspect.signature(getattr(CompiledKernels, case.name))
        reference = inspect.signature(case.kernel)
        assert [*method.parameters][1:] == [*reference.parameters], case.name


# --- every statistic ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", bodies())
def test_every_statistic_has_its_golden_total_whatever_computes_it(body: str) -> None:
    with computed_by(body), counted() as calls:
        assert dict(totals()) == golden_totals()
    assert calls[body] > 100
    assert sum(calls.values()) == calls[body] + (calls[NUMPY] if body != NUMPY else 0)


# --- whole runs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", LARGE_RUNS, ids=lambda run: run.name)
def test_a_whole_run_releases_the_same_integers_whatever_computes_it(run: LargeRun) -> None:
    """Chunks and threads differ too."""
    with computed_by(NUMPY), counted() as reference, threadpool_limits(1, user_api="blas"):
        expected = released_by(run, chunk_rows=None)
    assert reference[NUMPY] == sum(reference.values())
    for body in COMPILED:
        with computed_by(body), counted() as compared, threadpool_limits(2, user_api="blas"):
            found = released_by(run, chunk_rows=1700)
        assert compared[body] > 0
        assert [step for step, _ in found] == [step for step, _ in expected]
        for (step, was), (_, now) in zip(expected, found, strict=True):
            assert np.array_equal(was, now), (body, step)


# --- the choice of a body -----------------------------------------------------------------------------------


def in_a_process(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


IN_USE = "from core.kernels.backend import body_in_use; print(body_in_use())"


def test_the_preferred_body_is_used_unless_the_environment_names_another() -> None:
    assert in_a_process(IN_USE, CAIRN_KERNELS="").stdout.strip() == bodies()[0]
    assert in_a_process(IN_USE, CAIRN_KERNELS="numpy").stdout.strip() == NUMPY


def test_a_body_that_this_machine_lacks_is_refused_by_name() -> None:
    done = in_a_process("import core.kernels.backend", CAIRN_KERNELS="cuda")
    assert done.returncode != 0
    assert "CAIRN_KERNELS must be one of" in done.stderr


@pytest.mark.parametrize("flaw", ["raise ImportError", "raise OSError", "INTERFACE = 0"])
def test_a_package_that_cannot_be_used_is_no_concern_of_anybody(flaw: str, tmp_path: Path) -> None:
    (tmp_path / "cairn_kernels.py").write_text(flaw)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {IN_USE}"
    done = in_a_process(program, CAIRN_KERNELS="")
    assert (done.stdout.strip(), done.stderr) == (NUMPY, "")


# --- what time tells ----------------------------------------------------------------------------------------


@pytest.mark.skipif(
    compiler() is None or platform.machine() != "x86_64", reason="reads what a compiler writes for x86-64"
)
def test_no_branch_follows_a_comparison_of_doubles(tmp_path: Path) -> None:
    """Compilers make one of `a < b ? a : b`: rows inside their radius would take less time than others."""
    build = runpy.run_path(str(ROOT / "kernels" / "setup.py"))["compile_bodies"]
    build(tmp_path, "-S")
    written = [path.read_text() for path in sorted(tmp_path.iterdir())]
    assert len(written) == 3
    assert all("sqrt" in text for text in written)
    assert [re.findall(r"comisd\b.*\n\s+j\w+", text) for text in written] == [[], [], []]


# --- under sanitizers ---------------------------------------------------------------------------------------

FUZZED = """
import sys
from pathlib import Path
import cairn_kernels
from core.kernels import backend
from tests.support.kernels import kernel_cases

folder, seed, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
cairn_kernels._library = lambda name: folder / f"{name}.so"
for body in cairn_kernels.names():
    with backend.computed_by(body):
        for case in kernel_cases(seed, rounds):
            case.compute()
    print(body, sum(calls for (_, ran), calls in backend.CALLS.items() if ran == body))
"""


def sanitizer() -> str | None:
    """The library that a program must load to run code compiled with the address sanitizer of gcc."""
    if platform.system() != "Linux" or compiler() is None:
        return None
    command = [str(compiler()), "-print-file-name=libasan.so"]
    found = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return found if Path(found).is_absolute() else None


@pytest.mark.skipif(sanitizer() is None, reason="sanitizers come with gcc")
def test_no_body_leaves_its_arrays_or_does_what_c_leaves_undefined(tmp_path: Path) -> None:
    """The same cases, by bodies that are compiled to stop at the first such access or operation."""
    build = runpy.run_path(str(ROOT / "kernels" / "setup.py"))["compile_bodies"]
    build(
        tmp_path,
        "-g",
        "-fsanitize=address,undefined,float-cast-overflow",
        "-fno-sanitize-recover=all",
        "-fno-omit-frame-pointer",
    )
    done = subprocess.run(
        [sys.executable, "-c", FUZZED, str(tmp_path), os.environ.get("KERNELS_SEED", "7"), "20"],
        cwd=ROOT,
        env={
            **os.environ,
            "LD_PRELOAD": str(sanitizer()),
            "ASAN_OPTIONS": "detect_leaks=0",
            "PYTHONMALLOC": "malloc",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert [line.split()[0] for line in done.stdout.splitlines()] == COMPILED
    assert all(int(line.split()[1]) >= 180 for line in done.stdout.splitlines())
