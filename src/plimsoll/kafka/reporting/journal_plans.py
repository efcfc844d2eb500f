"""A result of the analyzer as a plan for the journal: `plimsoll why broker/3` and `why topic/orders` read it.

A plan of 27,000 moves becomes one action per topic and per receiving broker. Topics beyond `MAX_TOPICS` are summed up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from plimsoll.core.formatting import choose_form, format_bytes, format_count
from plimsoll.core.plans import Action, NotDone, Outcome, Plan, Reason, Ref, Result
from plimsoll.kafka.model.executions import ExecutionEnd, TaskType
from plimsoll.kafka.model.proposals import GoalStatus
from plimsoll.kafka.model.requests import Mode

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.kafka.model.executions import ExecutionOutcome, ExecutionTask
    from plimsoll.kafka.model.proposals import OptimizationResult, Proposal, Refusal

SUBSYSTEM: Final = "kafka"
MAX_TOPICS: Final = 500
REASSIGN: Final = "reassign"
RECEIVE: Final = "receive replicas"
GIVE: Final = "give replicas"
UNREGISTER: Final = "unregister"
_MORE: Final = " more"
"""Ends the name of the action that sums up the topics which have none of their own. No topic has a space."""
_REST: Final = Ref(kind="topic", name="")


def build_plan(result: OptimizationResult, *, at: datetime) -> Plan:
    """The plan of a result: what moves, per topic and broker, and the goals that stay violated."""
    return Plan(
        subsystem=SUBSYSTEM,
        snapshot=0,
        at=at,
        actions=(*_list_topics(result), *_list_brokers(result)),
        not_done=(*_list_empty(result), *_list_goals(result), *_list_held(result)),
        budgets=dict(result.budgets),
    )


def build_refused_plan(refusal: Refusal, *, at: datetime) -> Plan:
    """The plan of a refusal: nothing is done."""
    about = Ref(kind="goal", name=refusal.goal) if refusal.goal else Ref(kind="cluster", name="kafka")
    not_done = NotDone(what="nothing is proposed", about=(about,), reason=refusal.reason)
    return Plan(subsystem=SUBSYSTEM, snapshot=0, at=at, not_done=(not_done,))


def build_unregistration(broker: int, refusal: Reason | None, *, at: datetime) -> Plan:
    """The plan of a registration that was removed, or that stays for a reason."""
    about = Ref(kind="broker", name=str(broker))
    if refusal is not None:
        not_done = NotDone(what="stays registered", about=(about,), reason=refusal)
        return Plan(subsystem=SUBSYSTEM, snapshot=0, at=at, not_done=(not_done,))
    reason = Reason(code="BrokerRemoved", message="it has no replica, and its process is gone")
    return Plan(subsystem=SUBSYSTEM, snapshot=0, at=at, actions=(Action(verb=UNREGISTER, target=about, reason=reason),))


def build_outcomes(plan: Plan, outcome: ExecutionOutcome) -> tuple[Outcome, ...]:
    """The result of each action. A topic or broker fails if one of its movements was not completed."""
    targets = {action.target for action in plan.actions}
    failed: dict[Ref, list[ExecutionTask]] = defaultdict(list)
    for task in outcome.not_completed:
        for ref in _list_targets(task):
            failed[ref if ref in targets or ref.kind != "topic" else _REST].append(task)
    not_emptied = {Ref(kind="broker", name=str(broker)) for broker in outcome.not_emptied}
    outcomes = []
    for action in plan.actions:
        key = _REST if action.target.name.endswith(_MORE) else action.target
        if key in not_emptied:
            outcomes.append(Outcome(action=action, result=Result.FAILED, reason=outcome.reason))
        elif key in failed:
            reason = _explain_failure(failed[key], outcome)
            outcomes.append(Outcome(action=action, result=Result.FAILED, reason=reason))
        else:
            note = outcome.reason if outcome.end is ExecutionEnd.COMPLETED else None
            outcomes.append(Outcome(action=action, result=Result.DONE, reason=note))
    return tuple(outcomes)


def _explain_failure(tasks: list[ExecutionTask], outcome: ExecutionOutcome) -> Reason:
    """How many movements were not completed, and why the first of them was not."""
    first = tasks[0]
    partition = f"{first.proposal.topic}-{first.proposal.partition}"
    why = first.reason or outcome.reason
    count = format_count(len(tasks), "movement was", "movements were")
    message = f"{count} not completed, {'the first ' if len(tasks) > 1 else ''}of {partition}"
    return Reason(
        code="NotCompleted",
        message=message,
        facts={"movements": len(tasks), "partition": partition},
        because=() if why is None else (why,),
    )


def _list_targets(task: ExecutionTask) -> list[Ref]:
    """What a movement is for: its topic and, if replicas change their brokers, those brokers."""
    proposal = task.proposal
    brokers: set[int] = set()
    if task.type is TaskType.INTER_BROKER_REPLICA_ACTION:
        brokers = {*proposal.added, *proposal.removed}
    return [Ref(kind="topic", name=proposal.topic), *(Ref(kind="broker", name=str(id_)) for id_ in sorted(brokers))]


def _list_topics(result: OptimizationResult) -> list[Action]:
    by_topic: dict[str, list[Proposal]] = defaultdict(list)
    for proposal in result.proposals:
        by_topic[proposal.topic].append(proposal)
    ranked = sorted(by_topic.items(), key=lambda item: (-sum(p.bytes_to_copy for p in item[1]), item[0]))
    actions = [_describe_topic(topic, proposals) for topic, proposals in ranked[:MAX_TOPICS]]
    rest = [proposal for _, proposals in ranked[MAX_TOPICS:] for proposal in proposals]
    if rest:
        actions.append(_describe_topic(f"{len(ranked) - MAX_TOPICS}{_MORE}", rest))
    return actions


def _describe_topic(topic: str, proposals: list[Proposal]) -> Action:
    moved = sum(len(proposal.added) for proposal in proposals)
    size = sum(proposal.bytes_to_move for proposal in proposals)
    leaders = sum(proposal.is_leader_move for proposal in proposals)
    goals = Counter(proposal.reason for proposal in proposals if proposal.reason)
    unknown = sum(len(proposal.added) for proposal in proposals if not proposal.is_size_known)
    within = sum(len(proposal.log_dir_moves) for proposal in proposals)
    parts = []
    if moved:
        parts.append(describe_moves(moved, size, unknown))
    if within:
        changes = ("replica changes its log directory", "replicas change their log directories")
        parts.append(format_count(within, *changes))
    if leaders:
        parts.append(format_count(leaders, "leader changes", "leaders change"))
    why = f" for {', '.join(goal for goal, _ in goals.most_common(3))}" if goals else ""
    brokers = sorted({broker for proposal in proposals for broker in (*proposal.added, *proposal.removed)})
    return Action(
        verb=REASSIGN,
        target=Ref(kind="topic", name=topic),
        reason=Reason(
            code="Rebalance",
            message=f"{' and '.join(parts)}{why}",
            facts={
                "replicas": moved,
                "bytes": size,
                "logDirMoves": within,
                "leaders": leaders,
                "goals": dict(goals),
                "brokers": brokers,
            },
        ),
        arguments={"partitions": len(proposals)},
    )


def describe_moves(replicas: int, size: int, unknown: int) -> str:
    """How many replicas move, with how many bytes. Sizes that are not known are not 0 bytes."""
    amount = format_known_bytes(size, unknown, of=replicas)
    return f"{format_count(replicas, 'replica')} with {amount} {choose_form(replicas, 'moves', 'move')}"


def format_known_bytes(size: float, unknown: int, *, of: int) -> str:
    """Bytes of which some are not known: unknown, or 12 MB and 3 of unknown size."""
    if not unknown:
        return format_bytes(size)
    return "unknown size" if unknown >= of and not size else f"{format_bytes(size)} and {unknown} of unknown size"


def _list_brokers(result: OptimizationResult) -> list[Action]:
    received: Counter[int] = Counter()
    given: Counter[int] = Counter()
    bytes_in: Counter[int] = Counter()
    for proposal in result.proposals:
        for broker in proposal.added:
            received[broker] += 1
            bytes_in[broker] += proposal.size_bytes
        given.update(proposal.removed)
    before = dict(zip(result.before.broker_ids.tolist(), result.before.replica_counts.tolist(), strict=True))
    after = dict(zip(result.after.broker_ids.tolist(), result.after.replica_counts.tolist(), strict=True))
    actions = []
    for broker in sorted(set(received) | set(given)):
        amount = format_bytes(bytes_in[broker])
        message = f"it has {format_count(before[broker], 'replica')} and gets {received[broker]} ({amount}), "
        message += f"gives {given[broker]}, ends with {after[broker]}"
        actions.append(
            Action(
                verb=RECEIVE if received[broker] else GIVE,
                target=Ref(kind="broker", name=str(broker)),
                reason=Reason(
                    code="Rebalance",
                    message=message,
                    facts={
                        "before": before[broker],
                        "received": received[broker],
                        "given": given[broker],
                        "after": after[broker],
                        "bytesReceived": bytes_in[broker],
                    },
                ),
            )
        )
    return actions


def _list_empty(result: OptimizationResult) -> list[NotDone]:
    """List what a proposal without movements leaves undone: new brokers stay empty, or there is nothing to move."""
    if result.proposals:
        return []
    counts = dict(zip(result.after.broker_ids.tolist(), result.after.replica_counts.tolist(), strict=True))
    is_addition = result.request.mode is Mode.ADD_BROKERS
    empty = [broker for broker in result.request.brokers if is_addition and not counts.get(broker)]
    if not empty or not any(counts.values()):
        reason = Reason(code="NothingToMove", message="the cluster is as the goals and the request want it")
        return [NotDone(what="nothing is proposed", about=(Ref(kind="cluster", name="kafka"),), reason=reason)]
    is_violated = any(goal.status is GoalStatus.VIOLATED for goal in result.goals)
    balanced = "the cluster is already balanced without it"
    message = "no move that the goals allow improves those that stay violated" if is_violated else balanced
    about = tuple(Ref(kind="broker", name=str(broker)) for broker in empty)
    return [NotDone(what="gets no replica", about=about, reason=Reason(code="BrokersStayEmpty", message=message))]


def _list_goals(result: OptimizationResult) -> list[NotDone]:
    unknown = Reason(code="GoalViolated", message="no move within the goals of higher priority improves it")
    return [
        NotDone(
            what="stays violated" if goal.status is GoalStatus.VIOLATED else "does not apply",
            about=(Ref(kind="goal", name=goal.goal),),
            reason=goal.reason or unknown,
        )
        for goal in result.goals
        if goal.status is GoalStatus.VIOLATED or goal.reason is not None
    ]


def _list_held(result: OptimizationResult) -> list[NotDone]:
    return [
        NotDone(what="is not moved", about=(Ref(kind="cluster", name="kafka"),), reason=reason)
        for reason in result.held
    ]
