"""The machine template of a group: its machine type merged with the group's own template. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.quantity import Quantity
from plimsoll.core.values import Value
from plimsoll.objects.api.meta import ResourceList  # noqa: TC001 -- msgspec resolves the annotations at run time
from plimsoll.objects.api.nodes import Taint  # noqa: TC001 -- likewise
from plimsoll.objects.api.simulated_cloud import CAPACITY_TYPE_LABEL, GROUP_LABEL, CapacityType, MachineType, NodeGroup

if TYPE_CHECKING:
    from plimsoll.objects.api.simulated_cloud import CloudSpec

VIRTUAL_LABEL: Final = "plimsoll.io/virtual"
"""Marks a node that the virtual kubelet runs."""
HOSTNAME: Final = "kubernetes.io/hostname"
OS: Final = "kubernetes.io/os"
ARCH: Final = "kubernetes.io/arch"
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"

_DEFAULT_CURRENCY: Final = "USD"


class MachineTemplate(Value):
    """A machine of a group, whichever it is."""

    group: str
    machine_type: str
    family: str
    capacity: ResourceList
    allocatable: ResourceList
    labels: dict[str, str]
    taints: tuple[Taint, ...]
    price: float | None
    """The price per hour; None: unknown."""
    currency: str
    capacity_type: str
    zones: tuple[str, ...]
    """Where it may be put, in the order of preference; never empty."""
    sold_in: tuple[str, ...]
    """Where the cloud has it at all."""

    def get_amount(self, resource: str) -> Quantity:
        """How much of a resource one machine has, as quotas count it."""
        if resource == "machines":
            return Quantity.from_int(1)
        try:
            return Quantity.parse(self.capacity.get(resource, 0))
        except InvalidInput:
            return Quantity.from_int(0)


class InvalidTemplate(Value):
    """The group asks for something the cloud does not know."""

    problem: str


def build_template(
    group: NodeGroup, cloud: CloudSpec, types: dict[str, MachineType]
) -> MachineTemplate | InvalidTemplate:
    spec = group.spec
    if spec.machine_type and spec.machine_type not in types:
        return InvalidTemplate(problem=f"machine type {spec.machine_type!r} is not sold here")
    sold = types.get(spec.machine_type) or MachineType(zones=cloud.zones)
    capacity = (_compute_capacity(sold) if spec.machine_type else {}) | spec.template.capacity
    if not capacity:
        return InvalidTemplate(problem="neither machineType nor template.capacity says what the machines are")
    sold_in = tuple(zone for zone in cloud.zones if not sold.zones or zone in sold.zones)
    return MachineTemplate(
        group=group.metadata.name,
        machine_type=spec.machine_type,
        family=sold.family,
        capacity=capacity,
        allocatable=capacity | sold.allocatable | spec.template.allocatable,
        labels=_build_labels(group, cloud, sold),
        taints=spec.template.taints,
        price=sold.price if spec.price is None else spec.price,
        currency=spec.currency or sold.currency or _DEFAULT_CURRENCY,
        capacity_type=sold.capacity_type or CapacityType.ON_DEMAND,
        zones=spec.zones or sold_in or cloud.zones,
        sold_in=sold_in,
    )


def _compute_capacity(sold: MachineType) -> ResourceList:
    return {"cpu": sold.cpu, "memory": sold.memory, "pods": sold.pods, **sold.gpu}


def _build_labels(group: NodeGroup, cloud: CloudSpec, sold: MachineType) -> dict[str, str]:
    """Without those that differ from node to node. The group's own words go before its type's."""
    instance_type = {INSTANCE_TYPE: sold.name} if sold.name else {}
    return {
        OS: "linux",
        ARCH: sold.arch,
        REGION: cloud.region,
        **instance_type,
        CAPACITY_TYPE_LABEL: sold.capacity_type,
        **sold.labels,
        **group.spec.template.labels,
        GROUP_LABEL: group.metadata.name,
        VIRTUAL_LABEL: "true",
    }
