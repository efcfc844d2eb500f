"""Writes the status of a TidbClusterAutoScaler: what each group stands at, and conditions. Only if something changed.

A merge patch of the status subresource, with the fields that differ and the version they were compared with. Who wrote
meanwhile makes it a conflict: then what stands there is read again, and only our own part is laid over it. Conditions
of others stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.kube.errors import NotFound
from plimsoll.kube.requests.retry import retry_on_conflict
from plimsoll.objects.api.meta import Condition, written_time
from plimsoll.objects.api.tidb import GroupScalingStatus, TidbClusterAutoScaler
from plimsoll.objects.codec.decoding import encode_object
from plimsoll.tidb.reporting.conditions import TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import ObjectMeta
    from plimsoll.objects.codec.decoding import RawObject
    from plimsoll.tidb.model.components import Component

Json = dict[str, Any]

ATTEMPTS: Final = 5
_MESSAGE_LENGTH: Final = 4_096
_FIELDS: Final = tuple(field.encode_name for field in msgspec.structs.fields(GroupScalingStatus))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A status as it should be. A component that is not in it keeps what it has."""

    conditions: tuple[Condition, ...]
    generation: int
    components: dict[Component, dict[str, GroupScalingStatus]]
    at: datetime


async def write_status(
    client: Client, scaler: RawObject[TidbClusterAutoScaler], wanted: Wanted, *, is_outdated: bool = False
) -> bool:
    """Whether anything had to be written. An autoscaler that is gone, or made anew, is not written to.

    `is_outdated`: we wrote to it ourselves since `scaler` was read.
    """
    metadata = scaler.metadata
    current = await _read(client, metadata) if is_outdated else scaler

    async def read_again(_failures: int) -> None:
        nonlocal current
        current = await _read(client, metadata)

    async def attempt() -> bool:
        if current is None:
            return False
        patch = status_patch(_status_in(current.raw), wanted)
        if not patch:
            return False
        version = current.metadata.resource_version
        body = {**({"metadata": {"resourceVersion": version}} if version else {}), "status": patch}
        try:
            await _patch(client, metadata, body)
        except NotFound:
            return False
        return True

    return await retry_on_conflict(attempt, attempts=ATTEMPTS, before_retry=read_again)


async def _patch(client: Client, metadata: ObjectMeta, body: Json) -> None:
    """Definitions of TiDB Operator up to 1.6.1 know no status of its own: there it is part of the object."""
    name, namespace = metadata.name, metadata.namespace
    try:
        await client.merge_patch(TidbClusterAutoScaler, name, body, namespace=namespace, subresource="status")
    except NotFound:
        await client.merge_patch(TidbClusterAutoScaler, name, body, namespace=namespace)


async def _read(client: Client, known: ObjectMeta) -> RawObject[TidbClusterAutoScaler] | None:
    """The same object as it is now."""
    try:
        found: RawObject[TidbClusterAutoScaler] = await client.get_with_raw(
            TidbClusterAutoScaler, known.name, namespace=known.namespace
        )
    except NotFound:
        return None
    return found if found.metadata.uid == known.uid else None


def status_patch(before: Mapping[str, Any], wanted: Wanted) -> Json:
    """What to merge into the status so that it is as wanted; empty: it is."""
    patch: Json = {}
    conditions = _conditions(before.get("conditions"), wanted)
    if conditions != (before.get("conditions") or []):
        patch["conditions"] = conditions
    if wanted.generation and before.get("observedGeneration") != wanted.generation:
        patch["observedGeneration"] = wanted.generation
    for component, groups in sorted(wanted.components.items()):
        there = before.get(component.value)
        changed = _groups(there if isinstance(there, dict) else {}, groups)
        if changed:
            patch[component.value] = changed
    return patch


def _groups(before: Mapping[str, Any], wanted: Mapping[str, GroupScalingStatus]) -> Json:
    patch: Json = {key: None for key in sorted(before) if key not in wanted}
    for key, status in sorted(wanted.items()):
        entry = msgspec.json.decode(encode_object(status))
        there = before.get(key)
        known = there if isinstance(there, dict) else {}
        changed = {field: entry.get(field) for field in _FIELDS if known.get(field) != entry.get(field)}
        if changed or key not in before:
            patch[key] = changed
    return patch


def _conditions(before: Any, wanted: Wanted) -> list[Json]:
    """Ours in place of ours, in a fixed order, after those of others."""
    there = [one for one in before if isinstance(one, dict)] if isinstance(before, list) else []
    ours = {one.get("type"): one for one in there if one.get("type") in TYPES}
    others = [one for one in there if one.get("type") not in TYPES]
    written = [_written(condition, ours.get(condition.type), wanted) for condition in _ordered(wanted.conditions)]
    return [*others, *written]


def _ordered(conditions: Iterable[Condition]) -> list[Condition]:
    return sorted(conditions, key=lambda condition: TYPES.index(condition.type))


def _written(condition: Condition, before: Json | None, wanted: Wanted) -> Json:
    is_same = before is not None and before.get("status") == condition.status
    since = before.get("lastTransitionTime") if is_same and before is not None else None
    written: Json = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message[:_MESSAGE_LENGTH],
        "lastTransitionTime": since or written_time(wanted.at),
    }
    return {**written, "observedGeneration": wanted.generation} if wanted.generation else written


def _status_in(raw: bytes) -> Json:
    status = msgspec.json.decode(raw).get("status")
    return status if isinstance(status, dict) else {}
