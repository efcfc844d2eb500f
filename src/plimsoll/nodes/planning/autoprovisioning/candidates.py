"""Groups that auto-provisioning could create: per profile and machine type that would help some pod. Pure.

docs/design/nodes.md 5.5-5.8. Pods are grouped by what they require of a node. For every machine type those labels are
chosen that serve most of the pods that fit it, then again for the rest. Each set of labels and taints is a profile; it
gives one option per zone where zones matter, else one. Work grows with machine types and distinct requirements, not
with pods.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.resources import CPU
from plimsoll.nodes.model.gpus import count_gpus, is_gpu
from plimsoll.nodes.model.group_names import Making, Naming, generate_group_id, hash_profile
from plimsoll.nodes.model.node_labels import ARCH, MACHINE_TYPE_ALIAS, OS
from plimsoll.nodes.model.node_templates import MachineTemplate, map_zones_to_regions
from plimsoll.nodes.model.prices import compute_price
from plimsoll.nodes.model.reasons import IN_BACKOFF
from plimsoll.nodes.model.scale_up_plan import GroupProfile, ScaleUpOption, SkippedGroup
from plimsoll.nodes.planning.autoprovisioning.label_sets import (
    SelectorDemand,
    build_single_label_set,
    find_machine_type,
    merge_label_set,
    order_by_popularity,
    remove_machine_type,
)
from plimsoll.nodes.planning.autoprovisioning.requirements import (
    PodGroup,
    RequirementReader,
    RequirementSets,
    map_serving_taints,
    read_requirements,
)
from plimsoll.nodes.planning.autoprovisioning.taints import choose_accelerator_taints
from plimsoll.nodes.planning.state.group_sizes import LARGEST_GROUP
from plimsoll.nodes.planning.state.resource_limits import (
    CountedNode,
    ResourceLimit,
    count_addable_nodes,
    find_exhausted,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from plimsoll.core.plans import Reason
    from plimsoll.core.resources import ResourceVector
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import LabelSet
    from plimsoll.nodes.model.snapshot import MachineType, PendingPods, Snapshot
    from plimsoll.nodes.planning.autoprovisioning.taints import TaintSet
    from plimsoll.nodes.planning.state.daemon_overhead import DaemonSets
    from plimsoll.objects.api.nodes import Node
    from plimsoll.solver.problem import Flags, Ints

_CPU_OF_A_POD_WITHOUT: Final = 50
"""Millicores, for nap-popularity=cpu."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGroups:
    """Possible new groups, skipped types, and the label sets. `impossible`: pods that no group helps."""

    options: tuple[ScaleUpOption, ...] = ()
    skipped_groups: tuple[SkippedGroup, ...] = ()
    label_sets: tuple[LabelSet, ...] = ()
    impossible: Mapping[str, Reason] = dataclasses.field(default_factory=dict)
    regions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Regions by zone."""


def find_new_groups(
    snapshot: Snapshot,
    policy: Policy,
    limits: Sequence[ResourceLimit],
    daemons: DaemonSets,
    *,
    most: int,
    reader: RequirementReader | None = None,
) -> NewGroups:
    """Options for new groups; at most `most` groups are created in all. `reader` may know the pods already."""
    nodes = (state.node for state in snapshot.view.nodes.values())
    regions = map_zones_to_regions((*nodes, *(group.template for group in snapshot.groups)))
    types, left_out = _find_usable_types(snapshot, policy, limits, regions)
    requirement_sets = read_requirements(snapshot.pending, reader or RequirementReader.from_snapshot(snapshot, policy))
    demands = Demands(snapshot.pending, requirement_sets, policy.nap.popularity)
    builder = _OptionBuilder(snapshot, policy, limits=limits, daemons=daemons)
    for compatible in _group_compatible(requirement_sets, policy):
        candidates = [_Candidate(kind, compatible, demands, daemons) for kind in types]
        _reserve_gpu_types(candidates, compatible)
        for candidate in candidates:
            choices = candidate.iterate_choices(merge=policy.nap.label_merge)
            made = (1 for choice in choices if builder.take(candidate, choice))
            # More kinds of groups than may be created are of no use; pods not served yet wait for the next loop.
            sum(itertools.islice(made, most))
    return NewGroups(
        options=tuple(builder.options),
        skipped_groups=(*left_out, *builder.skipped_groups.values()),
        label_sets=tuple(builder.label_sets.values()),
        impossible=requirement_sets.impossible,
        regions=regions,
    )


def _find_usable_types(
    snapshot: Snapshot, policy: Policy, limits: Sequence[ResourceLimit], regions: Mapping[str, str]
) -> tuple[list[MachineTemplate], list[SkippedGroup]]:
    """Machine types that the policy allows and that fit into the cluster's limits at least once."""
    wanted = policy.nap.machine_types
    known = {kind.name: kind for kind in snapshot.machine_types}
    left_out = [
        SkippedGroup(group="", machine_type=name, code="UnknownMachineType", reason="the provider has no such type")
        for name in wanted
        if name not in known
    ]
    usable: list[MachineTemplate] = []
    for kind in known.values():
        if wanted and kind.name not in wanted:
            continue
        broken = find_exhausted(limits, CountedNode(capacity=kind.capacity, labels=kind.labels))
        left_out += [
            SkippedGroup(group="", machine_type=kind.name, code=limit.code, reason=str(limit)) for limit in broken
        ]
        if not broken:
            usable.append(MachineTemplate(kind, regions))
    return usable, left_out


