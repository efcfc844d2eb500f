"""Replays the places of many pods by counts per term and domain: spread, affinity and anti-affinity, nothing else.

A cluster has few distinct rules between pods, however many pods and sizes of pods carry them. Pods that these rules
cannot distinguish (equal labels, terms and constraints, whatever their requests) form one `CountedPods`; equal rules
are prepared once and shared. A placed pod then changes the counts of the rules that look at its labels, and no list of
pods is kept. `check` answers what the same rules answer in a `Replay`; tests compare them. Mutable, like a `Replay`.

`add_pods` for all pods first, then `prepare` with all daemons, then nodes and places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from plimsoll.scheduling.cluster_view import NodeState, PlacedPod
from plimsoll.scheduling.feasibility import RULES
from plimsoll.scheduling.rules.inter_pod_affinity import InterPod, prepare_inter_pod
from plimsoll.scheduling.rules.topology_spread import Spread, prepare_spread
from plimsoll.scheduling.verdicts import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.core.selectors import LabelSelector
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.affinity_terms import AffinityTerm
    from plimsoll.scheduling.cluster_view import ClusterView

_CountingRule = Spread | InterPod
_HOSTNAME: Final = "kubernetes.io/hostname"
_Label = tuple[str, str]


class CountedPods:
    """Pods that no rule between pods distinguishes."""

    __slots__ = ("has_affinity", "is_spread_over_nodes", "number", "pod", "rules", "sample")

    def __init__(self, number: int, pod: Pod, sample: PlacedPod) -> None:
        self.number = number
        self.pod = pod
        self.sample = sample
        self.rules: tuple[_CountingRule | Refusal, ...] = ()
        """Its own rules, set by `prepare`."""
        constraints = pod.spec.topology_spread_constraints
        hard = [constraint for constraint in constraints if is_hard(constraint.when_unsatisfiable)]
        affinity = pod.spec.affinity
        self.has_affinity = affinity is not None and affinity.pod_affinity is not None
        self.is_spread_over_nodes = any(constraint.topology_key == _HOSTNAME for constraint in hard)


def is_hard(when_unsatisfiable: str) -> bool:
    return when_unsatisfiable in {"", "DoNotSchedule"}


class CountReplay:
    """A cluster that fills up, as counts."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._pods: dict[tuple[Any, ...], CountedPods] = {}
        self._rules: dict[tuple[Any, ...], _CountingRule | Refusal | None] = {}
        self._nodes: dict[str, NodeState] = dict(view.nodes)
        self._affected: dict[tuple[Any, ...], list[_CountingRule]] = {}
        self._daemons: dict[int, PlacedPod] = {}
        self._watching = _RuleIndex()

    @property
    def nodes(self) -> Mapping[str, NodeState]:
        return self._nodes

    def add_pods(self, pod: Pod) -> CountedPods:
        """Pods like this one, to be checked and placed."""
        key = _identify(pod)
        found = self._pods.get(key)
        if found is None:
            found = self._pods[key] = CountedPods(len(self._pods), pod, PlacedPod(pod))
        return found

    def prepare(self, daemons: Iterable[Pod] = ()) -> None:
        """Count the running pods for all rules of all pods; `daemons` are those that nodes will bring with them."""
        placed_daemons = [self._get_daemon(daemon) for daemon in daemons]
        terms = [term for placed in placed_daemons for term in placed.anti_affinity]
        terms += [term for pods in self._pods.values() for term in pods.sample.anti_affinity]
        terms += [
            term
            for state in self._view.anti_affine_nodes
            for placed in state.pods.values()
            for term in placed.anti_affinity
        ]
        for key, pods in self._pods.items():
            spread = self._prepare_once((0, key[0], key[1], *key[3:]), pods.pod)
            inter_pod = (
                self._prepare_once((1, *key[:3]), pods.pod) if key[2] or self._is_avoided(pods.sample, terms) else None
            )
            pods.rules = tuple(rule for rule in (spread, inter_pod) if rule is not None)

    def _is_avoided(self, sample: PlacedPod, terms: Iterable[AffinityTerm]) -> bool:
        own = self._view.namespaces.get(sample.namespace, {})
        return any(term.selects(sample.namespace, sample.labels, own) for term in terms)

    def _prepare_once(self, key: tuple[Any, ...], pod: Pod) -> _CountingRule | Refusal | None:
        if key not in self._rules:
            rule = prepare_inter_pod(pod, self._view, always=True) if key[0] else prepare_spread(pod, self._view)
            self._rules[key] = rule
            if rule is not None and not isinstance(rule, Refusal):
                self._watching.add(rule)
        return self._rules[key]

    def add_node(self, node: Node, daemons: Iterable[Pod] = ()) -> None:
        """A node joins, with the pods that come with it."""
        state = self._nodes[node.metadata.name] = NodeState(node)
        for rule in self._rules.values():
            if isinstance(rule, Spread):
                rule.note_node(state)
        for daemon in daemons:
            self._note(self._get_daemon(daemon), state)

    def _get_daemon(self, daemon: Pod) -> PlacedPod:
        """By the identity of the pod, which is kept: nodes of one group bring the same daemon pods."""
        found = self._daemons.get(id(daemon))
        if found is None:
            found = self._daemons[id(daemon)] = PlacedPod(daemon)
        return found

    def check(self, pods: CountedPods, node_name: str) -> Refusal | None:
        """Why a rule between pods refuses one more of them on the node; None if it fits."""
        state = self._nodes[node_name]
        for rule in pods.rules:
            refusal = rule if isinstance(rule, Refusal) else rule.refuse(state)
            if refusal is not None:
                return refusal
        return None

    def place(self, pods: CountedPods, node_name: str) -> None:
        self._note(pods.sample, self._nodes[node_name])

    def _note(self, placed: PlacedPod, state: NodeState) -> None:
        key = (placed.labels_key, id(placed.anti_affinity) if placed.anti_affinity else 0)
        affected = self._affected.get(key)
        if affected is None:
            affected = self._affected[key] = self._watching.find_concerned(placed)
        for rule in affected:
            rule.note(placed, state)


