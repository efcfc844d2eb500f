"""Deletion of chosen nodes: annotate their machines, then lower the replicas; Cluster API deletes annotated ones first.

These are two writes: a crash may come between them, and an answer may be lost. No state is stored for that case. A
machine that has the annotation and is not being deleted yet is in one of two states. If its group has no more machines
than replicas, the replicas must still be lowered. If it has more, they are lowered already, and Cluster API has not
acted yet. An annotation without lowered replicas would misdirect the next deletion, so it is removed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from plimsoll.kube.errors import NotFound
from plimsoll.kube.requests.options import Selection
from plimsoll.nodes.model.call_outcomes import CallFailed, Done, FailureKind
from plimsoll.nodes.providers.clusterapi.annotations import MARK_VALUE
from plimsoll.nodes.providers.clusterapi.cache import PAGE_SIZE
from plimsoll.nodes.providers.clusterapi.client import CALL_FAILED, build_refusal, read, resize, to_failure
from plimsoll.nodes.providers.clusterapi.machines import get_key, is_going
from plimsoll.objects.api.cluster_api import ClusterMachine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.providers.clusterapi.cache import ClusterApiCache, GroupObject
    from plimsoll.nodes.providers.clusterapi.machines import MachineKey
    from plimsoll.nodes.providers.values import NodeRef
    from plimsoll.objects.codec.decoding import DecodedList

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deletions:
    """The deletions of one group: machines, and instances of a pool that has no machines."""

    machines: tuple[ClusterMachine, ...] = ()
    listed: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return len(self.machines) + len(self.listed)


class MachineDeleter:
    """Deletes nodes for one provider, one call at a time, because each call depends on the one before."""

    def __init__(self, cache: ClusterApiCache) -> None:
        self._cache = cache
        self._lock = asyncio.Lock()
        self._deleted: dict[str, set[str]] = {}
        """Instances of pools, by group: they cannot be annotated. A new process treats missing instances as deleted."""
        self._unsure: set[str] = set()
        """Groups with a deletion of unknown outcome: their machines are read again, with their annotations."""

    async def remove(self, group: GroupObject, nodes: Sequence[NodeRef], *, floor: int) -> Done | CallFailed:
        async with self._lock:
            chosen = await self._choose(group, nodes)
            if isinstance(chosen, CallFailed):
                return chosen
            unaccounted = await self._find_unaccounted(group, chosen)
            return await self._delete(group, unaccounted, floor) if unaccounted.count else Done()

    async def _choose(self, group: GroupObject, nodes: Sequence[NodeRef]) -> _Deletions | CallFailed:
        """The nodes that are neither deleted nor being deleted; a node of another group is refused."""
        members = await self._cache.get_machine_index()
        machines: dict[MachineKey, ClusterMachine] = {}
        listed: dict[str, None] = {}
        for node in nodes:
            owner, machine = members.find_group(node), members.find_machine(node)
            if owner != group.id and (owner or machine is not None):
                return build_refusal(f"node {node.name} is not one of node group {group.id}")
            if machine is None and owner:
                listed[node.provider_id] = None
            elif machine is not None and not is_going(machine) and get_key(machine) not in self._cache.deleting:
                machines[get_key(machine)] = machine
        return _Deletions(machines=tuple(machines.values()), listed=tuple(listed))

    async def _delete(self, group: GroupObject, chosen: _Deletions, floor: int) -> Done | CallFailed:
        current = (await self._cache.get_group(group.id)) or group
        problem = _lower_size(group, current.replicas, chosen.count, floor)
        if isinstance(problem, CallFailed):
            return problem
        marked = await self._mark(chosen.machines)
        if isinstance(marked, CallFailed):
            return marked
        # Some machines may have been deleted before they were annotated.
        count = len(marked) + len(chosen.listed)
        outcome = await resize(self._cache, group, lambda size: _lower_size(group, size, count, floor))
        if isinstance(outcome, Done):
            self._cache.deleting.update(get_key(cluster_machine) for cluster_machine in marked)
            self._deleted.setdefault(group.id, set()).update(chosen.listed)
        elif outcome.kind is FailureKind.UNKNOWN:
            # The resize may be done; then the annotations say which machines are deleted.
            self._unsure.add(group.id)
        else:
            await self._unmark(marked)
        return outcome

    # ---- what an earlier call did

    async def _find_unaccounted(self, group: GroupObject, chosen: _Deletions) -> _Deletions:
        """The size without machines that an earlier call deletes and that still exist."""
        if chosen.listed:
            return replace(chosen, listed=await self._find_unaccounted_in_pool(group, chosen.listed))
        going = self._cache.deleting
        held = (await self._cache.get_machine_index()).list_machines(group.id)
        is_sure = group.id not in self._unsure
        if is_sure and not any(
            self._is_ours(cluster_machine) and get_key(cluster_machine) not in going for cluster_machine in held
        ):
            return chosen
        fresh = [
            cluster_machine for cluster_machine in await self._list_machines(group) if not is_going(cluster_machine)
        ]
        surplus = max(0, len(fresh) - await self._read_size(group))
        requested = {get_key(cluster_machine) for cluster_machine in chosen.machines}
        marked = {
            get_key(cluster_machine): cluster_machine for cluster_machine in fresh if self._is_ours(cluster_machine)
        }
        if not marked:
            self._unsure.discard(group.id)
        if not surplus:
            await self._unmark(
                [
                    cluster_machine
                    for key, cluster_machine in marked.items()
                    if key not in requested and key not in going
                ]
            )
            return chosen
        known = surplus - len(marked.keys() & going)
        accounted = set(sorted(marked.keys() & requested)[: max(0, known)])
        return replace(
            chosen,
            machines=tuple(
                cluster_machine for cluster_machine in chosen.machines if get_key(cluster_machine) not in accounted
            ),
        )

    async def _find_unaccounted_in_pool(self, group: GroupObject, listed: Sequence[str]) -> tuple[str, ...]:
        current = (await self._cache.get_group(group.id)) or group
        there = set(current.object.spec.provider_id_list)
        deleted = self._deleted.get(group.id, set()) & there
        self._deleted[group.id] = deleted
        unexplained = max(0, len(there) - current.replicas - len(deleted))
        return tuple(name for name in listed if name not in deleted)[unexplained:]

    async def _read_size(self, group: GroupObject) -> int:
        resource = (await self._cache.get_served()).get_resource(type(group.object))
        meta = group.object.metadata
        scale = await read(self._cache.client.get_scale(resource, meta.name, namespace=meta.namespace))
        self._cache.record_replicas(group, scale.spec.replicas)
        return scale.spec.replicas

    async def _list_machines(self, group: GroupObject) -> list[ClusterMachine]:
        """The machines of the group, read now."""
        served, members = await self._cache.get_served(), await self._cache.get_machine_index()
        selection = Selection(namespace=group.object.metadata.namespace, page_size=PAGE_SIZE)
        machines = served.get_resource(ClusterMachine)
        listed: DecodedList[ClusterMachine] = await read(self._cache.client.list(machines, selection))
        return [cluster_machine for cluster_machine in listed.items if members.find_owner(cluster_machine) == group.id]

    def _is_ours(self, machine: ClusterMachine) -> bool:
        mark = machine.metadata.annotations.get(self._cache.settings.keys.delete_machine)
        return mark == MARK_VALUE and not is_going(machine)

    # ---- annotations

    async def _mark(self, machines: Sequence[ClusterMachine]) -> list[ClusterMachine] | CallFailed:
        """Annotate the machines that exist and are not being deleted; all annotations are undone if one fails."""
        marked: list[ClusterMachine] = []
        for machine in machines:
            try:
                answer = await self._annotate(machine, MARK_VALUE)
            except NotFound:
                continue
            except CALL_FAILED as error:
                await self._unmark(marked)
                return to_failure(error)
            if not is_going(answer):
                marked.append(machine)
        return marked

    async def _unmark(self, machines: Sequence[ClusterMachine]) -> None:
        for machine in machines:
            try:
                await self._annotate(machine, None)
            except NotFound:
                continue
            except CALL_FAILED as error:
                # The next deletion removes the annotation.
                log.warning("provider.mark_stays", machine=machine.metadata.name, problem=str(error))

    async def _annotate(self, machine: ClusterMachine, value: str | None) -> ClusterMachine:
        served = await self._cache.get_served()
        body = {"metadata": {"annotations": {self._cache.settings.keys.delete_machine: value}}}
        meta = machine.metadata
        answer: ClusterMachine = await self._cache.client.merge_patch(
            served.get_resource(ClusterMachine), meta.name, body, namespace=meta.namespace
        )
        return answer


def _lower_size(group: GroupObject, size: int, by: int, floor: int) -> int | Done | CallFailed:
    if by <= 0:
        return Done()
    if size - by < floor:
        return build_refusal(f"node group {group.id} has {size} and keeps at least {floor}: {by} of them cannot go")
    return size - by
