"""The metadata of an object: decoding it as Go would, dropping what is unknown, and judging what is there.

Works on JSON. Used for custom resources, for resources embedded in them and for CRDs; the rules are those of every
kind, only the rule for the name differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema import naming
from plimsoll.objects.schema.field_errors import FieldError, child, index
from plimsoll.objects.schema.json_values import same

if TYPE_CHECKING:
    from plimsoll.objects.schema.naming import NameRule

ANNOTATIONS_LIMIT_BYTES = 256 * 1024

_GO_TYPES: dict[str, tuple[type, str]] = {
    "name": (str, "string"),
    "generateName": (str, "string"),
    "namespace": (str, "string"),
    "selfLink": (str, "string"),
    "uid": (str, "types.UID"),
    "resourceVersion": (str, "string"),
    "generation": (int, "int64"),
    "creationTimestamp": (str, "v1.Time"),
    "deletionTimestamp": (str, "v1.Time"),
    "deletionGracePeriodSeconds": (int, "int64"),
    "labels": (dict, "map[string]string"),
    "annotations": (dict, "map[string]string"),
    "ownerReferences": (list, "[]v1.OwnerReference"),
    "finalizers": (list, "[]string"),
    "managedFields": (list, "[]v1.ManagedFieldsEntry"),
}
_KNOWN_INSIDE = {
    "ownerReferences": {"apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"},
    "managedFields": {"manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"},
}
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def decode_problem(metadata: Any) -> str | None:
    """What Go's decoder says about metadata of the wrong types, or nothing."""
    if not isinstance(metadata, dict):
        return f"json: cannot unmarshal {_json_name(metadata)} into Go value of type v1.ObjectMeta"
    for name, (expected, go_type) in _GO_TYPES.items():
        value = metadata.get(name)
        if value is None:
            continue
        if not isinstance(value, expected) or isinstance(value, bool):
            return _cannot_unmarshal(value, name, go_type)
        wrong = _wrong_inside(name, value)
        if wrong is not None:
            inner_type = go_type.removeprefix("[]") if name in _KNOWN_INSIDE else "string"
            return _cannot_unmarshal(wrong, name, inner_type)
    return None


def _wrong_inside(name: str, value: Any) -> Any | None:
    """The first entry of a map or list that has the wrong type."""
    entries: list[Any] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    expected = dict if name in _KNOWN_INSIDE else str
    return next((entry for entry in entries if entry is not None and not isinstance(entry, expected)), None)


def _cannot_unmarshal(value: Any, name: str, go_type: str) -> str:
    return f"json: cannot unmarshal {_json_name(value)} into Go struct field ObjectMeta.{name} of type {go_type}"


def _json_name(value: Any) -> str:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def drop_unknown(metadata: dict[str, Any], path: str) -> list[str]:
    """Remove what ObjectMeta does not have, and what it would not write: nulls and empty values. Unknown paths."""
    unknown = []
    for name in list(metadata):
        if name not in _GO_TYPES:
            unknown.append(child(path, name))
            del metadata[name]
        elif metadata[name] in (None, "", {}, []):
            del metadata[name]
    for name, known in _KNOWN_INSIDE.items():
        for position, item in enumerate(metadata.get(name, ())):
            for extra in [extra for extra in item or () if extra not in known]:
                unknown.append(child(index(child(path, name), position), extra))
                del item[extra]
    return sorted(unknown)


def metadata_errors(metadata: dict[str, Any], path: str, *, namespaced: bool, name_rule: NameRule) -> list[FieldError]:
    """What is wrong with the metadata of an object that is to be created; it was decodable before."""
    errors = []
    prefix = metadata.get("generateName") or ""
    if prefix:
        problems = naming.of_prefix(name_rule)(prefix)
        errors += [fields.invalid(child(path, "generateName"), prefix, problem) for problem in problems]
    name = metadata.get("name") or ""
    if name:
        errors += [fields.invalid(child(path, "name"), name, problem) for problem in name_rule(name)]
    elif not prefix:
        errors.append(fields.required(child(path, "name"), "name or generateName is required"))
    namespace = metadata.get("namespace") or ""
    if namespace and not namespaced:
        errors.append(fields.forbidden(child(path, "namespace"), "not allowed on this type"))
    elif namespace:
        problems = naming.dns1123_label_problems(namespace)
        errors += [fields.invalid(child(path, "namespace"), namespace, problem) for problem in problems]
    return errors + _common_errors(metadata, path)


