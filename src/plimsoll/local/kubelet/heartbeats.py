"""Heartbeats of nodes: Leases renewed every ten seconds, or one report within the process.

Leases are for API servers with a node lifecycle controller of their own, and for long runs; where that controller runs
in this process it gets reports as well, because a busy process may renew late. Reports alone are for virtual time,
where no other process reads Leases; a Lease is still written when a node comes up, so that the objects exist.
"""

from __future__ import annotations

import asyncio
import heapq
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog

from plimsoll.core.errors import PlimsollError
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.local.liveness import NODE_LEASES
from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.api.meta import MicroTime
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.local.kubelet.settings import KubeletSettings
    from plimsoll.local.liveness import ReportedLiveness
    from plimsoll.objects.api.nodes import Node

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

# Nodes share the rounds of renewals evenly: so many slots in a round, each node in the emptiest.
_SLOTS: Final = 100


class Heartbeats(Protocol):
    """The heartbeats of the kubelet's nodes."""

    @property
    def are_written(self) -> bool:
        """Whether node statuses are to be repeated as well."""
        ...

    async def start(self, node: Node) -> None:
        """The node is alive until `stop`. Repeated calls cost nothing."""
        ...

    def stop(self, name: str) -> None: ...

    def forget(self, name: str) -> None:
        """The node is gone, or another kubelet's."""
        ...

    def list_services(self) -> Sequence[Service]: ...


class Leases:
    """Writes the Lease of a node as its kubelet does: owned by the Node, held in its name."""

    def __init__(self, client: Client, *, clock: Clock, settings: KubeletSettings) -> None:
        self._client = client
        self._clock = clock
        self._lease_s = settings.lease_s

    async def take(self, node: Node) -> None:
        """Write all of it: it may be another kubelet's, another node's of the same name, or not be there."""
        if not _has_reported(node) and await self._create(node):
            return
        metadata: dict[str, Any] = {"ownerReferences": [_build_owner(node)]}
        body = {"metadata": metadata, "spec": self._build_spec(node.metadata.name)}
        await self._write(node, body)

    async def renew(self, node: Node) -> None:
        body = {"spec": {"renewTime": self._format_now()}}
        await self._write(node, body)

    async def _write(self, node: Node, patch: dict[str, Any]) -> None:
        name = node.metadata.name
        try:
            await self._client.merge_patch(Lease, name, patch, namespace=NODE_LEASES)
        except NotFound:
            if not await self._create(node):
                log.debug("kubelet.lease_was_made", node=name)

    async def _create(self, node: Node) -> bool:
        """Whether there was none before."""
        name = node.metadata.name
        metadata = {"name": name, "namespace": NODE_LEASES, "ownerReferences": [_build_owner(node)]}
        try:
            await self._client.create(
                Lease, {"metadata": metadata, "spec": self._build_spec(name)}, namespace=NODE_LEASES
            )
        except AlreadyExists:
            return False
        return True

    def _build_spec(self, name: str) -> dict[str, Any]:
        return {"holderIdentity": name, "leaseDurationSeconds": self._lease_s, "renewTime": self._format_now()}

    def _format_now(self) -> str:
        return MicroTime.of(self._clock.now()).to_text()


class ReportedHeartbeats:
    """Reports to a `ReportedLiveness`; the Lease is written once whenever a node comes up."""

    are_written = False

    def __init__(self, liveness: ReportedLiveness, leases: Leases) -> None:
        self._liveness = liveness
        self._leases = leases
        self._alive: dict[str, str] = {}

    async def start(self, node: Node) -> None:
        name, uid = node.metadata.name, node.metadata.uid
        if self._alive.get(name) != uid:
            await self._leases.take(node)
            self._alive[name] = uid
        self._liveness.report_alive(name)

    def stop(self, name: str) -> None:
        self._alive.pop(name, None)
        self._liveness.report_silent(name)

    def forget(self, name: str) -> None:
        self._alive.pop(name, None)
        self._liveness.forget(name)

    def list_services(self) -> Sequence[Service]:
        return ()


