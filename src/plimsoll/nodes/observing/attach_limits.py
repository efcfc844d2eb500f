"""Volume attach limits of groups without nodes: the limits in a provider's template become a CSINode. Pure.

Real nodes have CSINodes. For a group without nodes, an annotation of its template may state the limits
(`providers.values.ATTACH_LIMITS`). Planners read only CSINodes and find the one of a template by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.value_parsing import read_whole_number
from plimsoll.nodes.providers.values import ATTACH_LIMITS
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.storage import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources
from plimsoll.scheduling import Storage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plimsoll.nodes.model.snapshot import NodeGroup
    from plimsoll.objects.api.nodes import Node


def add_template_limits(storage: Storage, groups: Iterable[NodeGroup]) -> Storage:
    """The storage with the limits of templates added; unchanged if no template has any."""
    from_templates = [
        _build_csi_node(group.template) for group in groups if ATTACH_LIMITS in group.template.metadata.annotations
    ]
    missing = [csi_node for csi_node in from_templates if csi_node.metadata.name not in storage.csi_nodes]
    if not missing:
        return storage
    return Storage(
        volumes=storage.volumes.values(),
        claims=storage.claims.values(),
        classes=storage.classes.values(),
        csi_nodes=(*storage.csi_nodes.values(), *missing),
    )


def _build_csi_node(template: Node) -> CSINode:
    drivers = tuple(_parse_drivers(template.metadata.annotations[ATTACH_LIMITS]))
    return CSINode(metadata=ObjectMeta(name=template.metadata.name), spec=CSINodeSpec(drivers=drivers))


def _parse_drivers(written: str) -> Iterator[CSINodeDriver]:
    """Parse `driver=limit,…`. A driver without a limit, or with one that is not a number, is unlimited."""
    for pair in written.split(","):
        name, _, limit = (part.strip() for part in pair.partition("="))
        if name:
            count = read_whole_number(limit)
            allocatable = None if count is None else VolumeNodeResources(count=count)
            yield CSINodeDriver(name=name, node_id=name, allocatable=allocatable)
