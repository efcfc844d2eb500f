"""An execution in the journal: its plan before it begins, and what came of it, however it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput, PlimsollError
from plimsoll.core.plans import Outcome, Reason, Result
from plimsoll.journal.entries import Query
from plimsoll.kafka.executor.errors import ExecutionRefused
from plimsoll.kafka.reporting.journal_plans import REASSIGN, SUBSYSTEM, build_outcomes
from plimsoll.operator.pause import ActionGuard

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.plans import Plan
    from plimsoll.journal.ports import Journal
    from plimsoll.kafka.model.executions import ExecutionOutcome


async def record_execution(
    journal: Journal | None, plan: Plan, execute: Callable[[], Awaitable[ExecutionOutcome]]
) -> ExecutionOutcome:
    """Store the plan, execute it, and store its outcome, also if it was declined or refused, or failed.

    The entry of an execution whose process ends stays open: a later process goes on with it.
    """
    if journal is None:
        return await execute()
    entry = await journal.append(plan)
    try:
        outcome = await execute()
    except PlimsollError as error:
        result, reason = _explain(error)
        outcomes = tuple(Outcome(action=action, result=result, reason=reason) for action in plan.actions)
        await journal.conclude(entry.number, outcomes)
        raise
    await journal.conclude(entry.number, build_outcomes(plan, outcome))
    return outcome


async def record_dry_run(journal: Journal, plan: Plan) -> None:
    """Store a plan of which nothing is executed."""
    reason = ActionGuard(dry_run=True).reason
    held_back = tuple(Outcome(action=action, result=Result.HELD_BACK, reason=reason) for action in plan.actions)
    await journal.append(plan, held_back)


async def conclude_earlier(journal: Journal, outcome: ExecutionOutcome) -> None:
    """Store the outcome of an execution that an earlier process began: its entry is the newest open one.

    The journal must be of one cluster, whose executions run one at a time.
    """
    for entry in await journal.list_entries(Query(subsystem=SUBSYSTEM, limit=None)):
        if not entry.outcomes and any(action.verb == REASSIGN for action in entry.plan.actions):
            await journal.conclude(entry.number, build_outcomes(entry.plan, outcome))
            return


def _explain(error: PlimsollError) -> tuple[Result, Reason]:
    match error:
        case ExecutionRefused():
            return Result.HELD_BACK, error.reason
        case InvalidInput():
            return Result.HELD_BACK, Reason(code="NotStarted", message=str(error))
        case _:
            return Result.FAILED, Reason(code="ExecutionFailed", message=str(error))
