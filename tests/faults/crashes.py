"""The process dies between two calls: what was done is done, what was to follow is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.ports import Call, Fault

if TYPE_CHECKING:
    from collections.abc import Callable


class Crashed(BaseException):
    """The end of an instance. Not an Exception: nothing that handles errors may survive it, the supervisor included."""


class CrashAfter(Fault):
    """Crashes right after call `n` took effect; its answer, and every later call, is `Crashed`."""

    def __init__(self, n: int) -> None:
        super().__init__()
        if n < 1:
            raise ValueError(f"calls are counted from 1, not {n}")
        self._n = n
        self.on_crash: Callable[[], None] = lambda: None

    @property
    def has_crashed(self) -> bool:
        return self.struck is not None

    def before(self, call: Call) -> None:
        if self.struck is not None:
            raise Crashed(f"{call.method} was called by an instance that crashed after {self.struck.method}")

    def after(self, call: Call) -> None:
        # A call that was under way when another one crashed has no caller left.
        self.before(call)
        if call.number == self._n:
            self.struck = call
            self.on_crash()
            raise Crashed(f"after call {call.number}, {call.method}")
