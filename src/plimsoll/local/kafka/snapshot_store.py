"""Snapshots of simulated clusters in ConfigMaps: the brokers of `plimsoll up` are the same after a restart."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.controlled_objects.pod_control import build_controller_reference, is_namespace_terminating
from plimsoll.kube.errors import Forbidden, NotFound
from plimsoll.local.kafka.broker_pods import CLUSTER_LABEL
from plimsoll.local.kafka.snapshots import compute_signature, decode_snapshot, encode_snapshot
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.kafka import Kafka

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.events import Key
    from plimsoll.local.kafka.snapshots import Snapshot

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_STATE: Final = "state"
LARGEST_BYTES: Final = 700_000
"""The most bytes of the value in the ConfigMap, which holds at most one MiB. A larger cluster is not stored."""


def build_config_map_name(cluster: str) -> str:
    return f"{cluster}-simulated-kafka"


class SnapshotStore:
    """Reads and writes the ConfigMap of each cluster. What is unchanged is not written again."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._written: dict[Key, Any] = {}

    async def read(self, key: Key) -> Snapshot | None:
        """None: there is none, or it cannot be used."""
        try:
            kept = await self._client.get(ConfigMap, build_config_map_name(key.name), namespace=key.namespace)
            snapshot = decode_snapshot(b64decode(kept.data.get(_STATE, "")))
        except NotFound:
            return None
        except (InvalidInput, ValueError) as error:
            log.warning("simulated_kafka.unreadable", kafka=str(key), error=str(error))
            return None
        self._written[key] = compute_signature(snapshot)
        return snapshot

    async def write(self, key: Key, kafka: Kafka, snapshot: Snapshot) -> None:
        signature = compute_signature(snapshot)
        if self._written.get(key) == signature:
            return
        value = b64encode(encode_snapshot(snapshot)).decode()
        if len(value) > LARGEST_BYTES:
            log.warning("simulated_kafka.too_large", kafka=str(key), size_bytes=len(value))
            self._written[key] = signature
            return
        name = build_config_map_name(key.name)
        owner = build_controller_reference(self._client.calls.get_resource(Kafka), kafka.metadata)
        # It goes with its Kafka, but does not hold up the deletion.
        metadata = {
            "name": name,
            "labels": {CLUSTER_LABEL: key.name},
            "ownerReferences": [{**owner, "controller": False, "blockOwnerDeletion": False}],
        }
        body = {"metadata": metadata, "data": {_STATE: value}}
        try:
            await self._client.merge_patch(ConfigMap, name, body, namespace=key.namespace)
        except NotFound:
            try:
                await self._client.create(ConfigMap, body, namespace=key.namespace)
            except Forbidden as error:
                if not is_namespace_terminating(error):
                    raise
        self._written[key] = signature
