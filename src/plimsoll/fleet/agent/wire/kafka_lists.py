"""The list of the control plane, read item by item: one that cannot be used does not spoil the others.

What is not an object with `items` is no list at all (`UnreadableList`). Fields that are not known are ignored.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from plimsoll.core.errors import InvalidInput
from plimsoll.core.quantity import Quantity
from plimsoll.core.value_parsing import read_whole_number
from plimsoll.core.values import Wire
from plimsoll.fleet.agent.model.instances import INSTANCE_TYPES, KafkaList, ListedKafka, UnreadableItem
from plimsoll.fleet.agent.wire.names import (
    DEPLOYMENT,
    ID,
    PAUSED,
    PLACEMENT_ID,
    PROFILE_TYPE,
    QUOTA_CONSUMED,
    RESERVED,
    STREAMING_UNITS,
)
from plimsoll.objects.api.managed_kafkas import ManagedKafkaVersions

_MOST_UNITS: Final = 1000
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_LABEL: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", re.ASCII)
_KEY: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]{0,250}[A-Za-z0-9])?", re.ASCII)
_LONGEST_TEXT: Final = 4096
_HASH_CHARACTERS: Final = 16


class UnreadableList(Exception):
    """An answer that is no list. It says nothing about any instance."""


class _Metadata(Wire):
    name: str | None = None
    namespace: str | None = None
    annotations: dict[str, Any] | None = None
    labels: dict[str, Any] | None = None


class _Tls(Wire):
    cert: str | None = None
    key: str | None = None


class _Endpoint(Wire):
    bootstrap_server_host: str | None = None
    tls: _Tls | None = None


class _Account(Wire):
    name: str = ""
    principal: str = ""
    password: str = ""


class _Spec(Wire):
    capacity: dict[str, Any] | None = None
    oauth: dict[str, Any] | None = None
    endpoint: _Endpoint | None = None
    versions: ManagedKafkaVersions | None = None
    owners: tuple[str, ...] | None = None
    service_accounts: tuple[_Account, ...] | None = None
    deleted: bool | None = None


class _Item(Wire):
    id: str | None = None
    metadata: _Metadata | None = None
    spec: _Spec | None = None


class _Unusable(Exception):
    """Why an item cannot be used."""


def read_kafka_list(body: bytes) -> KafkaList:
    """Raises `UnreadableList`."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableList(f"the list is not JSON: {error}") from error
    listed = document.get("items") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise UnreadableList("the list has no items")
    items: list[ListedKafka] = []
    unreadable: list[UnreadableItem] = []
    for position, value in enumerate(listed):
        try:
            items.append(_read_item(value))
        except _Unusable as error:
            unreadable.append(_describe_unusable(value, f"items[{position}]: {error}"))
    return _set_doubles_aside(items, unreadable)


def _set_doubles_aside(items: list[ListedKafka], unreadable: list[UnreadableItem]) -> KafkaList:
    """Items that name the same instance contradict each other: none of them is used."""
    ids, namespaces = Counter(item.id for item in items), Counter(item.namespace for item in items)
    doubles = [item for item in items if ids[item.id] > 1 or namespaces[item.namespace] > 1]
    unreadable += [
        UnreadableItem(problem="the list has it several times", id=item.id, namespace=item.namespace)
        for item in doubles
    ]
    kept = tuple(item for item in items if item not in doubles) if doubles else tuple(items)
    return KafkaList(items=kept, unreadable=tuple(unreadable))


def _describe_unusable(value: Any, problem: str) -> UnreadableItem:
    whole = value if isinstance(value, dict) else {}
    metadata = whole.get("metadata")
    known = metadata if isinstance(metadata, dict) else {}
    kafka_id, namespace = whole.get("id"), known.get("namespace")
    return UnreadableItem(
        problem=problem[:_LONGEST_TEXT],
        id=kafka_id if isinstance(kafka_id, str) else "",
        namespace=namespace if isinstance(namespace, str) else "",
    )


