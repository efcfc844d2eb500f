"""Decodes the metadata of objects without a Go type like Go, and drops unknown fields.

It applies to custom resources, to resources embedded in them, and to CRDs. `metadata_checks` validates the metadata.
"""

from __future__ import annotations

from typing import Any

from plimsoll.objects.schema.field_errors import child, index

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
_GO_STRUCTS: dict[str, tuple[str, dict[str, tuple[type, str]]]] = {
    "ownerReferences": (
        "OwnerReference",
        {
            "apiVersion": (str, "string"),
            "kind": (str, "string"),
            "name": (str, "string"),
            "uid": (str, "types.UID"),
            "controller": (bool, "bool"),
            "blockOwnerDeletion": (bool, "bool"),
        },
    ),
    "managedFields": (
        "ManagedFieldsEntry",
        {
            "manager": (str, "string"),
            "operation": (str, "v1.ManagedFieldsOperationType"),
            "apiVersion": (str, "string"),
            "time": (str, "v1.Time"),
            "fieldsType": (str, "string"),
            "fieldsV1": (object, "v1.FieldsV1"),
            "subresource": (str, "string"),
        },
    ),
}
"""The structs inside of lists of the metadata: their Go names and fields."""
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def decode_problem(metadata: Any) -> str | None:
    """The message of Go's decoder about metadata of wrong types; empty if there is none."""
    if not isinstance(metadata, dict):
        return f"json: cannot unmarshal {_get_json_type_name(metadata)} into Go value of type v1.ObjectMeta"
    for name, (expected, go_type) in _GO_TYPES.items():
        value = metadata.get(name)
        if value is None:
            continue
        if not isinstance(value, expected) or isinstance(value, bool):
            return _cannot_unmarshal(value, name, go_type)
        wrong = _find_wrong_entry(name, value)
        if wrong is not None:
            inner_type = go_type.removeprefix("[]") if name in _GO_STRUCTS else "string"
            return _cannot_unmarshal(wrong, name, inner_type)
        if name in _GO_STRUCTS and (problem := _find_struct_problem(name, value)):
            return problem
    return None


def _find_struct_problem(name: str, entries: Any) -> str | None:
    struct, types = _GO_STRUCTS[name]
    for entry in entries:
        for field, value in (entry or {}).items():
            expected, go_type = types.get(field, (object, ""))
            if value is not None and not isinstance(value, expected):
                return _cannot_unmarshal(value, f"{name}.{field}", go_type, struct=struct)
    return None


def _find_wrong_entry(name: str, value: Any) -> Any | None:
    """The first entry of a map or list that has the wrong type."""
    entries: list[Any] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    expected = dict if name in _GO_STRUCTS else str
    return next((entry for entry in entries if entry is not None and not isinstance(entry, expected)), None)


def _cannot_unmarshal(value: Any, name: str, go_type: str, *, struct: str = "ObjectMeta") -> str:
    return f"json: cannot unmarshal {_get_json_type_name(value)} into Go struct field {struct}.{name} of type {go_type}"


def _get_json_type_name(value: Any) -> str:
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
    for name, (_, known) in _GO_STRUCTS.items():
        for position, item in enumerate(metadata.get(name, ())):
            for extra in [extra for extra in item or () if extra not in known]:
                unknown.append(child(index(child(path, name), position), extra))
                del item[extra]
    return sorted(unknown)
