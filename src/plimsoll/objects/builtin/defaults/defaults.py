"""The defaults of an API server for built-in kinds.

Defaults come before validation, which depends on them (a Job's restart policy is Always by default, and invalid for
that reason). `copy_with_defaults` and `copy_spelled_out` take a decoded object and return a new one; `fill_in`,
`prepare_for_create` and `write_out_empty_fields` change the object in place.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.builtin.decoding import openapi
from plimsoll.objects.builtin.decoding.go_types import get_struct_name
from plimsoll.objects.builtin.defaults import others, pods, workloads
from plimsoll.objects.schema.json_values import copy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from plimsoll.objects.builtin.decoding.openapi import HeldStruct

Json = dict[str, Any]

# Empty fields that Go writes; schemas do not distinguish them from those that Go omits.
_ALWAYS_WRITTEN: Final = frozenset({"StatefulSetStatus.availableReplicas", "StatefulSetSpec.serviceName"})

# Every other kind is created without a status, whatever the client sends.
_KEEPS_STATUS: Final = frozenset({"Node", "Namespace", "TokenReview", "TokenRequest"})
_NEVER_TAKEN: Final = frozenset({"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"})

_BY_KIND: Final[dict[tuple[str, str], Callable[[Json], None]]] = {
    ("v1", "Pod"): pods.default_pod,
    ("v1", "PodTemplate"): lambda obj: pods.default_template(obj.setdefault("template", {})),
    ("v1", "ReplicationController"): workloads.default_replication_controller,
    ("apps/v1", "Deployment"): workloads.default_deployment,
    ("apps/v1", "ReplicaSet"): workloads.default_replica_set,
    ("apps/v1", "StatefulSet"): workloads.default_stateful_set,
    ("apps/v1", "DaemonSet"): workloads.default_daemon_set,
    ("batch/v1", "Job"): workloads.default_job,
    ("batch/v1", "CronJob"): workloads.default_cron_job,
    ("v1", "Service"): others.default_service,
    ("v1", "Secret"): others.default_secret,
    ("v1", "Namespace"): others.default_namespace,
    ("v1", "Node"): others.default_node,
    ("v1", "PersistentVolume"): others.default_persistent_volume,
    ("v1", "PersistentVolumeClaim"): others.default_persistent_volume_claim,
    ("v1", "LimitRange"): others.limit_range,
    ("discovery.k8s.io/v1", "EndpointSlice"): others.default_endpoint_slice,
    ("storage.k8s.io/v1", "StorageClass"): others.default_storage_class,
    ("scheduling.k8s.io/v1", "PriorityClass"): others.default_priority_class,
    ("networking.k8s.io/v1", "NetworkPolicy"): others.default_network_policy,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): others.default_role_binding,
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): others.default_role_binding,
}

# Only the spec of these gets defaults beyond the schema's.
_WITHOUT_STATUS_DEFAULTS: Final = frozenset(
    {("v1", "Pod"), ("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")}
)


def copy_with_defaults(obj: Json) -> Json:
    whole: Json = copy(obj)
    fill_in(whole)
    return whole


def copy_prepared_for_create(obj: Json) -> Json:
    """Defaulted, and with what the API server corrects without a word when an object is made."""
    whole: Json = copy(obj)
    prepare_for_create(whole)
    return whole


def copy_spelled_out(obj: Json) -> Json:
    """A copy with the empty structs and zero numbers that Go writes for fields that are not optional."""
    whole: Json = copy(obj)
    write_out_empty_fields(whole)
    return whole


def fill_in(obj: Json) -> None:
    component = openapi.find_schema_name(obj.get("apiVersion", ""), obj.get("kind", ""))
    if component is None:
        return
    if "spec" in openapi.load_component(component).get("properties", {}):
        obj.setdefault("spec", {})
    _fill_declared(obj, component)
    fill = _BY_KIND.get((obj["apiVersion"], obj["kind"]))
    if fill is not None:
        fill(obj)


def fill_in_status(obj: Json) -> None:
    """Like `fill_in`, for an object of which only the status is present."""
    component = openapi.find_schema_name(obj["apiVersion"], obj["kind"])
    if component is None or (obj["apiVersion"], obj["kind"]) not in _WITHOUT_STATUS_DEFAULTS:
        fill_in(obj)
    else:
        _fill_declared(obj, component)


def prepare_for_create(obj: Json) -> None:
    if obj["kind"] not in _KEEPS_STATUS:
        obj.pop("status", None)
    for field in _NEVER_TAKEN:
        obj.get("metadata", {}).pop(field, None)
    fill_in(obj)
    if (obj["apiVersion"], obj["kind"]) == ("v1", "Pod"):
        spec = obj["spec"]
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
        obj["status"] = {"phase": "Pending", "qosClass": pods.compute_qos_class(spec)}


def write_out_empty_fields(obj: Json) -> None:
    component = openapi.find_schema_name(obj.get("apiVersion", ""), obj.get("kind", ""))
    if component is not None:
        _write_out(obj, component)


def _fill_declared(value: Json, component: str) -> None:
    """Defaults that stand in the schema itself: protocol TCP, an iSCSI interface."""
    holding = _to_fill(component)
    for name, item in value.items() if holding else ():
        if name in holding:
            held = holding[name]
            for inner in _iterate_structs(item, held):
                _fill_declared(inner, held.component)
    for name, declared in _list_declared_defaults(component).items():
        value.setdefault(name, declared)


@cache
def _list_declared_defaults(component: str) -> Json:
    return {
        name: schema["default"]
        for name, schema in openapi.load_component(component).get("properties", {}).items()
        if schema.get("default") and not isinstance(schema["default"], (dict, list))
    }


def _write_out(value: Json, component: str) -> None:
    for name, written in _build_always_written(component).items():
        if name not in value:
            value[name] = {} if written is _STRUCT else written
    holding = _to_spell_out(component)
    for name, item in value.items() if holding else ():
        if name in holding:
            held = holding[name]
            for inner in _iterate_structs(item, held):
                _write_out(inner, held.component)


class _Struct(Enum):
    """A placeholder for a new empty struct; other defaults are plain values."""

    EMPTY = "empty"


_STRUCT: Final = _Struct.EMPTY


@cache
def _build_always_written(component: str) -> Json:
    """The fields of a struct that Go writes even if they are empty, in the order of the schema."""
    described = openapi.load_component(component)
    required = described.get("required", ())
    found: Json = {}
    for name, schema in described.get("properties", {}).items():
        declared = schema.get("default")
        is_written = name in required or f"{get_struct_name(component)}.{name}" in _ALWAYS_WRITTEN
        if declared == {} and openapi.find_struct(schema) is not None:
            found[name] = _STRUCT
        elif is_written and declared is not None and not isinstance(declared, (dict, list)):
            found[name] = declared
    return found


@cache
def _to_fill(component: str) -> dict[str, HeldStruct]:
    return _find_fields_with(component, _list_declared_defaults)


@cache
def _to_spell_out(component: str) -> dict[str, HeldStruct]:
    return _find_fields_with(component, _build_always_written)


def _find_fields_with(component: str, wanted: Callable[[str], Json]) -> dict[str, HeldStruct]:
    """The fields below which there is anything to do: most of the metadata and many a status can be passed over."""
    return {
        name: held
        for name, held in openapi.find_held_structs(component).items()
        if any(map(wanted, openapi.collect_reachable(held.component)))
    }


def _iterate_structs(item: Any, held: HeldStruct) -> Iterable[Json]:
    """The structs in a field: its value, or the elements of its list or map."""
    if not held.is_collection:
        return (item,) if isinstance(item, dict) else ()
    several = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
    return [member for member in several if isinstance(member, dict)]
