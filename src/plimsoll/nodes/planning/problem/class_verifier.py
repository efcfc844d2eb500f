"""Replays the places of a plan by kinds of pods: each pattern alone by sums, all nodes together by counts.

`find_misfits` checks what a node gives (resources, taints, node affinity): each kind of pod once per node, then the sum
of all requests. `find_refuted_places` replays rules between pods as counts per term and domain, in several orders in
which a scheduler could place the pods, until one succeeds. It knows nothing of the planner.

Whether some order exists cannot be decided in general. The first order deals pods out level by level: the n-th pod of
a label in each zone before the n+1-th in any. A plan whose counts are even in the end is then even all the time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from plimsoll.core.resources import ZERO
from plimsoll.nodes.model.node_labels import ZONE
from plimsoll.nodes.model.node_templates import build_planned_node
from plimsoll.nodes.planning.problem.queue import compute_queue_positions
from plimsoll.scheduling.cluster_view import ClusterView, NodeState, PlacedPod
from plimsoll.scheduling.count_replay import CountReplay, skip_rules_between_pods
from plimsoll.scheduling.feasibility import Prepared, Profile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from plimsoll.nodes.model.scale_up_plan import ScaleUpOption, ScaleUpPlan
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.count_replay import CountedPods
    from plimsoll.scheduling.verdicts import Refusal

_ON_A_NODE_ALONE: Final = Profile(disabled=skip_rules_between_pods())
PODS_REPLAYED: Final = 200_000
"""The number of pods with rules about other pods that are replayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefutedPod:
    """A pod of the plan that a rule refuses on its planned node."""

    key: str
    node: str
    reason: str


# ---- each pattern alone on its node


class PatternChecker:
    """Checks patterns of pods without ports and volumes. Kinds of pods and nodes are prepared once."""

    def __init__(self, snapshot: Snapshot, pods: Mapping[str, PendingPods]) -> None:
        self._pods = pods
        self._empty = ClusterView.from_objects(namespaces=snapshot.view.namespaces, storage=snapshot.view.storage)
        self._prepared: dict[bytes, Prepared] = {}
        self._kinds: dict[str, tuple[bytes, PlacedPod]] = {}

    def build_new_node(self, option: ScaleUpOption) -> NodeState:
        return NodeState(build_planned_node(option, 0)).with_pods(PlacedPod(daemon) for daemon in option.daemons)

    def is_simple(self, filling: Mapping[str, int]) -> bool:
        """Whether sums decide; host ports need a look at each pod."""
        return not any(self._get_kind(key)[1].ports for key in filling)

    def find_misfits(
        self, state: NodeState, filling: Mapping[str, int], known: dict[bytes, Refusal | None]
    ) -> Iterator[RefutedPod]:
        """`known`: the refusals of this node by kind of pod, kept from pattern to pattern."""
        total = ZERO
        for key, count in filling.items():
            kind, sample = self._get_kind(key)
            if kind not in known:
                known[kind] = next(self._prepare(kind, sample.pod).find_refusals(state), None)
            refusal = known[kind]
            if refusal is None:
                total = total + sample.demand.scale_by(count)
            if refusal is None and not total.fits_within(state.free):
                yield RefutedPod(key=key, node=state.name, reason="more pods than the node has room for")
                return
            if refusal is not None:
                yield RefutedPod(key=key, node=state.name, reason=str(refusal))

    def _get_kind(self, key: str) -> tuple[bytes, PlacedPod]:
        found = self._kinds.get(key)
        if found is None:
            pod = self._pods[key].pod
            spec = structs.replace(pod.spec, topology_spread_constraints=())
            kind = msgspec.json.encode((pod.metadata.namespace, spec))
            found = self._kinds[key] = (kind, PlacedPod(pod))
        return found

    def _prepare(self, kind: bytes, pod: Pod) -> Prepared:
        found = self._prepared.get(kind)
        if found is None:
            found = self._prepared[kind] = Prepared(pod, self._empty, profile=_ON_A_NODE_ALONE)
        return found


