"""Turns of a loop over a cluster that changes: what a planner pays for when the snapshot is kept, not read anew.

For `benchmarks.planning`. The first turn reads everything; before each further one, one pod in a hundred goes and
another one comes, on nodes and among those that wait. A turn is the best of five, as other work disturbs them. What
fits already counts from the changes to the plan; the simulation of removals begins with the snapshot, whose own
time has a row.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from benchmarks import planning_clusters
from plimsoll.nodes.planning.scaledown.planner import find_unneeded
from plimsoll.nodes.planning.scaleup.planner import propose
from plimsoll.nodes.planning.state.snapshot_builder import SnapshotBuilder, SnapshotChanges, SnapshotInputs
from plimsoll.scheduling.cluster_view import get_pod_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

TURNS = 5
CHURN = 100
"""The share of pods that are replaced per loop iteration: one in so many."""


class ChurningCluster:
    """The objects of a cluster, and changes to them from a seed."""

    def __init__(self, nodes: Sequence[Node], pods: Sequence[Pod], *, seed: int) -> None:
        self._nodes = list(nodes)
        self._pods = list(pods)
        self._random = np.random.default_rng(seed)
        self._made = 0

    @property
    def everything(self) -> SnapshotChanges:
        return SnapshotChanges(
            nodes={node.metadata.name: node for node in self._nodes}, pods={get_pod_key(pod): pod for pod in self._pods}
        )

    def changes(self) -> SnapshotChanges:
        """A pod that comes is like one that is there, has a new name, and is on another node unless it waits."""
        changed: dict[Any, Pod | None] = {}
        count = max(len(self._pods) // CHURN, 1)
        for gone in self._random.choice(len(self._pods), count, replace=False).tolist():
            changed[get_pod_key(self._pods[gone])] = None
            self._pods[gone] = self._another(self._pods[int(self._random.integers(len(self._pods)))])
            changed[get_pod_key(self._pods[gone])] = self._pods[gone]
        return SnapshotChanges(pods=changed)

    def _another(self, like: Pod) -> Pod:
        self._made += 1
        spec = like.spec
        if spec.node_name:
            node = self._nodes[int(self._random.integers(len(self._nodes)))]
            spec = structs.replace(spec, node_name=node.metadata.name)
        meta = structs.replace(like.metadata, name=f"later-{self._made}", uid=f"later-{self._made}")
        return structs.replace(like, metadata=meta, spec=spec)


def rows(seeds: Sequence[int], row: Callable[..., dict[str, Any]], cpu_ms: Callable[..., float]) -> Iterator[Any]:
    for owned in (True, False):
        yield from _fitting_rows(seeds, row, cpu_ms, owned=owned)
    for nodes, pods_each, most_ms in ((1_000, 15, 20), (5_000, 20, 100)):
        yield from _removal_rows((nodes, pods_each), most_ms, seeds, row, cpu_ms)


def _fitting_rows(
    seeds: Sequence[int], row: Callable[..., dict[str, Any]], cpu_ms: Callable[..., float], *, owned: bool
) -> Iterator[Any]:
    policy = planning_clusters.policy()
    measured = []
    for seed in seeds:
        cluster = _with_waiting(seed, owned=owned)
        around = SnapshotInputs(at=planning_clusters.NOON)
        keeper = SnapshotBuilder()
        first = cpu_ms(lambda k=keeper, c=cluster, a=around: propose(k.update(c.everything, a), policy))
        later = []
        for _ in range(TURNS):
            changes = cluster.changes()
            later.append(cpu_ms(lambda k=keeper, c=changes, a=around: propose(k.update(c, a), policy)))
        measured.append((first, min(later)))
    first, turn = (statistics.median(times) for times in zip(*measured, strict=True))
    name = "fits already 10,000 on 1,000 nodes" + ("" if owned else ", no owners")
    yield row(name, turn, "ms CPU", 10, "a turn after the first, 1 % of pods changed: snapshot and plan")
    yield row(f"{name}, first turn", first, "ms CPU", None, "every object read")


def _with_waiting(seed: int, *, owned: bool) -> ChurningCluster:
    view = planning_clusters.view_of(1_000, pods_each=5, seed=seed)
    work = planning_clusters.equal_counts(
        planning_clusters.workload("lognormal", pods=10_000, classes=100, seed=seed), 100
    )
    waiting = []
    for entry in planning_clusters.pending(work):
        owners = entry.pod.metadata.owner_references if owned else ()
        for index in range(entry.count):
            named = f"{entry.pod.metadata.name}-{index}"
            meta = structs.replace(entry.pod.metadata, name=named, uid=named, owner_references=owners)
            waiting.append(structs.replace(entry.pod, metadata=meta))
    return ChurningCluster(*_objects(view.nodes.values(), waiting), seed=seed)


def _objects(states: Any, more: Sequence[Pod] = ()) -> tuple[list[Node], list[Pod]]:
    held = [placed.pod for state in states for placed in state.pods.values()]
    return [state.node for state in states], [*held, *more]


def _removal_rows(
    size: tuple[int, int],
    most_ms: float,
    seeds: Sequence[int],
    row: Callable[..., dict[str, Any]],
    cpu_ms: Callable[..., float],
) -> Iterator[Any]:
    nodes, pods_each = size
    measured = [
        _removals(planning_clusters.used_cluster(nodes, pods_each=pods_each, seed=seed), seed, cpu_ms) for seed in seeds
    ]
    first, turn, quiet, reading, update, unneeded = (statistics.median(times) for times in zip(*measured, strict=True))
    name = f"scale-down simulation {nodes:,} nodes"
    note = f"{nodes * pods_each:,} pods, {unneeded:,.0f} nodes not needed; 1 % of pods changed; {quiet:.3g} ms if none"
    yield row(name, turn, "ms CPU", most_ms, note, quiet_ms=quiet)
    yield row(f"{name}, first turn", first, "ms CPU", None, "everything sorted anew")
    note = f"1 % of pods changed; {reading:,.0f} ms to read all objects"
    yield row(f"snapshot of {nodes:,} nodes", update, "ms CPU", None, note, reading_ms=reading)


def _removals(world: Snapshot, seed: int, cpu_ms: Callable[..., float]) -> tuple[float, ...]:
    """Times of a first turn, of one after changes, of one after none; of the snapshot, whole and after changes."""
    policy = planning_clusters.policy()
    cluster = ChurningCluster(*_objects(world.view.nodes.values()), seed=seed)
    around = SnapshotInputs(at=world.at, groups=world.groups, group_of=world.group_of)
    keeper = SnapshotBuilder()
    made: list[Snapshot] = []
    reading = cpu_ms(lambda: made.append(keeper.update(cluster.everything, around)))
    # What is called first is loaded before anything is timed.
    unneeded = len(find_unneeded(world, policy, now=world.at).unneeded)
    first = cpu_ms(lambda: find_unneeded(made[-1], policy, now=world.at))
    updates, turns, quiet = [], [], []
    for _ in range(TURNS):
        changes = cluster.changes()
        updates.append(cpu_ms(lambda c=changes: made.append(keeper.update(c, around))))
        turns.append(cpu_ms(lambda: find_unneeded(made[-1], policy, now=world.at)))
        quiet.append(cpu_ms(lambda: find_unneeded(made[-1], policy, now=world.at)))
    return first, min(turns), min(quiet), reading, min(updates), unneeded
