"""Nodes that are on their way, written as ready nodes, so that pods are planned onto them and not onto more. Pure.

One for each upcoming node of a group, not started ones included: those are left out of the snapshot themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.model.node_templates import UPCOMING_ANNOTATION, make_template
from plimsoll.nodes.planning.autoprovisioning.taints import TransientTaints
from plimsoll.nodes.planning.state.daemon_overhead import DaemonSets, group_daemon_overhead
from plimsoll.objects.api.nodes import NodeCondition

if TYPE_CHECKING:
    from plimsoll.nodes.config.policy import PodRules
    from plimsoll.nodes.model.snapshot import NodeGroup
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

_READY: Final = (NodeCondition(type="Ready", status="True", reason="Upcoming"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpcomingNode:
    """A node that is not there yet, with the daemon pods it will bring."""

    group: str
    node: Node
    pods: tuple[Pod, ...]


def upcoming_nodes(
    group: NodeGroup, count: int, *, rules: PodRules, daemon_sets: DaemonSets
) -> tuple[UpcomingNode, ...]:
    template = make_template(group, TransientTaints(rules))
    carried = group_daemon_overhead(group, template, daemon_sets, force=rules.force_daemon_sets)
    return tuple(_upcoming(group.id, template, carried.pods, number) for number in range(count))


def _upcoming(group: str, template: Node, daemons: tuple[Pod, ...], number: int) -> UpcomingNode:
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
    return UpcomingNode(group=group, node=node, pods=tuple(_on(pod, name, number) for pod in daemons))


def _on(pod: Pod, node: str, number: int) -> Pod:
    """Names and uids of their own: two pods of one name would be one pod to whoever counts them."""
    meta = structs.replace(
        pod.metadata, name=f"{pod.metadata.name}-upcoming-{number}", uid=f"{pod.metadata.uid}-{node}"
    )
    return structs.replace(pod, metadata=meta, spec=structs.replace(pod.spec, node_name=node))
