"""An execution in the journal: its plan before it begins, and what came of it, however it ends.

The executor concludes the entry of an execution that has begun. So it is concluded once the execution has ended, also
if a later process goes on with it or stops it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog
from msgspec.structs import replace

from plimsoll.core.errors import InvalidInput, PlimsollError
from plimsoll.core.plans import Outcome, Reason, Result
from plimsoll.kafka.executor.errors import ExecutionRefused
from plimsoll.kafka.reporting.journal_plans import build_outcomes
from plimsoll.operator.pause import ActionGuard

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.core.plans import Plan
    from plimsoll.journal.ports import Journal
    from plimsoll.kafka.model.executions import ExecutionOutcome, ExecutionRequest

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_PROPOSAL: Final = Reason(code="Proposal", message="nothing is done yet, the proposal waits for approval")


async def record_execution(
    journal: Journal | None,
    plan: Plan,
    request: ExecutionRequest,
    execute: Callable[[ExecutionRequest], Awaitable[ExecutionOutcome]],
) -> ExecutionOutcome:
    """Store the plan and execute it; store why, if it was declined or refused, or failed.

    `execute` gets the request with the entry, for the record of the execution. The entry of an execution whose process
    ends stays open: a later process goes on with it.
    """
    if journal is None:
        return await execute(request)
    entry = await journal.append(plan)
    try:
        return await execute(replace(request, journal_entry=entry.number, planned_at=plan.at.isoformat()))
    except PlimsollError as error:
        result, reason = _explain(error)
        outcomes = tuple(Outcome(action=action, result=result, reason=reason) for action in plan.actions)
        await journal.conclude(entry.number, outcomes)
        raise


async def record_dry_run(journal: Journal, plan: Plan) -> None:
    """Store a plan of a dry run: nothing of it is executed."""
    reason = ActionGuard(dry_run=True).reason
    held_back = tuple(Outcome(action=action, result=Result.HELD_BACK, reason=reason) for action in plan.actions)
    await journal.append(plan, held_back)


async def record_proposal(journal: Journal, plan: Plan) -> None:
    """Store a proposal: a client may ask for its execution later."""
    proposed = tuple(Outcome(action=action, result=Result.PROPOSED, reason=_PROPOSAL) for action in plan.actions)
    await journal.append(plan, proposed)


async def conclude_entry(journal: Journal | None, request: ExecutionRequest, outcome: ExecutionOutcome) -> None:
    """Store the outcome of an execution in its entry. A journal that cannot be written does not hold it up."""
    if journal is None or not request.journal_entry:
        return
    try:
        entry = await journal.get_entry(request.journal_entry)
        if entry is not None and entry.at.isoformat() == request.planned_at:
            await journal.conclude(entry.number, build_outcomes(entry.plan, outcome))
    except PlimsollError as error:
        log.warning("execution.not_journaled", id=outcome.execution_id, problem=str(error))


def _explain(error: PlimsollError) -> tuple[Result, Reason]:
    match error:
        case ExecutionRefused():
            return Result.HELD_BACK, error.reason
        case InvalidInput():
            return Result.HELD_BACK, Reason(code="NotStarted", message=str(error))
        case _:
            return Result.FAILED, Reason(code="ExecutionFailed", message=str(error))
