"""How many nodes the node autoscaler may still add: from the status ConfigMap that ours and Cluster Autoscaler keep.

With `--node-count=potential` pods may go pending and machines follow. The document has the sizes of node groups. Ours
says in an annotation beside it which options are in force: the limit on all nodes, and whether groups may be made.
Cluster Autoscaler does not tell its options, so of it only the sizes count. What cannot be read adds nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.errors import ApiError
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.codec.manifests import read_documents
from plimsoll.tidb.planning.reconcile.node_counts import MOST_NODES, NO_ROOM, NodeRoom

if TYPE_CHECKING:
    from plimsoll.kube.client import Client

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

Json = dict[str, Any]

STATUS_MAP: Final = "cluster-autoscaler-status"
OPTIONS: Final = "plimsoll.io/options"
"""On the ConfigMap: the options of our node autoscaler that are not as they are by default."""
_KEY: Final = "status"
MOST_GROUPS: Final = 50
MOST_OWN_GROUPS: Final = 15
PREFIX: Final = "nodeautoprovisioning"
"""Defaults of our node autoscaler, which it does not write down."""


async def node_room(client: Client, *, namespace: str) -> NodeRoom:
    try:
        found = await client.get(ConfigMap, STATUS_MAP, namespace=namespace)
        documents = [document for _, document in read_documents(found.data.get(_KEY, "").encode(), source=STATUS_MAP)]
    except (ApiError, InvalidInput) as error:
        log.warning("node_room.unknown", problem=str(error))
        return NO_ROOM
    document = documents[0] if documents and isinstance(documents[0], dict) else {}
    return room_of(document, _options(found.metadata.annotations.get(OPTIONS, "")))


def room_of(document: Json, options: Json) -> NodeRoom:
    """From a status and the options in force; of either anything may be missing."""
    listed = document.get("nodeGroups")
    groups = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    counts = _part(_part(_part(document, "clusterWide"), "health"), "nodeCounts")
    most = _number(options.get("max-nodes-total"))
    return NodeRoom(
        in_groups=sum(_left_in(_part(group, "health")) for group in groups),
        in_new_groups=_left_in_new_groups(groups, options),
        most=most or None,
        broken=_number(_part(_part(counts, "registered"), "unready").get("total")) or 0,
    )


def _left_in(health: Json) -> int:
    """Nodes on their way are counted until they are ready: else the count would fall whenever one is ordered."""
    most = _number(health.get("maxSize"))
    if most is None:
        return 0
    registered = _part(_part(health, "nodeCounts"), "registered")
    there = (registered.get("ready"), _part(registered, "unready").get("total"), registered.get("beingDeleted"))
    numbers = [_number(one) for one in there]
    if numbers[0] is None:
        target = _number(health.get("cloudProviderTarget", 0))
        return 0 if target is None else max(0, most - target)
    return max(0, most - sum(number or 0 for number in numbers))


def _left_in_new_groups(groups: list[Json], options: Json) -> int:
    if options.get("node-autoprovisioning") is not True:
        return 0
    prefix = options.get("autoprovisioning-prefix", PREFIX)
    names = [str(group.get("name", "")).rpartition("/")[2] for group in groups]
    own = sum(name.startswith((f"{prefix}_", f"{prefix}-")) for name in names)
    most = _number(options.get("max-node-groups", MOST_GROUPS)) or 0
    most_own = _number(options.get("max-autoprovisioned-node-group-count", MOST_OWN_GROUPS)) or 0
    left = min(most - len(groups), most_own - own)
    size = _number(options.get("autoprovisioned-group-max-size")) or MOST_NODES
    return max(0, left) * size


def _options(text: str) -> Json:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _part(whole: Json, key: str) -> Json:
    value = whole.get(key)
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
