"""`machineTypes` and `nodeGroups` of a scenario as objects of the simulated cloud, and initial nodes. Pure.

A node belongs to the group in its label, or to the group whose id is the prefix of its name (`g-3`). If there is only
one group, and as many nodes without a group as its target, they belong to it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.local.cloud.machines.node_manifest import build_node_manifest
from plimsoll.local.cloud.machines.templates import InvalidTemplate, build_template
from plimsoll.objects.api.simulated_cloud import (
    CLOUD_GROUP,
    CLOUD_VERSION,
    GROUP_LABEL,
    THE_CLOUD,
    CloudSpec,
    MachineType,
    NodeGroup,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.simulation.scenario import GroupEntry, Json, Scenario

_API_VERSION: Final = f"{CLOUD_GROUP}/{CLOUD_VERSION}"


def build_cloud_manifests(scenario: Scenario) -> Iterator[tuple[str, Json]]:
    """Manifests, each with the path of its spec in the file; for the cloud that is the whole file."""
    metadata = {"name": THE_CLOUD}
    yield "", {"apiVersion": _API_VERSION, "kind": "Cloud", "metadata": metadata, "spec": _build_cloud_spec(scenario)}
    for index, entry in enumerate(scenario.node_groups):
        if entry.exists:
            yield f"nodeGroups[{index}]", _build_group(entry)


def _build_cloud_spec(scenario: Scenario) -> Json:
    zones = dict.fromkeys(zone for machine_type_ in scenario.machine_types for zone in machine_type_.get("zones", ()))
    zones |= dict.fromkeys(zone for group_entry in scenario.node_groups for zone in group_entry.spec.get("zones", ()))
    spec: Json = {"bootSeconds": 0.0}
    if scenario.machine_types:
        spec["machineTypes"] = [dict(machine_type_) for machine_type_ in scenario.machine_types]
    if zones:
        spec["zones"] = list(zones)
    return spec


def _build_group(entry: GroupEntry) -> Json:
    return {"apiVersion": _API_VERSION, "kind": "NodeGroup", "metadata": {"name": entry.id}, "spec": entry.spec}


def build_initial_nodes(scenario: Scenario) -> Iterator[Json]:
    """Ready, empty nodes for the targets of groups that have no nodes among the objects."""
    spec = msgspec.convert(_build_cloud_spec(scenario), CloudSpec)
    types = {
        machine_type_["name"]: msgspec.convert(machine_type_, MachineType) for machine_type_ in scenario.machine_types
    }
    taken = {
        _get_group_label(with_group)
        for with_group in label_nodes(scenario.objects, scenario.node_groups)
        if with_group["kind"] == "Node"
    }
    for entry in scenario.node_groups:
        if not entry.exists or entry.id in taken:
            continue
        shape = build_template(msgspec.convert(_build_group(entry), NodeGroup), spec, types)
        if isinstance(shape, InvalidTemplate):
            continue
        for number in range(entry.spec["target"]):
            name = f"{entry.id}-{number}"
            zone = shape.zones[number % len(shape.zones)]
            provider_id = f"plimsoll://{spec.region}/{zone}/{name}"
            yield build_node_manifest(shape, name, zone=zone, provider_id=provider_id, ready=True, now=scenario.start)


def label_nodes(objects: Sequence[Json], groups: Sequence[GroupEntry]) -> list[Json]:
    """The objects, every node with the label of its group."""
    ids = [group_entry.id for group_entry in groups if group_entry.exists]
    labelled = [
        _label_node(manifest, _find_group(manifest, ids)) if manifest["kind"] == "Node" else manifest
        for manifest in objects
    ]
    unassigned = [
        index
        for index, manifest in enumerate(labelled)
        if manifest["kind"] == "Node" and not _get_group_label(manifest)
    ]
    if len(ids) == 1 and len(unassigned) == sum(manifest["kind"] == "Node" for manifest in labelled):
        only = next(group_entry for group_entry in groups if group_entry.exists)
        if unassigned and only.spec["target"] == len(unassigned):
            for index in unassigned:
                labelled[index] = _label_node(labelled[index], only.id)
    return labelled


def _find_group(node: Json, ids: Sequence[str]) -> str:
    if label := _get_group_label(node):
        return label
    name = str(node["metadata"]["name"])
    numbered = [group_id for group_id in ids if re.fullmatch(re.escape(group_id) + r"-\d+", name)]
    return max(numbered, key=len, default="")


def _get_group_label(node: Json) -> str:
    labels: Any = node["metadata"].get("labels") or {}
    return str(labels.get(GROUP_LABEL, "")) if isinstance(labels, dict) else ""


def _label_node(node: Json, group: str) -> Json:
    given = node["metadata"].get("labels") or {}
    if not group or not isinstance(given, dict):
        return node
    return {**node, "metadata": {**node["metadata"], "labels": {**given, GROUP_LABEL: group}}}
