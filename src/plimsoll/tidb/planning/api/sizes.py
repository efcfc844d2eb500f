"""Quantities of a TidbClusterAutoScaler or TidbCluster in the planner's units, rounded up. A missing quantity is 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.quantity import Quantity
from plimsoll.tidb.model.strategy import ResourceType

if TYPE_CHECKING:
    from plimsoll.objects.api.meta import Quantity as Written
    from plimsoll.objects.api.tidb import AutoResource, TidbComponent


def parse_cpu_milli(written: Written | None) -> int:
    return Quantity.parse(written).to_milli() if written is not None else 0


def parse_bytes(written: Written | None) -> int:
    return Quantity.parse(written).round_up() if written is not None else 0


def is_quantity(written: Written) -> bool:
    try:
        Quantity.parse(written)
    except InvalidQuantity:
        return False
    return True


def read_resource_type(name: str, resource: AutoResource, *, suffix: str = "") -> ResourceType:
    """Raises `InvalidQuantity`, but not after validation."""
    return ResourceType(
        name=name,
        cpu_milli=parse_cpu_milli(resource.cpu),
        memory_bytes=parse_bytes(resource.memory),
        storage_bytes=parse_bytes(resource.storage),
        count=resource.count,
        group_suffix=suffix,
    )


def read_requests_type(name: str, component: TidbComponent, *, count: int | None = None) -> ResourceType:
    """The size of a cluster's own instances: their requests, which they are guaranteed to have."""
    requests = component.requests
    return ResourceType(
        name=name,
        cpu_milli=parse_cpu_milli(requests.get("cpu")),
        memory_bytes=parse_bytes(requests.get("memory")),
        storage_bytes=parse_bytes(requests.get("storage")),
        count=count,
    )
