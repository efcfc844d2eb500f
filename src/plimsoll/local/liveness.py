"""When a node last reported, as the node lifecycle controller needs it.

`LeaseLiveness` reads the Leases of `kube-node-lease`. In virtual time a hundred nodes would write 36,000 Leases per
hour without news; there the virtual kubelet of the same process reports to `ReportedLiveness` once that a node is
alive, and once that it no longer is. `CombinedLiveness` uses both: with a thousand nodes in one process, a busy loop
that renews a lease late does not mean that the node is down. Nothing here writes anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from plimsoll.kube.errors import NotFound
from plimsoll.kube.informer.events import Added, Updated
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.coordination import Lease

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer import Informer
    from plimsoll.kube.informer.events import Change
    from plimsoll.kube.informer.factory import SharedInformerFactory

    OnChange = Callable[[str], None]
    """Called with a node's name. It must not wait, and must not fail."""

NODE_LEASES: Final = "kube-node-lease"


class Liveness(Protocol):
    """What is known about nodes being alive."""

    def get_last_heartbeat_s(self, node_name: str) -> float | None:
        """When the node was last heard of, on the clock that only goes on; None if never."""
        ...

    async def ask(self, node_name: str, client: Client) -> None:
        """Refresh from the server, before a conclusion is drawn from silence."""
        ...

    def is_steady(self, node_name: str) -> bool:
        """Whether the node is alive until a reported change: then it need not be checked before that."""
        ...

    def on_change(self, callback: OnChange) -> None:
        """Register a callback, which gets the name of every node whose liveness changed."""
        ...

    async def wait_until_synced(self) -> None:
        """Return once everything is known that was there to know at the start."""
        ...


class _Renewal(NamedTuple):
    """What stands in a lease, and when that was first seen."""

    renew_time: datetime | None
    renewed_s: float


class LeaseLiveness:
    """Liveness from Leases. Every renewal is a change, and no node is ever steady.

    A lease counts from when it was seen to be renewed, not from the time written in it, which is of another clock;
    one that was there at the start counts from its own time, or from now if that lies ahead.
    """

    def __init__(self, leases: Informer[Lease], *, clock: Clock) -> None:
        self._leases = leases
        self._clock = clock
        self._renewals: dict[str, _Renewal] = {}
        self._callbacks: list[OnChange] = []
        leases.add_handler(self._handle_change, name="node liveness")

    @classmethod
    def from_informers(cls, informers: SharedInformerFactory, *, clock: Clock) -> LeaseLiveness:
        return cls(informers.get_informer(Lease, Selection(namespace=NODE_LEASES)), clock=clock)

    def get_last_heartbeat_s(self, node_name: str) -> float | None:
        known = self._renewals.get(node_name)
        return None if known is None else known.renewed_s

    async def ask(self, node_name: str, client: Client) -> None:
        try:
            lease = await client.get(Lease, node_name, namespace=NODE_LEASES)
        except NotFound:
            return
        self._is_news(lease)

    def is_steady(self, node_name: str) -> bool:  # noqa: ARG002 -- the port's signature
        return False

    def on_change(self, callback: OnChange) -> None:
        self._callbacks.append(callback)

    async def wait_until_synced(self) -> None:
        """Return once all leases are known."""
        await self._leases.wait_until_synced()

    def _handle_change(self, change: Change[Lease]) -> None:
        name = change.key.name
        match change:
            case Updated(new=new):
                if not self._is_news(new):
                    return
            case Added(new=new):
                now = self._clock.now()
                age = now - min(new.spec.renew_time or now, now)
                renewed_s = self._clock.monotonic_s() - age.total_seconds()
                self._renewals[name] = _Renewal(new.spec.renew_time, renewed_s)
            case _:
                self._renewals.pop(name, None)
        for callback in self._callbacks:
            callback(name)

    def _is_news(self, lease: Lease) -> bool:
        name, renewed = lease.metadata.name, lease.spec.renew_time
        known = self._renewals.get(name)
        if known is not None and known.renew_time == renewed:
            return False
        self._renewals[name] = _Renewal(renewed, self._clock.monotonic_s())
        return True


class ReportedLiveness:
    """Liveness from the virtual kubelet of this process. A node that is alive reports at every moment."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._alive: set[str] = set()
        self._last_s: dict[str, float] = {}
        self._callbacks: list[OnChange] = []

    def get_last_heartbeat_s(self, node_name: str) -> float | None:
        return self._clock.monotonic_s() if node_name in self._alive else self._last_s.get(node_name)

    async def ask(self, node_name: str, client: Client) -> None:
        """Nothing to refresh: the reports come from this process."""

    def is_steady(self, node_name: str) -> bool:
        return node_name in self._alive

    def on_change(self, callback: OnChange) -> None:
        self._callbacks.append(callback)

    async def wait_until_synced(self) -> None:
        """Nothing to wait for: the reports begin with the kubelet."""

    # ---- for the kubelet

    def report_alive(self, node_name: str) -> None:
        if node_name not in self._alive:
            self._alive.add(node_name)
            self._notify(node_name)

    def report_silent(self, node_name: str) -> None:
        if node_name in self._alive:
            self._alive.remove(node_name)
            self._last_s[node_name] = self._clock.monotonic_s()
            self._notify(node_name)

    def forget(self, node_name: str) -> None:
        """There is no such node any more."""
        was_known = node_name in self._alive or node_name in self._last_s
        self._alive.discard(node_name)
        self._last_s.pop(node_name, None)
        if was_known:
            self._notify(node_name)

    def _notify(self, node_name: str) -> None:
        for callback in self._callbacks:
            callback(node_name)


class CombinedLiveness:
    """Liveness from the virtual kubelet of this process for its nodes, and from Leases for all others."""

    def __init__(self, reported: ReportedLiveness, leases: LeaseLiveness) -> None:
        self._reported = reported
        self._leases = leases

    def get_last_heartbeat_s(self, node_name: str) -> float | None:
        heard = (self._reported.get_last_heartbeat_s(node_name), self._leases.get_last_heartbeat_s(node_name))
        return max((item for item in heard if item is not None), default=None)

    async def ask(self, node_name: str, client: Client) -> None:
        if not self._reported.is_steady(node_name):
            await self._leases.ask(node_name, client)

    def is_steady(self, node_name: str) -> bool:
        return self._reported.is_steady(node_name)

    def on_change(self, callback: OnChange) -> None:
        def call_if_unknown(node_name: str) -> None:
            if not self._reported.is_steady(node_name):
                callback(node_name)

        self._reported.on_change(callback)
        self._leases.on_change(call_if_unknown)

    async def wait_until_synced(self) -> None:
        await self._leases.wait_until_synced()
