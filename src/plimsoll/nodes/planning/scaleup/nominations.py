"""Nodes that an earlier plan reserved for pods until these run: `PodNominations`. Pure.

A plan packs new nodes more tightly than a later loop would, which sees only nodes and pods. Until the nodes are there
and the scheduler has placed the pods, later loops would find that a few percent of the pods fit nowhere any more, and
would scale up again. So a scale-up is remembered node by node, and each loop first gives these nodes to their pods. A
nomination is not binding: it holds only while the plain rules allow it; otherwise its pods are planned like others.

Pods that depend on other pods, volumes or host ports are not nominated, because their rules change with other pods.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from plimsoll.core.resources import ZERO
from plimsoll.nodes.planning.state.placeholder_pods import PlaceholderPods
from plimsoll.scheduling.cluster_view import NodeState, PlacedPod, PodKey
from plimsoll.scheduling.feasibility import check_node
from plimsoll.scheduling.verdicts import Fits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from plimsoll.core.resources import ResourceVector
    from plimsoll.nodes.model.scale_up_plan import GroupScaleUp
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
    from plimsoll.objects.api.pods import Pod

    Places = Mapping[str, Mapping[str, int]]
    """Node name to pods by the key of their entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nomination:
    """One node of a group, for these pods."""

    group: str
    pods: tuple[PodKey, ...]


class PodNominations:
    """The nominations of one planner, from loop to loop."""

    def __init__(self) -> None:
        self._nominations: list[Nomination] = []

    def make(self, snapshot: Snapshot, scheduled: Places, scaled_up: Iterable[tuple[str, int, GroupScaleUp]]) -> None:
        """`scaled_up`: a group, nodes it got, and the scale-up of the plan that they are a part of.

        `scheduled` are the pods that are scheduled without it.
        """
        queue = _EntryQueue(snapshot, scheduled)
        patterns: dict[int, Iterator[Mapping[str, int]]] = {}
        made: list[Nomination] = []
        for group, added, scale_up in scaled_up:
            of_nodes = patterns.setdefault(id(scale_up), _iterate_pods_by_node(scale_up))
            made += [
                Nomination(group=group, pods=pods) for _ in range(added) if (pods := queue.take(next(of_nodes, {})))
            ]
        again = {pod for nomination in made for pod in nomination.pods}
        self._nominations = [nomination for nomination in self._nominations if again.isdisjoint(nomination.pods)] + made

    def find_places(self, snapshot: Snapshot) -> dict[str, dict[str, int]]:
        """The nominations that still hold in this snapshot. Those of pods that are no longer pending are dropped."""
        if not self._nominations:
            return {}
        entry_of = {
            PodKey(pending.pod.metadata.namespace, name): pending
            for pending in snapshot.pending
            for name in pending.names
        }
        self._nominations = [
            nomination for nomination in self._nominations if any(pod in entry_of for pod in nomination.pods)
        ]
        free = _group_nodes(snapshot, {nomination.group for nomination in self._nominations})
        checker = _FitChecker(snapshot)
        places: dict[str, dict[str, int]] = {}
        for nomination in self._nominations:
            wanted = [entry_of.pop(pod) for pod in nomination.pods if pod in entry_of]
            counts = Counter(entry.key for entry in wanted)
            kinds = {entry.key: entry for entry in wanted}
            queue = free.get(nomination.group, [])
            chosen = next((state for state in queue if checker.fit(state, counts, kinds)), None)
            if chosen is not None:
                queue.remove(chosen)
                places[chosen.name] = dict(counts)
        return places


class _EntryQueue:
    """Pending pods by entry, in queue order."""

    def __init__(self, snapshot: Snapshot, scheduled: Places) -> None:
        self._entries = {pending.key: pending for pending in snapshot.pending}
        self._next = _sum_by_key(scheduled)
        self._can_be_nominated: dict[str, bool] = {}

    def take(self, counts: Mapping[str, int]) -> tuple[PodKey, ...]:
        """The next pods of each entry; none of an entry that cannot be nominated."""
        pods: list[PodKey] = []
        for key, count in counts.items():
            first = self._next.get(key, 0)
            self._next[key] = first + count
            entry = self._entries[key]
            if key not in self._can_be_nominated:
                self._can_be_nominated[key] = _can_be_nominated(entry)
            if self._can_be_nominated[key]:
                pods += [PodKey(entry.pod.metadata.namespace, name) for name in entry.names[first : first + count]]
        return tuple(pods)


