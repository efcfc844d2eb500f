"""Replays a plan with the plain rules of `scheduling`. A plan that fails here is never used.

The planner counts in classes and arrays; the verifier shares with the planner only the plan and the queue. It checks
every distinct pattern once, alone on its node: resources, taints, node affinity, ports, volumes. If any pod depends on
other pods, it also replays all of them in the whole cluster, in an order in which a scheduler could place them.

Pods are replayed by kind (`class_verifier`), with counts per term and domain. The rules of volumes look at the whole
cluster: a plan with volumes is replayed pod by pod, up to a fixed number.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.nodes.model.node_labels import ZONE
from plimsoll.nodes.model.node_templates import build_planned_node
from plimsoll.nodes.planning.equivalence.volume_keys import touches_storage
from plimsoll.nodes.planning.problem.class_verifier import (
    PatternChecker,
    RefutedPod,
    collect_keys,
    find_refuted_places,
)
from plimsoll.nodes.planning.problem.queue import compute_queue_positions
from plimsoll.scheduling import DoesNotFit
from plimsoll.scheduling.affinity_terms import parse_affinity_terms, parse_existing_anti_affinity
from plimsoll.scheduling.cluster_view import ClusterView, NodeState
from plimsoll.scheduling.replay import EquivalenceClass, Replay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plimsoll.nodes.model.scale_up_plan import ScaleUpOption, ScaleUpPlan
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.verdicts import Refusal

PODS_REPLAYED: Final = 20_000
"""The number of pods with inter-pod rules that are replayed one by one (docs/design/nodes.md 7.4)."""

__all__ = ["RefutedPod", "verify"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlacedPods:
    """A number of pods of one entry on one node."""

    key: str
    node: str
    pods: int


def verify(snapshot: Snapshot, plan: ScaleUpPlan) -> tuple[RefutedPod, ...]:
    """All refuted pods; empty if the plan is valid."""
    pods = {pending.key: pending for pending in snapshot.pending}
    keys = collect_keys(plan)
    with_volumes = any(pods[key].pod.spec.volumes and touches_storage(pods[key].pod) for key in keys)
    refuted = tuple((_replay_alone if with_volumes else _check_alone)(snapshot, plan, pods))
    if refuted:
        return refuted
    looking = frozenset(key for key in keys if depends_on_other_pods(pods[key].pod))
    if not looking and not snapshot.view.has_anti_affinity:
        return ()
    if with_volumes:
        return tuple(_replay_together(snapshot, plan, pods))
    return tuple(find_refuted_places(snapshot, plan, pods, looking))


def depends_on_other_pods(pod: Pod) -> bool:
    """Whether the places of other pods restrict the pod, beyond the room on its own node."""
    hard = any(
        constraint.when_unsatisfiable in {"", "DoNotSchedule"} for constraint in pod.spec.topology_spread_constraints
    )
    return hard or bool(parse_affinity_terms(pod)) or bool(parse_existing_anti_affinity(pod))


# ---- each pattern alone on its node


def _check_alone(snapshot: Snapshot, plan: ScaleUpPlan, pods: Mapping[str, PendingPods]) -> Iterator[RefutedPod]:
    """By kinds of pods, for pods without volumes; patterns with host ports are replayed."""
    checker = PatternChecker(snapshot, pods)
    for scale_up in plan.scale_ups:
        state = checker.build_new_node(scale_up.option)
        known: dict[bytes, Refusal | None] = {}
        for pattern in scale_up.patterns:
            if checker.is_simple(pattern.pods):
                yield from checker.find_misfits(state, pattern.pods, known)
            else:
                yield from _replay_pattern(snapshot, scale_up.option, pattern.pods, pods)
    for name, filling in plan.existing.items():
        state = snapshot.view.nodes[name]
        if checker.is_simple(filling):
            yield from checker.find_misfits(state, filling, {})
        else:
            yield from _find_misfits(Replay(_restrict_view(snapshot.view, state)), name, filling, pods)


def _replay_pattern(
    snapshot: Snapshot, option: ScaleUpOption, filling: Mapping[str, int], pods: Mapping[str, PendingPods]
) -> Iterator[RefutedPod]:
    node = build_planned_node(option, 0)
    replay = Replay(_restrict_view(snapshot.view, NodeState(node)))
    replay.add_node(node, option.daemons)
    yield from _find_misfits(replay, node.metadata.name, filling, pods)


def _replay_alone(snapshot: Snapshot, plan: ScaleUpPlan, pods: Mapping[str, PendingPods]) -> Iterator[RefutedPod]:
    for scale_up in plan.scale_ups:
        for pattern in scale_up.patterns:
            yield from _replay_pattern(snapshot, scale_up.option, pattern.pods, pods)
    for name, filling in plan.existing.items():
        state = snapshot.view.nodes[name]
        yield from _find_misfits(Replay(_restrict_view(snapshot.view, state)), name, filling, pods)


def _restrict_view(view: ClusterView, state: NodeState) -> ClusterView:
    anti = {state.name: None} if any(placed_pod.anti_affinity for placed_pod in state.pods.values()) else {}
    return ClusterView({state.name: state}, namespaces=view.namespaces, storage=view.storage, anti_affine=anti)


def _find_misfits(
    replay: Replay, node: str, filling: Mapping[str, int], pods: Mapping[str, PendingPods]
) -> Iterator[RefutedPod]:
    for key, count in filling.items():
        group = replay.add_equivalence_class(_remove_inter_pod_rules(pods[key].pod))
        for number in range(count):
            verdict = replay.check(group, node)
            if isinstance(verdict, DoesNotFit):
                yield RefutedPod(key=key, node=node, reason=str(verdict.reason))
                break
            replay.place(group, node, f"{key}#{number}")


def _remove_inter_pod_rules(pod: Pod) -> Pod:
    """The pod without affinity and spread, which cannot be checked on a single node."""
    affinity = pod.spec.affinity
    alone = None if affinity is None else structs.replace(affinity, pod_affinity=None)
    return structs.replace(pod, spec=structs.replace(pod.spec, affinity=alone, topology_spread_constraints=()))


# ---- all nodes together


def _replay_together(snapshot: Snapshot, plan: ScaleUpPlan, pods: Mapping[str, PendingPods]) -> list[RefutedPod]:
    """Replay in several orders until one succeeds: existing nodes before new ones, or all nodes from the start.

    Pods that depend on no others come last in both. As that may matter, both are tried again in plain queue order.
    """
    refuted: list[RefutedPod] = []
    for existing_first, in_queue_order in ((True, False), (False, False), (True, True), (False, True)):
        found = _replay_in_order(snapshot, plan, pods, existing_first=existing_first, in_queue_order=in_queue_order)
        if not found:
            return []
        refuted = refuted or found
    return refuted


def _replay_in_order(
    snapshot: Snapshot,
    plan: ScaleUpPlan,
    pods: Mapping[str, PendingPods],
    *,
    existing_first: bool,
    in_queue_order: bool,
) -> list[RefutedPod]:
    replay = Replay(snapshot.view)
    groups = {key: replay.add_equivalence_class(pods[key].pod) for key in sorted(collect_keys(plan))}
    replay.prepare()
    places = dict(
        zip((pending.key for pending in snapshot.pending), compute_queue_positions(snapshot.pending), strict=True)
    )
    queue = {key: number for number, key in enumerate(sorted(groups, key=places.__getitem__))}
    looking = {key for key in groups if in_queue_order or depends_on_other_pods(pods[key].pod)}
    there = [
        _PlacedPods(key=key, node=name, pods=count)
        for name, pods_by_class in plan.existing.items()
        for key, count in pods_by_class.items()
    ]
    left: list[tuple[str, str]] = []
    budget = PODS_REPLAYED
    if existing_first:
        first = _order_pods(replay, [entry for entry in there if entry.key in looking], queue)[:budget]
        left = _place_in_order(replay, groups, first)
        budget -= len(first)
    new = _add_new_nodes(replay, plan)
    placed = new if existing_first else [*there, *new]
    second = _order_pods(replay, [entry for entry in placed if entry.key in looking], queue)[:budget]
    left = _place_in_order(replay, groups, [*left, *second])
    # Pods that depend on no others fit at any time.
    others = _order_pods(replay, [entry for entry in (*there, *new) if entry.key not in looking], queue)
    left = _place_in_order(replay, groups, [*others[: budget - len(second)], *left])
    return [_refute(replay, groups, key, node) for key, node in left]


def _add_new_nodes(replay: Replay, plan: ScaleUpPlan) -> list[_PlacedPods]:
    """Add the new nodes to the replay; returns the pods planned on them."""
    placed: list[_PlacedPods] = []
    for scale_up in plan.scale_ups:
        number = 0
        for pattern in scale_up.patterns:
            for _ in range(pattern.nodes):
                node = build_planned_node(scale_up.option, number)
                replay.add_node(node, scale_up.option.daemons)
                number += 1
                placed += [
                    _PlacedPods(key=key, node=node.metadata.name, pods=pods) for key, pods in pattern.pods.items()
                ]
    return placed


def _order_pods(replay: Replay, placed: Sequence[_PlacedPods], queue: Mapping[str, int]) -> list[tuple[str, str]]:
    """(key, node) per pod: one key after the other, each evenly over zones and nodes, as a scheduler spreads pods."""
    positions: list[tuple[int, int, int, str, str]] = []
    by_place: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    for index, entry in enumerate(placed):
        zone = replay.nodes[entry.node].labels.get(ZONE, "")
        by_place.setdefault((entry.key, zone), []).extend(
            (position, index, entry.node) for position in range(entry.pods)
        )
    for (key, _), places in by_place.items():
        positions += [
            (queue[key], position, index, key, node) for position, (_, index, node) in enumerate(sorted(places))
        ]
    return [(key, node) for _, _, _, key, node in sorted(positions)]


def _place_in_order(
    replay: Replay, groups: Mapping[str, EquivalenceClass], waiting: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Place what fits. A pod with affinity is retried after its targets, before the next key; the rest is left."""
    later: list[tuple[str, str]] = []
    for _, positions in groupby(waiting, key=itemgetter(0)):
        later = _place_once(replay, groups, [*positions, *later])
    while later:
        again = _place_once(replay, groups, later)
        if len(again) == len(later):
            break
        later = again
    return later


def _place_once(
    replay: Replay, groups: Mapping[str, EquivalenceClass], waiting: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Place what fits now; returns the rest."""
    later: list[tuple[str, str]] = []
    for key, node in waiting:
        if isinstance(replay.check(groups[key], node), DoesNotFit):
            later.append((key, node))
        else:
            replay.place(groups[key], node, f"{key}@{node}#{len(replay.nodes[node].pods)}")
    return later


def _refute(replay: Replay, groups: Mapping[str, EquivalenceClass], key: str, node: str) -> RefutedPod:
    verdict = replay.check(groups[key], node)
    reason = str(verdict.reason) if isinstance(verdict, DoesNotFit) else "fits only after others"
    return RefutedPod(key=key, node=node, reason=reason)
