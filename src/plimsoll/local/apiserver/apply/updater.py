"""Ownership of fields: which managers keep, gain and lose fields at a write or an apply.

Managers are only keys here; `field_manager` knows their names and times. Objects are the same in every version
(conversion strategy None), but may have another type in each: managers of a version that is no longer served lose their
entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from plimsoll.core.values import Value
from plimsoll.local.apiserver.apply.fieldpath.sets import FieldSet
from plimsoll.local.apiserver.apply.managed_fields import ManagerIdentity, Managers, OwnedFields
from plimsoll.local.apiserver.apply.typed.compare import Comparison, compare
from plimsoll.local.apiserver.apply.typed.field_sets import add_named_fields, to_field_set
from plimsoll.local.apiserver.apply.typed.merge import merge
from plimsoll.local.apiserver.apply.typed.remove import remove
from plimsoll.objects.schema.json_values import is_same

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.local.apiserver.apply.typed.schemas import TypeSchema
    from plimsoll.local.apiserver.apply.typed.types import Atom


class Conflicts(Value):
    """The fields that others own and the applied configuration would change."""

    by_manager: dict[ManagerIdentity, FieldSet]


class Merged(Value):
    """The object after an apply, with its managers; `changed` is false if the live object already was the same."""

    value: dict[str, Any]
    managers: Managers
    changed: bool


class Updater:
    """Carries out writes on objects of one kind, in one version; `reset` are fields this endpoint never writes."""

    def __init__(self, schemas: Mapping[str, TypeSchema], api_version: str, *, reset: FieldSet) -> None:
        self._schemas = schemas
        self._version = api_version
        self._reset = reset
        self._atom = schemas[api_version].root

    def update(self, live: dict[str, Any], new: dict[str, Any], *, managers: Managers) -> tuple[Managers, FieldSet]:
        """The managers after a write, without what was changed under them, and the fields the write takes."""
        comparison = compare(live, new, self._atom)
        left = self._remove_lost_fields(live, new, comparison, managers=managers, force=True, by=None)
        assert not isinstance(left, Conflicts)
        return left, (comparison.modified | comparison.added).subtract_recursively(self._reset)

    def apply(
        self, live: dict[str, Any], applied: dict[str, Any], *, managers: Managers, by: ManagerIdentity, force: bool
    ) -> Merged | Conflicts:
        last = managers.get(by)
        claimed = to_field_set(applied, self._atom).subtract_recursively(self._reset)
        after = {
            **managers,
            by: OwnedFields(fields=claimed, api_version=self._version, time=last.time if last else None),
        }
        merged = merge(live, applied, self._atom)
        # Most appliers come back with all they applied before: then there is nothing that pruning could take away.
        if last is None or last.api_version != self._version or last.fields - claimed:
            merged = self._prune(merged, managers=after, last=last)
        comparison = compare(live, merged, self._atom)
        left = self._remove_lost_fields(live, merged, comparison, managers=after, force=force, by=by)
        if isinstance(left, Conflicts):
            return left
        return Merged(value=merged, managers=left, changed=not is_same(live, merged))

    def _remove_lost_fields(
        self,
        live: dict[str, Any],
        new: dict[str, Any],
        comparison: Comparison,
        *,
        managers: Managers,
        force: bool,
        by: ManagerIdentity | None,
    ) -> Managers | Conflicts:
        """The managers without the fields they lose to this write; entries that become empty are gone."""
        versions = {self._version: comparison.subtract_recursively(self._reset)}
        conflicts: dict[ManagerIdentity, FieldSet] = {}
        written: dict[str, FieldSet] = {}
        left: Managers = {}
        for identity, owned in managers.items():
            if identity == by:
                left[identity] = owned
                continue
            if owned.api_version not in versions:
                schema = self._schemas.get(owned.api_version)
                if schema is None:
                    continue
                versions[owned.api_version] = compare(live, new, schema.root).subtract_recursively(self._reset)
            changes = versions[owned.api_version]
            if owned.api_version not in written:
                written[owned.api_version] = changes.modified | changes.added
            taken = owned.fields & written[owned.api_version]
            if taken:
                conflicts[identity] = taken
            fields = owned.fields - taken - changes.removed
            left[identity] = owned if fields is owned.fields else msgspec.structs.replace(owned, fields=fields)
        if conflicts and not force:
            return Conflicts(by_manager=conflicts)
        return {identity: owned for identity, owned in left.items() if owned.fields}

    def _prune(self, merged: dict[str, Any], *, managers: Managers, last: OwnedFields | None) -> dict[str, Any]:
        """The object without what the manager applied last time, does not apply now, and no other manager owns."""
        schema = self._schemas.get(last.api_version) if last and last.fields else None
        if last is None or schema is None:
            return merged
        atom = schema.root
        own = add_named_fields(last.fields, atom)
        pruned = remove(merged, own, atom)
        pruned = self._restore_owned_items(merged, pruned, managers=managers, version=last.api_version)
        gone = _collect_fields(merged, atom) - _collect_fields(pruned, atom)
        left: dict[str, Any] = remove(merged, gone & own, atom) or {}
        return left

    def _restore_owned_items(
        self, merged: dict[str, Any], pruned: dict[str, Any] | None, *, managers: Managers, version: str
    ) -> dict[str, Any] | None:
        """Gives back what any manager owns, the applying one's new configuration included."""
        owned_at: dict[str, FieldSet] = {version: FieldSet()}
        for owned in managers.values():
            owned_at[owned.api_version] = owned_at.get(owned.api_version, FieldSet()) | owned.fields
        for at_version, fields in owned_at.items():
            schema = self._schemas.get(at_version)
            if schema is not None:
                atom = schema.root
                kept = _collect_fields(pruned, atom) | add_named_fields(fields, atom)
                pruned = remove(merged, _collect_fields(merged, atom) - kept, atom)
        return pruned


def _collect_fields(value: dict[str, Any] | None, atom: Atom) -> FieldSet:
    return add_named_fields(to_field_set(value or {}, atom), atom)
