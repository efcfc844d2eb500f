"""Machine types: MachineDeployments that serve only as templates, and the copies that become node groups. Pure.

A copy is made from the template's bytes, so that unknown fields are copied too. It has no annotations for autoscaling,
which are for groups that people create, so that no other autoscaler adopts it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.model.group_names import hash_profile
from plimsoll.nodes.model.node_labels import ARCH, HOSTNAME, OS, ZONE
from plimsoll.nodes.model.node_templates import AUTOPROVISIONED_LABEL, PROFILE_LABEL
from plimsoll.nodes.model.snapshot import CapacityType, MachineType
from plimsoll.nodes.providers.clusterapi.annotations import (
    CAPACITY_PREFIX,
    NAP_MADE_OF,
    NAP_MAX_SIZE,
    NAP_SYNCED_LABELS,
    NAP_TEMPLATE,
    is_propagated,
    is_synced,
)
from plimsoll.nodes.providers.clusterapi.node_templates import TemplateProblem, build_template, read_labels, read_taints
from plimsoll.objects.api.simulated_cloud import CAPACITY_TYPE_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.providers.clusterapi.annotations import Keys
    from plimsoll.nodes.providers.clusterapi.node_templates import Infrastructure
    from plimsoll.nodes.providers.values import Blueprint
    from plimsoll.objects.api.cluster_api import MachineDeployment, Scalable
    from plimsoll.objects.api.nodes import Taint
    from plimsoll.objects.codec.decoding import RawObject

_OWN_META: Final = ("annotations", "labels")
"""What of the template's metadata is the copy's too; the rest the server gives."""
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
# Bookkeeping of controllers. With a topology's labels a copy would be taken for a leftover of its cluster, and deleted.
_BOOKKEEPING: Final = ("topology.cluster.x-k8s.io/", "machinedeployment.clusters.x-k8s.io/")
_OF_ITSELF: Final = frozenset({ARCH, OS, HOSTNAME})


def build_machine_type(
    template: Scalable, infrastructure: Infrastructure, *, architecture: str
) -> MachineType | TemplateProblem:
    node = build_template(template, infrastructure, architecture=architecture)
    if isinstance(node, TemplateProblem):
        return node
    labels = node.metadata.labels
    zone = template.spec.template.spec.failure_domain or labels.get(ZONE, "")
    capacity = ResourceVector.from_quantities(node.status.capacity)
    is_spot = labels.get(CAPACITY_TYPE_LABEL) == CapacityType.SPOT
    return MachineType(
        name=template.metadata.name,
        capacity=capacity,
        allocatable=capacity,
        zones=(zone,) if zone else (),
        labels={key: value for key, value in labels.items() if key not in _OF_ITSELF},
        taints=node.spec.taints,
        architecture=labels[ARCH],
        capacity_type=CapacityType.SPOT if is_spot else CapacityType.ON_DEMAND,
    )


def find_blueprint_problem(blueprint: Blueprint, template: Scalable, kind: MachineType) -> str:
    """Why nodes of a copy could not have what the blueprint requires; empty: they can."""
    declared = template.metadata.annotations.get(NAP_SYNCED_LABELS, "")
    there = read_labels(template)
    for key, value in blueprint.labels.items():
        if there.get(key) != value and not is_synced(key, declared):
            return f"label {key} would not come from machines to nodes (see {NAP_SYNCED_LABELS} in docs/providers.md)"
    for zone in blueprint.zones:
        if zone not in kind.zones:
            return f"machine type {kind.name} is not to be had in zone {zone}"
    for name in blueprint.extra_resources:
        if name not in kind.capacity:
            return f"machine type {kind.name} has no {name}"
    return ""


def copy_template(template: RawObject[MachineDeployment], blueprint: Blueprint, keys: Keys) -> dict[str, Any]:
    """The body of a MachineDeployment to create: with 0 replicas and its own selector."""
    body: dict[str, Any] = msgspec.json.decode(template.raw)
    meta = body["metadata"]
    body.pop("status", None)
    body["metadata"] = {"name": blueprint.id, "namespace": meta["namespace"]}
    body["metadata"].update({name: _keep_own(meta.get(name)) for name in _OWN_META})
    profile = {AUTOPROVISIONED_LABEL: "true", PROFILE_LABEL: hash_profile(blueprint.labels, blueprint.taints)}
    mine = {keys.deployment_name: blueprint.id}
    _annotate(body["metadata"], blueprint, keys, made_of=meta["name"])
    body["metadata"]["labels"] = {**body["metadata"]["labels"], **profile}
    spec = body["spec"]
    spec["replicas"] = 0
    selector = spec.setdefault("selector", {})
    selector["matchLabels"] = {**_keep_own(selector.get("matchLabels")), **mine}
    machines = spec.setdefault("template", {})
    machine_meta = machines.setdefault("metadata", {})
    machine_meta["labels"] = {**_keep_own(machine_meta.get("labels")), **profile, **blueprint.labels, **mine}
    _set_zone(machines.setdefault("spec", {}), blueprint, there=read_taints(template.view))
    return body


def _keep_own(words: Mapping[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (words or {}).items() if not key.startswith(_BOOKKEEPING)}


def find_lost_taints(made: Scalable, blueprint: Blueprint) -> list[str]:
    """Keys of requested taints that the server dropped: Cluster API supports taints since 1.12."""
    there = read_taints(made)
    return [taint.key for taint in blueprint.taints if taint not in there]


def _annotate(meta: dict[str, Any], blueprint: Blueprint, keys: Keys, *, made_of: str) -> None:
    """Labels that people say are synced stand in the annotation too, from which templates are made."""
    annotations: dict[str, str] = meta["annotations"]
    for name in (NAP_TEMPLATE, _LAST_APPLIED, keys.min_size, keys.max_size):
        annotations.pop(name, None)
    annotations[AUTOPROVISIONED_LABEL] = "true"
    annotations[NAP_MADE_OF] = made_of
    annotations[NAP_MAX_SIZE] = str(blueprint.max_size)
    written = f"{CAPACITY_PREFIX}labels"
    synced = [f"{key}={value}" for key, value in sorted(blueprint.labels.items()) if not is_propagated(key)]
    if synced:
        annotations[written] = ",".join([*filter(None, [annotations.get(written, "")]), *synced])


def _set_zone(spec: dict[str, Any], blueprint: Blueprint, *, there: tuple[Taint, ...]) -> None:
    missing = [taint for taint in blueprint.taints if taint not in there]
    if missing:
        named = {(taint_entry["key"], taint_entry["effect"]): taint_entry for taint_entry in spec.get("taints") or ()}
        for taint in missing:
            named[(taint.key, taint.effect)] = {
                "key": taint.key,
                **({"value": taint.value} if taint.value else {}),
                "effect": taint.effect,
                "propagation": "Always",
            }
        spec["taints"] = list(named.values())
    if len(blueprint.zones) == 1:
        spec["failureDomain"] = blueprint.zones[0]


def is_copy_for(found: Scalable, blueprint: Blueprint) -> bool:
    """Whether it equals what this blueprint would create; then an earlier call created it."""
    written: Mapping[str, str] = {**found.metadata.labels, **found.metadata.annotations}
    return (
        written.get(AUTOPROVISIONED_LABEL) == "true"
        and written.get(NAP_MADE_OF) == blueprint.machine_type
        and written.get(PROFILE_LABEL) == hash_profile(blueprint.labels, blueprint.taints)
    )
