"""The actions of the cloud on its objects, one method each: idempotent, with a precondition, harmless when repeated.

The controller calls them in the order of its plan. None of them decides anything.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from plimsoll.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.local.cloud.machines.node_manifest import NOT_READY, build_node_manifest
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.simulated_cloud import (
    BILLING_FINALIZER,
    GROUP_LABEL,
    ErrorClass,
    Machine,
    MachineError,
    MachineSpec,
    MachineState,
    NodeGroup,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.own_writes import MutationCache
    from plimsoll.local.cloud.planner import Boot, NewMachine, RaisedTarget, Retry

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

NODE_REFUSED: Final = "NODE_REFUSED"


def format_exact_time(moment: datetime) -> str:
    """With microseconds where there are any: boot times and costs are counted from it."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


class MachineActuator:
    """Writes machines, their nodes, and the pending deletions of groups."""

    def __init__(self, client: Client, *, clock: Clock, machines: MutationCache[Machine]) -> None:
        self._client = client
        self._clock = clock
        self._machines = machines

    async def raise_target(self, raised: RaisedTarget) -> NodeGroup:
        group = raised.group
        sizes = {"target": raised.target}
        if raised.target > group.spec.max:
            sizes["max"] = raised.target
        body = {"metadata": _get_version(group), "spec": sizes}
        return await self._client.merge_patch(NodeGroup, group.metadata.name, body)

    async def make(self, new: NewMachine) -> None:
        try:
            made = await self._client.create(Machine, _build_machine_body(new, format_exact_time(self._clock.now())))
        except AlreadyExists:
            # Made before the answer got lost, or before a crash.
            made = await self._client.get(Machine, new.name)
        self._machines.record_write(made)
        error = new.error.code if new.error is not None else ""
        log.info("cloud.machine_made", machine=new.name, zone=new.spec.zone, adopted=bool(new.adopts), error=error)

    async def retry(self, retry: Retry) -> None:
        """The cloud has room for it after all."""
        status = {
            "state": MachineState.CREATING.value,
            "error": None,
            "startedTime": format_exact_time(self._clock.now()),
        }
        await self._patch(retry.machine, {"spec": _encode_spec(retry.spec), "status": status})

    async def boot(self, boot: Boot, *, ready: bool) -> Machine:
        """Create the machine's node, then mark the machine as running; returns the machine."""
        machine, now = boot.machine, self._clock.now()
        spec = machine.spec
        body = build_node_manifest(
            boot.shape, machine.metadata.name, zone=spec.zone, provider_id=spec.provider_id, ready=ready, now=now
        )
        try:
            node = await self._client.create(Node, body)
        except AlreadyExists:
            node = await self._client.get(Node, machine.metadata.name)
            if node.spec.provider_id != spec.provider_id:
                return await self._fail(machine, "there is another node of this name")
        except (Invalid, Forbidden) as error:
            return await self._fail(machine, str(error))
        if ready:
            await self._untaint(node)
        running = {"state": MachineState.RUNNING.value, "bootedTime": format_exact_time(now)}
        return await self._patch(machine, {"status": running})

    async def _untaint(self, node: Node) -> None:
        """Remove the taint that admission adds to every new node: a ready node may have no other controller."""
        kept = [msgspec.to_builtins(taint) for taint in node.spec.taints if taint.key != NOT_READY]
        if len(kept) < len(node.spec.taints):
            body = {"metadata": _get_version(node), "spec": {"taints": kept or None}}
            await self._client.merge_patch(Node, node.metadata.name, body)

    async def begin_removal(self, machine: Machine) -> Machine:
        """From here on it costs nothing."""
        if machine.status.state == MachineState.DELETING:
            return machine
        ended = {"state": MachineState.DELETING.value, "deletedTime": format_exact_time(self._clock.now())}
        return await self._patch(machine, {"status": ended})

    async def remove_node(self, machine: Machine) -> None:
        try:
            node = await self._client.get(Node, machine.metadata.name)
            if node.spec.provider_id in {"", machine.spec.provider_id}:
                await self._client.delete(Node, node.metadata.name, options=DeleteOptions(uid=node.metadata.uid))
        except NotFound:
            return

    async def finish_removal(self, machine: Machine) -> None:
        """Its node is gone and its cost is booked."""
        name, options = machine.metadata.name, DeleteOptions(uid=machine.metadata.uid)
        try:
            if machine.metadata.deletion_timestamp is None:
                await self._client.delete(Machine, name, options=options)
            others = [finalizer for finalizer in machine.metadata.finalizers if finalizer != BILLING_FINALIZER]
            if others != list(machine.metadata.finalizers):
                body = {"metadata": {"uid": machine.metadata.uid, "finalizers": others or None}}
                await self._client.merge_patch(Machine, name, body)
        except NotFound:
            pass
        except Conflict:
            # Another machine of the same name: ours is gone.
            log.info("cloud.machine_gone_already", machine=name)
        self._machines.record_deletion(machine)
        log.info("cloud.machine_removed", machine=name)

    async def forget_deletions(self, group: NodeGroup, present: Iterable[str]) -> NodeGroup:
        """Machines that were to go and are gone need no mention."""
        left = sorted(set(group.spec.deletions) & set(present))
        body = {"metadata": _get_version(group), "spec": {"deletions": left or None}}
        return await self._client.merge_patch(NodeGroup, group.metadata.name, body)

    async def _fail(self, machine: Machine, message: str) -> Machine:
        error = MachineError(class_=ErrorClass.OTHER, code=NODE_REFUSED, message=message[:1024])
        failed = {"state": MachineState.FAILED.value, "error": _encode_error(error)}
        return await self._patch(machine, {"status": failed})

    async def _patch(self, machine: Machine, body: dict[str, Any]) -> Machine:
        body = {"metadata": _get_version(machine), **body}
        patched = await self._client.merge_patch(Machine, machine.metadata.name, body)
        self._machines.record_write(patched)
        return patched


def _get_version(of: Machine | NodeGroup | Node) -> dict[str, str]:
    return {"uid": of.metadata.uid, "resourceVersion": of.metadata.resource_version}


def _build_machine_body(new: NewMachine, now: str) -> dict[str, Any]:
    status: dict[str, Any] = {"state": MachineState.CREATING.value, "startedTime": now}
    if new.adopts is not None:
        status |= {"state": MachineState.RUNNING.value, "bootedTime": now}
    elif new.error is not None:
        status = {"state": MachineState.FAILED.value, "error": _encode_error(new.error)}
    return {
        "metadata": {
            "name": new.name,
            "labels": {GROUP_LABEL: new.spec.group},
            "finalizers": [BILLING_FINALIZER],
        },
        "spec": _encode_spec(new.spec),
        "status": status,
    }


def _encode_spec(spec: MachineSpec) -> dict[str, Any]:
    """Every field, defaults too: people read it."""
    price = {} if spec.price is None else {"price": spec.price}
    return {
        "providerID": spec.provider_id,
        "group": spec.group,
        "machineType": spec.machine_type,
        "zone": spec.zone,
        **price,
        "currency": spec.currency,
        "capacityType": str(spec.capacity_type),
        "bootSeconds": spec.boot_seconds,
        "neverBoots": spec.never_boots,
    }


def _encode_error(error: MachineError) -> dict[str, str]:
    return {"class": str(error.class_), "code": error.code, "message": error.message}