# ---- requirements of pods


class Demands:
    """Requests of all pending entries as numbers, and how much each entry weighs when labels are chosen."""

    def __init__(self, pending: Sequence[PendingPods], requirement_sets: RequirementSets, popularity: str) -> None:
        self.names = tuple(dict.fromkeys(name for demand in requirement_sets.demands for name in demand))
        shape = (len(pending), len(self.names))
        rows = [[demand[name] for name in self.names] for demand in requirement_sets.demands]
        self._requests: Ints = np.array(rows, dtype=np.int64).reshape(shape)
        counts = [entry.count for entry in pending]
        if popularity == "cpu":
            cpu = (demand[CPU] or _CPU_OF_A_POD_WITHOUT for demand in requirement_sets.demands)
            counts = [count * cpu_request for count, cpu_request in zip(counts, cpu, strict=True)]
        self.weights: Ints = np.array(counts, dtype=np.int64)
        self._fitting: dict[tuple[int, ...], Flags] = {}
        """By free resources: the zones of a machine type have the same."""

    def find_fitting(self, free: ResourceVector) -> Flags:
        """[entries]: whether one pod fits an empty node with these free resources."""
        room = tuple(free[name] for name in self.names)
        if room not in self._fitting:
            fitting = (self._requests <= np.array(room, dtype=np.int64)) | (self._requests <= 0)
            self._fitting[room] = np.asarray(fitting.all(axis=1), dtype=np.bool_)
        return self._fitting[room]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CompatiblePods:
    """Pods that could share nodes if labels allow: same taints, same kinds of resources, same architecture."""

    pod_groups: tuple[PodGroup, ...]
    taints: TaintSet

    has_taints: bool = True
    """Whether nap-taints lets new groups have taints."""

    @property
    def requests_gpus(self) -> bool:
        return any(is_gpu(name) for name in self.pod_groups[0].requirements.extended)

    def choose_accelerator_taints(self, kind: MachineType) -> TaintSet:
        """None for pods that request no accelerator: they use such machines only if no other would take them."""
        if not self.has_taints or not self.requests_gpus:
            return ()
        return choose_accelerator_taints(
            kind.capacity,
            kind.taints,
            lambda taint: all(pod_group.matcher.tolerates((taint,)) for pod_group in self.pod_groups),
        )


def _group_compatible(requirement_sets: RequirementSets, policy: Policy) -> list[_CompatiblePods]:
    serving = map_serving_taints(requirement_sets.pod_groups, policy)
    groups: dict[Hashable, list[PodGroup]] = {}
    for pod_group in requirement_sets.pod_groups:
        requirements = pod_group.requirements
        key = (
            serving[requirements.taints],
            requirements.extended,
            requirements.pinned.get(ARCH),
            requirements.pinned.get(OS),
        )
        groups.setdefault(key, []).append(pod_group)
    return [
        _CompatiblePods(
            pod_groups=tuple(found),
            taints=serving[found[0].requirements.taints],
            has_taints=policy.nap.taints != "none",
        )
        for found in groups.values()
    ]


# ---- labels for one part on one machine type


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """Labels for a group, and the pods that it serves."""

    label_set: LabelSet
    labels: Mapping[str, str]
    """The labels of the label set that the group gets."""
    served: tuple[PodGroup, ...]


