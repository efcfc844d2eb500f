"""What a user asks of the analyzer."""

from __future__ import annotations

from enum import StrEnum

from plimsoll.core.values import Value


class Mode(StrEnum):
    """What a rebalance is for. The names are those of Strimzi's KafkaRebalance, and Cruise Control's endpoints."""

    FULL = "full"
    ADD_BROKERS = "add-brokers"
    REMOVE_BROKERS = "remove-brokers"
    REMOVE_DISKS = "remove-disks"
    DEMOTE_BROKERS = "demote-brokers"
    FIX_OFFLINE_REPLICAS = "fix-offline-replicas"


class BrokerLogDir(Value, order=True):
    """A log directory of a broker, by path."""

    broker: int
    path: str


class RebalanceRequest(Value):
    """A request to the analyzer. Empty `goals` mean the configured default goals."""

    mode: Mode = Mode.FULL
    brokers: tuple[int, ...] = ()
    """The brokers to add, remove or demote."""
    log_dirs: tuple[BrokerLogDir, ...] = ()
    """The log directories to empty (remove-disks)."""
    goals: tuple[str, ...] = ()
    skip_hard_goal_check: bool = False
    excluded_topics: str = ""
    """A regular expression (RE2); topics whose whole name matches do not move."""
    destination_brokers: tuple[int, ...] = ()
    """Replicas move only onto these; empty: onto every allowed broker."""
    excluded_for_leadership: tuple[int, ...] = ()
    excluded_for_replicas: tuple[int, ...] = ()
    rebalance_disk: bool = False
    """Balance log directories within brokers, and nothing between brokers."""
    relief: bool | None = None
    """Allow few extra moves that bring brokers into their window; None: in mode full only."""
