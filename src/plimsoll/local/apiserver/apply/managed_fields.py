"""The field managers of an object, in memory and as `metadata.managedFields`.

`Managers` holds one set of fields per identity (manager, operation, version of an update, subresource). Decoding is
strict, because the ownership of a whole object depends on it; the caller decides what to do with an unreadable list.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from plimsoll.core.values import Value
from plimsoll.local.apiserver.apply.fieldpath.elements import InvalidFieldSet
from plimsoll.local.apiserver.apply.fieldpath.sets import FieldSet
from plimsoll.objects.api.meta import format_time

APPLY: Final = "Apply"
UPDATE: Final = "Update"
ANCIENT: Final = "ancient-changes"
_MOST_UPDATERS: Final = 10
_LONGEST_KEPT_BYTES: Final = 4096
_encoder: Final = msgspec.json.Encoder()


class ManagerIdentity(Value, order=True):
    """The identity of an entry. An applier keeps its entry when it changes the version; an updater gets another."""

    manager: str
    operation: str
    api_version: str = ""
    subresource: str = ""

    @classmethod
    def build(cls, manager: str, *, operation: str, api_version: str, subresource: str) -> ManagerIdentity:
        version = api_version if operation == UPDATE else ""
        return cls(manager=manager, operation=operation, api_version=version, subresource=subresource)

    @property
    def applies(self) -> bool:
        return self.operation == APPLY


class OwnedFields(Value):
    """What one manager owns, in the version it wrote in, and when that last changed."""

    fields: FieldSet
    api_version: str
    time: str | None = None


Managers = dict[ManagerIdentity, OwnedFields]


def decode(entries: Any) -> Managers:
    """Raises `InvalidFieldSet`; null and nothing are the same."""
    if entries is None:
        return {}
    if not isinstance(entries, list):
        raise InvalidFieldSet("managedFields must be a list")
    managers: Managers = {}
    for position, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise InvalidFieldSet(f"managed fields entry {position} must be an object")
        identity, owned = _decode(entry, position)
        managers[identity] = owned
    return managers


def _decode(entry: dict[str, Any], position: int) -> tuple[ManagerIdentity, OwnedFields]:
    operation, api_version = entry.get("operation"), entry.get("apiVersion")
    if operation not in {APPLY, UPDATE}:
        raise InvalidFieldSet("operation must be `Apply` or `Update`")
    if not api_version or not isinstance(api_version, str):
        raise InvalidFieldSet("apiVersion must not be empty")
    fields_type = entry.get("fieldsType")
    if not fields_type:
        raise InvalidFieldSet(f"missing fieldsType in managed fields entry {position}")
    if fields_type != "FieldsV1":
        raise InvalidFieldSet(f'invalid fieldsType "{fields_type}" in managed fields entry {position}')
    identity = ManagerIdentity.build(
        _as_text(entry.get("manager")),
        operation=operation,
        api_version=api_version,
        subresource=_as_text(entry.get("subresource")),
    )
    fields = _decode_fields(entry.get("fieldsV1") or {})
    return identity, OwnedFields(fields=fields, api_version=api_version, time=_normalize_time(entry.get("time")))


def _decode_fields(written: Any) -> FieldSet:
    """Objects of one owner have the same fields: reading their sets once spares a tenth of a status patch."""
    text = _encoder.encode(written)
    return _parse_fields(text) if len(text) <= _LONGEST_KEPT_BYTES else FieldSet.from_fields_v1(written)


@lru_cache(maxsize=512)
def _parse_fields(text: bytes) -> FieldSet:
    return FieldSet.from_fields_v1(msgspec.json.decode(text))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _normalize_time(value: Any) -> str | None:
    """In UTC and whole seconds, so that texts compare as times do."""
    return _parse_time(value) if isinstance(value, str) else None


@lru_cache(maxsize=512)
def _parse_time(text: str) -> str | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return format_time(moment) if moment.tzinfo is not None else None


def encode(managers: Managers) -> list[dict[str, Any]]:
    """Appliers first, then by time, then by name."""
    ordered = sorted(managers, key=lambda identity: _rank(identity, managers[identity]))
    return [_encode(identity, managers[identity]) for identity in ordered]


def _rank(identity: ManagerIdentity, owned: OwnedFields) -> tuple[str, ...]:
    return (identity.operation, owned.time or "", identity.manager, owned.api_version, identity.subresource)


def _encode(identity: ManagerIdentity, owned: OwnedFields) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "manager": identity.manager,
        "operation": identity.operation,
        "apiVersion": owned.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.fields.to_fields_v1(),
        "subresource": identity.subresource,
    }
    return {name: value for name, value in entry.items() if value is not None and value != ""}


def cap_managers(managers: Managers) -> Managers:
    """With more than ten updaters, the oldest are thrown together, version by version, until ten are left."""
    updaters = [identity for identity in managers if not identity.applies]
    if len(updaters) <= _MOST_UPDATERS:
        return managers
    result = dict(managers)
    updaters.sort(key=lambda identity: (managers[identity].time or "", identity))
    left = len(updaters)
    first_of: dict[str, ManagerIdentity] = {}
    for identity in updaters:
        if left <= _MOST_UPDATERS:
            break
        version = managers[identity].api_version
        first = first_of.setdefault(version, identity)
        if first is not identity:
            _merge_updaters(result, first, identity)
            left -= 1
    return result


def _merge_updaters(managers: Managers, first: ManagerIdentity, second: ManagerIdentity) -> None:
    """Puts both into the bucket of their version; the younger one's time is the bucket's."""
    younger = managers.pop(second)
    bucket = ManagerIdentity(manager=ANCIENT, operation=UPDATE, api_version=younger.api_version)
    known = managers.pop(first if bucket not in managers else bucket)
    managers[bucket] = OwnedFields(
        fields=younger.fields | known.fields, api_version=younger.api_version, time=younger.time
    )
