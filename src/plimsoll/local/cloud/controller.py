"""The cloud controller: creates the machines that node groups request, boots them into nodes, removes and bills them.

One key, one worker: stock and quotas are shared by all groups, so they are planned together. The controller keeps
nothing that is not in the objects; its timers are due times of objects, computed again in every reconcile, so a restart
loses nothing. It never schedules pods, drains nodes or makes them ready: that is the kubelet's task.

Deleting a Machine by hand is a power failure: node and machine disappear, and the group gets another one. Deleting a
Node by hand deletes only that: as in a real cloud the machine continues, costs, and has no node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.values import Value
from plimsoll.kube.controller.controller import Again, Controller, ControllerSettings, Done
from plimsoll.kube.controller.enqueue import enqueue_on
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.kube.informer import Added, BecameUnreadable, Deleted, UnreadableDeleted, Updated
from plimsoll.kube.informer.own_writes import MutationCache
from plimsoll.local.cloud.actuator import MachineActuator, format_exact_time
from plimsoll.local.cloud.availability import find_quota_problems, find_unsold_problems
from plimsoll.local.cloud.billing import build_bills, build_settlement, compute_costs_by_group
from plimsoll.local.cloud.catalogue import list_sold_machine_types
from plimsoll.local.cloud.events import CloudEvents
from plimsoll.local.cloud.machines.templates import ZONE
from plimsoll.local.cloud.planner import CloudView, ObservedNode, compute_next_number, plan
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.simulated_cloud import GROUP_LABEL, THE_CLOUD, Cloud, Machine, MachineState, NodeGroup

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.kube.informer import Change
    from plimsoll.local.cloud.planner import Plan
    from plimsoll.local.components import Component

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

EVERYTHING: Final = "the cloud"


class CloudSettings(Value):
    """`nodes_come_ready`: without a kubelet, as in stepped scenarios. The bill is written at least every `bill_s`."""

    nodes_come_ready: bool = False
    bill_s: float = 300.0


DEFAULT_SETTINGS: Final = CloudSettings()


def build_controllers(component: Component, settings: CloudSettings = DEFAULT_SETTINGS) -> Sequence[Controller[str]]:
    return [CloudController(component, settings).controller]


class CloudController:
    """Observes through shared informers, acts through its component's client."""

    def __init__(self, component: Component, settings: CloudSettings = DEFAULT_SETTINGS) -> None:
        self._client = component.client
        self._clock = component.clock
        self._settings = settings
        self._events = CloudEvents(component)
        informers = component.informers
        self._clouds, self._nodes = informers.get_informer(Cloud), informers.get_informer(Node)
        self._group_informer, machine_informer = informers.get_informer(NodeGroup), informers.get_informer(Machine)
        self._groups, self._machines = MutationCache(self._group_informer), MutationCache(machine_informer)
        self._actuator = MachineActuator(self._client, clock=self._clock, machines=self._machines)
        self.controller: Controller[str] = Controller(
            "cloud",
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: (EVERYTHING,),
            settings=ControllerSettings(workers=1),
        )
        enqueue_on(self._clouds, self.controller, _list_keys_of_generation)
        enqueue_on(self._group_informer, self.controller, _list_keys_of_generation)
        enqueue_on(machine_informer, self.controller, self._list_keys_of_machine)
        enqueue_on(self._nodes, self.controller, self._list_keys_of_node)

    def _list_keys_of_machine(self, change: Change[Machine]) -> Iterable[str]:
        """A thousand machines that were just created need no reconcile: each would look at all of them."""
        is_own = isinstance(change, Added | Updated) and self._machines.is_own_write(change.new)
        return () if is_own else (EVERYTHING,)

    def _list_keys_of_node(self, change: Change[Node]) -> Iterable[str]:
        """Nor are the nodes that they boot into."""
        if isinstance(change, Added):
            machine = self._machines.get(change.new.metadata.name)
            if machine is not None and machine.spec.provider_id == change.new.spec.provider_id:
                return ()
        return _list_keys_of_node_set(change)

    async def reconcile(self, _key: str) -> Done | Again:
        """Observe, plan, act, report."""
        view = await self._observe()
        planned = plan(view)
        await self._grow(planned)
        self._events.report_plan(planned, view.groups, self._machines.list())
        await self._boot_machines(planned)
        orphans = [machine for machine in planned.orphans if await self._is_orphan(machine)]
        await self._shrink(view, [*planned.removals, *orphans])
        await self._write_group_statuses(view)
        has_acted = bool(orphans) or not planned.is_empty
        await self._write_bill(view, has_news=has_acted)
        return self._schedule_next(planned, has_acted=has_acted)

    # ---- observe

    async def _observe(self) -> CloudView:
        cloud = self._clouds.cache.get(THE_CLOUD)
        if cloud is None:
            cloud = await self._make_cloud()
        machines = self._machines.list()
        return CloudView(
            cloud=cloud.spec,
            offer=list_sold_machine_types(cloud.spec),
            groups=self._groups.list(),
            machines=machines,
            nodes=await self._observe_nodes({machine.metadata.name for machine in machines}),
            now=self._clock.now(),
        )

    async def _make_cloud(self) -> Cloud:
        """Groups may describe their machines themselves; but there must be books."""
        try:
            return await self._client.create(Cloud, {"metadata": {"name": THE_CLOUD}, "spec": {}})
        except AlreadyExists:
            return await self._client.get(Cloud, THE_CLOUD)

    async def _observe_nodes(self, machines: set[str]) -> tuple[ObservedNode, ...]:
        seen = []
        for node in sorted(self._nodes.cache.list(), key=lambda item: item.metadata.name):
            group = node.metadata.labels.get(GROUP_LABEL, "")
            is_ours = group and node.metadata.name not in machines
            if is_ours and not await self._is_there(node):
                continue
            seen.append(
                ObservedNode(
                    name=node.metadata.name,
                    group=group,
                    provider_id=node.spec.provider_id,
                    uid=node.metadata.uid,
                    zone=node.metadata.labels.get(ZONE, ""),
                )
            )
        return tuple(seen)

    async def _is_there(self, node: Node) -> bool:
        """Asked before a node is adopted: our cache may still show one that we have just removed."""
        try:
            live = await self._client.get(Node, node.metadata.name)
        except NotFound:
            return False
        return live.metadata.uid == node.metadata.uid and live.metadata.deletion_timestamp is None

    # ---- act

    async def _grow(self, planned: Plan) -> None:
        for raised in planned.raised:
            self._groups.record_write(await self._actuator.raise_target(raised))
        for new in planned.new:
            await self._actuator.make(new)
        for retry in planned.retries:
            await self._actuator.retry(retry)

    async def _boot_machines(self, planned: Plan) -> None:
        for boot in planned.boots:
            ready = self._settings.nodes_come_ready or boot.machine.spec.boot_seconds == 0
            self._events.report_boot(await self._actuator.boot(boot, ready=ready))

    async def _shrink(self, view: CloudView, unwanted: list[Machine]) -> None:
        if not unwanted:
            return
        # Stores the next number while the machines still show it: no name is used twice.
        await self._write_group_statuses(view)
        leaving = [await self._actuator.begin_removal(item) for item in unwanted]
        for machine in leaving:
            await self._actuator.remove_node(machine)
        await self._write_settlement(leaving)
        for machine in leaving:
            await self._actuator.finish_removal(machine)

    async def _is_orphan(self, machine: Machine) -> bool:
        """Asked before machines go with their group: a group that our cache cannot read, or not yet, is there."""
        if any(key.name == machine.spec.group for key in self._group_informer.cache.bad):
            return False
        try:
            await self._client.get(NodeGroup, machine.spec.group)
        except NotFound:
            return True
        return False

    async def _write_settlement(self, leaving: list[Machine]) -> None:
        cloud = await self._client.get(Cloud, THE_CLOUD)
        present = {machine.metadata.uid for machine in self._machines.list()}
        books = build_settlement(cloud.status, leaving, present=present, now=self._clock.now())
        body = {"metadata": {"resourceVersion": cloud.metadata.resource_version}, "status": books}
        await self._client.merge_patch(Cloud, THE_CLOUD, body, subresource="status")

    # ---- status

    async def _write_group_statuses(self, view: CloudView) -> None:
        machines = self._machines.list()
        members: dict[str, list[Machine]] = {}
        for machine in machines:
            members.setdefault(machine.spec.group, []).append(machine)
        names = {item.metadata.name for item in machines}
        seen = {node_group.metadata.name for node_group in view.groups}
        for group in self._groups.list():
            if group.metadata.name not in seen:
                continue
            if set(group.spec.deletions) - names:
                group = await self._actuator.forget_deletions(group, names)  # noqa: PLW2901 - the same, newer
                self._groups.record_write(group)
            await self._write_group_status(group, members.get(group.metadata.name, []))

    async def _write_group_status(self, group: NodeGroup, members: list[Machine]) -> None:
        status = _build_group_status(group, members)
        before = group.status
        known = {
            "observedGeneration": before.observed_generation,
            "machines": before.machines,
            "creating": before.creating,
            "running": before.running,
            "deleting": before.deleting,
            "failed": before.failed,
            "nextNumber": before.next_number,
            "message": before.message,
        }
        if status != known:
            name = group.metadata.name
            body = {"metadata": {"uid": group.metadata.uid}, "status": status}
            self._groups.record_write(await self._client.merge_patch(NodeGroup, name, body, subresource="status"))

    async def _write_bill(self, view: CloudView, *, has_news: bool) -> None:
        cloud = self._clouds.cache.get(THE_CLOUD)
        if cloud is None:
            return
        billed = cloud.status.billed_until
        is_due = billed is not None and (view.now - billed).total_seconds() >= self._settings.bill_s
        unsold = find_unsold_problems(view.cloud, view.offer.machine_types)
        problems = [*view.offer.problems, *find_quota_problems(view.cloud), *unsold]
        if not (has_news or (is_due and view.machines) or problems != list(cloud.status.problems)):
            return
        live = await self._client.get(Cloud, THE_CLOUD)
        machines, now = self._machines.list(), self._clock.now()
        status: dict[str, Any] = {
            "machines": len(machines),
            "bills": build_bills(compute_costs_by_group(live.status, machines, now=now)),
            "billedUntil": format_exact_time(now),
            "problems": problems or None,
        }
        body = {"metadata": {"resourceVersion": live.metadata.resource_version}, "status": status}
        await self._client.merge_patch(Cloud, THE_CLOUD, body, subresource="status")

    def _schedule_next(self, planned: Plan, *, has_acted: bool) -> Done | Again:
        if has_acted:
            # What was made may be due at once: a boot time of 0.
            return Again(after_s=0.0, summary=_describe(planned))
        waits = [self._settings.bill_s] if self._machines.list() else []
        if planned.wake_at is not None:
            waits.append(max(0.0, (planned.wake_at - self._clock.now()).total_seconds()))
        return Again(after_s=min(waits)) if waits else Done()