# ---- all nodes together


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """A number of pods of one kind on one node."""

    pods: CountedPods
    node: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """An order in which a scheduler could place the pods."""

    existing_first: bool
    """Whether existing nodes are filled before new ones join."""
    by_level: bool
    """Whether pods go out level by level; otherwise one kind after the other, in the order of the queue."""
    looking_first: bool = True
    """Whether pods without rules of their own come last."""


_ORDERS: Final = (
    _Order(existing_first=True, by_level=True),
    _Order(existing_first=False, by_level=True),
    _Order(existing_first=True, by_level=False),
    _Order(existing_first=False, by_level=False),
    _Order(existing_first=True, by_level=False, looking_first=False),
    _Order(existing_first=False, by_level=False, looking_first=False),
)


def find_refuted_places(
    snapshot: Snapshot, plan: ScaleUpPlan, pods: Mapping[str, PendingPods], looking: frozenset[str]
) -> list[RefutedPod]:
    """The pods that no order places; of the first order, if none succeeds. `looking`: keys of pods with rules."""
    refuted: list[RefutedPod] = []
    for order in _ORDERS if plan.existing else [order for order in _ORDERS if order.existing_first]:
        found = _ReplayedPlan(snapshot, plan, pods, looking).replay(order)
        if not found:
            return []
        refuted = refuted or found
    return refuted


