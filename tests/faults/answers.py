"""The other side misbehaves: its answer is lost, late, or a refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.runtime.entropy import SeededEntropy
from tests.faults.ports import Call, Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.core.clock import Clock


class ServerError(Exception):
    """A 5xx answer, for ports whose users know no error type of their own."""

    def __init__(self, status: int, *, retry_after_s: float | None = None) -> None:
        super().__init__(f"the server answered {status}")
        self.status = status
        self.retry_after_s = retry_after_s


def _timed_out() -> Exception:
    return TimeoutError("the answer was lost")


class LoseAnswers(Fault):
    """The calls with these numbers take effect, but their caller gets `error` instead of the answer."""

    def __init__(self, *numbers: int, error: Callable[[], Exception] = _timed_out) -> None:
        super().__init__()
        self._numbers = frozenset(numbers)
        self._error = error

    def after(self, call: Call) -> None:
        if call.number in self._numbers:
            self.struck = call
            raise self._error()


class Answer5xx(Fault):
    """Calls `n` to `n + times - 1` are refused with `status` and have no effect."""

    def __init__(
        self, n: int, status: int = 503, *, times: int = 1, error: Callable[[int], Exception] = ServerError
    ) -> None:
        super().__init__()
        self._numbers = range(n, n + times)
        self._status = status
        self._error = error

    def before(self, call: Call) -> None:
        if call.number in self._numbers:
            self.struck = call
            raise self._error(self._status)


class Delay(Fault):
    """Every call takes effect at once and is answered `seconds` later. Methods that are not awaited cannot be late."""

    def __init__(self, seconds: float, *, clock: Clock) -> None:
        super().__init__()
        self._seconds = seconds
        self._clock = clock

    async def hold(self, call: Call) -> None:
        self.struck = call
        await self._clock.sleep(self._seconds)


class Flaky(Fault):
    """A share of all calls goes wrong, half of them before and half of them after they took effect, by a seed."""

    def __init__(self, seed: int, *, share: float = 0.2, error: Callable[[], Exception] = _timed_out) -> None:
        super().__init__()
        self._entropy = SeededEntropy(seed)
        self._half = share / 2
        self._error = error

    def before(self, call: Call) -> None:
        self._maybe_strike(call)

    def after(self, call: Call) -> None:
        self._maybe_strike(call)

    def _maybe_strike(self, call: Call) -> None:
        if self._entropy.draw_uniform(0, 1) < self._half:
            self.struck = call
            raise self._error()
