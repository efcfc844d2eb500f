"""The dependencies of the simulated components of a cluster: clients, shared informers, event recorders.

On a real cluster the deployment controller writes as `kube-controller-manager` and records Events as
`deployment-controller`; here likewise, so that managed fields and Events are the same. A cluster has one `Components`,
which provides a `Component` per controller; the services of both must run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.kube.informer.informer import DEFAULT_SETTINGS
from plimsoll.kube.recorder import EventRecorder
from plimsoll.objects.api.events import EventSource
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.settings import InformerSettings

    Connect = Callable[[str], Client]
    """A client whose field manager and user agent are the given name."""

CONTROLLER_MANAGER: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
KUBELET: Final = "kubelet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One part's tools. `name` is what its events are signed with."""

    name: str
    client: Client
    informers: SharedInformerFactory
    recorder: EventRecorder
    clock: Clock
    entropy: Entropy
    informer_settings: InformerSettings = DEFAULT_SETTINGS
    """For informers that a part keeps for itself."""


class Components:
    """Makes components that share informers, and one client for each name they write under."""

    def __init__(
        self, connect: Connect, *, clock: Clock, entropy: Entropy, informers: InformerSettings = DEFAULT_SETTINGS
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._entropy = entropy
        self._informer_settings = informers
        self._clients: dict[str, Client] = {}
        self._recorders: dict[str, EventRecorder] = {}
        self.informers = SharedInformerFactory(
            self._get_client(CONTROLLER_MANAGER), clock=clock, entropy=entropy, settings=informers
        )

    def build_component(self, name: str, *, manager: str = CONTROLLER_MANAGER) -> Component:
        """Tools for the part called `name`, which writes as `manager`. The same name shares one recorder."""
        client = self._get_client(manager)
        if name not in self._recorders:
            self._recorders[name] = EventRecorder(
                client, EventSource(component=name), clock=self._clock, entropy=self._entropy
            )
        return Component(
            name=name,
            client=client,
            informers=self.informers,
            recorder=self._recorders[name],
            clock=self._clock,
            entropy=self._entropy,
            informer_settings=self._informer_settings,
        )

    @property
    def recorders(self) -> tuple[EventRecorder, ...]:
        return tuple(self._recorders.values())

    def list_services(self, *, whose: str = "") -> list[Service]:
        """Recorders and informers: to be started before the parts that use them, and stopped after."""
        recorders = [Service(name=f"events of {name}", run=recorder.run) for name, recorder in self._recorders.items()]
        return [*recorders, *self.informers.list_services(owner=whose)]

    def _get_client(self, manager: str) -> Client:
        if manager not in self._clients:
            self._clients[manager] = self._connect(manager)
        return self._clients[manager]
