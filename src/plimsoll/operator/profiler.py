"""A sampling profiler of this process, for the page `/debug/pprof/profile` (`--profiling`).

A thread reads the stacks of all other threads a hundred times per second, the planner's as well as the event loop's.
The result has one line per stack, outermost function first, with the number of samples: the input of flame graph
programs. It holds nothing of the cluster. Live only: the sampler measures wall time.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from types import FrameType

_EVERY_S: Final = 0.01
_DEEPEST: Final = 200


class Profiler(Protocol):
    """Measures for some seconds and returns the profile as text."""

    async def profile(self, seconds: float) -> str: ...


class StackSampler:
    """Samples in a thread, which ends at once when the request is cancelled."""

    async def profile(self, seconds: float) -> str:
        ended = threading.Event()
        try:
            samples = await asyncio.to_thread(_sample, seconds, ended)
        finally:
            ended.set()
        return "".join(f"{stack} {times}\n" for stack, times in samples.most_common())


def _sample(seconds: float, ended: threading.Event) -> Counter[str]:
    samples: Counter[str] = Counter()
    own = threading.get_ident()
    until = time.monotonic() + seconds
    while time.monotonic() < until and not ended.wait(_EVERY_S):
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():  # noqa: SLF001 - documented, and the only way to see them
            if ident != own:
                samples[format_stack(frame, names.get(ident, "thread"))] += 1
    return samples


def format_stack(frame: FrameType, thread: str) -> str:
    """The functions of a stack, outermost first, separated by ";"."""
    names: list[str] = []
    at: FrameType | None = frame
    while at is not None and len(names) < _DEEPEST:
        code = at.f_code
        names.append(f"{PurePath(code.co_filename).stem}.{code.co_qualname}")
        at = at.f_back
    return ";".join([thread, *reversed(names)]).replace(" ", "_")