def metadata_update_errors(new: dict[str, Any], old: dict[str, Any], path: str) -> list[FieldError]:
    """What is wrong with a change of metadata. Identity that the update does not mention stays as it is."""
    errors = [
        fields.invalid(child(path, name), new[name], "field is immutable")
        for name in _IMMUTABLE
        if new.get(name) is not None and not same(new[name], old.get(name))
    ]
    if (new.get("generation") or 0) < (old.get("generation") or 0) and new.get("generation") is not None:
        errors.append(fields.invalid(child(path, "generation"), new["generation"], "must not be decremented"))
    if old.get("deletionTimestamp"):
        added = sorted(set(new.get("finalizers") or ()) - set(old.get("finalizers") or ()))
        if added:
            listed = ", ".join(f'"{finalizer}"' for finalizer in added)
            detail = (
                "no new finalizers can be added if the object is being deleted, "
                f"found new finalizers []string{{{listed}}}"
            )
            errors.append(fields.forbidden(child(path, "finalizers"), detail))
    return errors + _common_errors(new, path)


def _common_errors(metadata: dict[str, Any], path: str) -> list[FieldError]:
    errors = []
    generation = metadata.get("generation") or 0
    if generation < 0:
        detail = "must be greater than or equal to 0"
        errors.append(fields.invalid(child(path, "generation"), generation, detail))
    errors += label_errors(metadata.get("labels") or {}, child(path, "labels"))
    errors += annotation_errors(metadata.get("annotations") or {}, child(path, "annotations"))
    errors += _owner_errors(metadata.get("ownerReferences") or [], child(path, "ownerReferences"))
    return errors + _finalizer_errors(metadata.get("finalizers") or [], child(path, "finalizers"))


def label_errors(labels: dict[str, str], path: str) -> list[FieldError]:
    errors = []
    for name in sorted(labels):
        value = labels[name] or ""
        errors += [fields.invalid(path, name, problem) for problem in naming.qualified_name_problems(name)]
        errors += [fields.invalid(path, value, problem) for problem in naming.label_value_problems(value)]
    return errors


def annotation_errors(annotations: dict[str, str], path: str) -> list[FieldError]:
    errors = []
    size = 0
    for name in sorted(annotations):
        problems = naming.qualified_name_problems(name.lower())
        errors += [fields.invalid(path, name, problem) for problem in problems]
        size += len(name.encode()) + len((annotations[name] or "").encode())
    if size > ANNOTATIONS_LIMIT_BYTES:
        errors.append(fields.too_long(path, ANNOTATIONS_LIMIT_BYTES))
    return errors


def _owner_errors(owners: list[dict[str, Any]], path: str) -> list[FieldError]:
    errors = []
    controllers = []
    for position, owner in enumerate(owners):
        here = index(path, position)
        if not (owner.get("apiVersion") or "").rpartition("/")[2]:
            detail = "version must not be empty"
            errors.append(fields.invalid(child(here, "apiVersion"), owner.get("apiVersion") or "", detail))
        missing = [name for name in ("kind", "name", "uid") if not owner.get(name)]
        errors += [fields.invalid(child(here, name), "", "must not be empty") for name in missing]
        if owner.get("controller"):
            controllers.append(owner.get("name") or "")
    for second in controllers[1:]:
        detail = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {second}"
        )
        errors.append(fields.invalid(path, owners, detail))
    return errors


def _finalizer_errors(finalizers: list[str], path: str) -> list[FieldError]:
    errors = []
    for finalizer in finalizers:
        problems = naming.qualified_name_problems(finalizer or "")
        errors += [fields.invalid(path, finalizer, problem) for problem in problems]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(fields.invalid(path, finalizers, detail))
    return errors
