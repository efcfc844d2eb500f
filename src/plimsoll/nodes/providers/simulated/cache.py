"""A cache of the cloud's objects between two refreshes: groups, machines, and machine types on sale.

A refresh takes four calls for any number of groups. A group that was changed is read again on its next access;
templates are kept while the fields that they are built from stay the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from plimsoll.core.resources import ResourceVector
from plimsoll.core.values import Value
from plimsoll.nodes.model.instances import ErrorClass, InstanceState
from plimsoll.nodes.model.snapshot import CapacityType, MachineType
from plimsoll.nodes.providers.simulated.cloud_ports import read
from plimsoll.nodes.providers.values import Instance, InstanceError
from plimsoll.objects.api.simulated_cloud import GROUP_LABEL, MachineState
from plimsoll.objects.api.simulated_cloud import ErrorClass as CloudErrorClass
from plimsoll.objects.api.simulated_cloud_errors import CloudRefused, NoSuchGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.nodes.providers.simulated.cloud_ports import CloudPort
    from plimsoll.nodes.providers.values import NodeRef
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.simulated_cloud import Cloud, Machine, NodeGroup, NodeGroupSpec
    from plimsoll.objects.api.simulated_cloud import MachineType as SoldType

_STATES = {
    MachineState.CREATING: InstanceState.CREATING,
    MachineState.RUNNING: InstanceState.RUNNING,
    MachineState.DELETING: InstanceState.DELETING,
    MachineState.FAILED: InstanceState.CREATING,
}


class UnknownTemplate(Value):
    """The group needs a machine type that the cloud does not sell."""

    problem: str


class SimulatedCloudCache:
    """A copy of the cloud's objects; `refresh` makes a new one."""

    def __init__(self, cloud: CloudPort) -> None:
        self._port = cloud
        self._is_there = False
        self._stale: set[str] = set()
        self._groups: dict[str, NodeGroup] = {}
        self._machines: dict[str, tuple[Machine, ...]] = {}
        self._by_id: dict[str, Machine] = {}
        self._by_name: dict[str, Machine] = {}
        self._sold: dict[str, SoldType] = {}
        self._cloud: Cloud | None = None
        self._templates: dict[str, tuple[NodeGroupSpec, int, Node | UnknownTemplate]] = {}
        self._zones: Mapping[str, tuple[str, ...]] | None = None
        """By group, as the cloud forecasts them; None: not computed since the last change."""

    async def refresh(self) -> None:
        """Read everything. If that fails, the old copy is not used again."""
        self._is_there = False
        groups = await read(self._port.node_groups())
        machines = await read(self._port.list_machines())
        self._cloud = await read(self._port.get_cloud())
        self._sold = {machine_type.name: machine_type for machine_type in await read(self._port.list_machine_types())}
        self._groups = {group.metadata.name: group for group in groups}
        self._machines = _group_machines(machines)
        self._build_index()
        self._templates = {name: kept for name, kept in self._templates.items() if name in self._groups}
        self._stale.clear()
        self._zones = None
        self._is_there = True

    def invalidate(self, group: str) -> None:
        """Forget a group after a change, or an attempt to change it."""
        self._stale.add(group)
        self._zones = None

    async def get_groups(self) -> dict[str, NodeGroup]:
        await self._ensure_loaded()
        for name in sorted(self._stale):
            await self._reread_group(name)
        return self._groups

    async def get_group(self, name: str) -> NodeGroup | None:
        await self._ensure_loaded()
        if name in self._stale:
            await self._reread_group(name)
        return self._groups.get(name)

    async def list_machines(self, group: str) -> tuple[Machine, ...]:
        await self.get_group(group)
        return self._machines.get(group, ())

    async def find_group(self, node: NodeRef) -> str:
        """The group of a node, by its machine or else by its label; empty without a group."""
        await self._ensure_loaded()
        machine = self._find_machine(node)
        if machine is not None:
            return machine.spec.group
        labelled = node.labels.get(GROUP_LABEL, "")
        return labelled if await self.get_group(labelled) is not None else ""

    async def has_machine(self, node: NodeRef) -> bool:
        await self._ensure_loaded()
        return self._find_machine(node) is not None

    async def find_members(self, nodes: Iterable[NodeRef]) -> dict[str, tuple[str, bool]]:
        """By node name: the group, and whether the node has a machine. Nodes without a group are missing."""
        groups = await self.get_groups()
        found: dict[str, tuple[str, bool]] = {}
        for node in nodes:
            machine = self._find_machine(node)
            group = node.labels.get(GROUP_LABEL, "") if machine is None else machine.spec.group
            if group in groups:
                found[node.name] = (group, machine is not None)
        return found

    async def get_machine_types(self) -> dict[str, SoldType]:
        await self._ensure_loaded()
        return self._sold

    async def get_zones(self) -> tuple[str, ...]:
        await self._ensure_loaded()
        assert self._cloud is not None
        return self._cloud.spec.zones

    async def get_zones_of_type(self, machine_type: str) -> tuple[str, ...]:
        """The zones in which a machine type is sold."""
        zones = await self.get_zones()
        sold = (await self.get_machine_types()).get(machine_type)
        return zones if sold is None else build_machine_type(sold, zones=zones).zones

    async def forecast_zones(self, group: str) -> tuple[str, ...]:
        """The zones of its machines that have no node yet, then of its next machine; empty: the cloud does not know."""
        groups = await self.get_groups()
        assert self._cloud is not None
        if self._zones is None:
            machines = [machine for members in self._machines.values() for machine in members]
            self._zones = self._port.forecast_zones(self._cloud, [*groups.values()], machines)
        return self._zones.get(group, ())

    async def get_template(self, group: NodeGroup) -> Node | UnknownTemplate:
        """The template of a group, read once per shape of the group."""
        await self._ensure_loaded()
        assert self._cloud is not None
        name, generation = group.metadata.name, self._cloud.metadata.generation
        shape = structs.replace(group.spec, min=0, max=0, target=0, deletions=())
        kept = self._templates.get(name)
        if kept is None or kept[:2] != (shape, generation):
            kept = (shape, generation, await read(self._read_template(name)))
            self._templates[name] = kept
        return kept[2]

    # ---- inside

    async def _ensure_loaded(self) -> None:
        if not self._is_there:
            await self.refresh()

    async def _reread_group(self, name: str) -> None:
        found = await read(self._find_group(name))
        machines = await read(self._port.list_machines(name))
        self._groups.pop(name, None)
        self._machines.pop(name, None)
        if found is not None:
            self._groups = dict(sorted({**self._groups, name: found}.items()))
            self._machines[name] = machines
        self._build_index()
        self._stale.discard(name)

    async def _find_group(self, name: str) -> NodeGroup | None:
        try:
            return await self._port.get_node_group(name)
        except NoSuchGroup:
            return None

    async def _read_template(self, name: str) -> Node | UnknownTemplate:
        try:
            return await self._port.build_template_node(name)
        except CloudRefused as error:
            return UnknownTemplate(problem=str(error))

    def _build_index(self) -> None:
        machines = [machine for members in self._machines.values() for machine in members]
        self._by_id = {machine.spec.provider_id: machine for machine in machines}
        self._by_name = {machine.metadata.name: machine for machine in machines}

    def _find_machine(self, node: NodeRef) -> Machine | None:
        return self._by_id.get(node.provider_id) if node.provider_id else self._by_name.get(node.name)


