"""The provider's state, read once per loop iteration: groups with sizes and instances, owners of nodes, machine types.

`read_provider_state` follows `refresh`, so providers may answer from their caches. It raises `ProviderFailed` if the
provider does not answer: a loop iteration that knows only a part must not act.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from plimsoll.nodes.cluster_state.observed import ObservedCluster, ObservedGroup, UnreadableNode, to_observed_instance
from plimsoll.nodes.cluster_state.templates import GroupNodes, from_provider, group_nodes
from plimsoll.nodes.model.call_outcomes import NotImplementedByProvider
from plimsoll.nodes.model.group_names import is_ours
from plimsoll.nodes.model.node_labels import INSTANCE_TYPE, ZONE
from plimsoll.nodes.model.node_templates import PROFILE_LABEL
from plimsoll.nodes.model.snapshot import CapacityType, GroupScaleDownOptions, MachineType, NodeGroup
from plimsoll.nodes.observing.provider_bounds import bound_group, bound_machine_type
from plimsoll.nodes.planning.state.group_sizes import find_size_bounds
from plimsoll.nodes.providers.ports import NodeOwners, ZonedGroup, ZoneForecastingGroup
from plimsoll.nodes.providers.values import GroupOptions, Instance, NodeRef, Span
from plimsoll.objects.api.simulated_cloud import CAPACITY_TYPE_LABEL

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from plimsoll.nodes.cluster_state.health import ClusterHealth
    from plimsoll.nodes.cluster_state.templates import GroupTemplate, GroupTemplates
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.results import IgnoredField
    from plimsoll.nodes.providers.ports import Group as GroupPort
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.codec.decode_problems import BadObject


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroupState:
    """The state of one group. `port` performs actions on it."""

    port: GroupPort
    target: int
    instances: tuple[Instance, ...]
    options: GroupOptions
    template: GroupTemplate | None
    price_per_hour: float | None = None
    zones: tuple[str, ...] = ()
    """The zones that its machines may be in, if the provider names them."""
    zone_forecast: tuple[str, ...] = ()
    """The zones of machines without a node, then of the next machine, if the provider knows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderState:
    """The state of all groups and nodes."""

    groups: Mapping[str, NodeGroupState] = field(default_factory=dict)
    group_of: Mapping[str, str] = field(default_factory=dict)
    """Node name to group id; nodes of no group are missing."""
    has_instance: Mapping[str, bool] = field(default_factory=dict)
    machine_types: tuple[MachineType, ...] = ()
    gpu_label: str = ""
    ignored_fields: tuple[IgnoredField, ...] = ()
    """Answers that are out of range and were not used."""

    def build_observed_cluster(
        self, nodes: Sequence[Node], policy: Policy, *, unreadable: Sequence[BadObject] = ()
    ) -> ObservedCluster:
        """The input of the cluster state. `unreadable` are nodes that cannot be decoded."""
        return ObservedCluster(
            nodes=tuple(nodes),
            unreadable=tuple(UnreadableNode(name=bad.name, provider_id=bad.provider_id) for bad in unreadable),
            group_of=self.group_of,
            groups=tuple(_build_observed_group(group, policy) for group in self.groups.values()),
            has_instance=self.has_instance,
            gpu_label=self.gpu_label,
        )

    def build_planned_groups(self, health: ClusterHealth, policy: Policy) -> tuple[NodeGroup, ...]:
        """The groups for planning: those with a template, with their health."""
        return tuple(
            _build_planned_group(group, policy, health=health)
            for group in self.groups.values()
            if group.template is not None and group.port.id in health.groups
        )


async def read_provider_state(
    provider: Provider,
    nodes: Sequence[Node],
    pods: Mapping[str, Collection[Pod]],
    *,
    policy: Policy,
    templates: GroupTemplates,
    now: datetime,
) -> ProviderState:
    ports = {group.id: group for group in await provider.node_groups()}
    group_of, has_instance = await _find_owners(provider, nodes)
    gpu_label = await provider.gpu_label()
    found = GroupNodes(nodes=group_nodes(nodes, group_of), pods=pods, gpu_label=gpu_label)
    made = await _find_templates(ports, found, templates, now)
    types = await provider.get_machine_types()
    read = {
        name: await _read_group(provider, port, template=made.get(name), policy=policy, now=now)
        for name, port in sorted(ports.items())
    }
    defaults = _build_default_options(policy)
    groups = {name: bound_group(group, defaults) for name, group in read.items()}
    offered = () if isinstance(types, NotImplementedByProvider) else types
    sold = [bound_machine_type(machine_type) for machine_type in offered]
    return ProviderState(
        groups={name: group for name, (group, _) in groups.items()},
        group_of=group_of,
        has_instance=has_instance,
        machine_types=tuple(machine_type for machine_type, _ in sold),
        gpu_label=gpu_label,
        ignored_fields=tuple(field for _, ignored in (*groups.values(), *sold) for field in ignored),
    )


async def _find_owners(provider: Provider, nodes: Sequence[Node]) -> tuple[dict[str, str], dict[str, bool]]:
    refs = [NodeRef.from_node(node) for node in nodes]
    if isinstance(provider, NodeOwners):
        owners = await provider.find_owners(refs)
        known_machines = {name: owner.has_instance for name, owner in owners.items() if owner.has_instance is not None}
        return {name: owner.group for name, owner in owners.items()}, known_machines
    group_of: dict[str, str] = {}
    has_instance: dict[str, bool] = {}
    for ref in refs:
        group = await provider.node_group_for_node(ref)
        if group is None:
            continue
        group_of[ref.name] = group.id
        known = await provider.has_instance(ref)
        if isinstance(known, bool):
            has_instance[ref.name] = known
    return group_of, has_instance


