"""Simulated instances of the base cluster or of one group.

They start after a delay, and a TiKV store is drained after another. Seconds are counted from the start of the
simulation.
"""

from __future__ import annotations

from typing import Final

from plimsoll.core.values import Value
from plimsoll.tidb.model.reconcile_types import Size  # noqa: TC001 - msgspec reads annotations at run time

ALWAYS_S: Final = float("-inf")
"""When instances that were there before the simulation became ready."""


class Delays(Value):
    """Delays of the simulated cluster."""

    start_s: float = 60.0
    """From the request for an instance until it works."""
    drain_s: float = 180.0
    """Until a TiKV store has no regions left."""
    warm_up_s: float = 120.0
    """How long the metrics of a new instance do not represent its share: two windows."""


class SimulatedInstance(Value):
    """One store or TiDB server."""

    name: str
    ready_s: float


class SetTemplate(Value):
    """`key` is the group, empty for the base cluster; `labels` are those of the instances."""

    key: str
    kind: str
    size: Size
    labels: dict[str, str] = {}

    @property
    def is_base(self) -> bool:
        return not self.key

    @property
    def cores(self) -> float:
        """The cores of an instance."""
        return self.size.cpu_milli / 1000


class SimulatedSet:
    """The instances of one TidbCluster; mutable."""

    def __init__(self, form: SetTemplate, *, delays: Delays, made_s: float) -> None:
        self.form = form
        self.made_s = self.changed_s = made_s
        self.instances: list[SimulatedInstance] = []
        self.draining_since_s: float | None = None
        """Since when the last instance is being drained."""
        self._delays = delays

    @property
    def replicas(self) -> int:
        return len(self.instances)

    def resize(self, replicas: int, *, now_s: float, is_old: bool = False) -> None:
        """New instances are ready after the delay; those with the highest ordinals are removed first, at once."""
        ready_s = ALWAYS_S if is_old else now_s + self._delays.start_s
        while len(self.instances) < replicas:
            self.instances.append(SimulatedInstance(name=f"{self.form.key}-{len(self.instances)}", ready_s=ready_s))
        del self.instances[replicas:]
        self.draining_since_s = None
        self.changed_s = now_s

    def take_out(self, *, now_s: float) -> bool:
        """Start or continue draining the last instance; True once it is empty, and then it is gone."""
        if self.draining_since_s is None:
            self.draining_since_s = now_s
        has_left = now_s - self.draining_since_s >= self._delays.drain_s or self.instances[-1].ready_s > now_s
        if has_left:
            self.resize(self.replicas - 1, now_s=now_s)
        return has_left

    def bring_back(self) -> None:
        self.draining_since_s = None

    def list_ready(self, now_s: float) -> list[SimulatedInstance]:
        """Working instances, without one that is being drained."""
        stay = self.instances if self.draining_since_s is None else self.instances[:-1]
        return [instance for instance in stay if instance.ready_s <= now_s]

    def is_young(self, instance: SimulatedInstance, *, now_s: float) -> bool:
        return now_s - instance.ready_s < self._delays.warm_up_s
