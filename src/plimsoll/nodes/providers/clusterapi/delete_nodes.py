"""Removal of certain nodes: mark their machines, then want as many fewer; Cluster API removes marked machines first.

Two writes, so a crash may come between them, and an answer may be lost. Nothing is remembered for that: a machine that
has our mark and is not going yet is either still to be paid for (its group is no larger than wanted) or paid for
already (there are more machines than wanted, and Cluster API has not acted yet). A mark without its payment would
misdirect the next removal, so it is taken back then.
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
from plimsoll.nodes.providers.clusterapi.client import CALL_FAILED, failure_of, read, refused, resize
from plimsoll.nodes.providers.clusterapi.machines import is_going, key_of
from plimsoll.objects.api.cluster_api import ClusterMachine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.providers.clusterapi.cache import ClusterApiCache, GroupObject
    from plimsoll.nodes.providers.clusterapi.machines import MachineKey
    from plimsoll.nodes.providers.values import NodeRef
    from plimsoll.objects.codec.decoding import DecodedList

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """What is to go of one group: machines, and instances of a pool that has no machines."""

    machines: tuple[ClusterMachine, ...] = ()
    listed: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return len(self.machines) + len(self.listed)


class MachineDeleter:
    """Deletes nodes for one provider, one call at a time, because each call depends on the one before."""

    def __init__(self, holdings: ClusterApiCache) -> None:
        self._holdings = holdings
        self._lock = asyncio.Lock()
        self._given_up: dict[str, set[str]] = {}
        """Instances of pools, by group. Nothing can be marked there, and a new process takes what is gone as done."""
        self._unsure: set[str] = set()
        """Groups with a deletion of unknown outcome: their machines are read again, with their annotations."""

    async def remove(self, group: GroupObject, nodes: Sequence[NodeRef], *, floor: int) -> Done | CallFailed:
        async with self._lock:
            chosen = await self._chosen(group, nodes)
            if isinstance(chosen, CallFailed):
                return chosen
            unpaid = await self._unpaid(group, chosen)
            return await self._give_up(group, unpaid, floor) if unpaid.count else Done()

    async def _chosen(self, group: GroupObject, nodes: Sequence[NodeRef]) -> _Chosen | CallFailed:
        """Those that are not gone or going already; a node of others is refused."""
        members = await self._holdings.members()
        machines: dict[MachineKey, ClusterMachine] = {}
        listed: dict[str, None] = {}
        for node in nodes:
            owner, machine = members.group_of(node), members.machine_of(node)
            if owner != group.id and (owner or machine is not None):
                return refused(f"node {node.name} is not one of node group {group.id}")
            if machine is None and owner:
                listed[node.provider_id] = None
            elif machine is not None and not is_going(machine) and key_of(machine) not in self._holdings.going:
                machines[key_of(machine)] = machine
        return _Chosen(machines=tuple(machines.values()), listed=tuple(listed))

    async def _give_up(self, group: GroupObject, chosen: _Chosen, floor: int) -> Done | CallFailed:
        current = (await self._holdings.group(group.id)) or group
        problem = _fewer(group, current.replicas, chosen.count, floor)
        if isinstance(problem, CallFailed):
            return problem
        marked = await self._mark(chosen.machines)
        if isinstance(marked, CallFailed):
            return marked
        # Some may have gone by themselves before their mark came.
        count = len(marked) + len(chosen.listed)
        outcome = await resize(self._holdings, group, lambda size: _fewer(group, size, count, floor))
        if isinstance(outcome, Done):
            self._holdings.going.update(key_of(cluster_machine) for cluster_machine in marked)
            self._given_up.setdefault(group.id, set()).update(chosen.listed)
        elif outcome.kind is FailureKind.UNKNOWN:
            # It may be done, and then the marks say which ones are to go.
            self._unsure.add(group.id)
        else:
            await self._unmark(marked)
        return outcome

    # ---- what an earlier call did

    async def _unpaid(self, group: GroupObject, chosen: _Chosen) -> _Chosen:
        """The size without machines that an earlier call deletes and that still exist."""
        if chosen.listed:
            return replace(chosen, listed=await self._unpaid_of_pool(group, chosen.listed))
        going = self._holdings.going
        held = (await self._holdings.members()).of_group(group.id)
        is_sure = group.id not in self._unsure
        if is_sure and not any(
            self._is_ours(cluster_machine) and key_of(cluster_machine) not in going for cluster_machine in held
        ):
            return chosen
        fresh = [cluster_machine for cluster_machine in await self._listed_now(group) if not is_going(cluster_machine)]
        surplus = max(0, len(fresh) - await self._size_now(group))
        asked = {key_of(cluster_machine) for cluster_machine in chosen.machines}
        marked = {
            key_of(cluster_machine): cluster_machine for cluster_machine in fresh if self._is_ours(cluster_machine)
        }
        if not marked:
            self._unsure.discard(group.id)
        if not surplus:
            await self._unmark(
                [cluster_machine for key, cluster_machine in marked.items() if key not in asked and key not in going]
            )
            return chosen
        known = surplus - len(marked.keys() & going)
        paid = set(sorted(marked.keys() & asked)[: max(0, known)])
        return replace(
            chosen,
            machines=tuple(
                cluster_machine for cluster_machine in chosen.machines if key_of(cluster_machine) not in paid
            ),
        )

    async def _unpaid_of_pool(self, group: GroupObject, listed: Sequence[str]) -> tuple[str, ...]:
        current = (await self._holdings.group(group.id)) or group
        there = set(current.object.spec.provider_id_list)
        given_up = self._given_up.get(group.id, set()) & there
        self._given_up[group.id] = given_up
        unexplained = max(0, len(there) - current.replicas - len(given_up))
        return tuple(name for name in listed if name not in given_up)[unexplained:]

    async def _size_now(self, group: GroupObject) -> int:
        resource = (await self._holdings.served()).resource(type(group.object))
        meta = group.object.metadata
        scale = await read(self._holdings.client.get_scale(resource, meta.name, namespace=meta.namespace))
        self._holdings.note_replicas(group, scale.spec.replicas)
        return scale.spec.replicas

    async def _listed_now(self, group: GroupObject) -> list[ClusterMachine]:
        """The group's machines as of this moment."""
        served, members = await self._holdings.served(), await self._holdings.members()
        selection = Selection(namespace=group.object.metadata.namespace, page_size=PAGE_SIZE)
        machines = served.resource(ClusterMachine)
        listed: DecodedList[ClusterMachine] = await read(self._holdings.client.list(machines, selection))
        return [cluster_machine for cluster_machine in listed.items if members.owner_of(cluster_machine) == group.id]

    def _is_ours(self, machine: ClusterMachine) -> bool:
        mark = machine.metadata.annotations.get(self._holdings.settings.keys.delete_machine)
        return mark == MARK_VALUE and not is_going(machine)

    # ---- marks

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
                return failure_of(error)
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
                # It is taken back with the next removal.
                log.warning("provider.mark_stays", machine=machine.metadata.name, problem=str(error))

    async def _annotate(self, machine: ClusterMachine, value: str | None) -> ClusterMachine:
        served = await self._holdings.served()
        body = {"metadata": {"annotations": {self._holdings.settings.keys.delete_machine: value}}}
        meta = machine.metadata
        answer: ClusterMachine = await self._holdings.client.merge_patch(
            served.resource(ClusterMachine), meta.name, body, namespace=meta.namespace
        )
        return answer


def _fewer(group: GroupObject, size: int, by: int, floor: int) -> int | Done | CallFailed:
    if by <= 0:
        return Done()
    if size - by < floor:
        return refused(f"node group {group.id} has {size} and keeps at least {floor}: {by} of them cannot go")
    return size - by
