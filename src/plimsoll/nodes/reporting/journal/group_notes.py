"""Journal notes about node groups that a loop did not change, and about pods that are not pending any more.

The notes hold sizes, limits, upcoming nodes and the last scale-up or removal since the process started, so that
`plimsoll why nodegroup/...` knows every group. Pods that earlier plans named and this one does not get a final note
with their node, so that the last entry about a running pod is not an old reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from plimsoll.core.formatting import format_limit, format_time
from plimsoll.core.plans import NotDone, Reason, Ref
from plimsoll.journal.workloads import list_workloads
from plimsoll.nodes.model.results import RemovalResult
from plimsoll.nodes.reporting.min_size_enforcement import find_raised_groups
from plimsoll.scheduling.cluster_view import PodKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plimsoll.nodes.cluster_state.health import GroupHealth
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.model.snapshot import Snapshot


_AS_IT_IS: Final = "stays as it is"


class GroupNotes:
    """Notes about groups; remembers the last change of each group."""

    def __init__(self) -> None:
        self._scaled_up: dict[str, str] = {}
        self._scaled_down: dict[str, str] = {}

    def build(self, loop: LoopResult) -> tuple[NotDone, ...]:
        """A note for each group that this loop did not change; none if the provider could not be read."""
        acted = self._record(loop)
        if loop.health is None:
            return ()
        groups = loop.health.groups
        self._scaled_up = {name: note for name, note in self._scaled_up.items() if name in groups or name in acted}
        self._scaled_down = {name: note for name, note in self._scaled_down.items() if name in groups}
        return tuple(self._build_note(group_health) for name, group_health in groups.items() if name not in acted)

    def _record(self, loop: LoopResult) -> set[str]:
        """Record changes; returns the groups that were changed."""
        when = f"at {format_time(loop.at)}"
        acted = {repaired.group for repaired in loop.repairs} | {result.group for result in loop.scale_up_results}
        for group, before, after in _list_scale_ups(loop):
            self._scaled_up[group] = f"last grown from {before} to {after} {when}"
        for ended in loop.scale_down.finished:
            if ended.result is RemovalResult.REMOVED:
                self._scaled_down[ended.removal.group] = f"last lost node {ended.removal.node} {when}"
        return acted

    def _build_note(self, health: GroupHealth) -> NotDone:
        name = health.group.id
        known = [notes[name] for notes in (self._scaled_up, self._scaled_down) if name in notes]
        message = "; ".join([_describe_sizes(health), *_describe_upcoming(health), *known])
        state = "growing" if health.is_scaling_up else "steady" if health.group.autoscaled else "fixed"
        facts = {"size": health.target_size, "state": state, "min": health.group.min_size, "max": health.group.max_size}
        reason = Reason(code="GroupAsItIs", message=message, facts=facts)
        return NotDone(what=_AS_IT_IS, about=(Ref(kind="nodegroup", name=name),), reason=reason)


def _list_scale_ups(loop: LoopResult) -> Iterator[tuple[str, int, int]]:
    yield from ((result.group, result.before, result.after) for result in loop.scale_up_results if result.is_done)
    yield from (
        (raised.group, raised.before, raised.after) for raised in find_raised_groups(loop) if raised.failure is None
    )


def _describe_sizes(health: GroupHealth) -> str:
    group = health.group
    has = f"{health.target_size} node{'s' * (health.target_size != 1)}, {len(health.readiness.ready)} ready"
    if not group.autoscaled:
        return f"it is not autoscaled, so nothing changes it: {has}"
    most = format_limit(group.max_size)
    return f"{has} (minimum {group.min_size}, {f'maximum {most}' if most.isdecimal() else most})"


def _describe_upcoming(health: GroupHealth) -> list[str]:
    return [f"{health.upcoming} on the way"] if health.upcoming else []


_WAITS_NO_MORE: Final = "is no longer pending"
_NOT_PENDING: Final = Reason(code="WaitsNoMore", message="it is no longer among the unschedulable pods")


def find_settled_pods(refs: Iterable[Ref], loop: LoopResult) -> tuple[NotDone, ...]:
    """Notes about pods by their refs; none for pods that are still pending, or if the cluster could not be read."""
    if loop.snapshot is None:
        return ()
    waiting = {(pending.pod.metadata.namespace, name) for pending in loop.snapshot.pending for name in pending.names}
    unnamed = {PodKey(ref.namespace, ref.name): ref for ref in refs if (ref.namespace, ref.name) not in waiting}
    if not unnamed:
        return ()
    by_node = _group_by_node(set(unnamed), loop.snapshot)
    found = {key for keys in by_node.values() for key in keys}
    notes = [
        _build_not_done(
            _build_scheduled_reason(node),
            [unnamed[key] for key in sorted(keys)],
            _find_workloads(loop.snapshot, node, keys),
        )
        for node, keys in sorted(by_node.items())
    ]
    gone = [unnamed[key] for key in sorted(set(unnamed) - found)]
    return (*notes, _build_not_done(_NOT_PENDING, gone)) if gone else tuple(notes)


def _group_by_node(keys: set[PodKey], snapshot: Snapshot) -> dict[str, set[PodKey]]:
    found = ((state.name, state.pods.keys() & keys) for state in snapshot.view.nodes.values())
    return {node: met for node, met in found if met}


def _find_workloads(snapshot: Snapshot, node: str, keys: set[PodKey]) -> tuple[Ref, ...]:
    pods = snapshot.view.nodes[node].pods
    return tuple(sorted({ref for key in keys for ref in list_workloads(pods[key].pod.metadata)}))


def _build_not_done(reason: Reason, refs: list[Ref], workloads: tuple[Ref, ...] = ()) -> NotDone:
    return NotDone(what=_WAITS_NO_MORE, about=tuple(refs), reason=reason, concerns=workloads or UNSET)


def _build_scheduled_reason(node: str) -> Reason:
    return Reason(code="HasPlace", message=f"it is scheduled on node {node}", facts={"node": node})
