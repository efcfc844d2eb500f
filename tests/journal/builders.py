"""Plans for tests of the journal."""

from datetime import UTC, datetime, timedelta
from typing import Any

from plimsoll.core.plans import Action, NotDone, Outcome, Plan, Reason, Ref, Result

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GROUP = Ref(kind="nodegroup", name="batch")


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def pod(name: str) -> Ref:
    return Ref(kind="pod", namespace="default", name=name)


def grow(target: Ref = GROUP, size: int = 5) -> Action:
    reason = Reason(code="PodsPending", message="41 pods wait", facts={"pods": 41})
    return Action(verb="grow", target=target, reason=reason, arguments={"size": size}, precondition={"size": 3})


def left(*names: str, why: str = "fits no machine type", unnamed: int = 0) -> NotDone:
    reason = Reason(code="NoFit", message=why)
    return NotDone(what="left pending", about=tuple(pod(name) for name in names), reason=reason, unnamed=unnamed)


def plan(snapshot: int = 1, *, seconds: float | None = None, **fields: Any) -> Plan:
    moment = at(snapshot if seconds is None else seconds)
    return Plan(**{"subsystem": "nodes", "snapshot": snapshot, "at": moment, "actions": (grow(),), **fields})


def done(action: Action | None = None) -> Outcome:
    return Outcome(action=action or grow(), result=Result.DONE)


def failed(message: str, action: Action | None = None) -> Outcome:
    return Outcome(action=action or grow(), result=Result.FAILED, reason=Reason(code="CloudRefused", message=message))
