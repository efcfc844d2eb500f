"""Builds the planner's snapshot from what was read: a numbered picture of the cluster and its pending pods. Pure.

Nodes that registered but have not started are left out; an upcoming node stands for each node that has not arrived.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from plimsoll.core.plans import Ref
from plimsoll.nodes.model.results import IgnoredField, list_unknown_fields
from plimsoll.nodes.observing.attach_limits import add_template_limits
from plimsoll.nodes.observing.group_zones import GroupZones
from plimsoll.nodes.observing.upcoming import build_upcoming_nodes
from plimsoll.nodes.planning.scaleup.nominations import place_pending
from plimsoll.nodes.planning.state.daemon_overhead import DaemonSets
from plimsoll.nodes.planning.state.snapshot_builder import SnapshotBuilder, SnapshotChanges, SnapshotInputs
from plimsoll.scheduling.cluster_view import PodKey, get_pod_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from plimsoll.nodes.cluster_state.health import ClusterHealth
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.snapshot import NodeGroup, Snapshot
    from plimsoll.nodes.observing.group_zones import ZoneForecast
    from plimsoll.nodes.observing.listers import ClusterObjects
    from plimsoll.nodes.observing.pod_filters import FilteredPods
    from plimsoll.nodes.observing.provider_state import ProviderState
    from plimsoll.nodes.observing.upcoming import UpcomingNode
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.workloads import DaemonSet
    from plimsoll.objects.codec.decode_problems import BadObject
    from plimsoll.scheduling.cluster_view import ClusterView


class LoopSnapshots:
    """Builds each snapshot from the one before, so that the cost depends on what changed."""

    def __init__(self) -> None:
        self._builder = SnapshotBuilder()
        self._nodes: dict[str, Node] = {}
        self._besides: dict[PodKey, Pod | BadObject] = {}
        self._coming = UpcomingNodeCache()
        self._zones = GroupZones()

    def build(
        self,
        cluster: ClusterObjects,
        cloud: ProviderState,
        pods: FilteredPods,
        *,
        health: ClusterHealth,
        policy: Policy,
        number: int,
    ) -> Snapshot:
        planned = cloud.build_planned_groups(health, policy)
        forecasts = self._zones.forecast(cloud, cluster.nodes, health)
        groups = self._zones.apply(planned, forecasts)
        coming = self._place_in_zones(self._coming.build(planned, health, policy, cluster.daemon_sets), forecasts)
        around = SnapshotInputs(
            at=health.at,
            namespaces=cluster.namespaces,
            storage=add_template_limits(cluster.storage, groups),
            groups=groups,
            machine_types=cloud.machine_types,
            daemon_sets=cluster.daemon_sets,
            budgets=cluster.budgets,
            group_of={
                **cloud.group_of,
                **{upcoming_node.node.metadata.name: upcoming_node.group for upcoming_node in coming},
            },
            creation_backoffs=health.explain_not_created(),
        )
        not_started = health.not_started
        nodes = {node.metadata.name: node for node in cluster.nodes if node.metadata.name not in not_started}
        nodes |= {upcoming_node.node.metadata.name: upcoming_node.node for upcoming_node in coming}
        besides: dict[PodKey, Pod | BadObject] = {
            PodKey(bad_object.namespace, bad_object.name): bad_object for bad_object in cluster.bad_pods
        }
        besides |= {get_pod_key(pod): pod for upcoming_node in coming for pod in upcoming_node.pods}
        besides |= {get_pod_key(pod): pod for pod in pods.extra_pods}
        return replace(self._update_snapshot(nodes, pods, besides, around), number=number)

    def _place_in_zones(
        self, coming: Iterable[UpcomingNode], forecasts: Mapping[str, ZoneForecast]
    ) -> list[UpcomingNode]:
        """The upcoming nodes of groups over several zones, each in the zone that is expected for it."""
        zones = {group: iter(forecast.upcoming) for group, forecast in forecasts.items()}
        return [
            replace(upcoming_node, node=self._zones.relabel(upcoming_node.node, zone))
            if (zone := next(zones.get(upcoming_node.group, iter(())), ""))
            else upcoming_node
            for upcoming_node in coming
        ]

    def _update_snapshot(
        self,
        nodes: dict[str, Node],
        pods: FilteredPods,
        extra_pods: dict[PodKey, Pod | BadObject],
        inputs: SnapshotInputs,
    ) -> Snapshot:
        """`extra_pods` are pods that the filter did not see: unreadable pods, pods of upcoming nodes, evicted pods."""
        news = pods.changed_keys.changed
        if news is None:
            self._builder, self._nodes, self._besides = SnapshotBuilder(), {}, {}
        changed: dict[PodKey, Pod | BadObject | None] = {}
        for place in (*(pods.counted if news is None else news), *self._besides, *extra_pods):
            key = PodKey(*place)
            changed[key] = extra_pods.get(key) or pods.counted.get(place)
        changes = SnapshotChanges(nodes=_find_changed(self._nodes, nodes), pods=changed)
        snapshot = self._builder.update(changes, inputs)
        self._nodes, self._besides = nodes, extra_pods
        pods.changed_keys.clear()
        return snapshot


def find_bad_fields(view: ClusterView) -> Iterator[IgnoredField]:
    """Fields of nodes that could not be decoded, and quantities that cannot be true: such a node counts as full."""
    for state in view.nodes.values():
        ref = Ref(kind="node", name=state.name)
        yield from list_unknown_fields(ref, state.node.metadata)
        for error in state.bad_quantities:
            consequence = "the node counts as full and is kept"
            yield IgnoredField(ref=ref, field=error.path, problem=error.problem, consequence=consequence)


def place_pods(snapshot: Snapshot, places: Mapping[str, Mapping[str, int]]) -> Snapshot:
    """The snapshot with pending pods on the nodes where a plan places them, and without pending pods."""
    return replace(place_pending(snapshot, places), pending=()) if places else snapshot


class UpcomingNodeCache:
    """Upcoming nodes with their daemon pods; they are reused while the template of their group is the same."""

    def __init__(self) -> None:
        self._made: dict[str, _Made] = {}

    def build(
        self, groups: Iterable[NodeGroup], health: ClusterHealth, policy: Policy, daemon_sets: tuple[DaemonSet, ...]
    ) -> list[UpcomingNode]:
        coming = health.upcoming
        sets = DaemonSets(daemon_sets)
        before, self._made = self._made, {}
        for group in groups:
            count = coming.get(group.id, 0)
            if not count:
                continue
            made_from = (group.template, group.daemons, group.daemons_are_known, policy.pods, daemon_sets)
            made = before.get(group.id)
            if made is None or len(made.nodes) < count or made.made_from != made_from:
                nodes = build_upcoming_nodes(group, count, rules=policy.pods, daemon_sets=sets)
                made = _Made(made_from=made_from, nodes=nodes)
            self._made[group.id] = _Made(made_from=made_from, nodes=made.nodes[:count])
        return [node for made in self._made.values() for node in made.nodes]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    made_from: tuple[object, ...]
    nodes: tuple[UpcomingNode, ...]


def _find_changed(before: Mapping[str, Node], now: Mapping[str, Node]) -> dict[str, Node | None]:
    """Compared by identity: caches return the same object while it is unchanged."""
    gone: dict[str, Node | None] = {name: None for name in before if name not in now}
    return gone | {name: node for name, node in now.items() if before.get(name) is not node}