def _iterate_pods_by_node(scale_up: GroupScaleUp) -> Iterator[Mapping[str, int]]:
    return (pattern.pods for pattern in scale_up.patterns for _ in range(pattern.nodes))


def place_pending(snapshot: Snapshot, places: Places) -> Snapshot:
    """The snapshot with pending pods at these places; all others are still pending."""
    if not places:
        return snapshot
    waiting = {pending.key: pending for pending in snapshot.pending}
    taken: dict[str, int] = {}
    states: list[NodeState] = []
    placeholders = PlaceholderPods()
    for node, counts in places.items():
        added: list[PlacedPod] = []
        for key, count in counts.items():
            first = taken.get(key, 0)
            taken[key] = first + count
            if waiting[key].bundle:
                added.append(placeholders.make(waiting[key], count, node))
                continue
            placed = PlacedPod(waiting[key].pod)
            names = waiting[key].names or tuple(f"{placed.key.name}-{number}" for number in range(first + count))
            added += [placed.rename(name) for name in names[first : first + count]]
        state = snapshot.view.find_node(node)
        if state is not None:
            states.append(state.with_pods(added))
    left = tuple(
        _remove_served(pending, taken.get(pending.key, 0))
        for pending in snapshot.pending
        if taken.get(pending.key, 0) < pending.count
    )
    return replace(snapshot, view=snapshot.view.with_states(states), pending=left)


def place_nominated(snapshot: Snapshot) -> Snapshot:
    """The snapshot with nominated pods on their nodes, so that only the others are planned."""
    return place_pending(snapshot, snapshot.nominations)


def merge_places(some: Places, others: Places) -> dict[str, dict[str, int]]:
    found = {node: dict(counts) for node, counts in some.items()}
    for node, counts in others.items():
        here = found.setdefault(node, {})
        for key, count in counts.items():
            here[key] = here.get(key, 0) + count
    return found


def _remove_served(pending: PendingPods, served: int) -> PendingPods:
    return replace(pending, count=pending.count - served, names=pending.names[served:]) if served else pending


def _sum_by_key(places: Places) -> dict[str, int]:
    found: dict[str, int] = {}
    for counts in places.values():
        for key, count in counts.items():
            found[key] = found.get(key, 0) + count
    return found


def _group_nodes(snapshot: Snapshot, groups: set[str]) -> dict[str, list[NodeState]]:
    """The emptiest nodes first: upcoming nodes, and new nodes without pods."""
    found: dict[str, list[NodeState]] = {}
    for name, group in snapshot.group_of.items():
        state = snapshot.view.find_node(name) if group in groups else None
        if state is not None and not state.problem:
            found.setdefault(group, []).append(state)
    return {
        group: sorted(states, key=lambda node_state: (len(node_state.pods), node_state.name))
        for group, states in found.items()
    }


class _FitChecker:
    """Checks nominations; demands are computed once per entry."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._view = snapshot.view
        self._demands: dict[str, ResourceVector] = {}

    def fit(self, state: NodeState, counts: Mapping[str, int], kinds: Mapping[str, PendingPods]) -> bool:
        """Whether a node takes all of these pods."""
        whole = ZERO
        for key, count in counts.items():
            whole = whole + self._get_demand(kinds[key]).scale_by(count)
        if not whole.fits_within(state.free):
            return False
        return all(isinstance(check_node(kinds[key].pod, state.node, self._view), Fits) for key in counts)

    def _get_demand(self, entry: PendingPods) -> ResourceVector:
        if entry.key not in self._demands:
            self._demands[entry.key] = PlacedPod(entry.pod).demand
        return self._demands[entry.key]


def _can_be_nominated(pending: PendingPods) -> bool:
    return bool(pending.names) and not pending.bundle and not _depends_on_others(pending.pod)


def _depends_on_others(pod: Pod) -> bool:
    spec = pod.spec
    affinity = spec.affinity
    meets = affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)
    placed = PlacedPod(pod)
    return bool(meets or spec.topology_spread_constraints or placed.ports or placed.claims)
