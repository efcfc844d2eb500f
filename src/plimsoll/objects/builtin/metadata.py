"""Validation of metadata: names by the rule of their kind, labels, annotations, owners, finalizers; what may change.

Used by `kinds` for every built-in kind and by `pods` for templates. The order of errors is Kubernetes': the prefix
before the name, then labels, annotations, owners, finalizers. A missing namespace is no error here: the API server
fills it in from the URL before it validates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.label_syntax import label_key_problems, label_value_problems
from plimsoll.objects.builtin.syntax import invalid_each, size
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema import go_text, naming
from plimsoll.objects.schema.json_values import same

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError
    from plimsoll.objects.schema.naming import NameRule

Json = dict[str, Any]

ANNOTATIONS_BYTES: Final = 256 * 1024
IMMUTABLE: Final = "field is immutable"
_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
_IDENTITY: Final = ("name", "namespace", "uid")


def create_errors(metadata: Json, *, rule: NameRule, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    prefix, name = metadata.get("generateName", ""), metadata.get("name", "")
    if prefix:
        errors += [fe.invalid("metadata.generateName", prefix, problem) for problem in naming.of_prefix(rule)(prefix)]
    if name:
        errors += invalid_each("metadata.name", name, rule)
    elif not prefix:
        errors.append(fe.required("metadata.name", "name or generateName is required"))
    namespace = metadata.get("namespace", "")
    if namespaced and namespace:
        errors += invalid_each("metadata.namespace", namespace, naming.dns1123_label_problems)
    return [*errors, *_common_errors(metadata)]


def update_errors(new: Json, old: Json) -> list[FieldError]:
    """What may not change. An update that does not mention its uid or namespace means the stored ones."""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        errors += _new_finalizer_errors(new.get("finalizers", []), old.get("finalizers", []))
    generation = new.get("generation", 0)
    if generation and generation < old.get("generation", 0):
        errors.append(fe.invalid("metadata.generation", generation, "must not be decremented"))
    errors += [
        fe.invalid(f"metadata.{name}", new[name], IMMUTABLE)
        for name in _IDENTITY
        if new.get(name) and old.get(name) and new[name] != old[name]
    ]
    return [*errors, *_common_errors(new)]


def immutable_errors(path: str, new: Any, old: Any) -> list[FieldError]:
    return [] if same(new, old) else [fe.invalid(path, new, IMMUTABLE)]


def label_errors(labels: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in labels.items():
        errors += invalid_each(path, key, label_key_problems)
        errors += invalid_each(path, value, label_value_problems)
    return errors


def annotation_errors(annotations: Json, path: str) -> list[FieldError]:
    errors = [
        fe.invalid(path, key, problem)
        for key in annotations
        # Annotation keys may hold capitals in their prefix, label keys may not.
        for problem in label_key_problems(key.lower())
    ]
    if sum(size(key) + size(value) for key, value in annotations.items()) > ANNOTATIONS_BYTES:
        errors.append(fe.too_long(path, ANNOTATIONS_BYTES))
    return errors


def finalizer_name_errors(name: str, path: str) -> list[FieldError]:
    errors = invalid_each(path, name, label_key_problems)
    return [*errors, *_standard_finalizer_errors(name, path)]


def _common_errors(metadata: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    generation = metadata.get("generation", 0)
    if generation < 0:
        errors.append(fe.invalid("metadata.generation", generation, "must be greater than or equal to 0"))
    errors += label_errors(metadata.get("labels", {}), "metadata.labels")
    errors += annotation_errors(metadata.get("annotations", {}), "metadata.annotations")
    errors += _owner_errors(metadata.get("ownerReferences", []))
    errors += _finalizer_errors(metadata.get("finalizers", []))
    errors += _managed_field_errors(metadata.get("managedFields", []))
    for position, finalizer in enumerate(metadata.get("finalizers", [])):
        errors += _standard_finalizer_errors(finalizer, f"metadata.finalizers[{position}]")
    return errors


def _owner_errors(owners: list[Json]) -> list[FieldError]:
    """Paths without an index: Kubernetes gives none here."""
    path = "metadata.ownerReferences"
    errors: list[FieldError] = []
    controllers: list[str] = []
    for owner in owners:
        api_version, kind, name = owner.get("apiVersion", ""), owner.get("kind", ""), owner.get("name", "")
        if not api_version.rpartition("/")[2]:
            errors.append(fe.invalid(f"{path}.apiVersion", api_version, "version must not be empty"))
        errors += [
            fe.invalid(f"{path}.{field}", "", "must not be empty")
            for field in ("kind", "name", "uid")
            if not owner.get(field)
        ]
        if (api_version, kind) == ("v1", "Event"):
            errors.append(fe.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            controllers.append(f"{kind}/{name}")
    if len(controllers) > 1:
        # Kubernetes says it of every further one, each time with all owners; once is enough, and stays small.
        detail = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        errors.append(fe.invalid(path, owners, detail))
    return errors


def _finalizer_errors(finalizers: list[str]) -> list[FieldError]:
    path = "metadata.finalizers"
    errors = [error for name in finalizers for error in invalid_each(path, name, label_key_problems)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        errors.append(fe.invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"))
    return errors


def _standard_finalizer_errors(name: str, path: str) -> list[FieldError]:
    if "/" in name or name in _STANDARD_FINALIZERS:
        return []
    return [fe.invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")]


def _new_finalizer_errors(new: list[str], old: list[str]) -> list[FieldError]:
    added = sorted(set(new) - set(old))
    if not added:
        return []
    listed = ", ".join(map(go_text.quoted, added))
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [fe.forbidden("metadata.finalizers", detail)]


def _managed_field_errors(entries: list[Json]) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, entry in enumerate(entries):
        path = f"metadata.managedFields[{position}]"
        operation = entry.get("operation", "")
        if operation not in ("Apply", "Update"):
            errors.append(fe.invalid(f"{path}.operation", operation, "must be `Apply` or `Update`"))
        written_as = entry.get("fieldsType", "")
        if written_as not in ("", "FieldsV1"):
            errors.append(fe.invalid(f"{path}.fieldsType", written_as, "must be `FieldsV1`"))
        if size(entry.get("manager", "")) > 128:
            errors.append(fe.too_long(f"{path}.manager", 128))
    return errors
