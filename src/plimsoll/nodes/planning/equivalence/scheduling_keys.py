"""What of a pod's spec decides where it may run, in a form in which equal wishes are equal values.

`classes` groups pods by it. Two pods whose specs differ in images, commands, the order of tolerations or in preferences
come to one `SpecForm`; pods that any scheduling rule could tell apart by their specs never do. What rules read from
elsewhere (labels, namespace, claims) is not in it: `selectors_in_play` and `volume_forms` say how much of that counts.

Making a form costs some ten microseconds, so `Forms` remembers: by (uid, resourceVersion) for pods it has seen, and by
the bytes of the spec for pods of one controller. It never looks at a cluster and holds nothing but such memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.resources import ZERO, ResourceVector
from plimsoll.scheduling.priorities import priority_of
from plimsoll.scheduling.rules.host_ports import HostPort, host_ports
from plimsoll.scheduling.rules.resources_fit import pod_demand

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

Form = tuple[Any, ...]

_ENCODER: Final = msgspec.msgpack.Encoder()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SpecForm:
    """The normal form of a spec. One object for each within a `Forms`: equal means identical."""

    number: int
    key: Form
    demand: ResourceVector
    ports: tuple[HostPort, ...]
    pin: str
    """spec.nodeName."""
    nodes: Form
    """nodeSelector and required node affinity; empty when every node will do."""
    tolerations: Form
    spread: Form
    affinity: Form
    anti_affinity: Form
    label_keys: frozenset[str]
    """Keys of pods' labels that its own terms and constraints can see."""
    priority: int

    @property
    def meets_others(self) -> bool:
        """Whether it has a term or constraint that looks at other pods."""
        return bool(self.spread or self.affinity or self.anti_affinity)


class Forms:
    """Makes forms, each once. `forget` drops what was not asked for since the last time it was called."""

    def __init__(self) -> None:
        self._by_pod: dict[tuple[str, str], SpecForm] = {}
        self._by_bytes: dict[bytes, SpecForm] = {}
        self._by_key: dict[Form, SpecForm] = {}
        self._used_pods: dict[tuple[str, str], SpecForm] = {}
        self._used_bytes: dict[bytes, SpecForm] = {}
        self._sound: dict[Form, SpecForm] = {}
        self._used_sound: dict[Form, SpecForm] = {}
        self._made = 0

    def of(self, pod: Pod) -> SpecForm:
        meta = pod.metadata
        if not (meta.uid and meta.resource_version):
            return self._by_spec(pod)
        identity = (meta.uid, meta.resource_version)
        found = self._by_pod.get(identity)
        if found is None:
            found = self._by_spec(pod)
        self._used_pods[identity] = found
        return found

    def forget(self) -> None:
        self._by_pod, self._used_pods = self._used_pods, {}
        kept = {form.key: form for form in self._by_pod.values()}
        kept.update((form.key, form) for form in self._used_bytes.values())
        self._by_key = kept
        self._by_bytes, self._used_bytes = self._used_bytes, {}
        self._sound, self._used_sound = self._used_sound, {}

    def is_sound(self, pod: Pod, form: SpecForm, under: Hashable) -> bool:
        """Whether it was `found_sound` before: all that could be wrong with a pod without claims is in these."""
        key = _soundness(pod, form, under)
        if key in self._sound or key in self._used_sound:
            self._used_sound[key] = form
            return True
        return False

    def found_sound(self, pod: Pod, form: SpecForm, under: Hashable) -> None:
        """No rule refuses the pod whatever the node, under this profile."""
        self._used_sound[_soundness(pod, form, under)] = form

    def _by_spec(self, pod: Pod) -> SpecForm:
        written = fingerprint(pod)
        found = self._by_bytes.get(written) or self._used_bytes.get(written)
        if found is None:
            found = self._interned(pod, written)
        self._used_bytes[written] = found
        return found

    def _interned(self, pod: Pod, written: bytes) -> SpecForm:
        made = _form(pod, written, number=self._made)
        found = self._by_key.setdefault(made.key, made)
        self._made += found is made
        return found


def pending_keys(cache: PlannerCache) -> Forms:
    """The keys of pending pods."""
    return cache.get(Forms, "pending")


def request_keys(cache: PlannerCache) -> Forms:
    """The keys of pods of ProvisioningRequests, which are planned apart from pending pods."""
    return cache.get(Forms, "requests")


def running_keys(cache: PlannerCache) -> Forms:
    """The keys of running pods."""
    return cache.get(Forms, "running")


def _soundness(pod: Pod, form: SpecForm, under: Hashable) -> Form:
    return (form.number, pod.metadata.namespace, frozenset(pod.metadata.labels.items()), under)


def fingerprint(pod: Pod) -> bytes:
    """Everything a form is made from. Pods of one controller have the same; other pods may, and then are as alike."""
    spec = pod.spec
    status = pod.status
    resized = [
        (container_status.name, container_status.allocated_resources, container_status.resources)
        for container_status in (*status.container_statuses, *status.init_container_statuses)
        if container_status.allocated_resources or container_status.resources is not None
    ]
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
            (resized, status.conditions) if resized else (),
        )
    )


