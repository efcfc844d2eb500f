"""metadata.generation: which kinds have one, and which changes increment it.

A kind that is not listed keeps the generation it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.schema.json_values import same

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]


def _spec(obj: Json) -> Any:
    return obj.get("spec")


def _spec_and_annotations(obj: Json) -> Any:
    return [obj.get("spec"), obj.get("metadata", {}).get("annotations") or {}]


def _template(obj: Json) -> Any:
    return obj.get("template")


def _all_but_metadata(obj: Json) -> Any:
    return {name: value for name, value in obj.items() if name != "metadata"}


def _nothing(_obj: Json) -> Any:
    return None


_WATCHED: Final[dict[str, Callable[[Json], Any]]] = {
    "CronJob": _spec,
    "CustomResourceDefinition": _spec,
    "DaemonSet": _spec,
    "Deployment": _spec_and_annotations,
    "EndpointSlice": _all_but_metadata,
    "Job": _spec,
    "NetworkPolicy": _spec,
    "Pod": _spec,
    "PodDisruptionBudget": _spec,
    "PodTemplate": _template,
    "PriorityClass": _nothing,
    "ReplicaSet": _spec,
    "ReplicationController": _spec,
    "StatefulSet": _spec,
}


def first_generation(kind: str, sent: int | None) -> int | None:
    return 1 if kind in _WATCHED else sent


def next_generation(new: Json, old: Json, *, kind: str) -> int | None:
    """The generation of an updated object; what a client sends does not matter."""
    before: int | None = old.get("metadata", {}).get("generation")
    watched = _WATCHED.get(kind)
    if watched is None or same(watched(new), watched(old)):
        return before
    return (before or 0) + 1
