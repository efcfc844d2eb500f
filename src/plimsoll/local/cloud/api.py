"""The cloud's API for a node autoscaler: groups, sizes, instances, machine types, prices.

Names and rules are those of Cluster Autoscaler's provider interface. Every change is one write to one NodeGroup, on
condition that no other writer changed it in between: it happens whole or not at all, and the controller does the rest
(`local.cloud.controller`). Reads go to the server without a cache.

Mutating calls are logged and subject to the faults of the `Cloud` object. Reads are neither.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from plimsoll.core.errors import PlimsollError
from plimsoll.core.formatting import NO_LIMIT
from plimsoll.core.names import find_subdomain_problems
from plimsoll.core.values import Value
from plimsoll.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from plimsoll.kube.requests.options import DeleteOptions, Selection
from plimsoll.kube.requests.retry import retry_on_conflict
from plimsoll.local.cloud.billing import compute_costs_by_group
from plimsoll.local.cloud.catalogue import list_sold_machine_types
from plimsoll.local.cloud.faults.call_faults import UPDATE_ATTEMPTS, build_overtaken_error, format_fault, trigger_fault
from plimsoll.local.cloud.faults.call_log import NO_ANSWER_YET, NOBODY_WAITED, CallLog, CallRecord
from plimsoll.local.cloud.machines.node_manifest import build_node_manifest
from plimsoll.local.cloud.machines.templates import INSTANCE_TYPE, InvalidTemplate, MachineTemplate, build_template
from plimsoll.local.cloud.planner import CloudView, Planner, compute_desired_size, is_being_removed
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.simulated_cloud import (
    GROUP_LABEL,
    THE_CLOUD,
    Cloud,
    CloudSpec,
    FaultKind,
    Machine,
    MachineError,
    MachineState,
    MachineType,
    NodeGroup,
    NodeGroupSpec,
    Quota,
)
from plimsoll.objects.api.simulated_cloud_errors import (
    CloudFailed,
    CloudOutOfResources,
    CloudRefused,
    CloudTimedOut,
    NoSuchGroup,
    NotSupported,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.local.cloud.billing import Cost

T = TypeVar("T")

_HOUR_S: Final = 3600.0


class Instance(Value):
    """A machine in the provider interface: `state` is running, creating or deleting; `error` if it failed."""

    id: str
    name: str
    state: str
    error: MachineError | None = None


class SimulatedCloud:
    """One caller's access. `log` may be shared by several, and outlives them."""

    def __init__(self, client: Client, *, clock: Clock, log: CallLog | None = None) -> None:
        self._client = client
        self._clock = clock
        self.log = CallLog() if log is None else log
        # Of one caller's changes to a group, one at a time: otherwise concurrent ones fail alternately.
        self._changing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    # ---- reading

    async def node_groups(self) -> tuple[NodeGroup, ...]:
        """All groups by name, also those that are not to be autoscaled (`spec.autoscaled`)."""
        listed = await self._client.list(NodeGroup)
        return tuple(sorted(listed.items, key=lambda group: group.metadata.name))

    async def get_node_group(self, group: str) -> NodeGroup:
        _check_name(group)
        try:
            return await self._client.get(NodeGroup, group)
        except NotFound as error:
            raise NoSuchGroup(f"there is no node group {group}") from error

    async def target_size(self, group: str) -> int:
        return (await self.get_node_group(group)).spec.target

    async def list_machines(self, group: str = "") -> tuple[Machine, ...]:
        if group:
            _check_name(group)
        selection = Selection(labels=f"{GROUP_LABEL}={group}") if group else Selection()
        listed = await self._client.list(Machine, selection)
        return tuple(sorted(listed.items, key=lambda machine: machine.metadata.name))

    async def list_instances(self, group: str) -> tuple[Instance, ...]:
        await self.get_node_group(group)
        return tuple(build_instance(machine) for machine in await self.list_machines(group))

    async def get_cloud(self) -> Cloud:
        try:
            return await self._client.get(Cloud, THE_CLOUD)
        except NotFound:
            return Cloud()

    async def list_machine_types(self) -> tuple[MachineType, ...]:
        """Everything that is sold, by name."""
        offered = list_sold_machine_types((await self.get_cloud()).spec).machine_types
        return tuple(offered[name] for name in sorted(offered))

    async def list_quotas(self) -> tuple[Quota, ...]:
        return (await self.get_cloud()).spec.quotas

    def forecast_zones(
        self, cloud: Cloud, groups: Sequence[NodeGroup], machines: Sequence[Machine]
    ) -> dict[str, tuple[str, ...]]:
        """By group: the zones of its machines that have no node yet, then the zone that its next machine comes from.

        They follow from what was read, as the controller of the cloud decides them.
        """
        planner = Planner(self._build_view(cloud.spec, groups, machines))
        planner.plan()
        return {group.metadata.name: planner.forecast_zones(group) for group in groups}

    async def build_template_node(self, group: str) -> Node:
        """A node as the group would give it, ready and empty."""
        shape = await self._get_template(await self.get_node_group(group))
        body = build_node_manifest(
            shape,
            f"template-node-for-{group}",
            zone=shape.zones[0],
            provider_id="",
            ready=True,
            now=self._clock.now(),
        )
        return msgspec.convert(body, Node)

    async def node_price(self, node: Node, *, seconds: float = _HOUR_S) -> float | None:
        """The cost of a node for a number of seconds; None: unknown."""
        labels = node.metadata.labels
        if group := labels.get(GROUP_LABEL):
            shape = await self._get_template(await self.get_node_group(group))
            return _compute_price(shape.price, seconds)
        sold = {machine_type.name: machine_type for machine_type in await self.list_machine_types()}.get(
            labels.get(INSTANCE_TYPE, "")
        )
        return None if sold is None else _compute_price(sold.price, seconds)

    async def compute_costs(self) -> tuple[Cost, ...]:
        """What each group has cost so far, up to now."""
        cloud = await self.get_cloud()
        return compute_costs_by_group(cloud.status, await self.list_machines(), now=self._clock.now())

    # ---- changing

    async def increase_size(self, group: str, delta: int, *, expected: int | None = None) -> None:
        """Want `delta` machines more. Whether they can be had shows in `list_instances`.

        With `expected`, the target there was before: a repeated call finds its work done, and a group that others
        changed is left alone.
        """

        async def act() -> None:
            await self._change(group, lambda now: _increase(now, delta, expected=expected))

        await self._call("IncreaseSize", group, delta, act)

    async def atomic_increase_size(self, group: str, delta: int, *, expected: int | None = None) -> None:
        """Want `delta` machines more, if stock and quotas have room for all of them."""

        async def act() -> None:
            known = await self.get_node_group(group)
            if not known.spec.atomic:
                raise NotSupported(f"node group {group} does not grow atomically")
            await self._change(
                group,
                lambda now: _increase(now, delta, expected=expected),
                check=lambda now: self._check_room(now, delta),
            )

        await self._call("AtomicIncreaseSize", group, delta, act)

    async def delete_nodes(self, group: str, names: Sequence[str]) -> None:
        """Remove these nodes (names or provider ids), and want as many fewer. Not below the minimum."""
        await self._call("DeleteNodes", group, tuple(names), lambda: self._delete(group, names, forced=False))

    async def force_delete_nodes(self, group: str, names: Sequence[str]) -> None:
        """The same without regard to the minimum."""
        await self._call("ForceDeleteNodes", group, tuple(names), lambda: self._delete(group, names, forced=True))

    async def decrease_target_size(self, group: str, delta: int, *, expected: int | None = None) -> None:
        """Give up on machines that are not there yet; `delta` is negative. Running ones are never touched."""

        async def act() -> None:
            running = [
                machine for machine in await self.list_machines(group) if machine.status.state == MachineState.RUNNING
            ]
            await self._change(group, lambda now: _decrease(now, delta, expected=expected, running=len(running)))

        await self._call("DecreaseTargetSize", group, delta, act)

    async def create_group(self, group: str, spec: NodeGroupSpec) -> None:
        async def act() -> None:
            body = msgspec.to_builtins(spec)
            if spec.max >= NO_LIMIT:
                # The column of a group without a limit is empty.
                body.pop("max", None)
            try:
                await self._client.create(NodeGroup, {"metadata": {"name": group}, "spec": body})
            except AlreadyExists as error:
                raise CloudRefused(f"there is a node group {group} already") from error
            except Invalid as error:
                raise CloudRefused(str(error)) from error

        await self._call("Create", group, None, act)

    async def delete_group(self, group: str) -> None:
        """Only of an empty group that wants nothing."""

        async def act() -> None:
            known = await self.get_node_group(group)
            machines = await self.list_machines(group)
            if known.spec.target or machines:
                raise CloudRefused(f"node group {group} is not empty: target {known.spec.target}, {len(machines)} left")
            meta = known.metadata
            options = DeleteOptions(uid=meta.uid, resource_version=meta.resource_version)
            try:
                await self._client.delete(NodeGroup, group, options=options)
            except Conflict as error:
                raise CloudRefused(f"node group {group} changed while it was to be deleted") from error

        await self._call("Delete", group, None, act)

    # ---- inside

    async def _call(
        self, call: str, group: str, arg: int | tuple[str, ...] | None, act: Callable[[], Awaitable[None]]
    ) -> None:
        """Do it as far as faults let it, and log how it went."""
        record = CallRecord(time=self._clock.now(), group=group, call=call, arg=arg, ok=False, message=NO_ANSWER_YET)
        number = self.log.add(record)
        ended = replace(record, message=NOBODY_WAITED)
        try:
            await self._call_with_faults(call, group, act)
            ended = replace(record, ok=True, message="")
        except PlimsollError as error:
            ended = replace(record, message=str(error))
            raise
        finally:
            self.log.end(number, ended)

    async def _call_with_faults(self, call: str, group: str, act: Callable[[], Awaitable[None]]) -> None:
        fault = await trigger_fault(self._client, call, group, now=self._clock.now())
        if fault is None:
            await act()
            return
        if fault.kind == FaultKind.FAIL:
            raise CloudFailed(format_fault(fault, call))
        await act()
        await self._clock.sleep(fault.seconds)
        if fault.kind == FaultKind.TIME_OUT:
            raise CloudTimedOut(format_fault(fault, call))

    async def _change(
        self,
        group: str,
        changed: Callable[[NodeGroup], dict[str, Any] | None],
        *,
        check: Callable[[NodeGroup], Awaitable[None]] | None = None,
    ) -> None:
        """Write what `changed` makes of the current group, if `check` allows it; retried after a conflict."""

        async def attempt() -> None:
            now = await self.get_node_group(group)
            spec = changed(now)
            if spec is None:
                return
            if check is not None:
                await check(now)
            version = {"uid": now.metadata.uid, "resourceVersion": now.metadata.resource_version}
            await self._client.merge_patch(NodeGroup, group, {"metadata": version, "spec": spec})

        async with self._changing[group]:
            await retry_on_conflict(
                attempt, attempts=UPDATE_ATTEMPTS, on_exhausted=build_overtaken_error(f"node group {group}")
            )

    async def _delete(self, group: str, names: Sequence[str], *, forced: bool) -> None:
        _check_name(group)
        machines = await self.list_machines(group)
        chosen = _choose_machines(group, machines, names)
        await self._change(group, lambda now: _reduce(now, machines, chosen, forced=forced))

    async def _get_template(self, group: NodeGroup) -> MachineTemplate:
        spec = (await self.get_cloud()).spec
        shape = build_template(group, spec, list_sold_machine_types(spec).machine_types)
        if isinstance(shape, InvalidTemplate):
            raise CloudRefused(f"node group {group.metadata.name}: {shape.problem}")
        return shape

    def _build_view(self, spec: CloudSpec, groups: Sequence[NodeGroup], machines: Sequence[Machine]) -> CloudView:
        return CloudView(
            cloud=spec,
            offer=list_sold_machine_types(spec),
            groups=tuple(groups),
            machines=tuple(machines),
            nodes=(),
            now=self._clock.now(),
        )

    async def _check_room(self, group: NodeGroup, delta: int) -> None:
        """Counting what other groups want and have not got yet as taken."""
        spec = (await self.get_cloud()).spec
        planner = Planner(self._build_view(spec, await self.node_groups(), await self.list_machines()))
        planner.plan()
        shape = await self._get_template(group)
        for number in range(delta):
            placed = planner.availability.place(shape, [*shape.zones])
            if isinstance(placed, MachineError):
                raise CloudOutOfResources(f"{placed.code}: {placed.message} (room for {number} of {delta})")


