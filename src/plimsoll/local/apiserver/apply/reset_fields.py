"""Fields that an endpoint never writes, and whose ownership it therefore never records.

The main resource resets `status`, its status subresource `spec`; a few kinds reset more, as their strategies in
Kubernetes do.
"""

from __future__ import annotations

from typing import Final

from plimsoll.local.apiserver.apply.fieldpath.sets import FieldSet

_STATUS_SUBRESOURCE: Final = {
    "Pod": FieldSet.from_paths(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
    "Deployment": FieldSet.from_paths(("spec",), ("metadata", "labels")),
    "CustomResourceDefinition": FieldSet.from_paths(("metadata",), ("spec",)),
    "VolumeAttachment": FieldSet.from_paths(("metadata",), ("spec",)),
}
_SPEC: Final = FieldSet.from_paths(("spec",))
_STATUS: Final = FieldSet.from_paths(("status",))
_NOTHING: Final = FieldSet()


def reset_fields(kind: str, subresource: str = "", *, has_status: bool) -> FieldSet:
    """`has_status`: the kind has a status subresource; other subresources reset nothing."""
    if not has_status:
        return _NOTHING
    if subresource == "":
        return _STATUS
    if subresource == "status":
        return _STATUS_SUBRESOURCE.get(kind, _SPEC)
    return _NOTHING
