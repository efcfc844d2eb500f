"""The services that a supervisor keeps alive, and their statuses. Plain data: nothing here runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime  # noqa: TC003 -- msgspec resolves the annotations of Values at run time
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from plimsoll.core.values import Value
from plimsoll.runtime.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class OnEnd(StrEnum):
    """What it means when a service's `run()` returns."""

    EXPECTED = "expected"
    RESTART = "restart"


class RestartPolicy(Value):
    """How a service is kept alive. `escalate_after` failures within `window_s` end the whole; None: never."""

    on_end: OnEnd = OnEnd.RESTART
    backoff: Backoff = Backoff(initial_s=1.0, factor=2.0, cap_s=60.0, jitter=0.1)
    escalate_after: int | None = None
    window_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A long-running task. `run` is called again for each restart and must build its own state."""

    name: str
    run: Callable[[], Coroutine[Any, Any, None]]
    policy: RestartPolicy = field(default_factory=RestartPolicy)


class ServiceState(StrEnum):
    """The state of a service."""

    WAITING = "waiting"
    """not started yet"""
    RUNNING = "running"
    BACKING_OFF = "backing-off"
    """crashed, will be started again"""
    ENDED = "ended"
    """returned, as it was expected to"""
    ESCALATED = "escalated"
    """failed too often; the supervisor stops because of it"""
    STOPPING = "stopping"
    STOPPED = "stopped"


class ServiceStatus(Value):
    """The status of a service. `since` is the start of its current state."""

    name: str
    state: ServiceState
    since: datetime
    restarts: int = 0
    failures: int = 0
    last_error: str | None = None

    @property
    def is_healthy(self) -> bool:
        return self.state in (ServiceState.RUNNING, ServiceState.ENDED)