class _RuleIndex:
    """The rules that look at pods with a label. Most selectors require one value of some label."""

    def __init__(self) -> None:
        self._rules: list[_CountingRule] = []
        self._by_label: dict[_Label, list[int]] = {}
        self._looking_at_all: list[int] = []
        self._by_own_label: dict[_Label, list[int]] = {}

    def add(self, rule: _CountingRule) -> None:
        number = len(self._rules)
        self._rules.append(rule)
        labels = [_find_exact_label(selector) for selector in rule.selectors]
        if None in labels:
            self._looking_at_all.append(number)
        for label in labels:
            if label is not None:
                self._by_label.setdefault(label, []).append(number)
        if isinstance(rule, InterPod):
            for own in rule.labels.items():
                self._by_own_label.setdefault(own, []).append(number)

    def find_concerned(self, placed: PlacedPod) -> list[_CountingRule]:
        candidates = set(self._looking_at_all)
        for label in placed.labels.items():
            candidates.update(self._by_label.get(label, ()))
        for term in placed.anti_affinity:
            exact = _find_exact_label(term.selector)
            candidates.update(range(len(self._rules)) if exact is None else self._by_own_label.get(exact, ()))
        return [self._rules[number] for number in sorted(candidates) if self._rules[number].concerns(placed)]


def _find_exact_label(selector: LabelSelector) -> _Label | None:
    exact = ((requirement.key, selector.get_exact_value(requirement.key)) for requirement in selector)
    return next(((key, value) for key, value in exact if value is not None), None)


def _identify(pod: Pod) -> tuple[Any, ...]:
    """What rules between pods can see of a pod: labels first, spread last, because rules of each kind share parts."""
    meta, spec = pod.metadata, pod.spec
    labels = (meta.namespace, frozenset(meta.labels.items()))
    affinity = spec.affinity
    between = None if affinity is None else structs.replace(affinity, node_affinity=None)
    has_terms = between is not None and (between.pod_affinity is not None or between.pod_anti_affinity is not None)
    terms = msgspec.json.encode(between) if has_terms else b""
    if not spec.topology_spread_constraints:
        return labels, b"", terms
    nodes = (spec.node_selector, None if affinity is None else affinity.node_affinity, spec.tolerations)
    return labels, msgspec.json.encode(spec.topology_spread_constraints), terms, msgspec.json.encode(nodes)


def skip_rules_between_pods() -> frozenset[str]:
    """The rules that a `CountReplay` checks, by the names of their plugins."""
    return frozenset(name for name, rule in RULES.items() if rule in {prepare_spread, prepare_inter_pod})
