"""`SimulatedProvider`: the simulated cloud behind the autoscaler's protocol.

The provider of scenarios, `plimsoll up` and `--cloud-provider=simulated`. All state is in the cloud's objects, so
nothing is lost in a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.nodes.model.call_outcomes import CallFailed, FailureKind, NotImplementedByProvider
from plimsoll.nodes.model.group_names import Naming
from plimsoll.nodes.model.node_labels import INSTANCE_TYPE
from plimsoll.nodes.model.prices import estimate_price
from plimsoll.nodes.providers.ports import NodeOwner
from plimsoll.nodes.providers.simulated.cache import SimulatedCloudCache, build_machine_type
from plimsoll.nodes.providers.simulated.groups import SimulatedGroup, TheoreticalSimulatedGroup
from plimsoll.nodes.providers.values import HOUR_S
from plimsoll.objects.api.simulated_cloud import GROUP_LABEL
from plimsoll.scheduling.pod_requests import compute_pod_demand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.model.snapshot import MachineType
    from plimsoll.nodes.providers.ports import Group
    from plimsoll.nodes.providers.simulated.cloud_ports import CloudPort
    from plimsoll.nodes.providers.values import Blueprint, NodeRef, Span
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.simulated_cloud import NodeGroup

GPU_LABEL: Final = "cloud.plimsoll.io/accelerator"
# A node's name, the group's with a number behind it, has to fit into the 63 characters of its hostname label.
_NAMING: Final = Naming(underscores=False, longest=54)


class SimulatedProvider:
    """The provider over one `CloudPort`. Reads are as of the last `refresh`, except for groups changed since."""

    name = "simulated"
    naming = _NAMING

    def __init__(self, cloud: CloudPort) -> None:
        self._cloud = cloud
        self._cache = SimulatedCloudCache(cloud)

    async def refresh(self) -> None:
        await self._cache.refresh()

    async def cleanup(self) -> None:
        """There is nothing to close."""

    async def node_groups(self) -> tuple[Group, ...]:
        return tuple(self._build_group(group) for group in (await self._cache.get_groups()).values())

    async def node_group_for_node(self, node: NodeRef) -> Group | None:
        group = await self._cache.get_group(await self._cache.find_group(node))
        return None if group is None else self._build_group(group)

    async def has_instance(self, node: NodeRef) -> bool | NotImplementedByProvider:
        return await self._cache.has_machine(node)

    async def find_owners(self, nodes: Sequence[NodeRef]) -> Mapping[str, NodeOwner]:
        ids = {name: self._build_group(group).id for name, group in (await self._cache.get_groups()).items()}
        members = await self._cache.find_members(nodes)
        return {
            name: NodeOwner(group=ids[group], has_instance=is_machine) for name, (group, is_machine) in members.items()
        }

    # ---- money

    async def node_price(self, node: NodeRef, span: Span) -> float | NotImplementedByProvider | None:
        """The price of the node's group, else of the group's machine type, else of the machine type in its label."""
        sold = await self._cache.get_machine_types()
        group = await self._cache.get_group(node.labels.get(GROUP_LABEL, ""))
        kind = sold.get(group.spec.machine_type if group else node.labels.get(INSTANCE_TYPE, ""))
        price = group.spec.price if group and group.spec.price is not None else kind.price if kind else None
        return None if price is None else price * span.seconds / HOUR_S

    async def pod_price(self, pod: Pod, span: Span) -> float | NotImplementedByProvider:
        return estimate_price(compute_pod_demand(pod)) * span.seconds / HOUR_S

    # ---- groups that could be made

    async def get_machine_types(self) -> tuple[MachineType, ...] | NotImplementedByProvider:
        zones = await self._cache.get_zones()
        return tuple(
            build_machine_type(machine_type, zones=zones)
            for machine_type in (await self._cache.get_machine_types()).values()
        )

    async def new_node_group(self, blueprint: Blueprint) -> Group | CallFailed | NotImplementedByProvider:
        sold = (await self._cache.get_machine_types()).get(blueprint.machine_type)
        if sold is None:
            return _build_refusal(f"machine type {blueprint.machine_type} is not sold here")
        kind = build_machine_type(sold, zones=await self._cache.get_zones())
        for zone in blueprint.zones:
            if zone not in kind.zones:
                return _build_refusal(f"machine type {kind.name} is not sold in zone {zone}")
        if "_" in blueprint.id or len(blueprint.id) > _NAMING.longest:
            return _build_refusal(f"{blueprint.id} cannot be the id of a group")
        return TheoreticalSimulatedGroup(blueprint, kind, cloud=self._cloud, cache=self._cache)

    # ---- accelerators

    async def gpu_label(self) -> str:
        return GPU_LABEL

    async def get_available_gpu_types(self) -> tuple[str, ...]:
        sold = (await self._cache.get_machine_types()).values()
        return tuple(
            sorted({machine_type.labels[GPU_LABEL] for machine_type in sold if machine_type.labels.get(GPU_LABEL)})
        )

    def _build_group(self, group: NodeGroup) -> SimulatedGroup:
        return SimulatedGroup(group, cloud=self._cloud, cache=self._cache)


def _build_refusal(why: str) -> CallFailed:
    return CallFailed(kind=FailureKind.REFUSED, message=f"illegal configuration: {why}")