@dataclass(slots=True)
class _ReplayedPlan:
    """A plan during one replay."""

    snapshot: Snapshot
    plan: ScaleUpPlan
    pods: Mapping[str, PendingPods]
    looking: frozenset[str]
    _replay: CountReplay = field(init=False)
    _kinds: dict[str, CountedPods] = field(init=False)
    _rank: dict[int, int] = field(init=False, default_factory=dict)
    """By kind: its place in the queue."""
    _with_rules: set[int] = field(init=False, default_factory=set)
    _keys: dict[int, list[str]] = field(init=False, default_factory=dict)
    _levels: Counter[tuple[Any, str]] = field(init=False, default_factory=Counter)

    def __post_init__(self) -> None:
        self._replay = CountReplay(self.snapshot.view)
        used = sorted(collect_keys(self.plan))
        self._kinds = {key: self._replay.add_pods(self.pods[key].pod) for key in used}
        self._replay.prepare(daemon for scale_up in self.plan.scale_ups for daemon in scale_up.option.daemons)
        positions = dict(
            zip(
                (pending.key for pending in self.snapshot.pending),
                compute_queue_positions(self.snapshot.pending),
                strict=True,
            )
        )
        for rank, key in enumerate(sorted(used, key=positions.__getitem__)):
            number = self._kinds[key].number
            self._rank.setdefault(number, rank)
            self._keys.setdefault(number, []).append(key)
            if key in self.looking:
                self._with_rules.add(number)

    def replay(self, order: _Order) -> list[RefutedPod]:
        standing = self._merge(self.plan.existing.items())
        left: list[tuple[CountedPods, str]] = []
        first = [places for places in standing if self._is_first(places, order)]
        if order.existing_first:
            left = self._place(self._sort(first, order))
        new = self._merge(self._add_new_nodes())
        together = [places for places in new if self._is_first(places, order)]
        if order.by_level:
            together = self._begin_companies(together)
        left = self._place([*left, *self._sort(together if order.existing_first else [*first, *together], order)])
        last = [places for places in (*standing, *new) if not self._is_first(places, order)]
        left = self._place([*left, *self._sort(last, order)])
        return [
            RefutedPod(key=key, node=node, reason=str(self._replay.check(pods, node) or "fits only after others"))
            for pods, node in dict.fromkeys(left)
            for key in self._keys[pods.number]
        ]

    def _begin_companies(self, places: Sequence[_Places]) -> list[_Places]:
        """Place one pod on each node whose pods require each other, of a kind that may come first; returns the rest.

        A kind may be the first of its company only once: kinds and nodes are matched.
        """
        candidates: dict[str, list[int]] = {}
        for index, entry in enumerate(places):
            if entry.pods.has_affinity and self._replay.check(entry.pods, entry.node) is None:
                candidates.setdefault(entry.node, []).append(index)
        node_of: dict[int, tuple[str, int]] = {}
        for node in candidates:
            _match(node, candidates, [entry.pods.number for entry in places], node_of, set())
        left = list(places)
        for node, index in node_of.values():
            entry = places[index]
            if self._replay.check(entry.pods, node) is None:
                self._replay.place(entry.pods, node)
                left[index] = replace(entry, count=entry.count - 1)
        return [entry for entry in left if entry.count]

    def _is_first(self, places: _Places, order: _Order) -> bool:
        return not order.looking_first or places.pods.number in self._with_rules

    def _add_new_nodes(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        for scale_up in self.plan.scale_ups:
            number = 0
            for pattern in scale_up.patterns:
                for _ in range(pattern.nodes):
                    node = build_planned_node(scale_up.option, number)
                    self._replay.add_node(node, scale_up.option.daemons)
                    number += 1
                    yield node.metadata.name, pattern.pods

    def _merge(self, fillings: Iterable[tuple[str, Mapping[str, int]]]) -> list[_Places]:
        found: list[_Places] = []
        for node, filling in fillings:
            counts: Counter[int] = Counter()
            kinds: dict[int, CountedPods] = {}
            for key, count in filling.items():
                pods = kinds.setdefault(self._kinds[key].number, self._kinds[key])
                counts[pods.number] += count
            found += [_Places(pods=kinds[number], node=node, count=count) for number, count in counts.items()]
        return found

    def _sort(self, places: Sequence[_Places], order: _Order) -> list[tuple[CountedPods, str]]:
        """One entry per pod: evenly over zones, and in each zone evenly over nodes, as a scheduler spreads pods."""
        zones = {name: state.labels.get(ZONE, "") for name, state in self._replay.nodes.items()}
        # Spread over nodes is the hardest rule: a node takes further pods of the label later, but not before.
        phases = [
            int(not entry.pods.is_spread_over_nodes) if order.by_level else self._rank[entry.pods.number]
            for entry in places
        ]
        units = sorted(
            (phases[index], position, self._rank[entry.pods.number], index)
            for index, entry in enumerate(places)
            for position in range(entry.count)
        )
        levels = self._levels if order.by_level else Counter[tuple[Any, str]]()
        listed: list[tuple[int, int, int, int]] = []
        for phase, _, rank, index in units:
            pods = places[index].pods
            level_key: tuple[Any, str] = (
                pods.sample.labels_key if order.by_level else pods.number,
                zones[places[index].node],
            )
            levels[level_key] += 1
            listed.append((phase, levels[level_key], rank, index))
        return [(places[index].pods, places[index].node) for *_, index in sorted(listed)[:PODS_REPLAYED]]

    def _place(self, waiting: list[tuple[CountedPods, str]]) -> list[tuple[CountedPods, str]]:
        """Place what fits, again and again while that helps; returns the rest."""
        replay = self._replay
        while waiting:
            later: list[tuple[CountedPods, str]] = []
            for pods, node in waiting:
                if replay.check(pods, node) is None:
                    replay.place(pods, node)
                else:
                    later.append((pods, node))
            if len(later) == len(waiting):
                break
            waiting = later
        return waiting


def _match(
    node: str,
    candidates: Mapping[str, Sequence[int]],
    kinds: Sequence[int],
    node_of: dict[int, tuple[str, int]],
    tried: set[int],
) -> bool:
    """Give the node one of its kinds that no other node has, moving others to further kinds of theirs if need be."""
    for index in candidates[node]:
        kind = kinds[index]
        if kind in tried:
            continue
        tried.add(kind)
        holder = node_of.get(kind)
        if holder is None or _match(holder[0], candidates, kinds, node_of, tried):
            node_of[kind] = (node, index)
            return True
    return False


def collect_keys(plan: ScaleUpPlan) -> set[str]:
    fillings = [
        *plan.existing.values(),
        *(pattern.pods for scale_up in plan.scale_ups for pattern in scale_up.patterns),
    ]
    return {key for filling in fillings for key in filling}
