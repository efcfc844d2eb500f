"""One sentence about a loop, for the log and the status ConfigMap. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.nodes.model.results import RemovalResult
from plimsoll.nodes.reporting.min_size_enforcement import find_raised_groups, is_min_size_repair
from plimsoll.nodes.reporting.requests import build_request_clauses
from plimsoll.operator.pause import OTHER_AUTOSCALER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.loop_result import LoopResult

_NAMED: Final = 3


def build_log_line(result: LoopResult) -> str:
    """What was done, what was not done and why, or that there was nothing to do."""
    if result.ended_early is not None:
        clauses = [f"stopped early, {result.ended_early}", *_describe_repairs(result)]
    else:
        growing = (
            *_describe_repairs(result),
            *_describe_scale_ups(result),
            *_describe_unschedulable(result),
            *build_request_clauses(result),
        )
        clauses = [
            *growing,
            *_describe_removals(result),
            *_describe_finished(result),
            *_describe_deleted_groups(result),
            *_describe_bad_objects(result),
        ]
    held_back = result.held_back
    if held_back is not None and held_back.code == OTHER_AUTOSCALER and not _mention(clauses, held_back):
        clauses.append(f"nothing is done, {held_back}")
    if result.hold is not None:
        clauses.append(f"nothing is scaled down, {result.hold}")
    clauses += [f"kept {held.node or held.group}, {held.reason}" for held in result.held_deletions[:_NAMED]]
    return "; ".join(clauses) or "nothing to do"


def _mention(clauses: Sequence[str], reason: Reason) -> bool:
    return any(str(reason) in clause for clause in clauses)


def _describe_bad_objects(loop: LoopResult) -> Iterator[str]:
    if loop.bad_objects:
        names = [f"{bad.kind} {bad.namespace}/{bad.name}".replace(" /", " ") for bad in loop.bad_objects]
        yield f"cannot judge {_list_few(names)}: {loop.bad_objects[0].problem}"


def _describe_repairs(loop: LoopResult) -> Iterator[str]:
    for failed in loop.changes.failed:
        yield failed.reason.message
    for repaired in loop.repairs:
        if is_min_size_repair(repaired):
            continue
        if repaired.failure is not None:
            yield f"could not repair group {repaired.group}: {repaired.failure.message}"
        elif repaired.instances:
            yield f"deleted {_format_count(len(repaired.instances), 'instance')} of group {repaired.group}"
        else:
            yield f"lowered group {repaired.group} from {repaired.before} to {repaired.after}"


def _describe_scale_ups(loop: LoopResult) -> Iterator[str]:
    results = loop.scale_up_results
    done = [
        f"{'new ' * result.created}{result.group} {result.before}->{result.after}"
        for result in results
        if result.is_done
    ]
    if done:
        yield f"scaled up {_list_few(done)} for {_format_count(loop.scale_up.plan.scheduled, 'pod')}"
    for result in results:
        if result.failure is not None:
            yield f"could not scale up {result.group}: {result.failure.message}"
    for raised in find_raised_groups(loop):
        verb = "raised" if raised.failure is None else "could not raise"
        why = "" if raised.failure is None else f": {raised.failure.message}"
        yield f"{verb} {raised.group} from {raised.before} to its minimum {raised.after}{why}"
    held = [result for result in results if result.held_back is not None]
    if held:
        sizes = [f"{result.group} {result.before}->{result.after}" for result in held]
        yield f"would scale up {_list_few(sizes)}, {held[0].held_back}"


def _describe_unschedulable(loop: LoopResult) -> Iterator[str]:
    part = loop.scale_up
    if part.skipped is not None:
        yield f"no scale-up, {part.skipped}"
    left = sum(unschedulable.pods for unschedulable in part.plan.unschedulable)
    if left:
        reasons = dict.fromkeys(
            words
            for unschedulable in part.plan.unschedulable
            for reason in unschedulable.reasons
            for words in reason.facts.get("counts") or (str(reason),)
        )
        yield f"{_format_count(left, 'pod')} unschedulable: {_list_few([*reasons])}"


def _describe_removals(loop: LoopResult) -> Iterator[str]:
    part = loop.scale_down
    empty = [node_removal.node for node_removal in part.started if node_removal.is_empty]
    drained = [node_removal.node for node_removal in part.started if not node_removal.is_empty]
    if empty:
        yield f"removing empty {_list_few(empty)}"
    if drained:
        yield f"draining {_list_few(drained)}"
    if part.held_back:
        yield f"would remove {_list_few([*part.held_back])}, {next(iter(part.held_back.values()))}"
    waiting = len(part.unneeded) - len(part.nodes_to_delete.removals)
    if waiting > 0:
        why = f", {part.skipped}" if part.skipped is not None else ""
        yield f"{_format_count(waiting, 'unneeded node')} not gone yet{why}"
    if part.postponed:
        yield f"{_format_count(len(part.postponed), 'node')} not looked at, which come first in the next turn"


def _describe_finished(loop: LoopResult) -> Iterator[str]:
    ended = loop.scale_down.finished
    gone = [
        finished_removal.removal.node for finished_removal in ended if finished_removal.result is RemovalResult.REMOVED
    ]
    if gone:
        yield f"removed {_list_few(gone)}"
    for finished in ended:
        if finished.result is not RemovalResult.REMOVED:
            yield f"{finished.removal.node} was not removed: {finished.reason}"


def _describe_deleted_groups(loop: LoopResult) -> Iterator[str]:
    gone = [group.group for group in loop.deleted_groups if group.failure is None]
    if gone:
        yield f"deleted empty {_list_few(gone)}"
    for deleted_group in loop.deleted_groups:
        if deleted_group.failure is not None:
            yield f"could not delete group {deleted_group.group}: {deleted_group.failure.message}"


def _list_few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown


def _format_count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
