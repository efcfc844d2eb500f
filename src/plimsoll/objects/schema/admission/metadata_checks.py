"""The rules for the metadata of every object, built-in or custom: names, labels, annotations, owners, finalizers.

Works on metadata that was decoded before. The order of errors is Kubernetes': the prefix before the name, then labels,
annotations, owners, finalizers, managed fields. A missing namespace is not an error: the API server fills it in from
the URL before it validates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import (
    build_prefix_rule,
    count_bytes,
    find_dns1123_label_problems,
    find_label_value_problems,
    find_qualified_name_problems,
)
from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema import go_text
from plimsoll.objects.schema.field_errors import FieldError, child, index, list_invalid
from plimsoll.objects.schema.json_values import is_same

if TYPE_CHECKING:
    from plimsoll.core.names import NameRule

Json = dict[str, Any]

ANNOTATIONS_BYTES: Final = 256 * 1024
IMMUTABLE: Final = "field is immutable"
# creationTimestamp is not here: a client may send any, and the stored one remains.
_IDENTITY: Final = ("name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds")


def validate_new_metadata(metadata: Json, path: str, *, namespaced: bool, name_rule: NameRule) -> list[FieldError]:
    """The errors in the metadata of a new object."""
    errors: list[FieldError] = []
    prefix, name = metadata.get("generateName") or "", metadata.get("name") or ""
    if prefix:
        errors += list_invalid(child(path, "generateName"), prefix, build_prefix_rule(name_rule))
    if name:
        errors += list_invalid(child(path, "name"), name, name_rule)
    elif not prefix:
        errors.append(fields.required(child(path, "name"), "name or generateName is required"))
    namespace = metadata.get("namespace") or ""
    if namespace and not namespaced:
        errors.append(fields.forbidden(child(path, "namespace"), "not allowed on this type"))
    elif namespace:
        errors += list_invalid(child(path, "namespace"), namespace, find_dns1123_label_problems)
    return errors + _validate_common(metadata, path)


def validate_metadata_update(new: Json, old: Json, path: str) -> list[FieldError]:
    """The errors in a change of metadata. Fields of the identity that the update omits stay unchanged."""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        added = set(new.get("finalizers") or ()) - set(old.get("finalizers") or ())
        errors += _validate_new_finalizers(sorted(added), child(path, "finalizers"))
    generation = new.get("generation")
    if generation is not None and generation < (old.get("generation") or 0):
        errors.append(fields.invalid(child(path, "generation"), generation, "must not be decremented"))
    errors += [
        fields.invalid(child(path, name), new[name], IMMUTABLE)
        for name in _IDENTITY
        if new.get(name) is not None and not is_same(new[name], old.get(name))
    ]
    return errors + _validate_common(new, path)


def validate_labels(labels: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in labels.items():
        errors += list_invalid(path, key, find_qualified_name_problems)
        errors += list_invalid(path, value or "", find_label_value_problems)
    return errors


def validate_annotations(annotations: Json, path: str) -> list[FieldError]:
    errors = [
        fields.invalid(path, key, problem)
        for key in annotations
        # Annotation keys may hold capitals in their prefix, label keys may not.
        for problem in find_qualified_name_problems(key.lower())
    ]
    if sum(count_bytes(key) + count_bytes(value or "") for key, value in annotations.items()) > ANNOTATIONS_BYTES:
        errors.append(fields.too_long(path, ANNOTATIONS_BYTES))
    return errors


def _validate_common(metadata: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    generation = metadata.get("generation") or 0
    if generation < 0:
        errors.append(fields.invalid(child(path, "generation"), generation, "must be greater than or equal to 0"))
    errors += validate_labels(metadata.get("labels") or {}, child(path, "labels"))
    errors += validate_annotations(metadata.get("annotations") or {}, child(path, "annotations"))
    # Go decodes null into an owner without fields.
    owners = [owner or {} for owner in metadata.get("ownerReferences") or []]
    errors += _validate_owners(owners, child(path, "ownerReferences"))
    errors += _validate_finalizers(metadata.get("finalizers") or [], child(path, "finalizers"))
    return errors + _check_managed_fields(metadata.get("managedFields") or [], child(path, "managedFields"))


def _validate_owners(owners: list[Json], path: str) -> list[FieldError]:
    """The paths have no index, as in Kubernetes."""
    errors: list[FieldError] = []
    controllers: list[str] = []
    for owner in owners:
        api_version, kind, name = (owner.get(field) or "" for field in ("apiVersion", "kind", "name"))
        if not api_version.rpartition("/")[2]:
            errors.append(fields.invalid(child(path, "apiVersion"), api_version, "version must not be empty"))
        missing = [field for field in ("kind", "name", "uid") if not owner.get(field)]
        errors += [fields.invalid(child(path, field), "", "must not be empty") for field in missing]
        if (api_version, kind) == ("v1", "Event"):
            errors.append(fields.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            controllers.append(f"{kind}/{name}")
    if len(controllers) > 1:
        # Kubernetes repeats the error per further owner, each time with all owners; here it is reported once.
        detail = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        errors.append(fields.invalid(path, owners, detail))
    return errors


def _validate_finalizers(finalizers: list[str], path: str) -> list[FieldError]:
    errors = [error for name in finalizers for error in list_invalid(path, name or "", find_qualified_name_problems)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        errors.append(fields.invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"))
    return errors


def _validate_new_finalizers(added: list[str], path: str) -> list[FieldError]:
    if not added:
        return []
    listed = ", ".join(map(go_text.quote, added))
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [fields.forbidden(path, detail)]


def _check_managed_fields(entries: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, entry in enumerate(entries):
        here = index(path, position)
        operation = entry.get("operation") or ""
        if operation not in ("Apply", "Update"):
            errors.append(fields.invalid(child(here, "operation"), operation, "must be `Apply` or `Update`"))
        written_as = entry.get("fieldsType") or ""
        if written_as not in ("", "FieldsV1"):
            errors.append(fields.invalid(child(here, "fieldsType"), written_as, "must be `FieldsV1`"))
        if count_bytes(entry.get("manager") or "") > 128:
            errors.append(fields.too_long(child(here, "manager"), 128))
    return errors
