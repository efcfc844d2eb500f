"""Detects calls that leave the thread of a virtual loop, and names the caller.

A loop that jumps to its next timer sees neither threads nor sockets nor processes: their results come after any number
of false timeouts. `VirtualLoop` refuses its own methods for them (executors, connections, readers); this module watches
the rest while the loop runs: it replaces thread starts and `time.sleep`, and finds sockets and processes with an audit
hook. Only the thread of the loop is watched; other threads of the process are not affected.

C extensions that open sockets themselves are not detected; they are not used under virtual time.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import sys
import sysconfig
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType

    from plimsoll.core.errors import LeftVirtualTime


class Guarded(Protocol):
    """A loop that refuses calls to the outside."""

    def record_violation(self, what: str) -> LeftVirtualTime:
        """Record that `what` was called, and return the error to raise there."""
        ...


# Audit events (docs.python.org, "Audit events table") that mean communication with the outside.
_LEAVING = frozenset(
    {
        "_thread.start_joinable_thread",
        "_thread.start_new_thread",
        "os.exec",
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.spawn",
        "os.system",
        "socket.__new__",
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyaddr",
        "socket.gethostbyname",
        "socket.getnameinfo",
        "socket.sendmsg",
        "socket.sendto",
        "subprocess.Popen",
        "time.sleep",
    }
)

_watched = threading.local()


@contextmanager
def forbid_outside_calls(loop: Guarded) -> Iterator[None]:
    """Refuse every call to the outside from this thread until the block ends."""
    _install_audit_hook()
    _stand_ins.put_up()
    before = getattr(_watched, "loop", None)
    _watched.loop = loop
    try:
        yield
    finally:
        _watched.loop = before
        _stand_ins.take_down()


@contextmanager
def allow_outside_calls() -> Iterator[None]:
    """Allow them until the block ends: to copy the whole process, which takes the loop with it, is harmless."""
    before = getattr(_watched, "loop", None)
    _watched.loop = None
    try:
        yield
    finally:
        _watched.loop = before


def _refuse_if_watched(what: str) -> None:
    loop: Guarded | None = getattr(_watched, "loop", None)
    if loop is not None:
        raise loop.record_violation(what)


def _audit(event: str, _args: tuple[object, ...]) -> None:
    if event in _LEAVING:
        _refuse_if_watched(event)


@functools.cache
def _install_audit_hook() -> None:
    """Install the hook once per process: Python cannot remove it, so outside `forbid_outside_calls` it does nothing."""
    sys.addaudithook(_audit)


# Functions that have no audit event (threads before 3.12, time.sleep before 3.13), or one that comes when descriptors
# are open already (socketpair).
_WITHOUT_TIMELY_EVENT: tuple[tuple[Any, str, str], ...] = (
    (threading.Thread, "start", "threading.Thread.start"),
    (time, "sleep", "time.sleep"),
    (socket, "socketpair", "socket.socketpair"),
)


class _StandIns:
    """Replacements of the functions above, installed while at least one virtual loop runs in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._originals: list[Callable[..., Any]] = []
        self._refusing = functools.cache(_build_refusing)

    def put_up(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                self._originals = [getattr(holder, name) for holder, name, _ in _WITHOUT_TIMELY_EVENT]
                for (holder, name, title), original in zip(_WITHOUT_TIMELY_EVENT, self._originals, strict=True):
                    setattr(holder, name, self._refusing(original, title))

    def take_down(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                for (holder, name, _), original in zip(_WITHOUT_TIMELY_EVENT, self._originals, strict=True):
                    setattr(holder, name, original)


def _build_refusing(original: Callable[..., Any], title: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def refuse_or_call(*args: Any, **kwargs: Any) -> Any:
        _refuse_if_watched(title)
        return original(*args, **kwargs)

    return refuse_or_call


_stand_ins = _StandIns()

_STDLIB = sysconfig.get_path("stdlib") + "/"
_ASYNCIO = str(Path(asyncio.__file__).parent) + "/"
_HERE = str(Path(__file__).parent) + "/"
_OUR_MACHINERY = frozenset(
    _HERE + name for name in ("thread_isolation.py", "virtual_handles.py", "virtual_loop.py", "virtual_runs.py")
)


class Place(NamedTuple):
    """A line of code, rendered as text only on demand."""

    code: CodeType
    line: int

    def __str__(self) -> str:
        return f"{self.code.co_filename}:{self.line} in {self.code.co_qualname}"


@functools.cache
def is_asyncio(filename: str) -> bool:
    return filename.startswith(_ASYNCIO)


@functools.cache
def is_machinery(filename: str) -> bool:
    """Frames of Python's own library and of this package's loop, which do not help a reader."""
    return (
        filename in _OUR_MACHINERY
        or filename.startswith("<frozen")
        or (filename.startswith(_STDLIB) and "-packages/" not in filename)
    )


def find_calling_place(*, inside: CodeType) -> Place | None:
    """The place of the innermost frame outside the machinery, at most as far out as the frame of `inside`.

    None when there is no such frame: a coroutine of asyncio's own that runs as a task has no caller frame.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 -- documented, and inspect.stack() reads source files
    while frame is not None and frame.f_code is not inside:
        if not is_machinery(frame.f_code.co_filename):
            return Place(frame.f_code, frame.f_lineno)
        frame = frame.f_back
    return None
