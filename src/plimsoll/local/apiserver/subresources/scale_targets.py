"""The scale targets: where a kind keeps its replicas; built-in kinds in one place, custom ones as they declare it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.selectors import LabelSelector, parse_requirement
from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.resources.registry import ServedResource, get_compiled
from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema.admission.scale import ScalePaths, UnreadableScale, read

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]
Paths = dict[str, tuple[str, ...] | None]


class ScaleTarget(Protocol):
    """One resource seen as something with replicas. `paths`: where each served version keeps them."""

    paths: Paths

    def build_scale(self, obj: Json) -> Json:
        """Spec and status of the Scale; replicas that are not set are not there."""
        ...

    def check(self, name: str, replicas: int | None) -> None:
        """Raises the error for an invalid number."""
        ...

    def set_replicas(self, obj: Json, replicas: int) -> Json: ...


def find_scale_target(resource: ServedResource) -> ScaleTarget:
    return CustomScaleTarget(resource) if resource.is_custom else BuiltinScaleTarget(resource)


class BuiltinScaleTarget:
    """Deployments, ReplicaSets, StatefulSets and ReplicationControllers."""

    def __init__(self, resource: ServedResource) -> None:
        self.paths: Paths = {resource.api_version: ("spec", "replicas")}

    def build_scale(self, obj: Json) -> Json:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        return {
            "spec": {"replicas": spec.get("replicas", 0)},
            "status": {"replicas": status.get("replicas", 0), "selector": _format_selector(spec.get("selector") or {})},
        }

    def check(self, name: str, replicas: int | None) -> None:
        if replicas is not None and replicas < 0:
            error = fields.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
            raise status_errors.invalid(name, group="autoscaling", kind="Scale", errors=[error])

    def set_replicas(self, obj: Json, replicas: int) -> Json:
        return {**obj, "spec": {**obj["spec"], "replicas": replicas}}


class CustomScaleTarget:
    """A custom resource whose version declares the scale subresource; its number is checked with the object."""

    def __init__(self, resource: ServedResource) -> None:
        compiled = get_compiled(resource)
        declared = compiled.get_version(resource.version).scale
        assert declared is not None, f"{resource.full_name} has no scale subresource"
        self._declared: ScalePaths = declared
        self.paths: Paths = {
            version.api_version: _split_path(version.scale.spec_replicas) if version.scale is not None else None
            for version in compiled.versions.values()
            if version.served
        }

    def build_scale(self, obj: Json) -> Json:
        replicas = _read(obj, self._declared.spec_replicas, int)
        selector = self._declared.label_selector
        return {
            "spec": {} if replicas is None else {"replicas": replicas},
            "status": {
                "replicas": _read(obj, self._declared.status_replicas, int) or 0,
                "selector": (_read(obj, selector, str) or "") if selector else "",
            },
        }

    def check(self, name: str, replicas: int | None) -> None:  # noqa: ARG002 - part of the protocol
        if replicas is None:
            raise status_errors.bad_request(f'the spec replicas field "{self._declared.spec_replicas}" cannot be empty')

    def set_replicas(self, obj: Json, replicas: int) -> Json:
        return _set_at_path(obj, _split_path(self._declared.spec_replicas), replicas)

    @property
    def replicas_path(self) -> str:
        return self._declared.spec_replicas


def _read(obj: Json, path: str, wanted: type) -> Any:
    found = read(obj, path, wanted)
    if isinstance(found, UnreadableScale):
        raise status_errors.unexpected(found.problem)
    return found


def _split_path(path: str) -> tuple[str, ...]:
    return tuple(path.removeprefix(".").split("."))


def _set_at_path(obj: Json, steps: tuple[str, ...], value: int) -> Json:
    """The object with `value` at the end of the path; maps on the way are made where there are none."""
    result = dict(obj)
    place = result
    for step in steps[:-1]:
        inner = place.get(step)
        place[step] = dict(inner) if isinstance(inner, dict) else {}
        place = place[step]
    place[steps[-1]] = value
    return result


def _format_selector(selector: Json) -> str:
    """As text, which is what an autoscaler asks for pods with. A ReplicationController's selector is a plain map."""
    is_structured = any(field in selector for field in ("matchLabels", "matchExpressions"))
    try:
        if not is_structured:
            return str(LabelSelector.from_parts(_as_texts(selector)))
        expressions = [
            parse_requirement(expression.get("key", ""), expression.get("operator", ""), expression.get("values") or ())
            for expression in selector.get("matchExpressions") or ()
        ]
        return str(LabelSelector.from_parts(_as_texts(selector.get("matchLabels") or {}), expressions))
    except InvalidSelector as error:
        raise status_errors.unexpected(str(error)) from error


def _as_texts(labels: Mapping[str, Any]) -> dict[str, str]:
    return {key: value for key, value in labels.items() if isinstance(value, str)}
