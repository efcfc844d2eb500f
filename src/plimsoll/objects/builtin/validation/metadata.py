"""The metadata rule of built-in kinds: finalizers must be known or qualified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import find_qualified_name_problems
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.admission import metadata_checks
from plimsoll.objects.schema.field_errors import list_invalid
from plimsoll.objects.schema.json_values import is_same

if TYPE_CHECKING:
    from plimsoll.core.names import NameRule
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")


def validate_new_metadata(metadata: Json, *, rule: NameRule, namespaced: bool) -> list[FieldError]:
    errors = metadata_checks.validate_new_metadata(metadata, "metadata", namespaced=namespaced, name_rule=rule)
    return [*errors, *_validate_standard_finalizers(metadata)]


def validate_metadata_update(new: Json, old: Json) -> list[FieldError]:
    return [*metadata_checks.validate_metadata_update(new, old, "metadata"), *_validate_standard_finalizers(new)]


def validate_unchanged(path: str, new: Any, old: Any) -> list[FieldError]:
    return [] if is_same(new, old) else [fe.invalid(path, new, metadata_checks.IMMUTABLE)]


def validate_finalizer_name(name: str, path: str) -> list[FieldError]:
    errors = list_invalid(path, name, find_qualified_name_problems)
    return [*errors, *_validate_standard_finalizer(name, path)]


def _validate_standard_finalizers(metadata: Json) -> list[FieldError]:
    finalizers = enumerate(metadata.get("finalizers", []))
    return [
        error
        for position, name in finalizers
        for error in _validate_standard_finalizer(name, f"metadata.finalizers[{position}]")
    ]


def _validate_standard_finalizer(name: str, path: str) -> list[FieldError]:
    if "/" in name or name in _STANDARD_FINALIZERS:
        return []
    return [fe.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")]
