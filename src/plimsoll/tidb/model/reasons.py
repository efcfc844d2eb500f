"""Reason codes of reconcile decisions. They become reasons of Events and conditions, and labels of metrics."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from plimsoll.core.plans import Reason


class ReasonCode(StrEnum):
    """Codes: first of actions, then of changes that are held, then of notes."""

    CLUSTER_GROWS = "ClusterGrows"
    GROUP_CREATED = "GroupCreated"
    GROUP_GROWS = "GroupGrows"
    GROUP_SHRINKS = "GroupShrinks"
    STORE_STAYS = "StoreStays"
    GROUP_REMOVED = "GroupRemoved"

    BASE_BEING_DELETED = "BaseBeingDeleted"
    BASE_PAUSED = "BasePaused"
    BASE_PHASE = "BasePhase"
    BASE_CONFIG = "BaseConfig"
    """Labels cannot be added to the cluster's configuration."""
    BEING_DELETED = "BeingDeleted"
    COOLING_DOWN = "CoolingDown"
    UNFINISHED = "Unfinished"
    UNCONFIRMED = "Unconfirmed"
    """Too few consecutive answers omit the group."""
    NOT_LONG_ENOUGH = "NotLongEnough"
    """Too few consecutive reconciles want the change."""
    REMOVALS_SUPPRESSED = "RemovalsSuppressed"
    UNKNOWN_RESOURCE_TYPE = "UnknownResourceType"
    UNSCHEDULABLE = "Unschedulable"
    NOT_REGISTERED = "NotRegistered"
    TOO_YOUNG = "TooYoung"
    ONE_STORE_AT_A_TIME = "OneStoreAtATime"
    REMOVALS_FIRST = "RemovalsFirst"
    DUPLICATE_GROUP = "DuplicateGroup"
    NOT_MANAGED = "NotManaged"

    COUNT_REACHED = "CountReached"
    METRICS_INCOMPLETE = "MetricsIncomplete"
    """The planner lacks data about an instance."""
    SIZE_CHANGED = "SizeChanged"
    CLOCK_JUMPED = "ClockJumped"


def format_instances(count: int) -> str:
    """The count with its noun: "1 instance", "2 instances"."""
    return f"{count} instance{'' if count == 1 else 's'}"


def make_reason(code: ReasonCode, message: str, *because: Reason, **facts: Any) -> Reason:
    """Build a reason.

    Messages contain nothing that changes from one reconcile to the next by itself, because a status is written only
    when it changed.
    """
    return Reason(code=code.value, message=message, facts=facts, because=because)