def _build_group_status(group: NodeGroup, members: list[Machine]) -> dict[str, Any]:
    count = {state: sum(machine.status.state == state for machine in members) for state in MachineState}
    messages = {machine.status.error.message: None for machine in members if machine.status.error is not None}
    if group.spec.target > group.spec.max:
        above = f"target {group.spec.target} is more than max {group.spec.max}: no machine is made beyond max"
        messages = {above: None, **messages}
    return {
        "observedGeneration": group.metadata.generation,
        "machines": len(members) - count[MachineState.DELETING],
        "creating": count[MachineState.CREATING],
        "running": count[MachineState.RUNNING],
        "deleting": count[MachineState.DELETING],
        "failed": count[MachineState.FAILED],
        "nextNumber": compute_next_number(group, members),
        "message": "; ".join(messages),
    }


def _describe(planned: Plan) -> str:
    parts = (
        ("created", len(planned.new)),
        ("started again", len(planned.retries)),
        ("booted", len(planned.boots)),
        ("removed", len(planned.removals) + len(planned.orphans)),
    )
    return ", ".join(f"{count} machine{'s' * (count != 1)} {what}" for what, count in parts if count)


def _list_keys_of_generation(change: Change[Any]) -> Iterable[str]:
    """Not of a status that we wrote ourselves."""
    match change:
        case Updated(old=old, new=new) if old.metadata.generation == new.metadata.generation:
            return ()
        case _:
            return (EVERYTHING,)


def _list_keys_of_node_set(change: Change[Any]) -> Iterable[str]:
    """Not of heartbeats: a node concerns the cloud when it comes, goes, or changes its group."""
    match change:
        case Added() | Deleted() | BecameUnreadable() | UnreadableDeleted():
            return (EVERYTHING,)
        case Updated(old=old, new=new):
            before, after = (item.metadata.labels.get(GROUP_LABEL) for item in (old, new))
            return (EVERYTHING,) if before != after else ()
