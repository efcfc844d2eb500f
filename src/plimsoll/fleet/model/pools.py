"""Machine pools of a data-plane cluster as a provider gets them (docs/design/fleet.md 8 and 11.3)."""

from __future__ import annotations

from typing import Final

from plimsoll.fleet.model.records import Record

TYPE_KEY: Final = "bf2.org/kafkaInstanceProfileType"
"""The key of the label and of the taint (effect `NoExecute`) of a pool; the value is the instance type."""
TAINT_EFFECT: Final = "NoExecute"
_PREFIX: Final = "kafka-"


class PoolBounds(Record):
    """A machine pool with its bounds."""

    id: str
    machine_type: str
    min_replicas: int
    max_replicas: int

    @property
    def instance_type(self) -> str:
        """The instance type whose Kafkas run there; empty for pools that are not for Kafkas."""
        return self.id.removeprefix(_PREFIX) if self.id.startswith(_PREFIX) else ""


def name_pool(instance_type: str) -> str:
    return f"{_PREFIX}{instance_type}"
