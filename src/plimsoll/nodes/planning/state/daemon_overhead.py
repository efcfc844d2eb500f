"""What a new node carries before any pending pod: daemon pods and mirror pods, with their full requests. Pure.

A template made from a real node brings its daemons along. A template from the provider, or of a machine type, gets
every DaemonSet that would run there (docs/design/nodes.md 6.5). Labels and taints of the node decide, resources do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.errors import InvalidQuantity, InvalidSelector
from plimsoll.core.resources import ZERO, ResourceVector
from plimsoll.objects.api.affinity import Toleration
from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
from plimsoll.objects.api.pods import Pod
from plimsoll.scheduling.pod_requests import compute_pod_demand
from plimsoll.scheduling.rules.taints import Tolerations
from plimsoll.scheduling.selectors import parse_node_selector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.nodes.model.snapshot import NodeGroup
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.workloads import DaemonSet

# Tolerations that the DaemonSet controller adds to every pod.
_ALWAYS_TOLERATED: Final = (
    Toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute"),
    Toleration(key="node.kubernetes.io/unreachable", operator="Exists", effect="NoExecute"),
    Toleration(key="node.kubernetes.io/disk-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key="node.kubernetes.io/pid-pressure", operator="Exists", effect="NoSchedule"),
    Toleration(key="node.kubernetes.io/unschedulable", operator="Exists", effect="NoSchedule"),
)
_ON_HOST_NETWORK: Final = Toleration(
    key="node.kubernetes.io/network-unavailable", operator="Exists", effect="NoSchedule"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonOverhead:
    """The daemon and mirror pods of a node, and their total demand."""

    pods: tuple[Pod, ...] = ()
    demand: ResourceVector = ZERO


class _Daemon:
    """One DaemonSet, parsed once for many nodes. Raises `InvalidSelector`, `InvalidQuantity`."""

    __slots__ = ("_affinity", "_node_name", "_selector", "_tolerations", "demand", "owner", "pod")

    def __init__(self, daemon_set: DaemonSet) -> None:
        spec = daemon_set.spec.template.spec
        affinity = None if spec.affinity is None else spec.affinity.node_affinity
        required = None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
        self._affinity = None if required is None else parse_node_selector(required)
        self._selector = tuple(spec.node_selector.items())
        self._node_name = spec.node_name
        added = (*_ALWAYS_TOLERATED, _ON_HOST_NETWORK) if spec.host_network else _ALWAYS_TOLERATED
        tolerations = (*spec.tolerations, *(toleration for toleration in added if toleration not in spec.tolerations))
        self._tolerations = Tolerations(tolerations)
        meta = daemon_set.metadata
        self.owner = (meta.namespace, meta.name)
        owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name=meta.name, uid=meta.uid, controller=True)
        self.pod = Pod(
            metadata=ObjectMeta(
                name=f"{meta.name}-template",
                namespace=meta.namespace,
                labels=daemon_set.spec.template.metadata.labels,
                annotations=daemon_set.spec.template.metadata.annotations,
                owner_references=(owner,),
            ),
            spec=structs.replace(spec, tolerations=tolerations),
        )
        self.demand = compute_pod_demand(self.pod)

    def runs_on(self, node: Node) -> bool:
        labels, name = node.metadata.labels, node.metadata.name
        if self._node_name and self._node_name != name:
            return False
        if any(labels.get(key) != value for key, value in self._selector):
            return False
        if self._affinity is not None and not self._affinity.matches(labels, name=name):
            return False
        return self._tolerations.find_untolerated(node.spec.taints) is None

    def build_pod(self, node: Node) -> Pod:
        spec = structs.replace(self.pod.spec, node_name=node.metadata.name)
        return structs.replace(self.pod, spec=spec)


class DaemonSets:
    """All DaemonSets of a cluster. A DaemonSet of which Kubernetes could create no pod runs nowhere."""

    def __init__(self, daemon_sets: Iterable[DaemonSet]) -> None:
        self._daemons: list[_Daemon] = []
        for daemon_set in sorted(
            daemon_sets, key=lambda daemon_set: (daemon_set.metadata.namespace, daemon_set.metadata.name)
        ):
            if daemon_set.metadata.deletion_timestamp is not None:
                continue
            try:
                self._daemons.append(_Daemon(daemon_set))
            except (InvalidSelector, InvalidQuantity):
                continue

    def compute_overhead(self, node: Node, *, existing: Iterable[Pod] = ()) -> DaemonOverhead:
        """A pod of every DaemonSet that would run there and has none among `existing`, which come first."""
        there = tuple(existing)
        owners = {(pod.metadata.namespace, owner.name) for pod in there for owner in _list_daemon_set_owners(pod)}
        missing = [daemon for daemon in self._daemons if daemon.owner not in owners and daemon.runs_on(node)]
        demand = sum_demand(there) if there else ZERO
        for daemon in missing:
            demand += daemon.demand
        return DaemonOverhead(pods=(*there, *(daemon.build_pod(node) for daemon in missing)), demand=demand)


def compute_group_daemon_overhead(group: NodeGroup, node: Node, sets: DaemonSets, *, force: bool) -> DaemonOverhead:
    """The daemons of the next node of a group; `force` (force-ds) adds DaemonSets that its real nodes lack."""
    if group.daemons_are_known and not force:
        return DaemonOverhead(pods=group.daemons, demand=sum_demand(group.daemons))
    return sets.compute_overhead(node, existing=group.daemons)


def sum_demand(pods: Iterable[Pod]) -> ResourceVector:
    """The total demand of pods. A pod that cannot be parsed counts nothing: the API server would have rejected it."""
    total = ZERO
    for pod in pods:
        try:
            total += compute_pod_demand(pod)
        except InvalidQuantity:
            continue
    return total


def _list_daemon_set_owners(pod: Pod) -> list[OwnerReference]:
    return [owner for owner in pod.metadata.owner_references if owner.controller and owner.kind == "DaemonSet"]
