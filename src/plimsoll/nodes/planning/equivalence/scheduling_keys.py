"""The scheduling key of a pod: the parts of its spec that decide where it may run, in a normal form.

Pods whose specs differ in images, commands, the order of tolerations or in preferences share a `SchedulingKey`; pods
that a scheduling rule could distinguish by their specs never do. Labels, namespace and claims are not part of it.

Building a key takes about ten microseconds, so `SchedulingKeys` caches: by (uid, resourceVersion) of the pod, and by
the encoded spec for pods of one controller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.resources import ZERO, ResourceVector
from plimsoll.scheduling.host_ports import HostPort, list_host_ports
from plimsoll.scheduling.pod_requests import compute_pod_demand
from plimsoll.scheduling.priorities import get_priority

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from plimsoll.nodes.model.planner_cache import PlannerCache
    from plimsoll.objects.api.affinity import (
        NodeSelectorRequirement,
        NodeSelectorTerm,
        PodAffinityTerm,
        Toleration,
        TopologySpreadConstraint,
    )
    from plimsoll.objects.api.meta import LabelSelector
    from plimsoll.objects.api.pods import Pod, PodSpec

Key = tuple[Any, ...]

_ENCODER: Final = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SchedulingKey:
    """The normal form of a spec. Within one `SchedulingKeys`, equal keys are identical objects."""

    number: int
    identity: Key
    demand: ResourceVector
    ports: tuple[HostPort, ...]
    node_name: str
    """spec.nodeName."""
    node_constraints: Key
    """nodeSelector and required node affinity; empty if every node is allowed."""
    tolerations: Key
    spread: Key
    affinity: Key
    anti_affinity: Key
    label_keys: frozenset[str]
    """The keys of pod labels that its own terms and constraints can see."""
    priority: int

    @property
    def has_pod_constraints(self) -> bool:
        """Whether it has a term or constraint that looks at other pods."""
        return bool(self.spread or self.affinity or self.anti_affinity)


class SchedulingKeys:
    """Builds and caches keys. `forget_unused` drops keys not requested since its last call."""

    def __init__(self) -> None:
        self._by_pod: dict[tuple[str, str], SchedulingKey] = {}
        self._by_bytes: dict[bytes, SchedulingKey] = {}
        self._by_key: dict[Key, SchedulingKey] = {}
        self._used_pods: dict[tuple[str, str], SchedulingKey] = {}
        self._used_bytes: dict[bytes, SchedulingKey] = {}
        self._valid: dict[Key, SchedulingKey] = {}
        self._used_valid: dict[Key, SchedulingKey] = {}
        self._made = 0

    def get_key(self, pod: Pod) -> SchedulingKey:
        meta = pod.metadata
        if not (meta.uid and meta.resource_version):
            return self._find_by_spec(pod)
        identity = (meta.uid, meta.resource_version)
        found = self._by_pod.get(identity)
        if found is None:
            found = self._find_by_spec(pod)
        self._used_pods[identity] = found
        return found

    def forget_unused(self) -> None:
        self._by_pod, self._used_pods = self._used_pods, {}
        kept = {form.identity: form for form in self._by_pod.values()}
        kept.update((form.identity, form) for form in self._used_bytes.values())
        self._by_key = kept
        self._by_bytes, self._used_bytes = self._used_bytes, {}
        self._valid, self._used_valid = self._used_valid, {}

    def is_known_valid(self, pod: Pod, form: SchedulingKey, profile: Hashable) -> bool:
        """Whether `mark_valid` was called for such a pod. For a pod without claims the key covers everything."""
        key = _build_validity_key(pod, form, profile)
        if key in self._valid or key in self._used_valid:
            self._used_valid[key] = form
            return True
        return False

    def mark_valid(self, pod: Pod, form: SchedulingKey, profile: Hashable) -> None:
        """Remember that no rule of this profile refuses the pod on every node."""
        self._used_valid[_build_validity_key(pod, form, profile)] = form

    def _find_by_spec(self, pod: Pod) -> SchedulingKey:
        written = compute_fingerprint(pod)
        found = self._by_bytes.get(written) or self._used_bytes.get(written)
        if found is None:
            found = self._intern(pod, written)
        self._used_bytes[written] = found
        return found

    def _intern(self, pod: Pod, written: bytes) -> SchedulingKey:
        made = _build_key(pod, written, number=self._made)
        found = self._by_key.setdefault(made.identity, made)
        self._made += found is made
        return found


def get_pending_keys(cache: PlannerCache) -> SchedulingKeys:
    """The keys of pending pods."""
    return cache.get(SchedulingKeys, "pending")


def build_request_keys(cache: PlannerCache) -> SchedulingKeys:
    """The keys of pods of ProvisioningRequests, which are planned apart from pending pods."""
    return cache.get(SchedulingKeys, "requests")


def get_running_keys(cache: PlannerCache) -> SchedulingKeys:
    """The keys of running pods."""
    return cache.get(SchedulingKeys, "running")


def _build_validity_key(pod: Pod, form: SchedulingKey, under: Hashable) -> Key:
    return (form.number, pod.metadata.namespace, frozenset(pod.metadata.labels.items()), under)


def compute_fingerprint(pod: Pod) -> bytes:
    """The encoded fields that a key is built from. Pods of one controller share it; equal bytes mean equal keys."""
    spec = pod.spec
    status = pod.status
    resized = [
        (container_status.name, container_status.allocated_resources, container_status.resources)
        for container_status in (*status.container_statuses, *status.init_container_statuses)
        if container_status.allocated_resources or container_status.resources is not None
    ]
    # Times of conditions decide nothing, and one with an offset may lie beyond the year 9999.
    conditions = [(condition.type, condition.status, condition.reason) for condition in status.conditions]
    return _ENCODER.encode(
        (
            spec.containers,
            spec.init_containers,
            spec.resources,
            spec.overhead,
            spec.node_name,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            spec.scheduling_gates,
            spec.resource_claims,
            spec.scheduler_name,
            spec.priority,
            spec.host_network,
            (resized, conditions) if resized else (),
        )
    )


def _build_key(pod: Pod, written: bytes, *, number: int) -> SchedulingKey:
    spec = pod.spec
    wanted, unwanted = _list_required_terms(pod)
    hard = [
        constraint
        for constraint in spec.topology_spread_constraints
        if constraint.when_unsatisfiable in {"", "DoNotSchedule"}
    ]
    demand, unreadable = _read_demand(pod, written)
    ports = tuple(sorted(list_host_ports(pod)))
    nodes = _build_node_constraints_key(pod)
    tolerations = build_tolerations_key(spec.tolerations)
    spread = tuple(_spread_key(constraint) for constraint in hard)
    affinity_key, anti_affinity_key = _build_terms_key(wanted), _build_terms_key(unwanted)
    decisive = (frozenset(demand.items()), nodes, tolerations, spread, affinity_key, anti_affinity_key, ports)
    return SchedulingKey(
        number=number,
        identity=(*decisive, *_build_other_fields_key(spec), unreadable),
        demand=demand,
        ports=ports,
        node_name=spec.node_name,
        node_constraints=nodes,
        tolerations=tolerations,
        spread=spread,
        affinity=affinity_key,
        anti_affinity=anti_affinity_key,
        label_keys=frozenset().union(
            *map(collect_term_label_keys, (*wanted, *unwanted)), *map(_spread_label_keys, hard)
        ),
        priority=get_priority(pod),
    )


def _list_required_terms(pod: Pod) -> tuple[tuple[PodAffinityTerm, ...], tuple[PodAffinityTerm, ...]]:
    """The required affinity terms and the required anti-affinity terms."""
    affinity = pod.spec.affinity
    with_pods = None if affinity is None else affinity.pod_affinity
    against = None if affinity is None else affinity.pod_anti_affinity
    return (
        () if with_pods is None else with_pods.required_during_scheduling_ignored_during_execution,
        () if against is None else against.required_during_scheduling_ignored_during_execution,
    )


def _build_other_fields_key(spec: PodSpec) -> Key:
    """The fields that distinguish pods besides their requests."""
    gates = tuple(gate.name for gate in spec.scheduling_gates)
    devices = tuple(claim.name for claim in spec.resource_claims)
    return (spec.node_name, spec.priority, spec.scheduler_name, gates, devices)


def _read_demand(pod: Pod, written: bytes) -> tuple[ResourceVector, bytes]:
    """The demand. A pod whose demand cannot be parsed gets a key of its own."""
    try:
        return compute_pod_demand(pod), b""
    except InvalidQuantity:
        return ZERO, written


def _build_node_constraints_key(pod: Pod) -> Key:
    affinity = pod.spec.affinity
    by_node = None if affinity is None else affinity.node_affinity
    required = None if by_node is None else by_node.required_during_scheduling_ignored_during_execution
    selector = tuple(sorted(pod.spec.node_selector.items()))
    if required is None:
        return (selector, None) if selector else ()
    # Terms are alternatives: neither order nor duplicates matter.
    return (selector, tuple(sorted(set(map(_build_node_term_key, required.node_selector_terms)))))


def _build_node_term_key(term: NodeSelectorTerm) -> Key:
    return (_build_requirements_key(term.match_expressions), _build_requirements_key(term.match_fields))


def _build_requirements_key(requirements: Iterable[NodeSelectorRequirement]) -> Key:
    return tuple(
        sorted(
            {
                (requirement.key, requirement.operator, tuple(sorted(set(requirement.values))))
                for requirement in requirements
            }
        )
    )


def build_tolerations_key(tolerations: Iterable[Toleration]) -> Key:
    """The tolerations. tolerationSeconds only matters for running pods; an unknown operator tolerates nothing."""
    forms = {
        (toleration.key, toleration.effect, "Exists", "")
        if toleration.operator == "Exists"
        else (toleration.key, toleration.effect, "Equal", toleration.value)
        for toleration in tolerations
        if toleration.operator in {"", "Equal", "Exists"}
    }
    return tuple(sorted(forms))


def build_selector_key(selector: LabelSelector | None) -> Key | None:
    """None for an absent selector (it selects nothing), empty for an empty one (it selects everything)."""
    if selector is None:
        return None
    expressions = {
        (requirement.key, requirement.operator, tuple(sorted(set(requirement.values))))
        for requirement in selector.match_expressions
    }
    pairs = {(key, "In", (value,)) for key, value in selector.match_labels.items()}
    return tuple(sorted(expressions | pairs))


def _build_terms_key(terms: Iterable[PodAffinityTerm]) -> Key:
    # As text, because None and a selector cannot be compared.
    return tuple(sorted({_build_term_key(term) for term in terms}, key=repr))


def _build_term_key(term: PodAffinityTerm) -> Key:
    return (
        term.topology_key,
        build_selector_key(term.label_selector),
        tuple(sorted(set(term.namespaces))),
        build_selector_key(term.namespace_selector),
        tuple(sorted(set(term.match_label_keys))),
        tuple(sorted(set(term.mismatch_label_keys))),
    )


def _spread_key(constraint: TopologySpreadConstraint) -> Key:
    return (
        constraint.topology_key,
        constraint.max_skew,
        1 if constraint.min_domains is None else constraint.min_domains,
        build_selector_key(constraint.label_selector),
        constraint.node_affinity_policy or "Honor",
        constraint.node_taints_policy or "Ignore",
        tuple(sorted(set(constraint.match_label_keys))),
    )


def collect_term_label_keys(term: PodAffinityTerm) -> set[str]:
    """The keys of pods' labels that a term can see, through its selector and through the label keys it matches."""
    return {*_collect_selector_keys(term.label_selector), *term.match_label_keys, *term.mismatch_label_keys}


def _spread_label_keys(constraint: TopologySpreadConstraint) -> set[str]:
    return {*_collect_selector_keys(constraint.label_selector), *constraint.match_label_keys}


def _collect_selector_keys(selector: LabelSelector | None) -> set[str]:
    if selector is None:
        return set()
    return {*selector.match_labels, *(requirement.key for requirement in selector.match_expressions)}


def select_labels(labels: Mapping[str, str], keys: frozenset[str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(item for item in labels.items() if item[0] in keys))
