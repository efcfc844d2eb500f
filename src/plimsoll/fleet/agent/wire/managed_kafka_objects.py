"""ManagedKafkas as manifests, and as the instances that decisions see. Pure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.value_parsing import read_whole_number
from plimsoll.fleet.agent.model.instances import LocalInstance
from plimsoll.fleet.agent.wire.names import (
    AGENT,
    DEPLOYMENT,
    HASH_ANNOTATION,
    ID,
    MANAGED_BY,
    NAMESPACE_LABEL,
    PLACEMENT_ID,
    PROFILE_TYPE,
    RESERVED,
    UNITS_LABEL,
)
from plimsoll.objects.api.managed_kafkas import MANAGED_KAFKA_GROUP, MANAGED_KAFKA_VERSION

if TYPE_CHECKING:
    from plimsoll.fleet.agent.model.instances import ListedKafka
    from plimsoll.objects.api.managed_kafkas import ManagedKafka
    from plimsoll.objects.api.meta import Condition

READY: Final = "Ready"
REJECTED: Final = "Rejected"
CREDENTIALS: Final = "credentials"
_HASH_CHARACTERS: Final = 16


def build_namespace(item: ListedKafka) -> dict[str, Any]:
    labels = {NAMESPACE_LABEL: item.id, MANAGED_BY: AGENT}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": item.namespace, "labels": labels}}


def build_credentials(item: ListedKafka) -> dict[str, Any]:
    """The Secret of an instance."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": build_credentials_name(item),
            "namespace": item.namespace,
            "labels": {MANAGED_BY: AGENT, NAMESPACE_LABEL: item.id},
        },
        "stringData": item.credentials,
    }


def build_credentials_name(item: ListedKafka) -> str:
    return f"{item.name}-{CREDENTIALS}"


def build_managed_kafka(item: ListedKafka) -> dict[str, Any]:
    spec = {**item.spec, "deleted": item.deleted}
    if item.credentials:
        encoded = msgspec.json.encode(item.credentials, order="deterministic")
        digest = hashlib.sha256(encoded).hexdigest()[:_HASH_CHARACTERS]
        spec[CREDENTIALS] = {"secretName": build_credentials_name(item), "hash": digest}
    return {
        "apiVersion": f"{MANAGED_KAFKA_GROUP}/{MANAGED_KAFKA_VERSION}",
        "kind": "ManagedKafka",
        "metadata": {
            "name": item.name,
            "namespace": item.namespace,
            "labels": {**item.labels, MANAGED_BY: AGENT, UNITS_LABEL: str(item.units)},
            "annotations": {**item.annotations, HASH_ANNOTATION: item.hash},
        },
        "spec": spec,
    }


def read_local_instance(found: ManagedKafka, *, is_terminating: bool) -> LocalInstance:
    metadata = found.metadata
    return LocalInstance(
        namespace=metadata.namespace,
        name=metadata.name,
        id=metadata.annotations.get(ID, ""),
        placement_id=metadata.annotations.get(PLACEMENT_ID, ""),
        hash=metadata.annotations.get(HASH_ANNOTATION, ""),
        deleted=found.spec.deleted,
        is_reserved=is_reserved(found),
        is_rejected=is_rejected(found),
        is_terminating=is_terminating or metadata.deletion_timestamp is not None,
    )


def is_reserved(found: ManagedKafka) -> bool:
    return found.metadata.labels.get(DEPLOYMENT) == RESERVED


def is_rejected(found: ManagedKafka) -> bool:
    """Whether its placement was refused. That is final."""
    ready = find_condition(found, READY)
    return ready is not None and ready.reason == REJECTED


def find_condition(found: ManagedKafka, name: str) -> Condition | None:
    return next((condition for condition in found.status.conditions if condition.type == name), None)


def read_units(found: ManagedKafka) -> int:
    """The units that the control plane specifies; 0: the label is gone or wrong."""
    return read_whole_number(found.metadata.labels.get(UNITS_LABEL, ""), least=1, most=1000) or 0


def read_instance_type(found: ManagedKafka) -> str:
    return found.metadata.labels.get(PROFILE_TYPE, "")
