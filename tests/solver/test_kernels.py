import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from plimsoll.solver import kernels
from plimsoll.solver.kernels import force_choice, kernel
from plimsoll.solver.problem import Ints


@kernel("i8(i8)")
def doubled(number: int) -> int:
    return 2 * number


@kernel("i8(i8[::1])")
def doubled_sum(numbers: Ints) -> int:
    total = 0
    for number in numbers:
        total += doubled(number)
    return total


@kernel("i8(UniTuple(i8[::1], 2))", allocates=False)
def exchanged_firsts(pair: tuple[Ints, Ints]) -> int:
    one, other = pair
    one[0], other[0] = other[0], one[0]
    return doubled(one[0])


def python(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)


def test_a_kernel_runs_as_plain_python_on_request():
    with force_choice("plain"):
        assert doubled_sum(np.arange(4)) == 12
    assert doubled_sum._fast is None


def test_a_kernel_that_calls_a_kernel_compiles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(kernels, "find_cache_directory", lambda: tmp_path)
    with force_choice("numba"):
        assert doubled_sum(np.arange(4)) == 12
    assert list(tmp_path.rglob("*.nbi"))


def test_a_kernel_that_makes_no_arrays_leaves_those_it_is_given_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(kernels, "find_cache_directory", lambda: tmp_path)
    one, other = np.array([1, 2]), np.array([3, 4])
    held = sys.getrefcount(one)
    with force_choice("numba"):
        assert exchanged_firsts((one, other)) == 6
    assert (one.tolist(), other.tolist()) == ([3, 2], [1, 4])
    assert sys.getrefcount(one) == held


def test_auto_is_plain_while_the_cache_is_cold(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(kernels, "find_cache_directory", lambda: tmp_path)
    switch = kernels._Switch()
    switch.choice = "auto"
    assert not switch.is_compiled()
    switch.finished = True
    assert switch.is_compiled()


def test_auto_is_compiled_when_the_cache_is_marked_ready(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "ready").touch()
    monkeypatch.setattr(kernels, "find_cache_directory", lambda: tmp_path)
    switch = kernels._Switch()
    switch.choice = "auto"
    assert switch.is_compiled()


def test_without_numba_auto_is_plain_and_there_is_nothing_to_compile(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kernels, "_is_numba_installed", lambda: False)
    switch = kernels._Switch()
    switch.choice = "auto"
    assert not switch.is_compiled()
    assert kernels.compile_all() == 0


def test_an_unknown_choice_is_refused_with_the_ones_there_are(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PLIMSOLL_KERNELS", "fast")
    with pytest.raises(ValueError, match="PLIMSOLL_KERNELS='fast': must be one of plain, numba, auto"):
        kernels._Switch().is_compiled()


def test_importing_the_solver_does_not_import_numba():
    done = python("-c", "import plimsoll.solver.packing.mixed, sys; sys.exit('numba' in sys.modules)")
    assert done.returncode == 0, done.stderr


def test_the_cache_is_kept_apart_by_processor(tmp_path: Path):
    script = "from plimsoll.solver.kernels import find_cache_directory; print(find_cache_directory())"
    here = python("-c", script, NUMBA_CACHE_DIR=str(tmp_path)).stdout
    generic = python("-c", script, NUMBA_CACHE_DIR=str(tmp_path), NUMBA_CPU_NAME="generic").stdout
    assert here.startswith(str(tmp_path))
    assert generic.startswith(str(tmp_path))
    assert here != generic
