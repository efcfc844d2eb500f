"""Node groups and machine types of a file, as the planner uses them. Pure."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.local.cloud.machines.node_manifest import build_node_manifest
from plimsoll.local.cloud.machines.templates import ZONE, InvalidTemplate, MachineTemplate, build_template
from plimsoll.nodes.model.node_labels import CAPACITY_TYPE_KEYS
from plimsoll.nodes.model.snapshot import CapacityType, MachineType
from plimsoll.nodes.model.snapshot import NodeGroup as Group
from plimsoll.nodes.providers.simulated.cache import build_machine_type
from plimsoll.objects.api.meta import WireObject
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.simulated_cloud import GROUP_LABEL, CloudSpec, NodeGroup
from plimsoll.objects.api.simulated_cloud import MachineType as SoldType
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import convert_object
from plimsoll.simulation.files.cloud_manifests import build_cloud_manifests
from plimsoll.simulation.plan.checks import join_problem_path
from plimsoll.simulation.plan.group_templates import Template, find_node_template

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plimsoll.objects.api.pods import Pod
    from plimsoll.simulation.scenario import Json, Scenario

T = TypeVar("T", bound=WireObject)

_SPOT_WORDS: Final = ("spot", "true")
"""How labels of clouds say that a machine may be taken back."""


def read_groups(scenario: Scenario, nodes: Sequence[Node], pods: Sequence[Pod]) -> Iterator[Group]:
    """Those that exist, in the order of the file; a node that is there goes before what the file says of its group."""
    cloud, *manifests = (body for _, body in build_cloud_manifests(scenario))
    spec = msgspec.convert(cloud["spec"], CloudSpec)
    types = {
        machine_type_["name"]: msgspec.convert(machine_type_, SoldType) for machine_type_ in scenario.machine_types
    }
    nodes_of: dict[str, list[Node]] = {}
    for node in nodes:
        nodes_of.setdefault(node.metadata.labels.get(GROUP_LABEL, ""), []).append(node)
    on: dict[str, list[Pod]] = {}
    for pod in pods:
        on.setdefault(pod.spec.node_name, []).append(pod)
    zones_are_given = any(group_entry.spec.get("zones") for group_entry in scenario.node_groups) or not _have_zones(
        nodes
    )
    places = [index for index, entry in enumerate(scenario.node_groups) if entry.exists]
    for index, manifest in zip(places, manifests, strict=True):
        group = msgspec.convert(manifest, NodeGroup)
        shape = build_template(group, spec, types)
        if isinstance(shape, InvalidTemplate):
            raise _build_unknown_error(group, index, shape, types)
        # Beside nodes that have zones of their own, none is made up for a group without one.
        known = shape.zones[0] if len(shape.zones) == 1 and zones_are_given else ""
        body = build_node_manifest(
            shape, f"{shape.group}-template", zone=known, provider_id="", ready=True, now=scenario.start
        )
        real = find_node_template(nodes_of.get(shape.group, ()), on, now=scenario.start)
        template_node = decode_object(Node, body, path=f"nodeGroups[{index}]")
        yield _build_group(group, shape, real or Template(node=template_node), zone=known if group.spec.zones else "")


def read_machine_types(scenario: Scenario, nodes: Sequence[Node]) -> tuple[MachineType, ...]:
    """As the simulated cloud sells them: a type that names no zones, in all of the cloud's.

    The zones of the cloud are those that the file names, else those of the nodes of the file.
    """
    cloud, *_ = (body for _, body in build_cloud_manifests(scenario))
    zones = msgspec.convert(cloud["spec"], CloudSpec).zones
    sold = [msgspec.convert(machine_type_, SoldType) for machine_type_ in scenario.machine_types]
    if "zones" not in cloud["spec"]:
        zones = tuple(sorted({node.metadata.labels[ZONE] for node in nodes if ZONE in node.metadata.labels})) or zones
    return tuple(build_machine_type(machine_type, zones=zones) for machine_type in sold)


def _have_zones(nodes: Sequence[Node]) -> bool:
    return any(ZONE in node.metadata.labels for node in nodes)


def _build_group(group: NodeGroup, shape: MachineTemplate, template: Template, *, zone: str) -> Group:
    spec, node = group.spec, template.node
    return Group(
        id=group.metadata.name,
        min_size=spec.min,
        max_size=spec.max,
        target_size=spec.target,
        template=node,
        daemons=template.daemons or (),
        daemons_are_known=template.daemons is not None,
        price_per_hour=shape.price,
        machine_type=shape.machine_type,
        zone=zone or (node.metadata.labels.get(ZONE, "") if template.daemons is not None else ""),
        autoprovisioned=spec.autoprovisioned,
        autoscaled=spec.autoscaled,
        zero_or_max=spec.zero_or_max,
        capacity_type=_get_capacity_type(node, shape),
    )


def _get_capacity_type(template: Node, shape: MachineTemplate) -> CapacityType:
    """As any cloud's label says it, or as the machines are sold."""
    labels = template.metadata.labels
    if any(labels[key].lower() in _SPOT_WORDS for key in CAPACITY_TYPE_KEYS if key in labels):
        return CapacityType.SPOT
    return CapacityType(shape.capacity_type or CapacityType.ON_DEMAND)


def _build_unknown_error(
    group: NodeGroup, index: int, shape: InvalidTemplate, types: Mapping[str, SoldType]
) -> InvalidInput:
    name = group.spec.machine_type
    if not name:
        return InvalidInput(shape.problem, path=f"nodeGroups[{index}]")
    near = difflib.get_close_matches(name, types, n=1)
    help_ = f"did you mean {near[0]}?" if near else "give it in machineTypes, by --catalogue, or say template instead"
    return InvalidInput(f"no machine type is called {name}; {help_}", path=f"nodeGroups[{index}].machineType")


def decode_object(struct: type[T], body: Json, *, path: str) -> T:
    """The object; raises `InvalidInput` with the path of the field that cannot be read."""
    converted = convert_object(struct, body)
    if isinstance(converted, BadObject):
        inside, message = join_problem_path(path, converted.problem)
        raise InvalidInput(message, path=inside)
    return converted