def _check_name(group: str) -> None:
    """A name that no object can have is not asked about."""
    if find_subdomain_problems(group):
        raise NoSuchGroup(f"there is no node group {group}")


def build_instance(machine: Machine) -> Instance:
    """A machine that failed is, to an autoscaler, one that is being created and has an error."""
    state = MachineState.DELETING if is_being_removed(machine) else MachineState(machine.status.state)
    shown = MachineState.CREATING if state == MachineState.FAILED else state
    return Instance(
        id=machine.spec.provider_id, name=machine.metadata.name, state=shown.value, error=machine.status.error
    )


# ---- the rules, each of which gives the change to a group's spec or refuses it


def _increase(group: NodeGroup, delta: int, *, expected: int | None) -> dict[str, Any] | None:
    if delta <= 0:
        raise CloudRefused(f"size increase must be positive, is {delta}")
    if _is_done(group, delta, expected=expected):
        return None
    wanted = group.spec.target + delta
    if wanted > group.spec.max:
        raise CloudRefused(f"size increase too large - desired:{wanted} max:{group.spec.max}")
    return {"target": wanted}


def _decrease(group: NodeGroup, delta: int, *, expected: int | None, running: int) -> dict[str, Any] | None:
    if delta >= 0:
        raise CloudRefused(f"size decrease must be negative, is {delta}")
    if _is_done(group, delta, expected=expected):
        return None
    wanted = group.spec.target + delta
    if wanted < running:
        raise CloudRefused(
            f"attempt to delete existing nodes: target {group.spec.target} delta {delta} existing {running}"
        )
    return {"target": wanted}


