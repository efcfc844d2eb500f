"""Host ports that pods take on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.pods import Pod


ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - Kubernetes' word for every address of a node, nothing is bound here


class HostPort(NamedTuple):
    """A port taken on the node itself."""

    protocol: str
    address: str
    port: int


_NO_PORTS: Final[frozenset[HostPort]] = frozenset()


def list_host_ports(pod: Pod) -> frozenset[HostPort]:
    """Host ports of containers and sidecars. On the host network every port is a host port, by API server default."""
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
    # One shared empty set: each would take 216 bytes per pod of a cluster.
    return found or _NO_PORTS


class TakenPorts:
    """The ports taken on a node, by number and protocol."""

    __slots__ = ("_addresses",)

    def __init__(self, ports: Iterable[HostPort]) -> None:
        self._addresses: dict[tuple[str, int], set[str]] = {}
        for host_port in ports:
            self._addresses.setdefault((host_port.protocol, host_port.port), set()).add(host_port.address)

    def clashes_with(self, wanted: HostPort) -> bool:
        addresses = self._addresses.get((wanted.protocol, wanted.port))
        if addresses is None:
            return False
        return wanted.address == ANY_ADDRESS or wanted.address in addresses or ANY_ADDRESS in addresses
