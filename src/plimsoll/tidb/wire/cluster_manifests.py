"""Bodies of the TidbClusters that are made beside a base cluster, and what of the base they follow later. Pure.

Bodies are made of raw JSON, never of structs: whatever the base says that we do not know is copied too.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.objects.api.tidb import TIDB_GROUP, TIDB_VERSION, TidbCluster, TidbClusterAutoScaler
from plimsoll.tidb.model.components import HOT_REGION, SPECIAL_USE_LABEL, Component
from plimsoll.tidb.model.names import NameSeed
from plimsoll.tidb.wire.annotations import COLLISION, LAST_CHANGE, labels_of_made, written_change
from plimsoll.tidb.wire.config_labels import labels_in, meaning_of, with_labels

if TYPE_CHECKING:
    from plimsoll.tidb.model.names import FreeName
    from plimsoll.tidb.model.reconcile_types import Size
    from plimsoll.tidb.model.scaling_plan import ScalingPlan

Json = dict[str, Any]

_API_VERSION: Final = f"{TIDB_GROUP}/{TIDB_VERSION}"
_NOT_COPIED: Final = frozenset({"pd", "tiflash", "ticdc", "pump", "tiproxy", *Component})
_FOLLOWED: Final = ("version", "baseImage", "image")
# Mebibytes before decimals before kibibytes: `10G` should not become a number of kibibytes.
_UNITS: Final = (
    *((name, 1024**power) for power, name in zip((6, 5, 4, 3, 2), ("Ei", "Pi", "Ti", "Gi", "Mi"), strict=True)),
    *((name, 1000**power) for power, name in zip((6, 5, 4, 3, 2), ("E", "P", "T", "G", "M"), strict=True)),
    ("Ki", 1024),
    ("k", 1000),
)


class MadeFor(Value):
    """Whom a TidbCluster is made for: a component of an autoscaler, at a time. Its namespace is the base's."""

    autoscaler: str
    namespace: str
    uid: str
    component: Component
    now: datetime
    cluster_domain: str = ""
    """`spec.cluster.clusterDomain` of the autoscaler."""


def seed_of(made_for: MadeFor, plan: ScalingPlan, size: Size) -> NameSeed:
    """What the name of a group's TidbCluster is made of: `names.free_name(seed_of(…), taken)`."""
    return NameSeed(
        namespace=made_for.namespace,
        tas=made_for.autoscaler,
        component=made_for.component.value,
        cpu=size.cpu_milli,
        memory=size.memory_bytes,
        storage=size.storage_bytes if made_for.component is Component.TIKV else 0,
        labels=plan.labels,
    )


def group_body(base: Json, made_for: MadeFor, *, plan: ScalingPlan, size: Size, name: FreeName) -> Json:
    """The TidbCluster of a new group, with `plan.count` replicas.

    Raises `InvalidInput` if labels cannot be put into the base's configuration.
    """
    body = _body(base, made_for, name=name.name, group=plan.group)
    if name.collision:
        body["metadata"]["annotations"][COLLISION] = str(name.collision)
    limits = {"cpu": _written_cpu(size.cpu_milli), "memory": _written_bytes(size.memory_bytes)}
    limits = {key: value for key, value in limits.items() if value != "0"}
    has_storage = made_for.component is Component.TIKV and size.storage_bytes
    requests = {**limits, "storage": _written_bytes(size.storage_bytes)} if has_storage else limits
    own = body["spec"][made_for.component.value]
    own |= {"replicas": plan.count, "requests": requests, "limits": dict(limits)}
    own["config"] = with_labels(own.get("config"), plan.labels, made_for.component)
    return body


def external_name(base: str, component: Component) -> str:
    return f"{base}-{component}-external"


def external_body(base: Json, made_for: MadeFor, *, replicas: int) -> Json:
    """The TidbCluster that an external service sizes: like the base's own instances. Raises as `group_body`."""
    component = made_for.component
    body = _body(base, made_for, name=external_name(base["metadata"]["name"], component), group="")
    own = body["spec"][component.value]
    own["replicas"] = replicas
    if component is Component.TIKV:
        own["config"] = with_labels(own.get("config"), {SPECIAL_USE_LABEL: HOT_REGION}, component)
    return body


def followed(base: Json, ours: Json, *, component: Component) -> Json | None:
    """The merge patch with which our TidbCluster follows an edited base; None: it follows already.

    Version, image and config; never replicas, requests or the labels that are ours. Raises as `group_body`.
    """
    theirs, present = base.get("spec") or {}, ours.get("spec") or {}
    from_part, to_part = theirs.get(component.value) or {}, present.get(component.value) or {}
    part = _differing(from_part, to_part)
    config = with_labels(from_part.get("config"), labels_in(to_part.get("config"), component), component)
    if meaning_of(config, component) != meaning_of(to_part.get("config"), component):
        part["config"] = _patch(to_part.get("config"), config)
    spec = {key: value for key, value in _differing(theirs, present).items() if key == "version"}
    if part:
        spec[component.value] = part
    return {"spec": spec} if spec else None


def _body(base: Json, made_for: MadeFor, *, name: str, group: str) -> Json:
    component, meta = made_for.component, base["metadata"]
    spec = {key: deepcopy(value) for key, value in base["spec"].items() if key not in _NOT_COPIED}
    spec[component.value] = deepcopy(base["spec"][component.value])
    domain = made_for.cluster_domain or base["spec"].get("clusterDomain") or ""
    spec["cluster"] = {"namespace": meta["namespace"], "name": meta["name"]}
    if domain:
        spec["cluster"]["clusterDomain"] = domain
    spec["enablePVReclaim"] = True
    metadata: Json = {
        "name": name,
        "namespace": meta["namespace"],
        "labels": labels_of_made(base=meta["name"], autoscaler=made_for.autoscaler, component=component, group=group),
        "annotations": {LAST_CHANGE: written_change(made_for.now)},
    }
    # An owner in another namespace counts as gone, and what it owns is deleted.
    if made_for.namespace == meta["namespace"]:
        metadata["ownerReferences"] = [_owner(made_for)]
    return {"apiVersion": _API_VERSION, "kind": TidbCluster.kind_name(), "metadata": metadata, "spec": spec}


def _owner(made_for: MadeFor) -> Json:
    return {
        "apiVersion": _API_VERSION,
        "kind": TidbClusterAutoScaler.kind_name(),
        "name": made_for.autoscaler,
        "uid": made_for.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _differing(theirs: Json, present: Json) -> Json:
    return {key: theirs.get(key) for key in _FOLLOWED if theirs.get(key) != present.get(key)}


def _patch(present: Any, wanted: Any) -> Any:
    """The merge patch from one value to another: what is gone is null in it."""
    if not isinstance(present, dict) or not isinstance(wanted, dict):
        return wanted
    changed = {key: _patch(present.get(key), value) for key, value in wanted.items() if present.get(key) != value}
    return {**dict.fromkeys(sorted(present.keys() - wanted.keys())), **changed}


def _written_cpu(milli: int) -> str:
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def _written_bytes(number: int) -> str:
    for name, size in _UNITS:
        if number and number % size == 0:
            return f"{number // size}{name}"
    return str(number)
