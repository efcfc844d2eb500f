"""The table of sizes: how many pods an instance has, and of which shape (docs/design/fleet.md 17.2)."""

from __future__ import annotations

from typing import Final

from plimsoll.core.values import Value
from plimsoll.fleet.agent.model.instances import DEVELOPER, STANDARD

_GIB: Final = 1024**3
_MIB: Final = 1024**2
_STORAGE_FACTOR: Final = (3, 2)
"""Disks hold half as much again as the data that may be kept: a broker with a full disk stops."""


class PodShape(Value):
    """The requests of a pod."""

    cpu_milli: int
    memory_bytes: int

    @property
    def requests(self) -> dict[str, str]:
        return {"cpu": f"{self.cpu_milli}m", "memory": f"{self.memory_bytes // _MIB}Mi"}


class InstanceShape(Value):
    """The pods of an instance. Without controllers its broker is the controller, too."""

    instance_type: str
    units: int
    brokers: int
    broker: PodShape
    controllers: int = 0
    controller: PodShape = PodShape(cpu_milli=100, memory_bytes=_GIB)
    broker_storage_bytes: int = 0

    @property
    def is_spread(self) -> bool:
        """Whether brokers have nodes of their own and all zones have the same number of them."""
        return self.instance_type == STANDARD


def compute_shape(instance_type: str, units: int, *, retention_bytes: int) -> InstanceShape:
    """The shape of a size. `instance_type` is one of the table, `units` at least 1."""
    if instance_type == DEVELOPER:
        # One broker: a developer instance has one replica of everything.
        broker = PodShape(cpu_milli=700 * units, memory_bytes=2560 * _MIB * units)
        return InstanceShape(
            instance_type=instance_type,
            units=units,
            brokers=1,
            broker=broker,
            broker_storage_bytes=_compute_storage(retention_bytes, brokers=1),
        )
    return InstanceShape(
        instance_type=STANDARD,
        units=units,
        brokers=3 * units,
        broker=PodShape(cpu_milli=2900, memory_bytes=17 * _GIB),
        controllers=3,
        broker_storage_bytes=_compute_storage(retention_bytes, brokers=3 * units),
    )


def _compute_storage(retention_bytes: int, *, brokers: int) -> int:
    """Per broker, in whole MiB, because disks are sold so."""
    times, divided_by = _STORAGE_FACTOR
    per_broker = -(-retention_bytes * times // (divided_by * brokers))
    return max(-(-per_broker // _MIB), 1) * _MIB
