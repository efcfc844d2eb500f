"""Pods as the cluster's own scheduler sees them, where its profile differs from the default one. Pure.

A filter that a profile leaves out finds nothing to judge by: what it looks at is removed from the pod before planning.
Default constraints, added affinity and ignored resources likewise become the pod's own. So nothing in planning has to
know of profiles (docs/design/nodes.md 6.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from plimsoll.nodes.config.scheduler_profiles import (
    DEFAULT_SCHEDULER,
    NODE_AFFINITY,
    POD_AFFINITY,
    PORTS,
    SPREAD,
    TAINTS,
)
from plimsoll.objects.api.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm, Toleration
from plimsoll.objects.api.meta import LabelSelector
from plimsoll.objects.owners import find_controller

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.nodes.config.scheduler_profiles import SchedulerProfile
    from plimsoll.objects.api.affinity import TopologySpreadConstraint
    from plimsoll.objects.api.pods import Container, Pod, PodSpec, ResourceRequirements

_ANY_TAINT: Final = Toleration(operator="Exists")
_SPREADING: Final = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet"})
"""Owners by whose selector the scheduler spreads pods that name no constraints."""
_OF_ONE_POD: Final = frozenset(
    {"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "controller-revision-hash"}
)


class SchedulerProfilePods:
    """Applies the profiles of a cluster's scheduler to pods."""

    def __init__(self, profiles: Sequence[SchedulerProfile]) -> None:
        self._only = profiles[0] if len(profiles) == 1 else None
        self._by_scheduler = {profile.scheduler: profile for profile in profiles}
        self._is_plain = all(profile.is_plain for profile in profiles)

    def apply(self, pod: Pod) -> Pod:
        """A single profile applies to all pods, as in Cluster Autoscaler; of several, that of the pod's scheduler."""
        if self._is_plain:
            return pod
        profile = self._only or self._by_scheduler.get(pod.spec.scheduler_name or DEFAULT_SCHEDULER)
        return pod if profile is None else apply_profile(pod, profile)


def apply_profile(pod: Pod, profile: SchedulerProfile) -> Pod:
    changes: dict[str, Any] = {}
    spec = pod.spec
    if TAINTS in profile.off:
        changes["tolerations"] = (*spec.tolerations, _ANY_TAINT)
    if NODE_AFFINITY in profile.off:
        changes["node_selector"] = {}
    if (affinity := _build_affinity(spec, profile)) != spec.affinity:
        changes["affinity"] = affinity
    if (spread := _build_spread(pod, profile)) != spec.topology_spread_constraints:
        changes["topology_spread_constraints"] = spread
    if PORTS in profile.off or profile.ignored_resources or profile.ignored_resource_groups:
        changes["containers"] = tuple(_apply_to_container(container, profile) for container in spec.containers)
        changes["init_containers"] = tuple(
            _apply_to_container(container, profile) for container in spec.init_containers
        )
        changes["overhead"] = _without_ignored(spec.overhead, profile)
        if spec.resources is not None:
            changes["resources"] = _apply_to_resources(spec.resources, profile)
    return structs.replace(pod, spec=structs.replace(spec, **changes)) if changes else pod


# ---- affinity


def _build_affinity(spec: PodSpec, profile: SchedulerProfile) -> Affinity | None:
    given = spec.affinity or Affinity()
    if NODE_AFFINITY in profile.off:
        given = structs.replace(given, node_affinity=None)
    elif profile.added_terms:
        given = structs.replace(given, node_affinity=_combine_affinity(given.node_affinity, profile.added_terms))
    if POD_AFFINITY in profile.off:
        given = structs.replace(given, pod_affinity=None, pod_anti_affinity=None)
    return None if given == Affinity() else given


def _combine_affinity(given: NodeAffinity | None, added: Iterable[NodeSelectorTerm]) -> NodeAffinity:
    """Both have to hold: one of the pod's terms together with one of the added ones."""
    affinity = given or NodeAffinity()
    own = affinity.required_during_scheduling_ignored_during_execution
    terms = (
        added if own is None else [_combine_terms(term, other) for term in own.node_selector_terms for other in added]
    )
    selector = NodeSelector(node_selector_terms=tuple(terms))
    return structs.replace(affinity, required_during_scheduling_ignored_during_execution=selector)


def _combine_terms(term: NodeSelectorTerm, other: NodeSelectorTerm) -> NodeSelectorTerm:
    """An empty term matches no node, and so does it with any other."""
    if NodeSelectorTerm() in (term, other):
        return NodeSelectorTerm()
    return NodeSelectorTerm(
        match_expressions=(*term.match_expressions, *other.match_expressions),
        match_fields=(*term.match_fields, *other.match_fields),
    )


# ---- spread


def _build_spread(pod: Pod, profile: SchedulerProfile) -> tuple[TopologySpreadConstraint, ...]:
    own = pod.spec.topology_spread_constraints
    if SPREAD in profile.off:
        return ()
    if own or not profile.default_spread:
        return own
    selector = _build_selector(pod)
    if selector is None:
        return own
    return tuple(structs.replace(constraint, label_selector=selector) for constraint in profile.default_spread)


def _build_selector(pod: Pod) -> LabelSelector | None:
    """The selector for default spread: the pods of its owner. Services, which may join owners, are ignored."""
    owner = find_controller(pod.metadata)
    labels = {key: value for key, value in pod.metadata.labels.items() if key not in _OF_ONE_POD}
    return LabelSelector(match_labels=labels) if owner is not None and owner.kind in _SPREADING and labels else None


# ---- what containers ask for


def _apply_to_container(container: Container, profile: SchedulerProfile) -> Container:
    ports = container.ports
    if PORTS in profile.off:
        ports = tuple(structs.replace(port, host_port=0) for port in ports)
    return structs.replace(container, ports=ports, resources=_apply_to_resources(container.resources, profile))


def _apply_to_resources(given: ResourceRequirements, profile: SchedulerProfile) -> ResourceRequirements:
    return structs.replace(
        given,
        requests=_without_ignored(given.requests, profile),
        limits=_without_ignored(given.limits, profile),
    )


def _without_ignored(amounts: dict[str, Any], profile: SchedulerProfile) -> dict[str, Any]:
    return {name: amount for name, amount in amounts.items() if not _is_ignored(name, profile)}


def _is_ignored(resource: str, profile: SchedulerProfile) -> bool:
    """Whether the profile ignores the resource: only extended resources, which have the group in their name."""
    group, separator, _ = resource.partition("/")
    if not separator:
        return False
    return resource in profile.ignored_resources or group in profile.ignored_resource_groups
