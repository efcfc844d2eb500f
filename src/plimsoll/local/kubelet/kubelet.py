"""The virtual kubelet, built from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.kubelet.heartbeats import LeaseHeartbeats, Leases, ReportedHeartbeats
from plimsoll.local.kubelet.nodes import NodeController
from plimsoll.local.kubelet.pods import PodController
from plimsoll.local.kubelet.settings import KubeletSettings
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from plimsoll.kube.controller.controller import Controller
    from plimsoll.kube.informer.events import Key
    from plimsoll.local.components import Component
    from plimsoll.local.kubelet.heartbeats import Heartbeats
    from plimsoll.local.liveness import ReportedLiveness


class Kubelet:
    """The virtual kubelet of all simulated nodes. It reports liveness to `liveness` and writes Leases by default.

    The component should come from `components.build_component("kubelet", manager=KUBELET)`.
    """

    def __init__(
        self,
        component: Component,
        *,
        settings: KubeletSettings | None = None,
        liveness: ReportedLiveness | None = None,
        writes: bool = True,
    ) -> None:
        settings = settings or KubeletSettings()
        leases = Leases(component.client, clock=component.clock, settings=settings)
        self._heartbeats: Heartbeats = (
            LeaseHeartbeats(leases, clock=component.clock, settings=settings, liveness=liveness)
            if writes or liveness is None
            else ReportedHeartbeats(liveness, leases)
        )
        self.nodes = NodeController(component, self._heartbeats, settings)
        self.pods = PodController(component, self.nodes, settings)

    @property
    def controllers(self) -> tuple[Controller[Key], Controller[Key]]:
        return (self.nodes.controller, self.pods.controller)

    def list_services(self) -> list[Service]:
        """The services to run together with the informers of the component."""
        services = [Service(name=controller.name, run=controller.run) for controller in self.controllers]
        return [*self._heartbeats.list_services(), *services]
