"""Equivalence classes of pods: verdicts and scores are cached for pods with the same requirements, mostly replicas.

The first rules in kube-scheduler's order look at one node only (taints, affinity, ports, resources). For two pods of
one class they give the same verdict until that node changes, which the cache shows by a new state object. So placing
the next replica evaluates one node again instead of all, and updates its rank (`update_ranking`). The rules that look
further (`WIDE`) run every time, and only for nodes that passed the first ones.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.local.scheduler.scoring.ranking import Ranking
from plimsoll.local.scheduler.scoring.scoring import NodeEvaluation, NodeLoads, NodeScores
from plimsoll.scheduling.cluster_view import ClusterView, NodeState
from plimsoll.scheduling.feasibility import RULES, Prepared, Profile
from plimsoll.scheduling.rules.host_ports import NODE_PORTS
from plimsoll.scheduling.rules.node_affinity import NODE_AFFINITY
from plimsoll.scheduling.rules.resources_fit import RESOURCES_FIT
from plimsoll.scheduling.rules.scheduling_gates import SCHEDULING_GATES
from plimsoll.scheduling.rules.taints import NODE_NAME, NODE_UNSCHEDULABLE, TAINT_TOLERATION
from plimsoll.scheduling.storage import Storage
from plimsoll.scheduling.verdicts import FITS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.local.scheduler.cache import SchedulerCache
    from plimsoll.objects.api.pods import Container, Pod, PodSpec

_NARROW: Final = frozenset(
    {
        SCHEDULING_GATES,
        NODE_UNSCHEDULABLE,
        NODE_NAME,
        TAINT_TOLERATION,
        NODE_AFFINITY,
        NODE_PORTS,
        RESOURCES_FIT,
    }
)
NARROW: Final = Profile(disabled=frozenset(RULES) - _NARROW)
WIDE: Final = Profile(disabled=_NARROW)

_PODS_PER_CLASS: Final = 64

# The narrow rules look at no view; they are only prepared with one.
_NO_VIEW: Final = ClusterView({}, namespaces={}, storage=Storage(), anti_affine={})


class PodClass:
    """Pods that ask for the same and have the same labels, with what was found out for them.

    What follows from what they ask for alone is shared with other classes (`Load.answers`): mostly, applications differ
    in their labels and images more than in what they need.
    """

    def __init__(self, pod: Pod, loads: NodeLoads) -> None:
        self._loads = loads
        self.rules = Prepared(pod, _NO_VIEW, profile=NARROW)
        self._scores = NodeScores(pod)
        self._requirements_key = compute_requirements_key(pod)
        self._labels_key = (pod.metadata.namespace, frozenset(pod.metadata.labels.items()))
        self._judgements: dict[str, NodeEvaluation] = {}
        self._ranking = Ranking()
        self._ranked_to = 0

    def evaluate(self, place: NodeState) -> NodeEvaluation:
        known = self._judgements.get(place.name)
        if known is not None and known.place is place:
            return known
        return self._evaluate(place)

    def evaluate_fitting(self, places: Iterable[NodeState]) -> list[NodeEvaluation]:
        """Those that pass the narrow rules, one by one: for pods whose choice depends on more than the ranking."""
        judgements = self._judgements
        found = []
        for place in places:
            known = judgements.get(place.name)
            if known is None or known.place is not place:
                known = self._evaluate(place)
            if known.verdict is FITS:
                found.append(known)
        return found

    def update_ranking(self, cache: SchedulerCache) -> Ranking:
        """All nodes that pass the narrow rules, as they are now: only those that changed are looked at."""
        changed = cache.list_changed_since(self._ranked_to)
        if changed is None:
            self._ranking, changed = Ranking(), cache.view.nodes
        nodes, ranking, judgements = cache.view.nodes, self._ranking, self._judgements
        for name in changed:
            place = nodes.get(name)
            if place is None:
                ranking.drop(name)
                continue
            judged = judgements.get(name)
            if judged is None or judged.place is not place:
                judged = self._evaluate(place)
            if judged.verdict is FITS:
                ranking.put(judged)
            else:
                ranking.drop(name)
        self._ranked_to = cache.changes
        return self._ranking

    def forget(self, name: str) -> None:
        self._judgements.pop(name, None)

    def _evaluate(self, place: NodeState) -> NodeEvaluation:
        name = place.name
        load = self._loads.known.get(name)
        if load is None or load.place is not place:
            load = self._loads.get_load(place)
        known = load.answers.get(self._requirements_key)
        if known is None:
            verdict = self.rules.check(place)
            known = load.answers[self._requirements_key] = (
                verdict,
                self._scores.compute_score(load) if verdict is FITS else 0,
            )
        found = self._judgements[name] = NodeEvaluation(
            place, known[0], known[1], load.pods_by_labels.get(self._labels_key, 0)
        )
        return found


class PodClasses:
    """The recently used classes."""

    def __init__(self, *, remembered: int = 256) -> None:
        self._remembered = remembered
        self._loads = NodeLoads()
        self._classes: OrderedDict[bytes, PodClass] = OrderedDict()
        # A pod waiting for room is asked about again and again: its pod_class is read once for each version of it.
        self._of_pods: OrderedDict[str, tuple[PodSpec, PodClass]] = OrderedDict()

    def find_class(self, pod: Pod) -> PodClass:
        known = self._of_pods.get(pod.metadata.uid)
        if known is not None and known[0] is pod.spec:
            return known[1]
        pod_class = self._read(pod)
        self._of_pods[pod.metadata.uid] = (pod.spec, pod_class)
        if len(self._of_pods) > self._remembered * _PODS_PER_CLASS:
            self._of_pods.popitem(last=False)
        return pod_class

    def forget_pod(self, uid: str) -> None:
        self._of_pods.pop(uid, None)

    def forget_node(self, name: str) -> None:
        self._loads.forget(name)
        for pod_class in self._classes.values():
            pod_class.forget(name)

    def _read(self, pod: Pod) -> PodClass:
        key = compute_class_key(pod)
        pod_class = self._classes.get(key)
        if pod_class is None:
            pod_class = self._classes[key] = PodClass(pod, self._loads)
            if len(self._classes) > self._remembered:
                self._classes.popitem(last=False)
        else:
            self._classes.move_to_end(key)
        return pod_class


_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def compute_class_key(pod: Pod) -> bytes:
    """Everything of a pod that the narrow rules and the scores look at."""
    return _ENCODER.encode((pod.metadata.namespace, pod.metadata.labels)) + compute_requirements_key(pod)


def compute_requirements_key(pod: Pod) -> bytes:
    """The same without what others think of it: its namespace and labels."""
    spec = pod.spec
    return _ENCODER.encode(
        (
            [_needs(container) for container in spec.containers],
            [_needs(container) for container in spec.init_containers],
            spec.resources,
            spec.overhead,
            spec.node_name,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.host_network,
            [gate.name for gate in spec.scheduling_gates],
        )
    )


def _needs(container: Container) -> tuple[object, ...]:
    return container.resources, container.ports, container.restart_policy
