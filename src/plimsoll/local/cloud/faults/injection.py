"""Fault injection: reduces stock, makes calls fail, changes the limits of a group.

Each is a change to the `Cloud` or to a NodeGroup that kubectl could make as well; here they are calls, for scenarios
(`{provider: {failIncrease: …, stockout: …, setGroup: …}}`) and tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.kube.errors import AlreadyExists
from plimsoll.kube.requests.retry import retry_on_conflict
from plimsoll.local.cloud.faults.call_faults import UPDATE_ATTEMPTS, build_overtaken_error
from plimsoll.local.cloud.planner import compute_desired_size
from plimsoll.objects.api.simulated_cloud import THE_CLOUD, CallFault, Cloud, Machine, NodeGroup, Stock

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from plimsoll.kube.client import Client


class FaultInjector:
    """Injects faults into the objects of a cloud."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def limit_stock(
        self, machine_type: str, *, left: int = 0, zone: str = "", until: datetime | None = None
    ) -> None:
        """Only `left` more machines of a type are to be had, besides those that are there or already asked for.

        With 0 none is, not even for one that is given back.
        """
        present = await self._count_wanted(machine_type, zone) if left else 0
        name = f"{machine_type}/{zone}" if zone else machine_type
        stock = Stock(name=name, machine_type=machine_type, zone=zone, machines=present + left, until=until)
        await self._change(lambda cloud: {"stock": _replace_by_name(cloud.spec.stock, _encode(stock))})

    async def fail_increase(self, group: str, message: str, *, until: datetime | None = None) -> None:
        """Growing this group fails, until then or for ever."""
        await self.add_fault(
            CallFault(name=f"fail-{group}", group=group, call="IncreaseSize", message=message, until=until)
        )
        await self.add_fault(
            CallFault(name=f"fail-atomic-{group}", group=group, call="AtomicIncreaseSize", message=message, until=until)
        )

    async def add_fault(self, fault: CallFault) -> None:
        """One of the same name is replaced. A fault that took effect needs a new name to take effect again."""
        await self._change(lambda cloud: {"faults": _replace_by_name(cloud.spec.faults, _encode(fault))})

    async def set_group(self, group: str, *, min_size: int | None = None, max_size: int | None = None) -> None:
        limits = {"min": min_size, "max": max_size}
        body = {"spec": {name: size for name, size in limits.items() if size is not None}}
        await self._client.merge_patch(NodeGroup, group, body)

    async def _count_wanted(self, machine_type: str, zone: str) -> int:
        """Machines of a type that are there, and those that its groups want and do not have yet."""
        groups = {node_group.metadata.name: node_group for node_group in (await self._client.list(NodeGroup)).items}
        machines = (await self._client.list(Machine)).items
        there = [
            machine for machine in machines if machine.spec.machine_type == machine_type and machine.status.started_time
        ]
        if zone:
            return sum(machine.spec.zone == zone for machine in there)
        missing = 0
        for name, group in groups.items():
            if group.spec.machine_type == machine_type:
                members = [machine for machine in machines if machine.spec.group == name]
                missing += max(0, compute_desired_size(group, members) - len(members))
        return len(there) + missing

    async def _change(self, changed: Callable[[Cloud], dict[str, Any]]) -> None:
        async def attempt() -> None:
            try:
                cloud = await self._client.create(Cloud, {"metadata": {"name": THE_CLOUD}, "spec": {}})
            except AlreadyExists:
                cloud = await self._client.get(Cloud, THE_CLOUD)
            version = {"resourceVersion": cloud.metadata.resource_version}
            await self._client.merge_patch(Cloud, THE_CLOUD, {"metadata": version, "spec": changed(cloud)})

        await retry_on_conflict(attempt, attempts=UPDATE_ATTEMPTS, on_exhausted=build_overtaken_error("the cloud"))


def _replace_by_name(old: tuple[Stock, ...] | tuple[CallFault, ...], new: dict[str, Any]) -> list[dict[str, Any]]:
    """The list with `new` in the place of the one of its name, or at its end."""
    bodies = [_encode(item) for item in old]
    names = [body["name"] for body in bodies]
    if new["name"] in names:
        bodies[names.index(new["name"])] = new
    else:
        bodies.append(new)
    return bodies


def _encode(stock: Stock | CallFault) -> dict[str, Any]:
    """With what a Wire leaves out because it is the default, and the schema asks for."""
    body: dict[str, Any] = msgspec.to_builtins(stock)
    if isinstance(stock, Stock):
        return {**body, "machines": stock.machines}
    return {**body, "kind": str(stock.kind)}
