"""The outcomes of an execution in the journal: only what was not moved has failed."""

from __future__ import annotations

import pytest

from plimsoll.core.plans import Action, Plan, Reason, Ref, Result
from plimsoll.kafka.model.executions import ExecutionEnd, ExecutionOutcome, ExecutionTask, TaskState, TaskType
from plimsoll.kafka.model.proposals import Proposal
from plimsoll.kafka.reporting.journal_plans import build_outcomes
from tests.nodes.planning.builders import NOON

WHY = Reason(code="Stopped", message="cancelled")
REST = {"topic/7 more", "broker/1", "broker/8"}
TARGETS = ("topic/a", "topic/b", "topic/7 more", "broker/0", "broker/1", "broker/8", "broker/9")


def build_task(topic: str, old: tuple[int, ...], new: tuple[int, ...], kind: TaskType) -> ExecutionTask:
    proposal = Proposal(topic=topic, partition=0, old_leader=old[0], old_replicas=old, new_replicas=new, size_bytes=1)
    return ExecutionTask(id=0, type=kind, state=TaskState.ABORTED, proposal=proposal, reason=WHY)


@pytest.mark.parametrize(
    ("task", "failed"),
    [
        (build_task("a", (0, 2), (9, 2), TaskType.INTER_BROKER_REPLICA_ACTION), {"topic/a", "broker/0", "broker/9"}),
        (build_task("b", (0, 2), (2, 0), TaskType.LEADER_ACTION), {"topic/b"}),
        (build_task("b", (0, 2), (9, 2), TaskType.LEADER_ACTION), {"topic/b"}),
        (
            build_task("rare", (1, 2), (8, 2), TaskType.INTER_BROKER_REPLICA_ACTION),
            REST,
        ),
        (None, set()),
    ],
)
@pytest.mark.parametrize("end", [ExecutionEnd.STOPPED, ExecutionEnd.FAILED])
def test_only_what_was_not_moved_has_failed(task: ExecutionTask | None, failed: set[str], end: ExecutionEnd):
    reason = Reason(code="Rebalance", message="moves")
    actions = tuple(Action(verb="reassign", target=Ref.parse(target), reason=reason) for target in TARGETS)
    plan = Plan(subsystem="kafka", snapshot=0, at=NOON, actions=actions)
    outcome = ExecutionOutcome(
        execution_id="e", end=end, completed=1, not_completed=() if task is None else (task,), reason=WHY
    )
    outcomes = build_outcomes(plan, outcome)
    assert [ended.action for ended in outcomes] == list(actions)
    assert {str(ended.action.target) for ended in outcomes if ended.result is Result.FAILED} == failed
    reasons = {str(ended.reason) for ended in outcomes if ended.result is Result.FAILED}
    assert reasons == ({f"1 movement was not completed, of {task.proposal.topic}-0 (cancelled)"} if task else set())
