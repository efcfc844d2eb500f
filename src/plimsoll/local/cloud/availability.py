"""The remaining stock and quotas, counted over the existing machines.

Pure. Nothing is stored between reconciles: the rest follows from the machines, so it cannot be lost or counted twice. A
machine holds its share from its start until it is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.quantity import Quantity
from plimsoll.objects.api.simulated_cloud import ErrorClass, MachineError

if TYPE_CHECKING:
    from collections.abc import Container
    from datetime import datetime

    from plimsoll.local.cloud.machines.templates import MachineTemplate
    from plimsoll.objects.api.simulated_cloud import CloudSpec, Quota, Stock

# As the GCE provider of Cluster Autoscaler names them.
STOCKOUT: Final = "RESOURCE_POOL_EXHAUSTED"
QUOTA_EXCEEDED: Final = "QUOTA_EXCEEDED"
NOT_SOLD: Final = "MACHINE_TYPE_NOT_FOUND"


class Availability:
    """Counts machines and decides whether one more is available."""

    def __init__(self, cloud: CloudSpec, *, now: datetime) -> None:
        self._stock = [stock for stock in cloud.stock if stock.until is None or now < stock.until]
        self._quotas = [(quota, limit) for quota in cloud.quotas if (limit := _limit(quota)) is not None]
        self._machines = [0] * len(self._stock)
        self._used = [0] * len(self._quotas)
        self._amounts: dict[tuple[str, str], list[tuple[int, int]]] = {}

    def hold(self, template: MachineTemplate, zone: str) -> None:
        for number, stock in enumerate(self._stock):
            self._machines[number] += _is_of(stock, template, zone)
        for number, amount in self._list_amounts(template):
            self._used[number] += amount

    def reject(self, template: MachineTemplate, zone: str) -> MachineError | None:
        """Why the cloud does not give one more of these in this zone; None: it does."""
        if zone not in template.sold_in:
            return _build_error(NOT_SOLD, f"{template.machine_type or template.group} is not sold in zone {zone}")
        for number, stock in enumerate(self._stock):
            if _is_of(stock, template, zone) and self._machines[number] >= stock.machines:
                where = f" in zone {stock.zone}" if stock.zone else ""
                return _build_error(STOCKOUT, f"out of stock: {stock.machine_type}{where}, {stock.machines} in all")
        for number, amount in self._list_amounts(template):
            quota, limit = self._quotas[number]
            if self._used[number] + amount > limit:
                return _build_error(
                    QUOTA_EXCEEDED, f"quota {quota.name} exceeded: limit {quota.limit} {quota.resource}"
                )
        return None

    def place(self, template: MachineTemplate, zones: list[str]) -> str | MachineError:
        """Hold one in the first of `zones` that has room; otherwise what is wrong with the first."""
        first: MachineError | None = None
        for zone in zones:
            refused = self.reject(template, zone)
            if refused is None:
                self.hold(template, zone)
                return zone
            first = first or refused
        return first or _build_error(NOT_SOLD, f"{template.machine_type or template.group} is sold in no zone")

    def _list_amounts(self, shape: MachineTemplate) -> list[tuple[int, int]]:
        """Quotas that count a machine, and how much of each it takes."""
        key = (shape.group, shape.machine_type)
        if key not in self._amounts:
            self._amounts[key] = [
                (number, shape.get_amount(quota.resource).nano)
                for number, (quota, _) in enumerate(self._quotas)
                if quota.machine_type in {"", shape.machine_type} and quota.family in {"", shape.family}
            ]
        return self._amounts[key]


def find_quota_problems(cloud: CloudSpec) -> list[str]:
    """Quotas that bind nothing, because their limit is not a quantity."""
    return [
        f"spec.quotas[{position}].limit: {quota.limit!r} is not a quantity"
        for position, quota in enumerate(cloud.quotas)
        if _limit(quota) is None
    ]


def find_unsold_problems(cloud: CloudSpec, sold: Container[str]) -> list[str]:
    """Stock entries about machine types that are not sold, which have no effect."""
    named = [
        *((f"stock[{position}]", stock.machine_type) for position, stock in enumerate(cloud.stock)),
        *((f"quotas[{position}]", quota.machine_type) for position, quota in enumerate(cloud.quotas)),
        *((f"boots[{position}]", boot_rule.machine_type) for position, boot_rule in enumerate(cloud.boots)),
    ]
    return [
        f"spec.{path}.machineType: machine type {name!r} is not sold here"
        for path, name in named
        if name and name not in sold
    ]


def _limit(quota: Quota) -> int | None:
    try:
        return Quantity.parse(quota.limit).nano
    except InvalidInput:
        return None


def _is_of(stock: Stock, shape: MachineTemplate, zone: str) -> bool:
    return stock.machine_type == shape.machine_type and stock.zone in {"", zone}


def _build_error(code: str, message: str) -> MachineError:
    return MachineError(class_=ErrorClass.OUT_OF_RESOURCES, code=code, message=message)
