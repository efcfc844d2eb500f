"""Whether a pod may run on a node: every rule, in kube-scheduler's order; the first one that refuses decides.

This is the reference: the embedded scheduler uses it, plans are verified with it, and the fast planner is compared with
it. `explain` lists everything that keeps a pod off a node. Rules are prepared once for a pod and a view (what
kube-scheduler calls PreFilter), then asked about each node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.scheduling.rules.host_ports import NODE_PORTS, prepare_host_ports
from plimsoll.scheduling.rules.inter_pod_affinity import INTER_POD_AFFINITY, prepare_inter_pod
from plimsoll.scheduling.rules.node_affinity import NODE_AFFINITY, RequiredNodes, prepare_node_affinity
from plimsoll.scheduling.rules.resources_fit import (
    DYNAMIC_RESOURCES,
    RESOURCES_FIT,
    prepare_dynamic_resources,
    prepare_resources_fit,
)
from plimsoll.scheduling.rules.scheduling_gates import SCHEDULING_GATES, prepare_gates
from plimsoll.scheduling.rules.taints import (
    NODE_NAME,
    NODE_UNSCHEDULABLE,
    TAINT_TOLERATION,
    prepare_node_name,
    prepare_taints,
    prepare_unschedulable,
)
from plimsoll.scheduling.rules.topology_spread import TOPOLOGY_SPREAD, prepare_spread
from plimsoll.scheduling.rules.volume_binding import VOLUME_BINDING, VOLUME_ZONE, prepare_binding, prepare_zones
from plimsoll.scheduling.rules.volume_limits import VOLUME_LIMITS, prepare_limits
from plimsoll.scheduling.rules.volume_restrictions import VOLUME_RESTRICTIONS, prepare_conflicts
from plimsoll.scheduling.verdicts import FITS, DoesNotFit, Refusal, Rule, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView, NodeState

    Prepare = Callable[[Pod, ClusterView], Rule | Refusal | None]

# The order of kube-scheduler's default profile.
RULES: Final[Mapping[str, Prepare]] = {
    SCHEDULING_GATES: prepare_gates,
    NODE_UNSCHEDULABLE: prepare_unschedulable,
    NODE_NAME: prepare_node_name,
    TAINT_TOLERATION: prepare_taints,
    NODE_AFFINITY: prepare_node_affinity,
    NODE_PORTS: prepare_host_ports,
    RESOURCES_FIT: prepare_resources_fit,
    VOLUME_RESTRICTIONS: prepare_conflicts,
    VOLUME_LIMITS: prepare_limits,
    VOLUME_BINDING: prepare_binding,
    VOLUME_ZONE: prepare_zones,
    TOPOLOGY_SPREAD: prepare_spread,
    INTER_POD_AFFINITY: prepare_inter_pod,
    DYNAMIC_RESOURCES: prepare_dynamic_resources,
}


class Profile(Value, frozen=True):
    """The active rules by kube-scheduler's plugin names; a scheduler configuration may disable some."""

    disabled: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if unknown := sorted(self.disabled - RULES.keys()):
            known = ", ".join(sorted(RULES))
            raise InvalidInput(f"no rule is called {', '.join(unknown)}; there are {known}", path="disabled")


DEFAULT_PROFILE: Final = Profile()


class Prepared:
    """All rules of a profile, ready for one pod. `everywhere` are refusals that no node can change."""

    __slots__ = ("everywhere", "named_nodes", "rules")

    def __init__(self, pod: Pod, view: ClusterView, *, profile: Profile) -> None:
        rules: list[Rule] = []
        everywhere: list[Refusal] = []
        self.named_nodes: frozenset[str] | None = None
        for plugin, prepare in RULES.items():
            if plugin in profile.disabled:
                continue
            outcome = prepare(pod, view)
            if isinstance(outcome, Refusal):
                everywhere.append(outcome)
            elif outcome is not None:
                rules.append(outcome)
                if isinstance(outcome, RequiredNodes):
                    self.named_nodes = outcome.named
        self.rules = tuple(rules)
        self.everywhere = tuple(everywhere)

    def find_refusals(self, place: NodeState) -> Iterator[Refusal]:
        """Every rule that refuses this node, in order."""
        yield from self.everywhere
        for rule in self.rules:
            refusal = rule.refuse(place)
            if refusal is not None:
                yield refusal

    def check(self, place: NodeState) -> Verdict:
        refusal = next(self.find_refusals(place), None)
        return FITS if refusal is None else DoesNotFit(reason=refusal)


def prepare_pod(pod: Pod, view: ClusterView, *, profile: Profile = DEFAULT_PROFILE) -> Prepared:
    """The rules for this pod, prepared once per view. A pod of the view is checked as if it were removed."""
    known = view.get_prepared(pod, profile)
    if isinstance(known, Prepared):
        return known
    fresh = Prepared(pod, view.without_pod(pod) if view.holds(pod) else view, profile=profile)
    view.remember(pod, profile, fresh)
    return fresh


def check_node(pod: Pod, node: Node, view: ClusterView, *, profile: Profile = DEFAULT_PROFILE) -> Verdict:
    """Whether `pod` may run on `node`. A node that is not in the view is checked as if it had just joined."""
    place = view.find_node(node.metadata.name)
    if place is None or (place.node is not node and place.node != node):
        view = view.with_node(node)
        place = view.nodes[node.metadata.name]
    if view.holds(pod) and pod.spec.node_name == place.name:
        place = view.without_pod(pod).nodes[place.name]
    return prepare_pod(pod, view, profile=profile).check(place)


def check_nodes(pod: Pod, view: ClusterView, *, profile: Profile = DEFAULT_PROFILE) -> dict[str, Verdict]:
    """The verdict for every node of the view."""
    rules = prepare_pod(pod, view, profile=profile)
    if view.holds(pod):
        view = view.without_pod(pod)
    return {name: rules.check(place) for name, place in view.nodes.items()}


def check_other_nodes(pod: Pod, view: ClusterView, *, profile: Profile = DEFAULT_PROFILE) -> dict[str, Verdict]:
    """Where a pod could run instead of on its node: removed from the view, checked on every other node."""
    free = structs.replace(pod, spec=structs.replace(pod.spec, node_name=""))
    found = check_nodes(free, view.without_pod(pod) if view.holds(pod) else view, profile=profile)
    return {name: verdict for name, verdict in found.items() if name != pod.spec.node_name}


def explain(pod: Pod, view: ClusterView, *, profile: Profile = DEFAULT_PROFILE) -> dict[str, tuple[Refusal, ...]]:
    """All refusals per node, not only the first; empty where the pod fits."""
    rules = prepare_pod(pod, view, profile=profile)
    if view.holds(pod):
        view = view.without_pod(pod)
    return {name: tuple(rules.find_refusals(place)) for name, place in view.nodes.items()}
