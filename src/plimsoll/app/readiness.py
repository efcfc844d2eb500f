"""Whether the nodes of a simulated cluster are there: for the first screen of `plimsoll up`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from plimsoll.local.kubelet.settings import SILENT
from plimsoll.objects.api.nodes import Node, is_node_ready
from plimsoll.objects.api.simulated_cloud import Machine, MachineState, NodeGroup

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.kube.informer import Informer
    from plimsoll.kube.informer.factory import SharedInformerFactory

# How long the status waits for nodes.
_NODES_TIMEOUT_S: Final = 8.0
_POLL_S: Final = 0.1
_PENDING: Final = {MachineState.CREATING, MachineState.FAILED}


class ReadinessInformers(NamedTuple):
    """The informers that show whether the cluster is ready."""

    nodes: Informer[Node]
    groups: Informer[NodeGroup]
    machines: Informer[Machine]

    @classmethod
    def find(cls, informers: SharedInformerFactory) -> ReadinessInformers:
        return cls(informers.get_informer(Node), informers.get_informer(NodeGroup), informers.get_informer(Machine))


class ReadinessWait:
    """Waits until as many nodes are ready as there are to be, for a limited time."""

    def __init__(self, informers: ReadinessInformers, *, clock: Clock) -> None:
        self._nodes, self._groups, self._machines = informers
        self._clock = clock

    async def wait_for_nodes(self) -> tuple[int, int]:
        """The number of ready nodes, and the number that there are to be."""
        await self._nodes.wait_until_synced()
        await self._groups.wait_until_synced()
        await self._machines.wait_until_synced()
        until_s = self._clock.monotonic_s() + _NODES_TIMEOUT_S
        while self._count_ready() < self._count_expected() and self._clock.monotonic_s() < until_s:
            await self._clock.sleep(_POLL_S)
        return self._count_ready(), self._count_expected()

    def find_missing(self) -> tuple[str, ...]:
        """The names of nodes that are not ready and of machines without a node, each with its cause."""
        nodes = {node.metadata.name: node for node in self._nodes.cache}
        waiting = {name: _explain_not_ready(node) for name, node in nodes.items() if not is_node_ready(node)}
        machines = [machine for machine in self._machines.cache if machine.metadata.name not in nodes]
        waiting |= {
            machine.metadata.name: _explain_no_node(machine) for machine in machines if machine.status.state in _PENDING
        }
        return tuple(f"{name}: {why}" for name, why in sorted(waiting.items()))

    def _count_ready(self) -> int:
        return sum(is_node_ready(node) for node in self._nodes.cache)

    def _count_expected(self) -> int:
        return max(sum(group.spec.target for group in self._groups.cache), len(self._nodes.cache))


def _explain_not_ready(node: Node) -> str:
    if node.metadata.annotations.get(SILENT) == "true":
        return f"cut off by its annotation {SILENT}"
    messages = [
        condition.message for condition in node.status.conditions if condition.type == "Ready" and condition.message
    ]
    return messages[0] if messages else "not ready yet"


def _explain_no_node(machine: Machine) -> str:
    if machine.status.error is not None:
        return machine.status.error.message
    return "boots never" if machine.spec.never_boots else "still booting"
