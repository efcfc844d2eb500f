"""Upcoming nodes as ready nodes, so that pods are planned onto them instead of onto additional nodes. Pure.

There is one for each upcoming node of a group, including nodes that have not started, which the snapshot leaves out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.model.node_templates import UPCOMING_ANNOTATION, make_template
from plimsoll.nodes.planning.autoprovisioning.taints import TransientTaints
from plimsoll.nodes.planning.state.daemon_overhead import DaemonSets, compute_group_daemon_overhead
from plimsoll.objects.api.nodes import NodeCondition

if TYPE_CHECKING:
    from plimsoll.nodes.config.policy import PodRules
    from plimsoll.nodes.model.snapshot import NodeGroup
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

_READY: Final = (NodeCondition(type="Ready", status="True", reason="Upcoming"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpcomingNode:
    """A node that does not exist yet, with the daemon pods that it will run."""

    group: str
    node: Node
    pods: tuple[Pod, ...]


def build_upcoming_nodes(
    group: NodeGroup, count: int, *, rules: PodRules, daemon_sets: DaemonSets
) -> tuple[UpcomingNode, ...]:
    template = make_template(group, TransientTaints(rules))
    carried = compute_group_daemon_overhead(group, template, daemon_sets, force=rules.force_daemon_sets)
    return tuple(_build_upcoming_node(group.id, template, carried.pods, number) for number in range(count))


def _build_upcoming_node(group: str, template: Node, daemons: tuple[Pod, ...], number: int) -> UpcomingNode:
    meta = template.metadata
    name = f"{meta.name}-upcoming-{number}"
    node = structs.replace(
        template,
        metadata=structs.replace(
            meta,
            name=name,
            labels={**meta.labels, HOSTNAME: name},
            annotations={**meta.annotations, UPCOMING_ANNOTATION: "true"},
        ),
        status=structs.replace(template.status, conditions=_READY),
    )
    return UpcomingNode(group=group, node=node, pods=tuple(_place_on(pod, name, number) for pod in daemons))


def _place_on(pod: Pod, node: str, number: int) -> Pod:
    """The pod with a name and uid of its own, because pods are counted by name."""
    meta = structs.replace(
        pod.metadata, name=f"{pod.metadata.name}-upcoming-{number}", uid=f"{pod.metadata.uid}-{node}"
    )
    return structs.replace(pod, metadata=meta, spec=structs.replace(pod.spec, node_name=node))
