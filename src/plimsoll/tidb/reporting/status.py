"""Writes the status of a TidbClusterAutoScaler: groups and conditions. Only if something changed.

The write is a merge patch of the status subresource with the changed fields and the version they were compared with.
After a conflict the object is read again and only our part is patched. Conditions of other writers stay.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from plimsoll.kube.conditions import list_conditions, set_transition_time, to_json
from plimsoll.kube.errors import NotFound, UnreadableAnswer
from plimsoll.kube.requests.retry import retry_on_conflict
from plimsoll.kube.undecoded_objects import read_undecoded
from plimsoll.objects.api.tidb import GroupScalingStatus, TidbClusterAutoScaler
from plimsoll.objects.codec.decoding import encode_object
from plimsoll.tidb.reporting.conditions import TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import Condition, ObjectMeta
    from plimsoll.objects.codec.decoding import RawObject
    from plimsoll.tidb.model.components import Component

Json = dict[str, Any]

ATTEMPTS: Final = 5
_MESSAGE_LENGTH: Final = 4_096
_FIELDS: Final = tuple(field.encode_name for field in msgspec.structs.fields(GroupScalingStatus))


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredStatus:
    """The desired status. A component that is missing keeps its status."""

    conditions: tuple[Condition, ...]
    generation: int
    components: dict[Component, dict[str, GroupScalingStatus]]
    at: datetime


async def write_status(
    client: Client, scaler: RawObject[TidbClusterAutoScaler], desired: DesiredStatus, *, is_outdated: bool = False
) -> bool:
    """Whether anything was written. An autoscaler that is gone or was recreated is not written.

    `is_outdated`: we wrote to the autoscaler since `scaler` was read.
    """
    metadata = scaler.metadata
    current = await _read(client, metadata) if is_outdated else scaler

    async def read_again(_failures: int) -> None:
        nonlocal current
        current = await _read(client, metadata)

    async def attempt() -> bool:
        if current is None:
            return False
        patch = build_status_patch(_get_status(current.raw), desired)
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


async def write_status_of_unreadable(client: Client, namespace: str, name: str, desired: DesiredStatus) -> str:
    """Write conditions of an autoscaler that cannot be decoded; gives its uid if anything was written.

    The answer to the write cannot be decoded either.
    """
    found = await read_undecoded(client, TidbClusterAutoScaler, name, namespace=namespace)
    patch = {} if found is None else build_status_patch(found.status, desired)
    if found is None or not patch:
        return ""
    body = {"metadata": {"resourceVersion": found.metadata.resource_version}, "status": patch}
    with contextlib.suppress(UnreadableAnswer):
        await _patch(client, found.metadata, body)
    return found.metadata.uid


async def _patch(client: Client, metadata: ObjectMeta, body: Json) -> None:
    """Definitions of TiDB Operator up to 1.6.1 have no status subresource: there the status is part of the object."""
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


def build_status_patch(before: Mapping[str, Any], desired: DesiredStatus) -> Json:
    """The merge patch to the desired status; empty: there is no change."""
    patch: Json = {}
    conditions = _merge_conditions(before.get("conditions"), desired)
    if conditions != (before.get("conditions") or []):
        patch["conditions"] = conditions
    if desired.generation and before.get("observedGeneration") != desired.generation:
        patch["observedGeneration"] = desired.generation
    for component, groups in sorted(desired.components.items()):
        current = before.get(component.value)
        changed = _merge_groups(current if isinstance(current, dict) else {}, groups)
        if changed:
            patch[component.value] = changed
    return patch


def _merge_groups(before: Mapping[str, Any], desired: Mapping[str, GroupScalingStatus]) -> Json:
    patch: Json = {key: None for key in sorted(before) if key not in desired}
    for key, status in sorted(desired.items()):
        entry = msgspec.json.decode(encode_object(status))
        current = before.get(key)
        known = current if isinstance(current, dict) else {}
        changed = {field: entry.get(field) for field in _FIELDS if known.get(field) != entry.get(field)}
        if changed or key not in before:
            patch[key] = changed
    return patch


def _merge_conditions(before: Any, desired: DesiredStatus) -> list[Json]:
    """Conditions of other writers, then ours in a fixed order."""
    current = list_conditions(before)
    ours = {condition.get("type"): condition for condition in current if condition.get("type") in TYPES}
    others = [condition for condition in current if condition.get("type") not in TYPES]
    written = [
        _write_condition(condition, ours.get(condition.type), desired)
        for condition in _sort_conditions(desired.conditions)
    ]
    return [*others, *written]


def _sort_conditions(conditions: Iterable[Condition]) -> list[Condition]:
    return sorted(conditions, key=lambda condition: TYPES.index(condition.type))


def _write_condition(condition: Condition, before: Json | None, desired: DesiredStatus) -> Json:
    is_same = before is not None and before.get("status") == condition.status
    current = replace(
        condition,
        message=condition.message[:_MESSAGE_LENGTH],
        last_transition_time=desired.at,
        observed_generation=desired.generation,
    )
    return set_transition_time(to_json(current), before if is_same else None, desired.at)


def _get_status(raw: bytes) -> Json:
    status = msgspec.json.decode(raw).get("status")
    return status if isinstance(status, dict) else {}
