"""Ownership across the scale subresource: `spec.replicas` of a Scale is a field of its parent object.

A write to scale is tracked on the Scale alone, with the entries of `build_scale_entries`; `build_parent_entries`
translates the result back. Like kube-apiserver, it drops the time of an entry that is new to the parent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.local.apiserver.apply import managed_fields
from plimsoll.local.apiserver.apply.fieldpath.elements import InvalidFieldSet, from_field
from plimsoll.local.apiserver.apply.fieldpath.sets import FieldSet
from plimsoll.local.apiserver.apply.managed_fields import Managers, OwnedFields

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCALE_VERSION: Final = "autoscaling/v1"
_REPLICAS: Final = ("f:spec", "f:replicas")


class ScaleOwnership:
    """The scale ownership of one object: its entries, and the replicas path per served version (None: no scale)."""

    def __init__(self, entries: Any, *, api_version: str, paths: Mapping[str, tuple[str, ...] | None]) -> None:
        try:
            self._parents = managed_fields.decode(entries)
        except InvalidFieldSet:
            self._parents = {}
        self._api_version = api_version
        self._paths = {version: tuple(map(from_field, path)) if path else None for version, path in paths.items()}

    def build_scale_entries(self) -> list[dict[str, Any]]:
        """The managedFields of the Scale before the write."""
        scales: Managers = {}
        for identity, owned in self._parents.items():
            path = self._paths.get(owned.api_version)
            if path is not None and owned.fields.has(path):
                scales[identity] = OwnedFields(
                    fields=_build_single_path_set(_REPLICAS), api_version=_SCALE_VERSION, time=owned.time
                )
        return managed_fields.encode(scales)

    def build_parent_entries(self, scale_entries: Any) -> list[dict[str, Any]]:
        """The managedFields of the object after the write."""
        scales = managed_fields.decode(scale_entries)
        # An updater's version distinguishes entries, and on the Scale it is the Scale's.
        known = {_drop_version(identity) for identity in scales}
        result: Managers = {}
        for identity, owned in self._parents.items():
            if owned.api_version not in self._paths:
                continue
            path = self._paths[owned.api_version]
            if path is None or not owned.fields.has(path) or _drop_version(identity) in known:
                result[identity] = owned
            elif fields := owned.fields - _build_single_path_set(path):
                result[identity] = msgspec.structs.replace(owned, fields=fields)
        own_path = self._paths.get(self._api_version)
        for identity, owned in scales.items():
            if own_path is None or not owned.fields.has(_REPLICAS):
                continue
            on_parent = msgspec.structs.replace(identity, api_version="" if identity.applies else self._api_version)
            before = self._parents.get(on_parent)
            result[on_parent] = OwnedFields(
                fields=_build_single_path_set(own_path) | before.fields if before else _build_single_path_set(own_path),
                api_version=self._api_version,
                time=before.time if before else None,
            )
        return managed_fields.encode(result)


def _drop_version(identity: managed_fields.ManagerIdentity) -> tuple[str, str, str]:
    return identity.manager, identity.operation, identity.subresource


def _build_single_path_set(path: tuple[str, ...]) -> FieldSet:
    result = FieldSet({path[-1]})
    for element in reversed(path[:-1]):
        result = FieldSet(children={element: result})
    return result
