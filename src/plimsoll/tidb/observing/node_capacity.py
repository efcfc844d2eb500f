"""Nodes that the node autoscaler may still add, from the status ConfigMap of Plimsoll or Cluster Autoscaler.

With `--node-count=potential`, pods may go pending and nodes follow. The status has the sizes of node groups. Plimsoll
adds an annotation with the options in force: the limit on all nodes, and whether groups may be created. Cluster
Autoscaler does not publish its options, so only its sizes count. What cannot be read adds nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.errors import ApiError
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.codec.manifests import read_documents
from plimsoll.tidb.planning.reconcile.node_counts import MOST_NODES, NO_CAPACITY, NodeCapacity

if TYPE_CHECKING:
    from plimsoll.kube.client import Client

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

Json = dict[str, Any]

STATUS_MAP: Final = "cluster-autoscaler-status"
OPTIONS: Final = "plimsoll.io/options"
"""An annotation of the ConfigMap: the options of our node autoscaler that differ from their defaults."""
_KEY: Final = "status"
MOST_GROUPS: Final = 50
MOST_OWN_GROUPS: Final = 15
PREFIX: Final = "nodeautoprovisioning"
"""Defaults of our node autoscaler, which it does not write down."""


async def read_node_capacity(client: Client, *, namespace: str) -> NodeCapacity:
    try:
        found = await client.get(ConfigMap, STATUS_MAP, namespace=namespace)
        documents = [document for _, document in read_documents(found.data.get(_KEY, "").encode(), source=STATUS_MAP)]
    except (ApiError, InvalidInput) as error:
        log.warning("node_room.unknown", problem=str(error))
        return NO_CAPACITY
    document = documents[0] if documents and isinstance(documents[0], dict) else {}
    return parse_node_capacity(document, _parse_options(found.metadata.annotations.get(OPTIONS, "")))


def parse_node_capacity(document: Json, options: Json) -> NodeCapacity:
    """From a status and the options in force; both may be incomplete."""
    listed = document.get("nodeGroups")
    groups = [value for value in listed if isinstance(value, dict)] if isinstance(listed, list) else []
    counts = _get_part(_get_part(_get_part(document, "clusterWide"), "health"), "nodeCounts")
    limit = _get_number(options.get("max-nodes-total"))
    return NodeCapacity(
        in_groups=sum(_count_left_in(_get_part(group, "health")) for group in groups),
        in_new_groups=_count_left_in_new_groups(groups, options),
        limit=limit or None,
        broken=_get_number(_get_part(_get_part(counts, "registered"), "unready").get("total")) or 0,
    )


def _count_left_in(health: Json) -> int:
    """Nodes that a group may still get.

    Ordered nodes count until they are ready, so that ordering one does not lower the count.
    """
    limit = _get_number(health.get("maxSize"))
    if limit is None:
        return 0
    registered = _get_part(_get_part(health, "nodeCounts"), "registered")
    counted = (registered.get("ready"), _get_part(registered, "unready").get("total"), registered.get("beingDeleted"))
    numbers = [_get_number(value) for value in counted]
    if numbers[0] is None:
        target = _get_number(health.get("cloudProviderTarget", 0))
        return 0 if target is None else max(0, limit - target)
    return max(0, limit - sum(number or 0 for number in numbers))


def _count_left_in_new_groups(groups: list[Json], options: Json) -> int:
    if options.get("node-autoprovisioning") is not True:
        return 0
    prefix = options.get("autoprovisioning-prefix", PREFIX)
    names = [str(group.get("name", "")).rpartition("/")[2] for group in groups]
    own = sum(name.startswith((f"{prefix}_", f"{prefix}-")) for name in names)
    limit = _get_number(options.get("max-node-groups", MOST_GROUPS)) or 0
    own_limit = _get_number(options.get("max-autoprovisioned-node-group-count", MOST_OWN_GROUPS)) or 0
    left = min(limit - len(groups), own_limit - own)
    size = _get_number(options.get("autoprovisioned-group-max-size")) or MOST_NODES
    return max(0, left) * size


def _parse_options(text: str) -> Json:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _get_part(whole: Json, key: str) -> Json:
    value = whole.get(key)
    return value if isinstance(value, dict) else {}


def _get_number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