def _group_machines(machines: Iterable[Machine]) -> dict[str, tuple[Machine, ...]]:
    found: dict[str, list[Machine]] = {}
    for machine in machines:
        found.setdefault(machine.spec.group, []).append(machine)
    return {group: tuple(members) for group, members in found.items()}


def build_instance(machine: Machine) -> Instance:
    """The instance of a machine; a failed machine is one that is being created, with an error."""
    is_going = machine.metadata.deletion_timestamp is not None
    machine_error = machine.status.error
    error = None
    if machine_error is not None:
        out = machine_error.class_ == CloudErrorClass.OUT_OF_RESOURCES
        error_class = ErrorClass.OUT_OF_RESOURCES if out else ErrorClass.OTHER
        error = InstanceError(
            error_class=error_class, code=machine_error.code or "Unknown", message=machine_error.message
        )
    return Instance(
        id=machine.spec.provider_id,
        name=machine.metadata.name,
        state=InstanceState.DELETING if is_going else _STATES[MachineState(machine.status.state)],
        error=error,
    )


def build_machine_type(sold: SoldType, *, zones: tuple[str, ...]) -> MachineType:
    """The machine type of the planner; `zones` are all zones of the cloud, for a type that is sold in all of them."""
    whole = {"cpu": sold.cpu, "memory": sold.memory, "pods": sold.pods, **sold.gpu}
    return MachineType(
        name=sold.name,
        capacity=ResourceVector.from_quantities(whole),
        allocatable=ResourceVector.from_quantities({**whole, **sold.allocatable}),
        price_per_hour=sold.price,
        zones=tuple(zone for zone in zones if not sold.zones or zone in sold.zones),
        labels=sold.labels,
        architecture=sold.arch,
        capacity_type=CapacityType(sold.capacity_type or CapacityType.ON_DEMAND),
    )
