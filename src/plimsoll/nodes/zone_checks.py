"""Node groups over several zones: doctor's check `zones.nodes`, and what happens to pods with zone rules there.

The zones of a group are those of its nodes, by the labels that clouds put on them, and those of NodeGroups of the
simulated cloud.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.kube.diagnosis.findings import Finding, Level
from plimsoll.kube.errors import NotFound
from plimsoll.nodes.model.node_labels import NODE_GROUP_KEYS, ZONE
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.simulated_cloud import CLOUD_RESOURCES, NodeGroup

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.requirements import RivalContext
    from plimsoll.objects.codec.decoding import DecodedList

GROUP_ZONES: Final = "zones.nodes"
_NODE_GROUPS: Final = next(resource for resource in CLOUD_RESOURCES if resource.struct is NodeGroup)
_NAMED: Final = 5
_FIX: Final = (
    "the provider decides in which zone the next machine of such a group comes. Pods that are spread over zones get "
    "machines one after another, in that order; pods bound to one zone (node selector, affinity, a volume of that "
    "zone) wait until a machine happens to come there. For pods with zone rules make one group per zone"
)


async def check_group_zones(client: Client, context: RivalContext) -> Finding:
    """Which node groups have machines in several zones."""
    del context
    zones_by_group = await _read_zones_of_nodes(client)
    for group, zones in (await _read_zones_of_simulated_groups(client)).items():
        zones_by_group.setdefault(group, set()).update(zones)
    several = {group: sorted(zones) for group, zones in sorted(zones_by_group.items()) if len(zones) > 1}
    if not several:
        return Finding(check=GROUP_ZONES, level=Level.OK, message="no node group is seen in several zones")
    shown = [f"{group} in {', '.join(zones)}" for group, zones in several.items()]
    more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    groups = "a node group lies" if len(shown) == 1 else f"{len(shown)} node groups lie"
    return Finding(
        check=GROUP_ZONES,
        level=Level.WARN,
        message=f"{groups} in several zones: {'; '.join(shown[:_NAMED])}{more}",
        fix=_FIX,
        details={"zones": several},
    )


async def _read_zones_of_nodes(client: Client) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    async for page in client.iterate_pages(Node):
        for node in page.items:
            labels = node.metadata.labels
            names = {labels[key] for key in NODE_GROUP_KEYS if labels.get(key)}
            if len(names) == 1 and labels.get(ZONE):
                found.setdefault(names.pop(), set()).add(labels[ZONE])
    return found


async def _read_zones_of_simulated_groups(client: Client) -> dict[str, set[str]]:
    try:
        listed: DecodedList[NodeGroup] = await client.list(_NODE_GROUPS)
    except NotFound:
        return {}
    return {group.metadata.name: set(group.spec.zones) for group in listed.items}
