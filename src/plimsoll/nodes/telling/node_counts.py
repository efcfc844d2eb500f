"""What metrics say of nodes: their accelerators, their taints, and how much there is of them in all. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.cluster_state.node_readiness import StartupTaints
from plimsoll.nodes.cluster_state.upcoming import is_upcoming
from plimsoll.nodes.planning.gpus import GPU_LABELS, is_gpu
from plimsoll.nodes.planning.limits import BEING_DELETED, Counted, counts
from plimsoll.nodes.planning.nap_taints import IGNORED_PREFIX, STATUS_PREFIX

if TYPE_CHECKING:
    from plimsoll.nodes.policy import PodRules
    from plimsoll.objects.nodes import Node
    from plimsoll.scheduling import ClusterView

NO_DEVICES: Final = ("", "")
_NAMED_TAINTS: Final = frozenset({BEING_DELETED, "DeletionCandidateOfClusterAutoscaler"})
_OF_THE_SYSTEM: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")


def devices_of(node: Node) -> tuple[str, str]:
    """Resource and type of a node's accelerators; "generic" where no label tells the type."""
    resources = sorted(name for name in node.status.capacity or node.status.allocatable if is_gpu(name))
    if not resources:
        return NO_DEVICES
    labels = node.metadata.labels
    return resources[0], next((labels[one] for one in GPU_LABELS if labels.get(one)), "generic")


class NodeTotals:
    """How much of a few resources there is in all. Nodes that are the same objects as last time are not read again."""

    def __init__(self, *resources: str) -> None:
        self._resources = resources
        self._read: dict[str, tuple[Node, tuple[int, ...]]] = {}

    def of(self, view: ClusterView) -> tuple[int, ...]:
        """Of nodes that are there, without those that are leaving or on their way."""
        before, self._read = self._read, {}
        for name, state in view.nodes.items():
            read = before.get(name)
            self._read[name] = read if read is not None and read[0] is state.node else self._amounts(state.node)
        return tuple(map(sum, zip(*[amounts for _, amounts in self._read.values()], strict=True))) or self._nothing

    def _amounts(self, node: Node) -> tuple[Node, tuple[int, ...]]:
        if is_upcoming(node) or not counts(node):
            return node, self._nothing
        counted = Counted.of(node)
        return node, tuple([counted.amount(one) for one in self._resources])

    @property
    def _nothing(self) -> tuple[int, ...]:
        return (0,) * len(self._resources)


def taints_by_type(view: ClusterView, rules: PodRules) -> Counter[str]:
    startup = StartupTaints(rules)
    keys = Counter(taint.key for state in view.nodes.values() for taint in state.node.spec.taints)
    found: Counter[str] = Counter()
    for key, taints in keys.items():
        found[_type_of(key, startup, rules)] += taints
    return found


def _type_of(key: str, startup: StartupTaints, rules: PodRules) -> str:
    """By itself where it is one that everybody knows, else by what it is for."""
    if key.startswith(IGNORED_PREFIX):
        return IGNORED_PREFIX
    if key in _NAMED_TAINTS or key.startswith(_OF_THE_SYSTEM):
        return key
    if key in startup:
        return "startup-taint"
    return "status-taint" if key in rules.status_taints or key.startswith(STATUS_PREFIX) else "other"
