"""Manifests of the TidbClusters created for groups, and the patches with which they follow their base cluster. Pure.

Manifests are built from raw JSON, not from structs, so that unknown fields of the base are copied too.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.objects.api.tidb import TIDB_GROUP, TIDB_VERSION, TidbCluster, TidbClusterAutoScaler
from plimsoll.tidb.model.components import HOT_REGION, SPECIAL_USE_LABEL, Component
from plimsoll.tidb.model.names import NameSeed
from plimsoll.tidb.wire.annotations import COLLISION, LAST_CHANGE, build_cluster_labels, write_change_time
from plimsoll.tidb.wire.config_labels import add_labels, normalize_config, read_labels

if TYPE_CHECKING:
    from plimsoll.tidb.model.names import FreeName
    from plimsoll.tidb.model.reconcile_types import Size
    from plimsoll.tidb.model.scaling_plan import ScalingPlan

Json = dict[str, Any]

_API_VERSION: Final = f"{TIDB_GROUP}/{TIDB_VERSION}"
_NOT_COPIED: Final = frozenset({"pd", "tiflash", "ticdc", "pump", "tiproxy", *Component})
_FOLLOWED: Final = ("version", "baseImage", "image")
# Mebibytes before decimal units before kibibytes, so that `10G` does not become a number of kibibytes.
_UNITS: Final = (
    *((name, 1024**power) for power, name in zip((6, 5, 4, 3, 2), ("Ei", "Pi", "Ti", "Gi", "Mi"), strict=True)),
    *((name, 1000**power) for power, name in zip((6, 5, 4, 3, 2), ("E", "P", "T", "G", "M"), strict=True)),
    ("Ki", 1024),
    ("k", 1000),
)


class GroupOwner(Value):
    """The component of an autoscaler that a TidbCluster is created for, and when. The base's namespace is used."""

    autoscaler: str
    namespace: str
    uid: str
    component: Component
    now: datetime
    cluster_domain: str = ""
    """`spec.cluster.clusterDomain` of the autoscaler."""


def make_name_seed(owner: GroupOwner, plan: ScalingPlan, size: Size) -> NameSeed:
    """The seed of the name of a group's TidbCluster."""
    return NameSeed(
        namespace=owner.namespace,
        tas=owner.autoscaler,
        component=owner.component.value,
        cpu=size.cpu_milli,
        memory=size.memory_bytes,
        storage=size.storage_bytes if owner.component is Component.TIKV else 0,
        labels=plan.labels,
    )


def build_group_manifest(base: Json, owner: GroupOwner, *, plan: ScalingPlan, size: Size, name: FreeName) -> Json:
    """The TidbCluster of a new group, with `plan.count` replicas.

    Raises `InvalidInput` if labels cannot be added to the base's configuration.
    """
    body = _build_body(base, owner, name=name.name, group=plan.group)
    if name.collision:
        body["metadata"]["annotations"][COLLISION] = str(name.collision)
    limits = {"cpu": _format_cpu(size.cpu_milli), "memory": _format_bytes(size.memory_bytes)}
    limits = {key: value for key, value in limits.items() if value != "0"}
    has_storage = owner.component is Component.TIKV and size.storage_bytes
    requests = {**limits, "storage": _format_bytes(size.storage_bytes)} if has_storage else limits
    component_spec = body["spec"][owner.component.value]
    component_spec |= {"replicas": plan.count, "requests": requests, "limits": dict(limits)}
    component_spec["config"] = add_labels(component_spec.get("config"), plan.labels, owner.component)
    return body


def build_external_name(base: str, component: Component) -> str:
    return f"{base}-{component}-external"


def build_external_manifest(base: Json, owner: GroupOwner, *, replicas: int) -> Json:
    """The TidbCluster that an external service sizes: like the base's own instances.

    Raises as `build_group_manifest`.
    """
    component = owner.component
    body = _build_body(base, owner, name=build_external_name(base["metadata"]["name"], component), group="")
    component_spec = body["spec"][component.value]
    component_spec["replicas"] = replicas
    if component is Component.TIKV:
        component_spec["config"] = add_labels(component_spec.get("config"), {SPECIAL_USE_LABEL: HOT_REGION}, component)
    return body


def build_follow_patch(base: Json, ours: Json, *, component: Component) -> Json | None:
    """The merge patch that makes our TidbCluster follow an edited base; None: it follows already.

    It changes version, image and config, never replicas, requests or our labels. Raises as `build_group_manifest`.
    """
    base_spec, own_spec = base.get("spec") or {}, ours.get("spec") or {}
    base_component, own_component = base_spec.get(component.value) or {}, own_spec.get(component.value) or {}
    changed = _find_changed_fields(base_component, own_component)
    config = add_labels(base_component.get("config"), read_labels(own_component.get("config"), component), component)
    if normalize_config(config, component) != normalize_config(own_component.get("config"), component):
        changed["config"] = _patch(own_component.get("config"), config)
    spec = {key: value for key, value in _find_changed_fields(base_spec, own_spec).items() if key == "version"}
    if changed:
        spec[component.value] = changed
    return {"spec": spec} if spec else None


def _build_body(base: Json, owner: GroupOwner, *, name: str, group: str) -> Json:
    component, meta = owner.component, base["metadata"]
    spec = {key: deepcopy(value) for key, value in base["spec"].items() if key not in _NOT_COPIED}
    spec[component.value] = deepcopy(base["spec"][component.value])
    domain = owner.cluster_domain or base["spec"].get("clusterDomain") or ""
    spec["cluster"] = {"namespace": meta["namespace"], "name": meta["name"]}
    if domain:
        spec["cluster"]["clusterDomain"] = domain
    spec["enablePVReclaim"] = True
    metadata: Json = {
        "name": name,
        "namespace": meta["namespace"],
        "labels": build_cluster_labels(
            base=meta["name"], autoscaler=owner.autoscaler, component=component, group=group
        ),
        "annotations": {LAST_CHANGE: write_change_time(owner.now)},
    }
    # The garbage collector treats an owner in another namespace as absent and deletes the dependent.
    if owner.namespace == meta["namespace"]:
        metadata["ownerReferences"] = [_build_owner_reference(owner)]
    return {"apiVersion": _API_VERSION, "kind": TidbCluster.get_kind_name(), "metadata": metadata, "spec": spec}


def _build_owner_reference(owner: GroupOwner) -> Json:
    return {
        "apiVersion": _API_VERSION,
        "kind": TidbClusterAutoScaler.get_kind_name(),
        "name": owner.autoscaler,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _find_changed_fields(base_spec: Json, own_spec: Json) -> Json:
    return {key: base_spec.get(key) for key in _FOLLOWED if base_spec.get(key) != own_spec.get(key)}


def _patch(own_spec: Any, wanted: Any) -> Any:
    """The merge patch between two values: removed keys are null."""
    if not isinstance(own_spec, dict) or not isinstance(wanted, dict):
        return wanted
    changed = {key: _patch(own_spec.get(key), value) for key, value in wanted.items() if own_spec.get(key) != value}
    return {**dict.fromkeys(sorted(own_spec.keys() - wanted.keys())), **changed}


def _format_cpu(milli: int) -> str:
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def _format_bytes(number: int) -> str:
    for name, size in _UNITS:
        if number and number % size == 0:
            return f"{number // size}{name}"
    return str(number)
