"""Compiles the solver's kernels in the background, once per machine.

Until the compiled kernels are on disk, plans are made in plain Python and come out the same. A separate process
compiles at the lowest priority: a thread would block the loop, and could not be stopped with the program. Never under a
virtual loop, which has no processes.

`load_kernels` loads the compiled kernels before plans are timed.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import pkgutil
import sys
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.solver import kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

log = structlog.get_logger(__name__)

# A process of ours sets its own priority: nothing may run between fork and exec of a program with threads.
COMPILER: Final = (
    sys.executable,
    "-c",
    f"import os, runpy; os.nice(19); runpy.run_module({kernels.__name__!r}, run_name='__main__')",
)


async def warm_kernels(compiler: Sequence[str] = COMPILER) -> None:
    """Returns when the machine code is on disk, or cannot be compiled. Cancellation ends the compiler."""
    if os.environ.get(kernels.VARIABLE) == "plain" or kernels.is_cache_warm():
        return
    process = await asyncio.create_subprocess_exec(
        *compiler,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if code:
        log.warning("kernels.not_compiled", code=code)
    else:
        log.info("kernels.compiled")


def load_kernels() -> int:
    """Load all compiled machine code from disk, if plans use it. Returns the number of kernels."""
    if os.environ.get(kernels.VARIABLE) == "plain" or not kernels.is_cache_warm():
        return 0
    package = importlib.import_module(kernels.PACKAGE)
    names = [module.name for module in pkgutil.walk_packages(package.__path__, f"{kernels.PACKAGE}.")]
    modules = [importlib.import_module(name) for name in names]
    found = {
        id(kernel): kernel
        for module in modules
        for kernel in vars(module).values()
        if isinstance(kernel, kernels.Kernel)
    }
    for kernel in found.values():
        kernel.get_compiled()
    return len(found)
