"""Every node and machine put under one heading: ready, unready, not started, deleted, suspended, unregistered. Pure.

The registry calls `classify` each turn; health, upcoming nodes and the status ConfigMap only count what is here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from plimsoll.nodes.cluster_state.node_readiness import (
    NodeReadiness,
    StartupTaints,
    UnreadyReason,
    is_suspended,
    is_tainted_for_deletion,
    readiness_of,
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
    """Names of nodes, and ids of instances that are not nodes yet, each under one heading and in order."""

    ready: Names = ()
    unready: Names = ()
    """Broke down, or never started in time."""
    not_started: Names = ()
    deleted: Names = ()
    """Nodes whose machine is gone: no part of the target size any more."""
    suspended: Names = ()
    resource_unready: Names = ()
    """Those of the unready that lack accelerators."""
    unregistered: Names = ()
    long_unregistered: Names = ()

    @property
    def registered(self) -> int:
        return len(self.ready) + len(self.unready) + len(self.not_started) + len(self.deleted) + len(self.suspended)

    @property
    def arrived(self) -> int:
        """Nodes of the target size that are past their start, well or not."""
        return len(self.ready) + len(self.unready) + len(self.suspended)

    @property
    def all_unregistered(self) -> int:
        return len(self.unregistered) + len(self.long_unregistered)

    def upcoming(self, target: int) -> int:
        """How many nodes are still to come, not started ones included."""
        return max(0, target - self.arrived - len(self.long_unregistered))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessByGroup:
    """By group, and for all nodes together, those of no group too."""

    groups: Mapping[str, Readiness]
    total: Readiness


@dataclass(slots=True)
class _Headings:
    """Grows while nodes are sorted."""

    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, heading: str, name: str) -> None:
        self.names.setdefault(heading, []).append(name)

    def closed(self) -> Readiness:
        return Readiness(**{heading: tuple(sorted(names)) for heading, names in self.names.items()})


class ReadinessClassifier:
    """Knows the rules by which things are put under headings, and what it read of each node last."""

    def __init__(self, rules: GroupRules, pods: PodRules) -> None:
        self._rules = rules
        self._startup = StartupTaints(pods)
        self._read: dict[str, tuple[Node, NodeReadiness]] = {}

    def classify(
        self, world: ObservedCluster, missing_since: Mapping[str, datetime], now: datetime
    ) -> ReadinessByGroup:
        """`missing_since` says, by instance, since when it is known without a node."""
        self._forget(world.nodes)
        total = _Headings()
        groups = {group.id: _Headings() for group in world.groups}
        known = {group.id: group for group in world.groups}
        for node in world.nodes:
            name = node.metadata.name
            group_id = world.group_of.get(name, "")
            for heading in self._headings_of(node, known.get(group_id), world, now):
                total.add(heading, name)
                if group_id in groups:
                    groups[group_id].add(heading, name)
        registered = registered_ids(world)
        for unreadable in world.unreadable:
            total.add("unready", unreadable.name)
            for group in world.groups:
                if _has_instance_of(group, unreadable):
                    groups[group.id].add("unready", unreadable.name)
        for group in world.groups:
            wait = timedelta(seconds=self.provision_time_s(group))
            for instance in unregistered_instances(registered, group):
                heading = "long_unregistered" if missing_since.get(instance, now) + wait < now else "unregistered"
                total.add(heading, instance)
                groups[group.id].add(heading, instance)
        return ReadinessByGroup(
            groups={name: headings.closed() for name, headings in groups.items()}, total=total.closed()
        )

    def provision_time_s(self, group: ObservedGroup | None) -> float:
        own = None if group is None else group.provision_time_s
        return self._rules.provision_time_s if own is None else own

    def _startup_time_s(self, group: ObservedGroup | None) -> float:
        own = None if group is None else group.startup_time_s
        return self._rules.startup_time_s if own is None else own

    def _headings_of(
        self, node: Node, group: ObservedGroup | None, world: ObservedCluster, now: datetime
    ) -> tuple[str, ...]:
        if is_gone(node, world.has_instance):
            return ("deleted",)
        if is_suspended(node):
            return ("suspended",)
        readiness = self._readiness_of(node, world.gpu_label)
        if readiness.is_ready:
            return ("ready",)
        created = node.metadata.creation_timestamp
        if created is not None and created + timedelta(seconds=self._startup_time_s(group)) > now:
            return ("not_started",)
        return ("unready", "resource_unready") if readiness.why is UnreadyReason.RESOURCE else ("unready",)

    def _readiness_of(self, node: Node, gpu_label: str) -> NodeReadiness:
        """Nodes are immutable: one that is the same object as last time is as ready as it was."""
        known = self._read.get(node.metadata.name)
        if known is not None and known[0] is node:
            return known[1]
        readiness = readiness_of(node, self._startup, gpu_label=gpu_label)
        self._read[node.metadata.name] = (node, readiness)
        return readiness

    def _forget(self, nodes: Sequence[Node]) -> None:
        if len(self._read) > 2 * len(nodes):
            there = {node.metadata.name for node in nodes}
            self._read = {name: read for name, read in self._read.items() if name in there}


def is_gone(node: Node, has_instance: Mapping[str, bool]) -> bool:
    """Where the provider cannot tell, a node that we tainted for deletion counts as gone."""
    exists = has_instance.get(node.metadata.name)
    return is_tainted_for_deletion(node) if exists is None else not exists


def registered_ids(world: ObservedCluster) -> frozenset[str]:
    """What instances of registered nodes are recognised by: provider ids, and names of nodes without one."""
    readable = (node.spec.provider_id or node.metadata.name for node in world.nodes)
    # An unreadable node is recognised by either, because each of them may be what cannot be read.
    unreadable = (known for node in world.unreadable for known in (node.provider_id, node.name) if known)
    return frozenset((*readable, *unreadable))


def _has_instance_of(group: ObservedGroup, node: UnreadableNode) -> bool:
    return any(
        (bool(node.provider_id) and instance.id == node.provider_id) or (bool(node.name) and instance.name == node.name)
        for instance in group.instances
    )


def unregistered_instances(registered: Collection[str], group: ObservedGroup) -> Names:
    """Instances of a group that should become nodes and are none; `registered` comes from `registered_ids`."""
    return tuple(
        observed_instance.id
        for observed_instance in group.instances
        if observed_instance.is_expected_to_register
        and observed_instance.id not in registered
        and (not observed_instance.name or observed_instance.name not in registered)
    )
