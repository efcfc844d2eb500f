"""The cluster as the scheduling rules see it: nodes with the pods on them, namespaces, storage. Immutable.

Built once from a snapshot. Adding or removing a pod or a node gives a new view that shares everything else, so that
a planner can try and discard. What rules need often is counted when a pod is placed: used resources, host ports,
claims, and which pods keep others away. Pods that have ended, or are on no node of the view, are not in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Self

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.resources import PODS, ZERO, ResourceVector
from plimsoll.scheduling.affinity_terms import AffinityTerm, parse_existing_anti_affinity
from plimsoll.scheduling.host_ports import HostPort, TakenPorts, list_host_ports
from plimsoll.scheduling.pod_requests import compute_pod_demand
from plimsoll.scheduling.storage import Storage, list_claim_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.codec.decode_problems import BadObject

_ENDED: Final = frozenset({"Succeeded", "Failed"})
# Prepared pods remembered by a view: a scheduler asks about one pod on every node, then about the next one.
_REMEMBERED: Final = 8
_MOST_PODS: Final = 2**31 - 1


class PodKey(NamedTuple):
    """The identity of a pod within a cluster."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


# Pods with the same namespace and labels match the same selectors: each selector is evaluated once for all of them.
LabelsKey = tuple[str, frozenset[tuple[str, str]]]


def get_pod_key(pod: Pod) -> PodKey:
    return PodKey(pod.metadata.namespace, pod.metadata.name)


class PlacedPod:
    """A pod on a node, with the fields that rules need already read."""

    __slots__ = (
        "anti_affinity",
        "claims",
        "count",
        "demand",
        "key",
        "labels",
        "labels_key",
        "leaving",
        "namespace",
        "pod",
        "ports",
        "problem",
    )

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.key = get_pod_key(pod)
        self.namespace = pod.metadata.namespace
        self.labels: Mapping[str, str] = pod.metadata.labels
        self.labels_key: LabelsKey = (self.namespace, frozenset(self.labels.items()))
        self.leaving = pod.metadata.deletion_timestamp is not None
        self.problem = ""
        self.demand = ZERO
        try:
            self.demand = compute_pod_demand(pod)
        except InvalidQuantity as error:
            self.problem = f"pod {self.key}: {error}"
        # Only a placeholder stands for several pods; a pod that requests the resource may state any number.
        self.count = min(self.demand[PODS] or 1, _MOST_PODS)
        """More than one where it stands for pods that are only booked."""
        self.ports: frozenset[HostPort] = list_host_ports(pod)
        self.anti_affinity: tuple[AffinityTerm, ...] = parse_existing_anti_affinity(pod)
        self.claims: tuple[str, ...] = list_claim_names(pod)

    def rename(self, name: str) -> PlacedPod:
        """An equal pod with another name; nothing is read again."""
        # Slot by slot: a loop over their names takes twice as long, and there may be a hundred thousand of these.
        other = object.__new__(PlacedPod)
        other.pod, other.namespace = self.pod, self.namespace
        other.labels, other.labels_key = self.labels, self.labels_key
        other.leaving, other.problem, other.demand, other.count = self.leaving, self.problem, self.demand, self.count
        other.ports, other.anti_affinity, other.claims = self.ports, self.anti_affinity, self.claims
        other.key = PodKey(self.namespace, name)
        return other


