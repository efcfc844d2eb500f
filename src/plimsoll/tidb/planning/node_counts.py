"""How many nodes a component's instances may stand on: at most one of a component on each.

`ready` counts what is there. `potential` adds what the node autoscaler may still make, so that instances may wait for
their machines. The controller asks before each question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.objects.nodes import Node

_CONTROL_PLANE: Final = frozenset({"node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane"})


def ready_nodes(nodes: Iterable[Node], *, selector: Mapping[str, str] | None = None) -> int:
    """Nodes that take new instances; with a component's node selector, those that it may stand on."""
    wanted = (selector or {}).items()
    return sum(_is_ready(node) and node.metadata.labels.items() >= wanted for node in nodes)


def potential_nodes(ready: int, *, groups: Iterable[tuple[int, int]] = (), total_limit: int | None = None) -> int:
    """Ready nodes, and those that may still be added: `groups` are present sizes and greatest ones of node groups.

    `total_limit` is the greatest number of nodes in all. Never fewer than are there.
    """
    room = sum(max(0, greatest - present) for present, greatest in groups)
    most = ready + room if total_limit is None else min(ready + room, total_limit)
    return max(ready, most)


def _is_ready(node: Node) -> bool:
    meta = node.metadata
    if meta.deletion_timestamp is not None or node.spec.unschedulable or _CONTROL_PLANE & meta.labels.keys():
        return False
    return any(one.type == "Ready" and one.status == "True" for one in node.status.conditions)
