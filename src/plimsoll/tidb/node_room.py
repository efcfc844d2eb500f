"""How many nodes the node autoscaler may still add: from the status ConfigMap that it and Cluster Autoscaler keep.

With `--node-count=potential` pods may go pending and machines follow. What cannot be read adds nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.errors import ApiError
from plimsoll.objects.configuration import ConfigMap
from plimsoll.objects.manifests import read_documents

if TYPE_CHECKING:
    from plimsoll.kube.client import Client

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

STATUS_MAP: Final = "cluster-autoscaler-status"
_KEY: Final = "status"


async def node_room(client: Client, *, namespace: str) -> tuple[tuple[int, int], ...]:
    """Present sizes and greatest ones of node groups."""
    try:
        found = await client.get(ConfigMap, STATUS_MAP, namespace=namespace)
        documents = [document for _, document in read_documents(found.data.get(_KEY, "").encode(), source=STATUS_MAP)]
    except (ApiError, InvalidInput) as error:
        log.warning("node_room.unknown", problem=str(error))
        return ()
    groups = documents[0].get("nodeGroups") if documents and isinstance(documents[0], dict) else None
    return tuple(size for one in groups or () if (size := _size(one)) is not None)


def _size(group: Any) -> tuple[int, int] | None:
    health = group.get("health") if isinstance(group, dict) else None
    if not isinstance(health, dict):
        return None
    target, greatest = health.get("cloudProviderTarget", 0), health.get("maxSize")
    return (target, greatest) if isinstance(target, int) and isinstance(greatest, int) else None
