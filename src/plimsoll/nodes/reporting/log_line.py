"""One human sentence about a turn, for the log. Pure; says no more than the turn does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.nodes.model.loop_result import RemovalResult
from plimsoll.nodes.model.min_size import is_raised, raised_groups
from plimsoll.nodes.reporting.requests import request_clauses

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.nodes.model.loop_result import LoopResult

_NAMED: Final = 3


def sentence_of(turn: LoopResult) -> str:
    """What was done, what was not and why; or that there was nothing to do."""
    if turn.ended_early is not None:
        clauses = [f"stopped early, {turn.ended_early}", *_repairs(turn)]
    else:
        growing = (*_repairs(turn), *_growth(turn), *_left(turn), *request_clauses(turn))
        clauses = [*growing, *_removals(turn), *_ended(turn), *_groups(turn)]
    return "; ".join(clauses) or "nothing to do"


def _repairs(turn: LoopResult) -> Iterator[str]:
    for failed in turn.changes.failed:
        yield failed.reason.message
    for one in turn.repaired:
        if is_raised(one):
            continue
        if one.failure is not None:
            yield f"could not repair group {one.group}: {one.failure.message}"
        elif one.instances:
            yield f"deleted {_counted(len(one.instances), 'instance')} of group {one.group}"
        else:
            yield f"lowered group {one.group} from {one.before} to {one.after}"


def _growth(turn: LoopResult) -> Iterator[str]:
    grown = turn.grown
    done = [f"{'new ' * one.created}{one.group} {one.before}->{one.after}" for one in grown if one.is_done]
    if done:
        yield f"scaled up {_few(done)} for {_counted(turn.scale_up.plan.helped, 'pod')}"
    for one in grown:
        if one.failure is not None:
            yield f"could not scale up {one.group}: {one.failure.message}"
    for raised in raised_groups(turn):
        told = "raised" if raised.failure is None else "could not raise"
        why = "" if raised.failure is None else f": {raised.failure.message}"
        yield f"{told} {raised.group} from {raised.before} to its minimum {raised.after}{why}"
    held = [one for one in grown if one.held_back is not None]
    if held:
        yield f"would scale up {_few([f'{one.group} {one.before}->{one.after}' for one in held])}, {held[0].held_back}"


def _left(turn: LoopResult) -> Iterator[str]:
    part = turn.scale_up
    if part.skipped is not None:
        yield f"no scale-up, {part.skipped}"
    left = sum(one.pods for one in part.plan.remaining)
    if left:
        reasons = dict.fromkeys(str(reason) for one in part.plan.remaining for reason in one.reasons)
        yield f"{_counted(left, 'pod')} left without a place: {_few([*reasons])}"


def _removals(turn: LoopResult) -> Iterator[str]:
    part = turn.scale_down
    empty = [one.node for one in part.begun if one.is_empty]
    drained = [one.node for one in part.begun if not one.is_empty]
    if empty:
        yield f"removing empty {_few(empty)}"
    if drained:
        yield f"draining {_few(drained)}"
    if part.held_back:
        yield f"would remove {_few([*part.held_back])}, {next(iter(part.held_back.values()))}"
    waiting = len(part.unneeded) - len(part.departures.removals)
    if waiting > 0:
        why = f", {part.skipped}" if part.skipped is not None else ""
        yield f"{_counted(waiting, 'unneeded node')} not gone yet{why}"


def _ended(turn: LoopResult) -> Iterator[str]:
    ended = turn.scale_down.ended
    gone = [one.removal.node for one in ended if one.result is RemovalResult.REMOVED]
    if gone:
        yield f"removed {_few(gone)}"
    for one in ended:
        if one.result is not RemovalResult.REMOVED:
            yield f"{one.removal.node} was not removed: {one.reason}"


def _groups(turn: LoopResult) -> Iterator[str]:
    gone = [one.group for one in turn.groups_gone if one.failure is None]
    if gone:
        yield f"deleted empty {_few(gone)}"
    for one in turn.groups_gone:
        if one.failure is not None:
            yield f"could not delete group {one.group}: {one.failure.message}"


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
