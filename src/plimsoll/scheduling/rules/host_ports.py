"""Host ports: a node has each (protocol, address, port) once, and 0.0.0.0 is every address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from plimsoll.scheduling.verdicts import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView, NodeState

NODE_PORTS: Final = "NodePorts"
ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - Kubernetes' word for every address of a node, nothing is bound here


class HostPort(NamedTuple):
    """A port taken on the node itself."""

    protocol: str
    address: str
    port: int


_NO_PORTS: Final[frozenset[HostPort]] = frozenset()


def host_ports(pod: Pod) -> frozenset[HostPort]:
    """Of containers and sidecars. On the host network every port is a host port, as the API server defaults it."""
    spec = pod.spec
    together = (
        *spec.containers,
        *(container for container in spec.init_containers if container.restart_policy == "Always"),
    )
    on_host = spec.host_network
    found = frozenset(
        HostPort(port.protocol or "TCP", port.host_ip or ANY_ADDRESS, port.host_port or port.container_port)
        for container in together
        for port in container.ports
        if port.host_port > 0 or (on_host and port.container_port > 0)
    )
    # One empty set for all: each would take 216 bytes, of every pod of a cluster.
    return found or _NO_PORTS


class TakenPorts:
    """The ports taken on a node, by number and protocol."""

    __slots__ = ("_addresses",)

    def __init__(self, ports: Iterable[HostPort]) -> None:
        self._addresses: dict[tuple[str, int], set[str]] = {}
        for host_port in ports:
            self._addresses.setdefault((host_port.protocol, host_port.port), set()).add(host_port.address)

    def clash(self, wanted: HostPort) -> bool:
        addresses = self._addresses.get((wanted.protocol, wanted.port))
        if addresses is None:
            return False
        return wanted.address == ANY_ADDRESS or wanted.address in addresses or ANY_ADDRESS in addresses


class _FreePorts:
    """None of the pod's host ports clashes with one taken on the node."""

    def __init__(self, ports: Iterable[HostPort]) -> None:
        self._ports = tuple(sorted(ports))

    def refuse(self, place: NodeState) -> Refusal | None:
        clashing = next((wanted for wanted in self._ports if place.ports.clash(wanted)), None)
        if clashing is None:
            return None
        return Refusal(
            plugin=NODE_PORTS,
            messages=("node(s) didn't have free ports for the requested pod ports",),
            resolvable=True,
            detail=f"{clashing.protocol} {clashing.port}",
        )


def prepare_host_ports(pod: Pod, _view: ClusterView) -> _FreePorts | None:
    ports = host_ports(pod)
    return _FreePorts(ports) if ports else None
