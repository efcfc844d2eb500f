"""What an API server fills in: the fields a user left out, by kind.

`checking` asks for `defaulted` before validation, because validation depends on it (a Job's restart policy is Always by
default, and invalid for that), and for `spelled_out` where the object is shown as a client would read it. Everything
here takes a decoded object (see `decoding`) and returns a new one.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.builtin import openapi, pod_defaults, resource_defaults, workload_defaults
from plimsoll.objects.builtin.go_types import struct_name
from plimsoll.objects.schema.json_values import copy

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.objects.builtin.openapi import Schema

Json = dict[str, Any]

# Fields Go writes although they are empty, and which no schema tells apart from those it leaves out.
_ALWAYS_WRITTEN: Final = frozenset({"StatefulSetStatus.availableReplicas", "StatefulSetSpec.serviceName"})

# Every other kind begins its life without a status, whatever is sent.
_KEEPS_STATUS: Final = frozenset({"Node", "Namespace", "TokenReview", "TokenRequest"})
_NEVER_TAKEN: Final = frozenset({"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"})

_BY_KIND: Final[dict[tuple[str, str], Callable[[Json], None]]] = {
    ("v1", "Pod"): pod_defaults.pod,
    ("v1", "PodTemplate"): lambda obj: pod_defaults.template(obj.setdefault("template", {})),
    ("v1", "ReplicationController"): workload_defaults.replication_controller,
    ("apps/v1", "Deployment"): workload_defaults.deployment,
    ("apps/v1", "ReplicaSet"): workload_defaults.replica_set,
    ("apps/v1", "StatefulSet"): workload_defaults.stateful_set,
    ("apps/v1", "DaemonSet"): workload_defaults.daemon_set,
    ("batch/v1", "Job"): workload_defaults.job,
    ("batch/v1", "CronJob"): workload_defaults.cron_job,
    ("v1", "Service"): resource_defaults.service,
    ("v1", "Secret"): resource_defaults.secret,
    ("v1", "Namespace"): resource_defaults.namespace,
    ("v1", "Node"): resource_defaults.node,
    ("v1", "PersistentVolume"): resource_defaults.persistent_volume,
    ("v1", "PersistentVolumeClaim"): resource_defaults.persistent_volume_claim,
    ("v1", "LimitRange"): resource_defaults.limit_range,
    ("discovery.k8s.io/v1", "EndpointSlice"): resource_defaults.endpoint_slice,
    ("storage.k8s.io/v1", "StorageClass"): resource_defaults.storage_class,
    ("scheduling.k8s.io/v1", "PriorityClass"): resource_defaults.priority_class,
    ("networking.k8s.io/v1", "NetworkPolicy"): resource_defaults.network_policy,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): resource_defaults.role_binding,
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): resource_defaults.role_binding,
}


def defaulted(obj: Json) -> Json:
    whole: Json = copy(obj)
    component = openapi.schema_name(whole.get("apiVersion", ""), whole.get("kind", ""))
    if component is None:
        return whole
    if "spec" in openapi.component(component).get("properties", {}):
        whole.setdefault("spec", {})
    _fill_declared(whole, component)
    fill = _BY_KIND.get((whole["apiVersion"], whole["kind"]))
    if fill is not None:
        fill(whole)
    return whole


def prepared_for_create(obj: Json) -> Json:
    """Defaulted, and with what the API server corrects without a word when an object is made."""
    kept = {field: value for field, value in obj.items() if field != "status" or obj["kind"] in _KEEPS_STATUS}
    if "metadata" in kept:
        kept["metadata"] = {field: value for field, value in obj["metadata"].items() if field not in _NEVER_TAKEN}
    whole = defaulted(kept)
    if (whole["apiVersion"], whole["kind"]) == ("v1", "Pod"):
        spec = whole["spec"]
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
        whole["status"] = {"phase": "Pending", "qosClass": pod_defaults.qos_class(spec)}
    return whole


def spelled_out(obj: Json) -> Json:
    """With the empty structs and zero numbers that Go writes for fields which are not optional."""
    whole: Json = copy(obj)
    component = openapi.schema_name(whole.get("apiVersion", ""), whole.get("kind", ""))
    if component is not None:
        _spell_out(whole, component)
    return whole


def _fill_declared(value: Json, component: str) -> None:
    """Defaults that stand in the schema itself: protocol TCP, an iSCSI interface."""
    properties = openapi.component(component).get("properties", {})
    for name, held in value.items():
        if isinstance(held, (dict, list)) and name in properties:
            for inner, inner_component in _structs_in(held, properties[name]):
                _fill_declared(inner, inner_component)
    for name, declared in _declared(component).items():
        value.setdefault(name, declared)


@cache
def _declared(component: str) -> Json:
    return {
        name: schema["default"]
        for name, schema in openapi.component(component).get("properties", {}).items()
        if schema.get("default") and not isinstance(schema["default"], (dict, list))
    }


def _spell_out(value: Json, component: str) -> None:
    described = openapi.component(component)
    required = described.get("required", ())
    for name, schema in described.get("properties", {}).items():
        if name not in value:
            written = name in required or f"{struct_name(component)}.{name}" in _ALWAYS_WRITTEN
            declared = schema.get("default")
            if declared == {} and _is_struct(schema):
                value[name] = {}
            elif written and declared is not None and not isinstance(declared, (dict, list)):
                value[name] = declared
            else:
                continue
        for inner, inner_component in _structs_in(value[name], schema):
            _spell_out(inner, inner_component)


def _is_struct(schema: Schema) -> bool:
    component = openapi.reference(schema)
    return component is not None and "properties" in openapi.component(component)


def _structs_in(value: Any, schema: Schema) -> list[tuple[Json, str]]:
    """The structs a field holds, alone or in a list or map, with their components."""
    component = openapi.reference(schema)
    if component is not None:
        return [(value, component)] if isinstance(value, dict) and _is_struct(schema) else []
    inner = schema.get("items") or schema.get("additionalProperties")
    if not isinstance(inner, dict) or not _is_struct(inner):
        return []
    inner_component = openapi.reference(inner)
    held = value.values() if isinstance(value, dict) else value
    return [(one, inner_component) for one in held if isinstance(one, dict) and inner_component is not None]
