"""What pods require of the nodes that are created for them, and which pods require the same. Pure.

A selector is what a pod pins: its nodeSelector, and required node affinity of the form "key In (one value)". Labels
that a machine or its location sets by itself (type, zone, architecture) restrict the candidates; all others can be put
on a new group. If a requirement cannot be met by inventing labels ("any value of k"), no group is created for the pod,
and the reason says so (docs/design/nodes.md 5.6).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.errors import InvalidQuantity, InvalidSelector
from plimsoll.core.node_selectors import build_node_requirement
from plimsoll.core.plans import Reason
from plimsoll.core.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, ResourceVector
from plimsoll.nodes.model.node_labels import (
    MACHINE_TYPE_KEYS,
    SYSTEM_KEYS,
    ZONE_KEYS,
)
from plimsoll.nodes.planning.autoprovisioning.allowed_labels import LabelRules
from plimsoll.nodes.planning.autoprovisioning.taints import TaintSet, TransientTaints, choose_taints, merge_taint_sets
from plimsoll.scheduling.pod_requests import compute_pod_demand
from plimsoll.scheduling.rules.taints import Tolerations
from plimsoll.scheduling.selectors import parse_node_selector
from plimsoll.scheduling.storage import list_claim_names

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from plimsoll.core.node_selectors import NodeSelector
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.snapshot import MachineType, NodeGroup, PendingPods, Snapshot
    from plimsoll.objects.api import affinity as placement
    from plimsoll.objects.api.nodes import Taint
    from plimsoll.objects.api.pods import Pod
    from plimsoll.solver.problem import Ints

_ORDINARY: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE, PODS})
_NO_GROUP: Final = "NoGroupCanBeMade"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRequirements:
    """The requirements of one pod for a new node. `impossible`: why no new node can meet them."""

    selector: Mapping[str, str] = field(default_factory=dict)
    """Labels to put on a group, and the machine type under the key that the pod uses."""
    pinned: Mapping[str, str] = field(default_factory=dict)
    """All labels that the pod pins, including system labels."""
    taints: TaintSet = ()
    extended: tuple[str, ...] = ()
    demand: ResourceVector = field(default_factory=ResourceVector)
    zones_matter: bool = False
    impossible: Reason | None = None


class NodeMatcher:
    """A pod's nodeSelector, node affinity and tolerations, compiled for checks of nodes that do not exist yet."""

    __slots__ = ("_affinity", "_selector", "_tolerations")

    def __init__(self, pod: Pod) -> None:
        required = _get_required_node_affinity(pod)
        self._selector = tuple(pod.spec.node_selector.items())
        self._affinity: NodeSelector | None = None if required is None else parse_node_selector(required)
        self._tolerations = Tolerations(pod.spec.tolerations)

    def allows(self, labels: Mapping[str, str]) -> bool:
        if any(labels.get(key) != value for key, value in self._selector):
            return False
        return self._affinity is None or self._affinity.matches(labels)

    def tolerates(self, taints: Iterable[Taint]) -> bool:
        return self._tolerations.find_untolerated(taints) is None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PodGroup:
    """Pending entries with equal requirements except for amounts of resources."""

    requirements: NodeRequirements
    """The requirements of one of the entries."""
    matcher: NodeMatcher
    members: Ints
    """Their positions among the pending entries."""


