"""Host ports: a node has each (protocol, address, port) once, and 0.0.0.0 is every address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.scheduling.host_ports import HostPort, list_host_ports
from plimsoll.scheduling.verdicts import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView, NodeState

NODE_PORTS: Final = "NodePorts"


class _FreePorts:
    """None of the pod's host ports clashes with one taken on the node."""

    def __init__(self, ports: Iterable[HostPort]) -> None:
        self._ports = tuple(sorted(ports))

    def refuse(self, place: NodeState) -> Refusal | None:
        clashing = next((wanted for wanted in self._ports if place.ports.clashes_with(wanted)), None)
        if clashing is None:
            return None
        return Refusal(
            plugin=NODE_PORTS,
            messages=("node(s) didn't have free ports for the requested pod ports",),
            resolvable=True,
            detail=f"{clashing.protocol} {clashing.port}",
        )


def prepare_host_ports(pod: Pod, _view: ClusterView) -> _FreePorts | None:
    ports = list_host_ports(pod)
    return _FreePorts(ports) if ports else None