class NodeState:
    """A node and what is on it. `problem` is set when its free resources cannot be known."""

    __slots__ = (
        "_ports",
        "_unreadable",
        "allocatable",
        "bad_quantities",
        "free",
        "labels",
        "name",
        "node",
        "pods",
        "problem",
        "unreadable_pods",
        "used",
    )

    def __init__(self, node: Node) -> None:
        """A node without pods."""
        self.node = node
        self.name = node.metadata.name
        self.labels: Mapping[str, str] = node.metadata.labels
        self.pods: Mapping[PodKey, PlacedPod] = {}
        self.unreadable_pods: tuple[BadObject, ...] = ()
        self.used = ZERO
        self.allocatable, problems = ResourceVector.read_bounded(node.status.allocatable, path="status.allocatable")
        self.bad_quantities = problems
        self._unreadable = f"node {self.name}: {problems[0]}" if problems else ""
        self.problem = self._unreadable
        self.free = self.allocatable
        self._ports: TakenPorts | None = None

    @property
    def ports(self) -> TakenPorts:
        if self._ports is None:
            self._ports = TakenPorts(port for placed in self.pods.values() for port in placed.ports)
        return self._ports

    def on(self, node: Node) -> NodeState:
        """The same pods on a node whose object has changed."""
        other = NodeState(node).with_pods(self.pods.values())
        for bad in self.unreadable_pods:
            other = other.with_unreadable(bad)
        return other

    def with_pods(self, added: Iterable[PlacedPod]) -> NodeState:
        """With these pods added; a pod that is present is replaced."""
        pods = dict(self.pods)
        used = self.used
        for placed in added:
            before = pods.pop(placed.key, None)
            used = used + placed.demand if before is None else used + placed.demand - before.demand
            pods[placed.key] = placed
        return self._with_pods(pods, used)

    def without(self, key: PodKey) -> NodeState:
        pods = dict(self.pods)
        gone = pods.pop(key)
        return self._with_pods(pods, self.used - gone.demand)

    def exchange(self, gone: Iterable[PodKey], added: Iterable[PlacedPod]) -> NodeState:
        """Without some pods and with others, in the order of their keys."""
        pods, used = dict(self.pods), self.used
        for key in gone:
            used = used - pods.pop(key).demand
        for placed in added:
            pods[placed.key] = placed
            used = used + placed.demand
        return self._with_pods(dict(sorted(pods.items())), used)

    def with_unreadable(self, bad: BadObject) -> NodeState:
        """The same state with a pod that cannot be decoded and therefore cannot be removed."""
        other = self._with_pods(self.pods, self.used)
        other.unreadable_pods = (*self.unreadable_pods, bad)
        other.problem = other.problem or _describe(bad)
        return other

    def _with_pods(self, pods: Mapping[PodKey, PlacedPod], used: ResourceVector) -> NodeState:
        """The same node with other pods, without reading the node again."""
        other = object.__new__(NodeState)
        other.node, other.name, other.labels = self.node, self.name, self.labels
        other.allocatable, other._unreadable = self.allocatable, self._unreadable
        other.bad_quantities = self.bad_quantities
        other.pods, other.used, other.unreadable_pods = pods, used, self.unreadable_pods
        other.free = self.allocatable - used
        problems = (
            *(placed_pod.problem for placed_pod in pods.values() if placed_pod.problem),
            *map(_describe, self.unreadable_pods),
        )
        other.problem = self._unreadable or next(iter(problems), "")
        other._ports = None
        return other


def _describe(bad: BadObject) -> str:
    return f"pod {bad.namespace}/{bad.name}: {bad.problem}"


