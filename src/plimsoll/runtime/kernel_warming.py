"""Compiles the solver's kernels beside a running program, once on a machine, so that nobody waits for it.

For `plimsoll up`, after its ready line: whoever plans from then on loads machine code from disk; until then plans are
made in plain Python, and come out the same. A process of its own does the work, at the lowest priority: a thread would
hold the loop up, and could not be stopped when the program is. Never under a virtual loop, which has no processes.

`load_kernels` is for those who measure plans: what lies on disk is loaded before the first of them, not by it.
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
    """Returns when machine code lies on disk, or when that cannot be had. Cancelling it ends the compiler."""
    if os.environ.get(kernels.VARIABLE) == "plain" or kernels.cache_is_warm():
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
    """Load all machine code that lies ready on disk, if plans are made with it; how many kernels that is."""
    if os.environ.get(kernels.VARIABLE) == "plain" or not kernels.cache_is_warm():
        return 0
    package = importlib.import_module(kernels.PACKAGE)
    modules = [
        importlib.import_module(f"{kernels.PACKAGE}.{module_info.name}") for module_info in pkgutil.iter_modules(package.__path__)
    ]
    found = {id(var): var for module in modules for var in vars(module).values() if isinstance(var, kernels.Kernel)}
    for kernel in found.values():
        kernel.compiled()
    return len(found)