def _is_done(group: NodeGroup, delta: int, *, expected: int | None) -> bool:
    """Whether the target is what the call would make it; refused if it is neither that nor what was expected."""
    target = group.spec.target
    if expected is None or target == expected:
        return False
    if target != expected + delta:
        raise CloudRefused(f"target of node group {group.metadata.name} is {target}, not {expected}")
    return True


def _compute_price(price: float | None, seconds: float) -> float | None:
    """A price of an hour, of so many seconds."""
    return None if price is None else price * seconds / _HOUR_S


def _choose_machines(group: str, machines: Sequence[Machine], names: Sequence[str]) -> list[str]:
    """The names of the machines meant; those that are already going are none of them."""
    known = {machine.metadata.name: machine for machine in machines}
    known |= {machine.spec.provider_id: machine for machine in machines}
    for name in names:
        if name not in known:
            raise CloudRefused(f"node {name} does not belong to node group {group}")
    return [
        name for name in dict.fromkeys(known[item].metadata.name for item in names) if not is_being_removed(known[name])
    ]


def _reduce(
    group: NodeGroup, machines: Sequence[Machine], chosen: Sequence[str], *, forced: bool
) -> dict[str, Any] | None:
    named = group.spec.deletions
    fresh = [name for name in chosen if name not in named]
    if not fresh:
        return None
    staying = [machine for machine in machines if not is_being_removed(machine) and machine.metadata.name not in named]
    left = compute_desired_size(group, staying) - len(fresh)
    if not forced and left < group.spec.min:
        raise CloudRefused(f"min size reached, nodes will not be deleted: target {left} min {group.spec.min}")
    return {"target": max(0, left), "deletions": [*group.spec.deletions, *fresh]}
