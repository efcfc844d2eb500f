"""Every call of a run is struck, and the run is made once: at each call the process forks, and the copy has the fault.

What comes before a call is the same in every run of a sweep, so a copy begins where the fault strikes. One copy runs at
a time, and the run goes on when it has ended. Only for runs in virtual time, which have no threads.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import sys
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple, Never

from plimsoll.runtime.thread_isolation import allow_outside_calls
from tests.faults.strikes import Strike, Striking

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.ports import Call


class Copied(NamedTuple):
    """What a copy of the process reports. `problem`: the traceback of its failure."""

    result: Any
    problem: str = ""


class Branch(NamedTuple):
    """A copy that was struck, and its end."""

    strike: Strike
    call: Call
    end: Copied

    def __str__(self) -> str:
        return f"{self.strike} at call {self.call.number}, {self.call.method}"


class Branches(Striking):
    """Forks at the calls that `picks` chooses. The run itself is not struck."""

    def __init__(self, picks: Callable[[Call, Strike], bool]) -> None:
        super().__init__()
        self._picks = picks
        self._pipe = -1
        self.ended: list[Branch] = []

    def is_due(self, call: Call, strike: Strike) -> bool:
        """Whether this process is the copy. In the original the copy has ended when this returns."""
        if not self._picks(call, strike):
            return False
        forked = _fork()
        if isinstance(forked, int):
            self._pipe = forked
            return True
        self.ended.append(Branch(strike, call, forked))
        return False

    def run(self, play: Callable[[], Any]) -> Any:
        """The result of the run itself. Copies end here."""
        try:
            copied = Copied(play())
        except BaseException:
            if self.strike is None:
                raise
            copied = Copied(None, traceback.format_exc())
        if self.strike is not None:
            _end_copy(self._pipe, copied)
        return copied.result


def run_in_copy(play: Callable[[], Any]) -> Copied:
    """Run something in a copy of the process: what it changes is gone afterwards."""
    forked = _fork()
    if isinstance(forked, int):
        _run_copy(forked, play)
    return forked


def _run_copy(pipe: int, play: Callable[[], Any]) -> Never:
    try:
        copied = Copied(play())
    except BaseException:  # noqa: BLE001 -- the original reports it
        copied = Copied(None, traceback.format_exc())
    _end_copy(pipe, copied)


def _fork() -> int | Copied:
    """In the copy: the pipe for its report. In the original: the report of the copy, which has ended."""
    sys.stdout.flush()
    loop = asyncio._get_running_loop()
    reading, writing = os.pipe()
    with allow_outside_calls():
        process = os.fork()
    if process == 0:
        asyncio._set_running_loop(loop)  # asyncio takes a loop of another process for none
        os.close(reading)
        return writing
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        report = pipe.read()
    os.waitpid(process, 0)
    return pickle.loads(report) if report else Copied(None, "the copy ended without a report")


def _end_copy(pipe: int, copied: Copied) -> Never:
    with os.fdopen(pipe, "wb") as report:
        pickle.dump(copied, report)
    os._exit(0)
