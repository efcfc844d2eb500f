"""The room of a cluster in streaming units, by instance type."""

from __future__ import annotations

from plimsoll.core.plans import Reason  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.core.values import Value


class TypeCapacity(Value):
    """The units of one instance type. `max_nodes`: what holds, of the pool's and the autoscaler's limits."""

    max_nodes: int
    max_units: int
    remaining_units: int


class ClusterCapacity(Value):
    """Units by instance type, and why some are fewer than the pool allows."""

    types: dict[str, TypeCapacity] = {}
    is_bounded: bool = False
    """Whether the control plane bounds instances at all. In manual scaling it gives no pools."""
    smaller: tuple[Reason, ...] = ()

    def get_max_units(self, instance_type: str) -> int | None:
        """None: there is no bound."""
        if not self.is_bounded:
            return None
        found = self.types.get(instance_type)
        return 0 if found is None else found.max_units
