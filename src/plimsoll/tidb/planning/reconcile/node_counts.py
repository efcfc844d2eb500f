"""How many nodes a component's instances may stand on: at most one of a component on each.

`ready` counts what is there. `potential` adds what the node autoscaler may still make, so that instances may wait for
their machines. The controller asks before each question.
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
"""Said where nothing limits them: planners of old take a number that is not there for none at all."""


class NodeRoom(Value):
    """What a node autoscaler may still make, as far as it tells."""

    in_groups: int = 0
    """Nodes that its groups may still get; those that are ordered and have not come up are among them."""
    in_new_groups: int = 0
    """Nodes of groups that auto-provisioning may still make."""
    most: int | None = None
    """Of nodes in all, whoever made them; None: it tells of no limit."""
    broken: int = 0
    """Nodes that are there and not well: no instance stands on them, and the limit counts them."""


NO_ROOM: Final = NodeRoom()


def ready_nodes(nodes: Iterable[Node], *, selector: Mapping[str, str] | None = None) -> int:
    """Nodes that take new instances; with a component's node selector, those that it may stand on."""
    wanted = (selector or {}).items()
    return sum(_takes_instances(node) and node.metadata.labels.items() >= wanted for node in nodes)


def potential_nodes(nodes: Collection[Node], room: NodeRoom) -> int:
    """Ready nodes, and those that may still be added. Never fewer than are ready, whatever the limit is."""
    ready = ready_nodes(nodes)
    added = room.in_groups + room.in_new_groups
    if room.most is not None:
        there = sum(is_node_ready(node) for node in nodes) + room.broken
        added = min(added, max(0, room.most - there))
    return min(ready + added, MOST_NODES)


def _takes_instances(node: Node) -> bool:
    meta = node.metadata
    if meta.deletion_timestamp is not None or node.spec.unschedulable or _CONTROL_PLANE & meta.labels.keys():
        return False
    return is_node_ready(node)
