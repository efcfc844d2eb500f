"""metadata.generation: which kinds have one, and which changes increment it.

A kind that is not listed keeps the generation it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.schema.json_values import is_same

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]


def _get_spec(obj: Json) -> Any:
    return obj.get("spec")


def _get_spec_and_annotations(obj: Json) -> Any:
    return [obj.get("spec"), obj.get("metadata", {}).get("annotations") or {}]


def _get_template(obj: Json) -> Any:
    return obj.get("template")


def _get_all_but_metadata(obj: Json) -> Any:
    return {name: value for name, value in obj.items() if name != "metadata"}


def _get_nothing(_obj: Json) -> Any:
    return None


_WATCHED: Final[dict[str, Callable[[Json], Any]]] = {
    "CronJob": _get_spec,
    "CustomResourceDefinition": _get_spec,
    "DaemonSet": _get_spec,
    "Deployment": _get_spec_and_annotations,
    "EndpointSlice": _get_all_but_metadata,
    "Job": _get_spec,
    "NetworkPolicy": _get_spec,
    "Pod": _get_spec,
    "PodDisruptionBudget": _get_spec,
    "PodTemplate": _get_template,
    "PriorityClass": _get_nothing,
    "ReplicaSet": _get_spec,
    "ReplicationController": _get_spec,
    "StatefulSet": _get_spec,
}


def choose_first_generation(kind: str, sent: int | None) -> int | None:
    return 1 if kind in _WATCHED else sent


def compute_next_generation(new: Json, old: Json, *, kind: str) -> int | None:
    """The generation of an updated object; what a client sends does not matter."""
    before: int | None = old.get("metadata", {}).get("generation")
    watched = _WATCHED.get(kind)
    if watched is None or is_same(watched(new), watched(old)):
        return before
    return (before or 0) + 1
