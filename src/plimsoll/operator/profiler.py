"""Where the program's time goes, for the page `/debug/pprof/profile` (`--profiling`): stacks of all threads, sampled.

A thread looks at what every other one is doing a hundred times a second, so the planner's thread is seen like the event
loop's. The answer is one line a stack, outermost function first, with
how often it was seen: what flame graph programs read. Nothing of the cluster stands in it. Live only: the sampler is a
thread, and wall time is what it measures.
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
    """What the page needs."""

    async def profile(self, seconds: float) -> str: ...


class StackSampler:
    """Samples while a page is waited for; ends at once when nobody waits any more."""

    async def profile(self, seconds: float) -> str:
        ended = threading.Event()
        try:
            seen = await asyncio.to_thread(_sampled, seconds, ended)
        finally:
            ended.set()
        return "".join(f"{stack} {times}\n" for stack, times in seen.most_common())


def _sampled(seconds: float, ended: threading.Event) -> Counter[str]:
    seen: Counter[str] = Counter()
    own = threading.get_ident()
    until = time.monotonic() + seconds
    while time.monotonic() < until and not ended.wait(_EVERY_S):
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        # The only way to see other threads; documented for debugging, which this is.
        for ident, frame in sys._current_frames().items():  # noqa: SLF001 - documented, and the only way to see them
            if ident != own:
                seen[stack_of(frame, names.get(ident, "thread"))] += 1
    return seen


def stack_of(frame: FrameType, thread: str) -> str:
    """Outermost first, parts separated by ";"."""
    names: list[str] = []
    at: FrameType | None = frame
    while at is not None and len(names) < _DEEPEST:
        code = at.f_code
        names.append(f"{PurePath(code.co_filename).stem}.{code.co_qualname}")
        at = at.f_back
    return ";".join([thread, *reversed(names)]).replace(" ", "_")
