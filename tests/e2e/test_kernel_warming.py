"""Kernels are compiled in a process of their own, which ends with whoever asked for it."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

import pytest

from plimsoll.runtime.kernel_warmup import warm_kernels
from plimsoll.solver import kernels
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "is_cache_warm", lambda: False)
    monkeypatch.delenv(kernels.VARIABLE, raising=False)


def write_pid(file: Path, then: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        f"import os, time, pathlib; pathlib.Path({str(file)!r}).write_text(str(os.getpid())); {then}",
    ]


@pytest.mark.asyncio
async def test_the_compiler_runs_to_its_end(tmp_path: Path):
    async with asyncio.timeout(PATIENCE_S):
        await warm_kernels(write_pid(tmp_path / "pid", "pass"))
    assert (tmp_path / "pid").exists()


@pytest.mark.asyncio
async def test_plain_kernels_compile_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(kernels.VARIABLE, "plain")
    await warm_kernels(write_pid(tmp_path / "pid", "pass"))
    assert not (tmp_path / "pid").exists()


@pytest.mark.asyncio
async def test_the_compiler_ends_with_the_process_that_started_it(tmp_path: Path):
    pid = tmp_path / "pid"
    warming = asyncio.create_task(warm_kernels(write_pid(pid, "time.sleep(600)")))
    async with asyncio.timeout(PATIENCE_S):
        while not pid.exists() or not pid.read_text():  # noqa: ASYNC110 -- a process causes no event
            await asyncio.sleep(0.02)
    warming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await warming
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
