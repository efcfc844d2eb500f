"""Whether a CustomResourceDefinition is valid, in the words and with the field paths of the real server.

The paths are those of the server's internal form, not of what was sent: what all versions share (schema, subresources,
columns) is reported for `spec.validation`, `spec.subresources` and so on, as if it stood there. With one version that
is everything.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.names import find_dns1035_label_problems, find_subdomain_problems
from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema.admission import metadata_checks, object_metadata
from plimsoll.objects.schema.definition import parts
from plimsoll.objects.schema.definition.default_checks import is_unpruned
from plimsoll.objects.schema.definition.defaults import prepare
from plimsoll.objects.schema.definition.list_type_checks import find_non_atomic_set_items, validate_list_keys
from plimsoll.objects.schema.definition.schema_checks import KNOWN_TYPES, Strictness, validate_schema
from plimsoll.objects.schema.definition.spec import DefinitionSpec, VersionSpec, read_spec
from plimsoll.objects.schema.field_errors import FieldError, child, index
from plimsoll.objects.schema.json_values import Refused, is_same, take_over

if TYPE_CHECKING:
    from plimsoll.objects.schema.structural import StructuralSchema


def validate_definition(crd: Any, old: dict[str, Any] | None = None) -> list[FieldError]:
    """Every error of a definition that is to be created, or to replace `old`. Defaults are filled in before."""
    taken = take_over(crd)
    if isinstance(taken, Refused):
        return [fields.invalid(taken.path, fields.OMITTED, taken.problem)]
    if not isinstance(taken, dict):
        return [fields.type_invalid("", fields.OMITTED, "must be an object")]
    definition = prepare(taken, old)
    metadata = definition.get("metadata") or {}
    problem = object_metadata.decode_problem(metadata)
    if problem is not None:
        return [fields.invalid("metadata", fields.OMITTED, problem)]
    try:
        spec = read_spec(definition.get("spec"))
        old_spec = None if old is None else read_spec(old.get("spec"))
    except InvalidInput as error:
        return [fields.type_invalid(error.path, fields.OMITTED, error.problem)]
    errors = _validate_metadata(metadata, spec, old)
    errors += _validate_new_spec(spec, definition) if old_spec is None else _validate_spec(spec, old_spec)
    if old is not None and old_spec is not None:
        errors += _validate_immutable_fields(spec, old_spec, established=_is_established(old))
    status = definition["status"]
    errors += parts.validate_names(_read_accepted_names(status), "status.acceptedNames")
    errors += _check_stored_versions(status.get("storedVersions"), spec)
    errors += parts.validate_approval(metadata, spec.group, old)
    return errors + parts.validate_preserve_unknown_fields(definition.get("spec") or {}, old)


def _validate_metadata(metadata: dict[str, Any], spec: DefinitionSpec, old: dict[str, Any] | None) -> list[FieldError]:
    if old is not None:
        return metadata_checks.validate_metadata_update(metadata, old.get("metadata") or {}, "metadata")

    def check_name(name: str) -> list[str]:
        problems = find_subdomain_problems(name)
        expected = f"{spec.names.plural}.{spec.group}"
        return problems if name == expected else [*problems, 'must be spec.names.plural+"."+spec.group']

    return metadata_checks.validate_new_metadata(metadata, "metadata", namespaced=False, name_rule=check_name)


_MOST_VALID_SPECS: Final = 256
_valid_specs: set[bytes] = set()
"""Digests of specs that have no errors: all simulated clusters of a process have the same few definitions."""


def _validate_new_spec(spec: DefinitionSpec, definition: dict[str, Any]) -> list[FieldError]:
    digest = hashlib.sha256(repr(definition.get("spec")).encode(errors="surrogatepass")).digest()
    if digest in _valid_specs:
        return []
    errors = _validate_spec(spec, None)
    if not errors:
        if len(_valid_specs) >= _MOST_VALID_SPECS:
            _valid_specs.clear()
        _valid_specs.add(digest)
    return errors


def _validate_spec(spec: DefinitionSpec, old: DefinitionSpec | None) -> list[FieldError]:
    errors = _validate_group(spec.group)
    errors += fields.validate_choice("spec.scope", spec.scope, ("Cluster", "Namespaced"))
    if spec.shared_schema is None:
        for position, version in enumerate(spec.versions):
            if version.schema is None:
                errors.append(fields.required(f"spec.versions[{position}].schema.openAPIV3Schema"))
    relaxed = _determine_strictness(old)
    for position, version in enumerate(spec.versions):
        errors += _validate_version(version, position, spec=spec, old=old, relaxed=relaxed)
    errors += _validate_version_list(spec)
    names = spec.names
    required = (
        ("plural", names.plural),
        ("singular", names.singular),
        ("kind", names.kind),
        ("listKind", names.list_kind),
    )
    errors += [fields.required(f"spec.names.{field}") for field, text in required if not text]
    errors += parts.validate_names(names, "spec.names")
    if spec.shared_schema is not None:
        first = spec.versions[0]
        errors += _validate_schema(first, "spec.validation", has_status=spec.any_status, old=old, relaxed=relaxed)
    if spec.shares_subresources:
        errors += parts.validate_subresource(spec.versions[0].scale, "spec.subresources")
    if spec.shares_columns:
        errors += parts.validate_columns(spec.versions[0].columns, "spec.additionalPrinterColumns")
    if spec.shares_selectable_fields:
        errors += parts.validate_selectable_fields(spec.versions[0], "spec.selectableFields")
    return errors + parts.validate_conversion(spec.conversion, "spec.conversion")


def _validate_group(group: str) -> list[FieldError]:
    if not group:
        return [fields.required("spec.group")]
    problems = find_subdomain_problems(group)
    if problems:
        return [fields.invalid("spec.group", group, ",".join(problems))]
    if "." not in group:
        return [fields.invalid("spec.group", group, "should be a domain with at least one dot")]
    return []


def _validate_version(
    version: VersionSpec, position: int, *, spec: DefinitionSpec, old: DefinitionSpec | None, relaxed: Strictness
) -> list[FieldError]:
    path = index("spec.versions", position)
    errors = []
    problems = find_dns1035_label_problems(version.name)
    if problems:
        errors.append(fields.invalid(child(path, "name"), version.name, ",".join(problems)))
    warning = version.deprecation_warning
    problems = parts.find_deprecation_problems(warning, deprecated=version.deprecated)
    errors += [fields.invalid(child(path, "deprecationWarning"), warning, problem) for problem in problems]
    if spec.shared_schema is None and version.schema is not None:
        place = child(path, "schema")
        errors += _validate_schema(version, place, has_status=version.has_status, old=old, relaxed=relaxed)
    if not spec.shares_subresources:
        errors += parts.validate_subresource(version.scale, child(path, "subresources"))
    if not spec.shares_columns:
        errors += parts.validate_columns(version.columns, child(path, "additionalPrinterColumns"))
    if not spec.shares_selectable_fields:
        errors += parts.validate_selectable_fields(version, child(path, "selectableFields"))
    return errors


def _validate_schema(
    version: VersionSpec, path: str, *, has_status: bool, old: DefinitionSpec | None, relaxed: Strictness
) -> list[FieldError]:
    assert version.schema is not None
    before = (
        next((version_spec for version_spec in old.versions if version_spec.name == version.name), None)
        if old
        else None
    )
    unchanged = before is not None and is_same(before.raw_schema, version.raw_schema)
    strictness = Strictness(
        known_types=relaxed.known_types,
        pruned_defaults=relaxed.pruned_defaults,
        atomic_sets=relaxed.atomic_sets,
        list_keys=relaxed.list_keys,
        cost_per_expression=not unchanged,
    )
    place = child(path, "openAPIV3Schema")
    errors = parts.validate_root(version.raw_schema, place) if has_status else []
    return errors + validate_schema(version.schema, place, strictness=strictness)


def _determine_strictness(old: DefinitionSpec | None) -> Strictness:
    """The requirements of an update: errors that the old definition had already are tolerated."""
    nodes: list[StructuralSchema] = []
    for version in old.versions if old else ():
        nodes += version.schema.walk() if version.schema else ()
    return Strictness(
        known_types=all(not node.type or node.type in KNOWN_TYPES for node in nodes),
        pruned_defaults=not any(node.default is not None and is_unpruned(node) for node in nodes),
        atomic_sets=not any(find_non_atomic_set_items(node) for node in nodes),
        list_keys=not any(validate_list_keys(node, "") for node in nodes),
    )


def _validate_version_list(spec: DefinitionSpec) -> list[FieldError]:
    errors = []
    names = [version.name for version in spec.versions]
    shown = [version.print_version(spec) for version in spec.versions]
    if len(set(names)) != len(names):
        errors.append(fields.invalid("spec.versions", shown, "must contain unique version names"))
    if sum(version.storage for version in spec.versions) != 1:
        detail = "must have exactly one version marked as storage version"
        errors.append(fields.invalid("spec.versions", shown or None, detail))
    if names and names[0] and (problems := find_dns1035_label_problems(names[0])):
        errors.append(fields.invalid("spec.version", names[0], ",".join(problems)))
    return errors


def _validate_immutable_fields(spec: DefinitionSpec, old: DefinitionSpec, *, established: bool) -> list[FieldError]:
    watched = []
    if established:
        watched += [
            ("spec.scope", spec.scope, old.scope),
            ("spec.names.kind", spec.names.kind, old.names.kind),
        ]
    watched += [
        ("spec.group", spec.group, old.group),
        ("spec.names.plural", spec.names.plural, old.names.plural),
    ]
    return [fields.invalid(path, new, "field is immutable") for path, new, before in watched if new != before]


def _is_established(crd: dict[str, Any]) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(condition.get("type") == "Established" and condition.get("status") == "True" for condition in conditions)


def _read_accepted_names(status: dict[str, Any]) -> parts.DefinitionNames:
    try:
        return parts.read_names(status.get("acceptedNames"), "status.acceptedNames")
    except InvalidInput:
        return parts.DefinitionNames()


def _check_stored_versions(stored: list[str] | None, spec: DefinitionSpec) -> list[FieldError]:
    path = "status.storedVersions"
    if not stored:
        return [fields.invalid(path, None, "must have at least one stored version")]
    names = {version.name for version in spec.versions}
    errors = [
        fields.invalid(path, stored, f"must have the storage version {version.name}")
        for version in spec.versions
        if version.storage and version.name not in stored
    ]
    return errors + [
        fields.invalid(index(path, position), name, _format_still_stored(name))
        for position, name in enumerate(stored)
        if name not in names
    ]


def _format_still_stored(name: str) -> str:
    return (
        f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until "
        f"a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
    )
