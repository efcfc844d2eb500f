"""The new `managedFields` after a write, and the object after an apply.

One `FieldManager` serves one endpoint (kind, version, subresource). A create is a write over `schema.blank`; it is
tracked before admission changes the object, so what admission adds has no owner. A write to an object whose list of
managers is empty stays untracked until the first apply; a client empties the list with `[{}]`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from plimsoll.core.values import Value
from plimsoll.local.apiserver.apply import conflicts, managed_fields
from plimsoll.local.apiserver.apply.client_side import find_allowed_conflicts, update_last_applied
from plimsoll.local.apiserver.apply.fieldpath.elements import InvalidFieldSet
from plimsoll.local.apiserver.apply.fieldpath.sets import FieldSet
from plimsoll.local.apiserver.apply.managed_fields import APPLY, UPDATE, ManagerIdentity, Managers, OwnedFields
from plimsoll.local.apiserver.apply.typed.types import BadItem
from plimsoll.local.apiserver.apply.typed.validation import find_validation_error
from plimsoll.local.apiserver.apply.updater import Conflicts, Merged, Updater
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.schema.json_values import is_same

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.local.apiserver.apply.conflicts import ApplyRefused
    from plimsoll.local.apiserver.apply.typed.schemas import TypeSchema

_BEFORE_FIRST_APPLY: Final = "before-first-apply"
_KUBECTL: Final = "kubectl"
_LONGEST_MANAGER_BYTES: Final = 128
_LONGEST_KEPT_BYTES: Final = 16_384
_encoder: Final = msgspec.json.Encoder()
_METADATA: Final = (
    "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
    "resourceVersion",
)  # fmt: skip
# Identity and book-keeping fields have no owner.
_NEVER_OWNED: Final = FieldSet.from_paths(
    ("apiVersion",), ("kind",), ("metadata",), *(("metadata", name) for name in _METADATA)
)


_Shape: TypeAlias = "tuple[_Shape | str | bool, ...]"
_SHAPES_KEPT: Final = 64
# Maps with keys of the user's choosing: objects are seldom alike in them.
_OF_ANY_SIZE: Final = frozenset({"labels", "annotations", "data", "binaryData", "stringData"})


class Applied(Value):
    """The object to default, decode and store; it carries its managedFields."""

    value: dict[str, Any]


class FieldManager:
    """Ownership at one endpoint. `schemas` has the type of every served version, by apiVersion."""

    def __init__(
        self,
        schemas: Mapping[str, TypeSchema],
        *,
        api_version: str,
        kind: str,
        subresource: str = "",
        reset: FieldSet | None = None,
    ) -> None:
        self._schema = schemas[api_version]
        self._api_version = api_version
        self._kind = kind
        self._subresource = subresource
        self._updater = Updater(schemas, api_version, reset=reset or FieldSet())
        self._fields_of_text = lru_cache(maxsize=64)(self._compute_fields_of_new)
        self._fields_of_shape: dict[_Shape, FieldSet] = {}

    def update(
        self, live: dict[str, Any] | None, new: dict[str, Any], *, manager: str, now: datetime
    ) -> dict[str, Any]:
        """The written object with its new managedFields; `live` is None for a create."""
        before = live if live is not None else self._schema.blank
        try:
            managers = self._read_managers_of_write(before, new)
            if managers or not _is_stored(before):
                managers = self._track(before, new, managers=managers, manager=manager, now=now)
        except (InvalidFieldSet, BadItem):
            # As in Kubernetes: ownership that cannot be computed must not stop the write.
            managers = {}
        return _set_managers(new, managers)

    def apply(
        self, live: dict[str, Any] | None, applied: Any, *, manager: str, force: bool, now: datetime
    ) -> Applied | ApplyRefused:
        """The live object with the configuration applied; `live` is None if there is none yet."""
        before = live if live is not None else self._schema.blank
        refusal = self._find_refusal(applied)
        if refusal is not None:
            return refusal
        try:
            managers = managed_fields.decode(_get_metadata(before).get("managedFields"))
        except InvalidFieldSet as error:
            return conflicts.internal_error(f"failed to decode managed fields: {error}")
        try:
            return self._apply(before, applied, managers=managers, manager=manager, force=force, now=now)
        except BadItem as problem:
            return conflicts.internal_error(f"failed to merge config: {problem}")

    def _find_refusal(self, applied: Any) -> ApplyRefused | None:
        given = _get_type(applied)
        if given != (self._api_version, self._kind):
            return conflicts.bad_request(f"invalid object type: {_format_kind(*given)}")
        if _get_metadata(applied).get("managedFields") is not None:
            return conflicts.bad_request("metadata.managedFields must be nil")
        problems = find_validation_error(applied, self._schema.root)
        if problems is not None:
            named = _format_kind(*given)
            metadata = _get_metadata(applied)
            who = f"{_as_text(metadata.get('namespace'))}/{_as_text(metadata.get('name'))}; {named}"
            return conflicts.internal_error(f"failed to create typed patch object ({who}): {problems}")
        return None

    def _apply(
        self,
        live: dict[str, Any],
        applied: dict[str, Any],
        *,
        managers: Managers,
        manager: str,
        force: bool,
        now: datetime,
    ) -> Applied | ApplyRefused:
        if not managers:
            managers = self._track(self._schema.blank, live, managers={}, manager=_BEFORE_FIRST_APPLY, now=now)
        by = self._build_identity(manager, APPLY)
        result = self._updater.apply(live, applied, managers=managers, by=by, force=force)
        if isinstance(result, Conflicts) and manager == _KUBECTL:
            result = self._merge_after_client_side_apply(live, applied, managers=managers, by=by, found=result)
        if isinstance(result, Conflicts):
            return conflicts.conflict(result)
        value = result.value
        if manager == _KUBECTL:
            value = update_last_applied(value, applied)
        after = self._stamp(result, by=by, now=now)
        return Applied(value=_set_managers(value, after))

    def _merge_after_client_side_apply(
        self,
        live: dict[str, Any],
        applied: dict[str, Any],
        *,
        managers: Managers,
        by: ManagerIdentity,
        found: Conflicts,
    ) -> Merged | Conflicts:
        """A kubectl that moves from client-side to server-side apply takes what it had applied without a conflict."""
        allowed = find_allowed_conflicts(live, api_version=self._api_version, atom=self._schema.root)
        if allowed is None:
            return found
        left = {identity: fields - allowed for identity, fields in found.by_manager.items()}
        left = {identity: fields for identity, fields in left.items() if fields}
        if left:
            return Conflicts(by_manager=left)
        return self._updater.apply(live, applied, managers=managers, by=by, force=True)

    def _stamp(self, result: Merged, *, by: ManagerIdentity, now: datetime) -> Managers:
        managers = dict(result.managers)
        owned = managers.pop(by, None)
        if owned is None:
            return managers
        fields = owned.fields - _NEVER_OWNED
        if fields:
            time = format_time(now) if result.changed else owned.time
            managers[by] = msgspec.structs.replace(owned, fields=fields, time=time)
        return managers

    def _read_managers_of_write(self, live: dict[str, Any], new: dict[str, Any]) -> Managers:
        """A client may write managedFields itself on the main resource; what cannot be read or is empty is ignored."""
        given = _get_metadata(new).get("managedFields")
        if not self._subresource:
            if given == [{}]:
                return {}
            try:
                managers = managed_fields.decode(given)
            except InvalidFieldSet:
                managers = {}
            if managers:
                return managers
        try:
            return managed_fields.decode(_get_metadata(live).get("managedFields"))
        except InvalidFieldSet:
            return {}

    def _track(
        self, live: dict[str, Any], new: dict[str, Any], *, managers: Managers, manager: str, now: datetime
    ) -> Managers:
        left: Managers = {}
        if live is self._schema.blank and not managers:
            taken = self._get_fields_of_created(new)
        else:
            left, taken = self._updater.update(live, new, managers=managers)
            taken = taken - _NEVER_OWNED
        if taken:
            identity = self._build_identity(manager, UPDATE)
            previous = left.get(identity)
            fields = taken | previous.fields if previous else taken
            left = {**left, identity: OwnedFields(fields=fields, api_version=self._api_version, time=format_time(now))}
        return managed_fields.cap_managers(left)

    def _get_fields_of_created(self, new: dict[str, Any]) -> FieldSet:
        """What the creator of an object owns: the same of all that are made from one template, so found once.

        That is a sixth of what creating a pod costs. An object with a name of its own is not cached.
        """
        metadata = _get_metadata(new)
        if metadata.get("generateName") and "managedFields" not in metadata:
            ownable = {name: item for name, item in metadata.items() if name not in _METADATA}
            text = _encoder.encode({**new, "metadata": ownable})
            if len(text) <= _LONGEST_KEPT_BYTES:
                return self._fields_of_text(text)
        shape = _compute_shape(new, self._schema.blank)
        if shape is None:
            return self._compute_fields(new)
        found = self._fields_of_shape.get(shape)
        if found is None:
            if len(self._fields_of_shape) >= _SHAPES_KEPT:
                self._fields_of_shape.clear()
            found = self._fields_of_shape[shape] = self._compute_fields(new)
        return found

    def _compute_fields_of_new(self, text: bytes) -> FieldSet:
        return self._compute_fields(msgspec.json.decode(text))

    def _compute_fields(self, new: dict[str, Any]) -> FieldSet:
        _, taken = self._updater.update(self._schema.blank, new, managers={})
        return taken - _NEVER_OWNED

    def _build_identity(self, manager: str, operation: str) -> ManagerIdentity:
        return ManagerIdentity.build(
            manager, operation=operation, api_version=self._api_version, subresource=self._subresource
        )


def choose_manager_name(field_manager: str | None, user_agent: str) -> str:
    """The manager of a write that names none: the client's program, as far as it is printable and short."""
    if field_manager:
        return field_manager
    name = ""
    for character in user_agent.partition("/")[0]:
        if not character.isprintable():
            continue
        if len((name + character).encode()) > _LONGEST_MANAGER_BYTES:
            break
        name += character
    return name


