"""Executes rollbacks: removes what a failed attempt added for a ProvisioningRequest (docs/design/nodes.md 3.5).

The intent says how far each group goes back (`GroupStep.back`), so a later process continues where this one ended, and
a size that is reached is not lowered again. Capacity without a machine is given up first, then machines without a node,
then the youngest nodes. A node with a real pod or a booking stays; ordinary scale-down removes it once it is empty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.errors import Unreachable
from plimsoll.kube.errors import ApiCallFailed
from plimsoll.nodes.actuation.deletion_guard import find_use
from plimsoll.nodes.actuation.node_writer import NodeGone
from plimsoll.nodes.actuation.taints import add_deletion_taint
from plimsoll.nodes.model.call_outcomes import FailureKind
from plimsoll.nodes.model.instances import InstanceState
from plimsoll.nodes.providers.values import NodeRef
from plimsoll.objects.api.nodes import Node, is_node_ready

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.nodes.actuation.instance_deleter import InstanceDeleter, Results
    from plimsoll.nodes.actuation.node_pods import PodsOnNodes
    from plimsoll.nodes.actuation.node_writer import NodeWriter
    from plimsoll.nodes.model.call_outcomes import CallFailed
    from plimsoll.nodes.providers.ports import Group, Provider
    from plimsoll.nodes.providers.values import Instance
    from plimsoll.nodes.requests.status import Intent


log = structlog.get_logger(__name__)

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackResult:
    """The nodes given back by group. `problem`: why something is left; it is tried again."""

    nodes: Mapping[str, int] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    """Groups that the attempt created."""
    problem: str = ""

    @property
    def is_done(self) -> bool:
        return not self.problem

    @property
    def did_something(self) -> bool:
        return bool(self.deleted) or any(self.nodes.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackContext:
    """The nodes of the cluster and their bookings."""

    nodes: Sequence[Node] = ()
    unreadable: frozenset[str] = frozenset()
    """Names and provider ids of nodes that cannot be decoded: they exist, and are left alone."""
    booked_nodes: frozenset[str] = frozenset()
    """Nodes that are booked for a request."""


class RollbackExecutor:
    """Executes rollbacks through the cloud provider."""

    def __init__(
        self, provider: Provider, deleter: InstanceDeleter, *, pods: PodsOnNodes, writer: NodeWriter, clock: Clock
    ) -> None:
        self._provider = provider
        self._deleter = deleter
        self._pods = pods
        self._writer = writer
        self._clock = clock

    async def refresh_provider(self) -> None:
        """Refresh the provider: nodes requested in this loop may exist already."""
        try:
            await self._provider.refresh()
        except Unreachable as error:
            log.warning("provreq.cannot_look", problem=str(error))

    async def roll_back(self, intent: Intent, context: RollbackContext) -> RollbackResult:
        """Roll back in reverse order; a group that fails does not stop the others."""
        nodes: dict[str, int] = {}
        deleted: list[str] = []
        problems: list[str] = []
        try:
            groups = {group.id: group for group in await self._provider.node_groups()}
            for name, step in reversed(intent.groups.items()):
                if name in groups and step.back is not None:
                    nodes[name], problem = await self._lower_group(groups[name], step.back, context)
                    problems.append(problem)
            made = [groups[name] for name in reversed(intent.created) if name in groups]
            deleted += [group.id for group in made if await self._delete_if_empty(group)]
        except Unreachable as error:
            problems.append(str(error))
        found = RollbackResult(nodes=nodes, deleted=tuple(deleted), problem="; ".join(filter(None, problems)))
        log.info("provreq.rolled_back", nodes=nodes, deleted=deleted, problem=found.problem)
        return found

    async def release_booting(self, nodes: Mapping[str, int], context: RollbackContext) -> RollbackResult:
        """Give back nodes that have not joined, at most so many per group."""
        released: dict[str, int] = {}
        problems: list[str] = []
        try:
            groups = {group.id: group for group in await self._provider.node_groups()}
            for name, most in nodes.items():
                if name in groups and most > 0:
                    released[name], problem = await self._release(groups[name], most, context)
                    problems.append(problem)
        except Unreachable as error:
            problems.append(str(error))
        found = RollbackResult(nodes=released, problem="; ".join(filter(None, problems)))
        log.info("provreq.given_back", nodes=released, problem=found.problem)
        return found

    # ---- one group

    async def _release(self, group: Group, most: int, context: RollbackContext) -> tuple[int, str]:
        """Lower the target by what the provider has not created, then delete machines that have not joined."""
        target, machines = await group.target_size(), await group.nodes()
        creating = [machine for machine in machines if machine.state is InstanceState.CREATING]
        given = 0
        if (missing := min(most, target - len(machines) + len(creating))) > 0:
            failure = await self._deleter.lower_target(group, missing, expected=target)
            given = missing if failure is None else 0
        # A provider that does not lower its target below the machines it is creating deletes them one by one.
        running = [machine for machine in machines if machine.state is InstanceState.RUNNING]
        booting = await self._find_booting([*([] if given else creating), *running], context, most=most - given)
        if not booting:
            return given, ""
        results = await self._delete(group, booting)
        failure = next((failure for failure in results.values() if failure is not None), None)
        given += sum(failure is None for failure in results.values())
        return given, "" if failure is None else f"{group.id}: {failure.message}"

    async def _find_booting(
        self, machines: Sequence[Instance], context: RollbackContext, *, most: int
    ) -> list[NodeRef]:
        """Machines without a node, and nodes that are not ready yet; none with pods or bookings."""
        found: list[NodeRef] = []
        for machine, node in _match_nodes(machines, context):
            if len(found) >= most:
                break
            if node is not None and (is_node_ready(node) or node.metadata.name in context.booked_nodes):
                continue
            ref = NodeRef.from_instance(machine) if node is None else NodeRef.from_node(node)
            is_created = machine.state is not InstanceState.CREATING
            if is_created and not (await self._is_empty(ref.name) and await self._taint_registered(ref)):
                continue
            found.append(ref)
        return found

    async def _lower_group(self, group: Group, back: int, context: RollbackContext) -> tuple[int, str]:
        """The number of nodes the group was lowered by, and what went wrong."""
        target = await group.target_size()
        machines = [instance for instance in await group.nodes() if instance.state is not InstanceState.DELETING]
        given = 0
        if (missing := min(target - back, target - len(machines))) > 0:
            failure = await self._deleter.lower_target(group, missing, expected=target)
            if failure is not None:
                return 0, f"{group.id}: {failure.message}"
            given = missing
        if target - given <= back:
            return given, ""
        idle = await self._find_idle(machines, context, most=target - given - back)
        if not idle:
            return given, ""
        results = await self._delete(group, idle)
        failure = next((failure for failure in results.values() if failure is not None), None)
        given += sum(failure is None for failure in results.values())
        return given, "" if failure is None else f"{group.id}: {failure.message}"

    async def _find_idle(self, machines: Sequence[Instance], context: RollbackContext, *, most: int) -> list[NodeRef]:
        """Machines without pods or bookings, those furthest from being used first."""
        known = _match_nodes(machines, context)
        nodes = [node for _, node in known if node is not None and node.metadata.name not in context.booked_nodes]
        nodes.sort(key=lambda node: (node.metadata.creation_timestamp or _EARLIEST, node.metadata.name), reverse=True)
        coming = [machine for machine, node in known if node is None]
        # A running machine may have registered since the loop began.
        empty_by_nature = [
            NodeRef.from_instance(instance) for instance in coming if instance.state is InstanceState.CREATING
        ]
        to_ask = [
            NodeRef.from_instance(instance) for instance in coming if instance.state is not InstanceState.CREATING
        ]
        idle = empty_by_nature[:most]
        for node_ref in to_ask:
            if len(idle) < most and await self._is_empty(node_ref.name) and await self._taint_registered(node_ref):
                idle.append(node_ref)
        for node in nodes:
            if len(idle) < most and await self._is_empty(node.metadata.name) and await self._taint(node):
                idle.append(NodeRef.from_node(node))
        return idle

    async def _taint_registered(self, ref: NodeRef) -> bool:
        """Taint the node of an instance, if it has registered meanwhile; False if that cannot be known."""
        node = await self._writer.read(ref.name)
        return isinstance(node, NodeGone) or (isinstance(node, Node) and await self._taint(node))

    async def _taint(self, node: Node) -> bool:
        """Keep new pods off a node that is given back; a taint that stays is removed by the next loop."""
        tainted = await add_deletion_taint(self._writer, node, at=self._clock.now(), cordon=False)
        return isinstance(tainted, Node)

    async def _is_empty(self, node: str) -> bool:
        """Whether the node has no real pods; unknown counts as no."""
        try:
            found = await self._pods.list_on(node)
        except ApiCallFailed:
            return False
        return find_use(found, node, self._clock.now()) is None

    async def _delete_if_empty(self, group: Group) -> bool:
        """Delete a group that the attempt created, if it is empty; otherwise it is deleted later, as any other."""
        if await group.target_size() > 0 or await group.nodes():
            return False
        return await self._deleter.delete_group(group) is None

    async def _delete(self, group: Group, refs: Sequence[NodeRef]) -> Results:
        """Delete nodes, by force if the minimum size is in the way."""
        results = await self._deleter.delete(group, refs)
        refused = [ref for ref in refs if _is_refused(results[ref.name])]
        if not refused:
            return results
        return {**results, **await self._deleter.delete(group, refused, force=True)}


def _is_refused(failure: CallFailed | None) -> bool:
    return failure is not None and failure.kind is FailureKind.REFUSED


def _match_nodes(machines: Sequence[Instance], context: RollbackContext) -> list[tuple[Instance, Node | None]]:
    """Each machine with its node, if it has one. Machines whose node cannot be decoded are left out."""
    by_id = {node.spec.provider_id: node for node in context.nodes} | {
        node.metadata.name: node for node in context.nodes
    }
    readable = [machine for machine in machines if context.unreadable.isdisjoint((machine.id, machine.name))]
    return [(machine, by_id.get(machine.id) or by_id.get(machine.name)) for machine in readable]
