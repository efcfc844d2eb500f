"""`ExternalGrpcProvider`: a provider in another process that serves Cluster Autoscaler's protocol.

Existing servers work unchanged; a server may also have the extension service, which creates groups. A call that the
server lacks returns `NotImplementedByProvider`, and the autoscaler works without it. Messages go through a `Calls`, in
production `channels.GrpcCalls`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.model.call_outcomes import CallFailed, NotImplementedByProvider
from plimsoll.nodes.model.group_names import Naming
from plimsoll.nodes.providers.externalgrpc import mapping
from plimsoll.nodes.providers.externalgrpc.caches import Caches
from plimsoll.nodes.providers.externalgrpc.methods import METHODS
from plimsoll.nodes.providers.externalgrpc.object_bytes import encode_pod
from plimsoll.nodes.providers.externalgrpc.remote_calls import RemoteCalls
from plimsoll.nodes.providers.externalgrpc.remote_groups import RemoteGroup, TheoreticalRemoteGroup

if TYPE_CHECKING:
    from plimsoll.nodes.model.snapshot import MachineType
    from plimsoll.nodes.providers.externalgrpc.methods import Calls
    from plimsoll.nodes.providers.ports import Group
    from plimsoll.nodes.providers.values import Blueprint, NodeRef, Span
    from plimsoll.objects.api.pods import Pod

log = structlog.get_logger(__name__)


class ExternalGrpcProvider:
    """The provider. `Caches` defines how long answers are kept."""

    name = "externalgrpc"

    def __init__(self, calls: Calls) -> None:
        self._caches = Caches()
        self._remote = RemoteCalls(calls, self._caches)
        self.naming = Naming()

    async def refresh(self) -> None:
        """The caches are emptied even if the server does not answer."""
        self._caches.forget_all()
        await self._remote.read("Refresh")

    async def cleanup(self) -> None:
        """The connection is closed even if the server fails."""
        try:
            await self._remote.read("Cleanup")
        finally:
            await self._remote.close()

    async def node_groups(self) -> tuple[Group, ...]:
        kept = self._caches.groups
        if kept.answer is None:
            answer = await self._remote.read("NodeGroups")
            found = (RemoteGroup(group, self._remote) for group in answer.nodeGroups if group.id)
            kept.answer = tuple(sorted(found, key=lambda group: group.id))
        return kept.answer

    async def node_group_for_node(self, node: NodeRef) -> Group | None:
        known: RemoteGroup | None = self._caches.find_group(node)
        if known is not None:
            return known
        answer = await self._remote.read("NodeGroupForNode", node=mapping.to_node_message(node))
        if not answer.nodeGroup.id:
            return None
        found = RemoteGroup(answer.nodeGroup, self._remote)
        self._caches.keep_group_of(node, found)
        return found

    async def has_instance(self, node: NodeRef) -> bool | NotImplementedByProvider:  # noqa: ARG002 - the port's name
        return NotImplementedByProvider(call="HasInstance")

    # ---- money

    async def node_price(self, node: NodeRef, span: Span) -> float | NotImplementedByProvider | None:
        request = METHODS["PricingNodePrice"].request()
        mapping.set_span(request, span)
        times = {"startTimestamp": request.startTimestamp, "endTimestamp": request.endTimestamp}
        answer = await self._remote.read_optional(
            "PricingNodePrice", "NodePrice", node=mapping.to_node_message(node), **times
        )
        return answer if isinstance(answer, NotImplementedByProvider) else float(answer.price)

    async def pod_price(self, pod: Pod, span: Span) -> float | NotImplementedByProvider:
        request = METHODS["PricingPodPrice"].request()
        mapping.set_span(request, span)
        times = {"startTimestamp": request.startTimestamp, "endTimestamp": request.endTimestamp}
        answer = await self._remote.read_optional("PricingPodPrice", "PodPrice", pod_bytes=encode_pod(pod), **times)
        return answer if isinstance(answer, NotImplementedByProvider) else float(answer.price)

    # ---- groups that could be made

    async def get_machine_types(self) -> tuple[MachineType, ...] | NotImplementedByProvider:
        """A type that cannot be read is left out, and logged."""
        kept = self._caches.machine_types
        if kept.answer is None:
            answer = await self._remote.read_optional("MachineTypes", "GetAvailableMachineTypes")
            if isinstance(answer, NotImplementedByProvider):
                return answer
            if answer.HasField("naming"):
                self.naming = mapping.from_naming_message(answer.naming)
            found: list[MachineType] = []
            for machine_type in answer.machineTypes:
                try:
                    found.append(mapping.from_machine_type_message(machine_type))
                except InvalidInput as error:
                    log.warning("provider.unreadable_machine_type", machine_type=machine_type.name, problem=str(error))
            kept.answer = tuple(found)
        return kept.answer

    async def new_node_group(self, blueprint: Blueprint) -> Group | CallFailed | NotImplementedByProvider:
        wanted = mapping.to_blueprint_message(blueprint)
        answer = await self._remote.change_with_answer("NewNodeGroup", "NewNodeGroup", blueprint=wanted)
        if isinstance(answer, CallFailed | NotImplementedByProvider):
            return answer
        return TheoreticalRemoteGroup(answer, blueprint, self._remote)

    # ---- accelerators

    async def gpu_label(self) -> str:
        kept = self._caches.gpu_label
        if kept.answer is None:
            kept.answer = str((await self._remote.read("GPULabel")).label)
        return kept.answer

    async def get_available_gpu_types(self) -> tuple[str, ...]:
        kept = self._caches.gpu_types
        if kept.answer is None:
            kept.answer = tuple(sorted((await self._remote.read("GetAvailableGPUTypes")).gpuTypes))
        return kept.answer
