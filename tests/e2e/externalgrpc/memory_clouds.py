"""A cloud in memory whose machines come at once: enough for a provider behind a real socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.simulated_cloud import Cloud, Machine, MachineType, NodeGroup, NodeGroupSpec
from plimsoll.objects.api.simulated_cloud_errors import CloudRefused, NoSuchGroup, NotSupported

if TYPE_CHECKING:
    from collections.abc import Sequence

SMALL = MachineType(name="small", cpu=2, memory="8Gi", price=0.1)


class MemoryCloud:
    """A `CloudPort`."""

    def __init__(self, **targets: int) -> None:
        self.groups: dict[str, NodeGroup] = {}
        for name, target in targets.items():
            self._put(name, NodeGroupSpec(max=100_000, target=target, machine_type="small"))

    async def node_groups(self) -> tuple[NodeGroup, ...]:
        return tuple(self.groups[name] for name in sorted(self.groups))

    async def get_node_group(self, group: str) -> NodeGroup:
        if group not in self.groups:
            raise NoSuchGroup(f"there is no node group {group}")
        return self.groups[group]

    async def list_machines(self, group: str = "") -> tuple[Machine, ...]:
        names = [group] if group else sorted(self.groups)
        return tuple(_machine(name, number) for name in names for number in range(self.groups[name].spec.target))

    async def get_cloud(self) -> Cloud:
        return Cloud()

    def forecast_zones(
        self, cloud: Cloud, groups: Sequence[NodeGroup], machines: Sequence[Machine]
    ) -> dict[str, tuple[str, ...]]:
        """Its machines are in no zone."""
        del cloud, groups, machines
        return {}

    async def list_machine_types(self) -> tuple[MachineType, ...]:
        return (SMALL,)

    async def build_template_node(self, group: str) -> Node:
        return msgspec.convert({"metadata": {"name": group}, "status": {"capacity": {"cpu": "2"}}}, Node)

    async def increase_size(self, group: str, delta: int, *, expected: int | None = None) -> None:
        await self._resize(group, delta, expected)

    async def decrease_target_size(self, group: str, delta: int, *, expected: int | None = None) -> None:
        await self._resize(group, delta, expected)

    async def atomic_increase_size(self, group: str, delta: int, *, expected: int | None = None) -> None:
        raise NotSupported(f"{group} by {delta} from {expected}")

    async def delete_nodes(self, group: str, names: Sequence[str]) -> None:
        await self._resize(group, -len(names), None)

    async def force_delete_nodes(self, group: str, names: Sequence[str]) -> None:
        await self._resize(group, -len(names), None)

    async def create_group(self, group: str, spec: NodeGroupSpec) -> None:
        if group in self.groups:
            raise CloudRefused(f"there is a node group {group} already")
        self._put(group, spec)

    async def delete_group(self, group: str) -> None:
        del self.groups[(await self.get_node_group(group)).metadata.name]

    async def _resize(self, group: str, delta: int, expected: int | None) -> None:
        spec = (await self.get_node_group(group)).spec
        if expected is not None and spec.target != expected:
            raise CloudRefused(f"target is {spec.target}")
        self._put(group, structs.replace(spec, target=spec.target + delta))

    def _put(self, name: str, spec: NodeGroupSpec) -> None:
        body: dict[str, Any] = {"metadata": {"name": name}, "spec": msgspec.to_builtins(spec)}
        self.groups[name] = msgspec.convert(body, NodeGroup)


def _machine(group: str, number: int) -> Machine:
    name = f"{group}-{number}"
    spec = {"providerID": f"memory://{name}", "group": group, "machineType": "small"}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec, "status": {"state": "running"}}, Machine)
