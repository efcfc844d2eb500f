"""The three faults of a call, chosen by call: crash, lost answer, 5xx. Ports translate the errors for their callers."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tests.faults.crashes import Crashed
from tests.faults.ports import Call, Fault

if TYPE_CHECKING:
    from collections.abc import Callable

P = TypeVar("P")


class Strike(StrEnum):
    """What happens to a call."""

    CRASH = "crash"
    """It takes effect, and the process that made it ends."""
    LOST = "lost answer"
    """It takes effect, and the connection breaks before the answer."""
    REFUSED = "5xx"
    """It has no effect, and the answer says so."""


class LostAnswer(Exception):
    """The call took effect, and its answer did not come."""


class RefusedCall(Exception):
    """The call had no effect: its server failed."""


class Striking(Fault):
    """Strikes one call. `strike`: what the call was struck with."""

    def __init__(self) -> None:
        super().__init__()
        self.strike: Strike | None = None

    def is_due(self, call: Call, strike: Strike) -> bool:
        """Whether this call is the one, and is struck so. Calls with an effect are numbered by their end."""
        raise NotImplementedError

    @property
    def has_crashed(self) -> bool:
        return self.strike is Strike.CRASH

    def before(self, call: Call) -> None:
        self._check_alive(call)
        if self._is_struck(call, Strike.REFUSED):
            raise RefusedCall(f"call {call.number}, {call.method}, was refused")

    def after(self, call: Call) -> None:
        self._check_alive(call)
        if self._is_struck(call, Strike.LOST):
            raise LostAnswer(f"the answer to call {call.number}, {call.method}, was lost")
        if self._is_struck(call, Strike.CRASH):
            raise Crashed(f"after call {call.number}, {call.method}")

    def _check_alive(self, call: Call) -> None:
        if self.has_crashed:
            raise Crashed(f"{call.method} was called by a process that ended at {self.struck}")

    def _is_struck(self, call: Call, strike: Strike) -> bool:
        if self.struck is not None or not self.is_due(call, strike):
            return False
        self.struck, self.strike = call, strike
        return True


class StrikeAt(Striking):
    """Strikes the call of a number."""

    def __init__(self, number: int, strike: Strike) -> None:
        super().__init__()
        self._number = number
        self._chosen = strike

    def is_due(self, call: Call, strike: Strike) -> bool:
        return call.number == self._number and strike is self._chosen


def translate_strikes(port: P, *, lost: Callable[[], Any], refused: Callable[[], Any]) -> P:
    """A port behind `Striking` whose callers get the errors that they know. `lost`, `refused` return or raise."""
    return cast("P", _TranslatedPort(port, lost, refused))


class _TranslatedPort:
    def __init__(self, port: object, lost: Callable[[], Any], refused: Callable[[], Any]) -> None:
        self._port = port
        self._lost = lost
        self._refused = refused

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return await method(*args, **kwargs)
            except LostAnswer:
                return self._lost()
            except RefusedCall:
                return self._refused()

        return call if callable(method) else method