class _Candidate:
    """One machine type as a candidate for one set of compatible pods."""

    def __init__(
        self, template: MachineTemplate, compatible: _CompatiblePods, demands: Demands, daemons: DaemonSets
    ) -> None:
        self.template = template
        self.kind: MachineType = template.kind
        self.compatible = compatible
        self.demands = demands
        self.group_taints = (*compatible.taints, *compatible.choose_accelerator_taints(self.kind))
        """The taints of a group of this type, beside those that the machines bring."""
        self.taints = (*self.kind.taints, *self.group_taints)
        bare = template.build_node("", "", GroupProfile(taints=self.group_taints))
        self.fits = demands.find_fitting(self.kind.allocatable - daemons.compute_overhead(bare).demand).copy()
        self._systems = [template.build_system_labels(zone) for zone in self.kind.zones or ("",)]

    def serves(self, pod_group: PodGroup, labels: Mapping[str, str]) -> bool:
        """Whether the type with these labels serves the pods in some zone."""
        return pod_group.matcher.tolerates(self.taints) and any(
            pod_group.matcher.allows({**labels, **system}) for system in self._systems
        )

    def iterate_choices(self, *, merge: str) -> Iterator[_Choice]:
        """Label sets until every pod that could run on this type has one; sets that serve the most pods come first."""
        left = self._rank([pod_group for pod_group in self.compatible.pod_groups if self._would_fit(pod_group)])
        while left:
            chosen = self._choose(left, merge)
            if find_machine_type(chosen.label_set.labels) not in {None, self.kind.name}:
                left = [
                    pod_group
                    for pod_group in left
                    if find_machine_type(pod_group.requirements.selector) in {None, self.kind.name}
                ]
                if not left:
                    return
                chosen = self._choose(left, merge)
            if not chosen.served:
                # Merged labels can forbid what each selector alone allows ("b NotIn x" with "b=x").
                chosen = self._choose(left, "alpha")
            if not chosen.served:
                return
            yield chosen
            done = set(chosen.served)
            left = [pod_group for pod_group in left if pod_group not in done]

    def _rank(self, found: Sequence[PodGroup]) -> list[PodGroup]:
        """Pod groups by falling popularity of their selectors. Removing some does not change the order."""
        demands = [
            SelectorDemand(selector=pod_group.requirements.selector, popularity=self._count_popularity(pod_group))
            for pod_group in found
        ]
        by_selector: dict[tuple[tuple[str, str], ...], list[PodGroup]] = {}
        for pod_group in found:
            by_selector.setdefault(_to_tuple(pod_group.requirements.selector), []).append(pod_group)
        return [
            pod_group
            for demand in order_by_popularity(demands)
            for pod_group in by_selector[_to_tuple(demand.selector)]
        ]

    def _would_fit(self, pod_group: PodGroup) -> bool:
        """Whether the pods fit if the type had their labels. When merging, the machine type is a label like others."""
        if not self.fits[pod_group.members].any() or not pod_group.matcher.tolerates(self.taints):
            return False
        return any(pod_group.matcher.allows({**system, **pod_group.requirements.selector}) for system in self._systems)

    def _choose(self, left: Sequence[PodGroup], merge: str) -> _Choice:
        selectors = list(
            {_to_tuple(pod_group.requirements.selector): pod_group.requirements.selector for pod_group in left}.values()
        )
        label_set = build_single_label_set(selectors) if merge == "alpha" else merge_label_set(selectors)
        labels = remove_machine_type(label_set.labels)
        among = left
        if merge == "alpha":
            among = [pod_group for pod_group in left if remove_machine_type(pod_group.requirements.selector) == labels]
        if any(MACHINE_TYPE_ALIAS in selector for selector in label_set.merged):
            labels[MACHINE_TYPE_ALIAS] = self.kind.name
        served = tuple(pod_group for pod_group in among if self.serves(pod_group, labels))
        truly = {_to_tuple(pod_group.requirements.selector) for pod_group in served}
        named = tuple(selector for selector in label_set.served if _to_tuple(selector) in truly)
        return _Choice(label_set=dataclasses.replace(label_set, served=named), labels=labels, served=served)

    def _count_popularity(self, pod_group: PodGroup) -> int:
        fitting = pod_group.members[self.fits[pod_group.members]]
        return int(self.demands.weights[fitting].sum())


def _to_tuple(selector: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(selector.items()))


def _reserve_gpu_types(candidates: Sequence[_Candidate], compatible: _CompatiblePods) -> None:
    """Keep types with accelerators for pods that request accelerators or fit no other type."""
    if compatible.requests_gpus:
        return
    with_gpus = [candidate for candidate in candidates if count_gpus(candidate.kind.capacity) > 0]
    others = [candidate for candidate in candidates if count_gpus(candidate.kind.capacity) == 0]
    if not with_gpus or not others:
        return
    for pod_group in compatible.pod_groups:
        members = pod_group.members
        elsewhere = np.zeros(len(members), dtype=np.bool_)
        for candidate in others:
            if candidate.serves(pod_group, pod_group.requirements.selector):
                elsewhere |= candidate.fits[members]
        for gpu_candidate in with_gpus:
            gpu_candidate.fits[members] &= ~elsewhere