class ClusterView:
    """An immutable snapshot for scheduling decisions."""

    __slots__ = ("_anti_affine", "_nodes", "_prepared", "namespaces", "storage")

    def __init__(
        self,
        nodes: dict[str, NodeState],
        *,
        namespaces: Mapping[str, Mapping[str, str]],
        storage: Storage,
        anti_affine: Mapping[str, None],
    ) -> None:
        self._nodes = nodes
        self._anti_affine = anti_affine
        self._prepared: tuple[tuple[Pod, object, object], ...] = ()
        self.namespaces = namespaces
        self.storage = storage

    @classmethod
    def from_objects(
        cls,
        nodes: Iterable[Node] = (),
        pods: Iterable[Pod] = (),
        *,
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
        storage: Storage | None = None,
        bad_pods: Iterable[BadObject] = (),
    ) -> Self:
        """From listed objects. `namespaces` maps a name to its labels.

        `bad_pods` are there but could not be read: what is free on their nodes is not known, so nothing fits there.
        """
        by_node: dict[str, list[PlacedPod]] = {}
        for pod in pods:
            if pod.spec.node_name and pod.status.phase not in _ENDED:
                by_node.setdefault(pod.spec.node_name, []).append(PlacedPod(pod))
        states: dict[str, NodeState] = {}
        for node in nodes:
            name = node.metadata.name
            states[name] = NodeState(node).with_pods(by_node.get(name, ()))
        for bad in bad_pods:
            if bad.node_name in states:
                states[bad.node_name] = states[bad.node_name].with_unreadable(bad)
        anti = {name: None for name, state in states.items() if _keeps_others_away(state)}
        return cls(states, namespaces=namespaces or {}, storage=storage or Storage(), anti_affine=anti)

    @property
    def nodes(self) -> Mapping[str, NodeState]:
        return self._nodes

    @property
    def anti_affine_nodes(self) -> Iterable[NodeState]:
        """Nodes with a pod whose required anti-affinity may keep others away; mostly none."""
        return (self._nodes[name] for name in self._anti_affine)

    @property
    def has_anti_affinity(self) -> bool:
        return bool(self._anti_affine)

    def find_node(self, name: str) -> NodeState | None:
        return self._nodes.get(name)

    def holds(self, pod: Pod) -> bool:
        state = self._nodes.get(pod.spec.node_name)
        return state is not None and get_pod_key(pod) in state.pods

    def with_pod(self, pod: Pod, node_name: str = "") -> Self:
        """With `pod` placed on `node_name` (default: the node its spec names). It must be a node of the view."""
        name = node_name or pod.spec.node_name
        return self._with_state(self._nodes[name].with_pods((PlacedPod(pod),)))

    def without_pod(self, pod: Pod, node_name: str = "") -> Self:
        name = node_name or pod.spec.node_name
        return self._with_state(self._nodes[name].without(get_pod_key(pod)))

    def with_node(self, node: Node) -> Self:
        """With a node added, or its object replaced while its pods stay."""
        before = self._nodes.get(node.metadata.name)
        return self._with_state(NodeState(node) if before is None else before.on(node))

    def without_nodes(self, names: Collection[str]) -> Self:
        """Without these nodes and the pods on them."""
        nodes = {name: state for name, state in self._nodes.items() if name not in names}
        anti = {name: None for name in self._anti_affine if name not in names}
        return self._change(nodes, anti)

    def with_states(self, states: Iterable[NodeState]) -> Self:
        """With these states in place of the nodes of their names, in one step."""
        nodes, anti = dict(self._nodes), dict(self._anti_affine)
        for state in states:
            nodes[state.name] = state
            anti.pop(state.name, None)
            if _keeps_others_away(state):
                anti[state.name] = None
        return self._change(nodes, anti)

    def with_storage(self, storage: Storage) -> Self:
        return type(self)(self._nodes, namespaces=self.namespaces, storage=storage, anti_affine=self._anti_affine)

    def get_prepared(self, pod: Pod, profile: object) -> object | None:
        """The rules prepared for this pod object and profile, if they are among the last few."""
        for known, under, what in self._prepared:
            if known is pod and under == profile:
                return what
        return None

    def remember(self, pod: Pod, profile: object, what: object) -> None:
        """Keep a preparation. It follows from the view and the pod alone, so no answer depends on what is kept."""
        self._prepared = ((pod, profile, what), *self._prepared[: _REMEMBERED - 1])

    def _with_state(self, state: NodeState) -> Self:
        anti = self._anti_affine
        if _keeps_others_away(state) != (state.name in anti):
            anti = dict(anti)
            if state.name in anti:
                del anti[state.name]
            else:
                anti[state.name] = None
        return self._change({**self._nodes, state.name: state}, anti)

    def _change(self, nodes: dict[str, NodeState], anti_affine: Mapping[str, None]) -> Self:
        return type(self)(nodes, namespaces=self.namespaces, storage=self.storage, anti_affine=anti_affine)


def _keeps_others_away(state: NodeState) -> bool:
    return any(placed.anti_affinity for placed in state.pods.values())
