"""Room on nodes that stand, kept for ProvisioningRequests: those that were promised it, and checks that find it.

Pure; specs/nodes.md 3.2 and 4.3. Booked pods count as if they ran, against other requests and against growth for
ordinary pods; kube-scheduler knows nothing of them. `plimsoll plan` asks before it plans what is to be added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from plimsoll.nodes.planning.booked_places import booked_places
from plimsoll.nodes.planning.capacity_checks import Check, Checked, check_capacity
from plimsoll.nodes.planning.lumps import Lumps
from plimsoll.nodes.planning.scale_up import plan_scale_up

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    places = booked_places(snapshot, policy, promised).on
    return replace(snapshot, view=Lumps().on(snapshot.view, places, promised))


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
            view = Lumps().on(view, taken, before)
        checks = [Check(name=one.name, pods=one.pods, keeps=one.keeps) for one in asking]
        found = check_capacity(replace(snapshot, view=view), policy, checks)
        answers |= {one.name: one for one in found.answers}
        snapshot = replace(snapshot, view=Lumps().on(snapshot.view, found.booked, pods))
    return snapshot, answers