# ---- options


class _OptionBuilder:
    """The options so far: one per machine type, profile and zone."""

    def __init__(
        self, snapshot: Snapshot, policy: Policy, *, limits: Sequence[ResourceLimit], daemons: DaemonSets
    ) -> None:
        self.options: list[ScaleUpOption] = []
        self.skipped_groups: dict[Hashable, SkippedGroup] = {}
        self.label_sets: dict[str, LabelSet] = {}
        self._snapshot = snapshot
        self._policy = policy
        self._limits = limits
        self._daemons = daemons
        self._second = int(snapshot.at.timestamp())
        self._taken = {group.id for group in snapshot.groups}
        self._made: set[Hashable] = set()

    def take(self, candidate: _Candidate, choice: _Choice) -> bool:
        """Add the options of a choice; returns whether there are any."""
        named = choice.label_set
        self.label_sets.setdefault(json.dumps([named.labels, named.merged, named.served], sort_keys=True), named)
        taints = candidate.group_taints
        profile = GroupProfile(labels=choice.labels, taints=taints, hash=hash_profile(choice.labels, taints))
        matter = any(pod_group.requirements.zones_matter for pod_group in choice.served)
        found = False
        for zone in candidate.kind.zones or ("",):
            if self._is_backed_off(candidate.kind.name, zone, profile):
                continue
            found = self._add_option(candidate, choice, profile, zone) or found
            if found and not matter:
                break
        return found

    def _is_backed_off(self, machine_type: str, zone: str, profile: GroupProfile) -> bool:
        backoffs = self._snapshot.creation_backoffs
        why = backoffs.get((machine_type, zone, profile.hash)) or backoffs.get((machine_type, zone, ""))
        if not why:
            return False
        where = f"{machine_type} in {zone}" if zone else machine_type
        self.skipped_groups.setdefault(
            (machine_type, zone, why),
            SkippedGroup(
                group="",
                machine_type=machine_type,
                code=IN_BACKOFF,
                reason=f"a new group of {where}: {why}",
                zone=zone,
            ),
        )
        return True

    def _add_option(self, candidate: _Candidate, choice: _Choice, profile: GroupProfile, zone: str) -> bool:
        """Add an option if some served pod fits the zone; returns whether the option exists now."""
        kind = candidate.kind
        key = (kind.name, profile.hash, zone)
        if key in self._made:
            return True
        name = self._name(kind, profile, zone)
        node = candidate.template.build_node(name, zone, profile)
        carried = self._daemons.compute_overhead(node)
        free = kind.allocatable - carried.demand
        fits = candidate.demands.find_fitting(free)
        if not any(_runs_on(pod_group, node) and fits[pod_group.members].any() for pod_group in choice.served):
            return False
        price = compute_price(
            kind.name, kind.capacity, given=kind.price_per_hour, exists=False, overlay=self._policy.overlay
        )
        max_size = self._policy.nap.max_group_size or LARGEST_GROUP
        room = min(
            max_size,
            count_addable_nodes(self._limits, CountedNode(capacity=kind.capacity, labels=node.metadata.labels)),
        )
        self._made.add(key)
        self._taken.add(name)
        self.options.append(
            ScaleUpOption(
                group=name,
                node=node,
                daemons=carried.pods,
                free=free,
                capacity=kind.capacity,
                price_per_hour=price.per_hour,
                planning_price=price.planning,
                size=0,
                max_size=max_size,
                room=room,
                machine_type=kind.name,
                zone=zone,
                exists=False,
                profile=profile,
                capacity_type=kind.capacity_type,
            )
        )
        return True

    def _name(self, kind: MachineType, profile: GroupProfile, zone: str) -> str:
        policy = self._policy
        making = Making(labels=profile.labels, taints=profile.taints, zone=zone, second=self._second)
        return generate_group_id(
            policy.nap.prefix, kind.name, making, naming=policy.naming or Naming(), taken=self._taken
        )


def _runs_on(pod_group: PodGroup, node: Node) -> bool:
    return pod_group.matcher.allows(node.metadata.labels) and pod_group.matcher.tolerates(node.spec.taints)
