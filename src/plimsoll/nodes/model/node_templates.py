"""The next node of a group as an object: from the template of the group, or from a machine type. Pure.

Planned nodes are copies with names and hostnames of their own. They carry the label by which users of Cluster
Autoscaler distinguish such nodes from real ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.nodes.model.node_labels import ARCH, HOSTNAME, INSTANCE_TYPE, OS, REGION, ZONE
from plimsoll.nodes.model.taints import CONDITIONS
from plimsoll.objects.api.deprecated_labels import OLD_SYSTEM_LABELS, add_old_labels
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.nodes import Node, NodeSpec, NodeStatus
from plimsoll.objects.api.simulated_cloud import CAPACITY_TYPE_LABEL
from plimsoll.scheduling.storage import ATTACHES_LIKE

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from plimsoll.nodes.model.scale_up_plan import GroupProfile, ScaleUpOption
    from plimsoll.nodes.model.snapshot import MachineType, NodeGroup

TEMPLATE_LABEL: Final = "cluster-autoscaler.kubernetes.io/template-node"
AUTOPROVISIONED_LABEL: Final = "autoscaling.x-k8s.io/autoprovisioned"
PROFILE_LABEL: Final = "autoscaling.x-k8s.io/profile"


def make_template(group: NodeGroup, passing: Container[str], *, attaches_like: str = "") -> Node:
    """Without what was only passing on the node it was made from: its name, and taints of its state and its life.

    `attaches_like` is the node whose attach limits hold for it: unless given, the one it was made from.
    """
    template = group.template
    like = attaches_like or template.metadata.name
    annotations = {**template.metadata.annotations, ATTACHES_LIKE: like} if like else template.metadata.annotations
    name = _format_name(group.id)
    own = template.metadata.labels
    known = {ZONE: group.zone, INSTANCE_TYPE: group.machine_type}
    labels = {
        **add_old_labels({key: value for key, value in known.items() if value and key not in own}),
        **add_old_labels(own, OLD_SYSTEM_LABELS),
        HOSTNAME: name,
        TEMPLATE_LABEL: "true",
    }
    taints = tuple(taint for taint in template.spec.taints if taint.key not in passing and taint.key not in CONDITIONS)
    return structs.replace(
        template,
        metadata=structs.replace(template.metadata, name=name, labels=labels, annotations=annotations, uid=""),
        spec=structs.replace(template.spec, taints=taints, unschedulable=False, provider_id=""),
    )


def map_zones_to_regions(nodes: Iterable[Node]) -> dict[str, str]:
    """The region of each zone by the labels of these nodes; a zone with contradicting labels has none."""
    regions_by_zone: dict[str, set[str]] = {}
    for node in nodes:
        labels = node.metadata.labels
        if ZONE in labels and REGION in labels:
            regions_by_zone.setdefault(labels[ZONE], set()).add(labels[REGION])
    return {zone: next(iter(regions)) for zone, regions in regions_by_zone.items() if len(regions) == 1}


class MachineTemplate:
    """A machine type, written as node objects for any group, zone and profile; `regions` are those of zones."""

    __slots__ = ("_regions", "_status", "kind")

    def __init__(self, kind: MachineType, regions: Mapping[str, str] | None = None) -> None:
        self.kind = kind
        self._regions = regions or {}
        self._status = NodeStatus(capacity={**kind.capacity.to_json()}, allocatable={**kind.allocatable.to_json()})

    def build_system_labels(self, zone: str) -> dict[str, str]:
        """What such a machine says of itself; its catalogue's words go before ours."""
        return add_old_labels(
            {
                OS: "linux",
                ARCH: self.kind.architecture,
                INSTANCE_TYPE: self.kind.name,
                CAPACITY_TYPE_LABEL: str(self.kind.capacity_type),
                **({ZONE: zone} if zone else {}),
                **({REGION: self._regions[zone]} if zone in self._regions else {}),
                **self.kind.labels,
            }
        )

    def build_node(self, group: str, zone: str, profile: GroupProfile) -> Node:
        name = _format_name(group)
        labels = {
            **profile.labels,
            **self.build_system_labels(zone),
            AUTOPROVISIONED_LABEL: "true",
            PROFILE_LABEL: profile.hash,
            HOSTNAME: name,
            TEMPLATE_LABEL: "true",
        }
        return Node(
            metadata=ObjectMeta(name=name, labels=labels),
            spec=NodeSpec(taints=(*self.kind.taints, *profile.taints)),
            status=self._status,
        )


def _format_name(group: str) -> str:
    return f"template-node-for-{group}"


def build_planned_node(option: ScaleUpOption, number: int) -> Node:
    """The template as a node of its own: no two planned nodes share a name or a host."""
    name = f"{option.group}-planned-{number}"
    labels = {**option.node.metadata.labels, HOSTNAME: name, TEMPLATE_LABEL: "true"}
    return structs.replace(option.node, metadata=structs.replace(option.node.metadata, name=name, labels=labels))


if TYPE_CHECKING:
    from plimsoll.nodes.model.snapshot import NodeGroup


UPCOMING_ANNOTATION: Final = "cluster-autoscaler.k8s.io/upcoming-node"
"""Marks an upcoming node, by Cluster Autoscaler's name."""


def is_upcoming(node: Node) -> bool:
    return node.metadata.annotations.get(UPCOMING_ANNOTATION) == "true"
