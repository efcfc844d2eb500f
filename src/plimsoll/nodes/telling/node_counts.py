"""What metrics say of nodes: their accelerators, their taints, and how much there is of them in all. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.cluster_state.node_readiness import StartupTaints
from plimsoll.nodes.cluster_state.upcoming import is_upcoming
from plimsoll.nodes.planning.gpus import GPU_LABELS, is_gpu
from plimsoll.nodes.planning.limits import BEING_DELETED, Counted, Usage, usage_of
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


def totals_of(view: ClusterView, *resources: str) -> tuple[int, ...]:
    """Of nodes that are there, without those that are leaving or on their way."""
    all_nodes = usage_of(view)
    coming = Usage(nodes=tuple(Counted.of(state.node) for state in view.nodes.values() if is_upcoming(state.node)))
    return tuple(all_nodes.total(one) - coming.total(one) for one in resources)


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