async def _find_templates(
    ports: Mapping[str, GroupPort], found: GroupNodes, templates: GroupTemplates, now: datetime
) -> dict[str, GroupTemplate]:
    """Templates by group. The provider is asked only for groups without a usable node."""
    provided: dict[str, GroupTemplate] = {}
    for name, port in ports.items():
        if templates.needs_provider_template(name, found, now):
            node = await port.template_node_info()
            if not isinstance(node, NotImplementedByProvider):
                provided[name] = from_provider(node)
    return templates.update(found, ports, provided, now)


async def _read_group(
    provider: Provider, port: GroupPort, *, template: GroupTemplate | None, policy: Policy, now: datetime
) -> NodeGroupState:
    defaults = _build_default_options(policy)
    options = await port.get_options(defaults)
    zones = await port.get_zones() if isinstance(port, ZonedGroup) else ()
    # Asked here, so that a provider that does not answer ends the loop before it acts; providers keep the answer.
    await port.can_increase_atomically()
    return NodeGroupState(
        port=port,
        target=await port.target_size(),
        instances=await port.nodes(),
        options=defaults if isinstance(options, NotImplementedByProvider) else options,
        template=template,
        price_per_hour=await _read_price(provider, template, now),
        zones=zones,
        zone_forecast=await port.forecast_zones() if len(zones) > 1 and isinstance(port, ZoneForecastingGroup) else (),
    )


async def _read_price(provider: Provider, template: GroupTemplate | None, now: datetime) -> float | None:
    if template is None:
        return None
    hour = Span(start=now, end=now + timedelta(hours=1))
    price = await provider.node_price(NodeRef.from_node(template.node), hour)
    return None if isinstance(price, NotImplementedByProvider) else price


def _build_default_options(policy: Policy) -> GroupOptions:
    down = policy.scale_down
    return GroupOptions(
        utilization_threshold=down.utilization_threshold,
        gpu_utilization_threshold=down.gpu_utilization_threshold,
        unneeded_s=down.unneeded_time_s,
        unready_s=down.unready_time_s,
        provision_s=policy.groups.provision_time_s,
        startup_s=policy.groups.startup_time_s,
        ignore_daemon_sets=down.ignore_daemon_sets,
    )


def _build_observed_group(read: NodeGroupState, policy: Policy) -> ObservedGroup:
    bare = _build_planned_group(read, policy) if read.template is not None else None
    sizes = None if bare is None else find_size_bounds(bare, policy)
    labels = read.template.node.metadata.labels if read.template is not None else {}
    return ObservedGroup(
        id=read.port.id,
        min_size=read.port.min_size if sizes is None else sizes.least,
        max_size=read.port.max_size if sizes is None else sizes.most,
        target_size=read.target,
        instances=tuple(to_observed_instance(instance) for instance in read.instances),
        provision_time_s=read.options.provision_s,
        startup_time_s=read.options.startup_s,
        machine_type=labels.get(INSTANCE_TYPE, ""),
        zone=labels.get(ZONE, ""),
        autoscaled=sizes is not None,
        profile=labels.get(PROFILE_LABEL, ""),
    )


def _build_planned_group(read: NodeGroupState, policy: Policy, *, health: ClusterHealth | None = None) -> NodeGroup:
    assert read.template is not None, "asked only about groups with a template"
    port, labels = read.port, read.template.node.metadata.labels
    stands = None if health is None else health.groups[port.id]
    is_spot = labels.get(CAPACITY_TYPE_LABEL) == CapacityType.SPOT
    made_by_us = is_ours(port.id, policy.nap.prefix)
    return NodeGroup(
        id=port.id,
        min_size=port.min_size,
        max_size=port.max_size,
        target_size=read.target if stands is None else stands.target_size,
        template=read.template.node,
        daemons=read.template.daemons,
        daemons_are_known=read.template.daemons_are_known,
        price_per_hour=read.price_per_hour,
        machine_type=labels.get(INSTANCE_TYPE, ""),
        zone=labels.get(ZONE, ""),
        autoprovisioned=made_by_us if port.autoprovisioned is None else port.autoprovisioned,
        autoscaled=port.autoscaled,
        zero_or_max=read.options.zero_or_max,
        not_usable="" if stands is None else stands.not_usable,
        capacity_type=CapacityType.SPOT if is_spot else CapacityType.ON_DEMAND,
        shrinking=_find_scale_down_options(read.options, _build_default_options(policy)),
    )


def _find_scale_down_options(options: GroupOptions, defaults: GroupOptions) -> GroupScaleDownOptions | None:
    """The group's own scale-down options; None if they equal the flags, as for most groups."""
    rules = _to_scale_down_options(options)
    return None if rules == _to_scale_down_options(defaults) else rules


def _to_scale_down_options(options: GroupOptions) -> GroupScaleDownOptions:
    return GroupScaleDownOptions(
        utilization_threshold=options.utilization_threshold,
        gpu_utilization_threshold=options.gpu_utilization_threshold,
        unneeded_time_s=options.unneeded_s,
        unready_time_s=options.unready_s,
        ignore_daemon_sets=options.ignore_daemon_sets,
    )
