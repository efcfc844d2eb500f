"""Nodes without pods or bookings: what can be taken back when a ProvisioningRequest fails or is deleted. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from plimsoll.nodes.model.node_templates import is_upcoming
from plimsoll.nodes.model.pod_traits import is_daemon_pod, is_mirror_pod

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.scheduling.cluster_view import NodeState


def is_upcoming_node(node: str, snapshot: Snapshot) -> bool:
    """Whether the node has not registered yet.

    Upcoming nodes are in a group. A Node that carries their annotation and is in none was annotated by a user.
    """
    state = snapshot.view.find_node(node) if node in snapshot.group_of else None
    return state is not None and is_upcoming(state.node)


def count_idle_nodes(snapshot: Snapshot, taken: Collection[str]) -> dict[str, int]:
    """By group: existing and upcoming nodes without pods, except `taken` ones."""
    names = ((name, group, snapshot.view.find_node(name)) for name, group in snapshot.group_of.items())
    used = {*taken, *snapshot.nominations}
    return Counter(group for name, group, state in names if state is not None and name not in used and _is_empty(state))


def count_idle_upcoming_nodes(snapshot: Snapshot, taken: Collection[str]) -> dict[str, int]:
    """By group: upcoming nodes except `taken` ones."""
    used = {*taken, *snapshot.nominations}
    return Counter(
        group for name, group in snapshot.group_of.items() if name not in used and is_upcoming_node(name, snapshot)
    )


def _is_empty(state: NodeState) -> bool:
    return not state.unreadable_pods and all(
        is_daemon_pod(placed_pod.pod) or is_mirror_pod(placed_pod.pod) for placed_pod in state.pods.values()
    )
