"""Refusals in the words of Cruise Control, which its clients look for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.formatting import format_count
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.scope import UNEVEN_REPLICATION_FACTOR

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.kafka.model.proposals import Refusal

_PACKAGE = "com.linkedin.kafka.cruisecontrol.exception"
_ILLEGAL_ARGUMENT = f"{_PACKAGE}.KafkaCruiseControlException: java.lang.IllegalArgumentException"
_FAILURE = f"{_PACKAGE}.OptimizationFailureException"
_PARAMETERS = {
    "brokers": "brokerid",
    "destination_brokers": "destination_broker_ids",
    "log_dirs": "brokerid_and_logdirs",
}
"""The parameters whose names differ from the fields of a request."""


def write_cruise_control_error(refusal: Refusal) -> str:
    """The exception and the text that Cruise Control answers, for "Error processing … due to: '…'."."""
    write = _TEXTS.get(refusal.reason.code)
    if refusal.goal:
        text = write(refusal.reason.facts) if write is not None else f"{refusal.reason}."
        advice = refusal.provision.recommendation.partition("] ")[2]
        # Cruise Control does not name the topic, and nothing else would lead to it.
        uneven = [f"{cause.message}." for cause in refusal.reason.because if cause.code == UNEVEN_REPLICATION_FACTOR]
        return f"{_FAILURE}: [{refusal.goal}] {' '.join(part for part in (text, advice, *uneven) if part)}"
    text = write(refusal.reason.facts) if write is not None else _name_parameter(refusal)
    return f"{_ILLEGAL_ARGUMENT}: {text}"


def _name_parameter(refusal: Refusal) -> str:
    """The sentence, behind the name that the field has among Cruise Control's parameters."""
    field = refusal.reason.facts.get("parameter", "")
    return f"{_PARAMETERS.get(field, field)}: {refusal.reason}." if field else f"{refusal.reason}."


def _write_brokers(facts: dict[str, Any]) -> str:
    brokers = ", ".join(str(broker) for broker in facts["brokers"])
    if facts.get("mode") in {Mode.REMOVE_BROKERS.value, Mode.DEMOTE_BROKERS.value} and len(facts["brokers"]) == 1:
        return f"Broker {brokers} does not exist."
    return f"Broker [{brokers}] does not exist."


def _write_unsupported(facts: dict[str, Any]) -> str:
    return f"Goals [{', '.join(facts['goals'])}] are not supported. Supported: [{', '.join(facts['supported'])}]"


def _write_missing(facts: dict[str, Any]) -> str:
    return (
        f"Missing hard goals [{', '.join(facts['missing'])}] in the provided goals: [{', '.join(facts['goals'])}]. "
        "Add skip_hard_goal_check=true parameter to ignore this sanity check."
    )


def _write_racks(facts: dict[str, Any]) -> str:
    current, needed = facts["racks"], facts["replicationFactor"]
    return (
        f"Insufficient number of racks to distribute each replica (Current: {current}, Needed: {needed}). "
        f"Add at least {format_count(needed - current, 'rack')} with brokers."
    )


def _write_capacity(facts: dict[str, Any]) -> str:
    if facts["resource"] == "replicas":
        return (
            f"Insufficient capacity for replicas (Needed: {facts['needed']:.0f}, Allowed: {facts['allowed']}, "
            f"Threshold: {facts['threshold']})."
        )
    return (
        f"Insufficient capacity for {facts['resource']} (Utilization {facts['utilization']:.2f}, Allowed Capacity "
        f"{facts['allowedCapacity']:.2f}, Threshold: {facts['threshold']:.2f})."
    )


_TEXTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "BrokersDoNotExist": _write_brokers,
    "UnsupportedGoals": _write_unsupported,
    "MissingHardGoals": _write_missing,
    "InsufficientRacks": _write_racks,
    "InsufficientCapacity": _write_capacity,
}
