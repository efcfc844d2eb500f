"""Writes the ConfigMap of a KafkaRebalance. It has the name of the rebalance, which owns it.

A ConfigMap of that name which the rebalance does not own belongs to a user: it is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.plans import Reason
from plimsoll.kube.errors import BadRequest, Forbidden, Invalid, NotFound, TooLarge
from plimsoll.kube.requests.retry import retry_on_conflict
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.kafka import KAFKA_GROUP, STRIMZI_VERSION, KafkaRebalance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import ObjectMeta, OwnerReference

ATTEMPTS: Final = 5
NAME_CONFLICT: Final = "ConfigMapNameConflict"
NOT_WRITTEN: Final = "ConfigMapNotWritten"
_API_VERSION: Final = f"{KAFKA_GROUP}/{STRIMZI_VERSION}"


async def write_load_config_map(
    client: Client, owner: ObjectMeta, data: Mapping[str, str | None], *, labels: Mapping[str, str]
) -> Reason | None:
    """Set these keys (None removes a key). Gives the reason if the API server or a user's ConfigMap is in the way.

    Trouble that may end by itself is raised.
    """

    async def attempt() -> Reason | None:
        try:
            found = await client.get(ConfigMap, owner.name, namespace=owner.namespace)
        except NotFound:
            return await _create(client, owner, data, labels)
        return await _patch(client, owner, found, data)

    try:
        return await retry_on_conflict(attempt, attempts=ATTEMPTS)
    except (BadRequest, Forbidden, Invalid, TooLarge) as error:
        return Reason(code=NOT_WRITTEN, message=f"ConfigMap {owner.name} cannot be written: {error}")


async def _create(
    client: Client, owner: ObjectMeta, data: Mapping[str, str | None], labels: Mapping[str, str]
) -> Reason | None:
    present = {key: value for key, value in data.items() if value is not None}
    if not present:
        return None
    metadata = {
        "name": owner.name,
        "namespace": owner.namespace,
        "labels": dict(labels),
        "ownerReferences": [_build_owner(owner)],
    }
    await client.create(ConfigMap, {"metadata": metadata, "data": present}, namespace=owner.namespace)
    return None


async def _patch(client: Client, owner: ObjectMeta, found: ConfigMap, data: Mapping[str, str | None]) -> Reason | None:
    ours = [reference for reference in found.metadata.owner_references if _is_rebalance(reference, owner)]
    if not ours:
        return Reason(
            code=NAME_CONFLICT,
            message=f"ConfigMap {owner.name} is not one of this rebalance: loads and progress are not written",
            facts={"configMap": owner.name},
        )
    changed = {key: value for key, value in data.items() if found.data.get(key) != value}
    metadata: dict[str, Any] = {"resourceVersion": found.metadata.resource_version}
    is_owned = any(reference.uid == owner.uid for reference in ours)
    if not is_owned:
        # The rebalance was deleted and created again, and the old ConfigMap is not collected yet.
        metadata["ownerReferences"] = [_build_owner(owner)]
    if changed or not is_owned:
        patch = {"metadata": metadata, "data": changed}
        await client.merge_patch(ConfigMap, owner.name, patch, namespace=owner.namespace)
    return None


def _is_rebalance(reference: OwnerReference, owner: ObjectMeta) -> bool:
    return reference.kind == KafkaRebalance.get_kind_name() and reference.name == owner.name


def _build_owner(owner: ObjectMeta) -> dict[str, Any]:
    return {
        "apiVersion": _API_VERSION,
        "kind": KafkaRebalance.get_kind_name(),
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
    }