class LeaseHeartbeats:
    """Renews the Lease of every living node once a round, spread evenly over the round."""

    are_written = True

    def __init__(
        self, leases: Leases, *, clock: Clock, settings: KubeletSettings, liveness: ReportedLiveness | None = None
    ) -> None:
        self._leases = leases
        self._liveness = liveness
        self._clock = clock
        self._round_s = settings.renew_s
        self._at_a_time = asyncio.Semaphore(settings.workers)
        self._alive: dict[str, Node] = {}
        self._slot_of: dict[str, int] = {}
        self._slots = [0] * _SLOTS
        self._due: dict[str, float] = {}
        self._due_heap: list[tuple[float, str]] = []  # may hold entries that _due has forgotten
        self._under_way: set[str] = set()
        self._has_news = asyncio.Event()

    async def start(self, node: Node) -> None:
        name = node.metadata.name
        known = self._alive.get(name)
        if known is not None and known.metadata.uid == node.metadata.uid:
            return
        await self._leases.take(node)
        self._alive[name] = node
        if self._liveness is not None:
            self._liveness.report_alive(name)
        if name not in self._slot_of:
            self._enter(name)

    def stop(self, name: str) -> None:
        if self._liveness is not None:
            self._liveness.report_silent(name)
        self._stop(name)

    def forget(self, name: str) -> None:
        if self._liveness is not None:
            self._liveness.forget(name)
        self._stop(name)

    def _stop(self, name: str) -> None:
        self._alive.pop(name, None)
        self._due.pop(name, None)
        slot = self._slot_of.pop(name, None)
        if slot is not None:
            self._slots[slot] -= 1

    def list_services(self) -> Sequence[Service]:
        return (Service(name="kubelet: heartbeats", run=self.run),)

    async def run(self) -> None:
        """Renew until cancelled."""
        self._under_way.clear()
        async with asyncio.TaskGroup() as group:
            while True:
                await self._wait_for_next()
                now_s = self._clock.monotonic_s()
                while self._due_heap and self._due_heap[0][0] <= now_s:
                    due_s, name = heapq.heappop(self._due_heap)
                    if self._due.get(name) == due_s:
                        self._schedule(name, now_s)
                        self._begin(name, group)

    # ---- inside

    def _enter(self, name: str) -> None:
        slot = min(range(_SLOTS), key=self._slots.__getitem__)
        self._slots[slot] += 1
        self._slot_of[name] = slot
        self._schedule(name, self._clock.monotonic_s())
        self._has_news.set()

    def _schedule(self, name: str, after_s: float) -> None:
        """At the next moment of the node's slot, which is at most one round ahead."""
        offset_s = self._slot_of[name] * self._round_s / _SLOTS
        due_s = ((after_s - offset_s) // self._round_s + 1) * self._round_s + offset_s
        if due_s - after_s < self._round_s / (2 * _SLOTS):
            # Rounded down to the moment that has just passed.
            due_s += self._round_s
        self._due[name] = due_s
        heapq.heappush(self._due_heap, (due_s, name))

    def _begin(self, name: str, group: asyncio.TaskGroup) -> None:
        """Renew, unless the renewal before is still under way."""
        if name not in self._under_way:
            self._under_way.add(name)
            group.create_task(self._renew(name), name=f"lease of {name}")

    async def _wait_for_next(self) -> None:
        self._has_news.clear()
        wait_s = self._due_heap[0][0] - self._clock.monotonic_s() if self._due_heap else None
        if wait_s is not None and wait_s <= 0:
            return
        try:
            async with asyncio.timeout(wait_s):
                await self._has_news.wait()
        except TimeoutError:
            return

    async def _renew(self, name: str) -> None:
        """One that fails is made good by the next: a lease lasts four rounds."""
        try:
            async with self._at_a_time:
                node = self._alive.get(name)
                if node is not None:
                    async with asyncio.timeout(self._round_s):
                        await self._leases.renew(node)
        except (PlimsollError, TimeoutError) as error:
            log.warning("kubelet.lease_not_renewed", node=name, error=str(error) or type(error).__name__)
        finally:
            self._under_way.discard(name)


def _build_owner(node: Node) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "name": node.metadata.name, "uid": node.metadata.uid}


def _has_reported(node: Node) -> bool:
    """Whether a kubelet has had this node before: then there is a lease, most likely."""
    return any(condition.type == "Ready" and condition.reason == "KubeletReady" for condition in node.status.conditions)
