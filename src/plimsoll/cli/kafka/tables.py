"""Tables and JSON of the Kafka commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

import typer

from plimsoll.cli.shared.output import Output, Table, echo_value
from plimsoll.core.errors import InvalidInput, NotEnoughData, PlimsollError, Unreachable
from plimsoll.core.formatting import choose_form, format_age, format_bytes, format_count
from plimsoll.kafka.model.executions import ExecutorState, TaskType
from plimsoll.kafka.model.proposals import Refusal
from plimsoll.kafka.reporting.journal_plans import describe_moves, format_known_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kafka.model.cluster import ClusterModel
    from plimsoll.kafka.model.executions import ExecutionOutcome, ExecutionProgress
    from plimsoll.kafka.model.proposals import OptimizationResult

_PROBLEMS_SHOWN: Final = 20
_FIELDS_WITH_FLAGS: Final = frozenset({"brokers", "destination_brokers", "excluded_topics", "goals", "log_dirs"})
"""Fields of a request whose flags have the same names."""


_PHASES: Final = {
    ExecutorState.NO_TASK_IN_PROGRESS: "idle",
    ExecutorState.STARTING_EXECUTION: "starting",
    ExecutorState.INTER_BROKER_REPLICA_MOVEMENT: "moving replicas",
    ExecutorState.INTRA_BROKER_REPLICA_MOVEMENT: "moving replicas between log directories",
    ExecutorState.LEADER_MOVEMENT: "changing leaders",
    ExecutorState.STOPPING_EXECUTION: "stopping",
}
_MOVEMENTS: Final = {
    TaskType.INTER_BROKER_REPLICA_ACTION: "replicas",
    TaskType.INTRA_BROKER_REPLICA_ACTION: "log directory",
    TaskType.LEADER_ACTION: "leader",
}


def list_status(model: ClusterModel) -> list[str | Table]:
    """The brokers of a cluster and what is wrong with its partitions."""
    rows = [
        (
            broker.id,
            broker.rack or "-",
            _describe_state(model, index),
            int(model.replica_counts[index]),
            int(model.leader_counts[index]),
            _describe_data(model, index),
            _describe_disk(model, index),
        )
        for index, broker in enumerate(model.brokers)
    ]
    lines: list[str | Table] = [
        (
            f"{format_count(len(model.brokers), 'broker')}, {format_count(len(model.topics), 'topic')}, "
            f"{format_count(model.partition_count, 'partition')}, {format_count(model.replica_count, 'replica')}, "
            f"{_describe_all_data(model)}"
        ),
        Table(("BROKER", "RACK", "STATE", "REPLICAS", "LEADERS", "DATA", "DISK"), rows),
        f"partitions without a leader: {int((model.leader < 0).sum())}",
        f"under-replicated partitions: {int(model.is_under_replicated.sum())}",
        f"reassignments under way: {int(model.reassigning.sum())}",
        *([f"partitions of unknown size: {unknown}"] if (unknown := _count_unknown(model)) else []),
    ]
    return [*lines, *_list_problems(model)]


def _list_problems(model: ClusterModel) -> list[str]:
    """What could not be read, the first of it."""
    more = len(model.problems) - _PROBLEMS_SHOWN
    shown = [f"problem: {problem}" for problem in model.problems[:_PROBLEMS_SHOWN]]
    return [*shown, f"and {format_count(more, 'more problem')}"] if more > 0 else shown


def build_status(model: ClusterModel) -> dict[str, Any]:
    """The same for machines. `bytes` is null where no size is known."""
    unknown = _count_unknown(model)
    return {
        "clusterID": model.cluster_id,
        "topics": len(model.topics),
        "partitions": model.partition_count,
        "replicas": model.replica_count,
        "bytes": None if unknown and unknown == model.partition_count else int(model.broker_bytes.sum()),
        "partitionsOfUnknownSize": unknown,
        "brokers": [
            {
                "id": broker.id,
                "rack": broker.rack,
                "state": _describe_state(model, index),
                "replicas": int(model.replica_counts[index]),
                "leaders": int(model.leader_counts[index]),
                "bytes": _read_bytes(model, index),
                "replicasOfUnknownSize": int(model.unknown_size_counts[index]),
            }
            for index, broker in enumerate(model.brokers)
        ],
        "partitionsWithoutLeader": int((model.leader < 0).sum()),
        "underReplicatedPartitions": int(model.is_under_replicated.sum()),
        "reassignments": int(model.reassigning.sum()),
        "problems": list(model.problems),
    }


def _describe_state(model: ClusterModel, index: int) -> str:
    broker = model.brokers[index]
    if not broker.is_registered:
        return "Gone"
    if broker.is_fenced:
        return "Fenced"
    if broker.log_dirs is None:
        return "Unknown"
    if any(not log_dir.is_online for log_dir in broker.log_dirs):
        return "BadDisks"
    return "Cordoned" if any(log_dir.is_cordoned for log_dir in broker.log_dirs) else "Alive"


def _count_unknown(model: ClusterModel) -> int:
    return int((~model.size_known).sum())


def _read_bytes(model: ClusterModel, index: int) -> int | None:
    """The bytes of a broker; None: it has replicas, and no size of them is known."""
    unknown = int(model.unknown_size_counts[index])
    return None if unknown and unknown == model.replica_counts[index] else int(model.broker_bytes[index])


def _describe_data(model: ClusterModel, index: int) -> str:
    """The bytes of a broker, as far as they are known."""
    size, unknown = _read_bytes(model, index), int(model.unknown_size_counts[index])
    if size is None:
        return "unknown"
    return f"{format_bytes(size)} + {unknown} unknown" if unknown else format_bytes(size)


def _describe_all_data(model: ClusterModel) -> str:
    unknown = _count_unknown(model)
    return format_known_bytes(float(model.broker_bytes.sum()), unknown, of=model.partition_count)


def _describe_disk(model: ClusterModel, index: int) -> str:
    """How full the volumes are. Usable bytes beyond the total are those of a broker that errs: the volume is empty."""
    known = [log_dir for log_dir in model.brokers[index].log_dirs or () if log_dir.total_bytes > 0]
    if not known or min(log_dir.usable_bytes for log_dir in known) < 0:
        return "-"
    total = sum(log_dir.total_bytes for log_dir in known)
    usable = sum(min(log_dir.usable_bytes, log_dir.total_bytes) for log_dir in known)
    return f"{100.0 * (1 - usable / total):.0f} % of {format_bytes(float(total))}"


def list_plan(result: OptimizationResult, *, throttle: int) -> list[str | Table]:
    """What moves, broker by broker, how far that is from the least possible, and the goals."""
    before, after = result.before, result.after
    rows = [
        (
            broker.id,
            broker.rack or "-",
            f"{before.replica_counts[index]} -> {after.replica_counts[index]}",
            f"{before.leader_counts[index]} -> {after.leader_counts[index]}",
            f"{_describe_data(before, index)} -> {_describe_data(after, index)}",
        )
        for index, broker in enumerate(before.brokers)
    ]
    goals = [
        (goal.goal, goal.status.value, str(goal.reason) if goal.reason is not None else "") for goal in result.goals
    ]
    return [
        summarise(result),
        f"balancedness: {result.balancedness_before:.1f} -> {result.balancedness_after:.1f}",
        *([_describe_duration(result, throttle)] if throttle else []),
        "",
        Table(("BROKER", "RACK", "REPLICAS", "LEADERS", "DATA"), rows),
        Table(("GOAL", "STATUS", "REASON"), goals),
        *(f"not moved: {reason}" for reason in result.held),
        *_describe_offline(result),
        *([f"provision: {result.provision.recommendation}"] if result.provision.recommendation else []),
        *_list_problems(before),
    ]


def summarise(result: OptimizationResult) -> str:
    """Moves and bytes in a sentence, with the least possible."""
    bounds = result.bounds
    leaders = _count_leader_changes(result)
    if not result.proposals:
        return "nothing to move"
    unknown = _count_unknown_moves(result)
    if count := sum(len(proposal.log_dir_moves) for proposal in result.proposals):
        size = sum(proposal.bytes_to_copy for proposal in result.proposals)
        return f"{describe_moves(count, size, unknown)} between log directories of their brokers"
    moves = (
        f"{describe_moves(bounds.moves, bounds.bytes, unknown)}, "
        f"{format_count(leaders, 'leader changes', 'leaders change')}"
    )
    if reordered := sum(
        proposal.is_leader_move and proposal.old_leader == proposal.new_replicas[0] for proposal in result.proposals
    ):
        moves += f", {format_count(reordered, 'partition only gets', 'partitions only get')} another preferred leader"
    if bounds.moves > bounds.least_moves:
        least = f"{format_count(bounds.least_moves, 'replica')} with {format_bytes(bounds.least_bytes)}"
        return f"{moves} (any plan moves at least {least})"
    if bounds.bytes <= bounds.least_bytes * 1.0001:
        return f"{moves} (no plan moves less)"
    fewest = f"{moves} (no plan moves fewer replicas"
    return f"{fewest}; at least {format_bytes(bounds.least_bytes)} must move)" if bounds.least_bytes else f"{fewest})"


def _count_unknown_moves(result: OptimizationResult) -> int:
    """Replicas that move and whose sizes are not known."""
    return sum(
        len(proposal.added) + len(proposal.log_dir_moves) for proposal in result.proposals if proposal.has_unknown_bytes
    )


def _count_leader_changes(result: OptimizationResult) -> int:
    """Partitions that another broker leads afterwards, whether or not their replicas move too."""
    return int((result.before.leader != result.after.leader).sum())


def _describe_duration(result: OptimizationResult, throttle: int) -> str:
    """The time at the throttle: the busiest broker decides."""
    incoming: dict[int, int] = {}
    for proposal in result.proposals:
        for broker in proposal.added:
            incoming[broker] = incoming.get(broker, 0) + proposal.size_bytes
    if not incoming:
        return "time at the throttle: none"
    broker = max(incoming, key=lambda broker: (incoming[broker], -broker))
    seconds = incoming[broker] / throttle
    return (
        f"time at {format_bytes(throttle)}/s: {_describe_least(seconds)} "
        f"(broker {broker} receives {format_bytes(incoming[broker])})"
    )


def _describe_least(seconds: float) -> str:
    return f"at least {format_age(seconds)}" if seconds >= 1 else "less than a second"


def _describe_offline(result: OptimizationResult) -> list[str]:
    """Offline replicas that the plan leaves where they are."""
    offline = int(result.after.offline.sum())
    if not offline:
        return []
    count = format_count(offline, "replica is", "replicas are")
    return [f"{count} offline; --mode fix-offline-replicas moves {choose_form(offline, 'it', 'them')}"]


class RemovalIncomplete(PlimsollError):
    """Replicas stay on brokers that shall be removed."""


def check_removal(result: OptimizationResult) -> None:
    """Raise if something stays on brokers that shall be removed."""
    kept = [
        f"broker {broker} keeps {format_count(count, 'replica')}" for broker, count in result.kept_on_leaving.items()
    ]
    if kept:
        them = choose_form(len(kept), "it", "them")
        raise RemovalIncomplete(f"incomplete: {', '.join(kept)}: do not switch {them} off")


class WrongRequest(InvalidInput):
    """A request that is wrong in itself; `hint` says what helps."""

    hint = ""


def build_plan_data(result: OptimizationResult) -> dict[str, Any]:
    """The plan for machines."""
    return {
        "mode": result.request.mode.value,
        "brokers": list(result.request.brokers),
        "moves": {
            "replicas": result.bounds.moves,
            "bytes": result.bounds.bytes,
            "leastReplicas": result.bounds.least_moves,
            "leastBytes": result.bounds.least_bytes,
            "replicasOfUnknownSize": _count_unknown_moves(result),
            "leaders": _count_leader_changes(result),
        },
        "balancedness": {"before": result.balancedness_before, "after": result.balancedness_after},
        "goals": [{"goal": goal.goal, "status": goal.status.value, "reason": goal.reason} for goal in result.goals],
        "load": [
            {
                "broker": broker.id,
                "rack": broker.rack,
                "replicas": [int(result.before.replica_counts[index]), int(result.after.replica_counts[index])],
                "leaders": [int(result.before.leader_counts[index]), int(result.after.leader_counts[index])],
                "bytes": [_read_bytes(result.before, index), _read_bytes(result.after, index)],
            }
            for index, broker in enumerate(result.before.brokers)
        ],
        "provision": result.provision,
        "held": list(result.held),
        "proposals": list(result.proposals),
        "budgets": dict(result.budgets),
    }


def build_rebalance_data(
    result: OptimizationResult | Refusal | None, *, outcome: ExecutionOutcome | None = None
) -> dict[str, Any]:
    """The answer of a rebalance for machines: always the same keys, and null for what there is not."""
    refusal = result if isinstance(result, Refusal) else None
    plan = None if result is None or isinstance(result, Refusal) else build_plan_data(result)
    return {"plan": plan, "refused": refusal, "outcome": outcome}


def check_answers(model: ClusterModel, *, is_dump: bool) -> None:
    """Raise if no broker answered: nothing is known of sizes and log directories then, and nothing may move."""
    from plimsoll.kafka.planning.scope import refuse_silence

    if (refusal := refuse_silence(model)) is not None:
        raise (NotEnoughData if is_dump else Unreachable)(str(refusal.reason))


def end_with_refusal(refusal: Refusal, output: Output, build_data: Callable[[Refusal], Any]) -> NoReturn:
    """Print why nothing is proposed, and end with exit code 1. A request that is wrong in itself is an error (2)."""
    if not refusal.goal:
        field = refusal.reason.facts.get("parameter", "")
        flag = f"--{field.replace('_', '-')}" if field in _FIELDS_WITH_FLAGS else field
        error = WrongRequest(str(refusal.reason), path=flag)
        if refusal.reason.code == "MissingHardGoals":
            error.hint = "--skip-hard-goal-check accepts the goals without them"
        raise error
    if output in {Output.JSON, Output.YAML}:
        echo_value(build_data(refusal), output)
    else:
        typer.echo(f"refused: {refusal.goal}: {refusal.reason}", err=True)
        if refusal.provision.recommendation:
            typer.echo(f"recommended: {refusal.provision.recommendation}", err=True)
    raise typer.Exit(1)


def describe_progress(progress: ExecutionProgress) -> str:
    """The progress of a running execution, as a line."""
    counts, noun = {
        ExecutorState.LEADER_MOVEMENT: (progress.leaders, "leaders"),
        ExecutorState.INTRA_BROKER_REPLICA_MOVEMENT: (progress.intra_broker, "replicas"),
    }.get(progress.state, (progress.inter_broker, "partitions"))
    parts = [_PHASES[progress.state]]
    parts.append(f"{counts.finished} of {counts.total} {noun} done, {counts.in_progress} under way")
    parts.append(f"{format_bytes(progress.finished_bytes)} of {format_bytes(progress.total_bytes)}")
    if progress.bytes_per_s is not None:
        parts.append(f"{format_bytes(progress.bytes_per_s)}/s")
    if progress.seconds_left is not None:
        parts.append(f"{format_age(progress.seconds_left)} left")
    return "; ".join(parts)


def describe_outcome(outcome: ExecutionOutcome) -> list[str | Table]:
    """How an execution ended, with everything that did not happen."""
    lines: list[str | Table] = [
        f"{outcome.end.value}: {format_count(outcome.completed, 'movement')} completed, "
        f"{format_bytes(outcome.moved_bytes)} moved" + (f"; {outcome.reason}" if outcome.reason is not None else "")
    ]
    rows = [
        (
            f"{task.proposal.topic}-{task.proposal.partition}",
            _MOVEMENTS[task.type],
            task.state.value,
            str(task.reason) if task.reason is not None else "",
        )
        for task in outcome.not_completed[:50]
    ]
    lines.append(Table(("NOT COMPLETED", "MOVEMENT", "STATE", "REASON"), rows))
    more = len(outcome.not_completed) - len(rows)
    return [*lines, f"and {more} more"] if more > 0 else lines
