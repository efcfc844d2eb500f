"""The scale subresource of a custom resource: its paths must lead to numbers, whatever the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.values import Value
from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema import go_text

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

MAX_REPLICAS = 2**31 - 1


class ScalePaths(Value):
    """`spec.versions[].subresources.scale` of a definition."""

    spec_replicas: str
    status_replicas: str
    label_selector: str | None = None


class UnreadableScale(Value):
    """A path that meets a value of the wrong type."""

    problem: str


def validate_spec(resource: dict[str, Any], paths: ScalePaths) -> list[FieldError]:
    return _validate_replicas(resource, paths.spec_replicas)


def validate_status(resource: dict[str, Any], paths: ScalePaths) -> list[FieldError]:
    errors = _validate_replicas(resource, paths.status_replicas)
    if paths.label_selector:
        selector = read(resource, paths.label_selector, str)
        if isinstance(selector, UnreadableScale):
            errors.append(fields.invalid(paths.label_selector, "", selector.problem))
    return errors


def _validate_replicas(resource: dict[str, Any], path: str) -> list[FieldError]:
    replicas = read(resource, path, int)
    if isinstance(replicas, UnreadableScale):
        return [fields.invalid(path, 0, replicas.problem)]
    if replicas is not None and replicas < 0:
        return [fields.invalid(path, replicas, "should be a non-negative integer")]
    if replicas is not None and replicas > MAX_REPLICAS:
        return [fields.invalid(path, replicas, f"should be less than or equal to {MAX_REPLICAS}")]
    return []


def read(resource: dict[str, Any], path: str, wanted: type) -> Any | UnreadableScale:
    """The value at a dotted path (`.spec.replicas`); None if there is none."""
    steps = path.removeprefix(".").split(".")
    value: Any = resource
    for position, step in enumerate(steps):
        if value is None:
            return None
        if not isinstance(value, dict):
            return _build_accessor_error(steps[: position + 1], value, "map[string]interface{}")
        if step not in value:
            return None
        value = value[step]
    if not isinstance(value, wanted) or isinstance(value, bool):
        return _build_accessor_error(steps, value, "int64" if wanted is int else "string")
    return value


def _build_accessor_error(steps: list[str], value: Any, expected: str) -> UnreadableScale:
    shown, type_ = go_text.format_plain(value), go_text.get_type_name(value)
    problem = f".{'.'.join(steps)} accessor error: {shown} is of the type {type_}, expected {expected}"
    return UnreadableScale(problem=problem)