def _read_item(value: Any) -> ListedKafka:
    """Raises `_Unusable`."""
    try:
        item = msgspec.convert(value, _Item)
    except msgspec.ValidationError as error:
        raise _Unusable(str(error)) from error
    metadata, spec = item.metadata or _Metadata(), item.spec or _Spec()
    labels = _read_texts(metadata.labels, _LABEL)
    annotations = _read_texts(metadata.annotations, None)
    placement_id = annotations.get(PLACEMENT_ID, "")
    for field, text in (("id", item.id), (f"annotations[{PLACEMENT_ID}]", placement_id)):
        if not text:
            raise _Unusable(f"{field} is missing")
    assert item.id
    if not _LABEL.fullmatch(item.id):
        raise _Unusable("id cannot be a label")
    read = ListedKafka(
        id=item.id,
        name=_read_name(metadata.name, "metadata.name"),
        namespace=_read_name(metadata.namespace, "metadata.namespace"),
        placement_id=placement_id,
        instance_type=_read_instance_type(labels),
        units=_read_units(labels, annotations),
        is_reserved=labels.get(DEPLOYMENT) == RESERVED,
        is_paused=annotations.get(PAUSED) == "true",
        deleted=bool(spec.deleted),
        labels=labels,
        annotations={**annotations, ID: item.id},
        spec=_build_spec(spec),
        credentials=_read_credentials(spec),
    )
    return replace(read, hash=_hash_item(read))


def _read_name(text: str | None, field: str) -> str:
    if not text:
        raise _Unusable(f"{field} is missing")
    if not _NAME.fullmatch(text):
        raise _Unusable(f"{field} is not a name of Kubernetes")
    return text


def _read_instance_type(labels: dict[str, str]) -> str:
    instance_type = labels.get(PROFILE_TYPE, "")
    if instance_type not in INSTANCE_TYPES:
        raise _Unusable(f"labels[{PROFILE_TYPE}] is none of {', '.join(INSTANCE_TYPES)}")
    return instance_type


def _read_units(labels: dict[str, str], annotations: dict[str, str]) -> int:
    """The streaming units of the size. Where the control plane does not name them, they are the quota it consumes."""
    text = annotations.get(STREAMING_UNITS) or labels.get(QUOTA_CONSUMED, "")
    units = read_whole_number(text, least=1, most=_MOST_UNITS)
    if units is None:
        raise _Unusable(f"labels[{QUOTA_CONSUMED}] is not a number of streaming units from 1 to {_MOST_UNITS}")
    return units


def _read_texts(values: dict[str, Any] | None, pattern: re.Pattern[str] | None) -> dict[str, str]:
    """Values that no object can have are left out: they are not for us."""
    return {
        key: text
        for key, text in (values or {}).items()
        if isinstance(text, str)
        and _KEY.fullmatch(key)
        and len(text) <= _LONGEST_TEXT
        and (pattern is None or pattern.fullmatch(text))
    }


def _build_spec(spec: _Spec) -> dict[str, Any]:
    host = spec.endpoint.bootstrap_server_host if spec.endpoint is not None else None
    if not host:
        raise _Unusable("spec.endpoint.bootstrapServerHost is missing")
    built: dict[str, Any] = {
        "capacity": _read_capacity(spec.capacity or {}),
        "endpoint": {"bootstrapServerHost": host},
        "versions": msgspec.to_builtins(spec.versions or ManagedKafkaVersions()),
        "owners": list(spec.owners or ()),
    }
    if spec.oauth:
        built["oauth"] = spec.oauth
    if spec.service_accounts:
        built["serviceAccounts"] = [
            {"name": found.name, "principal": found.principal} for found in spec.service_accounts
        ]
    return built


def _read_capacity(capacity: dict[str, Any]) -> dict[str, Any]:
    """Raises `_Unusable` where the size of the disks does not follow from it."""
    size = capacity.get("maxDataRetentionSize")
    try:
        is_amount = isinstance(size, str) and Quantity.parse(size) >= Quantity.from_int(0)
    except InvalidInput:
        is_amount = False
    if not is_amount:
        raise _Unusable("spec.capacity.maxDataRetentionSize is not an amount of bytes")
    return capacity


def _read_credentials(spec: _Spec) -> dict[str, str]:
    """The secrets of an item, by the keys of their Secret."""
    found: dict[str, str] = {}
    tls = spec.endpoint.tls if spec.endpoint is not None else None
    if tls is not None and tls.cert and tls.key:
        found |= {"tls.crt": tls.cert, "tls.key": tls.key}
    for account in spec.service_accounts or ():
        if account.password and _NAME.fullmatch(account.name):
            found[f"{account.name}.password"] = account.password
    return found


def _hash_item(item: ListedKafka) -> str:
    encoded = msgspec.json.encode(replace(item, deleted=False), order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:_HASH_CHARACTERS]
