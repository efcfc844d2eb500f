"""Codes of what a pass decides: they become reasons of events and conditions, and labels of metrics."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from plimsoll.core.plans import Reason


class ReasonCode(StrEnum):
    """First what is done, then what keeps a change from being made, then what is only to be known."""

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
    """Nobody can put labels into the cluster's configuration."""
    BEING_DELETED = "BeingDeleted"
    COOLING_DOWN = "CoolingDown"
    UNFINISHED = "Unfinished"
    UNCONFIRMED = "Unconfirmed"
    """Left out by too few answers in a row."""
    NOT_LONG_ENOUGH = "NotLongEnough"
    """Wanted by too few passes in a row."""
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
    SIZE_CHANGED = "SizeChanged"
    CLOCK_JUMPED = "ClockJumped"


def instances(count: int) -> str:
    """So many of them, in words."""
    return f"{count} instance{'' if count == 1 else 's'}"


def told(code: ReasonCode, message: str, *because: Reason, **facts: Any) -> Reason:
    """Messages hold nothing that changes from pass to pass by itself: a status is written only if it changed."""
    return Reason(code=code.value, message=message, facts=facts, because=because)
