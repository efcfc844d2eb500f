"""Compiles the solver's kernels beside a running program, once on a machine, so that nobody waits for it.

For `plimsoll up`, after its ready line: plans are made in plain Python until it is done, and come out the same. A
process of its own does the work, at the lowest priority: a thread could not be stopped when the program is.
Never under a virtual loop, which has no processes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Final

import structlog

from plimsoll.solver import kernels

log = structlog.get_logger(__name__)

_LOWEST_PRIORITY: Final = 19


async def warm_kernels() -> None:
    """Returns when kernels run as machine code, or when that cannot be had. Cancelling it ends the compiler."""
    if os.environ.get(kernels.VARIABLE) == "plain":
        return
    if not kernels.cache_is_warm():
        compiler = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            kernels.__name__,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            preexec_fn=lambda: os.nice(_LOWEST_PRIORITY),
        )
        try:
            code = await compiler.wait()
        finally:
            if compiler.returncode is None:
                compiler.kill()
                await compiler.wait()
        if code or not kernels.cache_is_warm():
            log.warning("kernels.not_compiled", code=code)
            return
    log.info("kernels.ready", kernels=kernels.compile_all())
