"""A pass of a worker: what it decided, and how that is carried out.

A worker reads rows and returns its work: a plan, and a step per action. Steps run one after the other; one that fails
stops no other. A guard (dry run, pause) holds all of them back; the plan is reported all the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from plimsoll.core.plans import Action, NotDone, Outcome, Plan, Reason, Ref, Result
from plimsoll.fleet.planning.plan_parts import SUBSYSTEM
from plimsoll.fleet.ports import LeaseLost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from datetime import datetime

    from plimsoll.fleet.model.workers import Worker
    from plimsoll.fleet.workers.leased_store import LeasedStore
    from plimsoll.operator.pause import ActionGuard

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_LONGEST_MESSAGE: Final = 500
_OVERTAKEN: Final = Reason(code="RowChanged", message="the row changed meanwhile; the next pass decides again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An action and the write that carries it out. `run` returns whether the row was still as the plan found it."""

    action: Action
    run: Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a pass decided. `errors`: rows and locators that it could not decide about."""

    plan: Plan
    steps: tuple[Step, ...] = ()
    errors: tuple[str, ...] = ()
    follow: Worker | None = None
    """The worker that goes on with the rows of the steps; it is signalled if one was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassResult:
    """A pass that ended. `plan` None: it failed before it decided anything."""

    worker: str
    at: datetime
    plan: Plan | None = None
    outcomes: tuple[Outcome, ...] = ()
    errors: tuple[str, ...] = ()
    is_dry_run: bool = False
    duration_s: float = 0.0
    follow: Worker | None = None

    @property
    def ref(self) -> Ref:
        return build_worker_ref(self.worker)

    @property
    def has_acted(self) -> bool:
        return any(outcome.result is Result.DONE for outcome in self.outcomes)


class PassPlanner(Protocol):
    """The decisions of one worker."""

    @property
    def name(self) -> Worker: ...

    async def plan_pass(self, store: LeasedStore, /, *, number: int, now: datetime) -> Work:
        """Reads rows and decides. It writes nothing: the steps do."""
        ...


def build_worker_ref(worker: str) -> Ref:
    return Ref(kind="worker", name=worker)


def build_work(
    worker: Worker, parts: Iterable[Step | NotDone], *, number: int, now: datetime, follow: Worker | None = None
) -> Work:
    """The work of a pass: what it does, and what it leaves."""
    found = tuple(parts)
    steps = tuple(part for part in found if isinstance(part, Step))
    plan = Plan(
        subsystem=SUBSYSTEM,
        snapshot=number,
        at=now,
        actions=tuple(step.action for step in steps),
        not_done=tuple(part for part in found if isinstance(part, NotDone)),
        subject=build_worker_ref(worker),
    )
    return Work(plan=plan, steps=steps, follow=follow)


async def carry_out(work: Work, guard: ActionGuard) -> tuple[tuple[Outcome, ...], tuple[str, ...]]:
    """Runs the steps. Returns their outcomes, and the errors. Once the lease is lost, the rest is held back."""
    if guard.reason is not None:
        return _hold_back(work.steps, guard.reason), ()
    outcomes: list[Outcome] = []
    errors: list[str] = []
    for position, step in enumerate(work.steps):
        try:
            outcome = await _run_step(step)
        except LeaseLost as error:
            reason = Reason(code="LeaseLost", message=str(error))
            return (*outcomes, *_hold_back(work.steps[position:], reason)), (*errors, str(error))
        outcomes.append(outcome)
        if outcome.result is Result.FAILED:
            errors.append(f"{step.action.verb} {step.action.target}: {outcome.reason}")
    return tuple(outcomes), tuple(errors)


def _hold_back(steps: Iterable[Step], reason: Reason) -> tuple[Outcome, ...]:
    return tuple(Outcome(action=step.action, result=Result.HELD_BACK, reason=reason) for step in steps)


async def _run_step(step: Step) -> Outcome:
    try:
        is_done = await step.run()
    except LeaseLost:
        raise
    except Exception as error:
        log.warning("step.failed", verb=step.action.verb, target=str(step.action.target), exc_info=error)
        reason = Reason(code="Failed", message=f"{type(error).__name__}: {error}"[:_LONGEST_MESSAGE])
        return Outcome(action=step.action, result=Result.FAILED, reason=reason)
    if is_done:
        return Outcome(action=step.action, result=Result.DONE)
    return Outcome(action=step.action, result=Result.OVERTAKEN, reason=_OVERTAKEN)
