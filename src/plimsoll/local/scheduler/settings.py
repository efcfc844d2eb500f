"""The settings of the scheduler, with kube-scheduler's defaults."""

from __future__ import annotations

from typing import Final

from plimsoll.core.values import Value


class SchedulerSettings(Value, frozen=True):
    """Effort is counted, never timed: the same world is worked through in the same steps on any machine."""

    name: str = "default-scheduler"
    """Only pods that ask for this scheduler are looked at; events are signed with it."""
    host: str = "local"
    initial_backoff_s: float = 1.0
    max_backoff_s: float = 10.0
    flush_after_s: float = 300.0
    """A pod that nothing has helped for so long is tried again anyhow."""
    bind_timeout_s: float = 600.0
    """So long a pod keeps its place while its volumes are being bound."""
    nodes_at_once: int = 4_000
    """After so many nodes were looked at, for one pod or for several, others may run: a few milliseconds."""
    binds_at_once: int = 32


DEFAULT_SETTINGS: Final = SchedulerSettings()
