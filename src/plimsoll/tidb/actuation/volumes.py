"""Marks the disk of a removed store, so that TiDB Operator may reclaim it.

The disk is marked after the store became a Tombstone and before its pod is deleted, so that a crash in between forgets
no disk. Nothing is deleted here, and a disk that cannot be marked stops nothing. Where TiDB Operator removes stores, it
marks the disks itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.kube.errors import ApiError
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.api.storage import PersistentVolumeClaim

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.kube.client import Client
    from plimsoll.tidb.planning.drain.types import StoreDrain

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

DEFERRED: Final = "tidb.pingcap.com/pvc-defer-deleting"


async def defer_deletion(client: Client, left: StoreDrain, *, now: datetime) -> bool:
    """Mark the disk of the pod that is deleted when `replicas` is lowered by one.

    False: there is none, or access is denied.
    """
    gone = left.list_ordinals(left.replicas) - left.staying
    if not gone:
        return False
    name = f"tikv-{left.cluster}-tikv-{max(gone)}"
    try:
        claim = await client.get(PersistentVolumeClaim, name, namespace=left.namespace)
        if DEFERRED not in claim.metadata.annotations:
            patch = {"metadata": {"annotations": {DEFERRED: format_time(now)}}}
            await client.merge_patch(PersistentVolumeClaim, name, patch, namespace=left.namespace)
    except ApiError as error:
        _log.debug("disk.not_marked", namespace=left.namespace, claim=name, problem=str(error))
        return False
    return True