def _form(pod: Pod, written: bytes, *, number: int) -> SpecForm:
    spec = pod.spec
    wanted, unwanted = _required_terms(pod)
    hard = [
        constraint
        for constraint in spec.topology_spread_constraints
        if constraint.when_unsatisfiable in {"", "DoNotSchedule"}
    ]
    demand, unreadable = _demand(pod, written)
    ports = tuple(sorted(host_ports(pod)))
    nodes = _nodes_form(pod)
    tolerations = tolerations_form(spec.tolerations)
    spread = tuple(_spread_form(constraint) for constraint in hard)
    company, apart = _terms_form(wanted), _terms_form(unwanted)
    asked = (frozenset(demand.items()), nodes, tolerations, spread, company, apart, ports)
    return SpecForm(
        number=number,
        key=(*asked, *_other_marks(spec), unreadable),
        demand=demand,
        ports=ports,
        pin=spec.node_name,
        nodes=nodes,
        tolerations=tolerations,
        spread=spread,
        affinity=company,
        anti_affinity=apart,
        label_keys=frozenset().union(*map(term_label_keys, (*wanted, *unwanted)), *map(_spread_label_keys, hard)),
        priority=priority_of(pod),
    )


def _required_terms(pod: Pod) -> tuple[tuple[PodAffinityTerm, ...], tuple[PodAffinityTerm, ...]]:
    """What it asks of other pods: to be with them, and without them."""
    affinity = pod.spec.affinity
    with_pods = None if affinity is None else affinity.pod_affinity
    against = None if affinity is None else affinity.pod_anti_affinity
    return (
        () if with_pods is None else with_pods.required_during_scheduling_ignored_during_execution,
        () if against is None else against.required_during_scheduling_ignored_during_execution,
    )


def _other_marks(spec: PodSpec) -> Form:
    """What tells pods apart beyond what they ask for."""
    gates = tuple(gate.name for gate in spec.scheduling_gates)
    devices = tuple(claim.name for claim in spec.resource_claims)
    return (spec.node_name, spec.priority, spec.scheduler_name, gates, devices)


def _demand(pod: Pod, written: bytes) -> tuple[ResourceVector, bytes]:
    """The demand; one that cannot be read makes the pod a kind of its own."""
    try:
        return pod_demand(pod), b""
    except InvalidQuantity:
        return ZERO, written


def _nodes_form(pod: Pod) -> Form:
    affinity = pod.spec.affinity
    by_node = None if affinity is None else affinity.node_affinity
    required = None if by_node is None else by_node.required_during_scheduling_ignored_during_execution
    selector = tuple(sorted(pod.spec.node_selector.items()))
    if required is None:
        return (selector, None) if selector else ()
    # Terms are alternatives: neither their order nor saying one twice changes anything.
    return (selector, tuple(sorted(set(map(_node_term_form, required.node_selector_terms)))))


def _node_term_form(term: NodeSelectorTerm) -> Form:
    return (_requirements_form(term.match_expressions), _requirements_form(term.match_fields))


def _requirements_form(requirements: Iterable[NodeSelectorRequirement]) -> Form:
    return tuple(
        sorted(
            {
                (requirement.key, requirement.operator, tuple(sorted(set(requirement.values))))
                for requirement in requirements
            }
        )
    )


def tolerations_form(tolerations: Iterable[Toleration]) -> Form:
    """What is tolerated; for how long only matters to pods that run, and an unknown operator tolerates nothing."""
    forms = {
        (toleration.key, toleration.effect, "Exists", "")
        if toleration.operator == "Exists"
        else (toleration.key, toleration.effect, "Equal", toleration.value)
        for toleration in tolerations
        if toleration.operator in {"", "Equal", "Exists"}
    }
    return tuple(sorted(forms))


def selector_form(selector: LabelSelector | None) -> Form | None:
    """None for an absent selector (it selects nothing), empty for an empty one (it selects everything)."""
    if selector is None:
        return None
    expressions = {
        (requirement.key, requirement.operator, tuple(sorted(set(requirement.values))))
        for requirement in selector.match_expressions
    }
    pairs = {(key, "In", (value,)) for key, value in selector.match_labels.items()}
    return tuple(sorted(expressions | pairs))


def _terms_form(terms: Iterable[PodAffinityTerm]) -> Form:
    # As text, since an absent selector does not compare with one that is there.
    return tuple(sorted({_term_form(term) for term in terms}, key=repr))


def _term_form(term: PodAffinityTerm) -> Form:
    return (
        term.topology_key,
        selector_form(term.label_selector),
        tuple(sorted(set(term.namespaces))),
        selector_form(term.namespace_selector),
        tuple(sorted(set(term.match_label_keys))),
        tuple(sorted(set(term.mismatch_label_keys))),
    )


def _spread_form(one: TopologySpreadConstraint) -> Form:
    return (
        one.topology_key,
        one.max_skew,
        1 if one.min_domains is None else one.min_domains,
        selector_form(one.label_selector),
        one.node_affinity_policy or "Honor",
        one.node_taints_policy or "Ignore",
        tuple(sorted(set(one.match_label_keys))),
    )


def term_label_keys(term: PodAffinityTerm) -> set[str]:
    """The keys of pods' labels that a term can see, through its selector and through the label keys it matches."""
    return {*_selector_keys(term.label_selector), *term.match_label_keys, *term.mismatch_label_keys}


def _spread_label_keys(one: TopologySpreadConstraint) -> set[str]:
    return {*_selector_keys(one.label_selector), *one.match_label_keys}


def _selector_keys(selector: LabelSelector | None) -> set[str]:
    if selector is None:
        return set()
    return {*selector.match_labels, *(requirement.key for requirement in selector.match_expressions)}


def visible_labels(labels: Mapping[str, str], keys: frozenset[str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(item for item in labels.items() if item[0] in keys))
