"""From what was read to what planners are asked about: a numbered snapshot of the cluster and its pending pods. Pure.

`Snapshots` keeps what it was shown last: objects that are still the same ones in the caches are not read again.
Nodes that registered but have not started are left out, and a fake ready node stands for each node on its way
(specs/nodes.md 6.1.8), so that pods are planned onto those and not onto more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plimsoll.nodes.cluster_state.upcoming import upcoming_nodes
from plimsoll.nodes.planning.daemon_overheads import DaemonSets
from plimsoll.nodes.planning.promises import settled
from plimsoll.nodes.planning.snapshots import Listed, SnapshotKeeper, Surroundings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.nodes.cluster_state.standing import Standing
    from plimsoll.nodes.observing.clouds import CloudRead
    from plimsoll.nodes.observing.clusters import ClusterRead
    from plimsoll.nodes.observing.waiting_pods import Sorted
    from plimsoll.nodes.planning.world import Group, Snapshot
    from plimsoll.nodes.policy import Policy
    from plimsoll.objects.nodes import Node
    from plimsoll.objects.pods import Pod


class Snapshots:
    """One a controller: each snapshot is made of the one before, so that a turn costs by what changed."""

    def __init__(self) -> None:
        self._keeper = SnapshotKeeper()

    def next(
        self, cluster: ClusterRead, cloud: CloudRead, pods: Sorted, *, standing: Standing, policy: Policy, number: int
    ) -> Snapshot:
        groups = cloud.planned_groups(standing, policy)
        coming, coming_pods, coming_groups = _coming(groups, standing, policy, cluster)
        not_started = standing.not_started
        nodes = [one for one in cluster.nodes if one.metadata.name not in not_started]
        listed = Listed(
            nodes=(*nodes, *coming), pods=(*pods.placed, *coming_pods, *pods.pending), bad_pods=cluster.bad_pods
        )
        around = Surroundings(
            at=standing.at,
            namespaces=cluster.namespaces,
            storage=cluster.storage,
            groups=groups,
            machine_types=cloud.machine_types,
            daemon_sets=cluster.daemon_sets,
            budgets=cluster.budgets,
            group_of={**cloud.group_of, **coming_groups},
            creation_backoffs=standing.why_not_created(),
        )
        return replace(self._keeper.observe(listed, around), number=number)


def with_places(snapshot: Snapshot, places: Mapping[str, Mapping[str, int]]) -> Snapshot:
    """The same cluster once pending pods are where a plan found room for them; nobody else is waited for."""
    return replace(settled(snapshot, places), pending=()) if places else snapshot


def _coming(
    groups: Iterable[Group], standing: Standing, policy: Policy, cluster: ClusterRead
) -> tuple[list[Node], list[Pod], dict[str, str]]:
    """Nodes on their way, the daemon pods they will bring, and whose they are."""
    nodes: list[Node] = []
    pods: list[Pod] = []
    group_of: dict[str, str] = {}
    daemon_sets = DaemonSets(cluster.daemon_sets)
    for group in groups:
        count = standing.upcoming.get(group.id, 0)
        for one in upcoming_nodes(group, count, rules=policy.pods, daemon_sets=daemon_sets) if count else ():
            nodes.append(one.node)
            pods += one.pods
            group_of[one.node.metadata.name] = group.id
    return nodes, pods, group_of


def pods_by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.spec.node_name:
            found.setdefault(pod.spec.node_name, []).append(pod)
    return found
