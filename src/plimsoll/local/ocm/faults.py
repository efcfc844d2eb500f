"""Faults of the simulated OCM per call, and the log of everything that it received."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from enum import StrEnum
from typing import Any, Final

from plimsoll.core.values import Value

MOST_KEPT: Final = 20_000


class FaultKind(StrEnum):
    """What happens to a call."""

    STATUS = "status"
    """It has no effect, and the answer is `status`."""
    LOST = "lost"
    """It takes effect, and the connection ends without an answer."""
    SILENT = "silent"
    """It has no effect, and there is no answer until `delay_s` is over."""
    LATE_ANSWER = "late answer"
    """It takes effect at once, and is answered after `delay_s`."""
    LATE_EFFECT = "late effect"
    """It takes effect, and is answered, after `delay_s`: also if the client does not wait any longer."""
    BODY = "body"
    """It takes effect, and the answer has this `body` with `status`, or with the status of the true answer."""


class CallFault(Value):
    """A fault. `call`: the name of the call as in `ReceivedCall`; empty: any but `token`. `times` None: always."""

    kind: FaultKind
    call: str = ""
    status: int = 0
    delay_s: float = 0.0
    body: bytes = b""
    times: int | None = 1
    skip: int = 0
    """So many matching calls pass first."""

    def matches(self, call: str) -> bool:
        return call == self.call if self.call else call != "token"


class ReceivedCall(Value):
    """A request. `status` 0: it was not answered (yet)."""

    at: datetime
    call: str
    method: str
    path: str
    query: str = ""
    body: Any = None
    status: int = 0
    fault: str = ""


class OcmFaults:
    """The faults that are waiting for calls."""

    def __init__(self) -> None:
        self._faults: list[tuple[CallFault, int]] = []

    def add(self, fault: CallFault) -> None:
        self._faults.append((fault, 0))

    def clear(self) -> None:
        self._faults.clear()

    def take(self, call: str) -> CallFault | None:
        """The first fault that strikes this call. Every fault that matches counts it."""
        struck: CallFault | None = None
        kept: list[tuple[CallFault, int]] = []
        for fault, seen in self._faults:
            count = seen
            if struck is None and fault.matches(call):
                count += 1
                struck = fault if count > fault.skip else None
            if fault.times is None or count < fault.skip + fault.times:
                kept.append((fault, count))
        self._faults = kept
        return struck


class ReceivedCalls:
    """The latest requests, in order."""

    def __init__(self) -> None:
        self._calls: dict[int, ReceivedCall] = {}
        self._number = 0

    def add(self, call: ReceivedCall) -> int:
        self._number += 1
        self._calls[self._number] = call
        if len(self._calls) > MOST_KEPT:
            del self._calls[next(iter(self._calls))]
        return self._number

    def end(self, number: int, call: ReceivedCall) -> None:
        """A call that is too long ago to be kept stays forgotten."""
        if number in self._calls:
            self._calls[number] = call

    def list_calls(self, call: str = "") -> tuple[ReceivedCall, ...]:
        """All calls, or those of one name."""
        return tuple(received for received in self._calls.values() if call in {"", received.call})
