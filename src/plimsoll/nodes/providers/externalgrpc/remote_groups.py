"""Node groups behind the protocol.

The protocol changes sizes by a delta and has no precondition, so the target is read first: a repeated call
changes nothing, and a size that another client changed is left alone, except between the two calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from plimsoll.nodes.model.call_outcomes import CallFailed, Done, FailureKind, NotImplementedByProvider, Outcome
from plimsoll.nodes.providers.externalgrpc import mapping
from plimsoll.nodes.providers.externalgrpc.object_bytes import decode_node
from plimsoll.nodes.providers.ports import Created
from plimsoll.nodes.providers.theoretical import Theoretical
from plimsoll.objects.protobuf.wire import InvalidProtobuf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.providers.externalgrpc.remote_calls import RemoteCalls
    from plimsoll.nodes.providers.values import Blueprint, GroupOptions, Instance, NodeRef
    from plimsoll.objects.api.nodes import Node

log = structlog.get_logger(__name__)


class RemoteGroup:
    """A group that the server listed. The protocol does not say whether it was auto-provisioned."""

    exists = True
    autoprovisioned: bool | None = None
    autoscaled = True

    def __init__(self, message: Any, remote: RemoteCalls) -> None:
        self._remote = remote
        self.id: str = message.id
        self.min_size: int = message.minSize
        self.max_size: int = message.maxSize
        self.debug: str = message.debug

    # ---- reading

    async def target_size(self) -> int:
        return int((await self._remote.read("NodeGroupTargetSize", id=self.id)).targetSize)

    async def can_increase_atomically(self) -> bool:
        known = self._remote.caches.atomic
        if self.id not in known:
            known[self.id] = await self._remote.probe("AtomicIncreaseSize", id=self.id, delta=0)
        return known[self.id]

    async def nodes(self) -> tuple[Instance, ...]:
        answer = await self._remote.read("NodeGroupNodes", id=self.id)
        return tuple(mapping.from_instance_message(instance) for instance in answer.instances)

    async def template_node_info(self) -> Node | NotImplementedByProvider:
        kept = self._remote.caches.templates
        if self.id not in kept:
            answer = await self._remote.read_optional("NodeGroupTemplateNodeInfo", "TemplateNodeInfo", id=self.id)
            if not isinstance(answer, NotImplementedByProvider):
                answer = decode_template(self.id, answer.nodeBytes)
            kept[self.id] = answer
        found: Node | NotImplementedByProvider = kept[self.id]
        return found

    async def get_options(self, defaults: GroupOptions) -> GroupOptions | NotImplementedByProvider:
        """A server that answers without options has none of its own."""
        message = mapping.to_options_message(defaults)
        answer = await self._remote.read_optional("NodeGroupGetOptions", "GetOptions", id=self.id, defaults=message)
        if isinstance(answer, NotImplementedByProvider):
            return answer
        if not answer.HasField("nodeGroupAutoscalingOptions"):
            return defaults
        return mapping.from_options_message(answer.nodeGroupAutoscalingOptions, defaults)

    # ---- changing

    async def increase_size(self, delta: int, *, expected: int) -> Outcome:
        return await self._resize("NodeGroupIncreaseSize", "IncreaseSize", delta, expected)

    async def decrease_target_size(self, delta: int, *, expected: int) -> Outcome:
        return await self._resize("NodeGroupDecreaseTargetSize", "DecreaseTargetSize", delta, expected)

    async def atomic_increase_size(self, delta: int, *, expected: int) -> Outcome:
        fields = {"id": self.id, "delta": delta, "expected": expected}
        return await self._remote.change("AtomicIncreaseSize", "AtomicIncreaseSize", **fields)

    async def delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        messages = [mapping.to_node_message(node_ref) for node_ref in nodes]
        return await self._remote.change("NodeGroupDeleteNodes", "DeleteNodes", id=self.id, nodes=messages)

    async def force_delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        messages = [mapping.to_node_message(node_ref) for node_ref in nodes]
        return await self._remote.change("ForceDeleteNodes", "ForceDeleteNodes", id=self.id, nodes=messages)

    async def create(self) -> Created | CallFailed | NotImplementedByProvider:
        return CallFailed(kind=FailureKind.REFUSED, message=f"node group {self.id} exists already")

    async def delete(self) -> Outcome:
        outcome = await self._remote.change("DeleteNodeGroup", "Delete", id=self.id)
        self._remote.caches.forget_group(self.id)
        return outcome

    async def _resize(self, name: str, what: str, delta: int, expected: int) -> Outcome:
        answer = await self._remote.change_with_answer("NodeGroupTargetSize", "TargetSize", id=self.id)
        if isinstance(answer, CallFailed):
            # Only asked, so nothing was done, whatever became of the question.
            unknown = answer.kind is FailureKind.UNKNOWN
            return CallFailed(kind=FailureKind.FAILED, message=answer.message) if unknown else answer
        if isinstance(answer, NotImplementedByProvider):
            return answer
        target = int(answer.targetSize)
        if target == expected + delta:
            return Done()
        if target != expected:
            message = f"target of node group {self.id} is {target}, not {expected}"
            return CallFailed(kind=FailureKind.REFUSED, message=message)
        return await self._remote.change(name, what, id=self.id, delta=delta)


class TheoreticalRemoteGroup(Theoretical):
    """A group that the server could create. It has the template of the server's answer."""

    def __init__(self, answer: Any, blueprint: Blueprint, remote: RemoteCalls) -> None:
        created = answer.nodeGroup
        super().__init__(created.id or blueprint.id, min_size=created.minSize, max_size=created.maxSize)
        self._remote = remote
        self._blueprint = blueprint
        self._node_bytes: bytes = answer.nodeBytes

    async def template_node_info(self) -> Node | NotImplementedByProvider:
        return decode_template(self.id, self._node_bytes)

    async def create(self) -> Created | CallFailed | NotImplementedByProvider:
        """The server gets the whole blueprint: it need not have kept the group it was asked about."""
        wanted = mapping.to_blueprint_message(self._blueprint)
        answer = await self._remote.change_with_answer("CreateNodeGroup", "Create", blueprint=wanted)
        self._remote.caches.forget_group(self.id)
        if isinstance(answer, CallFailed | NotImplementedByProvider):
            return answer
        self.exists = True
        return Created(id=answer.id or self.id, extra_ids=tuple(answer.extraIds))


def decode_template(group: str, content: bytes) -> Node | NotImplementedByProvider:
    """None if the bytes are not a node: one bad template must not stop the others."""
    if content:
        try:
            return decode_node(content)
        except InvalidProtobuf as error:
            log.warning("provider.unreadable_template", group=group, problem=str(error))
    return NotImplementedByProvider(call="TemplateNodeInfo")
