"""A turn as a plan for the journal: every action with its outcome, and a reason for everything not done. Pure.

`plimsoll why pod|node|nodegroup/…` and the console read what stands here: each pod that waits, each node that stays and
each group that cannot grow is named with its reason. Ten thousand pods are named at most; the rest is counted.
`journal_news` keeps what was said before from being written again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Action, NotDone, Outcome, Plan, Reason, Ref, Result
from plimsoll.nodes.model.reasons import IN_BACKOFF, NOT_READY
from plimsoll.nodes.model.results import RemovalResult
from plimsoll.nodes.reporting.events.pod_outcomes import find_pod_outcomes
from plimsoll.nodes.reporting.events.scale_up import NOT_TRIGGERED, TRIGGERED
from plimsoll.nodes.reporting.min_size import is_raised
from plimsoll.nodes.reporting.plan_json import machine_type_of
from plimsoll.nodes.reporting.requests import build_request_actions, list_unserved_requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
_PODS_NAMED: Final = 10_000
_ENDINGS: Final = {
    RemovalResult.REMOVED: Result.DONE,
    RemovalResult.FAILED: Result.FAILED,
    RemovalResult.OVERTAKEN: Result.OVERTAKEN,
}
_EMPTY_GROUP: Final = Reason(code="EmptyGroup", message="auto-provisioning made it, and it is empty")
_FITS: Final = Reason(code="FitsOnNodes", message="there is room for it on nodes that are there or on their way")

Doing = tuple[Action, Outcome | None]
"""None: it was begun, and is not at its end."""


def build_plan(turn: LoopResult) -> Plan:
    return build_plan_and_outcomes(turn)[0]


def build_plan_and_outcomes(turn: LoopResult) -> tuple[Plan, tuple[Outcome, ...]]:
    """The plan, and what became of its actions so far."""
    doings = [*_repairs(turn), *_growths(turn), *build_request_actions(turn), *_removals(turn), *_groups_gone(turn)]
    plan = Plan(
        subsystem=SUBSYSTEM,
        snapshot=turn.number if turn.snapshot is None else turn.snapshot.number,
        at=turn.at,
        actions=tuple(action for action, _ in doings),
        not_done=(*_ended_early(turn), *_pods(turn), *list_unserved_requests(turn), *_nodes(turn), *_groups(turn)),
        budgets=dict(turn.scale_up.plan.budgets),
    )
    return plan, tuple(outcome for _, outcome in doings if outcome is not None)


# ---- actions


def _repairs(turn: LoopResult) -> Iterator[Doing]:
    for repaired in turn.repaired:
        if repaired.instances:
            arguments = {"instances": list(repaired.instances)}
            action = Action(
                verb=DELETE_INSTANCES, target=_group(repaired.group), reason=repaired.reason, arguments=arguments
            )
        else:
            action = Action(
                verb=GROW if is_raised(repaired) else SHRINK,
                target=_group(repaired.group),
                reason=repaired.reason,
                arguments={"to": repaired.after},
                precondition={"size": repaired.before},
            )
        yield action, _called(action, repaired.failure)


def _growths(turn: LoopResult) -> Iterator[Doing]:
    grown = turn.grown
    for result in grown:
        action = _growth(result.scale_up, result.group, result.before, result.after)
        yield action, _grown(action, result)
    tried = {id(up_result.scale_up) for up_result in grown}
    for growth in turn.scale_up.plan.scale_ups:
        if id(growth) not in tried:
            yield _growth(growth, growth.option.group, growth.before, growth.after), None


def _growth(growth: GroupScaleUp, group: str, before: int, after: int) -> Action:
    arguments: dict[str, object] = {"to": after}
    if not growth.option.exists:
        arguments |= {"machineType": machine_type_of(growth.option), "zone": growth.option.zone}
    return Action(
        verb=GROW if growth.option.exists else CREATE,
        target=_group(group),
        reason=growth.reason,
        arguments=arguments,
        precondition={"size": before} if growth.option.exists else {},
    )


def _grown(action: Action, one: ScaleUpResult) -> Outcome:
    if one.held_back is not None:
        return Outcome(action=action, result=Result.HELD_BACK, reason=one.held_back)
    return _called(action, one.failure)


def _removals(turn: LoopResult) -> Iterator[Doing]:
    part = turn.scale_down
    ended = {finished.removal.node: finished for finished in part.ended}
    decided = {node_removal.node for node_removal in part.departures.removals}
    before = (finished.removal for finished in part.ended if finished.removal.node not in decided)
    for removal in (*before, *part.departures.removals):
        action = _removal(removal)
        end = ended.get(removal.node)
        if removal.node in part.held_back:
            held_back = part.held_back[removal.node]
            yield action, Outcome(action=action, result=Result.HELD_BACK, reason=held_back)
        elif end is not None:
            yield action, Outcome(action=action, result=_ENDINGS[end.result], reason=end.reason)
        else:
            yield action, None


def _removal(removal: NodeRemoval) -> Action:
    arguments = {"group": removal.group, "pods": len(removal.moves)}
    return Action(verb=REMOVE, target=_node(removal.node), reason=removal.reason, arguments=arguments)


def _groups_gone(turn: LoopResult) -> Iterator[Doing]:
    for deleted_group in turn.groups_gone:
        action = Action(
            verb=DELETE_GROUP, target=_group(deleted_group.group), reason=_EMPTY_GROUP, precondition={"size": 0}
        )
        yield action, _called(action, deleted_group.failure)


def _called(action: Action, failure: CallFailed | None) -> Outcome:
    if failure is None:
        return Outcome(action=action, result=Result.DONE)
    return Outcome(action=action, result=Result.FAILED, reason=Reason(code=failure.kind.value, message=failure.message))


# ---- what is not done


def _ended_early(turn: LoopResult) -> Iterator[NotDone]:
    if turn.ended_early is not None:
        cluster = Ref(kind="cluster", name=turn.policy.operation.cluster_name or "this")
        yield NotDone(what="is left as it is", about=(cluster,), reason=turn.ended_early)


class _Listed:
    """Things by what is said of them; pods only as many as are named in one plan."""

    def __init__(self) -> None:
        self._left = _PODS_NAMED
        self._said: dict[tuple[str, str], _Said] = {}
        self._texts: dict[int, tuple[Reason, str]] = {}
        """Of reasons, which thousands of pods share. They are held here, so that an id stays theirs."""

    def add(self, what: str, reason: Reason, refs: Iterable[Ref]) -> None:
        self._about(what, reason).refs.extend(refs)

    def add_pods(self, what: str, reason: Reason, pod: Pod, names: tuple[str, ...]) -> None:
        named = names[: self._left]
        self._left -= len(named)
        said = self._about(what, reason)
        said.refs.extend(Ref(kind="pod", namespace=pod.metadata.namespace, name=name) for name in named)
        said.unnamed += len(names) - len(named)

    def _about(self, what: str, reason: Reason) -> _Said:
        known = self._texts.get(id(reason))
        if known is None:
            known = self._texts[id(reason)] = (reason, f"{reason.code} {reason}")
        return self._said.setdefault((what, known[1]), _Said(what=what, reason=reason))

    def __iter__(self) -> Iterator[NotDone]:
        for said in self._said.values():
            yield NotDone(what=said.what, about=tuple(said.refs), reason=said.reason, unnamed=said.unnamed)


@dataclass(slots=True, kw_only=True)
class _Said:
    """One thing said of many."""

    what: str
    reason: Reason
    refs: list[Ref] = field(default_factory=list)
    unnamed: int = 0


def _pods(turn: LoopResult) -> Iterator[NotDone]:
    listed = _Listed()
    why: dict[int, Reason] = {}
    coming: dict[tuple[str, ...], Reason] = {}
    for pod_outcome in find_pod_outcomes(turn):
        pod = pod_outcome.pending.pod
        if pod_outcome.remaining:
            left = why.get(id(pod_outcome.reasons)) or why.setdefault(
                id(pod_outcome.reasons), _why_left(pod_outcome.reasons)
            )
            listed.add_pods("stays without a place", left, pod, pod_outcome.remaining)
        if pod_outcome.helped:
            asked = coming.get(pod_outcome.scale_ups) or coming.setdefault(
                pod_outcome.scale_ups, _what_comes(pod_outcome.scale_ups)
            )
            listed.add_pods("waits for new nodes", asked, pod, pod_outcome.helped)
        if pod_outcome.placed:
            listed.add_pods("waits for the scheduler", _FITS, pod, pod_outcome.placed)
    for aside in turn.set_aside:
        pod = aside.pod
        listed.add_pods("is not planned for", aside.reason, pod, (pod.metadata.name,))
    yield from listed


def _why_left(reasons: tuple[Reason, ...]) -> Reason:
    return Reason(code=NOT_TRIGGERED, message="no node can be added for it", because=reasons)


def _what_comes(growths: tuple[str, ...]) -> Reason:
    return Reason(code=TRIGGERED, message=f"nodes were asked for: {' '.join(growths)}")


def _nodes(turn: LoopResult) -> Iterator[NotDone]:
    """Every node that stays: needed ones, then unneeded ones that do not go yet."""
    part = turn.scale_down
    listed = _Listed()
    for unremovable in part.kept:
        listed.add("is kept", unremovable.reason, (_node(unremovable.node),))
    if part.skipped is not None:
        told = {
            *(unremovable_node.node for unremovable_node in part.kept),
            *(node_removal.node for node_removal in part.departures.removals),
        }
        waiting = (_node(unneeded_node.node) for unneeded_node in part.unneeded if unneeded_node.node not in told)
        listed.add("is not needed and stays for now", part.skipped, waiting)
    yield from (not_done for not_done in listed if not_done.about)


def _groups(turn: LoopResult) -> Iterator[NotDone]:
    """Groups that cannot be used, then what was not offered to this turn's pods."""
    listed = _Listed()
    unusable: set[str] = set()
    for name, standing in (turn.health.groups if turn.health is not None else {}).items():
        if (reason := standing.reason) is not None and standing.group.autoscaled:
            unusable.add(name)
            listed.add("cannot grow", reason, (_group(name),))
    for not_offered in turn.scale_up.plan.skipped_groups:
        if not_offered.group in unusable and not_offered.code in {IN_BACKOFF, NOT_READY}:
            continue
        about = (
            _group(not_offered.group)
            if not_offered.group
            else Ref(kind="machinetype", name=not_offered.machine_type or "any")
        )
        listed.add("is not grown", Reason(code=not_offered.code, message=not_offered.reason), (about,))
    yield from listed


def _group(name: str) -> Ref:
    return Ref(kind="nodegroup", name=name)


def _node(name: str) -> Ref:
    return Ref(kind="node", name=name)
