"""Room on nodes that stand, kept for checks that find it.

Pure; specs/nodes.md 3.2 and 4.3. Booked pods count as if they ran, against other requests and against growth for
ordinary pods; kube-scheduler knows nothing of them. `plimsoll plan` asks before it plans what is to be added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from plimsoll.nodes.planning.capacity_checks import Check, Checked, check_capacity
from plimsoll.nodes.planning.lumps import Lumps
from plimsoll.nodes.planning.promises import with_promises_kept
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


def with_checks(snapshot: Snapshot, policy: Policy, line: Sequence[InLine]) -> tuple[Snapshot, dict[str, Checked]]:
    """The answers to all checks in line by name, and the snapshot with the room they keep.

    Those that may add nodes are not answered here; but what they would take of nodes that are there is theirs, where
    they stand further in front. One that gets nothing, even with all that could be added, takes nothing.
    """
    last = max((number for number, one in enumerate(line) if not one.grows), default=-1)
    front = line[: last + 1]
    growing = [one for one in front if one.grows]
    taken = with_promises_kept(snapshot)
    served = _served(taken, policy, growing) if growing else frozenset()
    checks = [
        Check(name=one.name, pods=one.pods, keeps=one.keeps, takes=one.grows)
        for one in front
        if not one.grows or one.name in served
    ]
    found = check_capacity(taken, policy, checks)
    pods = [pod for one in front for pod in one.pods]
    kept = replace(snapshot, view=Lumps().on(snapshot.view, found.booked, pods))
    return kept, {one.name: one for one in found.answers}


def _served(snapshot: Snapshot, policy: Policy, growing: Sequence[InLine]) -> frozenset[str]:
    """Names of those that would get all they ask for if nobody else asked."""
    pods = tuple(pod for one in growing for pod in one.pods)
    plan = plan_scale_up(replace(snapshot, pending=pods, promises={}), policy)
    left = {key for one in plan.remaining for key in one.keys}
    return frozenset(one.name for one in growing if not any(pod.key in left for pod in one.pods))
