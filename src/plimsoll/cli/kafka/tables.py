"""Tables and JSON of the Kafka commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import typer

from plimsoll.cli.shared.output import Output, Table, echo_value
from plimsoll.core.formatting import format_age, format_bytes

if TYPE_CHECKING:
    from plimsoll.kafka.model.cluster import ClusterModel
    from plimsoll.kafka.model.executions import ExecutionOutcome, ExecutionProgress
    from plimsoll.kafka.model.proposals import OptimizationResult, Refusal


def list_status(model: ClusterModel) -> list[str | Table]:
    """The brokers of a cluster and what is wrong with its partitions."""
    import numpy as np

    in_sync = np.bincount(model.partition_of[model.in_sync], minlength=model.partition_count)
    under_replicated = int((in_sync < np.diff(model.offsets)).sum())
    rows = [
        (
            broker.id,
            broker.rack or "-",
            _describe_state(model, index),
            int(model.replica_counts[index]),
            int(model.leader_counts[index]),
            format_bytes(float(model.broker_bytes[index])),
            _describe_disk(model, index),
        )
        for index, broker in enumerate(model.brokers)
    ]
    lines: list[str | Table] = [
        (
            f"{len(model.brokers)} brokers, {len(model.topics)} topics, {model.partition_count} partitions, "
            f"{model.replica_count} replicas, {format_bytes(float(model.broker_bytes.sum()))}"
        ),
        Table(("BROKER", "RACK", "STATE", "REPLICAS", "LEADERS", "DATA", "DISK"), rows),
        f"partitions without a leader: {int((model.leader < 0).sum())}",
        f"under-replicated partitions: {under_replicated}",
        f"reassignments under way: {int(model.reassigning.sum())}",
    ]
    return [*lines, *(f"problem: {problem}" for problem in model.problems[:20])]


def build_status(model: ClusterModel) -> dict[str, Any]:
    """The same for machines."""
    import numpy as np

    in_sync = np.bincount(model.partition_of[model.in_sync], minlength=model.partition_count)
    return {
        "clusterID": model.cluster_id,
        "topics": len(model.topics),
        "partitions": model.partition_count,
        "replicas": model.replica_count,
        "bytes": int(model.broker_bytes.sum()),
        "brokers": [
            {
                "id": broker.id,
                "rack": broker.rack,
                "state": _describe_state(model, index),
                "replicas": int(model.replica_counts[index]),
                "leaders": int(model.leader_counts[index]),
                "bytes": int(model.broker_bytes[index]),
            }
            for index, broker in enumerate(model.brokers)
        ],
        "partitionsWithoutLeader": int((model.leader < 0).sum()),
        "underReplicatedPartitions": int((in_sync < np.diff(model.offsets)).sum()),
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


def _describe_disk(model: ClusterModel, index: int) -> str:
    totals = [log_dir.total_bytes for log_dir in model.brokers[index].log_dirs or () if log_dir.total_bytes > 0]
    usable = [log_dir.usable_bytes for log_dir in model.brokers[index].log_dirs or () if log_dir.total_bytes > 0]
    if not totals or min(usable) < 0:
        return "-"
    return f"{100.0 * (1 - sum(usable) / sum(totals)):.0f} % of {format_bytes(float(sum(totals)))}"


def list_plan(result: OptimizationResult, *, throttle: int) -> list[str | Table]:
    """What moves, broker by broker, how far that is from the least possible, and the goals."""
    before, after = result.before, result.after
    rows = [
        (
            broker.id,
            broker.rack or "-",
            f"{before.replica_counts[index]} -> {after.replica_counts[index]}",
            f"{before.leader_counts[index]} -> {after.leader_counts[index]}",
            f"{format_bytes(float(before.broker_bytes[index]))} -> {format_bytes(float(after.broker_bytes[index]))}",
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
    ]


def summarise(result: OptimizationResult) -> str:
    """Moves and bytes in a sentence, with the least possible."""
    bounds = result.bounds
    leaders = _count_leader_changes(result)
    if not result.proposals:
        return "nothing to move"
    within = [(len(proposal.log_dir_moves), proposal.size_bytes) for proposal in result.proposals]
    if count := sum(moves for moves, _ in within):
        size = format_bytes(sum(moves * size_bytes for moves, size_bytes in within))
        return f"{count} replicas with {size} move between log directories of their brokers"
    moves = f"{bounds.moves} replicas with {format_bytes(bounds.bytes)} move, {leaders} leaders change"
    if reordered := sum(
        proposal.is_leader_move and proposal.old_leader == proposal.new_replicas[0] for proposal in result.proposals
    ):
        moves += f", {reordered} partitions only get another preferred leader"
    if bounds.moves > bounds.least_moves:
        least = f"{bounds.least_moves} replicas with {format_bytes(bounds.least_bytes)}"
        return f"{moves} (any plan moves at least {least})"
    is_least = bounds.bytes <= bounds.least_bytes * 1.0001
    return f"{moves} (the least possible)" if is_least else f"{moves} (the least possible number)"


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
        f"time at {format_bytes(throttle)}/s: at least {format_age(seconds)} "
        f"(broker {broker} receives {format_bytes(incoming[broker])})"
    )


def _describe_offline(result: OptimizationResult) -> list[str]:
    """Offline replicas that the plan leaves where they are."""
    offline = int(result.after.offline.sum())
    return [f"{offline} replicas are offline; --mode fix-offline-replicas moves them"] if offline else []


def describe_kept(result: OptimizationResult) -> str:
    """What stays on brokers that shall be removed; empty: nothing."""
    kept = [f"broker {broker} keeps {count} replicas" for broker, count in result.kept_on_leaving.items()]
    return f"{', '.join(kept)}: do not switch it off" if kept else ""


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
                "bytes": [int(result.before.broker_bytes[index]), int(result.after.broker_bytes[index])],
            }
            for index, broker in enumerate(result.before.brokers)
        ],
        "provision": result.provision,
        "held": list(result.held),
        "proposals": list(result.proposals),
        "budgets": dict(result.budgets),
    }


def end_with_refusal(refusal: Refusal, output: Output) -> NoReturn:
    """Print why nothing is proposed. Exit code 1: a goal cannot hold; 2: the request itself is wrong."""
    if output in {Output.JSON, Output.YAML}:
        echo_value({"refused": refusal}, output)
    else:
        goal = f"{refusal.goal}: " if refusal.goal else ""
        typer.echo(f"refused: {goal}{refusal.reason}", err=True)
        if refusal.provision.recommendation:
            typer.echo(f"recommended: {refusal.provision.recommendation}", err=True)
    raise typer.Exit(1 if refusal.goal else 2)


def describe_progress(progress: ExecutionProgress) -> str:
    """The progress of a running execution, as a line."""
    counts = progress.inter_broker
    parts = [progress.state.value.replace("_", " ").lower()]
    parts.append(f"{counts.finished}/{counts.total} partitions, {counts.in_progress} moving")
    parts.append(f"{format_bytes(progress.finished_bytes)} of {format_bytes(progress.total_bytes)}")
    if progress.bytes_per_s is not None:
        parts.append(f"{format_bytes(progress.bytes_per_s)}/s")
    if progress.seconds_left is not None:
        parts.append(f"{format_age(progress.seconds_left)} left")
    return "; ".join(parts)


def describe_outcome(outcome: ExecutionOutcome) -> list[str | Table]:
    """How an execution ended, with everything that did not happen."""
    lines: list[str | Table] = [
        f"{outcome.end.value}: {outcome.completed} movements completed, {format_bytes(outcome.moved_bytes)} moved"
        + (f"; {outcome.reason}" if outcome.reason is not None else "")
    ]
    rows = [
        (
            f"{task.proposal.topic}-{task.proposal.partition}",
            task.state.value,
            str(task.reason) if task.reason is not None else "",
        )
        for task in outcome.not_completed[:50]
    ]
    lines.append(Table(("NOT COMPLETED", "STATE", "REASON"), rows))
    more = len(outcome.not_completed) - len(rows)
    return [*lines, f"and {more} more"] if more > 0 else lines
