"""Room on nodes that stand, kept for ProvisioningRequests: those that were promised it, and checks that find it.

Pure; specs/nodes.md 3.2 and 4.3. Booked pods count as if they ran, against other requests and against growth for
ordinary pods; kube-scheduler knows nothing of them. `plimsoll plan` asks before it plans what is to be added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from plimsoll.nodes.planning.capacity_checks import Check, Checked, check_capacity
from plimsoll.nodes.planning.scale_up import plan_scale_up
from plimsoll.scheduling.view import ClusterView, PlacedPod

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.planning.world import Pending, Snapshot
    from plimsoll.nodes.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class InLine:
    """A request that waits for an answer: one that may add nodes, or one that only asks."""

    name: str
    pods: tuple[Pending, ...]
    grows: bool
    keeps: bool = True


def with_promised(snapshot: Snapshot, policy: Policy, promised: Sequence[Pending]) -> Snapshot:
    """The snapshot with as many of these pods on its nodes as find room: capacity that requests were given before."""
    if not promised:
        return snapshot
    alone = replace(snapshot, pending=tuple(promised), groups=(), machine_types=())
    placed = plan_scale_up(alone, replace(policy, nap=replace(policy.nap, enabled=False)))
    return replace(snapshot, view=with_booked(snapshot.view, placed.existing, promised))


def with_checks(snapshot: Snapshot, policy: Policy, line: Sequence[InLine]) -> tuple[Snapshot, dict[str, Checked]]:
    """The answers to all checks in line by name, and the snapshot with the room they keep.

    Those that may add nodes are not answered here; but what they would take of nodes that are there is theirs, where
    they stand further in front.
    """
    answers: dict[str, Checked] = {}
    before: list[Pending] = []
    for grows, run in groupby(line, key=lambda one: one.grows):
        asking = [*run]
        pods = [pod for one in asking for pod in one.pods]
        if grows:
            before += pods
            continue
        view = snapshot.view
        if before:
            taken = plan_scale_up(replace(snapshot, pending=tuple(before)), policy).existing
            view = with_booked(view, taken, before)
        checks = [Check(name=one.name, pods=one.pods, keeps=one.keeps) for one in asking]
        found = check_capacity(replace(snapshot, view=view), policy, checks)
        answers |= {one.name: one for one in found.answers}
        snapshot = replace(snapshot, view=with_booked(snapshot.view, found.booked, pods))
    return snapshot, answers


def with_booked(
    view: ClusterView, existing: Mapping[str, Mapping[str, int]], pending: Iterable[Pending]
) -> ClusterView:
    """The view with such pods on its nodes, as if they ran there."""
    if not existing:
        return view
    pods = {one.key: PlacedPod(one.pod) for one in pending}
    nodes = dict(view.nodes)
    for name, filling in existing.items():
        added = [pods[key].named(f"{key}@{name}#{number}") for key, count in filling.items() for number in range(count)]
        nodes[name] = nodes[name].with_pods(added)
    avoiding = {name: None for name, state in nodes.items() if any(one.anti_affinity for one in state.pods.values())}
    return ClusterView(nodes, namespaces=view.namespaces, storage=view.storage, anti_affine=avoiding)
