"""The number of nodes available to a component, at most one instance per node.

`ready` counts existing nodes. `potential` adds nodes that the node autoscaler may still create, so that instances may
wait for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.objects.api.nodes import is_node_ready

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from plimsoll.objects.api.nodes import Node

_CONTROL_PLANE: Final = frozenset({"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"})
MOST_NODES: Final = (1 << 31) - 1
"""Used where there is no limit, because older planners read a missing number as zero."""


class NodeCapacity(Value):
    """The nodes that a node autoscaler may still create, as far as its status says."""

    in_groups: int = 0
    """Nodes that its groups may still get, including those that are ordered and not ready yet."""
    in_new_groups: int = 0
    """Nodes of groups that auto-provisioning may still create."""
    limit: int | None = None
    """The limit on all nodes, however they were created; None: no limit is known."""
    broken: int = 0
    """Existing unready nodes: they take no instances but count towards the limit."""


NO_CAPACITY: Final = NodeCapacity()


def count_ready_nodes(nodes: Iterable[Node], *, selector: Mapping[str, str] | None = None) -> int:
    """Nodes that take new instances; with a node selector, those that match it."""
    wanted = (selector or {}).items()
    return sum(_takes_instances(node) and node.metadata.labels.items() >= wanted for node in nodes)


def count_potential_nodes(nodes: Collection[Node], room: NodeCapacity) -> int:
    """Ready nodes and those that may still be added. Never fewer than are ready, whatever the limit is."""
    ready = count_ready_nodes(nodes)
    added = room.in_groups + room.in_new_groups
    if room.limit is not None:
        there = sum(is_node_ready(node) for node in nodes) + room.broken
        added = min(added, max(0, room.limit - there))
    return min(ready + added, MOST_NODES)


def _takes_instances(node: Node) -> bool:
    meta = node.metadata
    if meta.deletion_timestamp is not None or node.spec.unschedulable or _CONTROL_PLANE & meta.labels.keys():
        return False
    return is_node_ready(node)
