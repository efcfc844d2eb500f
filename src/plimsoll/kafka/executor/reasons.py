"""Reasons of the executor: why a movement waits, why it ended, and what slows an execution down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.formatting import choose_form, format_count
from plimsoll.core.plans import Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from plimsoll.kafka.model.description import TopicPartition

NAMED_AT_MOST: Final = 10


def name_some(names: Collection[object]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(str(name) for name in sorted(names, key=str)[:NAMED_AT_MOST])
    more = len(names) - NAMED_AT_MOST
    return f"{shown} and {more} more" if more > 0 else shown


def _name_brokers(brokers: Collection[int]) -> str:
    return f"{choose_form(len(brokers), 'broker', 'brokers')} {name_some(brokers)}"


def explain_foreign(keys: Collection[TopicPartition]) -> Reason:
    return Reason(
        code="ForeignReassignment",
        message=f"reassignments of another client are left alone; these partitions wait: {name_some(keys)}",
        facts={"partitions": len(keys)},
    )


def explain_others(keys: Collection[TopicPartition]) -> Reason:
    return Reason(
        code="OtherClient",
        message=f"another client reassigned partitions meanwhile, and was left alone: {name_some(keys)}; "
        "run one Plimsoll or Cruise Control per cluster",
        facts={"partitions": len(keys)},
    )


def explain_outdated(keys: Collection[TopicPartition]) -> Reason:
    return Reason(
        code="PlanOutdated",
        message="replicas of the plan have moved since it was made, or another client moves them now: "
        f"{name_some(keys)}; plan again",
        facts={"partitions": len(keys)},
    )


def explain_under_replicated(keys: Collection[TopicPartition], brokers: Collection[int]) -> Reason:
    return Reason(
        code="UnderReplicated",
        message=f"under-replicated: {name_some(keys)}; {_name_brokers(brokers)} "
        f"{choose_form(len(brokers), 'gets', 'get')} 1 movement at a time",
        facts={"partitions": len(keys), "brokers": sorted(brokers)},
    )


def explain_not_in_sync(keys: Collection[TopicPartition]) -> Reason:
    return Reason(
        code="NotInSync",
        message=f"replicas must be in sync before anything moves, and these partitions are not: {name_some(keys)}",
        facts={"partitions": len(keys)},
    )


def explain_no_leader(keys: Collection[TopicPartition]) -> Reason:
    return Reason(
        code="NoLeader",
        message=f"partitions without a leader are not moved: {name_some(keys)}",
        facts={"partitions": len(keys)},
    )


def explain_dead_destination(brokers: Sequence[int]) -> Reason:
    return Reason(
        code="DestinationDown",
        message=f"the destination is down: {_name_brokers(brokers)}",
        facts={"brokers": sorted(brokers)},
    )


def explain_offline_destination(broker: int) -> Reason:
    return Reason(
        code="DestinationOffline",
        message=f"the replica on broker {broker} is offline: its log directory failed or is full",
        facts={"brokers": [broker]},
    )


def explain_foreign_rates(brokers: Collection[int]) -> Reason:
    verb = choose_form(len(brokers), "has", "have")
    return Reason(
        code="ForeignThrottle",
        message=f"{_name_brokers(brokers)} {verb} a throttle rate of another client, which is left as it is",
        facts={"brokers": sorted(brokers)},
    )


def explain_left_rates(brokers: Collection[int]) -> Reason:
    verb, pronoun = choose_form(len(brokers), "does", "do"), choose_form(len(brokers), "it is", "they are")
    return Reason(
        code="ThrottleRateLeft",
        message=f"the throttle rate of {_name_brokers(brokers)}, which {verb} not answer, is removed when "
        f"{pronoun} back",
        facts={"brokers": sorted(brokers)},
    )


def explain_unavailable(problem: str) -> Reason:
    return Reason(code="BrokersUnavailable", message=f"the brokers do not answer: {problem}")


def explain_bytes_per_hour(limit: int, started: int) -> Reason:
    return Reason(
        code="BytesPerHour",
        message=f"{started} bytes began to move within the last hour, and {limit} may",
        facts={"limit": limit, "started": started},
    )


def explain_unconfirmed(total: int, limit: int, unknown: int) -> Reason:
    """More than a limit would be written, or it is not known how much."""
    extra = f" and {format_count(unknown, 'partition')} of unknown size" if unknown else ""
    return Reason(
        code="ConfirmationNeeded",
        message=f"{total} bytes{extra} would move, and more than {limit} need a confirmation",
        facts={"bytes": total, "limit": limit, "unknownSizes": unknown},
    )


def explain_unfinished(execution_id: str) -> Reason:
    finish = "resume it (--resume) or stop it (--stop) first"
    message = f"execution {execution_id} of an earlier process is not finished: {finish}"
    return Reason(code="UnfinishedExecution", message=message, facts={"execution": execution_id})


def explain_stopped(replicas: Sequence[int], *, was_begun: bool) -> Reason:
    """Why replicas stay where they are."""
    done = "cancelled" if was_begun else "not begun"
    return Reason(
        code="Stopped", message=f"{done}; the replicas stay on {list(replicas)}", facts={"replicas": list(replicas)}
    )


def explain_leader_kept(leader: int, wanted: int) -> Reason:
    """Why a leader stays, whether or not the replicas have moved."""
    stays = f"broker {leader} still leads" if leader >= 0 else "the partition has no leader"
    return Reason(
        code="Stopped",
        message=f"not begun; {stays}, not broker {wanted}" if leader != wanted else f"not begun; {stays}",
        facts={"leader": leader, "wanted": wanted},
    )


def explain_error(code: str, text: str, *, attempts: int = 1) -> Reason:
    times = f" ({attempts} times)" if attempts > 1 else ""
    return Reason(code="BrokerError", message=f"the brokers refused it{times}: {text}", facts={"error": code})


def explain_vanished(attempts: int) -> Reason:
    return Reason(
        code="CancelledByOther",
        message=f"another client cancelled its reassignment {attempts} times",
        facts={"attempts": attempts},
    )


def explain_changed_factor(before: int, now: int) -> Reason:
    return Reason(
        code="ReplicationFactorChanged",
        message=f"the partition has {format_count(now, 'replica')}, and {before} when the move was planned",
        facts={"planned": before, "now": now},
    )


def explain_deleted(key: TopicPartition, *, is_topic: bool) -> Reason:
    """A topic was deleted; not `is_topic`: another one of its name does not have the partition."""
    again = "" if is_topic else f" and created again without partition {key.partition}"
    return Reason(code="TopicDeleted", message=f"topic {key.topic} was deleted{again}")


def explain_not_emptied(replicas: Mapping[int, Collection[TopicPartition]]) -> Reason:
    """Why brokers that were to be emptied may not be removed, though every movement was completed."""
    arrived = "; ".join(
        f"broker {broker} got {format_count(len(keys), 'replica')} while it was emptied ({name_some(keys)})"
        for broker, keys in sorted(replicas.items())
    )
    message = f"{arrived}: do not switch {choose_form(len(replicas), 'it', 'them')} off"
    return Reason(code="BrokersNotEmptied", message=message, facts={"brokers": sorted(replicas)})