class RequirementReader:
    """Reads the requirements of pods under one policy, for the machine types of one provider."""

    def __init__(self, policy: Policy, machine_types: Iterable[MachineType], groups: Iterable[NodeGroup] = ()) -> None:
        types = tuple(machine_types)
        self.system_keys = SYSTEM_KEYS | {key for machine_type in types for key in machine_type.labels}
        self._provided_taints = frozenset(taint.key for machine_type in types for taint in machine_type.taints)
        self._transient = TransientTaints(policy.pods)
        self._how = policy.nap.taints
        self._label_rules = LabelRules(policy.nap, groups, self.system_keys)
        self._known: dict[int, tuple[Pod, NodeRequirements]] = {}
        """By identity of the pod, which is kept so that no other one gets it."""

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, policy: Policy) -> RequirementReader:
        return cls(policy, snapshot.machine_types, snapshot.groups)

    def read(self, pod: Pod) -> NodeRequirements:
        if id(pod) not in self._known:
            self._known[id(pod)] = pod, self._read(pod)
        return self._known[id(pod)][1]

    def _read(self, pod: Pod) -> NodeRequirements:
        try:
            demand = compute_pod_demand(pod)
            pinned, problem = self._read_pinned_labels(pod)
        except (InvalidQuantity, InvalidSelector) as error:
            return NodeRequirements(impossible=_build_impossible_reason(str(error)))
        taints = choose_taints(
            self._label_rules.select_free_tolerations(pod.spec.tolerations),
            selector=pinned,
            how=self._how,
            transient=self._transient,
            provided=self._provided_taints,
        )
        return NodeRequirements(
            selector={key: value for key, value in pinned.items() if self._is_put_on_groups(key)},
            pinned=pinned,
            taints=taints,
            extended=tuple(name for name in demand if name not in _ORDINARY),
            demand=demand,
            zones_matter=bool(ZONE_KEYS & _collect_label_keys(pod)) or bool(list_claim_names(pod)),
            impossible=None if problem is None else _build_impossible_reason(problem),
        )

    def _is_put_on_groups(self, key: str) -> bool:
        return key in MACHINE_TYPE_KEYS or key not in self.system_keys

    def _read_pinned_labels(self, pod: Pod) -> tuple[dict[str, str], str | None]:
        """The pinned labels, and why they cannot be met. Of several terms, the first that can be met counts."""
        own = pod.spec.node_selector
        required = _get_required_node_affinity(pod)
        if pod.spec.node_name:
            return dict(own), f"the pod names its node, {pod.spec.node_name}"
        if required is None:
            return dict(own), self._find_refused_label(own)
        problem: str | None = "its node affinity has no terms"
        pinned = dict(own)
        for term in required.node_selector_terms:
            pinned, problem = self._read_term(term, own)
            if problem is None:
                break
        return pinned, problem

    def _read_term(self, term: placement.NodeSelectorTerm, own: Mapping[str, str]) -> tuple[dict[str, str], str | None]:
        pinned = dict(own)
        for requirement in term.match_expressions:
            if requirement.operator == "In" and len(requirement.values) == 1:
                pinned.setdefault(requirement.key, requirement.values[0])
        if any(node_selector_requirement.operator == "In" for node_selector_requirement in term.match_fields):
            return pinned, "the pod names its node by a field"
        for selector_requirement in term.match_expressions:
            if selector_requirement.key not in pinned and not self._is_put_on_groups(selector_requirement.key):
                continue
            condition = build_node_requirement(
                selector_requirement.key, selector_requirement.operator, selector_requirement.values
            )
            if selector_requirement.key in MACHINE_TYPE_KEYS and selector_requirement.key not in pinned:
                continue
            if not condition.matches(pinned):
                return pinned, _describe_unmet(selector_requirement, pinned)
        return pinned, self._find_refused_label(pinned)

    def _find_refused_label(self, pinned: Mapping[str, str]) -> str | None:
        """Why a new group must not carry a pinned label that no machine has by itself."""
        return self._label_rules.find_refusal(
            {key: value for key, value in pinned.items() if self._is_put_on_groups(key)}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementSets:
    """All pending entries by their requirements. `impossible`: why no group can be created, by key of the entry."""

    pod_groups: tuple[PodGroup, ...]
    demands: tuple[ResourceVector, ...]
    """The demand of each entry, by position."""
    impossible: Mapping[str, Reason]


def read_requirements(pending: Sequence[PendingPods], reader: RequirementReader) -> RequirementSets:
    members: dict[Hashable, list[int]] = {}
    firsts: dict[Hashable, NodeRequirements] = {}
    impossible: dict[str, Reason] = {}
    demands: list[ResourceVector] = []
    for index, entry in enumerate(pending):
        requirements = reader.read(entry.pod)
        demands.append(requirements.demand)
        if requirements.impossible is not None:
            impossible[entry.key] = requirements.impossible
            continue
        key = _build_group_key(entry.pod, requirements)
        members.setdefault(key, []).append(index)
        firsts.setdefault(key, requirements)
    found = (
        PodGroup(
            requirements=requirements,
            matcher=NodeMatcher(pending[members[key][0]].pod),
            members=np.array(members[key], dtype=np.int64),
        )
        for key, requirements in firsts.items()
    )
    return RequirementSets(pod_groups=tuple(found), demands=tuple(demands), impossible=impossible)


def map_serving_taints(found: Iterable[PodGroup], policy: Policy) -> dict[TaintSet, TaintSet]:
    """Each set of custom taints to the taints of the nodes that serve its pods."""
    sets = {pod_group.requirements.taints for pod_group in found}
    return merge_taint_sets(sets) if policy.nap.taints_merge else {taint_set: taint_set for taint_set in sets}


def _build_group_key(pod: Pod, requirements: NodeRequirements) -> Hashable:
    return (
        tuple(sorted(pod.spec.node_selector.items())),
        _get_required_node_affinity(pod),
        tuple(sorted(set(pod.spec.tolerations), key=repr)),
        requirements.extended,
        requirements.zones_matter,
    )


def _get_required_node_affinity(pod: Pod) -> placement.NodeSelector | None:
    affinity = None if pod.spec.affinity is None else pod.spec.affinity.node_affinity
    return None if affinity is None else affinity.required_during_scheduling_ignored_during_execution


def _collect_label_keys(pod: Pod) -> set[str]:
    """All label keys that restrict where the pod may run."""
    return {*pod.spec.node_selector, *_iterate_affinity_keys(pod), *_iterate_topology_keys(pod)}


def _iterate_affinity_keys(pod: Pod) -> Iterator[str]:
    required = _get_required_node_affinity(pod)
    for term in () if required is None else required.node_selector_terms:
        yield from (requirement.key for requirement in term.match_expressions)


def _iterate_topology_keys(pod: Pod) -> Iterator[str]:
    for constraint in pod.spec.topology_spread_constraints:
        if constraint.when_unsatisfiable != "ScheduleAnyway":
            yield constraint.topology_key
    affinity = pod.spec.affinity
    if affinity is None:
        return
    for terms in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if terms is not None:
            yield from (term.topology_key for term in terms.required_during_scheduling_ignored_during_execution)


def _describe_unmet(requirement: placement.NodeSelectorRequirement, pinned: Mapping[str, str]) -> str:
    condition = " ".join(filter(None, (requirement.key, requirement.operator, ", ".join(requirement.values))))
    if requirement.key in pinned:
        return f"its requirements contradict each other: {requirement.key}={pinned[requirement.key]}, and {condition}"
    return f"no label is made up to meet its node affinity: {condition}"


def _build_impossible_reason(problem: str) -> Reason:
    return Reason(code=_NO_GROUP, message=f"no group can be created for it: {problem}")