def restore_unchanged_times(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A write that changed nothing but times of managers changed nothing: it gets the old times back."""
    before, after = _get_metadata(old).get("managedFields"), _get_metadata(new).get("managedFields")
    if not before or not after or len(before) != len(after):
        return new
    if not is_same(_strip_times(before), _strip_times(after)) or not is_same(
        _strip_managed_fields(old), _strip_managed_fields(new)
    ):
        return new
    return {**new, "metadata": {**new["metadata"], "managedFields": before}}


def _compute_shape(value: dict[str, Any], blank: dict[str, Any]) -> _Shape | None:
    """Which fields there are, and which hold what a blank object holds; of an object for which that is not all: None.

    Events come in numbers too, each with a name of its own, and few of them differ in more than values.
    """
    found: list[_Shape | str | bool] = [*value]
    for name, item in value.items():
        if isinstance(item, dict) and name not in _OF_ANY_SIZE:
            before = blank.get(name)
            below = _compute_shape(item, before if isinstance(before, dict) else {})
            if below is None:
                return None
            found.append(below)
        elif isinstance(item, (dict, list)):
            # Items of a list may be owned by what they say.
            return None
        elif name in blank:
            found.append(is_same(item, blank[name]))
    return tuple(found)


def _strip_times(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in entry.items() if name != "time"} for entry in entries]


def _strip_managed_fields(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "metadata": {**_get_metadata(value), "managedFields": None}}


def _set_managers(value: dict[str, Any], managers: Managers) -> dict[str, Any]:
    metadata = {name: item for name, item in _get_metadata(value).items() if name != "managedFields"}
    if managers:
        metadata["managedFields"] = managed_fields.encode(managers)
    return {**value, "metadata": metadata}


def _is_stored(value: dict[str, Any]) -> bool:
    return bool(_get_metadata(value).get("uid"))


def _get_metadata(value: Any) -> dict[str, Any]:
    metadata = value.get("metadata") if isinstance(value, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _get_type(value: Any) -> tuple[str, str]:
    if not isinstance(value, dict):
        return "", ""
    api_version, kind = _as_text(value.get("apiVersion")), _as_text(value.get("kind"))
    # Kubernetes reads a version it cannot parse as no type at all.
    return ("", "") if api_version.count("/") > 1 else (api_version, kind)


def _format_kind(api_version: str, kind: str) -> str:
    group, slash, version = api_version.rpartition("/")
    return f"{group}{slash or '/'}{version}, Kind={kind}"


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""
