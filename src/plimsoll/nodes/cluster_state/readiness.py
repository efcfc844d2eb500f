"""Readiness per node group. Pure.

Every node and instance is ready, unready, not started, deleted, suspended or unregistered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plimsoll.core.durations import add_seconds
from plimsoll.nodes.cluster_state.node_readiness import (
    NodeReadiness,
    StartupTaints,
    UnreadyReason,
    classify_readiness,
    is_suspended,
    is_tainted_for_deletion,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from plimsoll.nodes.cluster_state.observed import ObservedCluster, ObservedGroup, UnreadableNode
    from plimsoll.nodes.config.policy import GroupRules, PodRules
    from plimsoll.objects.api.nodes import Node

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Names of nodes, and ids of instances without a node, by state and sorted."""

    ready: Names = ()
    unready: Names = ()
    """Nodes that failed, or did not start in time; and nodes that cannot be decoded."""
    not_started: Names = ()
    deleted: Names = ()
    """Nodes whose instance no longer exists; the target size does not include them."""
    suspended: Names = ()
    resource_unready: Names = ()
    """Unready nodes that lack accelerators."""
    unregistered: Names = ()
    long_unregistered: Names = ()

    @property
    def registered(self) -> int:
        return len(self.ready) + len(self.unready) + len(self.not_started) + len(self.deleted) + len(self.suspended)

    @property
    def arrived(self) -> int:
        """The nodes of the target size that have started, ready or not."""
        return len(self.ready) + len(self.unready) + len(self.suspended)

    @property
    def all_unregistered(self) -> int:
        return len(self.unregistered) + len(self.long_unregistered)

    def count_upcoming(self, target: int) -> int:
        """The number of upcoming nodes, including those that have not started."""
        return max(0, target - self.arrived - len(self.long_unregistered))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessByGroup:
    """Readiness by group, and of all nodes, including those without a group."""

    groups: Mapping[str, Readiness]
    total: Readiness


@dataclass(slots=True)
class _States:
    """Collects names by state."""

    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, state: str, name: str) -> None:
        self.names.setdefault(state, []).append(name)

    def build(self) -> Readiness:
        return Readiness(**{state: tuple(sorted(names)) for state, names in self.names.items()})


class ReadinessClassifier:
    """Classifies nodes and instances; results of unchanged nodes are cached."""

    def __init__(self, rules: GroupRules, pods: PodRules) -> None:
        self._rules = rules
        self._startup = StartupTaints(pods)
        self._read: dict[str, tuple[Node, NodeReadiness]] = {}

    def classify(
        self, observed: ObservedCluster, missing_since: Mapping[str, datetime], now: datetime
    ) -> ReadinessByGroup:
        """`missing_since` is the time since which an instance has no node."""
        self._forget(observed.nodes)
        total = _States()
        groups = {group.id: _States() for group in observed.groups}
        known = {group.id: group for group in observed.groups}
        for node in observed.nodes:
            name = node.metadata.name
            group_id = observed.group_of.get(name, "")
            for state in self._find_states(node, known.get(group_id), observed, now):
                total.add(state, name)
                if group_id in groups:
                    groups[group_id].add(state, name)
        registered = collect_registered_ids(observed)
        for unreadable in observed.unreadable:
            total.add("unready", unreadable.name)
            for group in observed.groups:
                if _has_instance_of(group, unreadable):
                    groups[group.id].add("unready", unreadable.name)
        for group in observed.groups:
            wait_s = self.find_provision_time_s(group)
            for instance in find_unregistered_instances(registered, group):
                is_overdue = add_seconds(missing_since.get(instance, now), wait_s) < now
                state = "long_unregistered" if is_overdue else "unregistered"
                total.add(state, instance)
                groups[group.id].add(state, instance)
        return ReadinessByGroup(groups={name: states.build() for name, states in groups.items()}, total=total.build())

    def find_provision_time_s(self, group: ObservedGroup | None) -> float:
        own = None if group is None else group.provision_time_s
        return self._rules.provision_time_s if own is None else own

    def _get_startup_time_s(self, group: ObservedGroup | None) -> float:
        own = None if group is None else group.startup_time_s
        return self._rules.startup_time_s if own is None else own

    def _find_states(
        self, node: Node, group: ObservedGroup | None, observed: ObservedCluster, now: datetime
    ) -> tuple[str, ...]:
        if is_gone(node, observed.has_instance):
            return ("deleted",)
        if is_suspended(node):
            return ("suspended",)
        readiness = self._get_readiness(node, observed.gpu_label)
        if readiness.is_ready:
            return ("ready",)
        created = node.metadata.creation_timestamp
        if created is not None and add_seconds(created, self._get_startup_time_s(group)) > now:
            return ("not_started",)
        return ("unready", "resource_unready") if readiness.why is UnreadyReason.RESOURCE else ("unready",)

    def _get_readiness(self, node: Node, gpu_label: str) -> NodeReadiness:
        """Nodes are immutable, so the readiness of the same object is cached."""
        known = self._read.get(node.metadata.name)
        if known is not None and known[0] is node:
            return known[1]
        readiness = classify_readiness(node, self._startup, gpu_label=gpu_label)
        self._read[node.metadata.name] = (node, readiness)
        return readiness

    def _forget(self, nodes: Sequence[Node]) -> None:
        if len(self._read) > 2 * len(nodes):
            there = {node.metadata.name for node in nodes}
            self._read = {name: read for name, read in self._read.items() if name in there}


def is_gone(node: Node, has_instance: Mapping[str, bool]) -> bool:
    """Whether the instance of a node is gone; if the provider does not know, a deletion taint decides."""
    exists = has_instance.get(node.metadata.name)
    return is_tainted_for_deletion(node) if exists is None else not exists


def collect_registered_ids(observed: ObservedCluster) -> frozenset[str]:
    """What instances of registered nodes are recognised by: provider ids, and names of nodes without one."""
    readable = (node.spec.provider_id or node.metadata.name for node in observed.nodes)
    # An unreadable node is recognised by either, because each of them may be what cannot be read.
    unreadable = (known for node in observed.unreadable for known in (node.provider_id, node.name) if known)
    return frozenset((*readable, *unreadable))


def _has_instance_of(group: ObservedGroup, node: UnreadableNode) -> bool:
    return any(
        (bool(node.provider_id) and instance.id == node.provider_id) or (bool(node.name) and instance.name == node.name)
        for instance in group.instances
    )


def find_unregistered_instances(registered: Collection[str], group: ObservedGroup) -> Names:
    """Instances of a group that should become nodes and are none; `registered` comes from `collect_registered_ids`."""
    return tuple(
        instance.id
        for instance in group.instances
        if instance.is_expected_to_register
        and instance.id not in registered
        and (not instance.name or instance.name not in registered)
    )
