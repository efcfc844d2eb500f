"""What a node costs: in money, and as planning counts it. Pure.

`Price.per_hour` is real money, for reports. `Price.planning` adds the preferences of docs/design/nodes.md 8.4 that
hold per node: existing groups before new ones, and few nodes before many at the same price. Other preferences are in
`predicates.extra_constraints` (accelerators only for pods that request them, spot only where it is selected) and in
the tiers of the priority expander.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.core.resources import CPU, MEMORY, ResourceVector
from plimsoll.nodes.model.gpus import count_gpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.nodes.model.snapshot import NodeGroup, Snapshot


CORE_PRICE: Final = 0.033174
GIB_PRICE: Final = 0.004446
GPU_PRICE: Final = 0.7
"""Hourly prices of the upstream pricing proposal, used where no price is known, so that cost measures waste."""
NEW_GROUP_PENALTY: Final = 0.02
"""The share of its price by which a node of a new group must be cheaper than one of an existing group."""
NODE_PENALTY: Final = 1e-5
"""Added per node and hour; it decides only between plans of the same price."""
_MILLI: Final = 1000
_GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """The operator's price of a machine type: a fixed `price`, or `factor` times the known price."""

    price: float | None = None
    factor: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The hourly price of one node."""

    per_hour: float
    planning: float


def compute_price(
    machine_type: str,
    capacity: ResourceVector,
    *,
    given: float | None,
    exists: bool,
    overlay: Mapping[str, Overlay] | None = None,
) -> Price:
    """The overlay applies first, then the price of the provider, then the estimate."""
    known = estimate_price(capacity) if given is None else given
    adjusted = (overlay or {}).get(machine_type, Overlay()) if machine_type else Overlay()
    per_hour = known * adjusted.factor if adjusted.price is None else adjusted.price
    return Price(per_hour=per_hour, planning=per_hour * (1.0 if exists else 1.0 + NEW_GROUP_PENALTY) + NODE_PENALTY)


def compute_group_prices(groups: Iterable[NodeGroup], overlay: Mapping[str, Overlay]) -> dict[str, float]:
    """The hourly price of one node, by group id."""
    found: dict[str, float] = {}
    for group in groups:
        status = group.template.status
        capacity, _ = ResourceVector.read_bounded(status.capacity or status.allocatable, path="status.capacity")
        price = compute_price(group.machine_type, capacity, given=group.price_per_hour, exists=True, overlay=overlay)
        found[group.id] = price.per_hour
    return found


def estimate_price(capacity: ResourceVector) -> float:
    cores, gibibytes = capacity[CPU] / _MILLI, capacity[MEMORY] / _GIB
    return CORE_PRICE * cores + GIB_PRICE * gibibytes + GPU_PRICE * count_gpus(capacity)


def are_prices_known(snapshot: Snapshot, overlay: Mapping[str, Overlay]) -> bool:
    """Whether any price is known: then estimates fill the gaps, and cost is the default expander."""
    if overlay or any(group.price_per_hour is not None for group in snapshot.groups):
        return True
    return any(kind.price_per_hour is not None for kind in snapshot.machine_types)
