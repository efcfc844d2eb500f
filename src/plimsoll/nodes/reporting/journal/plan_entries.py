"""A loop as a plan for the journal: each action with its outcome, and a reason for everything not done. Pure.

`plimsoll why pod|node|nodegroup/...` reads these entries: each pending pod, each node that stays and each group that
cannot be scaled up is named with its reason. At most ten thousand pods are named; the rest is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from msgspec import UNSET

from plimsoll.core.plans import Action, NotDone, Outcome, Plan, Reason, Ref, Result
from plimsoll.journal.workloads import list_workloads
from plimsoll.nodes.model.reasons import (
    BAD_FIELD,
    BAD_OBJECT,
    IN_BACKOFF,
    NEW_LABEL,
    NOT_READY,
    ZONE_NOT_AVAILABLE,
)
from plimsoll.nodes.model.results import RemovalResult
from plimsoll.nodes.reporting.events.pod_outcomes import find_pod_outcomes, format_scale_up
from plimsoll.nodes.reporting.events.scale_up import NOT_TRIGGERED, TRIGGERED
from plimsoll.nodes.reporting.min_size_enforcement import is_min_size_repair
from plimsoll.nodes.reporting.plan_json import get_machine_type
from plimsoll.nodes.reporting.requests import build_request_actions, list_unserved_requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.model.call_outcomes import CallFailed
    from plimsoll.nodes.model.results import ScaleUpResult
    from plimsoll.nodes.model.scale_down_plan import NodeRemoval
    from plimsoll.nodes.model.scale_up_plan import GroupScaleUp
    from plimsoll.objects.api.pods import Pod

SUBSYSTEM: Final = "nodes"
GROW: Final = "grow"
CREATE: Final = "create"
SHRINK: Final = "shrink"
DELETE_INSTANCES: Final = "delete-instances"
REMOVE: Final = "remove"
DELETE_GROUP: Final = "delete"
_ANNOUNCED: Final = frozenset({NEW_LABEL, ZONE_NOT_AVAILABLE})
_PODS_NAMED: Final = 10_000
_ENDINGS: Final = {
    RemovalResult.REMOVED: Result.DONE,
    RemovalResult.FAILED: Result.FAILED,
    RemovalResult.OVERTAKEN: Result.OVERTAKEN,
}
_EMPTY_GROUP: Final = Reason(code="EmptyGroup", message="auto-provisioning made it, and it is empty")
_FITS: Final = Reason(code="FitsOnNodes", message="an existing or upcoming node has room for it")

Doing = tuple[Action, Outcome | None]
"""None: the action was begun and has not ended."""


def build_plan(loop: LoopResult) -> Plan:
    return build_plan_and_outcomes(loop)[0]


def build_plan_and_outcomes(loop: LoopResult) -> tuple[Plan, tuple[Outcome, ...]]:
    """The plan and the outcomes of its actions so far."""
    doings = [
        *_build_repairs(loop),
        *_build_scale_ups(loop),
        *build_request_actions(loop),
        *_build_removals(loop),
        *_build_group_deletions(loop),
    ]
    plan = Plan(
        subsystem=SUBSYSTEM,
        snapshot=loop.number if loop.snapshot is None else loop.snapshot.number,
        at=loop.at,
        actions=tuple(action for action, _ in doings),
        not_done=(
            *_build_ended_early(loop),
            *_list_bad_objects(loop),
            *_list_pods(loop),
            *list_unserved_requests(loop),
            *_list_held_deletions(loop),
            *_list_nodes(loop),
            *_list_groups(loop),
        ),
        budgets=dict(loop.scale_up.plan.budgets),
    )
    return plan, tuple(outcome for _, outcome in doings if outcome is not None)


# ---- actions


def _build_repairs(loop: LoopResult) -> Iterator[Doing]:
    for repaired in loop.repairs:
        if repaired.instances:
            arguments = {"instances": list(repaired.instances)}
            action = Action(
                verb=DELETE_INSTANCES,
                target=_build_group_ref(repaired.group),
                reason=repaired.reason,
                arguments=arguments,
            )
        else:
            action = Action(
                verb=GROW if is_min_size_repair(repaired) else SHRINK,
                target=_build_group_ref(repaired.group),
                reason=repaired.reason,
                arguments={"to": repaired.after},
                precondition={"size": repaired.before},
            )
        yield action, _build_outcome(action, repaired.failure)


def _build_scale_ups(loop: LoopResult) -> Iterator[Doing]:
    results = loop.scale_up_results
    for result in results:
        action = _build_scale_up_action(result.scale_up, result.group, result.before, result.after)
        yield action, _build_scale_up_outcome(action, result)
    tried = {id(result.scale_up) for result in results}
    for scale_up in loop.scale_up.plan.scale_ups:
        if id(scale_up) not in tried:
            yield _build_scale_up_action(scale_up, scale_up.option.group, scale_up.before, scale_up.after), None


def _build_scale_up_action(scale_up: GroupScaleUp, group: str, before: int, after: int) -> Action:
    arguments: dict[str, object] = {"to": after}
    if not scale_up.option.exists:
        arguments |= {"machineType": get_machine_type(scale_up.option), "zone": scale_up.option.zone}
    return Action(
        verb=GROW if scale_up.option.exists else CREATE,
        target=_build_group_ref(group),
        reason=scale_up.reason,
        arguments=arguments,
        precondition={"size": before} if scale_up.option.exists else {},
    )


def _build_scale_up_outcome(action: Action, result: ScaleUpResult) -> Outcome:
    if result.held_back is not None:
        return Outcome(action=action, result=Result.HELD_BACK, reason=result.held_back)
    return _build_outcome(action, result.failure)


def _build_removals(loop: LoopResult) -> Iterator[Doing]:
    part = loop.scale_down
    ended = {finished.removal.node: finished for finished in part.finished}
    decided = {node_removal.node for node_removal in part.nodes_to_delete.removals}
    before = (finished.removal for finished in part.finished if finished.removal.node not in decided)
    for removal in (*before, *part.nodes_to_delete.removals):
        action = _build_removal_action(removal)
        end = ended.get(removal.node)
        if removal.node in part.held_back:
            held_back = part.held_back[removal.node]
            yield action, Outcome(action=action, result=Result.HELD_BACK, reason=held_back)
        elif end is not None:
            yield action, Outcome(action=action, result=_ENDINGS[end.result], reason=end.reason)
        else:
            yield action, None


def _build_removal_action(removal: NodeRemoval) -> Action:
    arguments = {"group": removal.group, "pods": len(removal.moves)}
    return Action(verb=REMOVE, target=_build_node_ref(removal.node), reason=removal.reason, arguments=arguments)


def _build_group_deletions(loop: LoopResult) -> Iterator[Doing]:
    for deleted_group in loop.deleted_groups:
        action = Action(
            verb=DELETE_GROUP,
            target=_build_group_ref(deleted_group.group),
            reason=_EMPTY_GROUP,
            precondition={"size": 0},
        )
        yield action, _build_outcome(action, deleted_group.failure)


def _build_outcome(action: Action, failure: CallFailed | None) -> Outcome:
    if failure is None:
        return Outcome(action=action, result=Result.DONE)
    return Outcome(action=action, result=Result.FAILED, reason=Reason(code=failure.kind.value, message=failure.message))


# ---- what is not done


def _build_ended_early(loop: LoopResult) -> Iterator[NotDone]:
    if loop.ended_early is not None:
        yield NotDone(what="is left as it is", about=(_build_cluster_ref(loop),), reason=loop.ended_early)


def _list_bad_objects(loop: LoopResult) -> Iterator[NotDone]:
    """Objects that cannot be decoded or judged, and fields of others that cannot be used."""
    listed = _EntriesByReason()
    for bad in loop.bad_objects:
        ref = Ref(kind=bad.kind.lower(), namespace=bad.namespace, name=bad.name)
        listed.add("is left as it is", Reason(code=BAD_OBJECT, message=bad.problem), (ref,))
    for ignored in loop.ignored_fields:
        reason = Reason(code=BAD_FIELD, message=f"{ignored.field}: {ignored.problem}; {ignored.consequence}")
        listed.add("has a field that cannot be used", reason, (ignored.ref,))
    yield from listed


class _EntriesByReason:
    """Objects by reason; at most as many pods as one plan names."""

    def __init__(self) -> None:
        self._left = _PODS_NAMED
        self._entries: dict[tuple[str, str], _ReasonEntry] = {}
        self._texts: dict[int, tuple[Reason, str]] = {}
        """Texts of reasons, which thousands of pods share. The reasons are held so that their ids stay unique."""

    def add(self, what: str, reason: Reason, refs: Iterable[Ref]) -> None:
        self._get_entry(what, reason).refs.extend(refs)

    def add_pods(self, what: str, reason: Reason, pod: Pod, names: tuple[str, ...]) -> None:
        named = names[: self._left]
        self._left -= len(named)
        entry = self._get_entry(what, reason)
        entry.refs.extend(Ref(kind="pod", namespace=pod.metadata.namespace, name=name) for name in named)
        entry.unnamed += len(names) - len(named)
        entry.workloads.update(dict.fromkeys(list_workloads(pod.metadata)))

    def _get_entry(self, what: str, reason: Reason) -> _ReasonEntry:
        known = self._texts.get(id(reason))
        if known is None:
            known = self._texts[id(reason)] = (reason, f"{reason.code} {reason}")
        return self._entries.setdefault((what, known[1]), _ReasonEntry(what=what, reason=reason))

    def __iter__(self) -> Iterator[NotDone]:
        for entry in self._entries.values():
            yield NotDone(
                what=entry.what,
                about=tuple(entry.refs),
                reason=entry.reason,
                unnamed=entry.unnamed,
                concerns=tuple(entry.workloads) or UNSET,
            )


@dataclass(slots=True, kw_only=True)
class _ReasonEntry:
    """One reason and the objects it holds for."""

    what: str
    reason: Reason
    refs: list[Ref] = field(default_factory=list)
    unnamed: int = 0
    workloads: dict[Ref, None] = field(default_factory=dict)
    """The owners of the pods, in the order of the pods."""


def _list_pods(loop: LoopResult) -> Iterator[NotDone]:
    listed = _EntriesByReason()
    why: dict[int, Reason] = {}
    coming: dict[tuple[str, ...], Reason] = {}
    announced = _collect_announced(loop)
    for pod_outcome in find_pod_outcomes(loop):
        pod = pod_outcome.pending.pod
        if pod_outcome.remaining:
            left = why.get(id(pod_outcome.reasons)) or why.setdefault(
                id(pod_outcome.reasons), _build_not_triggered_reason(pod_outcome.reasons)
            )
            listed.add_pods("stays unschedulable", left, pod, pod_outcome.remaining)
        if pod_outcome.helped:
            triggered = coming.get(pod_outcome.scale_ups) or coming.setdefault(
                pod_outcome.scale_ups, _build_triggered_reason(pod_outcome.scale_ups, announced)
            )
            listed.add_pods("waits for new nodes", triggered, pod, pod_outcome.helped)
        if pod_outcome.waiting and pod_outcome.obstacle is not None:
            listed.add_pods("waits for new nodes", pod_outcome.obstacle, pod, pod_outcome.waiting)
        if pod_outcome.placed:
            listed.add_pods("waits for the scheduler", _FITS, pod, pod_outcome.placed)
    for aside in loop.filtered_pods:
        pod = aside.pod
        listed.add_pods("is not planned for", aside.reason, pod, (pod.metadata.name,))
    yield from listed


def _build_not_triggered_reason(reasons: tuple[Reason, ...]) -> Reason:
    return Reason(code=NOT_TRIGGERED, message="no node can be added for it", because=reasons)


def _collect_announced(loop: LoopResult) -> dict[str, list[Reason]]:
    """By scale-up, as it is printed: a label that no node carries yet, a zone that cannot be had."""
    found: dict[str, list[Reason]] = {}
    for result in loop.scale_up.results:
        causes = [cause for cause in result.scale_up.reason.because if cause.code in _ANNOUNCED]
        if causes:
            found[format_scale_up(result)] = causes
    return found


def _build_triggered_reason(scale_ups: tuple[str, ...], announced: Mapping[str, Sequence[Reason]]) -> Reason:
    causes = {cause.message: cause for scale_up in scale_ups for cause in announced.get(scale_up, ())}
    return Reason(
        code=TRIGGERED, message=f"nodes were requested: {' '.join(scale_ups)}", because=tuple(causes.values())
    )


def _list_nodes(loop: LoopResult) -> Iterator[NotDone]:
    """Every node that stays: unremovable nodes, then unneeded ones that are not removed yet."""
    part = loop.scale_down
    listed = _EntriesByReason()
    for unremovable in part.unremovable:
        listed.add("is kept", unremovable.reason, (_build_node_ref(unremovable.node),))
    if part.skipped is not None:
        listed_nodes = {
            *(unremovable_node.node for unremovable_node in part.unremovable),
            *(node_removal.node for node_removal in part.nodes_to_delete.removals),
        }
        waiting = (
            _build_node_ref(unneeded_node.node)
            for unneeded_node in part.unneeded
            if unneeded_node.node not in listed_nodes
        )
        listed.add("is not needed and stays for now", part.skipped, waiting)
    yield from (not_done for not_done in listed if not_done.about)


def _list_held_deletions(loop: LoopResult) -> Iterator[NotDone]:
    """Instances and groups that are kept because something may still run there."""
    if loop.hold is not None:
        yield NotDone(what="is not scaled down", about=(_build_cluster_ref(loop),), reason=loop.hold)
    listed = _EntriesByReason()
    for held in loop.held_deletions:
        refs = (
            (_build_node_ref(held.node), _build_group_ref(held.group)) if held.node else (_build_group_ref(held.group),)
        )
        listed.add("is not deleted", held.reason, refs)
    yield from listed


def _list_groups(loop: LoopResult) -> Iterator[NotDone]:
    """Groups that cannot be used, then groups and machine types that were no option for this loop's pods."""
    listed = _EntriesByReason()
    unusable: set[str] = set()
    for name, health in (loop.health.groups if loop.health is not None else {}).items():
        if (reason := health.reason) is not None and health.group.autoscaled:
            unusable.add(name)
            listed.add("cannot be scaled up", reason, (_build_group_ref(name),))
    for skipped in loop.scale_up.plan.skipped_groups:
        if skipped.group in unusable and skipped.code in {IN_BACKOFF, NOT_READY}:
            continue
        about = (
            _build_group_ref(skipped.group)
            if skipped.group
            else Ref(kind="machinetype", name=skipped.machine_type or "any")
        )
        listed.add("is not scaled up", Reason(code=skipped.code, message=skipped.reason), (about,))
    yield from listed


def _build_group_ref(name: str) -> Ref:
    return Ref(kind="nodegroup", name=name)


def _build_cluster_ref(loop: LoopResult) -> Ref:
    return Ref(kind="cluster", name=loop.policy.operation.cluster_name or "this")


def _build_node_ref(name: str) -> Ref:
    return Ref(kind="node", name=name)
