"""The fields that each kind can be selected by, how they are read, and the error for other fields.

The store keeps the texts beside each object (`Store.select_fields`), so that selecting parses nothing. The tables are
those of the kinds' registrations in Kubernetes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.strategies.events import EVENTS, NEW_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from plimsoll.local.apiserver.resources.registry import ServedResource

Json = dict[str, Any]

_COMMON: Final = ("metadata.name", "metadata.namespace")
_REFERENCE: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
# By what they are stored as: path → text of an absent field.
_FIELDS: Final[dict[str, dict[str, str]]] = {
    "pods": {
        "spec.nodeName": "",
        "spec.restartPolicy": "",
        "spec.schedulerName": "",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "false",
        "status.phase": "",
        "status.podIP": "",
        "status.nominatedNodeName": "",
    },
    "nodes": {"spec.unschedulable": "false"},
    "namespaces": {"status.phase": ""},
    "secrets": {"type": ""},
    "services": {"spec.clusterIP": "", "spec.type": ""},
    "replicationcontrollers": {"status.replicas": "0"},
    "batch/jobs": {"status.successful": "0"},
    "events": {
        **{f"involvedObject.{name}": "" for name in _REFERENCE},
        "reason": "",
        "reportingComponent": "",
        "source": "",
        "type": "",
    },
}
_WHERE_ELSE: Final = {"status.successful": "status.succeeded"}


class FieldLabels:
    """The selectable fields of one resource in one version."""

    def __init__(self, resource: ServedResource) -> None:
        self._resource = resource
        self._own = list_selectable(resource)

    def find_stored_name(self, label: str) -> str | None:
        """The name under which the store keeps the field; none if it cannot be selected by."""
        if self._resource.api_version == EVENTS:
            label = _from_new_name(label)
        return label if label in _COMMON or label in self._own else None

    def describe_unsupported_label(self, label: str) -> str:
        resource = self._resource
        if resource.stored_as == "batch/jobs":
            return f'field label "{label}" not supported for Job'
        if resource.is_custom or resource.stored_as in _FIELDS:
            return f"field label not supported: {label}"
        known = ", ".join(f'"{name}"' for name in _COMMON)
        return f'"{label}" is not a known field selector: only {known}'


def _from_new_name(label: str) -> str:
    for old, new in NEW_NAMES.items():
        if label == new or label.startswith(f"{new}."):
            return old + label[len(new) :]
    return label


def list_selectable(resource: ServedResource) -> Mapping[str, str]:
    """The fields of a resource beyond name and namespace."""
    if not resource.is_custom:
        return _FIELDS.get(resource.stored_as, {})
    assert resource.definition is not None
    versions = resource.definition["spec"]["versions"]
    own = next(version for version in versions if version["name"] == resource.version)
    return {field["jsonPath"].removeprefix("."): "" for field in own.get("selectableFields") or ()}


_BELOW_THE_TOP: Final = 2


def build_reader(fields: Iterable[tuple[str, str]]) -> Callable[[Mapping[str, Any]], dict[str, str]]:
    """A function for `Store.select_fields`; name and namespace are there for every kind."""
    paths = [(name, _WHERE_ELSE.get(name, name).split("."), absent) for name, absent in fields]

    # Nearly all lie one below the top: those of one part are read together.
    parts: dict[str, list[tuple[str, str, str]]] = {}
    others = []
    for name, path, absent in paths:
        if len(path) == _BELOW_THE_TOP:
            parts.setdefault(path[0], []).append((name, path[1], absent))
        else:
            others.append((name, path, absent))

    def read(body: Mapping[str, Any]) -> dict[str, str]:
        metadata = body["metadata"]
        found = {"metadata.name": metadata.get("name", ""), "metadata.namespace": metadata.get("namespace", "")}
        for part, steps in parts.items():
            inside = body.get(part)
            if not isinstance(inside, dict):
                inside = {}
            for name, step, absent in steps:
                value = inside.get(step)
                found[name] = value if type(value) is str else _format(value, absent)
        for name, path, absent in others:
            found[name] = _read_text(body, path, absent)
        if body.get("kind") == "Event" and "source" in found:
            component = (body.get("source") or {}).get("component")
            found["source"] = component or body.get("reportingComponent") or ""
        return found

    return read


def _read_text(body: Mapping[str, Any], path: list[str], absent: str) -> str:
    value: Any = body
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return _format(value, absent)


def _format(value: Any, absent: str) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return absent
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
