"""The reasons of automatic rebalancing: one function per code. `plimsoll why kafka/NS/NAME` shows these sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.formatting import format_age, format_time
from plimsoll.core.plans import Reason
from plimsoll.kafka.model.requests import Mode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from plimsoll.kafka.model.auto_rebalance import AutoRebalanceObject

BROKERS_STAYED_EMPTY: Final = "AutoRebalanceBrokersStayEmpty"
"""The rebalance ended, and new brokers hold no replica although replicas exist."""
_NAMED_AT_MOST: Final = 10
_LISTED_AT_MOST: Final = 100
_LONGEST_MESSAGE: Final = 500


def build_scaling_up(brokers: Sequence[int], missing: Sequence[int]) -> Reason:
    return Reason(
        code="AutoRebalanceScalingUp",
        message=f"replicas move onto {format_brokers(brokers)} once the pods are ready and the brokers are registered; "
        f"not ready yet: {format_brokers(missing)}",
        facts=_list_facts(brokers, notReady=list(missing[:_LISTED_AT_MOST])),
    )


def build_pods_not_ready(missing: Sequence[int], waited_s: float) -> Reason:
    return Reason(
        code="AutoRebalancePodsNotReady",
        message=f"{format_brokers(missing)} are not ready after {format_age(waited_s)}; replicas move onto the new "
        "brokers once all of them are ready",
        facts=_list_facts(missing),
    )


def build_started(mode: Mode, brokers: Sequence[int]) -> Reason:
    return Reason(
        code="AutoRebalanceStarted",
        message=f"the cluster scales: a rebalance moves replicas {_format_move(mode, brokers)}",
        facts=_list_facts(brokers, mode=mode.value),
    )


def build_running(mode: Mode, rebalance: AutoRebalanceObject) -> Reason:
    return Reason(
        code="AutoRebalanceRunning",
        message=f"the rebalance that moves replicas {_format_move(mode, rebalance.brokers)} is {rebalance.state}",
        facts=_list_facts(rebalance.brokers, mode=mode.value, state=rebalance.state.value),
    )


def build_queued(brokers: Sequence[int]) -> Reason:
    return Reason(
        code="AutoRebalanceQueued",
        message=f"replicas move onto {format_brokers(brokers)} after the removal of brokers has ended",
        facts=_list_facts(brokers),
    )


def build_changed(mode: Mode, brokers: Sequence[int], former: Sequence[int]) -> Reason:
    return Reason(
        code="AutoRebalanceChanged",
        message=f"the brokers changed from {format_brokers(former)} to {format_brokers(brokers)}: "
        f"a new proposal moves replicas {_format_move(mode, brokers)}",
        facts=_list_facts(brokers, mode=mode.value),
    )


def build_resumed(mode: Mode, brokers: Sequence[int]) -> Reason:
    return Reason(
        code="AutoRebalanceResumed",
        message=f"the reason for which the operator stopped the rebalance is gone: "
        f"a new proposal moves replicas {_format_move(mode, brokers)}",
        facts=_list_facts(brokers, mode=mode.value),
    )


def build_restored(mode: Mode, brokers: Sequence[int]) -> Reason:
    return Reason(
        code="AutoRebalanceRestored",
        message=f"mode and brokers of an automatic rebalance follow from the node pools: "
        f"they are set back to {mode} and {format_brokers(brokers)}",
        facts=_list_facts(brokers, mode=mode.value),
    )


def build_preempted(removed: Sequence[int], queued: Sequence[int]) -> Reason:
    later = f"; {format_brokers(queued)} get their replicas afterwards" if queued else ""
    return Reason(
        code="AutoRebalancePreempted",
        message=f"the rebalance onto new brokers stops, because the removal of {format_brokers(removed)} "
        f"goes first{later}",
        facts=_list_facts(removed, queued=list(queued[:_LISTED_AT_MOST])),
    )


def build_scaled_back(brokers: Sequence[int]) -> Reason:
    return Reason(
        code="AutoRebalanceScaledBack",
        message=f"{format_brokers(brokers)} are no longer asked for: no replicas move onto them",
        facts=_list_facts(brokers),
    )


def build_withdrawn(brokers: Sequence[int], *, is_queued: bool) -> Reason:
    later = "; replicas move back onto them by a rebalance with mode add-brokers" if is_queued else ""
    return Reason(
        code="AutoRebalanceWithdrawn",
        message=f"{format_brokers(brokers)} are asked for again: their removal stops{later}",
        facts=_list_facts(brokers),
    )


def build_turned_off(mode: Mode) -> Reason:
    return Reason(
        code="AutoRebalanceTurnedOff",
        message=f"mode {mode} is not configured any more: its automatic rebalance ends and is deleted",
        facts={"mode": mode.value},
    )


def build_stopping(mode: Mode, rebalance: AutoRebalanceObject) -> Reason:
    return Reason(
        code="AutoRebalanceStopping",
        message=f"the rebalance with mode {mode} is {rebalance.state} and stops; it is deleted once it has stopped",
        facts={"mode": mode.value, "state": rebalance.state.value},
    )


def build_finished(
    mode: Mode, brokers: Sequence[int], rebalance: AutoRebalanceObject, *, has_earlier_round: bool = False
) -> Reason:
    """What a rebalance that ended has moved. `has_earlier_round`: its last proposal is not its only one."""
    facts = _list_facts(brokers, mode=mode.value)
    if rebalance.empty_brokers:
        message = _trim(rebalance.empty_brokers)
        if rebalance.replica_movements:
            message = f"replicas have moved onto other new brokers; {message}"
        return Reason(code=BROKERS_STAYED_EMPTY, message=message, facts=facts)
    message = f"replicas have moved {_format_move(mode, brokers)}"
    if rebalance.replica_movements == 0 and not has_earlier_round:
        is_removal = mode is Mode.REMOVE_BROKERS
        why = "it held no replica" if is_removal else "the proposal moves no replica"
        message = f"no replica has moved {_format_move(mode, brokers)}: {why}"
    return Reason(code="AutoRebalanceFinished", message=message, facts=facts)


def build_cancelled(brokers: Sequence[int]) -> Reason:
    return Reason(
        code="AutoRebalanceCancelled",
        message=f"the rebalance was deleted: no replicas move onto {format_brokers(brokers)} by themselves",
        facts=_list_facts(brokers),
    )


def build_deleted(brokers: Sequence[int]) -> Reason:
    return Reason(
        code="AutoRebalanceDeleted",
        message=f"the rebalance was deleted, but {format_brokers(brokers)} still hold replicas: it is created again",
        facts=_list_facts(brokers),
    )


def build_waiting_for_executor(mode: Mode) -> Reason:
    return Reason(
        code="AutoRebalanceExecutorBusy",
        message=f"the rebalance with mode {mode} was deleted while replicas moved: the execution is stopped, and "
        "nothing else happens until it has ended",
        facts={"mode": mode.value},
    )


def build_failed(mode: Mode, rebalance: AutoRebalanceObject) -> Reason:
    then = (
        "refresh it with the annotation strimzi.io/rebalance=refresh, or edit its spec, which has a copy of the "
        "settings; delete it to give it up"
    )
    return Reason(
        code="AutoRebalanceFailed",
        message=f"the rebalance that moves replicas {_format_move(mode, rebalance.brokers)} failed"
        f"{_format_message(rebalance.message)}; {then}",
        facts=_list_facts(rebalance.brokers, mode=mode.value),
    )


def build_renewing(mode: Mode, rebalance: AutoRebalanceObject) -> Reason:
    return Reason(
        code="AutoRebalanceRenewing",
        message=f"the rebalance that moves replicas {_format_move(mode, rebalance.brokers)} waits for something that "
        f"passes{_format_message(rebalance.message)}; it goes on by itself",
        facts=_list_facts(rebalance.brokers, mode=mode.value),
    )


def build_retry_scheduled(mode: Mode, rebalance: AutoRebalanceObject, at: datetime, attempts: int) -> Reason:
    return Reason(
        code="AutoRebalanceRetryScheduled",
        message=f"the rebalance that moves replicas {_format_move(mode, rebalance.brokers)} failed"
        f"{_format_message(rebalance.message)}; attempt {attempts + 1} follows at {format_time(at)}",
        facts=_list_facts(rebalance.brokers, mode=mode.value, attempts=attempts),
    )


def build_retried(mode: Mode, brokers: Sequence[int], attempts: int) -> Reason:
    return Reason(
        code="AutoRebalanceRetried",
        message=f"the rebalance failed {attempts} times: a new proposal moves replicas {_format_move(mode, brokers)}",
        facts=_list_facts(brokers, mode=mode.value, attempts=attempts),
    )


def build_next_round(brokers: Sequence[int], replicas: int | None) -> Reason:
    number = "" if replicas is None else f" {replicas}"
    return Reason(
        code="AutoRebalanceNextRound",
        message=f"the rebalance ended, but {format_brokers(brokers)} still hold{number} replicas: a new proposal "
        "follows",
        facts=_list_facts(brokers, replicas=replicas),
    )


def build_no_progress(brokers: Sequence[int], rounds: int, at: datetime) -> Reason:
    return Reason(
        code="AutoRebalanceNoProgress",
        message=f"{rounds} rebalances in a row moved nothing off {format_brokers(brokers)}: topics may be excluded, "
        f"or created there again; the next attempt is at {format_time(at)}",
        facts=_list_facts(brokers, rounds=rounds),
    )


def build_stopped(mode: Mode, brokers: Sequence[int]) -> Reason:
    then = " The brokers stay until then" if mode is Mode.REMOVE_BROKERS else ""
    return Reason(
        code="AutoRebalanceStopped",
        message=f"the rebalance that moves replicas {_format_move(mode, brokers)} was stopped by the annotation "
        f"strimzi.io/rebalance=stop; the annotation refresh continues it.{then}".rstrip("."),
        facts=_list_facts(brokers, mode=mode.value),
    )


def build_rebalance_paused(mode: Mode) -> Reason:
    return Reason(
        code="AutoRebalancePaused",
        message=f"the rebalance with mode {mode} is paused by its annotation strimzi.io/pause-reconciliation",
        facts={"mode": mode.value},
    )


def build_kafka_paused() -> Reason:
    return Reason(
        code="ReconciliationPaused",
        message="the Kafka is paused by its annotation strimzi.io/pause-reconciliation: nothing changes",
    )


def build_kafka_deleted(mode: Mode) -> Reason:
    return Reason(
        code="KafkaDeleted",
        message=f"the Kafka is being deleted, and with it its automatic rebalance with mode {mode}",
        facts={"mode": mode.value},
    )


def build_name_conflict(mode: Mode) -> Reason:
    return Reason(
        code="AutoRebalanceNameConflict",
        message=f"a KafkaRebalance with the name of the automatic one for {mode} exists and does not carry the "
        "finalizer strimzi.io/auto-rebalancing: it belongs to a user and is left alone. Delete or rename it",
        facts={"mode": mode.value},
    )


def build_settings_not_read(mode: Mode, name: str) -> Reason:
    return Reason(
        code="AutoRebalanceSettingsNotFound",
        message=f"the settings {name} of mode {mode} could not be read",
        facts={"mode": mode.value, "name": name},
    )


def build_not_configured(mode: Mode) -> Reason:
    return Reason(
        code="AutoRebalanceConfigUnclear",
        message=f"spec.cruiseControl.autoRebalance has a mistake, so it is not clear whether {mode} is configured: "
        "what runs is left alone, and nothing new starts",
        facts={"mode": mode.value},
    )


def format_brokers(brokers: Sequence[int]) -> str:
    """`broker 3`, `brokers 3, 4 and 7 more`."""
    named = ", ".join(str(broker) for broker in brokers[:_NAMED_AT_MOST])
    more = len(brokers) - _NAMED_AT_MOST
    return f"broker{'' if len(brokers) == 1 else 's'} {named}" + (f" and {more} more" if more > 0 else "")


def _format_move(mode: Mode, brokers: Sequence[int]) -> str:
    direction = "off" if mode is Mode.REMOVE_BROKERS else "onto"
    return f"{direction} {format_brokers(brokers)}"


def _format_message(message: str) -> str:
    """The message of Cruise Control, without its full stop and never whole megabytes of it."""
    trimmed = _trim(message)
    return f" ({trimmed})" if trimmed else ""


def _trim(message: str) -> str:
    return " ".join(message[: 2 * _LONGEST_MESSAGE].split())[:_LONGEST_MESSAGE].rstrip(".")


def _list_facts(brokers: Sequence[int], **facts: object) -> dict[str, object]:
    return {"brokers": list(brokers[:_LISTED_AT_MOST]), **facts}
