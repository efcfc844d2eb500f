"""The parts of a CustomResourceDefinition besides its schema: names, columns, subresources, conversion, approval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from plimsoll.core.errors import InvalidInput
from plimsoll.core.names import find_dns1035_label_problems
from plimsoll.core.values import Value
from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema.field_errors import FieldError, child, index
from plimsoll.objects.schema.field_paths import BadPath, find_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.objects.schema.definition.spec import VersionSpec

APPROVAL_ANNOTATION = "api-approved.kubernetes.io"
MAX_SELECTABLE_FIELDS = 8

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_REVIEW_VERSIONS = ("v1", "v1beta1")
_APPROVAL_HELP = "see https://github.com/kubernetes/enhancements/pull/1111"

# With a status subresource, the root of a schema may have these fields (by the names Go gives them) and none of those.
_ALLOWED_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations"
)
_FORBIDDEN_AT_ROOT = (
    *("id", "$schema", "$ref", "default", "maxProperties", "minProperties", "enum", "allOf", "oneOf", "anyOf", "not"),
    *("additionalProperties", "patternProperties", "dependencies", "additionalItems", "definitions", "nullable"),
    *("x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys"),
    *("x-kubernetes-list-type", "x-kubernetes-map-type"),
)


class DefinitionNames(Value):
    """`spec.names`, and what the server accepted of them."""

    plural: str = ""
    singular: str = ""
    kind: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


def read_names(names: Any, path: str) -> DefinitionNames:
    """Raises InvalidInput for a name that is not a string."""
    if names is not None and not isinstance(names, dict):
        raise InvalidInput("must be an object", path=path)
    texts: dict[str, Any] = {}
    for field, name in (("plural", "plural"), ("singular", "singular"), ("kind", "kind"), ("list_kind", "listKind")):
        texts[field] = (names or {}).get(name) or ""
        if not isinstance(texts[field], str):
            raise InvalidInput("must be a string", path=child(path, name))
    for field, name in (("short_names", "shortNames"), ("categories", "categories")):
        listed = (names or {}).get(name) or []
        if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
            raise InvalidInput("must be an array of strings", path=child(path, name))
        texts[field] = tuple(listed)
    return DefinitionNames(**texts)


def validate_names(names: DefinitionNames, path: str) -> list[FieldError]:
    errors = []
    for field, text in (("plural", names.plural), ("singular", names.singular)):
        if text and (problems := find_dns1035_label_problems(text)):
            errors.append(fields.invalid(child(path, field), text, ",".join(problems)))
    for field, text in (("kind", names.kind), ("listKind", names.list_kind)):
        if text and (problems := find_dns1035_label_problems(text.lower())):
            detail = "may have mixed case, but should otherwise match: " + ",".join(problems)
            errors.append(fields.invalid(child(path, field), text, detail))
    errors += _validate_labels(names.short_names, child(path, "shortNames"))
    if names.kind and names.kind == names.list_kind:
        place = child(path, "listKind")
        errors.append(fields.invalid(place, names.list_kind, "kind and listKind may not be the same"))
    return errors + _validate_labels(names.categories, child(path, "categories"))


def _validate_labels(texts: Sequence[str], path: str) -> list[FieldError]:
    return [
        fields.invalid(index(path, position), text, ",".join(problems))
        for position, text in enumerate(texts)
        if (problems := find_dns1035_label_problems(text))
    ]


def find_deprecation_problems(warning: str | None, *, deprecated: bool) -> list[str]:
    if warning is None:
        return []
    if not deprecated:
        return ["can only be set for deprecated versions"]
    problems = []
    if len(warning.encode()) > 256:
        problems.append("must be <= 256 characters long")
    if not warning:
        problems.append("must not be an empty string")
    for position, character in enumerate(warning):
        if not character.isprintable():
            offset = len(warning[:position].encode())
            words = "must only contain printable UTF-8 characters; non-printable character found at index"
            problems.append(f"{words} {offset}")
            break
    return problems


def validate_root(raw_schema: dict[str, Any] | None, path: str) -> list[FieldError]:
    """With a status subresource, the root of the schema may have little besides properties."""
    schema = raw_schema or {}
    if schema.get("type") not in {None, "", "object"}:
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        return [fields.invalid(child(path, "type"), schema["type"], detail)]
    if not any(schema.get(name) for name in _FORBIDDEN_AT_ROOT):
        return []
    words = "fields are allowed at the root of the schema if the status subresource is enabled"
    return [fields.invalid(path, schema, f"only [{_ALLOWED_AT_ROOT}] {words}")]


def validate_columns(columns: list[dict[str, Any]], path: str) -> list[FieldError]:
    errors = []
    for position, column in enumerate(columns):
        place = index(path, position)
        if not column.get("name"):
            errors.append(fields.required(child(place, "name")))
        types = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not column.get("type"):
            errors.append(fields.required(child(place, "type"), types))
        elif column["type"] not in _COLUMN_TYPES:
            errors.append(fields.invalid(child(place, "type"), column["type"], types))
        if column.get("format") and column["format"] not in _COLUMN_FORMATS:
            detail = f"must be one of {','.join(_COLUMN_FORMATS)}"
            errors.append(fields.invalid(child(place, "format"), column["format"], detail))
        if not column.get("jsonPath"):
            errors.append(fields.required(child(place, "JSONPath")))
        else:
            errors += _validate_path(column["jsonPath"], child(place, "JSONPath"))
    return errors


def _validate_path(json_path: Any, path: str) -> list[FieldError]:
    if not isinstance(json_path, str) or not json_path.startswith("."):
        return [fields.invalid(path, json_path, "must be a simple json path starting with .")]
    return []


def validate_subresource(scale: dict[str, Any] | None, path: str) -> list[FieldError]:
    if scale is None:
        return []
    errors = []
    for name, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        place = child(path, f"scale.{name}")
        if not scale.get(name):
            errors.append(fields.required(place))
        elif problems := _validate_path(scale[name], place):
            errors += problems
        elif not scale[name].startswith(f"{root}."):
            errors.append(fields.invalid(place, scale[name], f"should be a json path under {root}"))
    selector = scale.get("labelSelectorPath")
    if selector:
        place = child(path, "scale.labelSelectorPath")
        problems = _validate_path(selector, place)
        errors += problems
        if not problems and not selector.startswith((".spec.", ".status.")):
            errors.append(fields.invalid(place, selector, "should be a json path under either .spec or .status"))
    return errors


def validate_selectable_fields(version: VersionSpec, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not version.selectable_fields:
        return errors
    if version.schema is None:
        detail = "selectableFields may only be set when version.schema.openAPIV3Schema is not included"
        return [fields.invalid(path, "", detail)]
    seen: set[str] = set()
    for position, field in enumerate(version.selectable_fields):
        place = child(index(path, position), "jsonPath")
        json_path = field.get("jsonPath")
        if not json_path or not isinstance(json_path, str):
            errors.append(fields.required(place))
            continue
        found = find_field(json_path, version.schema, allow_brackets=False)
        if isinstance(found, BadPath):
            errors.append(fields.invalid(place, json_path, f"is an invalid path: {found.problem}"))
            continue
        if found.first == "metadata":
            errors.append(fields.invalid(place, json_path, "must not point to fields in metadata"))
        if found.schema is None or found.schema.type not in {"string", "boolean", "integer"}:
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            errors.append(fields.invalid(place, json_path, detail))
        if found.path in seen:
            errors.append(fields.duplicate(place, json_path))
        seen.add(found.path)
    if len(seen) > MAX_SELECTABLE_FIELDS:
        errors.append(fields.too_many(path, len(seen), MAX_SELECTABLE_FIELDS))
    return errors


def validate_conversion(conversion: dict[str, Any], path: str) -> list[FieldError]:
    errors = fields.validate_choice(child(path, "strategy"), conversion.get("strategy"), ("None", "Webhook"))
    webhook = conversion.get("webhook")
    webhook = webhook if isinstance(webhook, dict) else {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    client_path, reviews_path = child(path, "webhookClientConfig"), child(path, "conversionReviewVersions")
    if conversion.get("strategy") != "Webhook":
        detail = "should not be set when strategy is not set to Webhook"
        errors += [fields.forbidden(client_path, detail)] if client is not None else []
        errors += [fields.forbidden(reviews_path, detail)] if reviews else []
        return errors
    if not isinstance(client, dict):
        errors.append(fields.required(client_path, "required when strategy is set to Webhook"))
    elif (client.get("url") is None) == (client.get("service") is None):
        errors.append(fields.required(client_path, "exactly one of url or service is required"))
    return errors + _validate_review_versions(reviews, reviews_path)


def _validate_review_versions(versions: Any, path: str) -> list[FieldError]:
    if not versions or not isinstance(versions, list):
        return [fields.required(path)]
    errors = []
    for position, version in enumerate(versions):
        if version in versions[:position]:
            errors.append(fields.invalid(index(path, position), version, "duplicate version"))
            continue
        problems = find_dns1035_label_problems(str(version))
        errors += [fields.invalid(index(path, position), version, problem) for problem in problems]
    if not any(version in _REVIEW_VERSIONS for version in versions):
        errors.append(fields.invalid(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"))
    return errors


def validate_preserve_unknown_fields(spec: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
    """The v1beta1 switch that preserved all unknown fields: only a definition that has it may retain it."""
    before = (old or {}).get("spec")
    if spec.get("preserveUnknownFields") is not True or (before or {}).get("preserveUnknownFields") is True:
        return []
    detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    return [fields.invalid("spec.preserveUnknownFields", value=True, detail=detail)]


def validate_approval(metadata: dict[str, Any], group: str, old: dict[str, Any] | None) -> list[FieldError]:
    """API groups of the Kubernetes community need an approval, which an annotation names."""
    if not any(group == domain or group.endswith(f".{domain}") for domain in ("k8s.io", "kubernetes.io")):
        return []
    approval = (metadata.get("annotations") or {}).get(APPROVAL_ANNOTATION) or ""
    before = (((old or {}).get("metadata") or {}).get("annotations") or {}).get(APPROVAL_ANNOTATION) or ""
    if _is_approval(approval) or (old is not None and bool(before) == bool(approval) and not _is_approval(before)):
        return []
    path = fields.key("metadata.annotations", APPROVAL_ANNOTATION)
    words = f'protected groups must have approval annotation "{APPROVAL_ANNOTATION}"'
    if not approval:
        return [fields.required(path, f"{words}, {_APPROVAL_HELP}")]
    detail = f'{words} with either a URL or a reason starting with "unapproved", {_APPROVAL_HELP}'
    return [fields.invalid(path, approval, detail)]


def _is_approval(text: str) -> bool:
    if text.startswith("unapproved"):
        return True
    try:
        address = urlsplit(text)
    except ValueError:
        return False
    return bool(address.scheme and address.netloc)
